"""How are rows gathered before they become Arrow arrays?

A list per column, appended by a function without a loop, is the cheapest form found (dicts and row tuples cost more
time and twice the memory). What is the same for all rows of a source is kept once per source, and a row's place in its
line is one number. One :class:`TableBuffer` per table of ``etl.schema``.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from etl.schema import PROVENANCE, TABLES

if TYPE_CHECKING:
    from collections.abc import Callable

    from etl.schema import Table

#: The columns of a row's place, which are gathered as line number and slot only.
PLACE_COLUMNS: Final = tuple(word.partition(":")[0] for word in PROVENANCE.split())


class Taken(NamedTuple):
    """The gathered rows of a table: columns by name, with ``line_no`` and ``slot`` for the place where the table has
    one; ``segments`` are (source id, number of rows); ``row_keys`` the keys of database rows by row number.
    """

    columns: dict[str, list[Any]]
    segments: list[tuple[str, int]]
    row_keys: dict[int, str]


@cache
def _adder_of(width: int) -> Callable[..., Callable[..., None]]:
    """Makes of ``width`` functions one that gives a value to each, written out so that a row costs no loop."""
    names = [f"v{n}" for n in range(width)]
    body = "\n".join(f"        a{n}(v{n})" for n in range(width))
    appends = ", ".join(f"a{n}" for n in range(width))
    source = f"def make({appends}):\n    def add({', '.join(names)}):\n{body}\n    return add"
    scope: dict[str, Any] = {}
    exec(source, scope)  # noqa: S102 - the text is made of numbered names only
    make: Callable[..., Callable[..., None]] = scope["make"]
    return make


class TableBuffer:
    """The gathered rows of one table.

    ``add`` takes a value for every column in the schema's order. In a table that begins with a place it takes line
    number and slot instead of the place's columns; the source is that of the last :meth:`begin`.
    """

    def __init__(self, table: Table) -> None:
        self.table: Final = table
        self.has_place: Final = table.names[: len(PLACE_COLUMNS)] == PLACE_COLUMNS
        self.names: Final = ("line_no", "slot", *table.names[len(PLACE_COLUMNS) :]) if self.has_place else table.names
        self._reset()

    def _reset(self) -> None:
        self.columns: list[list[Any]] = [[] for _ in self.names]
        self.add = _adder_of(len(self.columns))(*(column.append for column in self.columns))
        self.starts: list[tuple[str, int]] = []
        self.row_keys: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.columns[0])

    def begin(self, source_id: str) -> None:
        """The rows that follow are of this source."""
        self.starts.append((source_id, len(self)))

    def cut(self, length: int) -> None:
        """Drops every row after the first ``length``: those of a source that failed."""
        for column in self.columns:
            del column[length:]
        self.starts = [(source_id, min(start, length)) for source_id, start in self.starts]
        self.row_keys = {row: key for row, key in self.row_keys.items() if row < length}

    def take(self) -> Taken:
        """The gathered rows; the buffer is empty afterwards, and further rows are of the last source."""
        ends = [start for _, start in self.starts[1:]] + [len(self)] * bool(self.starts)
        segments = [(source_id, end - start) for (source_id, start), end in zip(self.starts, ends, strict=True)]
        taken = Taken(dict(zip(self.names, self.columns, strict=True)), segments, self.row_keys)
        last = self.starts[-1:]
        self._reset()
        self.starts = [(source_id, 0) for source_id, _ in last]
        return taken


class Buffers:
    """A buffer for every table."""

    def __init__(self) -> None:
        self.by_name: Final[dict[str, TableBuffer]] = {name: TableBuffer(table) for name, table in TABLES.items()}

    def __getitem__(self, name: str) -> TableBuffer:
        return self.by_name[name]

    def begin(self, source_id: str) -> None:
        """The rows that follow are of this source."""
        for buffer in self.by_name.values():
            if buffer.has_place:
                buffer.begin(source_id)

    def lengths(self) -> dict[str, int]:
        """How many rows each table holds now."""
        return {name: len(buffer) for name, buffer in self.by_name.items()}

    def cut(self, lengths: dict[str, int]) -> None:
        """Back to earlier lengths."""
        for name, length in lengths.items():
            self.by_name[name].cut(length)
