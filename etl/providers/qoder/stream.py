"""What does a captured ``stream-json`` output of Qoder's SDK say?

The rows of ``--output-format stream-json`` as somebody saved them: messages without times, and a ``result`` at the end
of each turn. ``total_credits`` of a result is cumulative over the session: the largest counts, they are never summed.
Messages of sub-agents (``parent_tool_use_id``) stand in the sub-agents' own transcripts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from etl.events import ModelCall, RecordOpened, SessionFact, TurnMark, Unread
from etl.providers.qoder.transcript import Transcript
from etl.shape import as_count, as_money, as_str, as_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event
    from etl.providers.base import RecordLike, Source

#: Known rows that give no facts, and why.
SKIPPED_ROWS: Final[dict[str, str]] = {
    "stream_event": "pieces of a message that follows whole",
    "tool_progress": "live progress of a running call",
    "keep_alive": "transport",
    "control_request": "transport",
    "control_response": "transport",
}
_INIT: Final = (("cwd", "cwd"), ("model", "model.config"), ("qodercli_version", "version"), ("version", "version"))


def adapt_stream(source: Source, session: str, records: Iterator[RecordLike]) -> Iterator[Event]:
    """Events of one capture; its messages are those of a transcript."""
    transcript = Transcript(source, session)
    for record in records:
        kind = as_str(record.value.get("type")) or "(no type)"
        if kind in ("user", "assistant"):
            if as_text(record.value.get("parent_tool_use_id")):
                yield Unread(record.line_no, record.child, f"{kind}:subagent", "skipped")
            else:
                yield from transcript.read(record)
        elif kind in ("system", "result"):
            yield RecordOpened(record.line_no, record.child, record.raw, record.value, session, kind)
            yield from _init(record.value) if kind == "system" else _result(record.value)
        else:
            yield Unread(record.line_no, record.child, kind, "skipped" if kind in SKIPPED_ROWS else "unknown")


def _init(value: dict[str, Any]) -> Iterator[Event]:
    for name, key in _INIT:
        if found := as_text(value.get(name)):
            yield SessionFact(key, found)


def _result(value: dict[str, Any]) -> Iterator[Event]:
    ms = as_count(value.get("duration_ms"))
    yield TurnMark("end", status_raw=as_str(value.get("subtype")), reported_us=None if ms is None else ms * 1_000)
    total = as_money(value.get("total_credits"))
    if total is not None:
        yield ModelCall("total", grain="session", usage_status="absent", credits=total)
