"""How do gathered values become typed Arrow columns?

Lists become arrays through polars where that is cheaper: texts take 42 ns a value so (70 ns by Arrow itself), numbers a
third. A column of nulls only, of which a wide table has many, takes nothing. Arithmetic is Arrow's: on a column of
polars each operation is planned like a query, which takes 0.2 ms however few the rows are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa

from etl.keys import BLOCK_SHIFT, CHILD_SHIFT, MIX_A, MIX_B, table_salt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from etl.tables import Taken

_BY_POLARS: Final[dict[pa.DataType, Any]] = {
    pa.string(): pl.String,
    pa.int64(): pl.Int64,
    pa.int32(): pl.Int32,
    pa.uint64(): pl.UInt64,
    pa.bool_(): pl.Boolean,
    pa.timestamp("us", tz="UTC"): pl.Int64,
}


def is_empty(values: Sequence[Any]) -> bool:
    """Are all values null?"""
    return not values or (values[0] is None and values.count(None) == len(values))


def strings(values: Sequence[str | None]) -> pl.Series:
    """A column of texts in the form in which they are masked, and then written."""
    return pl.Series(values, dtype=pl.String)


def array(values: list[Any] | pl.Series | pa.Array, kind: pa.DataType) -> pa.Array:
    """Values as an Arrow array of a type. Raises where a value is not of the type, or too large for it."""
    if isinstance(values, pa.Array):
        return values
    if isinstance(values, list):
        if is_empty(values):
            return pa.nulls(len(values), kind)
        try:
            values = pl.Series(values, dtype=_BY_POLARS[kind])
        except (KeyError, TypeError):  # another type, or a value that is not of it: Arrow says what is wrong
            return pa.array(values, kind)
    return values.to_arrow().cast(kind)


def places(table: str, rows: Taken) -> dict[str, pa.Array]:
    """The columns of a place out of line number and slot; the fact id as ``etl.keys.fact_id`` defines it."""
    import pyarrow.compute as pc  # noqa: PLC0415 - 8 MB that the loader, which imports this and runs none of it, spares

    salts: list[int] = []
    for source_id, number in rows.segments:
        salts += [table_salt(source_id, table)] * number
    line_no, slot = array(rows.columns["line_no"], pa.int64()), array(rows.columns["slot"], pa.int64())
    slot = slot.cast(pa.uint64())
    child, block = pc.shift_right(slot, _u64(CHILD_SHIFT)), pc.shift_right(slot, _u64(BLOCK_SHIFT))
    block = pc.bit_wise_and(block, _u64((1 << CHILD_SHIFT - BLOCK_SHIFT) - 1))
    is_block, before = pc.greater(block, _u64(0)), pc.subtract(block, _u64(1))
    keys, count = rows.row_keys, len(salts)
    salted = pc.bit_wise_xor(line_no.cast(pa.uint64()), array(salts, pa.uint64()))
    return {
        "fact_id": _mixed(pc.bit_wise_xor(_mixed(salted), slot)),
        "source_id": _repeated(rows.segments),
        "line_no": line_no,
        "row_key": pa.array([keys.get(row) for row in range(count)] if keys else pa.nulls(count), pa.string()),
        "child": child.cast(pa.int32()),
        "block": pc.if_else(is_block, before, None).cast(pa.int32()),
    }


def _repeated(segments: Sequence[tuple[str, int]]) -> pa.Array:
    return pa.concat_arrays([pa.repeat(pa.scalar(value, pa.string()), number) for value, number in segments])


def _mixed(x: pa.Array) -> pa.Array:
    """splitmix64's finaliser over a column of 64-bit numbers (multiplication wraps)."""
    import pyarrow.compute as pc  # noqa: PLC0415 - as above

    for shift, factor in ((30, MIX_A), (27, MIX_B)):
        x = pc.multiply(pc.bit_wise_xor(x, pc.shift_right(x, _u64(shift))), _u64(factor))
    return pc.bit_wise_xor(x, pc.shift_right(x, _u64(31)))


def _u64(number: int) -> pa.Scalar:
    return pa.scalar(number, pa.uint64())
