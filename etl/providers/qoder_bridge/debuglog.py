"""What does a debug log of the Bridge say, line by line?

The Bridge writes ``[qoder-bridge] <label> <json>`` to stderr, among whatever else stands there. ``provider_request``
begins a run, ``continuation_request`` its next turn; ``…_response`` lines are boundary A, ``raw_text`` is boundary B.
No line has a time.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from etl.events import Dialogue, Event, RecordOpened, SessionEvent, Unread, UnreadItem
from etl.providers.qoder_bridge import rows
from etl.providers.qoder_bridge.conversation import offered_tools, read_history
from etl.providers.qoder_bridge.envelopes import scan
from etl.providers.qoder_bridge.failures import failure_of
from etl.providers.qoder_bridge.messages import text_of
from etl.providers.qoder_bridge.strict import parse_strict
from etl.providers.qoder_bridge.transport import new_entries
from etl.providers.qoder_bridge.turns import Turn
from etl.shape import as_dict, as_str, as_text, canonical

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.providers.base import RecordLike

MARK: Final = b"[qoder-bridge] "
_LINE: Final = re.compile(r"\[qoder-bridge\] (?P<label>\w+) (?P<json>.*)", re.DOTALL)
_REQUESTS: Final = frozenset({"provider_request", "continuation_request"})
_RESPONSES: Final = frozenset({"provider_response", "continuation_response"})
#: Known labels, and what is read of each.
LABELS: Final[dict[str, str]] = {
    "provider_request": "begins a run and its first turn; the conversation and the tools it offers",
    "continuation_request": "begins the next turn of the run",
    "provider_response": "boundary A: a message of the SDK",
    "continuation_response": "boundary A of a turn after tool results",
    "raw_text": "boundary B: the text that the Bridge put together",
    "state": "a state of the turn; one that may not follow the one before breaks a rule",
    "request": "what is asked, in short, cross-check",
    "tool_result": "repeats a result of the conversation, cross-check",
    "raw_result": "repeats the result's figures, cross-check",
    "normalized": "what the Bridge made of the text, cross-check",
    "tool_call": "a call that it hands on, cross-check",
    "error": "how the turn failed",
    "timeout_classification": "the class of a timeout",
    "cleanup_error": "closing the SDK failed",
    "cleanup_timeout": "closing the SDK took too long",
}
#: Which state may follow which.
_NEXT: Final = {
    "WAITING_PROVIDER": {"WAITING_TOOL", "WAITING_CONTINUATION", "COMPLETED", "FAILED"},
    "WAITING_TOOL": {"WAITING_CONTINUATION", "COMPLETED", "FAILED"},
    "WAITING_CONTINUATION": {"WAITING_TOOL", "COMPLETED", "FAILED"},
}


class DebugLog:
    """Reads the lines of one log: its state is the turn under way."""

    def __init__(self, batch_id: str, session: str) -> None:
        self.batch_id, self.session = batch_id, session
        self.turn: Turn | None = None
        self.run = self.number = self.lines = 0
        self.state: str | None = None

    def read(self, record: RecordLike) -> Iterator[Event]:
        """The events of one line."""
        if not record.raw.startswith(MARK):
            yield Unread(record.line_no, record.child, "other output", "skipped")
            return
        found = _LINE.match(record.raw.decode(errors="replace").rstrip("\r"))
        payload, error = (None, "no label") if found is None else parse_strict(found["json"])
        label = "(no label)" if found is None else found["label"]
        if error is not None:  # a torn line: its payload is not guessed at
            yield Unread(record.line_no, record.child, label[:100], "rejected")
            return
        if label in _REQUESTS:
            yield from self._next_turn(record, label)
        self.lines += 1
        yield from self._said(record, label, payload)

    def _next_turn(self, record: RecordLike, label: str) -> Iterator[Event]:
        yield from self.end()
        if label == "provider_request" or not self.run:
            self.run, self.number = self.run + 1, 0
        self.number += 1
        key = rows.TurnKey(self.batch_id, self.run, self.number)
        self.turn = Turn(key, self.session, place=(record.line_no, record.child))
        self.turn.told |= {"continuation": label == "continuation_request", "request_sent": True}

    def _said(self, record: RecordLike, label: str, payload: Any) -> Iterator[Event]:
        turn = self.turn
        at = rows.Moment(self.lines, None)
        key = rows.TurnKey(self.batch_id, None, None) if turn is None else turn.key
        value = {"payload": payload}
        if turn is not None and label in _RESPONSES and isinstance(payload, dict):
            wrapped = _Wrapped(record, {"payload": {"message": payload}})
            yield from turn.message(wrapped, label, payload, at, None)
        elif turn is not None and label in _RESPONSES:
            yield from turn.other(_Wrapped(record, value), label, canonical(payload), at, None)
        else:
            opened = RecordOpened(record.line_no, record.child, record.raw, value, self.session, label)
            if label in _REQUESTS:
                opened.chained, opened.role, opened.uuid = True, "user", f"request {self.run}.{self.number}"
            yield opened
        yield rows.boundary(key, at, label, self._columns(label, payload))
        if label not in LABELS:
            yield UnreadItem(0, f"label:{label}"[:100], "unknown")
        if turn is not None:
            turn.count("diag_count")
            turn.told["diag_count"] = turn.counts["diag_count"]
            yield from self._labelled(turn, label, payload)

    def _columns(self, label: str, payload: Any) -> dict[str, Any]:
        told = as_dict(payload)
        text = as_str(payload)
        if label in _RESPONSES:
            return {"boundary": "A", "text": text_of(told) or None, "uuid": as_text(told.get("uuid"))}
        is_prompt = label in _REQUESTS or label == "tool_result"  # stand in dialogue and calls
        return {
            "boundary": "B" if label == "raw_text" else None,
            "text": text,
            "code": as_text(told.get("code")),
            "payload": None if is_prompt or text is not None else rows.rest_json(told),
        }

    def _labelled(self, turn: Turn, label: str, payload: Any) -> Iterator[Event]:
        told = as_dict(payload)
        if label in _REQUESTS:
            options = as_dict(told.get("options"))
            conversation = read_history(as_dict(told.get("prompt")).get("PI_CONVERSATION_JSON"))
            turn.tools, turn.used_ids = offered_tools(options.get("systemPrompt")), conversation.used_ids
            yield from new_entries(conversation, turn.key, "/payload/prompt/PI_CONVERSATION_JSON")
            if conversation.code is not None:
                turn.told["own_code"] = conversation.code
        elif label == "raw_text":
            yield from rows.envelopes(turn.key, "B", scan(as_str(payload) or ""))
        elif label == "normalized" and (code := as_text(told.get("code"))):
            turn.told["error_code"] = code
        elif label == "state":
            self._moved(turn, as_str(payload))
        elif label == "error":
            yield from self._failed(turn, as_str(payload))

    def _moved(self, turn: Turn, state: str | None) -> None:
        """Each turn begins in a state of its own; what may not follow is a broken rule."""
        if state == "WAITING_PROVIDER":
            self.state = state
        elif state is not None:
            if self.state is not None and state not in _NEXT.get(self.state, ()):
                turn.told["own_code"] = "INVALID_STATE_TRANSITION"
            self.state = state

    def _failed(self, turn: Turn, why: str | None) -> Iterator[Event]:
        told = failure_of(why, code=as_text(turn.told.get("error_code")))
        columns = {"error_code": told.code, "error_message": why, "error_class": told.error_class}
        turn.told |= columns | ({"error_kind": told.kind} if told.kind is not None else {})
        if why:
            yield Dialogue("system", "error_notice", why, "/payload", None)
            yield SessionEvent("error", told.kind or told.code, why)

    def end(self) -> Iterator[Event]:
        """The turn under way is over."""
        if self.turn is not None:
            yield from self.turn.end()
        self.turn = None


class _Wrapped:
    """A line of the log as the record that its message is: what is said in it is pointed to below ``/payload``."""

    def __init__(self, record: RecordLike, value: dict[str, Any]) -> None:
        self.line_no, self.child, self.raw, self.value = record.line_no, record.child, record.raw, value
