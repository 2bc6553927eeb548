"""What type does a piece of untrusted JSON have, once it is given one at the edge?

Every accessor takes any JSON value and never raises. ``None`` means "not there, or not of that type".
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import orjson

from etl.decode import decode_nested

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
#: No coding agent wrote before 2015; one that says 2100 or later has a broken clock (never compared with now).
_EARLIEST_US: Final = 1_420_070_400_000_000
_LATEST_US: Final = 4_102_444_800_000_000
_I64: Final = 1 << 63
_COUNT_LIMIT: Final = 1_000_000_000_000
_MONEY: Final = Decimal("0.000000001")
_MONEY_LIMIT: Final = Decimal(1_000_000_000)
_EMPTY: Final[dict[str, Any]] = {}


def as_str(value: Any) -> str | None:
    """A JSON string, else None."""
    return value if isinstance(value, str) else None


def as_text(value: Any) -> str | None:
    """A JSON string that holds more than white space, else None."""
    return value if isinstance(value, str) and value and not value.isspace() else None


def as_dict(value: Any) -> dict[str, Any]:
    """A JSON object, else an empty one (never to be written to)."""
    return value if isinstance(value, dict) else _EMPTY


def as_list(value: Any) -> list[Any]:
    """A JSON array, else an empty list."""
    return value if isinstance(value, list) else []


def as_bool(value: Any) -> bool | None:
    """A JSON boolean, else None."""
    return value if isinstance(value, bool) else None


def as_int(value: Any) -> int | None:
    """A whole number that fits 64 bits; digits in a string count (seen in token counts), a boolean does not."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        digits = value.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 19):
            return None
        value = int(value)
    elif isinstance(value, float):
        if not value.is_integer():
            return None
        value = int(value)
    elif not isinstance(value, int):
        return None
    return value if -_I64 <= value < _I64 else None


def as_count(value: Any) -> int | None:
    """A whole number of things (tokens, bytes): never negative, and below 1e12 so that sums stay in 64 bits."""
    number = as_int(value)
    return number if number is not None and 0 <= number < _COUNT_LIMIT else None


def as_float(value: Any) -> float | None:
    """A JSON number, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def as_money(value: Any) -> Decimal | None:
    """A JSON number as DECIMAL(18,9), rounded half even; None when it is no number or too large."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        amount = Decimal(repr(value) if isinstance(value, float) else value)
        if not amount.is_finite() or abs(amount) >= _MONEY_LIMIT:
            return None
        return amount.quantize(_MONEY)
    except InvalidOperation:
        return None


def instant(value: Any) -> int | None:
    """An instant in UTC microseconds since 1970, else None.

    ISO 8601 text (``Z``, an offset, or nothing, which is read as UTC) and numbers, or digits in a string, by their
    size: below 1e11 seconds, below 1e14 milliseconds, below 1e17 microseconds, else nanoseconds
    (seen: ISO on message rows and epoch milliseconds on state rows of Qoder, microseconds in Muse, seconds in Codex).
    Impossible values (before 2015, from 2100 on) are None.
    """
    if isinstance(value, str):
        us = _iso_us(value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        us = _number_us(value)
    else:
        return None
    return us if us is not None and _EARLIEST_US <= us <= _LATEST_US else None


def _iso_us(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        number = as_int(text.strip())
        return None if number is None else _number_us(number)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    try:
        delta = moment - _EPOCH
    except OverflowError:
        return None
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def _number_us(number: float) -> int | None:
    if type(number) is int and 100_000_000_000 <= number < 100_000_000_000_000:  # the usual case: milliseconds
        return number * 1_000
    if number != number or abs(number) >= 1e20:  # noqa: PLR0124 - NaN is the one number unequal to itself
        return None
    size = abs(number)
    if size < 1e11:
        return round(number * 1_000_000)
    if size < 1e14:
        return round(number * 1_000)
    if size < 1e17:
        return round(number)
    return int(number) // 1_000


def canonical(value: Any) -> str:
    """Canonical JSON text of a value: sorted keys, no spaces, non-ASCII kept.

    orjson refuses more than 254 levels and integers over 64 bits; such a value is written by a slower encoder
    with an explicit stack, so that nothing a file can hold raises here.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except (TypeError, orjson.JSONEncodeError):
        return _deep_json(value)


def _deep_json(value: Any) -> str:
    out: list[str] = []
    stack: list[tuple[bool, Any]] = [(False, value)]
    while stack:
        literal, item = stack.pop()
        if literal:
            out.append(item)
        elif isinstance(item, dict):
            stack.append((True, "}"))
            for n, key in enumerate(sorted(item, key=str, reverse=True)):
                stack.append((False, item[key]))
                stack.append(
                    (True, ("" if n == len(item) - 1 else ",") + json.dumps(str(key), ensure_ascii=False) + ":")
                )
            out.append("{")
        elif isinstance(item, list):
            stack.append((True, "]"))
            for n, element in enumerate(reversed(item)):
                stack.append((False, element))
                if n < len(item) - 1:
                    stack.append((True, ","))
            out.append("[")
        else:
            out.append(json.dumps(item, ensure_ascii=False))
    return "".join(out)


def pointer_get(value: Any, pointer: str) -> Any:
    """What a JSON pointer (RFC 6901) leads to. ``#`` steps into a string that holds JSON text.

    ``/message/content/0/text`` is the usual form; ``/message#/content/0/text`` is the leaf of a transport string.
    A pointer that leads nowhere gives None.
    """
    for n, part in enumerate(pointer.split("#")):
        if n:
            value = decode_text(value) if isinstance(value, str) else None
        for step in part.split("/")[1:]:
            value = _step(value, step)
    return value


def _step(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return value.get(step.replace("~1", "/").replace("~0", "~") if "~" in step else step)
    if isinstance(value, list) and step.isdigit() and int(step) < len(value):
        return value[int(step)]
    return None


def decode_text(text: str) -> Any:
    """The JSON value of a text that begins like an object, an array or a string, else None."""
    bare = text.strip().removeprefix("\ufeff").lstrip()
    if bare[:1] not in ("{", "[", '"'):
        return None
    return decode_nested(bare)


_COMPANIONS: Final[dict[str, tuple[str, ...]]] = {
    "thinking": ("thinking", "data"),
    "redacted_thinking": ("thinking", "data"),
    "text": ("text", "content"),
    "output_text": ("text", "content"),
    "message": ("message", "content"),
    "assistant": ("message", "content"),
    "user": ("message", "content"),
}
_ROLES: Final = frozenset({"assistant", "user", "system", "tool"})


def is_transport_item(value: Any) -> bool:
    """Is this object an item of a provider's message transport (a type together with its companion key)?"""
    if not isinstance(value, dict):
        return False
    kind = value.get("type")
    if kind == "tool_use":
        return "id" in value and "name" in value and "input" in value
    if kind == "tool_result":
        return "tool_use_id" in value
    if isinstance(kind, str) and kind in _COMPANIONS and any(key in value for key in _COMPANIONS[kind]):
        return True
    role = value.get("role")
    return isinstance(role, str) and role in _ROLES and "content" in value


def is_transport(value: Any) -> bool:
    """Is this value a transport object, or an array that holds one?"""
    if isinstance(value, list):
        return any(is_transport_item(item) for item in value)
    return is_transport_item(value)


def is_transport_text(text: str) -> bool:
    """Does a text parse to a transport object or an array holding one?"""
    return is_transport(decode_text(text))
