"""Which records does a line of a Muse log hold?

Three shapes: an envelope; a frame that holds envelopes as JSON strings, in the order of ``child_index`` (the first line
of every log since 1.1 is one); a marker in the place of a record that was shown live and not kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from etl.decode import decode_line
from etl.events import RecordOpened
from etl.shape import as_dict, as_int, as_list, as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from etl.providers.base import RecordLike, Source

FRAME: Final = "retained_frame"
MARKER: Final = "retained_marker"


@dataclass(slots=True)
class Entry:
    """One envelope: its place, what it holds, whose it is and when. ``body`` is the event or the record inside the
    payload. ``session`` is the session key of its stream, ``agent`` the id of the sub-agent whose log it stands in.
    """

    line_no: int
    child: int
    raw: bytes
    value: dict[str, Any]
    name: str
    payload: dict[str, Any]
    body: dict[str, Any]
    session: str
    ts: int | None
    sequence: int | None
    id: str | None
    agent: str | None = None

    @property
    def run_id(self) -> str | None:
        """The run it belongs to, where it says so."""
        return as_text(self.payload.get("run_id"))

    def opened(self, *, chained: bool = True, **more: Any) -> RecordOpened:
        """The record, opened. ``chained`` for what is part of the conversation or states a fact of the session."""
        return RecordOpened(
            self.line_no,
            self.child,
            self.raw,
            self.value,
            self.session,
            self.name,
            self.ts,
            None if self.ts is None else "record",
            uuid=self.id,
            sequence=self.sequence,
            chained=chained,
            first_wins=True,
            agent=self.agent,
            **more,
        )


def children(frame: Mapping[str, Any]) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
    """The envelopes of a frame in their order, with their bytes; None for one that is no JSON object."""
    listed = [as_dict(child) for child in as_list(frame.get("children"))]
    places = [as_int(child.get("child_index")) for child in listed]
    order = sorted(range(len(listed)), key=lambda n: (n if places[n] is None else places[n], n))
    for child in (listed[n] for n in order):
        text = child.get("record_json")
        if isinstance(text, str):
            raw = text.encode("utf-8", "surrogatepass")
            yield raw, decode_line(raw)[0]
        else:
            yield b"", text if isinstance(text, dict) else None


def stream_of(value: Mapping[str, Any]) -> str | None:
    """The id of the session stream of an envelope."""
    stream = as_dict(value.get("stream"))
    return as_text(stream.get("id")) if stream.get("kind") == "session" else None


def sequence_of(value: Mapping[str, Any]) -> int | None:
    """The number of an envelope, or of what a marker stands for, in its stream."""
    number = value.get("sequence")
    if number is None and MARKER in value:
        number = as_dict(value.get("position")).get("sequence")
    return as_int(number)


def numbered(value: Mapping[str, Any]) -> tuple[str, int] | None:
    """The stream that a line is of and its number in it; a frame stands where its first record does."""
    if FRAME in value and "payload_type" not in value:
        return next((told for _, inside in children(value) if inside and (told := _place(inside))), None)
    return _place(value)


def _place(value: Mapping[str, Any]) -> tuple[str, int] | None:
    stream, number = stream_of(value), sequence_of(value)
    return None if stream is None or number is None else (stream, number)


def recognise(records: Iterable[RecordLike]) -> bool | None:
    """Is the first record one of a session's log? (Another product keeps ``session_header`` and ``item`` records; the
    approval reviewer's log has a stream of another kind.)
    """
    for record in records:
        value = record.value
        if FRAME in value or MARKER in value:
            return True
        return "payload_type" in value and stream_of(value) is not None
    return None


def native_session(source: Source, head: Sequence[RecordLike]) -> str:
    """The id of the stream: the folder's name where a record confirms it, else that of the first stream, else the name.

    A parent's log may hold records of its sub-agents, so not every stream is the log's own. A log without a record is
    that of no session: none has started.
    """
    if not head:
        return ""
    first: str | None = None
    for record in head:
        inside = [value for _, value in children(record.value) if value] if FRAME in record.value else [record.value]
        for value in inside:
            stream = stream_of(value)
            if stream == source.claim.native_id:
                return stream
            first = first or stream
    return first or source.claim.native_id
