"""How is the next version of a store built, out of the published one and what was read anew?

Two ways: on a *copy* of the published file, replacing the rows of the sources that were read (few changes), or
*afresh* into an empty file, carrying over the rows that stay (first loads, many changes, or when replaced rows have
left too much of the file dead). Either way the result is the same, and nobody sees it before it is published.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import duckdb

from etl.errors import StoreError
from etl.prices import TABLES as PRICE_TABLES
from etl.prices import fill, read_price_list
from etl.schema import TABLES
from etl.settings import TABLES as SETTING_TABLES
from etl.settings import Settings, fill_settings
from etl.sqlfiles import comments, load_sql
from etl.store import SCHEMA_VERSION, attach_for_writing, inspect, quoted, run_checks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from etl.prices import PriceList
    from etl.store import Finding

_T = TypeVar("_T")
_FOLDERS: Final = ("migrations", "macros", "views")
#: Loading and resolving, megabytes: beyond this DuckDB writes to its scratch folder. What it cannot write there must
#: fit: resolving 4 GB of source does; in half of it one step of 1 GB did not.
_MEMORY: Final = 176
#: Where a step of resolving or a check ran out of memory it is done again, with so many times as much.
_MORE_MEMORY: Final = (4, 16)
#: Threads for what writes nothing into the file: the readers are done by then.
_THREADS: Final = 2
#: Tables without the usual place: no row of theirs stands in another one.
_PLAIN: Final = ("sources", "merges", "content_blocks", "record_census", "rejects", "conflicts", "redactions")
#: Tables whose rows stand for no content item: only a merge of a whole record leaves them out.
_BLOCKLESS: Final = ("records", "tool_spans", "turn_marks", "model_calls", "session_facts", "events")
#: Tables of mart that resolve fills, with the column that names the session.
_CONCLUDED: Final = (
    *("sessions", "turns", "dialogue", "tool_calls", "model_calls", "files_touched", "session_links", "copies"),
    "conflicts",
)
#: Columns of facts.sources that say what a source holds: a source that is taken out says nothing.
_SAID: Final = (
    *("native_session_id", "session_id", "lines", "blank_lines", "rejected_lines", "user_records"),
    *("direct_user_records", "assistant_messages", "thinking_blocks", "call_records", "result_records"),
    *("paired_records", "head_digest"),
)
_SESSIONS_OF: Final = """
insert into changed
select session_id from facts.sources where source_id in (select source_id from {listed}) and session_id is not null
union select session_id from facts.records where source_id in (select source_id from {listed})
union select session_id from facts.session_facts where source_id in (select source_id from {listed})"""


class Builder:
    """A store being built in a file of its own. Use as a context manager; the file is complete when it closes.

    ``published`` is the store as it stands, None for a first load. ``afresh`` chooses the way. Steps in order:
    :meth:`replace`, :meth:`add` as often as parts come, :meth:`restore_failed`, :meth:`resolve`, :meth:`check`,
    :meth:`log`, :meth:`finish`. ``prices`` and ``settings`` are what a store written afresh is concluded by; None:
    those of the published store, else the shipped ones. A copy keeps its own.
    """

    def __init__(
        self,
        path: str,
        scratch: str,
        published: str | None,
        *,
        afresh: bool,
        prices: PriceList | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.path, self.published, self.afresh = path, published, afresh or published is None
        if not self.afresh and published is not None:
            _copy(published, path)
        self.connection = duckdb.connect(":memory:")
        run = self.connection.execute
        run("set timezone = 'UTC'")
        run("set threads = 1")  # more threads write partial row groups, which are then written again
        run(f"set memory_limit = '{_MEMORY}MB'")
        run("set preserve_insertion_order = false")
        run(f"set temp_directory = {quoted(scratch)}")
        attach_for_writing(self.connection, path)
        self.dead_rows = 0
        if self.afresh:
            self._define()
        if published is not None:
            run(f"attach {quoted(published)} as old (read_only)")
        if self.afresh:
            self._fill_basis(published, prices, settings)
        run("create temp table changed (session_id varchar)")
        run("create temp table replaced (source_id varchar)")
        run("create temp table first_loads (source_id varchar, load_id varchar)")
        run("begin")

    def _define(self) -> None:
        self.connection.execute("begin")
        objects = [item for folder in _FOLDERS for item in load_sql(folder)]
        for item in objects:
            self.connection.execute(item.sql)
        for statement in comments(objects):
            self.connection.execute(statement)
        self.connection.execute("commit")

    def _fill_basis(self, published: str | None, prices: PriceList | None, settings: Settings | None) -> None:
        before = None if published is None else inspect(published)
        if prices is None and before is not None and before.prices is not None:
            self._keep(PRICE_TABLES)
        else:
            fill(self.connection, prices or read_price_list())
        if settings is None and before is not None and before.settings is not None:
            self._keep(SETTING_TABLES)
        else:
            fill_settings(self.connection, settings or Settings())

    def _keep(self, tables: Sequence[str]) -> None:
        for table in tables:
            self.connection.execute(f"insert into mart.{table} by name select * from old.mart.{table}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if kind is None:
                self.connection.execute("commit")
                self.connection.execute("use memory")
                self.connection.execute("detach store")
        finally:
            self.connection.close()

    def commit(self) -> None:
        """Lets go of what the transaction holds in memory; nobody sees the file yet."""
        self.connection.execute("commit")
        self.connection.execute("begin")

    def replace(self, source_ids: Sequence[str]) -> None:
        """The rows of these sources give way to what is added; all others stay."""
        run = self.connection.execute
        if source_ids:
            self.connection.executemany("insert into replaced values (?)", [[source_id] for source_id in source_ids])
        if self.published is None:
            return
        known = "from old.facts.sources semi join replaced using (source_id)"
        run(f"insert into first_loads select source_id, first_load_id {known}")
        if self.afresh:
            for table in TABLES:
                staying = f"select * from old.facts.{table} anti join replaced using (source_id)"
                run(f"insert into facts.{table} by name {staying}")
            run("insert into mart.loads by name select * from old.mart.loads")
        else:
            run(_SESSIONS_OF.format(listed="replaced"))
            for table in TABLES:
                deleted = run(
                    f"delete from facts.{table} where source_id in (select source_id from replaced)"
                ).fetchone()
                self.dead_rows += deleted[0] if deleted else 0

    def set_state(self, source_ids: Sequence[str], state: str) -> None:
        """Sources that are no longer there keep their rows and say so (``gone`` or ``suspicious``)."""
        for source_id in source_ids:
            self.connection.execute("update facts.sources set source_state = ? where source_id = ?", [state, source_id])
            self.connection.execute(
                "insert into changed "
                "select session_id from facts.sources where source_id = ? and session_id is not null",
                [source_id],
            )

    def add(self, parts: Mapping[str, Sequence[str]], load_id: str) -> None:
        """Adds Parquet parts (table to files) to facts. The parts of a source come in one call: rows that its fold put
        into another row, and rows of a source that failed, are left out.
        """
        merges, sources = list(parts.get("merges", ())), list(parts.get("sources", ()))
        failed = self._count(f"from {_parquet(sources)} where tail_state = 'failed'") if sources else 0
        records = self._count(f"from {_parquet(merges)} where block is null") if merges else 0
        for table in TABLES:
            files = list(parts.get(table, ()))
            if table == "sources" and files:
                self._add_sources(files, load_id)
            elif files:  # each join reads parts again: none where it would find nothing
                statement = _insert(table, files)
                if failed:
                    statement += f" anti join (from {_parquet(sources)} where tail_state = 'failed') using (source_id)"
                if records and table not in _PLAIN:
                    statement += _unmerged(merges, "w.block is null")
                if merges and table not in (*_PLAIN, *_BLOCKLESS):
                    statement += _unmerged(merges, "w.block = p.block")
                self.connection.execute(statement)

    def _count(self, rows: str) -> int:
        row = self.connection.execute(f"select count(*) {rows}").fetchone()
        return row[0] if row else 0

    def _add_sources(self, files: list[str], load_id: str) -> None:
        self.connection.execute(
            "insert into facts.sources by name "
            "select p.*, coalesce(f.load_id, $load) as first_load_id, $load as last_load_id, 'present' as source_state "
            f"from {_parquet(files)} p left join first_loads f using (source_id)",
            {"load": load_id},
        )

    def failed(self) -> dict[str, str]:
        """The sources of this load over which an adapter stumbled or a worker died, with what happened."""
        rows = self.connection.execute(
            "select source_id, coalesce(note, 'failed') from facts.sources "
            "where tail_state = 'failed' and note not like 'check %' and source_id in (select source_id from replaced)"
        ).fetchall()
        return dict(rows)

    def take_out(self, sources: Mapping[str, str]) -> None:
        """Takes the new rows of sources out and puts their earlier rows back; their row in facts.sources says
        ``failed`` and why. A source without earlier rows says nothing else. Resolve after it.
        """
        run = self.connection.execute
        for source_id, why in sources.items():
            silence = "" if self.put_back(source_id) else "".join(f", {column} = null" for column in _SAID)
            run(
                f"update facts.sources set tail_state = 'failed', note = ?{silence} where source_id = ?",
                [why, source_id],
            )

    def put_back(self, source_id: str) -> bool:
        """Takes the new rows of a source out and puts its earlier rows back; False when there are none: its row in
        facts.sources, if any, then stays. Resolve after it.
        """
        run = self.connection.execute
        run("create or replace temp table taken as select ? as source_id", [source_id])
        run(_SESSIONS_OF.format(listed="taken"))
        has_old = self._has_old(source_id)
        for table in TABLES:
            if table != "sources" or has_old:
                run(f"delete from facts.{table} where source_id = ?", [source_id])
                if has_old:
                    run(
                        f"insert into facts.{table} by name select * from old.facts.{table} where source_id = ?",
                        [source_id],
                    )
        run(_SESSIONS_OF.format(listed="taken"))
        return has_old

    def _has_old(self, source_id: str) -> bool:
        if self.published is None:
            return False
        row = self.connection.execute(
            "select count(*) from old.facts.sources where source_id = ?", [source_id]
        ).fetchone()
        return bool(row and row[0])

    def resolve(self) -> None:
        """Concludes mart from facts for the sessions that changed, and those related to them."""
        self._with_memory(self._resolve)

    def _with_memory(self, work: Callable[[], _T]) -> _T:
        """What work gives, which changes nothing outside the store, in a transaction of its own: done again with more
        memory where the engine had too little.
        """
        run = self.connection.execute
        self.commit()
        for times in _MORE_MEMORY:
            dead_rows = self.dead_rows
            try:
                return work()
            except duckdb.OutOfMemoryException:
                self.dead_rows = dead_rows
                run("rollback")
                run(f"set memory_limit = '{times * _MEMORY}MB'")
                run("begin")
        return work()

    def _resolve(self) -> None:
        run = self.connection.execute
        if self.afresh:
            run("insert into changed select distinct session_id from facts.sources where session_id is not null")
            run("insert into changed select distinct session_id from facts.records")
            run("insert into changed select distinct session_id from facts.session_facts")
        else:
            run(_SESSIONS_OF.format(listed="replaced"))
        run(f"set threads = {_THREADS}")
        for step in load_sql("resolve"):
            if step.name.startswith("mart."):
                run("set threads = 1")  # more would write partial row groups, which are then written again
            run(step.sql)
            run(f"set threads = {_THREADS}")
            if step.name == "touched" and not self.afresh:
                self._count_dead()

    def _count_dead(self) -> None:
        for table in _CONCLUDED:
            row = self.connection.execute(
                f"select count(*) from mart.{table} semi join touched using (session_id)"
            ).fetchone()
            self.dead_rows += row[0] if row else 0

    def check(self) -> list[Finding]:
        """What the checks find."""
        return self._with_memory(lambda: run_checks(self.connection))

    def providers_of(self, source_ids: Sequence[str]) -> list[str]:
        """The providers of sources, once for each source."""
        listed = self.connection.execute(
            "select provider from facts.sources where list_contains(?, source_id)", [list(source_ids)]
        )
        return [row[0] for row in listed.fetchall()]

    def rows(self) -> dict[str, int]:
        """How many rows each table of facts holds."""
        counted = {table: self.connection.execute(f"select count(*) from facts.{table}").fetchone() for table in TABLES}
        return {table: row[0] if row else 0 for table, row in counted.items()}

    def log(self, load: Mapping[str, Any]) -> None:
        """Writes the row of this load, columns by name."""
        marks = ", ".join("?" for _ in load)
        self.connection.execute(f"insert into mart.loads ({', '.join(load)}) values ({marks})", list(load.values()))

    def finish(self, store_id: str, version: str, load_id: str, dead_before: int) -> None:
        """Writes what the store is, and the load it stands at."""
        run = self.connection.execute
        dead = 0 if self.afresh else dead_before + self.dead_rows
        run("delete from mart.store")
        run("insert into mart.store values (?, ?, ?, ?, ?)", [store_id, SCHEMA_VERSION, version, load_id, dead])


def _copy(published: str, path: str) -> None:
    try:
        shutil.copyfile(published, path)
    except OSError as error:
        raise StoreError(f"the store could not be copied to {path}: {error.strerror}") from error


def _parquet(files: Sequence[str]) -> str:
    return f"read_parquet([{', '.join(quoted(file) for file in files)}])"


def _insert(table: str, files: Sequence[str]) -> str:
    return f"insert into facts.{table} by name select p.* from {_parquet(files)} p"


def _unmerged(merges: Sequence[str], condition: str) -> str:
    """Leaves out rows that a fold put into another row."""
    return (
        f" anti join {_parquet(merges)} w on w.source_id = p.source_id and w.line_no = p.line_no and w.child = p.child "
        f"and {condition}"
    )


def disk_full(error: duckdb.Error) -> StoreError | None:
    """The store error that an engine's error stands for: no space, no memory, no permission; None for any other."""
    if isinstance(error, (duckdb.IOException, duckdb.OutOfMemoryException)) or "No space left" in str(error):
        lines = str(error).splitlines()  # where a checkpoint failed, the second line says why
        reason = next((line for line in lines if "No space left" in line), lines[0])
        return StoreError(f"the store could not be written: {reason.rpartition('Original error: ')[2].strip()}")
    return None


def scratch_folder(folder: str) -> str:
    """Where the engine may spill, inside the folder of a run."""
    return os.path.join(folder, "spill")
