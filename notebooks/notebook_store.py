"""Which store does a notebook read, and how does it show a table?

The user's store, read-only; where there is none, one of the example tree that ships with sessionmart.
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import marimo as mo
import polars as pl

import etl
from etl import pipeline
from etl.errors import StoreMissing
from etl.providers.base import Environment
from etl.sqlfiles import shipped

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

#: Columns that are durations in milliseconds end so.
DURATIONS = ("_ms", "_ms_no_wait")


def opened(example: str) -> tuple[duckdb.DuckDBPyConnection, str | None]:
    """A read-only connection, and why it is one to a store of the example home (None: it is one to the user's)."""
    try:
        return etl.connect(), None
    except StoreMissing as missing:
        with tempfile.TemporaryDirectory() as folder:  # the open file outlives its name
            home = Environment(str(shipped(example, f"fixtures/{example}")), {}, "linux")
            db = str(Path(folder) / "example.duckdb")
            request = pipeline.Request(db=db, host="example", environment=home, key=b"example", version=etl.__version__)
            return etl.connect(pipeline.load(request, lambda: datetime.now(UTC)).db), str(missing)


def _durations(frame: pl.DataFrame) -> list[str]:
    return [name for name in frame.columns if name.endswith(DURATIONS)]


def shown(frame: pl.DataFrame, say: Callable[[float | None], str], **options: Any) -> mo.ui.table:
    """A frame as an interactive table; durations are spoken and sort as numbers."""
    return mo.ui.table(frame, format_mapping=dict.fromkeys(_durations(frame), say), **{"selection": None, **options})


def printed(name: str, frame: pl.DataFrame, say: Callable[[float | None], str]) -> None:
    """A frame as text on stdout, durations spoken; nothing where it has no row."""
    if frame.is_empty():
        return
    words = [
        pl.col(column).map_elements(say, return_dtype=pl.String, skip_nulls=False) for column in _durations(frame)
    ]
    with pl.Config(
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_width_chars=250,
        fmt_str_lengths=100,
        tbl_formatting="MARKDOWN",
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
    ):
        print(f"{name.replace('_', ' ')}\n\n{frame.with_columns(words)}\n")
