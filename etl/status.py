"""Is a store fresh, and what do its last runs and its data say?

Two records are read: ``mart.loads`` in the store, a row per load that published, and the state log of this machine,
a line per run, those that changed nothing included. Only the log tells that an unchanged store was looked after.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from etl import statelog
from etl.store import connect, report_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import duckdb

_TIME: Final = pa.timestamp("us", tz="UTC")
_COUNTED: Final = ("sources_seen", "sources_read", "sources_failed", "bytes_read")
_RUNS: Final = pa.schema(
    [
        *(("load_id", pa.string()), ("state", pa.string()), ("started_at", _TIME), ("seconds", pa.float64())),
        *((name, pa.int64()) for name in _COUNTED),
    ]
)


@dataclass(frozen=True, slots=True)
class Status:
    """What a store is and how fresh.

    ``size`` in bytes; ``looked_at`` is the end of the last run, ``changed_at`` of the last one that published, and
    ``age_seconds`` the time since ``looked_at`` (None: neither log nor store tells). ``is_logged`` is False where this
    machine has no log of the store: runs that changed nothing are then not known. Tables: ``runs`` (latest first),
    ``sources`` by provider and state, ``drift``, ``findings`` by check.
    """

    db: str
    size: int
    store_id: str
    version: str
    looked_at: datetime | None
    changed_at: datetime | None
    age_seconds: float | None
    is_logged: bool
    runs: pa.Table
    sources: pa.Table
    drift: pa.Table
    findings: pa.Table

    def as_dict(self) -> dict[str, Any]:
        """The status as plain values, for JSON."""
        names = ("db", "size", "store_id", "version", "looked_at", "changed_at", "age_seconds", "is_logged")
        tables = {name: getattr(self, name).to_pylist() for name in ("runs", "sources", "drift", "findings")}
        return {name: getattr(self, name) for name in names} | tables


def read_status(db: str, state: str, now: datetime, runs: int = 5) -> Status:
    """The status of a store, with its latest ``runs`` runs; ``state`` is the folder of the state log.

    Raises StoreMissing and its kin.
    """
    with connect(db) as connection:
        store = _rows(connection, "store")[0]
        known = [_run(row) for row in _rows(connection, "loads", runs=runs)]
        sources, drift, findings = (
            report_table(connection, f"status.{name}") for name in ("sources", "drift", "findings")
        )
    logged = [run for line in statelog.read(state, store["store_id"]) if (run := _logged(line)) is not None]
    ends = [run["finished_at"] for run in logged if run["finished_at"] is not None]
    changed_at = store["changed_at"]
    looked_at = max([*ends, *([changed_at] if changed_at else [])], default=None)
    return Status(
        db,
        os.stat(db).st_size,
        store["store_id"],
        store["version"],
        looked_at,
        changed_at,
        None if looked_at is None else max(0.0, (now - looked_at).total_seconds()),
        bool(logged),
        pa.Table.from_pylist(_latest([*known, *logged], runs), _RUNS),
        sources,
        drift,
        findings,
    )


def _rows(connection: duckdb.DuckDBPyConnection, name: str, **parameters: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = report_table(connection, f"status.{name}", **parameters).to_pylist()
    return rows


def _logged(line: dict[str, Any]) -> dict[str, Any] | None:
    """A line of the log as a run; None without an id. Anybody may have written into the file: what is odd is None."""
    if not isinstance(line.get("load_id"), str):
        return None
    told = {name: value for name in _COUNTED if type(value := line.get(name)) is int and abs(value) < 1 << 63}
    state = line.get("state")
    times = {name: _moment(line.get(name)) for name in ("started_at", "finished_at")}
    return _run({"load_id": line["load_id"], "state": state if isinstance(state, str) else None, **times, **told})


def _moment(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(value).astimezone(UTC) if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None


def _run(row: dict[str, Any]) -> dict[str, Any]:
    start, end = row["started_at"], row["finished_at"]
    return row | {"seconds": round((end - start).total_seconds(), 3) if start and end else None}


def _latest(runs: Iterable[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """Latest first. A load stands in the store and in the log: the log has its true end, after the publish."""
    by_id = {run["load_id"]: run for run in runs}
    oldest = datetime.min.replace(tzinfo=UTC)
    return sorted(by_id.values(), key=lambda run: (run["started_at"] or oldest, run["load_id"]), reverse=True)[:number]


def headline(status: Status) -> Iterator[str]:
    """The status in a few lines for people; times are UTC."""
    yield f"store      {status.db} ({status.size / 1e6:.1f} MB, sessionmart {status.version})\n"
    if status.looked_at is None or status.age_seconds is None:
        yield "looked at  not known\n"
        return
    yield f"looked at  {status.looked_at:%Y-%m-%d %H:%M:%S} UTC, {_ago(status.age_seconds)}\n"
    if status.changed_at is not None:
        since = status.age_seconds + (status.looked_at - status.changed_at).total_seconds()
        yield f"changed    {status.changed_at:%Y-%m-%d %H:%M:%S} UTC, {_ago(since)}\n"
    if not status.is_logged:
        yield "           this machine has no log of the store: runs that changed nothing are not known\n"


def _ago(seconds: float) -> str:
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            number = int(seconds // length)
            return f"{number} {unit}{'' if number == 1 else 's'} ago"
    return "just now"
