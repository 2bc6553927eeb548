"""How is a store opened, read, checked and published?

A store is one DuckDB file with the schemas facts, mart and main. It is built aside and replaces the published one in
one step; readers keep what they have open. One function, :func:`attach_for_writing`, owns how a file
is attached for writing (the row group size is not stored in the file).
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import duckdb

from etl.errors import NotAStore, QueryError, StoreError, StoreMissing, StoreTooNew
from etl.sqlfiles import load_sql, report_statement

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from etl.sqlfiles import SqlObject

#: Number of migration files: a store of a higher number was made by a newer version.
SCHEMA_VERSION: Final = 1
_FOLDERS: Final = ("migrations", "macros", "views")
#: Storage format that older DuckDB tools (1.4) open too.
_STORAGE: Final = "v1.4.0"
_ROW_GROUP: Final = 16_384


@dataclass(frozen=True, slots=True)
class Finding:
    """One row of a check that is not empty. ``source_id`` None: the check names no source."""

    check: str
    severity: str
    source_id: str | None
    detail: str


def attach_for_writing(connection: duckdb.DuckDBPyConnection, path: str) -> None:
    """Attaches a store file for writing and makes it the default catalog: small row groups, no WAL (the file is private
    until it is published), one thread (else partial row groups are written again) and a memory limit.
    """
    connection.execute(
        f"attach {quoted(path)} as store "
        f"(row_group_size {_ROW_GROUP}, storage_version '{_STORAGE}', recovery_mode no_wal_writes)"
    )
    connection.execute("use store")


def described() -> tuple[list[SqlObject], dict[str, list[tuple[str, str]]]]:
    """Every table, view and macro of a store with its header, and the columns (name, SQL type) of each, by name."""
    objects = [item for folder in _FOLDERS for item in load_sql(folder)] + load_sql("checks")
    types: dict[str, list[tuple[str, str]]] = {}
    with duckdb.connect(":memory:") as connection:
        for item in objects:
            if item.kind != "check":
                connection.execute(item.sql)
        for item in objects:
            example = item.options.get("example", f"{item.name}(1)")
            call = {"table": item.name, "view": item.name}.get(item.kind, example)
            if item.kind in ("table", "view") or (item.kind == "macro" and item.columns):
                types[item.name] = [(row[0], row[1]) for row in connection.execute(f"describe from {call}").fetchall()]
    return objects, types


def run_checks(connection: duckdb.DuckDBPyConnection) -> list[Finding]:
    """Runs every check of ``sql/checks`` on the current catalog."""
    findings: list[Finding] = []
    for item in load_sql("checks"):
        severity = item.options["severity"]
        rows = connection.execute(
            f"select source_id, detail from ({item.sql.rstrip().rstrip(';')}) order by all"
        ).fetchall()
        findings += [Finding(item.name, severity, source, str(detail)) for source, detail in rows]
    return findings


def publish(built: str, path: str) -> None:
    """Makes a built file the store, in one step. Raises StoreError where a stale ``.wal`` would break it, or where the
    system refuses.
    """
    refuse_stale_wal(path)
    try:
        os.chmod(built, 0o600)
        with open(built, "rb") as file:
            os.fsync(file.fileno())
        os.replace(built, path)
    except OSError as error:
        raise StoreError(f"cannot put the new store at {path}: {error.strerror}") from error


def refuse_stale_wal(path: str) -> None:
    """A ``.wal`` beside the store was left by a read-write session of some other tool: a replaced store would not open
    with it. Raises StoreError that says what to do.
    """
    if os.path.exists(f"{path}.wal"):
        raise StoreError(
            f"{path}.wal exists: another tool has the store open for writing, or left it so. Close it (opening and "
            "closing the store with that tool absorbs the file), or move the .wal away, and load again."
        )


@dataclass(frozen=True, slots=True)
class StoreInfo:
    """What a store says of itself: its id, the load that published it, rows in use and rows left over, and the digests
    of the price table and the settings it was concluded by (None: by none).
    """

    store_id: str
    last_load_id: str
    live_rows: int
    dead_rows: int
    prices: str | None = None
    settings: str | None = None

    @property
    def dead_share(self) -> float:
        """The share of the rows of the file that were replaced or deleted since it was written afresh."""
        return self.dead_rows / max(1, self.live_rows + self.dead_rows)


def inspect(path: str) -> StoreInfo:
    """What the store at a path is. Raises StoreMissing, NotAStore or StoreTooNew unless this version can read it."""
    with _direct(path) as connection:
        try:
            row = connection.execute(
                "select store_id, last_load_id, schema_version, sessionmart_version, dead_rows, live.rows "
                "from mart.store, (select sum(estimated_size) as rows from duckdb_tables() "
                "where schema_name in ('facts', 'mart')) live"
            ).fetchone()
        except duckdb.Error as error:
            raise NotAStore(f"{path} is not a sessionmart store") from error
        prices = _stated(connection, "select digest from mart.price_list")
        settings = _stated(connection, "select value from mart.settings where name = 'digest'")
    if row is None:
        raise NotAStore(f"{path} is not a sessionmart store")
    store_id, last_load_id, schema_version, version, dead_rows, live_rows = row
    if schema_version > SCHEMA_VERSION:
        raise StoreTooNew(f"{path} was written by sessionmart {version}: please upgrade")
    return StoreInfo(store_id, last_load_id, int(live_rows or 0), dead_rows or 0, prices, settings)


def _stated(connection: duckdb.DuckDBPyConnection, asked: str) -> str | None:
    try:
        row = connection.execute(asked).fetchone()
    except duckdb.CatalogException:  # written before there were prices, or settings
        return None
    return row[0] if row else None


@contextmanager
def _direct(path: str, **config: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """The file opened directly and read-only, in an instance of its own."""
    if not os.path.exists(path):
        raise StoreMissing(f"there is no store at {path}; `sessionmart load` makes one")
    if not os.path.isfile(path):  # a FIFO would block for ever
        raise NotAStore(f"{path} is no file")
    try:
        connection = duckdb.connect(path, read_only=True, config=dict(config))
        connection.execute("set timezone = 'UTC'")
    except duckdb.IOException as error:
        if "lock" in str(error).lower():
            raise StoreError(f"{path} is open for writing in another program") from error
        raise NotAStore(f"{path} is not a sessionmart store") from error
    except duckdb.Error as error:
        raise NotAStore(f"{path} cannot be opened: {str(error).splitlines()[0]}") from error
    try:
        yield connection
    finally:
        connection.close()


def connect(path: str) -> duckdb.DuckDBPyConnection:
    """A read-only connection to a store.

    The file is attached to an in-memory database of its own, since DuckDB keeps one instance per path in a process: a
    connection opened after a load sees the new store, whatever else is open. Raises StoreMissing, NotAStore,
    StoreTooNew.
    """
    inspect(path)
    connection = duckdb.connect(":memory:")
    connection.execute("set timezone = 'UTC'")
    connection.execute(f"attach {quoted(path)} as store (read_only)")
    connection.execute("use store")
    return connection


def query(path: str, statement: str, seconds: float, memory: str) -> pa.Table:
    """The result of one statement of a user, read-only and without access to files or settings.

    Raises QueryError with the engine's words when it refuses, or when time or memory run out.
    """
    from threading import Timer  # noqa: PLC0415 - only here

    inspect(path)
    with _direct(path, enable_external_access="false", memory_limit=memory) as connection:
        timer = Timer(seconds, connection.interrupt)
        timer.daemon = True
        timer.start()
        try:
            return _result(connection, statement)
        except duckdb.InterruptException as error:
            raise QueryError(f"the query took longer than {seconds:g} s") from error
        except duckdb.Error as error:
            raise QueryError(str(error)) from error
        finally:
            timer.cancel()


def report_table(connection: duckdb.DuckDBPyConnection, name: str, **parameters: Any) -> pa.Table:
    """What the report of a name (``sql/reports``) says with these parameters. Raises LookupError for no such name."""
    return connection.sql(report_statement(name), params=parameters or None).to_arrow_table()


def _result(connection: duckdb.DuckDBPyConnection, statement: str) -> pa.Table:
    connection.execute("set arrow_lossless_conversion = true")
    connection.execute("set lock_configuration = true")
    if len(connection.extract_statements(statement)) > 1:
        raise QueryError("one statement at a time: of several, only the last one's rows would be shown")
    relation = connection.sql(statement)
    if relation is None:
        raise QueryError("that statement gives no rows; only queries are run here")
    return relation.to_arrow_table()


def quoted(text: str) -> str:
    """A text as an SQL string."""
    return "'" + text.replace("'", "''") + "'"
