"""How is a point in time, a time of day or an interval written?

One rule: ISO 8601, always six digits of fraction (nine for nanosecond types), ``Z`` when the column has a time zone.
Arrow stores every zoned timestamp as UTC ticks and keeps the zone as a label, so the label never enters into it.
DuckDB's range is wider than Python's: years outside 0000..9999 take the sign of ISO 8601's expanded form (``-0043`` is
44 BC, ``+290000``), and its infinities stay words.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

Texts = list[str | None]

TICKS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_SECONDS_PER_DAY = 86_400
_DAYS_YEAR_1, _DAYS_YEAR_10000 = -719_162, 2_932_897  # since 1970
_DAYS_PER_400_YEARS = 146_097  # the Gregorian calendar repeats after them
_INFINITE_DAY, _INFINITE_TICK = 2**31 - 1, 2**63 - 1  # how DuckDB stores 'infinity' (and its negation)
_TIME_TZ_MAX_OFFSET = 16 * 3600 - 1  # DuckDB stores this minus the offset, so that the integers sort


def timestamps(array: pa.Array) -> Texts:
    """``2026-08-02T05:00:01.300000`` per value, with ``Z`` when the type has a time zone."""
    import pyarrow as pa
    import pyarrow.compute as pc

    unit, suffix = array.type.unit, "Z" if array.type.tz else ""
    ticks = array.cast(pa.int64())
    per_day = _SECONDS_PER_DAY * TICKS_PER_SECOND[unit]
    if not _within(ticks, _DAYS_YEAR_1 * per_day, _DAYS_YEAR_10000 * per_day):
        # Arrow writes '<value out of range>' for some of them.
        return [None if tick is None else _timestamp(tick, unit, suffix) for tick in ticks.to_pylist()]
    naive = ticks.cast(pa.timestamp(unit)).cast(pa.timestamp("ns" if unit == "ns" else "us"))
    spaced = naive.cast(pa.string())
    written: Texts = pc.binary_join_element_wise(pc.binary_replace_slice(spaced, 10, 11, "T"), suffix, "").to_pylist()
    return written


def dates(array: pa.Array) -> Texts:
    """``2026-08-02`` per value."""
    import pyarrow as pa

    array = array.cast(pa.date32())
    days = array.cast(pa.int32())
    if _within(days, _DAYS_YEAR_1, _DAYS_YEAR_10000):
        written: Texts = array.cast(pa.string()).to_pylist()
        return written
    return [None if day is None else _infinity(day, _INFINITE_DAY) or _date(day) for day in days.to_pylist()]


def times(array: pa.Array) -> Texts:
    """``05:00:01.300000`` per value; ``24:00:00.000000`` is a legal time of day in DuckDB."""
    import pyarrow as pa

    unit = array.type.unit
    ticks = array.cast(pa.int32() if pa.types.is_time32(array.type) else pa.int64()).to_pylist()
    return [None if tick is None else _time(tick, unit) for tick in ticks]


def time_tz(packed: bytes) -> str:
    """DuckDB's TIMETZ (40 bits of microseconds, 24 bits of offset, little-endian): ``05:00:01.300000+02:00``."""
    micros, offset_bits = divmod(int.from_bytes(packed, "little"), 1 << 24)
    offset = _TIME_TZ_MAX_OFFSET - offset_bits
    hours, rest = divmod(abs(offset), 3600)
    minutes, seconds = divmod(rest, 60)
    zone = f"{'-' if offset < 0 else '+'}{hours:02}:{minutes:02}" + (f":{seconds:02}" if seconds else "")
    return _time(micros, "us") + zone


def interval(value: Sequence[int]) -> str:
    """ISO 8601 duration of (months, days, nanoseconds), a sign per part as PostgreSQL has it: ``P1Y2M-3DT4H5.5S``."""
    months, days, nanos = value
    date_part = _signed(months, ((12, "Y"), (1, "M"))) + _signed(days, ((1, "D"),))
    minutes_part = _signed(nanos, ((3_600_000_000_000, "H"), (60_000_000_000, "M")))
    time_part = minutes_part + _signed_seconds(nanos)
    if not date_part and not time_part:
        return "PT0S"
    return f"P{date_part}T{time_part}" if time_part else f"P{date_part}"


def _within(integers: pa.Array, start: int, end: int) -> bool:
    """Is every value in [start, end), or NULL?"""
    import pyarrow.compute as pc

    low, high = pc.min_max(integers).as_py().values()
    return low is None or bool(low >= start and high < end)


def _signed(amount: int, units: tuple[tuple[int, str], ...]) -> str:
    sign, rest, text = "-" if amount < 0 else "", abs(amount), ""
    for size, letter in units:
        count, rest = divmod(rest, size)
        text += f"{sign}{count}{letter}" if count else ""
    return text


def _signed_seconds(nanos: int) -> str:
    second, fraction = divmod(abs(nanos) % 60_000_000_000, 1_000_000_000)
    if not second and not fraction:
        return ""
    return f"{'-' if nanos < 0 else ''}{second}.{fraction:09}".rstrip("0").rstrip(".") + "S"


def _infinity(value: int, infinite: int) -> str:
    return {infinite: "infinity", -infinite: "-infinity"}.get(value, "")


def _timestamp(tick: int, unit: str, suffix: str) -> str:
    if infinite := _infinity(tick, _INFINITE_TICK):
        return infinite
    day, within_day = divmod(tick, _SECONDS_PER_DAY * TICKS_PER_SECOND[unit])
    return f"{_date(day)}T{_time(within_day, unit)}{suffix}"


def _date(day: int) -> str:
    cycle, rest = divmod(day - _DAYS_YEAR_1, _DAYS_PER_400_YEARS)
    within = dt.date.fromordinal(rest + 1)
    year = within.year + 400 * cycle
    sign = "-" if year < 0 else "+" if year > dt.MAXYEAR else ""
    return f"{sign}{abs(year):04}-{within.month:02}-{within.day:02}"


def _time(tick: int, unit: str) -> str:
    digits = 9 if unit == "ns" else 6
    seconds, fraction = divmod(tick, TICKS_PER_SECOND[unit])
    minute, second = divmod(seconds, 60)
    scaled = fraction * (10**digits // TICKS_PER_SECOND[unit])
    return f"{minute // 60:02}:{minute % 60:02}:{second:02}.{scaled:0{digits}}"
