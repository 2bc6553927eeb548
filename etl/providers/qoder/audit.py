"""What does Qoder's audit trail say of tool calls?

``audit/audit.jsonl`` is one file for all sessions: a row names its session, and rows of other sessions say nothing
about this one. A call is a row before and one after it. Rows without ``tool_use_id`` pair first in, first out inside
their request set and tool: which call of the session that is stays a guess, and such a pair is evidence for a call that
another store shows, never a call of its own.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from etl.events import RecordOpened, SessionEvent, ToolResult, Unread
from etl.grammars.tools import tool_request
from etl.shape import as_str, as_text, instant

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
    """Requests and results by the rows before and after a call."""
    waiting: dict[tuple[str, str, str], deque[str]] = {}
    for record in records:
        value = record.value
        event, native = as_str(value.get("_event")), as_text(value.get("session_id"))
        if event is None or event in SKIPPED_EVENTS:
            yield Unread(record.line_no, record.child, event or "(no event)", "skipped" if event else "unknown")
        elif event != "PreToolUse" and event not in _ENDS:
            yield Unread(record.line_no, record.child, event, "unknown")
        elif native is None:
            yield Unread(record.line_no, record.child, event, "rejected")
        else:
            yield _opened(source, record, event, native)
            name = as_str(value.get("tool_name")) or "(unnamed)"
            queue = waiting.setdefault((native, as_str(value.get("request_set_id")) or "", name), deque())
            if event == "PreToolUse":
                yield from _before(value, name, queue, f"~{record.line_no}.0")
            else:
                yield from _after(value, event, queue)


def _opened(source: Source, record: RecordLike, event: str, native: str) -> RecordOpened:
    ts = instant(record.value.get("_timestamp"))
    opened = RecordOpened(
        record.line_no, record.child, record.raw, record.value, source.session_id(native), event, ts, "record"
    )
    opened.chained = True
    return opened


def _before(value: dict[str, Any], name: str, queue: deque[str], place: str) -> Iterator[Event]:
    call_id = as_text(value.get("tool_use_id"))
    if call_id is None:
        queue.append(place)
    yield tool_request(None, call_id, name, value.get("tool_input"), {})
    action = as_str(value.get("_action"))
    if action in _REFUSED:
        yield SessionEvent("permission", "denied", attrs={"action": action})


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
