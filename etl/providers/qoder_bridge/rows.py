"""How is evidence of the Bridge written as rows of its tables?

One function per table; what to write is decided by who calls. Texts are masked as the Bridge masks them (both sides of
a comparison alike); the project's own masking follows for every table. The text of a delta is never stored by itself:
a piece of a secret is no secret that a rule knows. Its length is, and the pieces joined stand in the row of the turn.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from etl.events import ProviderRow
from etl.providers.qoder_bridge.envelopes import MALFORMED, Envelope, scan
from etl.providers.qoder_bridge.masking import (
    QUEUE_NUMBERS,
    comparable_json,
    has_mask,
    has_masked_number,
    is_mask,
    masked_text,
)
from etl.providers.qoder_bridge.messages import delta_of, text_of
from etl.shape import as_bool, as_count, as_dict, as_float, as_str, as_text, canonical

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from etl.providers.qoder_bridge.stream import Taken

OBSERVED, DERIVED, REPLAYED, SUMMARY_ONLY = "observed", "derived", "replay", "summary_only"
#: Counts of a turn that are 0 where its messages were seen and none was of the kind.
COUNTED: Final = ("raw_chunk_count", "text_delta_count", "queue_event_count", "result_count")
#: The Bridge's own digests: SHA-256 before its masking, the first 16 hex digits.
DIGEST: Final = "sha256/16"
_LIMIT_MS: Final = 1e12
_SMALL: Final = 1 << 31


@dataclass(slots=True)
class TurnKey:
    """Which turn, and how well it is evidenced."""

    batch_id: str
    run: int | None
    turn: int | None
    evidence: str = OBSERVED
    request_id: str | None = None

    def columns(self) -> dict[str, Any]:
        """The columns that name the turn."""
        return {
            "batch_id": self.batch_id,
            "run": self.run,
            "turn": self.turn,
            "request_id": self.request_id,
            "evidence_level": self.evidence,
        }

    def place(self) -> dict[str, Any]:
        """The columns that name the turn in tables without its evidence."""
        return {"batch_id": self.batch_id, "run": self.run, "turn": self.turn}


class Moment(NamedTuple):
    """A place in a turn: the sequence number that the log gives, and microseconds since the turn began. ``is_masked``:
    one of the two is not known because it was masked.
    """

    sequence: int | None
    elapsed_us: int | None
    is_masked: bool = False


def moment(sequence: Any, elapsed_ms: Any) -> Moment:
    """The place in a turn that a line states."""
    return Moment(as_count(sequence), elapsed_us(elapsed_ms), is_mask(sequence) or is_mask(elapsed_ms))


def call_id(key: TurnKey, position: int) -> str:
    """The key of the call at a place (from 1) of a turn's answer that the model gave no id."""
    return f"~{key.run or 0}.{key.turn or 0}.{position}"


def elapsed_us(value: Any) -> int | None:
    """Milliseconds as microseconds; None for what is no time."""
    ms = as_float(value)
    return round(ms * 1_000) if ms is not None and 0 <= ms < _LIMIT_MS else None


def small(value: Any) -> int | None:
    """A number of a run, a turn or an item: what its column can hold."""
    number = as_count(value)
    return number if number is not None and number < _SMALL else None


def sdk_message(key: TurnKey, at: Moment, message: dict[str, Any], digest: str | None, taken: Taken) -> ProviderRow:
    """A row of facts.sdk_messages."""
    body, event, delta = as_dict(message.get("message")), as_dict(message.get("event")), delta_of(message)
    text = text_of(message)
    kind = as_str(message.get("type"))
    return ProviderRow(
        "sdk_messages",
        {
            **key.place(),
            "sequence": at.sequence,
            "elapsed_us": at.elapsed_us,
            "type": kind,
            "subtype": as_str(message.get("subtype")),
            "uuid": as_text(message.get("uuid")),
            "message_id": as_text(body.get("id")) or as_text(as_dict(event.get("message")).get("id")),
            "digest": digest,
            "stop_reason": as_text(body.get("stop_reason")) or as_text(message.get("stop_reason")),
            "event_type": as_str(event.get("type")),
            "delta_type": None if delta is None else delta.kind,
            "delta_chars": None if delta is None else len(delta.text),
            "comparable": event_json(message),
            "text": masked_text(text) if text else None,
            "defect_code": defect(text),
            "is_masked": at.is_masked or has_masked_number(message),
            "dup_of_line": taken.other_line,
            "disposition": taken.disposition,
            "payload": None if kind in ("assistant", "stream_event") else rest_json(message, "result"),
        },
    )


def other_message(key: TurnKey, at: Moment, told: str | None, digest: str | None, taken: Taken) -> ProviderRow:
    """A row of facts.sdk_messages for what should be a message and is no object: ``told`` is what stands there."""
    named = {"sequence": at.sequence, "elapsed_us": at.elapsed_us, "digest": digest, "is_masked": at.is_masked}
    return ProviderRow("sdk_messages", {**key.place(), **named, "disposition": taken.disposition, "payload": told})


def event_json(message: dict[str, Any]) -> str | None:
    """A stream event as it is compared: masked on both sides alike, the delta's text as its number of characters."""
    delta, event = delta_of(message), message.get("event")
    if message.get("type") != "stream_event" or not isinstance(event, dict):
        return None
    if delta is not None and delta.leaf:
        event = {**event, "delta": {**as_dict(event.get("delta")), delta.leaf: len(delta.text)}}
    return comparable_json(event)


def defect(text: str) -> str | None:
    """The code of the first complete envelope of a text that is not exactly right. One that a later fragment may
    complete is none.
    """
    found = (envelope.code for envelope in scan(text) if envelope.is_complete)
    return next((code for code in found if code is not None), None)


def joined(deltas: list[str]) -> dict[str, Any]:
    """The columns of a turn's text deltas, put together."""
    text = "".join(deltas)
    return {"delta_text": masked_text(text) if deltas else None, "delta_defect": defect(text)}


def queue_event(key: TurnKey, at: Moment, message: dict[str, Any], taken: Taken) -> ProviderRow:
    """A row of facts.queue_events."""
    return ProviderRow(
        "queue_events",
        {
            **key.place(),
            "sequence": at.sequence,
            "elapsed_us": at.elapsed_us,
            "status": as_str(message.get("status")),
            "service_available": as_bool(message.get("service_available")),
            "request_id": as_text(message.get("request_id")),
            "model_key": as_text(message.get("model_key")),
            "queue_type": as_text(message.get("queue_type")),
            "queue_count": as_count(message.get("queue_count")),
            "queue_wait_us": elapsed_us(message.get("queue_wait_elapsed_ms")),
            "wait_us": elapsed_us(message.get("wait_time_ms")),
            "disposition": taken.disposition,
            "is_masked": at.is_masked or has_mask(message, QUEUE_NUMBERS),
        },
    )


def envelopes(
    key: TurnKey, boundary: str, found: list[Envelope], call_keys: Mapping[int, str] | None = None
) -> Iterator[ProviderRow]:
    """Rows of facts.envelopes: what the scanner finds at a boundary."""
    for envelope in found:
        is_json = envelope.is_complete and envelope.code != MALFORMED
        yield ProviderRow(
            "envelopes",
            {
                **key.place(),
                "boundary": boundary,
                "envelope_index": envelope.index,
                "raw": masked_text(envelope.raw),
                "parse_ok": is_json,
                "parse_error": None if is_json else envelope.error,
                "code": envelope.code,
                "tool_name": envelope.name,
                "call_key": (call_keys or {}).get(envelope.index, envelope.call_id),
            },
        )


def boundary(key: TurnKey, at: Moment, label: str, values: Mapping[str, Any]) -> ProviderRow:
    """A row of facts.boundary_events; ``values`` are its columns by name."""
    text = values.get("text")
    observed = {
        "observed": True,
        "digest_algo": DIGEST if values.get("digest") else None,
        "is_masked": at.is_masked,
    }
    named = {"sequence": at.sequence, "elapsed_us": at.elapsed_us, "label": label}
    row = {**key.columns(), **named, **observed, **values}
    row["text"] = masked_text(text) if isinstance(text, str) else None
    return ProviderRow("boundary_events", row)


def claim(key: TurnKey, name: str, value: Any) -> ProviderRow:
    """A row of facts.bridge_claims: what an evidence file concludes by itself. To compare with, never to count."""
    is_masked = is_mask(value)
    told = None if is_masked else value if isinstance(value, str) else canonical(value)
    row = {"claim": name, "value": told, "evidence_level": key.evidence, "is_masked": is_masked}
    return ProviderRow("bridge_claims", {**key.place(), **row})


def batch(batch_id: str, source_kind: str, **values: Any) -> ProviderRow:
    """A row of facts.bridge_batches."""
    return ProviderRow("bridge_batches", {"batch_id": batch_id, "source_kind": source_kind, **values})


def rest_json(value: Mapping[str, Any], *held: str) -> str | None:
    """The rest of an object that no column holds, as JSON; None where nothing is left."""
    left = {key: item for key, item in value.items() if key not in ("type", "subtype", "uuid", "session_id", *held)}
    return canonical(left) if left else None
