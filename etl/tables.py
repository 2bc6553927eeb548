"""How are rows gathered before they become Arrow arrays?

A list per column, appended by a function without a loop, is the cheapest form found (dicts and row tuples cost more
time and twice the memory). One :class:`TableBuffer` per table of ``etl.schema``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from etl.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable

    from etl.schema import Table


def _adder(columns: list[list[Any]]) -> Callable[..., None]:
    """A function that appends one value to each list, written out so that a row costs no loop."""
    names = [f"v{n}" for n in range(len(columns))]
    body = "\n".join(f"        a{n}(v{n})" for n in range(len(columns)))
    appends = ", ".join(f"a{n}" for n in range(len(columns)))
    source = f"def make({appends}):\n    def add({', '.join(names)}):\n{body}\n    return add"
    scope: dict[str, Any] = {}
    exec(source, scope)  # noqa: S102 - the text is made of numbered names only
    add: Callable[..., None] = scope["make"](*(column.append for column in columns))
    return add


class TableBuffer:
    """The gathered rows of one table. ``add(*values)`` takes a value for every column, in the schema's order."""

    def __init__(self, table: Table) -> None:
        self.table: Final = table
        self.columns: list[list[Any]] = [[] for _ in table.columns]
        self.add: Callable[..., None] = _adder(self.columns)

    def __len__(self) -> int:
        return len(self.columns[0])

    def cut(self, length: int) -> None:
        """Drops every row after the first ``length``: those of a source that failed."""
        for column in self.columns:
            del column[length:]

    def take(self) -> list[list[Any]]:
        """The gathered columns; the buffer is empty afterwards."""
        taken, self.columns = self.columns, [[] for _ in self.table.columns]
        self.add = _adder(self.columns)
        return taken


class Buffers:
    """A buffer for every table."""

    def __init__(self) -> None:
        self.by_name: Final[dict[str, TableBuffer]] = {name: TableBuffer(table) for name, table in TABLES.items()}

    def __getitem__(self, name: str) -> TableBuffer:
        return self.by_name[name]

    def lengths(self) -> dict[str, int]:
        """How many rows each table holds now."""
        return {name: len(buffer) for name, buffer in self.by_name.items()}

    def cut(self, lengths: dict[str, int]) -> None:
        """Back to earlier lengths."""
        for name, length in lengths.items():
            self.by_name[name].cut(length)
