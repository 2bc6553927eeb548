"""In which order are the records of a log read that numbers them itself?

By its numbers: of each stream the lines that it has are given out again in the order of the numbers; what has no number
keeps its place. A log may be merged, or sorted by a clock, and an adapter that follows turns and calls line by line is
wrong then. Memory does not follow the size of the file: it is looked through beforehand (an eighth of the time of an
extraction), and where lines are out of order they go through a scratch file, of which the places alone are kept.
"""

from __future__ import annotations

import tempfile
from array import array
from typing import TYPE_CHECKING, Any

from etl.decode import decode_line
from etl.filebytes import open_regular
from etl.jsonl import Defect, JsonlReader, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    #: The stream that a record is of, and its number in it; None where it states none.
    Numbered = Callable[[Mapping[str, Any]], tuple[str, int] | None]
    Item = Record | Defect


def in_sequence(items: Iterator[Item], numbered: Numbered, path: str, scratch: str) -> Iterator[Item]:
    """The records of the file at ``path`` in the order of their numbers, and what could not be read of it.

    ``items`` are those of its one reader, in file order; ``scratch`` is a folder for lines that are out of order.
    """
    return items if _stands_in_order(path, numbered) else _reordered(items, numbered, scratch)


def _stands_in_order(path: str, numbered: Numbered) -> bool:
    """Do the lines of a file stand in the order of their numbers, as they should? A line is told by its first record.

    What is written to the file after this look comes as it stands; the next load finds the file changed.
    """
    last: dict[str, int] = {}
    try:
        with open_regular(path) as stream:
            for item in JsonlReader(stream):
                told = numbered(item.value) if isinstance(item, Record) and item.child == 0 else None
                if told is not None:
                    if told[1] < last.get(told[0], told[1]):
                        return False
                    last[told[0]] = told[1]
    except OSError:  # gone since it was opened
        pass
    return True


class _Lines:
    """The lines of a file as far as their order goes: of each its number, and of each stream its lines."""

    def __init__(self, numbered: Numbered) -> None:
        self._numbered = numbered
        self._numbers = array("q")
        self._streams: dict[str, array[int]] = {}

    def add(self, value: Mapping[str, Any]) -> None:
        """The next line, by its first record."""
        told = self._numbered(value)
        if told is not None:
            self._streams.setdefault(told[0], array("q")).append(len(self._numbers))
        self._numbers.append(0 if told is None else told[1])

    def order(self) -> array[int]:
        """Which line comes in each place; of equal numbers the earlier line first."""
        order = array("q", range(len(self._numbers)))
        for lines in self._streams.values():
            for place, line in zip(lines, sorted(lines, key=self._numbers.__getitem__), strict=True):
                order[place] = line
        return order


def _reordered(items: Iterator[Item], numbered: Numbered, scratch: str) -> Iterator[Item]:
    """First what could not be read, then the records in order, read again from a file without a name."""
    lines = _Lines(numbered)
    first, places = array("q"), array("q")
    with tempfile.TemporaryFile(dir=scratch) as spool:
        last = 0
        for item in items:
            if isinstance(item, Defect):
                yield item
                continue
            if item.line_no != last:
                lines.add(item.value)
                first.append(len(places))
                last = item.line_no
            places.extend((item.line_no, item.child, item.offset, item.length, spool.tell(), len(item.raw)))
            spool.write(item.raw)
        first.append(len(places))
        for n in lines.order():
            for at in range(first[n], first[n + 1], 6):
                line_no, child, offset, length, start, size = places[at : at + 6]
                spool.seek(start)
                raw = spool.read(size)
                value = decode_line(raw)[0]
                if value is not None:  # as it was when it was read first
                    yield Record(line_no, child, offset, length, raw, value)
