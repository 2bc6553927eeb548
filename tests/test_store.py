"""Is a store published in one step or not at all, and does it give away nothing but rows?"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pyarrow.parquet
import pytest

from etl import builder as builder_module
from etl import store
from etl.errors import EXIT_STORE, BrokenPromise, NotAStore, QueryError, StoreError, StoreMissing, StoreTooNew
from etl.events import Dialogue, ModelCall
from etl.providers import qoder
from etl.schema import TABLES
from tests.loading import FIXTURES, build, find, load_home, rows, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from etl.events import Event
    from etl.providers.base import RecordLike, Source

CASES: Final = FIXTURES / "qoder"
DAMAGE: Final = FIXTURES / "checks"
#: Everything that is concluded or counted, without what differs from load to load.
FACTS: Final = tuple(f"facts.{name}" for name in TABLES if name != "sources")
MART: Final = (
    *("mart.sessions", "mart.turns", "mart.dialogue", "mart.tool_calls"),
    *("mart.model_calls", "mart.files_touched", "mart.session_links", "mart.copies"),
)


def _home(folder: Path, *cases: str) -> Path:
    for case in cases:
        shutil.copytree(CASES / case / "tree", folder, dirs_exist_ok=True)
    return folder


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _files(folder: Path) -> int:
    return sum(path.is_file() for path in folder.rglob("*"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return _home(tmp_path / "home", "usage", "calls_parallel")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of the home, in a folder that the load made; no test changes it."""
    folder = tmp_path_factory.mktemp("shared")
    db = folder / "data" / "store.duckdb"
    load_home(_home(folder / "home", "usage", "calls_parallel"), db)
    return db


@pytest.fixture
def db(shared: Path, tmp_path: Path) -> Path:
    """A copy of that store."""
    path = tmp_path / "data" / "store.duckdb"
    path.parent.mkdir(mode=0o700)
    shutil.copyfile(shared, path)
    return path


# -- publishing


def test_a_published_store_is_private_and_leaves_nothing_beside_it(shared: Path) -> None:
    assert stat.S_IMODE(shared.stat().st_mode) == 0o600
    assert stat.S_IMODE(shared.parent.stat().st_mode) == 0o700
    assert _names(shared.parent) == [shared.name]


def test_a_folder_that_was_there_keeps_its_mode(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir(mode=0o755)
    load_home(home, folder / "store.duckdb")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755


def test_a_relative_path_is_taken_from_the_current_folder(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    load_home(home, Path("store.duckdb"))
    assert rows(tmp_path / "store.duckdb", "select count(*) > 0 from sessions") == [(True,)]


def test_a_second_load_replaces_the_first_and_open_connections_keep_theirs(home: Path, db: Path) -> None:
    before = store.connect(str(db))
    (old,) = before.execute("select count(*) from sessions").fetchall()
    _home(home, "fragments")
    load_home(home, db)
    after = store.connect(str(db))
    (new,) = after.execute("select count(*) from sessions").fetchall()
    assert new[0] == old[0] + 1
    assert before.execute("select count(*) from sessions").fetchall() == [old]
    assert before.execute("select sum(length(text)) > 0 from dialogue").fetchall() == [(True,)]
    before.close()
    after.close()


def test_a_load_of_nothing_gives_an_empty_store_that_answers(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    report = load_home(tmp_path / "home", tmp_path / "store.duckdb")
    assert report.clean
    assert rows(tmp_path / "store.duckdb", "select count(*) from sessions") == [(0,)]
    assert rows(tmp_path / "store.duckdb", "select sessions, raw_envelopes from qoder_report(40)") == [(0, 0)]


def _damaging(resolve: Callable[[builder_module.Builder], None], statements: str, *, times: int) -> Callable[..., None]:
    left = [times]

    def damaged(builder: builder_module.Builder) -> None:
        resolve(builder)
        if left[0]:
            left[0] -= 1
            builder.connection.execute(statements)

    return damaged


def test_a_broken_promise_without_a_source_publishes_nothing(
    home: Path, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = db.read_bytes()
    damage = (DAMAGE / "one_total" / "damage.sql").read_text(encoding="utf-8")
    monkeypatch.setattr(builder_module.Builder, "resolve", _damaging(builder_module.Builder.resolve, damage, times=9))
    with pytest.raises(BrokenPromise, match="one_total") as caught:
        load_home(home, db)
    assert caught.value.exit_code == 1
    assert db.read_bytes() == before
    assert _names(db.parent) == [db.name]


def test_an_exception_in_the_middle_publishes_nothing(home: Path, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = db.read_bytes()

    def stumble(*_: object) -> None:
        raise RuntimeError("in the middle")

    monkeypatch.setattr(builder_module.Builder, "finish", stumble)
    with pytest.raises(RuntimeError, match="in the middle"):
        load_home(home, db)
    assert db.read_bytes() == before
    assert _names(db.parent) == [db.name]


def test_a_full_disk_is_no_fault_of_a_source(home: Path, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = db.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pyarrow.parquet, "write_table", full)
    with pytest.raises(StoreError, match="No space left"):
        load_home(home, db)
    assert db.read_bytes() == before
    assert _names(db.parent) == [db.name]


def test_a_killed_load_leaves_the_last_good_store(home: Path, db: Path) -> None:
    before = db.read_bytes()
    program = (
        "import os, signal; from pathlib import Path; from tests.loading import load_home; from etl import builder\n"
        "builder.Builder.finish = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"load_home(Path({str(home)!r}), Path({str(db)!r}))"
    )
    died = subprocess.run([sys.executable, "-c", program], cwd=FIXTURES.parent, check=False)
    assert died.returncode == -signal.SIGKILL
    assert db.read_bytes() == before
    load_home(home, db)
    assert rows(db, "select count(*) > 0 from sessions") == [(True,)]


def test_a_wal_beside_the_store_stops_the_load_before_it_reads(home: Path, db: Path) -> None:
    before = db.read_bytes()
    wal = db.with_name(f"{db.name}.wal")
    wal.write_bytes(b"left by another tool")
    with pytest.raises(StoreError, match="Close it") as caught:
        load_home(home, db)
    assert caught.value.exit_code == EXIT_STORE
    assert db.read_bytes() == before
    assert _names(db.parent) == [db.name, wal.name]


def test_a_wal_that_comes_during_the_load_stops_the_publish(
    home: Path, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = db.read_bytes()
    finish = builder_module.Builder.finish

    def interfere(*arguments: Any) -> None:
        finish(*arguments)
        db.with_name(f"{db.name}.wal").write_bytes(b"left by another tool")

    monkeypatch.setattr(builder_module.Builder, "finish", interfere)
    with pytest.raises(StoreError, match=r"\.wal"):
        load_home(home, db)
    assert db.read_bytes() == before


# -- what is no store


def _random_bytes(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 64)


def _foreign(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table cooking (recipe varchar)")


def _foreign_with_the_same_name(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("create schema mart; create table mart.store (schema_version text, sessionmart_version int)")
        connection.execute("insert into mart.store values ('groceries', 7)")


def _store_without_its_row(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("create schema mart; create table mart.store (schema_version int, sessionmart_version text)")


NOT_STORES: Final = (
    _random_bytes,
    _foreign,
    _foreign_with_the_same_name,
    _store_without_its_row,
    Path.touch,
    Path.mkdir,
    os.mkfifo,
)


@pytest.mark.parametrize("make", NOT_STORES)
def test_what_is_no_store_is_never_replaced(make: Callable[[Path], None], home: Path, tmp_path: Path) -> None:
    path = tmp_path / "precious"
    make(path)
    before = path.read_bytes() if path.is_file() else path.stat().st_mode
    with pytest.raises(StoreError) as caught:
        load_home(home, path)
    assert caught.value.exit_code == EXIT_STORE
    assert before == (path.read_bytes() if path.is_file() else path.stat().st_mode)
    with pytest.raises(NotAStore):
        store.connect(str(path))
    assert _names(tmp_path) == ["home", "precious"]


def test_a_store_of_a_newer_version_is_neither_read_nor_replaced(home: Path, db: Path) -> None:
    with duckdb.connect(str(db)) as connection:
        connection.execute("update mart.store set schema_version = 999, sessionmart_version = '99.1'")
    before = db.read_bytes()
    for use in (lambda: load_home(home, db), lambda: store.connect(str(db)), lambda: store.inspect(str(db))):
        with pytest.raises(StoreTooNew, match=r"99\.1"):
            use()
    with pytest.raises(StoreTooNew):
        store.query(str(db), "select 1", 5, "100MB")
    assert db.read_bytes() == before


def test_a_missing_store_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing, match="sessionmart load"):
        store.connect(str(tmp_path / "none.duckdb"))
    with pytest.raises(StoreMissing):
        store.query(str(tmp_path / "none.duckdb"), "select 1", 5, "100MB")


def test_a_place_where_no_folder_can_be_is_one_sentence(home: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreError, match="cannot make the folder"):
        load_home(home, tmp_path / "file" / "below" / "store.duckdb")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="permissions do not bind this user")
def test_a_read_only_folder_is_one_sentence(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o555)
    with pytest.raises(StoreError, match="cannot be written"):
        load_home(home, folder / "store.duckdb")


# -- what is in it


def test_every_table_view_and_column_is_described(shared: Path) -> None:
    nameless = """
        select 'table ' || schema_name || '.' || table_name from duckdb_tables()
            where database_name = 'store' and coalesce(comment, '') = ''
        union all select 'view ' || schema_name || '.' || view_name from duckdb_views()
            where database_name = 'store' and not internal and coalesce(comment, '') = ''
        union all select 'column ' || schema_name || '.' || table_name || '.' || column_name from duckdb_columns()
            where database_name = 'store' and not internal and coalesce(comment, '') = ''
        union all select 'macro ' || schema_name || '.' || function_name from duckdb_functions()
            where database_name = 'store' and not internal and coalesce(comment, '') = ''
    """
    assert rows(shared, nameless) == []
    assert rows(shared, "select count(*) > 400 from duckdb_columns() where database_name = 'store'") == [(True,)]


def test_the_load_is_a_row(shared: Path) -> None:
    (row,) = table(shared, "select * from mart.loads")
    files = _files(CASES / "usage" / "tree") + _files(CASES / "calls_parallel" / "tree")
    assert (row["state"], row["sources_seen"], row["sources_failed"], row["sources_gone"]) == ("published", files, 0, 0)
    (named,) = rows(shared, "select distinct first_load_id, last_load_id from facts.sources")
    assert named == (row["load_id"], row["load_id"])


# -- queries of a user

REFUSED: Final = (
    "from read_csv('/etc/passwd')",
    "from '/etc/passwd'",
    "from read_text('/etc/passwd')",
    "from read_blob('/etc/passwd')",
    "from glob('/etc/*')",
    "attach '{folder}/other.duckdb'",
    "attach ':memory:' as other",
    "copy (select 1) to '{folder}/out.csv'",
    "copy sessions to '{folder}/out.parquet'",
    "export database '{folder}/out'",
    "install httpfs",
    "load httpfs",
    "load '{folder}/evil.duckdb_extension'",
    "set memory_limit = '100GB'",
    "set enable_external_access = true",
    "set lock_configuration = false",
    "reset memory_limit",
    "pragma memory_limit = '100GB'",
    "create table mine (n int)",
    "create view mine as select 1",
    "create secret mine (type s3)",
    "insert into mart.loads from mart.loads",
    "update facts.sources set note = 'mine'",
    "delete from facts.sources",
    "drop view sessions",
    "detach store",
    "select 1; select 2",
    "select 1; drop view sessions",
    "selec 1",
    "select no_such_column from sessions",
    "",
    "-- only a remark",
)


@pytest.mark.parametrize("statement", REFUSED)
def test_a_query_reaches_nothing_but_rows(statement: str, shared: Path, tmp_path: Path) -> None:
    before = shared.read_bytes()
    with pytest.raises(QueryError) as caught:
        store.query(str(shared), statement.format(folder=tmp_path), 5, "200MB")
    assert caught.value.exit_code == 2
    assert _names(tmp_path) == []
    assert shared.read_bytes() == before


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("select count(*) as n from mart.loads", [{"n": 1}]),
        ("with t as (select 1 as n) from t;", [{"n": 1}]),
        ("values (1)", [{"col0": 1}]),
        ("select sessions from qoder_report(2)", [{"sessions": 2}]),
        ("select 'a;b' as text", [{"text": "a;b"}]),
    ],
)
def test_a_query_gives_its_rows(statement: str, expected: list[dict[str, Any]], shared: Path) -> None:
    assert store.query(str(shared), statement, 5, "200MB").to_pylist() == expected


def test_names_of_the_program_are_no_tables(shared: Path) -> None:
    for name in ("connection", "statement", "path", "shared"):
        with pytest.raises(QueryError, match="does not exist"):
            store.query(str(shared), f"from {name}", 5, "200MB")


def test_a_query_that_takes_too_long_is_stopped(shared: Path) -> None:
    endless = "with recursive t as (select 1 as n union all select n + 1 from t) select count(*) from t"
    with pytest.raises(QueryError, match=r"longer than 0\.2 s"):
        store.query(str(shared), endless, 0.2, "200MB")


def test_a_query_that_takes_too_much_memory_is_stopped(shared: Path) -> None:
    with pytest.raises(QueryError, match="Out of Memory"):
        store.query(str(shared), "select list(i) from range(100000000) t(i)", 60, "50MB")


# -- a source that cannot be trusted is left out


def _snapshot(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of facts (those of the bad file left out) and of mart, in a fixed order."""
    others = f"semi join (from facts.sources where rel_path not like '%{BAD}%') using (source_id)"
    with store.connect(str(path)) as connection:
        return {
            **{name: connection.execute(f"from {name} {others} order by all").fetchall() for name in FACTS},
            **{name: connection.execute(f"from {name} order by all").fetchall() for name in MART},
        }


BAD: Final = "frag-1"


@pytest.fixture
def without_bad(home: Path, shared: Path) -> dict[str, list[tuple[Any, ...]]]:
    """What the store holds before the bad file comes into the home; now it is there."""
    _home(home, "fragments")
    return _snapshot(shared)


def _mutated(monkeypatch: pytest.MonkeyPatch, mutate: Callable[[int, Event], Iterator[Event]]) -> None:
    """The provider with an adapter whose events for the bad file are mutated; ``mutate`` gets their number."""

    def adapt(source: Source, session: str, records: Iterator[RecordLike]) -> Iterator[Event]:
        for number, event in enumerate(qoder.adapt(source, session, records)):
            if BAD in source.rel_path:
                yield from mutate(number, event)
            else:
                yield event

    monkeypatch.setattr(qoder, "PROVIDER", replace(qoder.PROVIDER, adapt=adapt))


def _forgets_text(_number: int, event: Event) -> Iterator[Event]:
    if not (isinstance(event, Dialogue) and event.role == "assistant" and event.kind == "text"):
        yield event


def _raises(number: int, event: Event) -> Iterator[Event]:
    if number == 7:
        raise KeyError("the secret of the file")
    yield event


def _overflows(_number: int, event: Event) -> Iterator[Event]:
    yield replace(event, output_tokens=1 << 64) if isinstance(event, ModelCall) else event


def _bad_row(path: Path) -> dict[str, Any]:
    (row,) = table(path, f"from facts.sources where rel_path like '%{BAD}%'")
    return row


def _nothing_of_it(path: Path, expected: dict[str, list[tuple[Any, ...]]]) -> None:
    """The bad file left no row but its own, and everything else is as without it."""
    row = _bad_row(path)
    assert row["tail_state"] == "failed"
    said = ("session_id", "native_session_id", "lines", "blank_lines", "rejected_lines", "user_records", "call_records")
    assert {row[name] for name in said} == {None}
    with store.connect(str(path)) as connection:
        for name in FACTS:
            left = f"from {name} where source_id = ?"
            assert connection.execute(left, [row["source_id"]]).fetchall() == []
    assert _snapshot(path) == expected


def test_a_source_that_breaks_a_check_is_left_out(
    home: Path, tmp_path: Path, without_bad: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    _mutated(monkeypatch, _forgets_text)
    report = load_home(home, tmp_path / "store.duckdb")
    row = _bad_row(tmp_path / "store.duckdb")
    assert row["note"] == "check ac2_text_is_dialogue"
    assert report.quarantined == {row["source_id"]: "ac2_text_is_dialogue"}
    assert not report.clean
    assert report.rows["dialogue"] == len(without_bad["facts.dialogue"])
    assert rows(tmp_path / "store.duckdb", "select sources_seen, sources_failed from mart.loads") == [(_files(home), 1)]
    _nothing_of_it(tmp_path / "store.duckdb", without_bad)


def test_sources_that_break_checks_again_and_again_publish_nothing(
    home: Path, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = db.read_bytes()
    _home(home, "titles")  # files enough for every round
    damage = (DAMAGE / "census_sum" / "damage.sql").read_text(encoding="utf-8")  # another source each time
    monkeypatch.setattr(builder_module.Builder, "resolve", _damaging(builder_module.Builder.resolve, damage, times=9))
    with pytest.raises(BrokenPromise, match="census_sum"):
        load_home(home, db)
    assert db.read_bytes() == before


def test_a_source_over_which_an_adapter_stumbles_is_left_out(
    home: Path, tmp_path: Path, without_bad: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    _mutated(monkeypatch, _raises)
    report = load_home(home, tmp_path / "store.duckdb")
    note = _bad_row(tmp_path / "store.duckdb")["note"]
    assert note.startswith("KeyError at test_store.py:")
    assert "secret" not in note
    assert (report.sources_failed, report.sources_read, report.quarantined) == (1, _files(home), {})
    assert not report.clean
    _nothing_of_it(tmp_path / "store.duckdb", without_bad)


def test_a_value_that_no_column_holds_costs_one_source(
    home: Path, tmp_path: Path, without_bad: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    _mutated(monkeypatch, _overflows)
    report = load_home(home, tmp_path / "store.duckdb")
    assert _bad_row(tmp_path / "store.duckdb")["note"].startswith("OverflowError at ")
    assert (report.sources_failed, report.sources_read) == (1, _files(home))
    _nothing_of_it(tmp_path / "store.duckdb", without_bad)


@pytest.mark.parametrize("mutate", [_raises, _overflows])
def test_rows_that_were_written_before_the_stumble_are_left_out_too(
    mutate: Callable[[int, Event], Iterator[Event]],
    home: Path,
    tmp_path: Path,
    without_bad: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _mutated(monkeypatch, mutate)
    with build([find(home)], tmp_path / "built", flush_bytes=1) as builder:
        for name in FACTS:
            mine = builder.connection.execute(f"from {name} semi join facts.sources using (source_id) order by all")
            assert mine.fetchall() == without_bad[name]
        failed = "select count(*) from facts.sources where tail_state = 'failed'"
        assert builder.connection.execute(failed).fetchall() == [(1,)]
