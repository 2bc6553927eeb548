"""Which lines does a text log hold, on which line and at which byte?

The records of a log are its lines, whatever stands in them: a record's ``raw`` is the line and its ``value`` is empty.
Lines, blank lines, the line cap and the state of the tail are those of :mod:`etl.jsonl`; what a line means, and whether
it is torn, is the adapter's to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from etl.jsonl import Defect, JsonlReader, Record

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator


class LineReader(JsonlReader):
    """Iterate once over a binary stream: yields a `Record` for each line that is not blank, and `Defect`s of lines that
    are too long, or at which the read failed. Neither bad data nor a failing read raises.
    """

    def __iter__(self) -> Iterator[Record | Defect]:
        for item in super().__iter__():
            # a line that happens to be JSON is a line all the same
            yield item._replace(value={}) if isinstance(item, Record) else item

    def _odd(self, raw: bytes, line_no: int, offset: int) -> Iterator[Record | Defect]:
        if len(raw) > self._cap:
            yield from super()._odd(raw, line_no, offset)
        elif raw.strip():
            yield Record(line_no, 0, offset, len(raw), raw, {})
        else:
            self.blank_lines += 1

    def _unfinished(self, raw: bytes, offset: int) -> Generator[Record | Defect, None, str]:
        if self._failed:
            return (yield from super()._unfinished(raw, offset))
        yield from self._odd(raw, self.lines, offset)
        return "complete"
