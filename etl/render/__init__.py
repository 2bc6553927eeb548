"""How does the result of a query become text on stdout?

``json``, ``jsonl`` and ``csv`` are for programs and lose nothing (:mod:`etl.render.machine`); ``table`` and
``markdown`` are for people and shorten (:mod:`etl.render.table`, :mod:`etl.render.markdown`). The result is a
``pyarrow.Table``; DuckDB 2 gives one by ``to_arrow_table()`` (its ``arrow()`` became a reader). Nothing here imports an
engine, and pyarrow is imported only when something is rendered.

DuckDB 2.0.1 hands three types to Arrow with a loss that no renderer can undo, unless the connection ran
``SET arrow_lossless_conversion = true``: UHUGEINT of 2**127 and more turns negative, TIMETZ loses its offset, BIT
becomes bytes. Both ways of handing over are understood.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from etl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

FORMATS = ("table", "json", "jsonl", "csv", "markdown")


def render(table: pa.Table, fmt: str, *, width: int | None = None, color: bool = False) -> Iterator[str]:
    """Pieces of text, each ending in a newline; only a few megabytes of the result are text at any time.

    ``width`` is the number of terminal cells that ``table`` may use: no line is wider (``None``: no limit, nothing is
    cut; less than 20 counts as 20). ``color`` makes the header of ``table`` bold. The other formats ignore both.

    :raises UsageError: at once, when ``fmt`` is not one of :data:`FORMATS`.
    """
    # Imported here: --help names the formats and needs nothing else.
    from etl.render import machine, markdown
    from etl.render import table as for_people

    if fmt == "table":
        return for_people.table_lines(table, width=width, color=color)
    writers = {
        "json": machine.json_array,
        "jsonl": machine.json_lines,
        "csv": machine.csv_lines,
        "markdown": markdown.pipe_table,
    }
    if fmt not in writers:
        raise UsageError(f"unknown format {fmt!r}: one of {', '.join(FORMATS)}")
    return writers[fmt](table)
