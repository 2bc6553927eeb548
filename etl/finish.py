"""How do gathered rows become Arrow tables that may be written to disk?

The order on every text: it is masked, then clipped, then digested (clipping first would cut a secret in half and leave
its head readable). Everything before this point, comparing included, worked on unmasked text in memory.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa

from etl.keys import BLOCK_SHIFT, CHILD_SHIFT, MIX_A, MIX_B, digest64, table_salt
from etl.mask import mask_series
from etl.schema import RESULT_CAP_BYTES, TABLES, arrow_schema

if TYPE_CHECKING:
    from etl.tables import Buffers, Taken

#: Columns that rows are joined by: a masked value keeps a digest so that different ids stay different.
_KEYS: Final = frozenset(
    [
        "session_id",
        "call_key",
        "parent_call_key",
        "message_key",
        "native_uuid",
        "parent_uuid",
        "logical_parent_uuid",
        "origin_session_id",
        "origin_uuid",
        "native_turn_id",
        "request_key",
        "batch_key",
        "batch_id",
        "native_session_id",
        "file_native_id",
        "item_id",
        "id",
        "uuid",
        "message_id",
        "request_id",
    ]
)
#: Columns of few different values: masked once per value.
_REPEATED: Final = _KEYS | frozenset(
    {"name", "name_raw", "model", "kind", "record_kind", "agent", "mcp_server", "stop_reason"}
)

_CLIPPED: Final[dict[tuple[str, str], int]] = {
    ("events", "summary"): 200,
    ("tool_requests", "command_head"): 200,
    ("tool_requests", "target_path"): 4_096,
    ("rejects", "head"): 200,
    ("record_census", "kind"): 100,
    ("content_blocks", "block_type"): 100,
}
#: digest column -> the column it digests, after masking and clipping
_DIGESTED: Final[dict[str, str]] = {"dialogue": "text", "tool_requests": "args", "tool_results": "result_text"}
#: columns that hold a whole text up to here, of which only the digest is stored
_DIGEST_ONLY: Final[dict[str, tuple[str, ...]]] = {
    "conflicts": ("digest", "other_digest"),
    "sources": ("head_digest",),
}

Columns = dict[str, list[Any]]
Redactions = Counter[tuple[str, str, str, str]]


def finish(buffers: Buffers, key: bytes) -> dict[str, pa.Table]:
    """The Arrow tables of all gathered rows, and the redactions counted on the way; the buffers are empty after it.

    ``key`` is the user's fingerprint key (``facts.redactions``); it changes nothing else.
    """
    taken = {name: buffers[name].take() for name in TABLES if name != "redactions" and len(buffers[name])}
    redactions: Redactions = Counter()
    sources = {name: _source_ids(rows) for name, rows in taken.items()}
    _mask_repeated(taken, sources, key, redactions)
    _mask_texts(taken, sources, key, redactions)
    tables: dict[str, pa.Table] = {}
    for name, rows in taken.items():
        for column in _DIGEST_ONLY.get(name, ()):
            rows.columns[column] = [None if text is None else digest64(text) for text in rows.columns[column]]
        _clip(name, rows.columns)
        tables[name] = _arrow(name, rows, sources[name])
    if redactions:
        places = [[*place, number] for place, number in redactions.items()]
        source, column_name, rule, fingerprint, n = (list(values) for values in zip(*places, strict=True))
        columns = {"source_id": source, "column_name": column_name, "rule": rule, "n": n, "fingerprint": fingerprint}
        tables["redactions"] = pa.table(columns, schema=arrow_schema("redactions"))
    return tables


def _source_ids(rows: Taken) -> list[str]:
    """The source of each row."""
    if "source_id" in rows.columns:
        return rows.columns["source_id"]
    ids: list[str] = []
    for source_id, number in rows.segments:
        ids += [source_id] * number
    return ids


def _masked_columns(taken: dict[str, Taken], *, repeated: bool) -> list[tuple[str, str]]:
    """(table, column) of the columns to mask: those of few different values, or the texts."""
    return [
        (name, column)
        for name, rows in taken.items()
        for column in (*TABLES[name].masked, *_DIGEST_ONLY.get(name, ()))
        if (column in _REPEATED) == repeated and column in rows.columns
    ]


def _mask_repeated(taken: dict[str, Taken], sources: dict[str, list[str]], key: bytes, redactions: Redactions) -> None:
    """Columns of few different values: each value is masked once. A masked id keeps a digest, so that different ids
    stay different.
    """
    places = _masked_columns(taken, repeated=True)
    distinct = sorted({value for name, column in places for value in taken[name].columns[column] if value is not None})
    masked, hits = mask_series(pl.Series(distinct, dtype=pl.String), key)
    if not hits:
        return
    changed = {distinct[hit.row]: masked[hit.row] for hit in hits}
    found: dict[str, list[tuple[str, str]]] = {}
    for hit in hits:
        found.setdefault(distinct[hit.row], []).append((hit.rule, hit.fingerprint))
    for name, column in places:
        values = taken[name].columns[column]
        for row, value in enumerate(values):
            if value in changed:
                values[row] = changed[value] + (f"~{digest64(value)}" if column in _KEYS else "")
                for rule, fingerprint in found[value]:
                    redactions[sources[name][row], f"{name}.{column}", rule, fingerprint] += 1


def _mask_texts(taken: dict[str, Taken], sources: dict[str, list[str]], key: bytes, redactions: Redactions) -> None:
    """Texts: all columns of all tables in one pass."""
    places = _masked_columns(taken, repeated=False)
    texts: list[str | None] = []
    owners: list[tuple[str, str, int]] = []
    for name, column in places:
        owners.append((name, column, len(texts)))
        texts += taken[name].columns[column]
    masked, hits = mask_series(pl.Series(texts, dtype=pl.String), key)
    number = 0
    for hit in hits:  # in the order of rows
        while number + 1 < len(owners) and hit.row >= owners[number + 1][2]:
            number += 1
        name, column, start = owners[number]
        row = hit.row - start
        taken[name].columns[column][row] = masked[hit.row]
        redactions[sources[name][row], f"{name}.{column}", hit.rule, hit.fingerprint] += 1


def _clip(table: str, columns: Columns) -> None:
    if table == "tool_results":
        _clip_results(columns)
    if table == "rejects":
        heads, digests = columns["head"], columns["digest"]
        columns["digest"] = [
            digest if digest or head is None else digest64(head) for head, digest in zip(heads, digests, strict=True)
        ]
    for (owner, column), limit in _CLIPPED.items():
        if owner == table:
            columns[column] = [
                text if text is None or len(text) <= limit else text[: limit - 1] + "…" for text in columns[column]
            ]
    if table in _DIGESTED:
        texts = columns[_DIGESTED[table]]
        columns["digest"] = [None if text is None else digest64(text) for text in texts]


def _clip_results(columns: Columns) -> None:
    """Results over the cap keep head and tail; the flag says so, ``result_bytes`` is the whole size."""
    texts = columns["result_text"]
    for row, text in enumerate(texts):
        if text is not None and len(text) > RESULT_CAP_BYTES // 4:
            raw = text.encode()
            if len(raw) > RESULT_CAP_BYTES:
                half = RESULT_CAP_BYTES // 2
                head, tail = raw[:half].decode(errors="ignore"), raw[-half:].decode(errors="ignore")
                texts[row] = f"{head}\n[… {len(raw) - 2 * half} bytes left out …]\n{tail}"
                columns["result_truncated"][row] = True


def _arrow(name: str, rows: Taken, sources: list[str]) -> pa.Table:
    schema = arrow_schema(name)
    columns: dict[str, Any] = dict(rows.columns)
    if "slot" in columns:
        columns |= _places(name, rows, sources)
    return pa.Table.from_arrays([_array(columns[field.name], field.type) for field in schema], schema=schema)


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, kind)


def _places(name: str, rows: Taken, sources: list[str]) -> dict[str, Any]:
    """The columns of a place out of line number and slot; the fact id as ``etl.keys.fact_id`` defines it."""
    salts: list[int] = []
    for source_id, number in rows.segments:
        salts += [table_salt(source_id, name)] * number
    line, slot = pl.col("line").cast(pl.UInt64), pl.col("slot")
    block = slot // (1 << BLOCK_SHIFT) % (1 << (CHILD_SHIFT - BLOCK_SHIFT))
    frame = pl.DataFrame(
        {
            "line": pl.Series(rows.columns["line_no"], dtype=pl.Int64),
            "slot": pl.Series(rows.columns["slot"], dtype=pl.UInt64),
            "salt": pl.Series(salts, dtype=pl.UInt64),
        }
    ).select(
        fact_id=_mixed(_mixed(line ^ pl.col("salt")) ^ slot),
        child=(slot // (1 << CHILD_SHIFT)).cast(pl.Int32),
        block=pl.when(block > 0).then(block.cast(pl.Int64) - 1).cast(pl.Int32),
    )
    columns: dict[str, Any] = {column: frame[column].to_arrow() for column in frame.columns}
    keys = rows.row_keys
    columns["row_key"] = [keys.get(row) for row in range(len(sources))] if keys else pa.nulls(len(sources), pa.string())
    columns["source_id"] = sources
    return columns


def _mixed(x: pl.Expr) -> pl.Expr:
    """splitmix64's finaliser over a column of 64-bit numbers (multiplication wraps)."""
    for shift, factor in ((30, MIX_A), (27, MIX_B)):
        x = (x ^ x // (1 << shift)) * pl.lit(factor, dtype=pl.UInt64)
    return x ^ x // (1 << 31)
