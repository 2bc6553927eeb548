"""What do the reports say, as tables?

Reports are SQL in ``sql/reports``, each with typed parameters; this module runs them on a store.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from etl.sqlfiles import load_sql
from etl.store import connect

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class QoderReport:
    """The Qoder report: its heading, the totals (one row), the sessions they are over, and both as one table; then the
    models, the tools with what they took and waited for, and what nobody has described.
    """

    heading: str
    totals: pa.Table
    sessions: pa.Table
    rows: pa.Table
    models: pa.Table
    waits: pa.Table
    unknown: pa.Table


def qoder_report(db: str, sessions: int) -> QoderReport:
    """The Qoder report over the latest ``sessions`` sessions. Raises StoreMissing and its kin."""
    connection = connect(db)
    try:
        totals = _run(connection, "qoder.totals", sessions=sessions)
        listed = _run(connection, "qoder.sessions", sessions=sessions)
        rows = _run(connection, "qoder.rows", sessions=sessions)
        models = _run(connection, "qoder.models", sessions=sessions)
        waits = _run(connection, "qoder.waits", sessions=sessions)
        unknown = _run(connection, "qoder.unknown")
    finally:
        connection.close()
    total = totals.to_pylist()[0]
    return QoderReport(heading(total["sessions"], total["raw_envelopes"]), totals, listed, rows, models, waits, unknown)


def heading(sessions: int, raw_envelopes: int) -> str:
    """``40-session Qoder report, zero raw envelopes``."""
    number = "zero" if raw_envelopes == 0 else str(raw_envelopes)
    return f"{sessions}-session Qoder report, {number} raw envelope{'' if raw_envelopes == 1 else 's'}"


def _run(connection: duckdb.DuckDBPyConnection, name: str, **parameters: Any) -> pa.Table:
    statement = next(item.sql for item in load_sql("reports") if item.name == name)
    return connection.sql(statement.rstrip().rstrip(";"), params=parameters or None).to_arrow_table()
