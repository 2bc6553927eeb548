"""What do the reports say, as tables?

Reports are SQL in ``sql/reports``, each with typed parameters; this module runs them on a store.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from etl.sqlfiles import load_sql
from etl.store import connect

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


#: The reports of sessions, by name, with what their heading calls them.
REPORTS: Final[dict[str, str]] = {"muse": "Muse", "qoder": "Qoder"}


@dataclass(frozen=True, slots=True)
class SessionReport:
    """A provider's report: its heading, the totals (one row), the sessions they are over, and both as one table."""

    heading: str
    totals: pa.Table
    sessions: pa.Table
    rows: pa.Table


def session_report(db: str, name: str, sessions: int) -> SessionReport:
    """The report of a name (``REPORTS``) over the latest ``sessions`` sessions. Raises StoreMissing and its kin."""
    connection = connect(db)
    try:
        totals = _run(connection, f"{name}.totals", sessions=sessions)
        listed = _run(connection, f"{name}.sessions", sessions=sessions)
        rows = _run(connection, f"{name}.rows", sessions=sessions)
    finally:
        connection.close()
    total = totals.to_pylist()[0]
    return SessionReport(heading(REPORTS[name], total["sessions"], total["raw_envelopes"]), totals, listed, rows)


def heading(title: str, sessions: int, raw_envelopes: int) -> str:
    """``40-session Qoder report, zero raw envelopes``."""
    number = "zero" if raw_envelopes == 0 else str(raw_envelopes)
    return f"{sessions}-session {title} report, {number} raw envelope{'' if raw_envelopes == 1 else 's'}"


def _run(connection: duckdb.DuckDBPyConnection, name: str, **parameters: Any) -> pa.Table:
    statement = next(item.sql for item in load_sql("reports") if item.name == name)
    return connection.sql(statement.rstrip().rstrip(";"), params=parameters).to_arrow_table()
