"""How is a result laid out for people at a terminal?

Aligned columns; where the width does not suffice for what must stay whole, one ``column: value`` block per row. No line
is ever wider than the width: text is cut with ``…``, a number that alone is wider is wrapped.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from etl.render.cells import cells, is_fixed
from etl.render.terminal import ELLIPSIS, cell_width, clean, cut, pad
from etl.render.values import batches, column_names, is_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

NO_ROWS = "(no rows)"

_GAP = "  "
_RULE = "─"
_NARROWEST = 20
_TEXT_FLOOR, _HEADER_FLOOR = 8, 6
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


@dataclass(frozen=True)
class Column:
    """A column's name and its needs in terminal cells.

    ``natural`` cells show everything; less than ``floor`` would say nothing or mislead.
    """

    name: str
    number: bool
    fixed: bool
    natural: int
    floor: int


def table_lines(table: pa.Table, *, width: int | None, color: bool) -> Iterator[str]:
    """Header, rule and rows; the rows are gone through twice (to measure, to write), never all of them text at once."""
    limit = None if width is None else max(width, _NARROWEST)
    columns = _measured(table, limit)
    widths = fitted(columns, limit)
    if widths is None:
        yield from _blocks(table, columns, limit or _NARROWEST)
        return
    if columns:
        header = _GAP.join(_heading(*pair) for pair in zip(columns, widths, strict=True)).rstrip()
        yield (f"{_BOLD}{header}{_PLAIN}" if color else header) + "\n"
        yield _GAP.join(_RULE * cells_wide for cells_wide in widths) + "\n"
    for batch in batches(table):
        aligned = [_aligned(*parts, limit) for parts in zip(columns, widths, batch.columns, strict=True)]
        yield "".join(_GAP.join(row).rstrip() + "\n" for row in zip(*aligned, strict=True))
    if not table.num_rows:
        yield NO_ROWS + "\n"


def fitted(columns: Sequence[Column], limit: int | None) -> list[int] | None:
    """The width of every column, or ``None`` when not even the floors fit.

    What is too long is cut to one common width: no column pays for another.
    """
    natural = [column.natural for column in columns]
    if limit is None or not columns:
        return natural
    space = limit - len(_GAP) * (len(columns) - 1)
    if sum(natural) <= space:
        return natural
    if sum(column.floor for column in columns) > space:
        return None
    low, high = 0, max(natural)
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if sum(_capped(columns, middle)) <= space else (low, middle)
    widths = _capped(columns, low)
    for place, column in enumerate(columns):  # less than one cell per cut column is left over: the first ones get it
        if sum(widths) < space and widths[place] < column.natural:
            widths[place] += 1
    return widths


def _capped(columns: Sequence[Column], cap: int) -> list[int]:
    return [max(column.floor, min(column.natural, cap)) for column in columns]


def _measured(table: pa.Table, limit: int | None) -> list[Column]:
    longest = [0] * table.num_columns
    for batch in batches(table):
        for place, array in enumerate(batch.columns):
            longest[place] = max(longest[place], *map(cell_width, _shown(array, limit)))
    names = [clean(name) for name in column_names(table)]
    return [_column(name, kind, value) for name, kind, value in zip(names, table.schema.types, longest, strict=True)]


def _column(name: str, kind: pa.DataType, longest: int) -> Column:
    header = cell_width(name)
    natural, fixed = max(header, longest, 1), is_fixed(kind)
    floor = max(longest, min(header, _HEADER_FLOOR), 1) if fixed else min(natural, _TEXT_FLOOR)
    return Column(name=name, number=is_number(kind), fixed=fixed, natural=natural, floor=floor)


def _shown(array: pa.Array, limit: int | None) -> list[str]:
    """The clean cells of a column; of a text of many screens only the part that can be seen is looked at."""
    written = cells(array)
    if is_fixed(array.type):
        return written
    if limit is not None:
        most = 8 * limit  # room for what cleaning takes away and for combining marks
        written = [text if len(text) <= most else text[:most] + ELLIPSIS for text in written]
    return list(map(clean, written))


def _rows(table: pa.Table, limit: int | None) -> Iterator[Iterator[tuple[str, ...]]]:
    for batch in batches(table):
        yield zip(*(_shown(array, limit) for array in batch.columns), strict=True)


def _heading(column: Column, width: int) -> str:
    name = cut(column.name, width)
    return " " * (width - cell_width(name)) + name if column.number else pad(name, width)


def _aligned(column: Column, width: int, array: pa.Array, limit: int | None) -> list[str]:
    shown = _shown(array, limit)
    if column.fixed:  # all of it is ASCII and fits
        return [text.rjust(width) if column.number else text.ljust(width) for text in shown]
    return [pad(cut(text, width), width) for text in shown]


def _blocks(table: pa.Table, columns: Sequence[Column], limit: int) -> Iterator[str]:
    """One block per row: a numbered rule, then a line per column with the values aligned."""
    label_width = min(max(cell_width(column.name) for column in columns), limit // 2 - 2)
    labels = [cut(column.name, label_width) + ":" for column in columns]
    numbers = count(1)
    for rows in _rows(table, limit):
        for row in rows:
            lines = [f"{_RULE * 2} {next(numbers)} {_RULE * 2}"]
            for column, label, text in zip(columns, labels, row, strict=True):
                lines += _entry(column, pad(label, label_width + 2), text, limit)
            yield "".join(f"{line.rstrip()}\n" for line in lines)
    if not table.num_rows:
        yield "".join(f"{label}\n" for label in labels) + NO_ROWS + "\n"


def _entry(column: Column, label: str, text: str, limit: int) -> list[str]:
    space = limit - cell_width(label)
    if not column.fixed:
        return [label + cut(text, space)]
    if len(text) <= space:
        return [label + text]
    return [label] + [text[start : start + limit] for start in range(0, len(text), limit)]
