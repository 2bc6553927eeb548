"""Does the published store still say what the files say?

The sources are extracted once more into a scratch store, and the rows of the two are compared table by table: ``facts``
of the sources that were extracted, and, when none was left out, ``mart`` as concluded anew from the whole store. The
published file is attached read-only: readers and loads go on beside it.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import duckdb

from etl import providers
from etl.builder import Builder, disk_full, scratch_folder
from etl.discover import discover
from etl.errors import UsageError
from etl.executors import Serial, process_pool, run_tasks
from etl.extract import Extracted, extract, failed_source
from etl.keys import digest64
from etl.ledger import Ledger, tasks_of
from etl.mask import MASK_VERSION
from etl.pipeline import POOL_BYTES, TASK_BYTES
from etl.schema import PARSER_VERSION, TABLES
from etl.store import inspect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Executor

    from etl.discover import Found
    from etl.request import Request

#: Columns that know the load, not the file (``fingerprint`` hangs on the user's key), by table; None: in every one.
_OUTSIDE: Final = {"first_load_id": None, "last_load_id": None, "source_state": None, "fingerprint": "redactions"}
_NOT_CONCLUDED: Final = ("loads", "store")


@dataclass(frozen=True, slots=True)
class Comparison:
    """One table: ``rows`` of the store compared, ``missing`` ones that the files give and the store has not, ``extra``
    ones that the store has and the files do not give (a row that differs is one of each), and where the first of them
    stands.
    """

    table: str
    rows: int
    missing: int
    extra: int
    first_difference: str | None


@dataclass(slots=True)
class Verification:
    """What was compared.

    Sources: ``verified``; ``changed`` since the load, or read by older rules (source ids); ``failed`` in the load (its
    rows are of an earlier reading); ``absent``: in the store, of the providers asked for, and not found below these
    roots; ``new``: found and not in the store; ``unsampled``: left out by the sample. Without a ledger of the
    store (``has_ledger`` False) no file is known to have changed.
    """

    db: str
    has_ledger: bool = False
    verified: int = 0
    changed: list[str] = field(default_factory=list)
    failed: int = 0
    absent: int = 0
    new: int = 0
    unsampled: int = 0
    tables: list[Comparison] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        """No row is missing and none is too many."""
        return not any(table.missing or table.extra for table in self.tables)

    def as_dict(self) -> dict[str, Any]:
        """The verification as plain values, for JSON."""
        return asdict(self) | {"is_equal": self.is_equal}


def verify(
    request: Request, sample: int | None = None, seed: int = 0, narrate: Callable[[str], None] = lambda _: None
) -> Verification:
    """Compares the store of a request with the files that a load of that request would find.

    ``sample`` sources are taken by ``seed``, the same ones every time; None: all. Raises StoreMissing and its kin, and
    UsageError when none of the store's sources is found.
    """
    db = os.path.realpath(request.db)
    inspect(db)
    done = Verification(db)
    with tempfile.TemporaryDirectory(prefix="sessionmart-verify-") as folder:
        try:
            built = os.path.join(folder, "store.duckdb")
            with Builder(built, scratch_folder(folder), db, afresh=True) as builder:
                chosen = _sampled(_comparable(builder, request, done), sample, seed, done)
                narrate(f"{len(chosen)} sources are read again")
                if sample is None:
                    builder.replace([item.source.source_id for item in chosen])
                _extract_into(builder, chosen, request, folder)
                _compare(builder, chosen, done, everything=sample is None)
        except duckdb.Error as error:
            full = disk_full(error)
            if full is None:
                raise
            raise full from error
        except RuntimeError as error:  # what the engine makes of a Ctrl-C
            if str(error) == "Query interrupted":
                raise KeyboardInterrupt from error
            raise
    return done


def _comparable(builder: Builder, request: Request, done: Verification) -> list[Found]:
    """The files whose rows must be equal, by source id; all others are counted."""
    row = builder.connection.execute("select store_id, last_load_id from old.mart.store").fetchone() or ("", "")
    ledger = Ledger.read(request.state, *row)
    done.has_ledger = bool(ledger.entries)
    chosen = request.providers or tuple(request.roots) or providers.names()
    found: dict[str, Found] = {}
    for name in dict.fromkeys(chosen):
        seen = discover(providers.get(name), request.environment, request.host, request.roots.get(name, ()))
        found |= {item.source.source_id: item for item in seen.found}
    stored = {
        source_id: (tail_state == "failed", (parser, mask) == (PARSER_VERSION, MASK_VERSION))
        for source_id, tail_state, parser, mask in builder.connection.execute(
            "select source_id, tail_state, parser_version, mask_version from old.facts.sources "
            "where list_contains(?, provider)",
            [list(chosen)],
        ).fetchall()
    }
    if stored and not stored.keys() & found.keys():
        raise UsageError(
            f"none of the store's {len(stored)} sources lies below these roots on host {request.host}: "
            "give --home, --root and --host as the load was given them"
        )
    done.absent = len(stored.keys() - found.keys())
    comparable = []
    for source_id, item in sorted(found.items()):
        entry = ledger.entries.get(source_id)
        has_failed, by_these_rules = stored.get(source_id, (False, True))
        if has_failed:
            done.failed += 1
        elif source_id not in stored and (entry is None or entry.stamp != item.stamp):
            done.new += 1
        elif not by_these_rules or (done.has_ledger and (entry is None or entry.stamp != item.stamp)):
            done.changed.append(source_id)
        else:  # one that only the ledger knows too: the load read it, so its row was lost, or it is no session file
            comparable.append(item)
    return comparable


def _sampled(items: list[Found], sample: int | None, seed: int, done: Verification) -> list[Found]:
    if sample is None:
        return items
    drawn = sorted(items, key=lambda item: digest64(f"{seed}\0{item.source.source_id}"))[:sample]
    done.unsampled = len(items) - len(drawn)
    return drawn


def _extract_into(builder: Builder, found: Sequence[Found], request: Request, folder: str) -> None:
    """As a load does it, and into parts that are removed once they are in."""
    workers = request.jobs if sum(item.size for item in found) >= POOL_BYTES else 1
    make: Callable[[], Executor] = Serial if workers == 1 else partial(process_pool, workers)
    tasks = tasks_of(list(found), TASK_BYTES if request.task_bytes is None else request.task_bytes)
    for items, extracted in run_tasks(make, partial(_task, folder, request.key), tasks, workers + 1):
        given = extracted or failed_source(items[0], folder, request.key, "its worker died")
        builder.add(given.by_table(), "verify")
        for part in given.parts:
            os.unlink(part.path)


def _task(folder: str, key: bytes, number: int, items: Sequence[Found]) -> Extracted:
    return extract(items, folder, f"task{number:06d}", key)


def _compare(builder: Builder, chosen: Iterable[Found], done: Verification, *, everything: bool) -> None:
    run = builder.connection.execute
    changed = sorted(item.source.source_id for item in chosen if _stamp(item.path) != item.stamp)  # while it was read
    verified = sorted({item.source.source_id for item in chosen} - set(changed))
    done.changed += changed
    done.verified = len(verified)
    run("create temp table verified as select unnest(?::varchar[]) as source_id", [verified])
    for table in TABLES:
        done.tables.append(_compared(builder.connection, "facts", table, "semi join verified using (source_id)"))
    if everything:
        for table in TABLES if changed else ():
            run(f"delete from facts.{table} where list_contains(?, source_id)", [changed])
            stored = f"select * from old.facts.{table} where list_contains(?, source_id)"
            run(f"insert into facts.{table} by name {stored}", [changed])
        builder.resolve()
        for table in _concluded(builder.connection):
            done.tables.append(_compared(builder.connection, "mart", table, ""))


def _stamp(path: str) -> tuple[int, int, int, int]:
    """As ``etl.discover`` takes it."""
    try:
        status = os.stat(path)
    except OSError:
        return (0, 0, 0, 0)
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _concluded(connection: duckdb.DuckDBPyConnection) -> list[str]:
    rows = connection.execute(
        "select table_name from duckdb_tables() where database_name = 'old' and schema_name = 'mart' order by 1"
    ).fetchall()
    return [name for (name,) in rows if name not in _NOT_CONCLUDED]


def _compared(connection: duckdb.DuckDBPyConnection, schema: str, table: str, only: str) -> Comparison:
    """Rows are compared as a multiset, by a 64-bit hash of all their columns: whole rows might not fit memory."""
    run = connection.execute
    columns = [
        name
        for (name,) in run(
            "select column_name from duckdb_columns() where database_name = 'old' and schema_name = ? "
            "and table_name = ? order by column_index",
            [schema, table],
        ).fetchall()
        if _OUTSIDE.get(name, "-") not in (None, table)
    ]
    hashed = f"hash({', '.join(columns)})"
    fresh, old = (f"from {catalog}.{schema}.{table} {only}" for catalog in ("store", "old"))
    run(
        "create or replace temp table differing as select row_hash, sum(side)::bigint as surplus from "
        f"(select {hashed} as row_hash, 1 as side {fresh} union all select {hashed}, -1 {old}) "
        "group by row_hash having sum(side) <> 0"
    )
    missing, extra, rows = run(
        "select coalesce(sum(surplus) filter (surplus > 0), 0)::bigint, "
        f"coalesce(-sum(surplus) filter (surplus < 0), 0)::bigint, (select count(*) {old}) from differing"
    ).fetchall()[0]
    place = [name for name in ("source_id", "line_no") if name in columns] if schema == "facts" else columns[:2]
    first = None
    if missing or extra:
        shown = ", ".join(f"'{name}', {name}" for name in place)
        first, *_ = run(
            f"select concat_ws(' ', {shown}) as place from "
            f"(select {', '.join(place)}, {hashed} as row_hash {fresh} union all "
            f"select {', '.join(place)}, {hashed} {old}) semi join differing using (row_hash) "
            f"order by {', '.join(place)} limit 1"
        ).fetchall()[0]
    return Comparison(f"{schema}.{table}", rows, missing, extra, first)
