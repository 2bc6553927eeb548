"""What do the records of a Codex rollout say?

One thread per file, appended to by every resume. A fork begins with its parent's records (up to 0.17x, with the time of
the fork), or goes on without them; the first header is the file's own. Checked against real files of 0.50 to 0.171.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from etl.events import Dialogue, RecordOpened, SessionEvent, SessionFact, TurnMark, Unread
from etl.providers.codex import shapes
from etl.providers.codex.calls import ITEMS, Calls
from etl.providers.codex.headers import header_facts, lineage_of
from etl.providers.codex.shapes import Line, line_of, meta_id
from etl.providers.codex.speech import Speech, items, shown, thoughts
from etl.providers.codex.usage import Counter
from etl.shape import as_dict, as_int, as_list, as_str, as_text, canonical, instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from etl.events import Event
    from etl.providers.base import RecordLike, Source

_REQUESTS: Final = frozenset(
    {
        "function_call",
        "custom_tool_call",
        "local_shell_call",
        "tool_search_call",
        "web_search_call",
        "image_generation_call",
    }
)
_OUTPUTS: Final = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
#: Items that hold nothing to read.
_SILENT: Final = frozenset({"ghost_snapshot", "compaction", "context_compaction", "additional_tools"})
_STARTS: Final = frozenset({"task_started", "turn_started"})
_ENDS: Final = frozenset({"task_complete", "turn_complete", "turn_aborted"})
_CALL_ENDS: Final = frozenset(
    {"exec_command_end", "patch_apply_end", "mcp_tool_call_end", "collab_agent_spawn_end", "web_search_end"}
)
#: Events of which only the kind is kept: what they say stands in other records.
_PLAIN: Final = frozenset(
    {
        "context_compacted",
        "entered_review_mode",
        "exited_review_mode",
        "thread_goal_updated",
        "thread_settings_applied",
        "sub_agent_activity",
        "agent_reasoning_raw_content",
        "account/rateLimits/updated",
    }
)
#: What a person's words do not stand between and the event that says they were typed.
_BETWEEN: Final = frozenset({"user_message", "token_count", "thread_settings_applied"})


def adapt_rollout(source: Source, session: str, records: Iterator[RecordLike]) -> Iterator[Event]:
    """Events of one rollout."""
    rollout = Rollout(source, session)
    for record in records:
        yield from rollout.read(record)
    yield from rollout.speech.settle()


class Rollout:
    """The adapter's locals: whose thread it is, the turn and its model, what was said in it, the chain of records."""

    def __init__(self, source: Source, session: str) -> None:
        self.source, self.session = source, session
        self.speech, self.calls, self.counter = Speech(), Calls(source), Counter()
        self.has_meta = False
        self.origin: str | None = None
        self.turn: str | None = None
        self.started: str | None = None
        self.model: str | None = None
        self.cwd: str | None = None
        self.last: str | None = None
        self.marks: list[str | None] = []
        self.seen: dict[bytes, int] = {}
        self._events: dict[str, Callable[[Line, RecordOpened], Iterator[Event]]] = {
            "user_message": self._typed,
            "agent_message": self._echoed,
            "agent_reasoning": self._echoed,
            "token_count": self._counted,
            "item_completed": self._completed,
            "thread_rolled_back": self._rolled_back,
            "thread_name_updated": self._named,
            "error": self._failed,
        }

    def read(self, record: RecordLike) -> Iterator[Event]:
        """The events of one record."""
        line = line_of(record.value)
        if line is None:
            yield Unread(record.line_no, record.child, "(no type)", "unknown")
        elif line.kind in shapes.SKIPPED:
            yield Unread(record.line_no, record.child, line.kind, "skipped")
        elif line.kind not in shapes.READ:
            yield Unread(record.line_no, record.child, line.kind, "unknown")
        elif line.kind == shapes.META:
            yield from self._header(record, line)
        elif line.kind == shapes.ITEM:
            yield from self._item(record, line)
        elif line.kind == shapes.EVENT:
            yield from self._event(record, line)
        else:
            yield from self._state(record, line)

    # -- records

    def _opened(self, record: RecordLike, line: Line, kind: str, **more: Any) -> RecordOpened:
        """A record of the thread. It has no id of its own: it is known by what it holds, and by its turn, or (before
        turns had ids) by all records before it. So a copy in a fork has its original's.
        """
        digest = hashlib.blake2b(digest_size=16)
        if line.kind == shapes.META:
            digest.update(b"header")
        elif self.turn is None:
            digest.update(f"after {self.last}".encode())
        else:
            digest.update(f"turn {self.turn}".encode("utf-8", "surrogatepass"))
        digest.update(f" {kind} {canonical(line.payload)}".encode("utf-8", "surrogatepass"))
        identity = digest.digest()
        nth = self.seen[identity] = self.seen.get(identity, 0) + 1
        uuid = identity.hex() if nth == 1 else f"{identity.hex()}.{nth}"
        opened = RecordOpened(
            record.line_no,
            record.child,
            record.raw,
            record.value,
            self.session,
            kind,
            line.ts,
            uuid=uuid,
            chained=True,
            message_key=uuid,
            parent_uuid=self.last,
            **more,
        )
        opened.ts_source = None if line.ts is None else "record"
        if self.origin is not None:
            opened.origin_session_id, opened.origin_uuid = self.origin, uuid
        self.last = uuid
        return opened

    def _header(self, record: RecordLike, line: Line) -> Iterator[Event]:
        payload = line.payload
        is_own = not self.has_meta
        stated = instant(payload.get("timestamp")) if is_own else None
        kept = self.last
        if not is_own and self.origin is None:  # a header behind the own one is that of the thread copied from
            self._copies_from(payload)
        opened = self._opened(record, line if stated is None else line._replace(ts=stated), shapes.META)
        opened.parent_uuid, self.last = None, kept  # headers stand outside the chain: a fork has one more
        yield opened
        if is_own:
            self.has_meta = True
            self.cwd = as_text(payload.get("cwd"))
            lineage = lineage_of(payload)
            self.speech.is_agent = lineage.is_agent
            if lineage.is_copying and lineage.forked is not None:
                self.origin = self.source.session_id(lineage.forked)
            yield from header_facts(self.source, payload, lineage)

    def _copies_from(self, payload: dict[str, Any]) -> None:
        thread = meta_id(payload)
        if thread is not None and self.source.session_id(thread) != self.session:
            self.origin = self.source.session_id(thread)

    # -- what the model saw

    def _item(self, record: RecordLike, line: Line) -> Iterator[Event]:
        payload = line.payload
        kind = as_str(payload.get("type")) or ("message" if "role" in payload else "(no type)")
        if kind != "message" or payload.get("role") != "user":
            yield from self.speech.release()
        if kind == "message":
            yield from self._message(record, line)
        elif kind == "reasoning":
            opened = self._opened(record, line, kind, role="assistant", part="aside")
            yield opened
            texts, unread = thoughts(payload, line.pointer)
            yield from unread
            yield from self.speech.item(opened, "thinking", texts)
        elif kind in _REQUESTS:
            yield self._opened(record, line, kind, part="answer")
            yield from self.calls.request(kind, payload)
        elif kind in _OUTPUTS:
            yield self._opened(record, line, kind, part="result")
            yield from self.calls.result(payload)
        elif kind == "agent_message":
            yield self._opened(record, line, kind)
            texts, _, unread = items(payload.get("content"), f"{line.pointer}/content")
            yield from unread
            yield from (Dialogue("user", "context", text, pointer, block) for block, text, pointer in texts if text)
        elif kind in _SILENT:
            yield self._opened(record, line, kind)
        else:
            yield Unread(record.line_no, record.child, f"{shapes.ITEM}:{kind}", "unknown")

    def _message(self, record: RecordLike, line: Line) -> Iterator[Event]:
        role = as_str(line.payload.get("role"))
        if role == "user":
            opened = self._opened(record, line, "message", role="user", part="prompt", counted="user")
            yield opened
            yield from self.speech.user(opened, line.payload, line.pointer)
            return
        texts, _, unread = items(line.payload.get("content"), f"{line.pointer}/content")
        if role == "assistant":
            more: dict[str, Any] = {"role": "assistant", "part": "answer", "counted": "assistant", "model": self.model}
            opened = self._opened(record, line, "message", **more)
            yield opened
            yield from unread
            yield from self.speech.item(opened, "text", texts)
        elif role in ("developer", "system"):
            yield self._opened(record, line, f"message:{role}", role="system")
            yield from (Dialogue("system", "context", text, pointer, block) for block, text, pointer in texts if text)
        else:
            yield Unread(record.line_no, record.child, f"{shapes.ITEM}:message", "rejected")

    # -- what the person saw

    def _event(self, record: RecordLike, line: Line) -> Iterator[Event]:
        kind = as_str(line.payload.get("type")) or "(no type)"
        name = as_str(as_dict(line.payload.get("item")).get("type")) if kind == "item_completed" else kind
        if kind in _ENDS:
            yield from self.speech.settle()
        elif name not in _BETWEEN and name not in ("UserMessage", "userMessage"):
            yield from self.speech.release()
        if kind in _STARTS:
            yield from self._start(record, line, kind)
        elif kind in self._events:
            opened = self._opened(record, line, kind)
            if kind == "user_message" or name in ("UserMessage", "userMessage"):
                opened.part, opened.counted = "prompt", "direct"
            yield opened
            yield from self._events[kind](line, opened)
        elif kind in _ENDS:
            yield self._opened(record, line, kind)
            yield from self._end(kind, line.payload)
        elif kind in _CALL_ENDS:
            yield self._opened(record, line, kind)
            yield from self.calls.ended(kind, line.payload, line.ts)
        elif kind in _PLAIN:
            yield self._opened(record, line, kind)
        else:
            yield Unread(record.line_no, record.child, f"{shapes.EVENT}:{kind}", "unknown")

    def _start(self, record: RecordLike, line: Line, kind: str) -> Iterator[Event]:
        """A turn starts. Its record is one of the turn already."""
        yield from self.speech.settle()
        self.marks.append(self.last)
        turn = as_text(line.payload.get("turn_id"))
        self.turn = self.turn if turn is None else turn
        yield self._opened(record, line, kind)
        if turn is None or turn != self.started:
            yield TurnMark("start", turn, self._trigger(), "open")
            self.started = turn

    def _trigger(self) -> str:
        return "subagent" if self.speech.is_agent else "person"

    def _end(self, kind: str, payload: dict[str, Any]) -> Iterator[Event]:
        turn, error = as_text(payload.get("turn_id")) or self.turn, payload.get("error")
        took, first = as_int(payload.get("duration_ms")), as_int(payload.get("time_to_first_token_ms"))
        mark = TurnMark("end", turn, reported_us=_ms(took), first_token_us=_ms(first))
        if kind == "turn_aborted":
            mark.status_raw, mark.reason = "interrupted", as_str(payload.get("reason"))
        elif error is not None:
            mark.status_raw, mark.error_class = "failed", as_str(as_dict(error).get("type")) or "error"
            message = as_str(as_dict(error).get("message"))
            if message:
                yield Dialogue("assistant", "error_notice", message, "/payload/error/message", None)
        yield mark
        if kind == "turn_aborted":
            yield SessionEvent("interrupt", mark.reason)

    def _typed(self, line: Line, _: RecordOpened) -> Iterator[Event]:
        payload = line.payload
        pictures = len(as_list(payload.get("images"))) + len(as_list(payload.get("local_images")))
        text = as_str(payload.get("message")) or ""
        yield from self.speech.typed(text, f"{line.pointer}/message", pictures)

    def _echoed(self, line: Line, opened: RecordOpened) -> Iterator[Event]:
        is_thought = line.payload.get("type") == "agent_reasoning"
        name, kind = ("text", "thinking") if is_thought else ("message", "text")
        yield from self.speech.echo(opened, kind, as_str(line.payload.get(name)) or "", f"{line.pointer}/{name}")

    def _counted(self, line: Line, opened: RecordOpened) -> Iterator[Event]:
        call = self.counter.count(line.payload, self.model, opened.line_no)
        if call is not None:
            yield call

    def _completed(self, line: Line, opened: RecordOpened) -> Iterator[Event]:
        item = as_dict(line.payload.get("item"))
        kind = (as_str(item.get("type")) or "").lower()
        pointer = f"{line.pointer}/item"
        if kind == "usermessage":
            texts = shown(item, pointer)
            pictures = sum(
                as_dict(part).get("type") in ("image", "local_image") for part in as_list(item.get("content"))
            )
            if texts:
                whole = "\n".join(text for text, _ in texts)
                yield from self.speech.typed(whole, texts[0][1], pictures)
        elif kind in ("agentmessage", "reasoning"):
            name = "text" if kind == "agentmessage" else "thinking"
            for text, place in shown(item, pointer):
                yield from self.speech.echo(opened, name, text, place)
        elif kind in ITEMS:
            yield from self.calls.item(kind, item, line.payload)

    def _rolled_back(self, line: Line, _: RecordOpened) -> Iterator[Event]:
        """The last turns are taken back: what follows goes on from the record before them."""
        turns = as_int(line.payload.get("num_turns")) or 0
        yield SessionEvent("rewind", "thread_rolled_back", attrs={"turns": turns})
        if 0 < turns <= len(self.marks):
            self.last = self.marks[-turns]
            del self.marks[-turns:]

    def _named(self, line: Line, _: RecordOpened) -> Iterator[Event]:
        title = as_str(line.payload.get("thread_name"))
        if title is not None:
            yield SessionFact("title.custom", title)

    def _failed(self, line: Line, _: RecordOpened) -> Iterator[Event]:
        error = as_dict(line.payload.get("error")) or line.payload
        message = as_str(error.get("message"))
        yield SessionEvent("error", as_str(error.get("kind")) or as_str(error.get("codex_error_info")), message)

    # -- state

    def _state(self, record: RecordLike, line: Line) -> Iterator[Event]:
        payload = line.payload
        if line.kind == shapes.CONTEXT:
            turn = as_text(payload.get("turn_id"))
            if turn is not None and turn != self.turn:
                yield from self.speech.settle()
                self.marks.append(self.last)
                self.turn = turn
            yield self._opened(record, line, line.kind)
            yield from self._context(payload, turn)
        elif line.kind == shapes.USAGE:
            yield self._opened(record, line, line.kind)
            call = self.counter.record(payload, self.model)
            if call is not None:
                yield call
        else:
            yield from self.speech.release()
            opened = self._opened(record, line, line.kind, part="summary")
            yield opened
            yield SessionEvent("compaction")
            summary = as_text(payload.get("message"))
            if summary is not None:
                yield Dialogue("assistant", "summary", summary, f"{line.pointer}/message", None)

    def _context(self, payload: dict[str, Any], turn: str | None) -> Iterator[Event]:
        if turn is not None and turn != self.started:
            self.started = turn
            yield TurnMark("start", turn, self._trigger(), "open")
        model, cwd = as_text(payload.get("model")), as_text(payload.get("cwd"))
        if model is not None and model != self.model:
            self.model = model
            yield SessionFact("model.config", model)
        if cwd is not None and cwd != self.cwd:
            self.cwd = cwd
            yield SessionFact("cwd", cwd)


def _ms(value: int | None) -> int | None:
    return value * 1_000 if value is not None and 0 <= value < 10**12 else None
