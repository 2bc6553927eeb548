"""How do gathered values become typed Arrow columns?

Lists become arrays through polars where that is cheaper: texts take 42 ns a value so (70 ns by Arrow itself), numbers a
third. A column of nulls only, of which a wide table has many, takes nothing. Nothing of ``pyarrow.compute`` is used (a
cast would be): it takes 8 MB of each worker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa

from etl.keys import BLOCK_SHIFT, CHILD_SHIFT, MIX_A, MIX_B, table_salt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from etl.tables import Taken

#: How polars holds a type, and what it becomes before it goes to Arrow where that is another one.
_BY_POLARS: Final[dict[pa.DataType, tuple[Any, Any]]] = {
    pa.string(): (pl.String, None),
    pa.int64(): (pl.Int64, None),
    pa.int32(): (pl.Int32, None),
    pa.bool_(): (pl.Boolean, None),
    pa.timestamp("us", tz="UTC"): (pl.Int64, pl.Datetime("us", "UTC")),
}


def is_empty(values: Sequence[Any]) -> bool:
    """Are all values null?"""
    return not values or (values[0] is None and values.count(None) == len(values))


def strings(values: Sequence[str | None]) -> pl.Series:
    """A column of texts in the form in which they are masked, and then written."""
    return pl.Series(values, dtype=pl.String)


def array(values: list[Any] | pl.Series, kind: pa.DataType) -> pa.Array:
    """Values as an Arrow array of a type (of texts: ``large_string``, the same in a file). Raises where a value
    is not of the type, or too large for it.
    """
    if isinstance(values, pl.Series):
        return values.to_arrow()
    if is_empty(values):
        return pa.nulls(len(values), kind)
    if kind not in _BY_POLARS:
        return pa.array(values, kind)
    held, stored = _BY_POLARS[kind]
    try:
        series = pl.Series(values, dtype=held)
    except TypeError:  # Arrow says what is wrong
        return pa.array(values, kind)
    return (series if stored is None else series.cast(stored)).to_arrow()


def places(table: str, rows: Taken) -> dict[str, pa.Array]:
    """The columns of a place out of line number and slot; the fact id as ``etl.keys.fact_id`` defines it.

    In two queries: polars plans one in 0.2 ms, but one with both mixings in it, each step twice in the next, in 8 ms.
    """
    salts: list[int] = []
    for source_id, number in rows.segments:
        salts += [table_salt(source_id, table)] * number
    line, slot, block = pl.col("line_no"), pl.col("slot"), pl.col("block")
    mixed = pl.DataFrame(
        {
            "line_no": pl.Series(rows.columns["line_no"], dtype=pl.Int64),
            "slot": pl.Series(rows.columns["slot"], dtype=pl.UInt64),
            "salt": pl.Series(salts, dtype=pl.UInt64),
        }
    ).select(
        line,
        slot,
        half=_mixed(line.cast(pl.UInt64) ^ pl.col("salt")),
        child=(slot // (1 << CHILD_SHIFT)).cast(pl.Int32),
        block=(slot // (1 << BLOCK_SHIFT) % (1 << (CHILD_SHIFT - BLOCK_SHIFT))).cast(pl.Int32),
    )
    frame = mixed.select(line, "child", fact_id=_mixed(pl.col("half") ^ slot), block=pl.when(block > 0).then(block - 1))
    columns: dict[str, pa.Array] = {column: frame[column].to_arrow() for column in frame.columns}
    keys, count = rows.row_keys, len(salts)
    columns["source_id"] = _repeated(rows.segments)
    columns["row_key"] = array([keys.get(row) for row in range(count)] if keys else [None] * count, pa.string())
    return columns


def _repeated(segments: Sequence[tuple[str, int]]) -> pa.Array:
    return pa.concat_arrays([pa.repeat(pa.scalar(value, pa.string()), number) for value, number in segments])


def _mixed(x: pl.Expr) -> pl.Expr:
    """splitmix64's finaliser over a column of 64-bit numbers (multiplication wraps)."""
    for shift, factor in ((30, MIX_A), (27, MIX_B)):
        x = (x ^ x // (1 << shift)) * pl.lit(factor, dtype=pl.UInt64)
    return x ^ x // (1 << 31)
