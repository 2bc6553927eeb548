"""How is a value shortened for a reader?

Exact text is for :mod:`etl.render.machine`. Here a number has at most three decimals (three significant digits below 1,
so that a cost of 0.00012 does not read 0), a time has no fraction, and NULL is ``-``: never 0, never nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from etl.render.values import is_number, stored, texts

if TYPE_CHECKING:
    from decimal import Decimal

    import pyarrow as pa

NULL = "-"

_EXPONENT_FROM = 1e15  # from here a double has no decimals to show, and soon more digits than it knows


def cells(array: pa.Array) -> list[str]:
    """The shortened text of every value, not yet safe for a terminal."""
    from pyarrow import types

    array = stored(array)
    kind = array.type
    if types.is_floating(kind) or (types.is_decimal(kind) and kind.scale > 0):
        return [NULL if number is None else short_number(number) for number in array.to_pylist()]
    written = texts(array)
    if types.is_timestamp(kind):
        zone = "Z" if kind.tz else ""
        return [NULL if text is None else _short_time(text, zone) for text in written]
    return [NULL if text is None else text for text in written]


def is_fixed(kind: pa.DataType) -> bool:
    """Would a value of this type mislead when cut? Numbers, times and booleans are shown whole or not at all."""
    from pyarrow import types

    return is_number(kind) or bool(types.is_temporal(kind) or types.is_boolean(kind))


def short_number(number: float | Decimal) -> str:
    """``1234.567``, ``0.5``, ``0.00012``, ``1e-07``: no thousands separators, no trailing zeros."""
    if not math.isfinite(number):
        return str(float(number))
    size = math.fabs(number)
    if not size:
        return "0"  # also of -0.0
    if size < 1:
        return format(float(number), ".3g")
    text = repr(number) if isinstance(number, float) and size >= _EXPONENT_FROM else format(number, ".3f")
    return text.rstrip("0").rstrip(".") if "e" not in text else text


def _short_time(text: str, zone: str) -> str:
    whole, dot, _ = text.partition(".")
    return whole.replace("T", " ") + zone if dot else text
