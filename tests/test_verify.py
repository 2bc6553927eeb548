"""Does `verify` see every row of a store that is not what the files say, and no other?"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from etl import pipeline
from etl import verify as verify_module
from etl.cli import run
from etl.errors import EXIT_BUG, EXIT_OK, EXIT_STORE, EXIT_USAGE, UsageError
from etl.keys import source_id
from etl.providers import qoder
from etl.providers.base import Environment
from etl.request import Report, Request
from etl.store import connect
from etl.verify import Verification, verify
from tests.loading import FIXTURES, HOST, KEY, rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event
    from etl.providers.base import RecordLike, Source

DEMO = FIXTURES / "demo"
ROOT = Path(__file__).parents[1]
FEW = ("calls_parallel", "fork", "subagents", "usage")


def request(home: Path, db: Path, **more: Any) -> Request:
    state = str(db.parent / "state")
    return Request(str(db), HOST, Environment(str(home)), KEY, "0.0.0", state, ("qoder",), **more)


def load(home: Path, db: Path) -> Report:
    return pipeline.load(request(home, db), lambda: datetime.now(UTC))


def differences(done: Verification) -> dict[str, tuple[int, int]]:
    """Missing and extra rows of the tables that differ."""
    return {table.table: (table.missing, table.extra) for table in done.tables if table.missing or table.extra}


def files_of(home: Path) -> list[Path]:
    return sorted(path for path in home.rglob("*.jsonl") if path.is_file())


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the demo tree; nobody alters it or the tree."""
    db = tmp_path_factory.mktemp("demo") / "s.duckdb"
    load(DEMO, db)
    return db


@pytest.fixture
def altered(demo: Path, tmp_path: Path) -> Path:
    """A copy of it, with its state, to be altered."""
    shutil.copytree(demo.parent, tmp_path / "altered")
    return tmp_path / "altered" / "s.duckdb"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A small home whose files may change."""
    for case in FEW:
        shutil.copytree(FIXTURES / "qoder" / case / "tree", tmp_path / "home", dirs_exist_ok=True)
    return tmp_path / "home"


def alter(db: Path, *statements: str) -> None:
    with duckdb.connect(str(db)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_store_that_is_what_the_files_say_is_green(demo: Path) -> None:
    before = (demo.read_bytes(), demo.stat().st_mtime_ns, sorted(os.listdir(demo.parent)))
    done = verify(request(DEMO, demo))
    counted = {table.table: table.rows for table in done.tables}

    assert (done.is_equal, done.has_ledger, done.verified) == (True, True, 48)
    assert (done.changed, done.failed, done.absent, done.new, done.unsampled) == ([], 0, 0, 0, 0)
    # 46 transcripts (2 of them sub-agents') and 2 meta files; 46 sessions of 68 turns
    assert (counted["facts.sources"], counted["mart.sessions"], counted["mart.session_links"]) == (48, 46, 2)
    stored = rows(
        demo,
        "select schema_name || '.' || table_name, estimated_size from duckdb_tables() "
        "where schema_name in ('facts', 'mart') and table_name not in ('loads', 'store')",
    )
    assert counted == dict(stored)
    assert {table.first_difference for table in done.tables} == {None}
    assert (demo.read_bytes(), demo.stat().st_mtime_ns, sorted(os.listdir(demo.parent))) == before


def test_every_altered_row_turns_it_red(altered: Path) -> None:
    ((source, line),) = rows(altered, "select source_id, line_no from facts.dialogue order by fact_id limit 1")
    alter(
        altered,
        f"update facts.dialogue set text = text || '.' where source_id = '{source}' and line_no = {line}",
        "delete from facts.tool_requests where fact_id = (select min(fact_id) from facts.tool_requests)",
        "insert into facts.records from facts.records where fact_id = (select min(fact_id) from facts.records)",
        "update facts.redactions set n = n + 1 where rowid = (select min(rowid) from facts.redactions)",
        "update mart.turns set status = null where session_id = (select min(session_id) from mart.turns) and turn_no = 1",
        "update mart.sessions set models = ['x'] where session_id = (select min(session_id) from mart.sessions)",
        "delete from mart.session_links",
    )
    done = verify(request(DEMO, altered))

    assert not done.is_equal
    assert differences(done) == {
        "facts.dialogue": (1, 1),
        "facts.tool_requests": (1, 0),
        "facts.records": (0, 1),
        "facts.redactions": (1, 1),
        "mart.turns": (1, 1),
        "mart.sessions": (1, 1),
        "mart.session_links": (2, 0),
    }
    first = {table.table: table.first_difference for table in done.tables}
    assert first["facts.dialogue"] == f"source_id {source} line_no {line}"


def test_a_source_whose_row_was_lost_is_missed(altered: Path) -> None:
    ((source,),) = rows(altered, "select max(source_id) from facts.sources")
    alter(altered, f"delete from facts.sources where source_id = '{source}'")
    done = verify(request(DEMO, altered), sample=1_000)

    assert (differences(done), done.new) == ({"facts.sources": (1, 0)}, 0)


def test_what_knows_the_load_stands_outside(altered: Path) -> None:
    alter(
        altered,
        "update facts.sources set first_load_id = 'x', last_load_id = 'y', source_state = 'suspicious'",
        "update mart.sessions set source_state = 'suspicious'",
        "update facts.redactions set fingerprint = 'FAKE'",
    )
    assert verify(replace(request(DEMO, altered), key=b"another key")).is_equal


def test_a_sample_is_the_same_every_time_and_sees_its_sources_only(altered: Path) -> None:
    alter(altered, "update facts.sources set lines = lines + 1, size = -1")
    chosen = request(DEMO, altered)
    one, again = (verify(chosen, sample=5, seed=7) for _ in range(2))
    other = verify(chosen, sample=5, seed=8)

    assert one == again
    assert (one.verified, one.unsampled) == (5, 43)
    assert differences(one) == differences(other) == {"facts.sources": (5, 5)}
    assert {table.table.partition(".")[0] for table in one.tables} == {"facts"}  # conclusions need every source
    assert one.tables[0].first_difference != other.tables[0].first_difference


def test_files_that_changed_are_told_apart(home: Path, tmp_path: Path) -> None:
    db = tmp_path / "store" / "s.duckdb"
    load(home, db)
    grown, gone = files_of(home)[:2]
    with grown.open("ab") as file:
        file.write(b'{"type":"ai-title","aiTitle":"Later"}\n')
    gone.unlink()
    (grown.parent / "new.jsonl").write_bytes(b'{"type":"ai-title","aiTitle":"New"}\n')
    name = source_id(HOST, "qoder", None, grown.relative_to(home / ".qoder" / "projects").as_posix())
    names = {source for (source,) in rows(db, "select source_id from facts.sources")}
    assert name in names
    done = verify(request(home, db))
    assert (done.is_equal, done.changed, done.absent, done.new) == (True, [name], 1, 1)
    assert done.verified == len(names) - 2
    assert any(table.table == "mart.sessions" for table in done.tables)

    shutil.rmtree(db.parent / "state")  # nobody knows now which file has changed
    blind = verify(request(home, db))
    assert (blind.has_ledger, blind.changed, differences(blind)["facts.sources"]) == (False, [], (1, 1))

    load(home, db)
    after = verify(request(home, db))
    assert (after.is_equal, after.changed, after.new, after.absent) == (True, [], 0, 1)


def test_a_file_that_changes_while_it_is_read_is_told_apart(home: Path, tmp_path: Path) -> None:
    db = tmp_path / "store" / "s.duckdb"
    load(home, db)
    grown = files_of(home)[0]

    def write(_: str) -> None:  # between looking for files and reading them
        with grown.open("ab") as file:
            file.write(b'{"type":"ai-title","aiTitle":"Meanwhile"}\n')

    done = verify(request(home, db), narrate=write)
    assert (done.is_equal, len(done.changed)) == (True, 1)
    assert any(table.table == "mart.sessions" and table.rows for table in done.tables)


def test_rows_of_older_rules_are_no_difference(altered: Path) -> None:
    alter(
        altered,
        "update facts.sources set parser_version = 0 where source_id = (select min(source_id) from facts.sources)",
    )
    done = verify(request(DEMO, altered), sample=1_000)

    assert (done.is_equal, len(done.changed), done.verified) == (True, 1, 47)


def test_a_source_that_failed_is_told_apart(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = tmp_path / "store" / "s.duckdb"
    provider, bad = qoder.PROVIDER, files_of(home)[0].stem

    def adapt(source: Source, session: str, records: Iterator[RecordLike]) -> Iterator[Event]:
        if source.claim.native_id == bad:
            raise KeyError(bad)
        return provider.adapt(source, session, records)

    with monkeypatch.context() as patch:
        patch.setattr(qoder, "PROVIDER", replace(provider, adapt=adapt))
        assert load(home, db).sources_failed == 1
    done = verify(request(home, db))
    assert (done.is_equal, done.failed) == (True, 1)


def test_an_adapter_that_says_something_else_now_turns_it_red(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = tmp_path / "store" / "s.duckdb"
    load(home, db)
    provider = qoder.PROVIDER

    def adapt(_source: Source, _session: str, _records: Iterator[RecordLike]) -> Iterator[Event]:
        raise KeyError

    monkeypatch.setattr(qoder, "PROVIDER", replace(provider, adapt=adapt))
    done = verify(request(home, db))
    ((dialogue,),) = rows(db, "select count(*) from facts.dialogue")
    assert dialogue > 0
    assert differences(done)["facts.dialogue"] == (0, dialogue)


def test_a_store_brought_up_to_date_on_a_copy_is_green(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "COPY_ROWS", 0)
    db = tmp_path / "store" / "s.duckdb"
    files = {file: file.read_bytes() for file in files_of(home)}
    late = next(iter(files))
    late.unlink()
    load(home, db)
    for file, data in files.items():
        if file is not late:
            file.write_bytes(data + b'{"type":"ai-title","aiTitle":"Grown"}\n')
            load(home, db)
    late.write_bytes(files[late])
    load(home, db)
    assert rows(db, "select dead_rows > 0 from mart.store") == [(True,)]
    done = verify(request(home, db))
    assert (done.is_equal, done.changed, done.verified) == (True, [], len(list(home.rglob("*.json*"))))


def test_workers_compare_the_same(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    db = tmp_path / "store" / "s.duckdb"
    load(home, db)
    monkeypatch.setattr(verify_module, "POOL_BYTES", 0)
    assert verify(request(home, db, jobs=2, task_bytes=1)) == verify(request(home, db))


def test_readers_stay_connected(home: Path, tmp_path: Path) -> None:
    db = tmp_path / "store" / "s.duckdb"
    load(home, db)
    code = f"from etl.store import connect\nc = connect({str(db)!r})\nprint(flush=True)\ninput()\nprint(len(c.execute('from sessions').fetchall()))"
    with connect(str(db)) as inside:
        pulled = inside.execute("from dialogue")
        pulled.fetchone()
        with subprocess.Popen(
            [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as outside:
            assert outside.stdout is not None
            outside.stdout.readline()
            assert verify(request(home, db)).is_equal
            told, _ = outside.communicate(b"\n")
        assert pulled.fetchone() is not None
    assert [(int(told),)] == rows(db, "select count(*) from sessions")


def test_roots_that_hold_nothing_of_the_store_are_a_mistake(demo: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="on host elsewhere"):
        verify(replace(request(DEMO, demo), host="elsewhere"))
    with pytest.raises(UsageError, match="none of the store's 48 sources"):
        verify(request(tmp_path, demo))


def test_the_command(altered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "none"))
    arguments = ["verify", "--home", str(DEMO), "--host", HOST, "--db", str(altered), "--sample", "2", "--jobs", "1"]
    assert run(arguments) == EXIT_OK
    told = capfd.readouterr()
    assert "facts.sources              2        0      0" in told.out
    assert "no ledger" in told.err
    assert told.err.endswith("2 sources compared: equal\n")

    alter(altered, "update facts.sources set lines = 0")
    assert run([*arguments, "--format", "json", "--quiet"]) == EXIT_BUG
    told = capfd.readouterr()
    assert told.err == ""
    found = json.loads(told.out)
    assert (found["is_equal"], found["unsampled"]) == (False, 46)
    assert {name: found["tables"][0][name] for name in ("table", "rows", "missing", "extra")} == {
        "table": "facts.sources",
        "rows": 2,
        "missing": 2,
        "extra": 2,
    }

    assert run([*arguments, "--host", "elsewhere"]) == EXIT_USAGE
    assert run([*arguments, "--db", str(tmp_path / "none.duckdb")]) == EXIT_STORE
