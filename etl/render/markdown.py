"""How is a result written as a GitHub pipe table?

Session text is data there too: a pipe, a tag, a link or an image in it shows as what it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from etl.render.cells import cells, is_fixed
from etl.render.table import NO_ROWS
from etl.render.terminal import clean
from etl.render.values import batches, column_names, is_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

# What most cells are: nothing in it can be markup.
_is_plain = re.compile(r"[A-Za-z0-9 ,.:;/()-]*").fullmatch
_line_breaks = re.compile(r"\r\n|[\r\n]").split
# An underscore inside a word (``input_tokens``) is no markup and stays readable.
_MARKUP = re.compile(r"[\\`*\[\]<>|~$]|(?<![^\W_])_|_(?![^\W_])")


def pipe_table(table: pa.Table) -> Iterator[str]:
    """Header, alignment row and one line per row; without rows, ``(no rows)`` stands under the header."""
    if table.num_columns:
        yield _line([escaped(name) for name in column_names(table)])
        yield _line(["---:" if is_number(kind) else "---" for kind in table.schema.types])
    for batch in batches(table):
        columns = [_column(array) for array in batch.columns]
        yield "".join(map(_line, zip(*columns, strict=True)))
    if not table.num_rows:
        yield f"\n{NO_ROWS}\n"


def escaped(text: str) -> str:
    """The text as the content of one cell: markup escaped, line breaks as ``<br>``, no control characters."""
    if _is_plain(text):
        return text
    lines = (clean(line) for line in _line_breaks(text))
    return "<br>".join(_MARKUP.sub(r"\\\g<0>", line.replace("&", "&amp;")) for line in lines)


def _column(array: pa.Array) -> list[str]:
    return cells(array) if is_fixed(array.type) else [escaped(text) for text in cells(array)]


def _line(fields: Sequence[str]) -> str:
    return f"| {' | '.join(fields)} |\n"
