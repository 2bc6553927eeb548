"""Does a store that was brought up to date step by step equal one that was loaded at once?"""

from __future__ import annotations

import itertools
import os
import random
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from etl import pipeline
from etl.builder import Builder
from etl.providers.base import Environment
from etl.request import Report, Request
from etl.store import connect

DEMO = Path(__file__).parents[1] / "fixtures" / "demo"
FORTY = Path(__file__).parents[1] / "fixtures" / "qoder"
#: Columns that know the load, and so stand outside every equality.
OUTSIDE = {"first_load_id", "last_load_id", "source_state", "fingerprint"}


def load(home: Path, db: Path, **more: Any) -> Report:
    """Loads a home into a store; ledgers live beside the store's folder."""
    request = Request(
        str(db), "host", Environment(str(home)), b"key", "0", str(db.parent / "state"), ("qoder",), **more
    )
    return pipeline.load(request, lambda: datetime.now(UTC))


def content(db: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of facts and mart that an equality holds for, sorted, by table."""
    connection = connect(str(db))
    tables = connection.execute(
        "select schema_name, table_name from duckdb_tables() where schema_name in ('facts', 'mart') "
        "and table_name not in ('loads', 'store')"
    ).fetchall()
    found = {}
    for schema, table in tables:
        columns = [
            row[0] for row in connection.execute(f"describe {schema}.{table}").fetchall() if row[0] not in OUTSIDE
        ]
        rows = connection.execute(f"select {', '.join(columns)} from {schema}.{table} order by all").fetchall()  # noqa: S608
        found[f"{schema}.{table}"] = rows
    connection.close()
    return found


def assert_same(one: Path, other: Path) -> None:
    left, right = content(one), content(other)
    assert left.keys() == right.keys()
    for table in left:
        assert left[table] == right[table], table


def files_of(home: Path) -> list[Path]:
    return sorted(path.relative_to(home) for path in home.rglob("*") if path.is_file())


def copy(home: Path, to: Path, files: list[Path]) -> None:
    for file in files:
        (to / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(home / file, to / file)


@pytest.mark.parametrize(("seed", "copy_rows"), [(1, 0), (2, 0), (3, 1 << 60)])
def test_files_that_come_in_any_order_and_grow_give_the_store_of_a_full_load(
    tmp_path: Path, seed: int, copy_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "COPY_ROWS", copy_rows)
    chance = random.Random(seed)
    files = files_of(DEMO)
    chance.shuffle(files)
    home, db = tmp_path / "home", tmp_path / "step" / "s.duckdb"
    home.mkdir()
    cut = [0, len(files) // 3, 2 * len(files) // 3, len(files)]
    for start, end in itertools.pairwise(cut):
        for file in files[start:end]:
            (home / file).parent.mkdir(parents=True, exist_ok=True)
            data = (DEMO / file).read_bytes()
            (home / file).write_bytes(data[: chance.randrange(len(data))] if file.suffix == ".jsonl" else data)
        load(home, db)
    copy(DEMO, home, files)  # every file has grown to its full length
    report = load(home, db)
    assert report.sources_read > 0
    load(home, tmp_path / "full" / "s.duckdb")
    assert_same(db, tmp_path / "full" / "s.duckdb")


def test_an_earlier_copy_that_comes_later_takes_ownership(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "COPY_ROWS", 0)
    example = FORTY / "example" / "tree"
    files = files_of(example)
    fork = [file for file in files if file.name.endswith("10b0f0.jsonl")]
    assert fork
    home, db = tmp_path / "home", tmp_path / "step" / "s.duckdb"
    copy(example, home, fork)
    load(home, db)
    connection = connect(str(db))
    assert connection.execute("select count(*) from copies").fetchall() == [(0,)]
    connection.close()
    copy(example, home, files)
    load(home, db)
    connection = connect(str(db))
    assert connection.execute("select count(*) from copies").fetchall() == [(1,)]
    connection.close()
    load(home, tmp_path / "full" / "s.duckdb")
    assert_same(db, tmp_path / "full" / "s.duckdb")


@pytest.mark.parametrize("least", [0, 1 << 60])
def test_a_copy_that_has_grown_past_its_bound_is_published_written_afresh(
    least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "COPY_ROWS", 0)
    monkeypatch.setattr(pipeline, "_AFRESH_GROWTH", 100.0)
    monkeypatch.setattr(pipeline, "_LEAST_BYTES", least)
    monkeypatch.setattr(pipeline, "_COPY_GROWTH", 0.01)
    home, db = tmp_path / "home", tmp_path / "step" / "s.duckdb"
    files = files_of(DEMO)
    copy(DEMO, home, files)
    load(home, db)
    grown = next(home / file for file in files if file.suffix == ".jsonl")
    grown.write_bytes(grown.read_bytes() + b'{"type":"mode","mode":"plan"}\n')
    assert load(home, db).sources_read == 1
    connection = connect(str(db))
    dead, loads = connection.execute("select (select dead_rows from mart.store), count(*) from loads").fetchall()[0]
    connection.close()
    assert ((dead == 0), loads) == (least == 0, 2)
    load(home, tmp_path / "full" / "s.duckdb")
    assert_same(db, tmp_path / "full" / "s.duckdb")


def test_nothing_changed_reads_nothing_and_leaves_the_file(tmp_path: Path) -> None:
    home, db = tmp_path / "home", tmp_path / "s.duckdb"
    copy(DEMO, home, files_of(DEMO))
    first = load(home, db)
    assert (first.state, first.sources_read, first.bytes_read > 0) == ("published", 48, True)
    for file in files_of(home):
        (home / file).chmod(0o600)  # changes the change time: they are read again ...
        (home / file).chmod(0o644)
    again = load(home, db)
    assert (again.state, again.sources_read) == ("published", 48)
    before = db.stat()
    third = load(home, db)
    assert (third.state, third.sources_read, third.bytes_read) == ("unchanged", 0, 0)
    after = db.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_file_rewritten_in_place_with_its_old_size_and_time_is_read_again(tmp_path: Path) -> None:
    home, db = tmp_path / "home", tmp_path / "s.duckdb"
    copy(DEMO, home, files_of(DEMO))
    load(home, db)
    file = next(home / file for file in files_of(home) if file.suffix == ".jsonl")
    status, data = file.stat(), file.read_bytes()
    file.write_bytes(data.replace(b"2026-", b"2025-"))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert load(home, db).sources_read == 1


def test_gone_files_keep_their_sessions_and_an_emptied_root_is_suspicious(tmp_path: Path) -> None:
    home, db = tmp_path / "home", tmp_path / "s.duckdb"
    files = files_of(DEMO)
    copy(DEMO, home, files)
    load(home, db)
    gone = next(file for file in files if file.suffix == ".jsonl" and "subagents" not in file.parts)
    (home / gone).unlink()
    report = load(home, db)
    assert (report.sources_gone, report.providers["qoder"].seen, report.providers["qoder"].gone) == (1, 47, 1)
    connection = connect(str(db))
    assert connection.execute("select count(*), count(*) filter (source_state = 'gone') from sources").fetchall() == [
        (48, 1)
    ]
    states = connection.execute("select source_state, count(*) from sessions group by all order by all").fetchall()
    assert states == [("gone", 1), ("present", 45)]
    connection.close()
    shutil.rmtree(home / ".qoder")
    report = load(home, db)
    assert (report.sources_gone, report.sources_suspicious) == (0, 47)
    connection = connect(str(db))
    assert connection.execute("select distinct source_state from sessions order by 1").fetchall() == [
        ("gone",),
        ("suspicious",),
    ]
    connection.close()
    copy(DEMO, home, files)
    load(home, db)
    connection = connect(str(db))
    assert connection.execute("select distinct source_state from sources").fetchall() == [("present",)]
    connection.close()
    load(home, tmp_path / "full" / "s.duckdb")
    assert_same(db, tmp_path / "full" / "s.duckdb")


def test_a_ledger_of_another_load_is_ignored(tmp_path: Path) -> None:
    home, db = tmp_path / "home", tmp_path / "s.duckdb"
    copy(DEMO, home, files_of(DEMO))
    load(home, db)
    kept = tmp_path / "kept.duckdb"
    shutil.copyfile(db, kept)
    file = next(home / file for file in files_of(home) if file.suffix == ".jsonl")
    with file.open("ab") as more:
        more.write(b'{"type":"ai-title","aiTitle":"Later"}\n')
    assert load(home, db).sources_read == 1
    shutil.copyfile(kept, db)  # somebody restored last night's store: the ledger tells of a later one
    assert load(home, db).sources_read == 48


def test_dead_rows_bring_a_fresh_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, db = tmp_path / "home", tmp_path / "s.duckdb"
    copy(DEMO, home, files_of(DEMO))
    monkeypatch.setattr(pipeline, "COPY_ROWS", 0)
    load(home, db)
    file = max((home / file for file in files_of(home)), key=lambda path: path.stat().st_size)
    dead = []
    for night in range(12):
        with file.open("ab") as more:
            more.write(b'{"type":"ai-title","aiTitle":"Night %d"}\n' % night)
        load(home, db)
        connection = connect(str(db))
        dead.append(connection.execute("select dead_rows from mart.store").fetchall()[0][0])
        connection.close()
    load(home, tmp_path / "full" / "s.duckdb")
    assert dead[0] > 0  # on a copy ...
    assert 0 in dead[1:]  # ... and afresh when too much of it is dead
    assert_same(db, tmp_path / "full" / "s.duckdb")


@pytest.mark.parametrize(
    "how",
    [
        {"jobs": 2, "task_bytes": 100_000},
        {"task_bytes": 1},
        {"flush_bytes": 1, "task_bytes": 1_000},
        {"jobs": 5, "task_bytes": 1},
    ],
)
def test_batches_and_workers_give_the_same_rows(
    tmp_path: Path, how: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "POOL_BYTES", 0)
    load(DEMO, tmp_path / "plain" / "s.duckdb")
    load(DEMO, tmp_path / "other" / "s.duckdb", **how)
    assert_same(tmp_path / "plain" / "s.duckdb", tmp_path / "other" / "s.duckdb")


def test_too_little_memory_is_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that the engine cannot do within the limit is done again with more, and nothing is counted twice."""
    resolve = Builder._resolve
    ran_out: list[Exception] = []

    def starved(builder: Builder) -> None:
        if not ran_out:
            builder.connection.execute("set memory_limit = '2MB'")
        try:
            resolve(builder)
        except duckdb.OutOfMemoryException as error:
            ran_out.append(error)
            raise

    home, full = tmp_path / "home", tmp_path / "full" / "s.duckdb"
    copy(DEMO, home, files_of(DEMO))
    load(home, full)
    monkeypatch.setattr(Builder, "_resolve", starved)
    load(home, tmp_path / "starved" / "s.duckdb")
    assert len(ran_out) == 1
    assert_same(tmp_path / "starved" / "s.duckdb", full)
