"""How is a result that does not fit into memory written for programs?

As :mod:`etl.render.machine` writes a table, batch by batch: JSON Lines, and CSV with one header.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

from etl.errors import UsageError
from etl.render.machine import csv_lines, json_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FORMATS = ("csv", "jsonl")


def render_stream(schema: pa.Schema, batches: Iterable[pa.RecordBatch], fmt: str) -> Iterator[str]:
    """Pieces of text, each ending in a newline. Raises UsageError for a format that is not one of ``FORMATS``."""
    if fmt not in FORMATS:
        raise UsageError(f"unknown format {fmt!r}: one of {', '.join(FORMATS)}")
    return _csv(schema, batches) if fmt == "csv" else _jsonl(schema, batches)


def _jsonl(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    for batch in batches:
        yield from json_lines(pa.Table.from_batches([batch], schema))


def _csv(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    yield from csv_lines(schema.empty_table())
    for batch in batches:
        yield from islice(csv_lines(pa.Table.from_batches([batch], schema)), 1, None)
