"""How does the Bridge mask what it writes, so that two masked sides can be compared?

Diagnostics mask strings below secret-like keys, the transport log masks every value there (so token *counts* become
the word ``<redacted>``), and both mask ``Bearer …`` and ``token=…`` inside texts. Pieces of a text are masked one by
one and the whole again: before comparing, both sides go through the same rules. A masked text stays as it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from etl.shape import as_dict, canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MASK: Final = "<redacted>"
#: What may stand where a value was taken away: the Bridge's word, those of whoever masked the log again, or stars.
_STAND_IN: Final = re.compile(
    r"\s*(?:[<\[({]*(?:redacted|masked|hidden)(?![a-z])[^<>\[\]]{0,80}[>\])}]*|\d*[*\u2022\u2588]{2,}\d*)\s*",
    re.IGNORECASE,
)
#: Numbers of a message of the SDK, besides those of its usage; whether a service is there is masked with them.
NUMBERS: Final = (
    "duration_ms",
    "duration_api_ms",
    "num_turns",
    "total_cost_usd",
    "total_credits",
    "attempt",
    "max_retries",
    "retry_delay_ms",
    "error_status",
    "queue_max_wait_ms",
)
QUEUE_NUMBERS: Final = ("service_available", "queue_count", "queue_wait_elapsed_ms", "wait_time_ms")
_SECRET_KEY: Final = re.compile(r"api[_-]?key|token|secret|password|authorization|credential", re.IGNORECASE)
_BEARER: Final = re.compile(r"Bearer\s+\S+", re.IGNORECASE)
_NAMED: Final = re.compile(
    r"((?:api[_-]?key|token|secret|password|authorization)\s*[\"']?\s*[:=]\s*[\"']?)[^\"'\s,}]+", re.IGNORECASE
)
_DEPTH: Final = 64


def masked_text(text: str) -> str:
    """The text as the Bridge would mask it."""
    return _NAMED.sub(rf"\1{MASK}", _BEARER.sub(f"Bearer {MASK}", text))


def comparable(value: Any, depth: int = 0) -> Any:
    """The value with everything below secret-like keys masked, whatever its type."""
    if depth > _DEPTH:
        return None
    if isinstance(value, dict):
        return {key: MASK if _SECRET_KEY.search(key) else comparable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [comparable(item, depth + 1) for item in value]
    return masked_text(value) if isinstance(value, str) else value


def comparable_json(value: Any) -> str:
    """The comparable value as canonical JSON."""
    return canonical(comparable(value))


class Content(NamedTuple):
    """What a value holds, as hashes: as it stands, and with both sides masked alike."""

    plain: int
    comparable: int
    is_masked: bool

    def is_same(self, other: Content) -> bool:
        """Do two values hold the same? Where one of them is masked, what a mask may hide tells nothing apart."""
        if self.plain == other.plain:
            return True
        return (self.is_masked or other.is_masked) and self.comparable == other.comparable


def content_of_value(value: Any, text: str) -> Content:
    """What a value holds, to be compared; ``text`` is its canonical JSON."""
    return Content(hash(text), hash(comparable_json(value)), MASK in text)


def is_mask(value: Any) -> bool:
    """Does a mask stand where a number should be?"""
    return isinstance(value, str) and _STAND_IN.fullmatch(value) is not None


def has_mask(value: Mapping[str, Any], names: Iterable[str]) -> bool:
    """Is one of these numbers of an object masked?"""
    return any(is_mask(value.get(name)) for name in names)


def has_masked_number(message: dict[str, Any]) -> bool:
    """Does a mask stand where the SDK has a number: in the message, or in the usage of a message, event or result?"""
    return has_mask(message, (*NUMBERS, *QUEUE_NUMBERS)) or any(_is_masked(usage) for usage in _usages(message))


def _usages(message: dict[str, Any]) -> Iterator[Any]:
    event = as_dict(message.get("event"))
    for holder in (message, as_dict(message.get("message")), event, as_dict(event.get("message"))):
        for key in ("usage", "modelUsage"):
            if key in holder:
                yield holder[key]


def _is_masked(value: Any, depth: int = 0) -> bool:
    if is_mask(value):
        return True
    return depth < _DEPTH and isinstance(value, dict) and any(_is_masked(item, depth + 1) for item in value.values())
