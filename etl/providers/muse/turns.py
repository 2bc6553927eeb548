"""How do runs become turns, and what did a person (or a parent, or the scheduler) ask?

A run's start opens a turn, whatever its prompt: a scheduled run has an empty one, and so a turn without a prompt row.
Its ``terminal`` closes it. A task's start opens nothing: several tasks start inside one run. A record is of the run
that it names, also when another has started since; one that names none is of the run that started last.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from etl.events import Dialogue, Merged, SessionEvent, TurnMark, UnreadItem
from etl.shape import as_dict, as_int, as_list, as_str, as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from etl.events import Event, ModelCall, RecordOpened
    from etl.providers.muse.lines import Entry

    Handler = Callable[[Entry], Iterator[Event]]
    Closer = Callable[["Run"], Iterator[Event]]

_HTTP: Final = re.compile(r"API error (\d{3})\b")
#: What a run may end as: what else is said of it is nothing that we could read.
_STATES: Final = frozenset({"completed", "failed", "cancelled"})
#: Longer durations (a year) are broken numbers.
_LONGEST_MS: Final = 366 * 86_400_000


@dataclass(slots=True)
class Thought:
    """A group of reasoning summaries not committed yet: where it began, and its parts so far."""

    opened: RecordOpened
    parts: list[str]


@dataclass(slots=True)
class Run:
    """What the log said of one run so far. ``asked`` is its prompt and where it stands, ``attributed`` the attributions
    of usage, ``completed`` the tokens of the model calls that were stated; ``summaries`` are the places of reasoning
    summaries by message and by response.
    """

    id: str
    is_begun: bool = False
    asked: tuple[str, tuple[int, int]] | None = None
    is_ended: bool = False
    model: str | None = None
    response: str | None = None
    error_class: str | None = None
    timed_out: bool = False
    completed: list[tuple[int | None, int | None]] = field(default_factory=list)
    attributed: list[tuple[RecordOpened, ModelCall]] = field(default_factory=list)
    thoughts: dict[str, Thought] = field(default_factory=dict)
    summaries: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(slots=True)
class _Intent:
    """A prompt that was accepted and whose run has not started: it is said when it starts with an empty prompt, and at
    the end if it never does.
    """

    opened: RecordOpened
    texts: list[tuple[str, str]]
    attachments: int


class Turns:
    """The runs of one session. ``is_child``: what starts a run is a parent's task, not a person's prompt. ``closers``
    say what is left to say when a run ends.
    """

    def __init__(self, *, is_child: bool) -> None:
        self.is_child = is_child
        self.runs: dict[str, Run] = {}
        self.last: Run | None = None
        self.model: str | None = None
        self.closers: list[Closer] = []
        self._intents: dict[str, _Intent] = {}

    def handlers(self) -> dict[str, Handler]:
        """What is done with which record."""
        return {
            "runtime.session/run/started": self._started,
            "runtime.session/run/terminal": self._terminal,
            "runtime.session/run/run_fatal_error_classified": self._classified,
            "runtime.user_intent.accepted": self._accepted,
        }

    def of(self, entry: Entry) -> Run:
        """The run of a record: the one it names, else the one that started last."""
        name = entry.run_id
        if name is None:
            if self.last is None:
                self.last = self.named(f"~{entry.line_no}.{entry.child}")
            return self.last
        return self.named(name)

    def named(self, name: str) -> Run:
        """The run of an id."""
        run = self.runs.get(name)
        if run is None:
            run = self.runs[name] = Run(name)
        return run

    def begun(self, run: Run) -> Iterator[Event]:
        """A run that speaks has begun: one whose start the log lacks (its head is cut) is a turn all the same."""
        if not run.is_begun:
            self.last, run.is_begun = run, True
            yield TurnMark("start", run.id, "unknown", status_raw="open")
            yield SessionEvent("turn", "head_missing")

    def within(self, name: str) -> Iterator[Event]:
        """A record of a run behind which another one has started stands in the turn of its own run."""
        run = self.runs.get(name)
        if run is not None and run.is_begun and run is not self.last:
            yield TurnMark("within", name)

    def model_of(self, run: Run) -> str | None:
        """The model configured for a run, else the one in force."""
        return run.model or self.model

    def ends(self) -> Iterator[Event]:
        """No record follows: what open runs have left to say, and prompts whose run never started."""
        for run in self.runs.values():
            if not run.is_ended:
                yield from self._closed(run)
        for name, intent in self._intents.items():
            yield from self._intended(name, intent)
            yield SessionEvent("prompt", "unstarted", attrs={"intent_id": name})

    def _intended(self, name: str, intent: _Intent) -> Iterator[Event]:
        """The prompt as it was accepted, at the record that says so."""
        yield replace(intent.opened, again=True, role="user", message_key=name)
        attachments = intent.attachments
        for block, (text, pointer) in enumerate(intent.texts):
            yield Dialogue(*self._asked(), text, pointer, block, attachments)
            attachments = 0

    def _closed(self, run: Run) -> Iterator[Event]:
        for closer in self.closers:
            yield from closer(run)

    def _asked(self) -> tuple[str, str]:
        return ("system", "objective") if self.is_child else ("user", "prompt")

    def _started(self, entry: Entry) -> Iterator[Event]:
        run = self.of(entry) if entry.run_id else self.named(f"~{entry.line_no}.{entry.child}")
        prompt = entry.body.get("prompt")
        text = as_text(prompt)
        intent = self._intents.pop(run.id, None)
        is_asked = text is not None or (intent is not None and bool(intent.texts or intent.attachments))
        counted = None if not is_asked else "user" if self.is_child else "direct_user"
        yield entry.opened(role="user", message_key=run.id, group_key=entry.id, counted=counted)
        if run.is_begun:
            yield SessionEvent("turn", "started_again")
        else:
            self.last, run.is_begun = run, True
            asked = "person" if is_asked else "scheduled" if isinstance(prompt, str) else "unknown"
            yield TurnMark("start", run.id, "subagent" if self.is_child else asked, status_raw="open")
        if not isinstance(prompt, str):  # that is no empty one
            yield UnreadItem(0, "prompt", "rejected")
        if text is not None and run.asked is not None and run.asked[0] == text:
            yield Merged(0, 0, "resend", run.asked[1])
        elif text is not None:
            run.asked = (text, (entry.line_no, entry.child))
            attachments = intent.attachments if intent else 0
            yield Dialogue(*self._asked(), text, "/payload/event/prompt", 0, attachments)
        elif run.asked is None and intent is not None:
            yield from self._adopted(run, intent)

    def _adopted(self, run: Run, intent: _Intent) -> Iterator[Event]:
        """The run has no prompt but the one that was accepted, which is of its turn although it stands before it."""
        if intent.texts:
            run.asked = (intent.texts[0][0], (intent.opened.line_no, intent.opened.child))
            yield from self._intended(run.id, intent)
            yield TurnMark("within", run.id)

    def _classified(self, entry: Entry) -> Iterator[Event]:
        error = as_text(entry.body.get("error_class"))
        self.of(entry).error_class = error
        yield entry.opened(chained=False)
        yield SessionEvent("error", error)

    def _terminal(self, entry: Entry) -> Iterator[Event]:
        run, body = self.of(entry), entry.body
        ended, reason = as_text(body.get("terminal")) or "(no state)", as_text(body.get("reason"))
        mark = TurnMark("end", run.id, status_raw=ended, reason=reason)
        mark.reported_us, mark.first_token_us = (
            microseconds(body.get(name)) for name in ("turn_duration_ms", "time_to_first_token_ms")
        )
        if ended == "failed":
            mark.error_class = run.error_class or ("timed_out" if run.timed_out else "terminal_failed")
            told = _HTTP.search(reason or "")
            mark.http_status = int(told[1]) if told else None
        yield entry.opened(message_key=run.id)
        yield from self.begun(run)
        yield mark
        if ended not in _STATES:
            yield UnreadItem(0, "terminal", "unknown")
        if ended == "failed" and run.error_class is None:  # else it was said when it was classified
            yield SessionEvent("error", mark.error_class, reason, {"http_status": mark.http_status})
        elif ended == "cancelled":
            yield SessionEvent("interrupt", "unknown", reason)
        run.is_ended = True
        yield from self._closed(run)

    def _accepted(self, entry: Entry) -> Iterator[Event]:
        body = entry.body
        name = as_text(body.get("intent_id"))
        opened = entry.opened(chained=False)
        yield opened
        if name is None:
            return
        base = "/payload/record" if body is not entry.payload else "/payload"
        messages = [as_dict(message) for message in as_list(body.get("model_messages"))]
        blocks = [
            (as_dict(item), f"{base}/model_messages/{m}/content/{n}/text")
            for m, message in enumerate(messages)
            for n, item in enumerate(as_list(message.get("content")))
        ]
        texts = _texts(blocks) or _texts(
            [
                (as_dict(item), f"{base}/refill_blocks/{n}/text")
                for n, item in enumerate(as_list(body.get("refill_blocks")))
            ]
        )
        attachments = sum(item.get("kind") == "asset" for item, _ in blocks)
        run, intent = self.named(name), _Intent(opened, texts, attachments)
        if not run.is_begun:
            self._intents[name] = intent
        elif run.asked is None:
            yield from self._adopted(run, intent)


def _texts(blocks: list[tuple[dict[str, Any], str]]) -> list[tuple[str, str]]:
    """Text and pointer of the blocks that are text."""
    return [(text, pointer) for item, pointer in blocks if (text := as_text(item.get("text")))]


def microseconds(value: Any) -> int | None:
    """A duration in milliseconds as microseconds; None for what is none."""
    if isinstance(value, float) and 0 <= value < _LONGEST_MS:
        return round(value * 1_000)
    ms = as_int(value)
    return ms * 1_000 if ms is not None and 0 <= ms < _LONGEST_MS else None


def text_of(value: Any) -> str | None:
    """A string that is a readable text, None for an empty one or none."""
    return as_str(value) or None
