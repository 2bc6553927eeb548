"""What is one line of a rollout, whichever version wrote it, and whose thread is a file?

Since 2025 a line is an envelope ``{timestamp, type, payload}``; before that the lines were bare response items behind
a header ``{id, timestamp, instructions, git}``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from etl.providers.codex.paths import HISTORY, INDEX
from etl.shape import as_dict, as_str, as_text, instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from etl.providers.base import RecordLike, Source

META: Final = "session_meta"
ITEM: Final = "response_item"
EVENT: Final = "event_msg"
CONTEXT: Final = "turn_context"
COMPACTED: Final = "compacted"
USAGE: Final = "token_usage_record"
#: Types of lines that give facts.
READ: Final = frozenset({META, ITEM, EVENT, CONTEXT, COMPACTED, USAGE})
#: Known types of lines without facts: snapshots of settings and of the world, scores, and what agents of a team told
#: each other beside the conversation.
SKIPPED: Final = frozenset(
    {
        "world_state",
        "security_risk_score",
        "realtime_item",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
        "thread_settings_applied",
        "state",
    }
)
_BARE_ITEMS: Final = frozenset(
    {
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "local_shell_call",
        "web_search_call",
    }
)


class Line(NamedTuple):
    """One line: its type, what it holds, the pointer to that, and its time (microseconds)."""

    kind: str
    payload: dict[str, Any]
    pointer: str
    ts: int | None


def line_of(value: dict[str, Any]) -> Line | None:
    """The line that a record is; None where nothing says what it is. A payload that is no object is an empty one."""
    kind, ts = as_str(value.get("type")), instant(value.get("timestamp"))
    if "payload" in value and kind is not None:
        return Line(kind, as_dict(value["payload"]), "/payload", ts)
    if kind in _BARE_ITEMS:
        return Line(ITEM, value, "", ts)
    if kind is None and "record_type" in value:
        return Line("state", value, "", ts)
    if kind is None and as_text(value.get("id")) and "instructions" in value:
        return Line(META, value, "", ts)
    return None if kind is None else Line(kind, {}, "", ts)


def meta_id(payload: dict[str, Any]) -> str | None:
    """The thread that a header is of. ``session_id`` is the top thread's in newer versions: it counts second."""
    return as_text(payload.get("id")) or as_text(payload.get("session_id"))


def recognise(records: Iterable[RecordLike]) -> bool | None:
    """Do first records look like Codex's?"""
    seen = None
    for record in records:
        value = record.value
        line = line_of(value)
        if line is not None and line.kind in READ and (line.pointer or line.kind == META):
            return True
        if is_index(value) or is_history(value):
            return True
        seen = False
    return seen


def is_index(value: dict[str, Any]) -> bool:
    """Is a record a row of the index of titles?"""
    return isinstance(value.get("id"), str) and "thread_name" in value


def is_history(value: dict[str, Any]) -> bool:
    """Is a record a row of the prompt history?"""
    return "session_id" in value and "text" in value and "ts" in value


def native_session(source: Source, head: Sequence[RecordLike]) -> str:
    """The thread of a file: that of its first header (a fork holds its parent's header too, behind its own), else the
    one in its name.
    """
    if source.claim.store_kind in (INDEX, HISTORY):
        return ""
    for record in head:
        line = line_of(record.value)
        if line is not None and line.kind == META:
            return meta_id(line.payload) or source.claim.native_id
    return source.claim.native_id
