"""How does a load bring a store up to date, from discovery to publishing?

discover, compare with the ledger, extract what changed to Parquet parts, facts, resolve, checks, a file built aside,
one replace. The clock is an argument: rows of facts and mart do not know it, only the row of the load does.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import duckdb

from etl import providers
from etl.builder import Builder, disk_full, scratch_folder
from etl.discover import discover
from etl.errors import BrokenPromise, StoreError
from etl.executors import Serial, process_pool, run_tasks
from etl.extract import Extracted, extract, failed_source, peak_rss
from etl.ledger import UNREAD, Ledger, Plan, plan, tasks_of
from etl.lock import store_lock
from etl.mask import MASK_VERSION, mask_text
from etl.prices import read_price_list
from etl.request import Report, Request, Stopwatch
from etl.schema import PARSER_VERSION
from etl.statelog import append
from etl.store import inspect, publish, refuse_stale_wal

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from concurrent.futures import Executor
    from datetime import datetime

    from etl.discover import Found
    from etl.store import Finding, StoreInfo

#: Source bytes per task: large enough to amortise a task, small enough for a worker's memory.
TASK_BYTES: Final = 16 * 1024 * 1024
#: Below this much source a pool of processes costs more than it gives.
POOL_BYTES: Final = 16 * 1024 * 1024
#: Above this share of dead rows, or of sources to read, the store is written afresh.
_AFRESH_SHARE: Final = 0.25
#: A store larger than this share of what it would take afresh is written so. Copies leave half-filled blocks: one night
#: with 11 of 773 files changed added 18 % to a store of 36 MB with 0.6 % of its rows dead, eight nights 41 %.
_AFRESH_GROWTH: Final = 1.15
#: What a copy has become is held to this share too before it is published: one night of a simulated year took a store
#: from below 1.15 to 1.66 (the engine frees blocks only once the new ones are written). Not below ``_LEAST_BYTES``:
#: blocks of a small file are mostly empty.
_COPY_GROWTH: Final = 1.25
_LEAST_BYTES: Final = 24_000_000
#: A smaller store is written afresh in any case: it costs no more, and blocks of a small file are mostly empty.
COPY_ROWS: Final = 200_000
#: Tasks whose parts are added together: a statement for each table costs more than the rows of one task.
_ADD_TASKS: Final = 4
#: Tasks whose parts go into one transaction.
_COMMIT_TASKS: Final = 16
#: A source that a broken check names is taken out and the rest checked again, at most so many times.
_ROUNDS: Final = 3
#: What the engine makes of a Ctrl-C that comes while it works (a RuntimeError).
_INTERRUPTED: Final = "Query interrupted"
#: What rows depend on beside the bytes of a file.
_RULES: Final = f"{PARSER_VERSION}.{MASK_VERSION}"


def load(request: Request, clock: Callable[[], datetime], narrate: Callable[[str], None] = lambda _: None) -> Report:
    """Brings the store up to date and publishes it, or leaves it as it is when nothing changed.

    Raises StoreBusy when another load runs, StoreError when the store cannot be replaced, BrokenPromise when a check
    names a fault of ours and no source; then nothing is published.
    """
    db = os.path.realpath(request.db)  # a link to a store stays a link
    _prepare(db)
    with store_lock(db):
        started = clock()
        report = Report(f"{started:%Y%m%dT%H%M%S}.{started.microsecond:06d}-{os.getpid()}", db, started)
        _sweep(db)
        known = inspect(db) if os.path.exists(db) else None  # never replaces what is no store, or a newer one
        watch = Stopwatch(clock, report)
        ledger = Ledger(os.urandom(8).hex(), "")
        if known is not None:
            report.store_id = known.store_id
            ledger = Ledger.read(request.state, known.store_id, known.last_load_id)
        else:
            report.store_id = ledger.store_id
        todo = _plan(request, ledger, report)
        watch.lap("discover")
        narrate(f"{report.sources_seen} files found, {len(todo.read)} to read")
        prices = read_price_list(request.prices)
        is_repriced = known is not None and known.prices != prices.digest
        is_reset = known is not None and known.settings != request.settings.digest
        if known is not None and todo.is_empty and not is_repriced and not is_reset:
            report.state = "unchanged"
        else:
            if is_repriced:
                narrate(f"another price table ({prices.source} {prices.version}): every cost is computed anew")
            if is_reset:
                narrate("other settings: every session is concluded anew")
            afresh = known is None or request.full or is_repriced or is_reset or _is_worn(known, ledger, todo, report)
            with _run_folder(db) as folder:
                copied = None if afresh else ledger.bytes_per_row
                afresh = _load(request, report, todo, known, folder, watch, clock, copied=copied)
            _remember(request, report, ledger, todo, afresh=afresh)
        append(request.state, report, clock())
    return report


class _run_folder:  # noqa: N801 - reads as a function
    """A folder for the parts of one run, beside the store (the same file system: it is replaced by a rename)."""

    def __init__(self, db: str) -> None:
        self.db = db

    def __enter__(self) -> str:
        try:
            self.folder = tempfile.mkdtemp(prefix=_run_prefix(self.db), dir=os.path.dirname(self.db))
        except OSError as error:
            folder = os.path.dirname(self.db)
            raise StoreError(f"the folder of the store cannot be written: {folder}: {error.strerror}") from error
        return self.folder

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _run_prefix(db: str) -> str:
    return f".{os.path.basename(db)}.run-"


def _sweep(db: str) -> None:
    """Removes what an interrupted run left: the lock says that none is running now."""
    folder, prefix = os.path.dirname(db), _run_prefix(db)
    for entry in os.scandir(folder):
        if entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path, ignore_errors=True)


def _prepare(db: str) -> None:
    """Makes the folder of the store; raises StoreError where the store cannot be replaced."""
    folder = os.path.dirname(db)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot make the folder of the store, {folder}: {error.strerror}") from error
    if os.path.isdir(db):
        raise StoreError(f"{db} is a folder")
    refuse_stale_wal(db)


def _plan(request: Request, ledger: Ledger, report: Report) -> Plan:
    """Discovers, and compares with the ledger."""
    chosen = request.providers or tuple(request.roots) or providers.names()
    found: list[Found] = []
    walked: dict[str, int] = {}
    for name in dict.fromkeys(chosen):
        seen = discover(providers.get(name), request.environment, request.host, request.roots.get(name, ()))
        found += seen.found
        walked |= seen.walked
        report.problems += [mask_text(problem, request.key) for problem in seen.problems]
        report.unclaimed = dict(Counter(report.unclaimed) + seen.unclaimed)
        report.provider(name).seen = len(seen.found)
    masked = {root: mask_text(root, request.key) for root in walked}
    todo = plan(
        ledger, found, _RULES, {masked[root]: number for root, number in walked.items()}, masked, full=request.full
    )
    report.sources_seen, report.sources_unchanged = len(found), len(todo.unchanged)
    report.sources_gone, report.sources_suspicious = len(todo.gone), len(todo.suspicious)
    for item in todo.read:
        report.provider(item.source.provider).changed += 1
    return todo


def _is_worn(known: StoreInfo, ledger: Ledger, todo: Plan, report: Report) -> bool:
    """Is the store better written afresh than brought up to date on a copy?"""
    if known.live_rows < COPY_ROWS or known.dead_share > _AFRESH_SHARE:
        return True
    if len(todo.read) > _AFRESH_SHARE * max(1, report.sources_seen):
        return True
    return os.path.getsize(report.db) > _AFRESH_GROWTH * ledger.rows * ledger.bytes_per_row


def _load(
    request: Request,
    report: Report,
    todo: Plan,
    known: StoreInfo | None,
    folder: str,
    watch: Stopwatch,
    clock: Callable[[], datetime],
    *,
    copied: float | None,
) -> bool:
    """Builds and publishes the store: on a copy, of which so many bytes a row are expected, or (None) afresh. Whether
    it was written afresh in the end.
    """
    afresh = copied is None
    built = os.path.join(folder, "store.duckdb")
    try:
        published = None if known is None else report.db
        prices = read_price_list(request.prices)
        scratch, settings = scratch_folder(folder), request.settings
        with Builder(built, scratch, published, afresh=afresh, prices=prices, settings=settings) as builder:
            builder.replace([item.source.source_id for item in todo.read])
            builder.set_state(todo.gone, "gone")
            builder.set_state(todo.suspicious, "suspicious")
            _extract_into(builder, todo, request, report, folder)
            watch.lap("extract and facts")
            _conclude(builder, report)
            watch.lap("resolve and check")
            for name in builder.providers_of([*report.failed, *report.quarantined]):
                report.provider(name).failed += 1
            for name in builder.providers_of([*todo.gone, *todo.suspicious]):
                report.provider(name).gone += 1
            report.rows = builder.rows()
            report.peak_rss["main"] = peak_rss()
            dead = known.dead_rows if known is not None else 0
            row = _load_row(request, report, clock())
            builder.log(row)
            builder.finish(report.store_id, request.version, report.load_id, dead)
        if copied is not None and _has_grown(built, sum(report.rows.values()) * copied):
            built, afresh = _written_afresh(built, folder, report, request.version), True
        publish(built, report.db)
    except duckdb.Error as error:
        full = disk_full(error)
        if full is None:
            raise
        raise full from error
    except RuntimeError as error:
        if str(error) == _INTERRUPTED:
            raise KeyboardInterrupt from error
        raise
    watch.lap("publish")
    return afresh


def _has_grown(built: str, expected: float) -> bool:
    return os.path.getsize(built) > max(_LEAST_BYTES, _COPY_GROWTH * expected)


def _written_afresh(built: str, folder: str, report: Report, version: str) -> str:
    """The same store in a new file: what a copy leaves behind in one night can be half of it."""
    path = os.path.join(folder, "afresh.duckdb")
    with Builder(path, scratch_folder(folder), built, afresh=True) as builder:
        builder.replace([])
        builder.resolve()
        builder.finish(report.store_id, version, report.load_id, 0)
    return path


def _extract_into(builder: Builder, todo: Plan, request: Request, report: Report, folder: str) -> None:
    """Extracts and adds to facts as parts come: the writer works while the readers read."""
    workers = request.jobs if sum(item.size for item in todo.read) >= POOL_BYTES else 1
    tasks = tasks_of(todo.read, TASK_BYTES if request.task_bytes is None else request.task_bytes)
    run = partial(_task, folder, request.key, request.flush_bytes)
    make: Callable[[], Executor] = Serial if workers == 1 else partial(process_pool, workers)
    vanished: list[str] = []
    waiting = Extracted()
    with closing(_completed(run, make, tasks, workers, folder, request.key)) as completed:
        for number, extracted in enumerate(completed, 1):
            report.include(extracted)
            vanished += extracted.vanished
            waiting = waiting.include(extracted)
            if number % _ADD_TASKS == 0:
                _add(builder, waiting, report.load_id)
                waiting = Extracted()
            if number % _COMMIT_TASKS == 0:
                builder.commit()
    _add(builder, waiting, report.load_id)
    _let_go(builder, vanished, todo, report)


def _add(builder: Builder, extracted: Extracted, load_id: str) -> None:
    builder.add(extracted.by_table(), load_id)
    for part in extracted.parts:
        os.unlink(part.path)


def _let_go(builder: Builder, vanished: Sequence[str], todo: Plan, report: Report) -> None:
    """Files that went away between discovery and reading are gone: what was read of them earlier stays."""
    known = [source for source in vanished if builder.put_back(source)]
    builder.set_state(known, "gone")
    report.sources_gone += len(known)
    todo.gone += vanished
    for source in vanished:
        todo.entries.pop(source, None)


def _task(folder: str, key: bytes, flush_bytes: int | None, number: int, items: Sequence[Found]) -> Extracted:
    """What a worker runs."""
    return extract(items, folder, f"task{number:06d}", key, flush_bytes)


def _completed(
    run: Callable[[int, Sequence[Found]], Extracted],
    make: Callable[[], Executor],
    tasks: Sequence[Sequence[Found]],
    workers: int,
    folder: str,
    key: bytes,
) -> Generator[Extracted]:
    with closing(run_tasks(make, run, tasks, workers + 1)) as completed:
        for items, extracted in completed:
            yield extracted if extracted is not None else failed_source(items[0], folder, key, "its worker died")


def _conclude(builder: Builder, report: Report) -> None:
    """Resolves and checks; what failed, or a broken check names, is taken out, and the rest concluded again."""
    failed = builder.failed()
    builder.take_out(failed)
    report.failed.update(failed)
    for _ in range(_ROUNDS):
        builder.resolve()
        findings = builder.check()
        named, nameless = _broken(findings)
        if not named:
            if nameless:
                raise BrokenPromise(f"check {nameless[0].check}: {nameless[0].detail}")
            report.findings = [finding for finding in findings if finding.check != "failed_sources"]
            return
        report.quarantined.update(named)
        builder.take_out({source: f"check {check}" for source, check in named.items()})
    raise BrokenPromise(f"sources keep breaking checks: {', '.join(sorted(set(report.quarantined.values())))}")


def _broken(findings: Sequence[Finding]) -> tuple[dict[str, str], list[Finding]]:
    """Broken promises by the source they name, and those that name none."""
    broken = [finding for finding in findings if finding.severity == "broken" and finding.check != "failed_sources"]
    named = {finding.source_id: finding.check for finding in broken if finding.source_id is not None}
    return named, [finding for finding in broken if finding.source_id is None]


def _remember(request: Request, report: Report, ledger: Ledger, todo: Plan, *, afresh: bool) -> None:
    """The ledger after the publish: what failed is in it without a stamp, to be tried again, or to be seen gone."""
    entries = {
        source: entry for source, entry in ledger.entries.items() if source not in {*todo.gone, *todo.suspicious}
    }
    entries |= todo.entries
    for source in (*report.failed, *report.quarantined):
        if source in entries:
            entries[source] = replace(entries[source], stamp=UNREAD)
    rows = sum(report.rows.values())
    bytes_per_row = os.path.getsize(report.db) / max(1, rows) if afresh else ledger.bytes_per_row
    Ledger(report.store_id, report.load_id, entries, rows, bytes_per_row).write(request.state)


def _load_row(request: Request, report: Report, now: datetime) -> dict[str, object]:
    checks = Counter(finding.check for finding in report.findings)
    return {
        "load_id": report.load_id,
        "started_at": report.started,
        "finished_at": now,
        "host": request.host,
        "version": request.version,
        "state": "published",
        "sources_seen": report.sources_seen,
        "sources_changed": report.sources_read,
        "sources_failed": len(report.failed) + len(report.quarantined),
        "sources_gone": report.sources_gone + report.sources_suspicious,
        "rows_per_table": json.dumps(report.rows),
        "rejects": report.rows.get("rejects", 0),
        "conflicts": report.rows.get("conflicts", 0),
        "redactions": report.rows.get("redactions", 0),
        "bytes_read": report.bytes_read,
        "seconds_per_stage": json.dumps(report.seconds),
        "peak_rss": json.dumps(report.peak_rss),
        "checks": json.dumps(checks),
    }
