"""What does Qoder's audit trail say of tool calls?

``audit/audit.jsonl`` is one file for all sessions: a row names its session, and rows of other sessions say nothing
about this one. A call is a row before and one after it; what is told again of a call that runs is no second one. Rows
without ``tool_use_id`` pair first in, first out inside their request set and tool: which call of the session that is
stays a guess, and such a pair is evidence for a call that another store shows, never a call of its own.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from etl.events import RecordOpened, SessionEvent, ToolResult, Unread
from etl.grammars.tools import tool_request
from etl.providers.qoder.timeorder import in_time_order
from etl.shape import as_str, as_text, canonical, instant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event
    from etl.providers.base import RecordLike, Source

#: Known events that give no facts, and why.
SKIPPED_EVENTS: Final[dict[str, str]] = {
    "UserPromptSubmit": "the prompt stands in the transcript",
    "tool_use": "a call without a beginning and an end of its own",
}
_REFUSED: Final = frozenset({"BLOCKED", "DENIED"})
_ENDS: Final = frozenset({"PostToolUse", "PostToolUseFailure"})


def adapt_audit(source: Source, records: Iterator[RecordLike]) -> Iterator[Event]:
    """Requests and results by the rows before and after a call, in the order of time."""
    trail = _Trail(source)
    yield from in_time_order(trail.read(record) for record in records)


class _Trail:
    """The adapter's locals: rows that name a call, calls without an end, and those without an id by where they pair."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.told: set[int] = set()
        self.running: set[tuple[str, str]] = set()
        self.waiting: dict[tuple[str, str, str], deque[str]] = {}

    def read(self, record: RecordLike) -> Iterator[Event]:
        """The events of one row."""
        value = record.value
        event, native = as_str(value.get("_event")), as_text(value.get("session_id"))
        if event is None or event in SKIPPED_EVENTS:
            yield Unread(record.line_no, record.child, event or "(no event)", "skipped" if event else "unknown")
        elif event != "PreToolUse" and event not in _ENDS:
            yield Unread(record.line_no, record.child, event, "unknown")
        elif native is None:
            yield Unread(record.line_no, record.child, event, "rejected")
        elif self._is_resent(value):
            yield Unread(record.line_no, record.child, f"{event}:resend", "skipped")
        else:
            yield _opened(self.source, record, event, native)
            yield from self._said(record, value, event, native)

    def _is_resent(self, value: dict[str, Any]) -> bool:
        """Was this row read before? Two calls without an id may look alike to the last sign."""
        if as_text(value.get("tool_use_id")) is None:
            return False
        before = len(self.told)
        self.told.add(hash(canonical(value)))
        return len(self.told) == before

    def _said(self, record: RecordLike, value: dict[str, Any], event: str, native: str) -> Iterator[Event]:
        name, call_id = as_str(value.get("tool_name")) or "(unnamed)", as_text(value.get("tool_use_id"))
        queue = self.waiting.setdefault((native, as_str(value.get("request_set_id")) or "", name), deque())
        if event in _ENDS:
            self.running.discard((native, call_id or ""))
            yield from _after(value, event, queue)
            return
        if call_id is None:
            queue.append(f"~{record.line_no}.0")
        if call_id is None or (native, call_id) not in self.running:  # a call that is asked about is told of again
            yield tool_request(None, call_id, name, value.get("tool_input"), {})
        if call_id is not None:
            self.running.add((native, call_id))
        action = as_str(value.get("_action"))
        if action in _REFUSED:
            yield SessionEvent("permission", "denied", attrs={"action": action})


def _opened(source: Source, record: RecordLike, event: str, native: str) -> RecordOpened:
    ts = instant(record.value.get("_timestamp"))
    opened = RecordOpened(
        record.line_no, record.child, record.raw, record.value, source.session_id(native), event, ts, "record"
    )
    opened.chained = True
    return opened


def _after(value: dict[str, Any], event: str, queue: deque[str]) -> Iterator[Event]:
    call_id, action = as_text(value.get("tool_use_id")), as_str(value.get("_action"))
    if call_id is None:
        if not queue:  # nothing is open in its request set: it ends no call that is known
            return
        call_id = queue.popleft()
    failed = event == "PostToolUseFailure" or action == "FAILURE"
    yield ToolResult(
        None,
        call_id,
        as_str(value.get("tool_response")),
        is_error=failed,
        denial="denied" if action in _REFUSED else None,
    )
