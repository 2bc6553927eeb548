"""What did one model call of Claude Code use, out of the counts that its record states?

``input_tokens`` of the log leaves cached tokens out: the buckets are disjoint. Each fragment of a message repeats the
counts, or (up to 2.1) counts up from a placeholder: the largest output is the message's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from etl.events import ModelCall
from etl.shape import as_count, as_dict, as_text, canonical

if TYPE_CHECKING:
    from etl.grammars.blocks import Part

#: No token holds more characters than this on average: fewer tokens than that are no count of what stands there.
_CHARS_PER_TOKEN: Final = 40
_NAMES: Final = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def usage_of(key: str, value: dict[str, Any], message: dict[str, Any], parts: list[Part]) -> ModelCall:
    """Usage of one response. A count that a fragment states before the response has ended (no stop reason), and that
    cannot be the count of the text beside it, is a placeholder: it is kept as written, and said to be one.
    """
    call = ModelCall(
        key,
        as_text(message.get("model")),
        stop_reason=as_text(message.get("stop_reason")),
        request_id=as_text(value.get("requestId")),
    )
    usage = message.get("usage")
    if not isinstance(usage, dict):
        call.usage_status = "absent"
        return call
    fresh, output, written, read = (as_count(usage.get(name)) for name in _NAMES)
    if fresh is None and output is None and written is None and read is None:
        call.usage_status = "absent"
        return call
    call.input_tokens = None if fresh is None else fresh + (read or 0) + (written or 0)
    call.output_tokens, call.cache_read_tokens = output, read
    split = as_dict(usage.get("cache_creation"))
    hour, minutes = (as_count(split.get(f"ephemeral_{span}_input_tokens")) for span in ("1h", "5m"))
    call.cache_creation_1h_tokens = hour
    call.cache_creation_5m_tokens = _rest(written, hour) if minutes is None else minutes
    if call.stop_reason is None and output is not None and output * _CHARS_PER_TOKEN < _chars(parts):
        call.usage_status = "placeholder"
    return call


def _rest(written: int | None, hour: int | None) -> int | None:
    return None if written is None else max(0, written - (hour or 0))


def _chars(parts: list[Part]) -> int:
    asked = (as_dict(part.item).get("input") for part in parts if part.kind == "request")
    return sum(len(part.text) for part in parts) + sum(len(canonical(args)) for args in asked)
