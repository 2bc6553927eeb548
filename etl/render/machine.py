"""How is a result written for programs: JSON, JSON Lines and CSV?

Keys stand in the order of the columns. JSON is strict (no NaN), one row a line. CSV is RFC 4180 with LF: header, quotes
where needed. There NULL is an empty field and an empty string is ``""``: a reader who cares can tell them apart.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from etl.render.values import batches, column_names, literals, object_template, texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

_CSV_END = "\n"
_needs_quotes = re.compile(r'[",\r\n]').search


def json_lines(table: pa.Table) -> Iterator[str]:
    """One object a line."""
    for rows in _objects(table):
        yield "\n".join(rows) + "\n"


def json_array(table: pa.Table) -> Iterator[str]:
    """One array of objects, one object a line; ``[]`` when there are no rows."""
    if not table.num_rows:
        yield "[]\n"
        return
    yield "[\n"
    left = table.num_rows
    for rows in _objects(table):
        left -= len(rows)
        yield ",\n".join(rows) + (",\n" if left else "\n")
    yield "]\n"


def csv_lines(table: pa.Table) -> Iterator[str]:
    """RFC 4180 with a header and LF (a shell would keep a CR). Numbers are as in JSON, nested values JSON text."""
    if not table.num_columns:
        return
    yield ",".join(map(_quoted, column_names(table))) + _CSV_END
    # A line with nothing on it is no row for many readers.
    null = '""' if table.num_columns == 1 else ""
    for batch in batches(table):
        columns = [_fields(column, null) for column in batch.columns]
        yield _CSV_END.join(map(",".join, zip(*columns, strict=True))) + _CSV_END


def _objects(table: pa.Table) -> Iterator[list[str]]:
    template = object_template(column_names(table))
    for batch in batches(table):
        yield [template % row for row in zip(*map(literals, batch.columns), strict=True)]


def _fields(column: pa.Array, null: str) -> list[str]:
    return [null if text is None else _quoted(text) for text in texts(column)]


def _quoted(text: str) -> str:
    if text and not _needs_quotes(text):
        return text
    return '"' + text.replace('"', '""') + '"'
