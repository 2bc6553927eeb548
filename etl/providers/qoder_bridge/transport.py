"""What passed between the Bridge's SDK and its worker in one turn?

Each line is ``{label, sequence, elapsedMs, payload}``, numbered from 0. Frames repeat what the SDK then hands on and
are there to compare with; what only this file shows is the request itself: the prompt, and the results of tools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from etl.events import Dialogue, Event, ProviderRow, RecordOpened, ToolResult, TurnMark, Unread
from etl.providers.qoder_bridge import rows
from etl.providers.qoder_bridge.conversation import Answered, Conversation, read_prompt
from etl.providers.qoder_bridge.masking import has_masked_number, masked_text
from etl.providers.qoder_bridge.messages import content_of, delta_of, text_of
from etl.shape import as_dict, as_str, as_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.providers.base import RecordLike

#: Known labels, and what each is.
LABELS: Final[dict[str, str]] = {
    "transport_write": "write",
    "transport_frame": "frame",
    "transport_frame_omitted": "omitted",
}


class Transport:
    """Reads the lines of one turn's transport log."""

    def __init__(self, key: rows.TurnKey, session: str) -> None:
        self.key, self.session = key, session
        self.batch_id = key.batch_id
        self.place = (0, 0)
        self.is_first = True
        self.counts: dict[str, int] = {}
        self.deltas: list[str] = []
        self.is_masked = False
        self.request: Conversation | None = None
        self.is_sent = False

    def read(self, record: RecordLike) -> Iterator[Event]:
        """The events of one line."""
        value = record.value
        label = as_str(value.get("label"))
        if self.is_first:
            self.is_first = False
            self.place = (record.line_no, record.child)
        if label not in LABELS:
            yield Unread(record.line_no, record.child, label or "(no label)", "unknown")
            return
        payload = as_dict(value.get("payload"))
        frame = as_dict(payload.get("frame")) if label == "transport_write" else payload
        told = read_prompt(_content(frame)) if label == "transport_write" else None
        is_user = label == "transport_write" and frame.get("type") == "user"
        self.is_sent = self.is_sent or is_user
        opened = RecordOpened(record.line_no, record.child, record.raw, value, self.session, label)
        if told is not None:
            uuid = as_text(frame.get("uuid"))
            opened.uuid, opened.role, opened.chained, opened.message_key = uuid, "user", True, uuid
            opened.counted = "direct_user" if told.said else None
            self.request = told
        yield opened
        at = rows.moment(value.get("sequence"), value.get("elapsedMs"))
        yield self._row(at, LABELS[label], frame or payload, payload)
        if told is not None:
            yield from new_entries(told, self.key, "/payload/frame/message/content")

    def _row(self, at: rows.Moment, direction: str, frame: dict[str, Any], payload: dict[str, Any]) -> ProviderRow:
        delta, is_frame = delta_of(frame), direction == "frame"
        text = text_of(frame) if is_frame else _content(frame)
        is_masked = at.is_masked or has_masked_number(frame)
        self.is_masked = self.is_masked or is_masked
        if is_frame:
            self.counts["transport_frame_count"] = self.counts.get("transport_frame_count", 0) + 1
            self.counts["result_count"] = self.counts.get("result_count", 0) + (frame.get("type") == "result")
        if is_frame and delta is not None and delta.kind == "text_delta":
            self.counts["text_delta_count"] = self.counts.get("text_delta_count", 0) + 1
            self.deltas.append(delta.text)
        is_long = frame.get("type") in ("assistant", "stream_event", "user")
        return ProviderRow(
            "transport_frames",
            {
                **self.key.place(),
                "sequence": at.sequence,
                "elapsed_us": at.elapsed_us,
                "direction": direction,
                "type": as_str(frame.get("type")),
                "subtype": as_str(frame.get("subtype")),
                "uuid": as_text(frame.get("uuid")),
                "delta_type": None if delta is None else delta.kind,
                "delta_chars": None if delta is None else len(delta.text),
                "comparable": rows.event_json(frame),
                "text": masked_text(text) if text else None,
                "defect_code": rows.defect(text) if is_frame else None,
                "is_masked": is_masked,
                "payload": None if is_long else rows.rest_json(payload, "result"),
            },
        )

    def end(self) -> Iterator[Event]:
        """No line follows: what this file says of the turn."""
        yield RecordOpened(*self.place, b"", {}, self.session, "(turn)", again=True)
        counted = {"transport_frame_count": 0, "text_delta_count": 0, "result_count": 0, **self.counts}
        row = self.key.columns() | counted
        row |= {
            "request_sent": self.is_sent,
            **rows.joined(self.deltas),
            "masked_values": self.is_masked,
        }
        if self.request is not None:
            row |= {"continuation": self.request.is_continuation, "own_code": self.request.code}
        yield ProviderRow("provider_turns", row)


def _content(frame: dict[str, Any]) -> str:
    return as_str(content_of(frame)) or ""


def new_entries(told: Conversation, key: rows.TurnKey, pointer: str) -> Iterator[Event]:
    """What a request says that was not said before: a prompt starts a turn, results answer the calls of the last
    answer. A call without an id of its own is known by its place in that answer.
    """
    if any(entry.kind == "prompt" for entry in told.said):
        yield TurnMark("start", key.request_id, "person")
    for entry in told.said:
        yield Dialogue(entry.role, entry.kind, entry.text, pointer, None, decoded=True)
    for result in told.answered:
        yield ToolResult(None, result_id(result, key), result.text, is_error=result.is_error)


def result_id(result: Answered, key: rows.TurnKey) -> str | None:
    """The key of the call that a result of this request answers."""
    if not result.is_made_up or not result.position or key.turn is None:
        return result.call_id
    before = rows.TurnKey(key.batch_id, key.run, key.turn - 1)
    return rows.call_id(before, result.position)
