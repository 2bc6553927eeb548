"""How is a store built, checked and opened?

A store is one DuckDB file with the schemas facts, mart and main. It is built aside in a fresh file and replaces the
published one in one step; readers keep what they have open. One function, :func:`attach_for_writing`, owns how a file
is attached for writing (the row group size is not stored in the file).
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import duckdb

from etl.errors import NotAStore, QueryError, StoreError, StoreMissing, StoreTooNew
from etl.schema import TABLES
from etl.sqlfiles import comments, load_sql

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from etl.sqlfiles import SqlObject

#: Number of migration files: a store of a higher number was made by a newer version.
SCHEMA_VERSION: Final = 1
_FOLDERS: Final = ("migrations", "macros", "views")
#: Storage format that older DuckDB tools (1.4) open too.
_STORAGE: Final = "v1.4.0"
_ROW_GROUP: Final = 16_384
_MEMORY: Final = "512MB"
#: Tables without the usual place: they go in as they are, before the others.
_PLAIN: Final = ("merges", "content_blocks", "record_census", "rejects", "conflicts", "redactions")
#: Tables of mart that resolve fills.
_CONCLUDED: Final = (
    *("copies", "sessions", "turns", "dialogue"),
    *("tool_calls", "model_calls", "files_touched", "session_links"),
)
#: Columns of facts.sources that say what a source holds: a source that is taken out says nothing.
_SAID: Final = (
    *("native_session_id", "session_id", "lines", "blank_lines", "rejected_lines", "user_records"),
    *("direct_user_records", "assistant_messages", "thinking_blocks", "call_records", "result_records"),
    *("paired_records", "head_digest"),
)


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
        f"attach {_quoted(path)} as store "
        f"(row_group_size {_ROW_GROUP}, storage_version '{_STORAGE}', recovery_mode no_wal_writes)"
    )
    connection.execute("use store")


class Builder:
    """A store being built in a fresh file. Use as a context manager; the file is complete when it closes."""

    def __init__(self, path: str, scratch: str) -> None:
        self.path = path
        self.connection = duckdb.connect(":memory:")
        run = self.connection.execute
        run("set timezone = 'UTC'")
        run("set threads = 1")
        run(f"set memory_limit = '{_MEMORY}'")
        run(f"set temp_directory = {_quoted(scratch)}")
        attach_for_writing(self.connection, path)
        for folder in _FOLDERS:
            for item in load_sql(folder):
                run(item.sql)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.execute("use memory")
        self.connection.execute("detach store")
        self.connection.close()

    def load(self, parts: Mapping[str, Sequence[str]], load_id: str) -> dict[str, int]:
        """Loads Parquet parts (table to files) into facts; rows by table. Rows that the fold put into another row of
        their source, and rows of a source that failed, are left out.
        """
        for table in ("sources", *_PLAIN, *(name for name in TABLES if name not in ("sources", *_PLAIN))):
            files = parts.get(table, ())
            if files:
                self.connection.execute(_insert(table, len(files)), [*files, *([load_id] * (table == "sources"))])
        return self.rows()

    def rows(self) -> dict[str, int]:
        """How many rows each table of facts holds."""
        rows: dict[str, int] = {}
        for table in TABLES:
            counted = self.connection.execute(f"select count(*) from facts.{table}").fetchone()
            rows[table] = counted[0] if counted else 0
        return rows

    def resolve(self) -> None:
        """Concludes mart from facts, for every session."""
        for step in load_sql("resolve"):
            self.connection.execute(step.sql)

    def check(self) -> list[Finding]:
        """What the checks find."""
        return run_checks(self.connection)

    def quarantine(self, sources: Mapping[str, str]) -> None:
        """Takes the rows of sources out, and what was concluded from them; their row in facts.sources says ``failed``
        and which check it was, and counts nothing. Resolve again after it.
        """
        silence = ", ".join(f"{column} = null" for column in _SAID)
        for source_id, check in sources.items():
            for table in TABLES:
                if table != "sources":
                    self.connection.execute(f"delete from facts.{table} where source_id = ?", [source_id])
            self.connection.execute(
                f"update facts.sources set tail_state = 'failed', note = ?, {silence} where source_id = ?",
                [f"check {check}", source_id],
            )
        for table in _CONCLUDED:
            self.connection.execute(f"delete from mart.{table}")

    def finish(self, store_id: str, version: str, load: Mapping[str, Any]) -> None:
        """Writes what the store is, the row of this load, and the comments on tables, views and columns."""
        self.connection.execute("insert into mart.store values (?, ?, ?)", [store_id, SCHEMA_VERSION, version])
        names = ", ".join(load)
        marks = ", ".join("?" for _ in load)
        self.connection.execute(f"insert into mart.loads ({names}) values ({marks})", list(load.values()))
        for statement in comments([item for folder in _FOLDERS for item in load_sql(folder)]):
            self.connection.execute(statement)


def _insert(table: str, files: int) -> str:
    listed = f"read_parquet([{', '.join('?' for _ in range(files))}])"
    if table == "sources":
        return (
            "insert into facts.sources by name "
            "select p.*, l.id as first_load_id, l.id as last_load_id, 'present' as source_state "
            f"from {listed} p, (select ? as id) l"
        )
    unless_failed = "anti join (select source_id from facts.sources where tail_state = 'failed') f using (source_id)"
    if table in _PLAIN:
        return f"insert into facts.{table} by name select p.* from {listed} p {unless_failed}"
    return (
        f"insert into facts.{table} by name select p.* from {listed} p {unless_failed} "
        "anti join facts.merges w on w.source_id = p.source_id and w.line_no = p.line_no and w.child = p.child "
        "and w.block is null "
        "anti join facts.merges b on b.source_id = p.source_id and b.line_no = p.line_no and b.child = p.child "
        "and b.block = p.block"
    )


def described() -> tuple[list[SqlObject], dict[str, list[tuple[str, str]]]]:
    """Every table, view and macro of a store with its header, and the columns (name, SQL type) of each, by name."""
    objects = [item for folder in _FOLDERS for item in load_sql(folder)] + load_sql("checks")
    types: dict[str, list[tuple[str, str]]] = {}
    with duckdb.connect(":memory:") as connection:
        for item in objects:
            if item.kind != "check":
                connection.execute(item.sql)
        for item in objects:
            call = {"table": item.name, "view": item.name}.get(item.kind, f"{item.name}(1)")
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


def inspect(path: str) -> None:
    """Raises StoreMissing, NotAStore or StoreTooNew unless the path is a store that this version can read."""
    with _direct(path) as connection:
        try:
            row = connection.execute("select schema_version, sessionmart_version from mart.store").fetchone()
        except duckdb.Error as error:
            raise NotAStore(f"{path} is not a sessionmart store") from error
    if row is None or not isinstance(row[0], int):
        raise NotAStore(f"{path} is not a sessionmart store")
    if row[0] > SCHEMA_VERSION:
        raise StoreTooNew(f"{path} was written by sessionmart {row[1]}: please upgrade")


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
    connection.execute(f"attach {_quoted(path)} as store (read_only)")
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


def _result(connection: duckdb.DuckDBPyConnection, statement: str) -> pa.Table:
    connection.execute("set arrow_lossless_conversion = true")
    connection.execute("set lock_configuration = true")
    if len(connection.extract_statements(statement)) > 1:
        raise QueryError("one statement at a time: of several, only the last one's rows would be shown")
    relation = connection.sql(statement)
    if relation is None:
        raise QueryError("that statement gives no rows; only queries are run here")
    return relation.to_arrow_table()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def by_table(parts: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """(table, file) pairs as files by table, in the order given."""
    grouped: dict[str, list[str]] = {}
    for table, path in parts:
        grouped.setdefault(table, []).append(path)
    return grouped
