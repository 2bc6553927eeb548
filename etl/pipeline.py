"""How does a load bring a store up to date, from discovery to publishing?

discover, extract to Parquet parts, facts, resolve, checks, a fresh file, one replace. The clock is an argument: rows of
facts and mart do not know it, only the row of the load does.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from etl import providers
from etl.discover import discover
from etl.errors import BrokenPromise, StoreError
from etl.executors import Serial
from etl.extract import Extracted, extract
from etl.mask import mask_text
from etl.store import Builder, Finding, by_table, inspect, publish, refuse_stale_wal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from etl.discover import Discovery, Found
    from etl.providers.base import Environment

#: A source that a broken check names is taken out and the rest checked again, at most so many times.
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Request:
    """What to load: provider names (none: all), roots named by the user per provider, and where and as whom."""

    db: str
    host: str
    environment: Environment
    key: bytes
    version: str
    providers: tuple[str, ...] = ()
    roots: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class Report:
    """What a load did. ``findings`` are the rows of checks that were published with; ``unclaimed`` counts names that no
    path grammar claims, by ending; ``problems`` are folders that could not be looked into, masked like
    stored text.
    """

    load_id: str
    db: str
    sources_seen: int = 0
    sources_read: int = 0
    sources_failed: int = 0
    not_recognised: int = 0
    bytes_read: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    quarantined: dict[str, str] = field(default_factory=dict)
    unclaimed: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    peak_rss: int = 0

    @property
    def clean(self) -> bool:
        """No source was quarantined and no budget of findings exceeded."""
        return not self.findings and not self.quarantined and not self.sources_failed


def load(request: Request, clock: Callable[[], datetime], narrate: Callable[[str], None] = lambda _: None) -> Report:
    """Builds the store of everything that is found and publishes it.

    Raises StoreError when the store cannot be replaced, BrokenPromise when a check names a fault of ours and no source;
    then nothing is published.
    """
    db = os.path.abspath(request.db)
    folder = _prepare(db)
    started = clock()
    report = Report(f"{started:%Y%m%dT%H%M%S}.{started.microsecond:06d}-{os.getpid()}", db)
    try:
        found = _discover(request, report)
        watch = _Stopwatch(clock, report)
        watch.lap("discover")
        narrate(f"{len(found)} files found")
        extracted = _extract(found, folder, request.key)
        report.sources_read, report.sources_failed = extracted.sources, extracted.failed
        report.not_recognised, report.bytes_read = extracted.not_recognised, extracted.bytes_read
        watch.lap("extract")
        built = os.path.join(folder, "store.duckdb")
        with Builder(built, os.path.join(folder, "spill")) as builder:
            report.rows = builder.load(by_table((part.table, part.path) for part in extracted.parts), report.load_id)
            watch.lap("facts")
            _conclude(builder, report)
            if report.quarantined:
                report.rows = builder.rows()
            watch.lap("resolve and check")
            report.peak_rss = _peak_rss()
            builder.finish(os.urandom(8).hex(), request.version, _load_row(request, report, started, clock()))
        publish(built, db)
        watch.lap("publish")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return report


class _Stopwatch:
    """Seconds per stage, by the caller's clock."""

    def __init__(self, clock: Callable[[], datetime], report: Report) -> None:
        self.clock, self.report, self.last = clock, report, clock()

    def lap(self, stage: str) -> None:
        """The stage ends now."""
        now = self.clock()
        self.report.seconds[stage] = round((now - self.last).total_seconds(), 3)
        self.last = now


def _prepare(db: str) -> str:
    """A folder of this run beside the store, once it is sure that the store may be replaced."""
    folder = os.path.dirname(db)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot make the folder of the store, {folder}: {error.strerror}") from error
    if os.path.isdir(db):
        raise StoreError(f"{db} is a folder")
    refuse_stale_wal(db)
    if os.path.exists(db):
        inspect(db)  # never replaces a file that is no store, or one of a newer version
    try:
        return tempfile.mkdtemp(prefix=".sessionmart-", dir=folder)
    except OSError as error:
        raise StoreError(f"the folder of the store cannot be written: {folder}: {error.strerror}") from error


def _discover(request: Request, report: Report) -> list[Found]:
    chosen = request.providers or tuple(request.roots) or providers.names()
    found: list[Found] = []
    for name in dict.fromkeys(chosen):
        seen: Discovery = discover(providers.get(name), request.environment, request.host, request.roots.get(name, ()))
        found += seen.found
        report.problems += [mask_text(problem, request.key) for problem in seen.problems]
        report.unclaimed = dict(Counter(report.unclaimed) + seen.unclaimed)
    report.sources_seen = len(found)
    return found


def _extract(found: Sequence[Found], folder: str, key: bytes) -> Extracted:
    with Serial() as executor:
        return executor.submit(extract, found, folder, "part", key).result()


def _conclude(builder: Builder, report: Report) -> None:
    """Resolves and checks; what a broken check names by source is taken out, and the rest concluded again."""
    for _ in range(_ROUNDS):
        builder.resolve()
        findings = builder.check()
        broken = [finding for finding in findings if finding.severity == "broken"]
        named = {f.source_id: f.check for f in broken if f.source_id is not None}
        named = {source: check for source, check in named.items() if check != "failed_sources"}
        nameless = [finding for finding in broken if finding.source_id is None]
        if not named:
            if nameless:
                raise BrokenPromise(f"check {nameless[0].check}: {nameless[0].detail}")
            report.findings = [f for f in findings if f.check != "failed_sources"]
            return
        report.quarantined.update(named)
        builder.quarantine(named)
    raise BrokenPromise(f"sources keep breaking checks: {', '.join(sorted(set(report.quarantined.values())))}")


def _load_row(request: Request, report: Report, started: datetime, now: datetime) -> dict[str, object]:
    checks = Counter(finding.check for finding in report.findings)
    return {
        "load_id": report.load_id,
        "started_at": started,
        "finished_at": now,
        "host": request.host,
        "version": request.version,
        "state": "published",
        "sources_seen": report.sources_seen,
        "sources_changed": report.sources_read,
        "sources_failed": report.sources_failed + len(report.quarantined),
        "sources_gone": 0,
        "rows_per_table": json.dumps(report.rows),
        "rejects": report.rows.get("rejects", 0),
        "conflicts": report.rows.get("conflicts", 0),
        "redactions": report.rows.get("redactions", 0),
        "bytes_read": report.bytes_read,
        "seconds_per_stage": json.dumps(report.seconds),
        "peak_rss": json.dumps({"main": report.peak_rss}),
        "checks": json.dumps(checks),
    }


def _peak_rss() -> int:
    """Peak memory of this process, bytes (Linux counts kilobytes, macOS bytes)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
