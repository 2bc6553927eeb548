"""Which source, and which line of it, contributed what to a session, and what does the raw record say?

``sources``: what each source said of the session, and whether its dialogue was taken. ``calls``: every statement on a
call, with its line, and which of them gave the latency. With one call, or one row of dialogue, the raw records are
looked up again where their files are still there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from etl.errors import UsageError
from etl.lookup import find_session
from etl.rawrecord import find_sources, raw_record
from etl.store import connect, report_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

    from etl.providers.base import Environment


@dataclass(frozen=True, slots=True)
class Explanation:
    """The session's key, what its sources are to it (None when one call or row was asked for), and the statements."""

    session: str
    sources: pa.Table | None
    statements: pa.Table

    @property
    def rows(self) -> pa.Table:
        """All of it as one table for machines; ``part`` tells its rows apart."""
        parts = [] if self.sources is None else [("source", self.sources)]
        parts.append(("statement", self.statements))
        named = [table.add_column(0, "part", pa.array([part] * len(table), pa.string())) for part, table in parts]
        return pa.concat_tables(named, promote_options="default")


@dataclass(frozen=True, slots=True)
class Places:
    """Where files are looked for again, and the key that masks what is found in them."""

    environment: Environment
    named: Mapping[str, Sequence[str]]
    key: bytes


def explain(db: str, wanted: str, what: str | None, places: Places) -> Explanation:
    """Explains a session, or one of its calls (its key) or rows of dialogue (its number in ``show`` and ``dialogue``).

    Raises UsageError when no session, several, or no such call or row are there.
    """
    connection = connect(db)
    try:
        session = find_session(connection, wanted)
        if what is None:
            sources = report_table(connection, "explain.sources", session=session).drop_columns(["source_id"])
            statements = report_table(connection, "explain.calls", session=session, call=None)
            statements = statements.drop_columns(["source_id", "child"])
            return Explanation(session, sources, statements)
        told = report_table(connection, "explain.calls", session=session, call=what)
        if not len(told) and what.isascii() and what.isdigit():
            told = report_table(connection, "explain.row", session=session, seq=int(what[:18]))
        if not len(told):
            raise UsageError(f"session {session} has no call {what!r}, and no row of dialogue of that number")
        return Explanation(session, None, _with_raw(connection, told, places))
    finally:
        connection.close()


def _with_raw(connection: duckdb.DuckDBPyConnection, told: pa.Table, places: Places) -> pa.Table:
    """The statements with their raw records: NULL where the file is gone, or holds no such record."""
    rows = told.to_pylist()
    listed = [row["source_id"] for row in rows]
    owners = connection.execute(
        "select source_id, provider, host from facts.sources where list_contains(?, source_id)", [listed]
    ).fetchall()
    files = find_sources(owners, places.environment, places.named)
    raw = [
        raw_record(files[row["source_id"]], row["line_no"], row.get("child") or 0, places.key)
        if row["source_id"] in files
        else None
        for row in rows
    ]
    return told.drop_columns(["source_id"]).append_column("raw", pa.array(raw, pa.string()))
