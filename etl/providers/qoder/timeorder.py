"""In which order are the rows of a log taken, where its lines do not stand in the order of time?

Rows of one run are written by several hands, and collected logs are put together from pieces: a start may stand behind
its end. Each record is opened as it comes, once; what it says is told when the rows before it in time have been, for
as far as a window of rows reaches: memory does not follow the size of a log. Rows of one instant go by the log's own
number.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from etl.events import RecordOpened
from etl.shape import as_int

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from etl.events import Event

#: What stands further apart than so many rows, or bytes of rows, is taken in the order of its lines.
WINDOW_ROWS: Final = 4_096
WINDOW_BYTES: Final = 4 * 1024 * 1024


class _Held(NamedTuple):
    """A row that waits for its turn: its time, the log's own number, its place, and what it has still to say."""

    ts: int
    number: int
    arrived: int
    opened: RecordOpened
    rest: Iterator[Event]


def in_time_order(readings: Iterable[Iterator[Event]]) -> Iterator[Event]:
    """The events of readings, one for each record: the first event of each at once, the others in order of time.

    A row without a time is taken after the one before it.
    """
    held: list[_Held] = []
    size = ts = number = 0
    for arrived, reading in enumerate(readings):
        first = next(reading)
        yield first
        if not isinstance(first, RecordOpened):
            yield from reading
            continue
        if first.ts is not None:
            ts, number = first.ts, _own_number(first.value, number)
        heappush(held, _Held(ts, number, arrived, first, reading))
        size += len(first.raw)
        while held and (len(held) > WINDOW_ROWS or size > WINDOW_BYTES):
            size -= len(held[0].opened.raw)
            yield from _told(heappop(held))
    while held:
        yield from _told(heappop(held))


def _own_number(value: dict[str, Any], before: int) -> int:
    number = as_int(value.get("seq"))
    return before if number is None else number


def _told(row: _Held) -> Iterator[Event]:
    """What a row says beside that it is there; most say nothing of their own."""
    for event in row.rest:
        if not row.opened.again:
            row.opened.again = True
            yield row.opened
        yield event
