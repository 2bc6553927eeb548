"""Is every line of a source accounted for: used, skipped, unknown, rejected, blank or pending?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from etl.tables import Buffers

#: A line that holds several glued records counts by the best of them.
_RANK: Final = {"used": 3, "skipped": 2, "unknown": 1, "rejected": 0}


@dataclass(slots=True)
class _Tally:
    """Records of one disposition and kind, and the lines that count by them, each with the first line of its kind."""

    disposition: str
    records: int = 0
    first_record: int = 0
    lines: int = 0
    first_line: int = 0


class Census:
    """Counts of one source by unit, disposition and kind, with the first line of each."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], list[int]] = {}
        self._records: dict[tuple[str, str], _Tally] = {}
        self._line = 0
        self._best: _Tally | None = None
        self.rejected_lines = 0

    def count(self, unit: str, disposition: str, kind: str, line_no: int) -> None:
        """One more of a unit (``line`` or ``item``)."""
        known = self._counts.get((unit, disposition, kind))
        if known is None:
            self._counts[unit, disposition, kind] = [1, line_no]
        else:
            known[0] += 1
            known[1] = min(known[1], line_no)

    def record(self, disposition: str, kind: str, line_no: int) -> None:
        """A decoded record; its line is settled when the next line begins."""
        tally = self._records.get((disposition, kind))
        if tally is None:
            tally = self._records[disposition, kind] = _Tally(disposition, 0, line_no)
        elif line_no < tally.first_record:  # records may come in another order than their lines
            tally.first_record = line_no
        tally.records += 1
        if line_no != self._line:
            self.settle()
            self._line, self._best = line_no, tally
        elif self._best is None or _RANK[disposition] > _RANK[self._best.disposition]:
            self._best = tally

    def settle(self) -> None:
        """Counts the line whose records were seen last."""
        best = self._best
        if best is not None:
            best.lines += 1
            if not best.first_line or self._line < best.first_line:
                best.first_line = self._line
            self._best = None

    def lost_line(self, reason: str, line_no: int) -> None:
        """A line that gave no object. A torn tail is pending: the writer may be in the middle of it."""
        self.rejected_lines += 1
        self.count("line", "pending" if reason == "partial_tail" else "rejected", reason, line_no)

    def blank_lines(self, number: int) -> None:
        """The blank lines, which the reader counts."""
        if number:
            self._counts["line", "blank", "blank"] = [number, 0]

    def write(self, buffers: Buffers, source_id: str) -> None:
        """Rows of ``facts.record_census``."""
        add = buffers["record_census"].add
        for (disposition, kind), tally in self._records.items():
            add(source_id, "record", disposition, kind, tally.records, tally.first_record or None)
            if tally.lines:
                known = self._counts.pop(("line", disposition, kind), [0, tally.first_line])
                first = min(known[1], tally.first_line)
                add(source_id, "line", disposition, kind, tally.lines + known[0], first or None)
        for (unit, disposition, kind), (number, first_line) in self._counts.items():
            add(source_id, unit, disposition, kind, number, first_line or None)
