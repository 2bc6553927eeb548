"""What do the diagnostics of one turn say, label by label?

Each line is ``{label, requestId, sequence, elapsedMs, payload}``. The messages of the SDK (boundary A) are what counts;
the other labels repeat or conclude, and are kept as rows to compare with.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from etl.events import Dialogue, Event, RecordOpened, SessionEvent, Unread, UnreadItem
from etl.providers.qoder_bridge import rows
from etl.providers.qoder_bridge.envelopes import judge, scan
from etl.providers.qoder_bridge.failures import failure_of
from etl.providers.qoder_bridge.masking import has_mask, masked_text
from etl.providers.qoder_bridge.messages import text_of
from etl.shape import as_bool, as_count, as_dict, as_str, as_text, canonical

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.providers.base import RecordLike
    from etl.providers.qoder_bridge.turns import Turn

RAW: Final = "sdk_raw_message"
#: Known labels, and what is read of each.
LABELS: Final[dict[str, str]] = {
    RAW: "boundary A: a message of the SDK as received, before resends are dropped",
    "first_message": "time of the first message, cross-check",
    "queue_status": "repeats a queue message, cross-check",
    "handoff_ack": "time of the runtime's acknowledgement, cross-check",
    "duplicate_uuid": "a resend that the Bridge dropped, cross-check",
    "duplicate_final_snapshot": "a repeated final snapshot that the Bridge dropped, cross-check",
    "sdk_stream_event": "repeats a stream event, cross-check",
    "assistant_snapshot": "text of a snapshot that the Bridge appended, cross-check",
    "sdk_terminal_result": "echo of the result, cross-check",
    "after_terminal_chunk": "a message after the result, dropped by the Bridge",
    "after_terminal_summary": "number of such messages",
    "assembled_text": "boundary B: the text that the Bridge put together",
    "provider_output_defect": "an envelope that the Bridge could not parse, as received",
    "normalization_input": "boundary C: the text before it is normalised",
    "parser_selected": "boundary D: which parser is asked",
    "parse_input": "boundary D: what it is asked to parse",
    "error_input": "boundary E: the text that failed, with its code",
    "handoff": "the answer is handed on",
    "timeout_classification": "the turn timed out: its class",
    "native_fallback_blocked": "a native call of the runtime was refused",
}
_BOUNDARIES: Final = {
    RAW: "A",
    "assembled_text": "B",
    "normalization_input": "C",
    "parser_selected": "D",
    "parse_input": "D",
    "error_input": "E",
}
_TEXTS: Final = ("text", "raw", "resultText", "envelopeRaw")
_DIGESTS: Final = ("digest", "inputDigest", "resultDigest")
_HELD: Final = (*_TEXTS, *_DIGESTS, "boundary", "message", "seq", "index", "envelopeIndex", "code", "messageId")
_PLACES: Final = ("seq", "index", "envelopeIndex")
#: Labels that end a turn.
_ENDS: Final = frozenset({"handoff", "error_input", "timeout_classification", "sdk_terminal_result"})


class Diagnostics:
    """Reads the lines of one turn's diagnostics into its :class:`Turn`."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.batch_id = turn.key.batch_id
        self.sequence: int | None = None
        self.elapsed_us: int | None = None
        self.is_first = True
        self.parser: str | None = None

    def read(self, record: RecordLike) -> Iterator[Event]:
        """The events of one line."""
        value = record.value
        label = as_text(value.get("label"))
        if self.is_first:
            self.is_first = False
            self.turn.place = (record.line_no, record.child)
        if label is None:
            yield Unread(record.line_no, record.child, "(no label)", "unknown")
            return
        at = self._moment(value)
        self.turn.count("diag_count")
        self.turn.key.request_id = self.turn.key.request_id or as_text(value.get("requestId"))
        payload = as_dict(value.get("payload"))
        self.turn.is_masked = self.turn.is_masked or at.is_masked or has_mask(payload, _PLACES)
        if label == RAW:
            yield from self._received(record, payload, at)
        else:
            yield self._opened(record, label)
        yield boundary_event(self.turn.key, at, label, payload)
        if label not in LABELS:
            yield UnreadItem(0, f"label:{label}"[:100], "unknown")
        yield from self._labelled(label, payload, at)

    def _received(self, record: RecordLike, payload: dict[str, Any], at: rows.Moment) -> Iterator[Event]:
        """A line of boundary A."""
        message, digest = payload.get("message"), as_text(payload.get("digest"))
        told = rows.moment(payload.get("seq"), record.value.get("elapsedMs"))
        if not isinstance(message, dict):
            other = message if payload else record.value.get("payload")
            yield from self.turn.other(record, RAW, canonical(other), told, digest)
            return
        yield from self.turn.message(record, RAW, message, told, digest)
        if message is self.turn.stream.result:
            self.turn.last("terminal_us", at.elapsed_us)

    def _moment(self, value: dict[str, Any]) -> rows.Moment:
        """The line's place in the turn. Sequence numbers run without a gap and time does not go back: where they do
        not hold it is counted, and the order of the lines stays.
        """
        turn = self.turn
        at = rows.moment(value.get("sequence"), value.get("elapsedMs"))
        if at.is_masked and at.sequence is None and self.sequence is not None:
            self.sequence += 1  # a number that was masked is no gap
        elif at.sequence is not None:
            if self.sequence is not None and at.sequence != self.sequence + 1:
                turn.count("sequence_gaps")
            self.sequence = at.sequence
        if at.elapsed_us is not None:
            if self.elapsed_us is not None and at.elapsed_us < self.elapsed_us:
                turn.count("backward_steps")
            self.elapsed_us = at.elapsed_us
        return at

    def _opened(self, record: RecordLike, label: str) -> RecordOpened:
        opened = RecordOpened(record.line_no, record.child, record.raw, record.value, self.turn.session, label)
        if self.turn.session and label in ("error_input", "timeout_classification"):
            # it says something to the person: a second file with the same line is told to be a copy by this
            opened.uuid, opened.chained = f"{self.turn.key.request_id}#{self.sequence}", True
        return opened

    def _labelled(self, label: str, payload: dict[str, Any], at: rows.Moment) -> Iterator[Event]:
        turn = self.turn
        if label in _ENDS:
            turn.last("terminal_us", at.elapsed_us)
        if label == "assembled_text":
            yield from rows.envelopes(turn.key, "B", scan(as_str(payload.get("text")) or ""))
        elif label == "normalization_input":
            yield from rows.envelopes(turn.key, "C", scan(as_str(payload.get("text")) or ""))
        elif label == "parser_selected":
            self.parser = as_text(payload.get("raw"))
        elif (
            label == "parse_input"
            and self.parser in (None, "qoder_envelope")
            and (index := rows.small(payload.get("index")))
        ):
            yield from rows.envelopes(turn.key, "D", [judge(as_str(payload.get("raw")) or "", index)])
        elif label == "assistant_snapshot":
            turn.told["snapshot_text"] = turn.told.get("snapshot_text", "") + (as_str(payload.get("text")) or "")
        elif label == "handoff":
            turn.told["stop_reason"] = as_text(payload.get("stopReason"))
        elif label == "timeout_classification":
            yield from self._timed_out(payload)
        elif label == "error_input":
            yield from self._failed(payload)

    def _timed_out(self, payload: dict[str, Any]) -> Iterator[Event]:
        kind, continuation = as_text(payload.get("kind")), as_bool(payload.get("continuation"))
        told = failure_of(kind)
        self.turn.told |= {"error_kind": told.kind or kind, "error_class": told.error_class}
        if continuation is not None:
            self.turn.told["continuation"] = continuation
        if self.turn.session and kind is not None:
            yield Dialogue("system", "error_notice", kind, "/payload/kind", None)
            yield SessionEvent("error", told.error_class, kind)

    def _failed(self, payload: dict[str, Any]) -> Iterator[Event]:
        code, why = as_text(payload.get("code")), as_text(payload.get("message"))
        told = failure_of(why, code=code)
        self.turn.told |= {"error_code": told.code, "error_message": why, "error_class": told.error_class}
        if self.turn.session and why is not None:
            yield Dialogue("system", "error_notice", why, "/payload/message", None)
            yield SessionEvent("error", code, why)

    def end(self) -> Iterator[Event]:
        """No line follows."""
        joined = self.turn.told.get("snapshot_text")
        if joined is not None:
            self.turn.told["snapshot_text"] = masked_text(joined)
        for name in ("diag_count", "sequence_gaps", "backward_steps"):
            self.turn.told[name] = self.turn.counts.get(name, 0)
        yield from self.turn.end()


def boundary_event(key: rows.TurnKey, at: rows.Moment, label: str, payload: dict[str, Any]) -> Event:
    """The row of one label."""
    index = rows.small(payload.get("index"))
    message = payload.get("message")
    texts = (as_str(payload.get(name)) for name in _TEXTS)
    text = next((found for found in texts if found is not None), None)
    if label == RAW and isinstance(message, dict):
        text = text_of(message) or None
    held = tuple(name for name in _HELD if name != "message" or label == RAW)
    return rows.boundary(
        key,
        at,
        label,
        {
            "boundary": _BOUNDARIES.get(label),
            "item_index": rows.small(payload.get("envelopeIndex")) if index is None else index,
            "text": text,
            "digest": next((found for name in _DIGESTS if (found := as_text(payload.get(name)))), None),
            "uuid": as_text(payload.get("uuid")),
            "message_id": as_text(payload.get("messageId")),
            "sdk_seq": as_count(payload.get("seq")),
            "code": as_text(payload.get("code")),
            "payload": rows.rest_json(payload, *held),
            "is_masked": at.is_masked or has_mask(payload, _PLACES),
        },
    )
