"""What do the reports say, as tables?

Reports are SQL in ``sql/reports``, each with typed parameters; this module runs them on a store.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from etl.errors import UsageError
from etl.store import connect, report_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb
    import pyarrow as pa


#: The reports of sessions, by name, with what their heading calls them.
REPORTS: Final[dict[str, str]] = {"muse": "Muse", "qoder": "Qoder"}


@dataclass(frozen=True, slots=True)
class SessionReport:
    """A provider's report: its heading, the totals (one row), the sessions they are over, and both as one table; of
    Qoder, by title, the models, the tools with what they took and waited for, and what nobody has described.
    """

    heading: str
    totals: pa.Table
    sessions: pa.Table
    rows: pa.Table
    parts: dict[str, pa.Table]

    @property
    def listed(self) -> list[tuple[str, pa.Table]]:
        """What is read in order: title ("": none) and table."""
        return [("", self.totals), ("", self.sessions), *self.parts.items()]


def session_report(db: str, name: str, sessions: int) -> SessionReport:
    """The report of a name (``REPORTS``) over the latest ``sessions`` sessions. Raises StoreMissing and its kin."""
    connection = connect(db)
    try:
        totals = report_table(connection, f"{name}.totals", sessions=sessions)
        listed = report_table(connection, f"{name}.sessions", sessions=sessions)
        rows = report_table(connection, f"{name}.rows", sessions=sessions)
        parts = _qoder_parts(connection, sessions) if name == "qoder" else {}
    finally:
        connection.close()
    total = totals.to_pylist()[0]
    return SessionReport(heading(REPORTS[name], total["sessions"], total["raw_envelopes"]), totals, listed, rows, parts)


def _qoder_parts(connection: duckdb.DuckDBPyConnection, sessions: int) -> dict[str, pa.Table]:
    return {
        "Models": report_table(connection, "qoder.models", sessions=sessions),
        "Tools: execution and waits": report_table(connection, "qoder.waits", sessions=sessions),
        "Unknown records by version": report_table(connection, "qoder.unknown"),
    }


@dataclass(frozen=True, slots=True)
class BridgeReport:
    """The Bridge report: its heading, its tables with their titles in order, and all as one table."""

    heading: str
    listed: list[tuple[str, pa.Table]]
    rows: pa.Table


#: Titles of the Bridge report's tables, by the report that fills them.
_BRIDGE_PARTS: Final = {
    "bridge.runs": "Runs",
    "bridge.timing": "Turns, milliseconds since each began",
    "bridge.boundaries": "Boundaries: transport, A received, B put together, C normalised, D parsed, E failed",
    "bridge.availability": "Availability of the provider",
    "bridge.disagreements": "Stated differently",
}


def bridge_report(db: str, batch: str = "") -> BridgeReport:
    """The Bridge report over one batch (empty: all). Raises UsageError when there is no such batch, StoreMissing and
    its kin.
    """
    connection = connect(db)
    try:
        if batch:
            known = connection.execute("select batch_id from main.bridge_batches order by batch_id").fetchall()
            if (batch,) not in known:
                there = ", ".join(name for (name,) in known) or "none"
                raise UsageError(f"there is no Bridge batch {batch!r}; there are: {there}")
        totals = report_table(connection, "bridge.totals", batch=batch).to_pylist()[0]
        listed = [(title, report_table(connection, name, batch=batch)) for name, title in _BRIDGE_PARTS.items()]
        rows = report_table(connection, "bridge.rows", batch=batch)
    finally:
        connection.close()
    return BridgeReport(bridge_heading(totals), listed, rows)


def bridge_heading(totals: Mapping[str, Any]) -> str:
    """``5-run Qoder Bridge report: 170 messages in 7 turns, zero Bridge failures, zero late turns``."""
    failures = totals["bridge_failures"] + totals["transport_failures"]
    told = [
        f"{totals['sdk_raw_chunks']} messages in {totals['turns']} turns",
        f"{_number(totals['protocol_errors'], 'protocol error')}",
        f"{_number(totals['provider_unavailable'], 'turn')} without a provider",
        f"{_number(failures, 'failure')} of Bridge or transport",
        f"{_number(totals['late_turns'], 'late turn')}",
    ]
    return f"{totals['runs']}-run Qoder Bridge report: {', '.join(told)}"


def _number(number: int, noun: str) -> str:
    return f"{number or 'zero'} {noun}{'' if number == 1 else 's'}"


def heading(title: str, sessions: int, raw_envelopes: int) -> str:
    """``40-session Qoder report, zero raw envelopes``."""
    number = "zero" if raw_envelopes == 0 else str(raw_envelopes)
    return f"{sessions}-session {title} report, {number} raw envelope{'' if raw_envelopes == 1 else 's'}"
