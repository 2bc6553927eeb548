"""Which instant is meant by what a person writes?"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from etl.errors import UsageError
from etl.when import instant_of, written

#: Berlin is two hours ahead; its clock goes back in the night of 2026-10-25.
NOW = datetime(2026, 5, 4, 22, 30, tzinfo=UTC)
BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    ("text", "zone", "is_end", "expected"),
    [
        ("90m", "UTC", False, "2026-05-04T21:00"),
        ("12h", BERLIN, False, "2026-05-04T10:30"),
        ("7d", "UTC", True, "2026-04-27T22:30"),
        ("2w", "UTC", False, "2026-04-20T22:30"),
        ("today", "UTC", False, "2026-05-04T00:00"),
        ("today", BERLIN, False, "2026-05-04T22:00"),  # there it is the 5th
        ("yesterday", "UTC", False, "2026-05-03T00:00"),
        ("yesterday", "UTC", True, "2026-05-04T00:00"),
        ("2026-05-01", "UTC", False, "2026-05-01T00:00"),
        ("2026-05-01", "UTC", True, "2026-05-02T00:00"),
        ("2026-05-01", BERLIN, False, "2026-04-30T22:00"),
        ("2026-10-25", BERLIN, False, "2026-10-24T22:00"),
        ("2026-10-25", BERLIN, True, "2026-10-25T23:00"),  # a day of 25 hours
        ("2026-05-01T10:00", BERLIN, True, "2026-05-01T08:00"),
        ("2026-05-01 10:00", "UTC", False, "2026-05-01T10:00"),
        ("2026-05-01T10:00:00Z", BERLIN, False, "2026-05-01T10:00"),
        (" 2026-05-01T10:00+05:00 ", "UTC", False, "2026-05-01T05:00"),
    ],
)
def test_a_text_means_an_instant(text: str, zone: str, is_end: bool, expected: str) -> None:  # noqa: FBT001
    assert instant_of(text, NOW, zone, is_end=is_end) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "soon", "7 d", "-7d", "2026-13-01", "2026-05-01T25:00", "0001-01-01", "7y"])
def test_what_is_no_instant_says_how_one_is_written(text: str) -> None:
    with pytest.raises(UsageError, match=r"is no instant: write a day \(2026-05-04\)"):
        instant_of(text, NOW, "Asia/Tokyo")


def test_a_zone_nobody_knows_is_named() -> None:
    with pytest.raises(UsageError, match="no time zone 'Mars/Olympus'"):
        instant_of("today", NOW, "Mars/Olympus")


@pytest.mark.parametrize(
    ("instant", "zone", "expected"),
    [
        ("2026-05-04T22:30", "UTC", "2026-05-04 22:30:00 UTC"),
        ("2026-05-04T22:30:09.999", BERLIN, "2026-05-05 00:30:09 Europe/Berlin"),
        ("0001-01-01", "America/New_York", "0001-01-01 00:00:00 UTC"),  # it is the year 0 there
        ("2026-05-04T22:30", "Mars/Olympus", "2026-05-04 22:30:00 UTC"),
    ],
)
def test_an_instant_is_written_on_the_clock_that_was_asked_for(instant: str, zone: str, expected: str) -> None:
    assert written(datetime.fromisoformat(instant).replace(tzinfo=UTC), zone) == expected
