"""Which instant does a person mean who writes a day, a time, or how long ago?

A day means its beginning where a span starts and its end where it ends: ``--since 2026-05-04 --until 2026-05-04`` is
that day. What names no zone is on the clock of the zone that was asked for.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from etl.errors import UsageError

_AGO: Final = re.compile(r"(?P<number>\d{1,5})(?P<unit>[mhdw])")
_UNITS: Final = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_DAYS: Final = {"today": 0, "yesterday": 1}


def instant_of(text: str, now: datetime, zone: str = "UTC", *, is_end: bool = False) -> datetime:
    """The instant (UTC) that a text means: ``90m``, ``12h``, ``7d``, ``2w`` ago, ``today``, ``yesterday``, a day or an
    ISO time. ``is_end``: a day means its end. Raises UsageError.
    """
    said = text.strip()
    if ago := _AGO.fullmatch(said):
        return now - int(ago["number"]) * _UNITS[ago["unit"]]
    place = _zone(zone)
    try:
        if said in _DAYS:
            day = now.astimezone(place).date() - timedelta(days=_DAYS[said])
            return _day(datetime(day.year, day.month, day.day, tzinfo=place), is_end=is_end)
        found = datetime.fromisoformat(said)
        if _DAY.fullmatch(said):
            return _day(found.replace(tzinfo=place), is_end=is_end)
        return (found if found.tzinfo else found.replace(tzinfo=place)).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        hint = "a day (2026-05-04), a time (2026-05-04T10:00), today, yesterday, or 12h, 7d, 2w ago"
        raise UsageError(f"{text!r} is no instant: write {hint}") from error


def written(instant: datetime, zone: str = "UTC") -> str:
    """The instant on the clock of a zone, to the second, with the zone's name; on UTC's where that cannot be told."""
    try:
        local = instant.astimezone(_zone(zone))
    except (UsageError, OverflowError):  # no tzdata; or an end of the calendar, which is in no year there
        local, zone = instant.astimezone(UTC), "UTC"
    return f"{local.replace(tzinfo=None).isoformat(' ', 'seconds')} {zone}"


def _zone(name: str) -> tzinfo:
    if name == "UTC":  # needs no data of the system's
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise UsageError(f"this machine knows no time zone {name!r} (is tzdata installed?)") from error


def _day(start: datetime, *, is_end: bool) -> datetime:
    """The beginning of a local day, or its end: the next one's beginning, which a change of the clock may move."""
    return (start + timedelta(days=1) if is_end else start).astimezone(UTC)
