"""Does `verify` see every row of a store that is not what the files say, and no other?"""

from __future__ import annotations

import json
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
from etl.errors import EXIT_BUG, EXIT_OK, EXIT_STORE, UsageError
from etl.providers import qoder
from etl.providers.base import Environment
from etl.request import Report, Request
from etl.store import connect
from etl.verify import Verification, verify
from tests.loading import FIXTURES, HOST, KEY, find, rows

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


def small_home(folder: Path) -> Path:
    for case in FEW:
        shutil.copytree(FIXTURES / "qoder" / case / "tree", folder, dirs_exist_ok=True)
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A small home whose files may change."""
    return small_home(tmp_path / "home")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Such a home and its store, which nobody changes."""
    folder = tmp_path_factory.mktemp("small")
    load(small_home(folder / "home"), folder / "store" / "s.duckdb")
    return folder / "home", folder / "store" / "s.duckdb"


def append(file: Path) -> None:
    with file.open("ab") as opened:
        opened.write(b'{"type":"ai-title","aiTitle":"Later"}\n')


def alter(db: Path, *statements: str) -> None:
    with duckdb.connect(str(db)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_store_that_is_what_the_files_say_is_green(demo: Path) -> None:
    before = (demo.read_bytes(), demo.stat().st_mtime_ns, sorted(demo.parent.rglob("*")))
    done = verify(request(DEMO, demo))
    counted = {table.table: table.rows for table in done.tables}

    assert (done.is_equal, done.has_ledger, done.verified) == (True, True, 48)
    assert (done.changed, done.failed, done.absent, done.new, done.unsampled) == ([], 0, 0, 0, 0)
    # 46 transcripts, 2 of them sub-agents', and the 2 meta files of these
    assert (counted["facts.sources"], counted["mart.sessions"], counted["mart.session_links"]) == (48, 46, 2)
    stored = rows(
        demo,
        "select schema_name || '.' || table_name, estimated_size from duckdb_tables() "
        "where schema_name in ('facts', 'mart') and table_name not in ('loads', 'store')",
    )
    assert counted == dict(stored)
    assert {table.first_difference for table in done.tables} == {None}
    assert (demo.read_bytes(), demo.stat().st_mtime_ns, sorted(demo.parent.rglob("*"))) == before


def test_every_altered_row_turns_it_red_but_for_what_knows_the_load(altered: Path) -> None:
    ((fact, source, line),) = rows(altered, "select fact_id, source_id, line_no from facts.dialogue order by 1 limit 1")
    first_turn = "(select session_id, turn_no from mart.turns order by all limit 1)"
    alter(
        altered,
        f"update facts.dialogue set text = text || '.' where fact_id = {fact}",  # noqa: S608
        "delete from facts.tool_requests where fact_id = (select min(fact_id) from facts.tool_requests)",
        "insert into facts.records from facts.records where fact_id = (select min(fact_id) from facts.records)",
        "update facts.redactions set n = n + 1 where rowid = (select min(rowid) from facts.redactions)",
        f"update mart.turns set status = null where (session_id, turn_no) in {first_turn}",  # noqa: S608
        "update mart.sessions set models = ['x'] where session_id = (select min(session_id) from mart.sessions)",
        "delete from mart.session_links",
        # and what must not show
        "update facts.sources set first_load_id = 'x', last_load_id = 'y', source_state = 'suspicious'",
        "update mart.sessions set source_state = 'suspicious'",
        "update facts.redactions set fingerprint = 'FAKE'",
    )
    done = verify(replace(request(DEMO, altered), key=b"another key"))

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


def test_a_source_whose_row_was_lost_is_missed_and_one_of_older_rules_is_told_apart(altered: Path) -> None:
    ((oldest, lost),) = rows(altered, "select min(source_id), max(source_id) from facts.sources")
    alter(
        altered,
        f"delete from facts.sources where source_id = '{lost}'",  # noqa: S608
        f"update facts.sources set parser_version = 0 where source_id = '{oldest}'",  # noqa: S608
    )
    done = verify(request(DEMO, altered), sample=1_000)

    assert differences(done) == {"facts.sources": (1, 0)}
    assert (done.changed, done.new, done.verified, done.unsampled) == ([oldest], 0, 47, 0)


def test_a_sample_sees_its_sources_only(altered: Path) -> None:
    alter(altered, "update facts.sources set lines = lines + 1, size = -1")
    done = verify(request(DEMO, altered), sample=5, seed=7)

    assert (done.verified, done.unsampled) == (5, 43)
    assert differences(done) == {"facts.sources": (5, 5)}
    assert {table.table.partition(".")[0] for table in done.tables} == {"facts"}  # conclusions need every source


def test_a_sample_is_the_same_every_time() -> None:
    found = find(DEMO)
    one, again, other = (
        [item.path for item in verify_module._sampled(items, 5, seed, Verification(""))]
        for items, seed in ((found, 7), (found[::-1], 7), (found, 8))
    )

    assert one == again
    assert (len(set(one)), len(set(other)), one != other) == (5, 5, True)


def test_files_that_failed_or_changed_since_or_change_meanwhile_are_told_apart(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = tmp_path / "store" / "s.duckdb"
    grown, gone, growing, bad = files_of(home)[:4]
    provider = qoder.PROVIDER

    def adapt(source: Source, session: str, records: Iterator[RecordLike]) -> Iterator[Event]:
        if source.rel_path.endswith(bad.name):
            raise KeyError(bad)
        return provider.adapt(source, session, records)

    with monkeypatch.context() as patch:
        patch.setattr(qoder, "PROVIDER", replace(provider, adapt=adapt))
        assert load(home, db).sources_failed == 1
    known = {Path(path).name: source for source, path in rows(db, "select source_id, rel_path from facts.sources")}
    append(grown)
    gone.unlink()
    append(grown.parent / "new.jsonl")
    # the narration comes between looking for the files and reading them
    done = verify(request(home, db), narrate=lambda _: append(growing))

    assert (done.is_equal, done.failed, done.absent, done.new) == (True, 1, 1, 1)
    assert done.changed == [known[grown.name], known[growing.name]]
    assert done.verified == len(known) - 4
    assert any(table.table == "mart.sessions" and table.rows for table in done.tables)

    shutil.rmtree(db.parent / "state")  # nobody knows now which files have changed
    blind = verify(request(home, db), sample=1_000)
    assert (blind.has_ledger, blind.changed, differences(blind)["facts.sources"]) == (False, [], (2, 2))


def test_an_adapter_that_says_something_else_now_turns_it_red(
    small: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def adapt(_source: Source, _session: str, _records: Iterator[RecordLike]) -> Iterator[Event]:
        raise KeyError

    monkeypatch.setattr(qoder, "PROVIDER", replace(qoder.PROVIDER, adapt=adapt))
    done = verify(request(*small))
    ((dialogue,),) = rows(small[1], "select count(*) from facts.dialogue")
    assert dialogue > 0
    assert differences(done)["facts.dialogue"] == (0, dialogue)


def test_a_store_brought_up_to_date_on_a_copy_is_green(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "COPY_ROWS", 0)
    monkeypatch.setattr(pipeline, "_AFRESH_GROWTH", 100.0)  # a copy of a small store grows beyond any use
    db = tmp_path / "store" / "s.duckdb"
    late, grown = files_of(home)[:2]
    data = late.read_bytes()
    late.unlink()
    load(home, db)
    append(grown)
    load(home, db)
    late.write_bytes(data)
    load(home, db)
    assert rows(db, "select dead_rows > 0 from mart.store") == [(True,)]
    done = verify(request(home, db))
    assert (done.is_equal, done.changed, done.absent, done.failed) == (True, [], 0, 0)
    assert [(done.verified,)] == rows(db, "select count(*) from facts.sources")


def test_workers_read_what_one_process_reads(small: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_module, "POOL_BYTES", 0)
    done = verify(request(*small, jobs=2))
    assert (done.is_equal, [(done.verified,)]) == (True, rows(small[1], "select count(*) from facts.sources"))


def test_readers_stay_connected(small: tuple[Path, Path]) -> None:
    db = str(small[1])
    code = (
        f"from etl.store import connect\nreader = connect({db!r})\nprint(flush=True)\ninput()\n"
        "print(len(reader.execute('from sessions').fetchall()))"
    )
    with connect(db) as inside:
        pulled = inside.execute("from dialogue")
        pulled.fetchone()
        with subprocess.Popen(
            [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as outside:
            assert outside.stdout is not None
            outside.stdout.readline()
            assert verify(request(*small)).is_equal
            told, _ = outside.communicate(b"\n")
        assert pulled.fetchone() is not None
    assert [(int(told),)] == rows(small[1], "select count(*) from sessions")


def test_roots_that_hold_nothing_of_the_store_are_a_mistake(demo: Path) -> None:
    with pytest.raises(UsageError, match="none of the store's 48 sources lies below these roots on host elsewhere"):
        verify(replace(request(DEMO, demo), host="elsewhere"))


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

    assert run([*arguments, "--db", str(tmp_path / "none.duckdb")]) == EXIT_STORE
