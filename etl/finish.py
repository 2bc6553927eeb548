"""How do gathered rows become Arrow tables that may be written to disk?

The order on every text: it is masked, then clipped, then digested (clipping first would cut a secret in half and leave
its head readable). Everything before this point, comparing included, worked on unmasked text in memory.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa

from etl.keys import digest64
from etl.mask import mask_series
from etl.schema import RESULT_CAP_BYTES, TABLES, arrow_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from etl.tables import Buffers

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


def finish(buffers: Buffers, key: bytes) -> dict[str, pa.Table]:
    """The Arrow tables of all gathered rows, and the redactions counted on the way; the buffers are empty after it.

    ``key`` is the user's fingerprint key (``facts.redactions``); it changes nothing else.
    """
    redactions: Counter[tuple[str, str, str, str]] = Counter()
    tables: dict[str, pa.Table] = {}
    for name, table in TABLES.items():
        if name == "redactions" or not len(buffers[name]):
            continue
        columns: Columns = dict(zip(table.names, buffers[name].take(), strict=True))
        for column in table.masked:
            _mask(name, column, columns, key, redactions)
        for column in _DIGEST_ONLY.get(name, ()):
            _mask(name, column, columns, key, redactions)
            columns[column] = [None if text is None else digest64(text) for text in columns[column]]
        _clip(name, columns)
        tables[name] = _arrow(name, columns)
    if redactions:
        rows = [[*place, number] for place, number in redactions.items()]
        source, column_name, rule, fingerprint, n = (list(values) for values in zip(*rows, strict=True))
        tables["redactions"] = _arrow(
            "redactions",
            {"source_id": source, "column_name": column_name, "rule": rule, "n": n, "fingerprint": fingerprint},
        )
    return tables


def _mask(
    table: str, column: str, columns: Columns, key: bytes, redactions: Counter[tuple[str, str, str, str]]
) -> None:
    values = columns[column]
    if column in _REPEATED:
        distinct: Sequence[str] = list(dict.fromkeys(value for value in values if value is not None))
    else:
        distinct = values
    masked, hits = mask_series(pl.Series(column, distinct, dtype=pl.String), key)
    if not hits:
        return
    replaced = masked.to_list()
    if column in _REPEATED:
        changed = _changed(column, distinct, replaced, {hit.row for hit in hits})
        rows_of: dict[str, list[int]] = {}
        for row, value in enumerate(values):
            if value in changed:
                rows_of.setdefault(value, []).append(row)
        for hit in hits:
            for row in rows_of[distinct[hit.row]]:
                redactions[columns["source_id"][row], f"{table}.{column}", hit.rule, hit.fingerprint] += 1
        columns[column] = [changed.get(value, value) for value in values]
        return
    columns[column] = replaced
    for hit in hits:
        redactions[columns["source_id"][hit.row], f"{table}.{column}", hit.rule, hit.fingerprint] += 1


def _changed(column: str, distinct: Sequence[str], replaced: Sequence[str], rows: set[int]) -> dict[str, str]:
    tail: Callable[[str], str] = (lambda text: f"~{digest64(text)}") if column in _KEYS else (lambda _: "")
    return {distinct[row]: replaced[row] + tail(distinct[row]) for row in rows}


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


def _arrow(name: str, columns: Columns) -> pa.Table:
    schema = arrow_schema(name)
    return pa.Table.from_arrays([pa.array(columns[field.name], field.type) for field in schema], schema=schema)
