"""What was said in a Muse log: texts, thinking, questions and answers, steers, summaries of compactions?

Reasoning comes as summaries, in parts and then committed as a whole; the whole is what counts, and the parts are joined
where the log was cut before it. What is encrypted is an event, never text.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from etl.events import Dialogue, Merged, SessionEvent, ToolSpan, Unread
from etl.providers.muse.turns import Thought, text_of
from etl.shape import as_dict, as_int, as_list, as_str, as_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event
    from etl.providers.muse.calls import Calls
    from etl.providers.muse.lines import Entry
    from etl.providers.muse.turns import Handler, Run, Turns

_PART: Final = "\n\n"
_CONTENT: Final = ("content", "text", "subject")
_LABELS: Final = ("selected_label", "label", "text")


class Speech:
    """The dialogue of one session, besides the prompts."""

    def __init__(self, turns: Turns, calls: Calls) -> None:
        self.turns, self.calls = turns, calls
        self._asked: dict[str, tuple[str | None, int | None]] = {}
        turns.closers.append(self._thoughts)

    def handlers(self) -> dict[str, Handler]:
        """What is done with which record."""
        run = "runtime.session/run/"
        return {
            f"{run}assistant_message_committed": self._text,
            f"{run}reasoning_summary_delta": self._delta,
            f"{run}reasoning_summary_committed": self._summary,
            f"{run}reasoning_committed": self._reasoning,
            f"{run}user_input_prompt_requested": self._question,
            f"{run}user_input_prompt_settled": self._answer,
            f"{run}inbox_item_queued": self._inbox,
            f"{run}context_compaction_installed": self._compaction,
            f"{run}todo_snapshot_updated": self._todos,
        }

    def _keys(self, entry: Entry, run: Run) -> dict[str, Any]:
        """Role, response, message and model of what the assistant says."""
        message = as_text(entry.body.get("message_id")) or entry.id
        response = as_text(entry.body.get("response_id"))
        run.response = response or run.response
        return {
            "role": "assistant",
            "message_key": response or run.response or message,
            "group_key": message,
            "model": self.turns.model_of(run),
        }

    def _text(self, entry: Entry) -> Iterator[Event]:
        run, text = self.turns.of(entry), entry.body.get("text")
        if not isinstance(text, str):
            yield Unread(entry.line_no, entry.child, entry.name, "rejected")
            return
        yield entry.opened(**self._keys(entry, run), counted="assistant", closes_message=True)
        yield from self.turns.begun(run)
        if text:
            yield Dialogue("assistant", "text", text, "/payload/event/text")

    def _delta(self, entry: Entry) -> Iterator[Event]:
        run, text = self.turns.of(entry), text_of(entry.body.get("text"))
        keys = self._keys(entry, run)
        opened = entry.opened(**keys)
        yield opened
        yield from self.turns.begun(run)
        if text is not None:
            group = run.thoughts.setdefault(keys["group_key"], Thought(opened, []))
            place = as_int(entry.body.get("summary_index"))
            if place is not None and 0 <= place == len(group.parts) - 1:
                group.parts[place] += text  # a part may itself come piece by piece
            else:
                group.parts.append(text)

    def _summary(self, entry: Entry) -> Iterator[Event]:
        run, text = self.turns.of(entry), text_of(entry.body.get("text"))
        keys = self._keys(entry, run)
        yield entry.opened(**keys)
        yield from self.turns.begun(run)
        if text is not None:
            run.thoughts.pop(keys["group_key"], None)
            place = (entry.line_no, entry.child)
            run.summaries[keys["group_key"]] = run.summaries[keys["message_key"]] = place
            yield Dialogue("assistant", "thinking", text, "/payload/event/text")

    def _reasoning(self, entry: Entry) -> Iterator[Event]:
        run, text = self.turns.of(entry), text_of(entry.body.get("text"))
        keys = self._keys(entry, run)
        yield entry.opened(**keys)
        yield from self.turns.begun(run)
        if text is None:
            hidden = as_str(entry.body.get("encrypted_content")) or ""
            yield SessionEvent("hidden_reasoning", attrs={"chars": len(hidden)})
            return
        told = run.summaries.get(keys["group_key"]) or run.summaries.get(keys["message_key"])
        if told is None:
            yield Dialogue("assistant", "thinking", text, "/payload/event/text")
        else:  # its summary is the thinking that is shown
            yield Merged(0, 0, "resend", told)

    def _thoughts(self, run: Run) -> Iterator[Event]:
        """Reasoning that was never committed: its parts, joined, where it began."""
        for group in run.thoughts.values():
            yield replace(group.opened, again=True)
            yield Dialogue("assistant", "thinking", _PART.join(group.parts), "/payload/event/text")
        run.thoughts.clear()

    def _question(self, entry: Entry) -> Iterator[Event]:
        run, body = self.turns.of(entry), entry.body
        prompt = as_text(body.get("prompt_id")) or entry.id
        call = as_text(body.get("tool_call_id"))
        if prompt is not None:
            self._asked[prompt] = (call, entry.ts)
        model = self.turns.model_of(run)
        yield entry.opened(role="assistant", message_key=run.response or prompt, group_key=prompt, model=model)
        yield from self.turns.begun(run)
        for block, item in enumerate(as_list(body.get("questions"))):
            if text := text_of(as_dict(item).get("question")):
                pointer = f"/payload/event/questions/{block}/question"
                yield Dialogue("assistant", "question", text, pointer, block)

    def _answer(self, entry: Entry) -> Iterator[Event]:
        run, body = self.turns.of(entry), entry.body
        prompt = as_text(body.get("prompt_id")) or entry.id
        call, asked_at = self._asked.pop(prompt or "", (as_text(body.get("tool_call_id")), None))
        outcome = as_str(body.get("outcome"))
        yield entry.opened(role="user", message_key=prompt, group_key=entry.id)
        yield from self.turns.begun(run)
        for block, item in enumerate(as_list(body.get("answers"))):
            label = next((name for name in _LABELS if text_of(as_dict(item).get(name))), None)
            if label is not None:
                answer, note = as_dict(item)[label], text_of(as_dict(item).get("note"))
                text = f"{answer}\n{note}" if note else answer
                yield Dialogue("user", "answer", text, f"/payload/event/answers/{block}/{label}", block)
        yield SessionEvent("question", outcome, attrs={"prompt_id": prompt})
        if call is not None and asked_at is not None and entry.ts is not None and entry.ts >= asked_at:
            key = self.calls.key_of(call, run.id)
            yield ToolSpan(key, "wait_human", asked_at, entry.ts, entry.ts - asked_at, outcome)

    def _inbox(self, entry: Entry) -> Iterator[Event]:
        run, body = self.turns.of(entry), entry.body
        source = body.get("source")
        kind = as_str(source) or as_str(as_dict(source).get("source")) or as_str(as_dict(source).get("kind"))
        if kind == "user_steer":
            yield from self._steer(entry, run)
            return
        yield entry.opened()
        if kind == "background_task_terminal":
            yield from self.calls.background_end(as_dict(source), entry)
        else:
            agent = as_text(as_dict(source).get("subagent_id"))
            yield SessionEvent("inbox", kind, as_text(body.get("summary")), {"subagent_id": agent})

    def _steer(self, entry: Entry, run: Run) -> Iterator[Event]:
        prompt, body = text_of(as_dict(entry.body.get("payload")).get("prompt")), text_of(entry.body.get("body"))
        item = as_text(entry.body.get("item_id")) or entry.id
        counted = "direct_user" if prompt or body else None
        yield entry.opened(role="user", message_key=item, group_key=entry.id, counted=counted)
        yield from self.turns.begun(run)
        if prompt is not None:
            yield Dialogue("user", "steer", prompt, "/payload/event/payload/prompt")
        elif body is not None:
            yield Dialogue("user", "steer", body, "/payload/event/body")

    def _compaction(self, entry: Entry) -> Iterator[Event]:
        body = entry.body
        text = text_of(as_dict(body.get("replacement")).get("text"))
        install = as_text(body.get("install_id"))
        yield entry.opened(message_key=install)
        yield SessionEvent("compaction", as_str(body.get("trigger")), text, {"install_id": install})
        if text is not None:
            yield Dialogue("system", "summary", text, "/payload/event/replacement/text")

    def _todos(self, entry: Entry) -> Iterator[Event]:
        yield entry.opened(chained=False)
        yield todos("snapshot", entry.body.get("items"), as_int(entry.body.get("revision")))


def todos(subtype: str, items: Any, revision: int | None = None) -> SessionEvent:
    """A list of tasks as the agent keeps it: content (Muse calls it ``text``, older builds otherwise) and status."""
    listed = [
        {
            "content": next(filter(None, (text_of(item.get(name)) for name in _CONTENT)), None),
            "status": as_str(item.get("status")),
        }
        for item in map(as_dict, as_list(items))
    ]
    done = sum(item["status"] == "completed" for item in listed)
    return SessionEvent("todo", subtype, f"{done} of {len(listed)} done", {"revision": revision, "todos": listed})
