"""Is the IDE's database read as it stands, without touching it, whatever state it is in?"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import pytest

from etl.sqlitedb import DbTable, SqliteReader
from tests.loading import load_home, rows, table
from tests.test_incremental import load

if TYPE_CHECKING:
    from pathlib import Path

PLACE: Final = ".config/Qoder/SharedClientCache/cache/db/local.db"
SCHEMA: Final = """
create table chat_message (id varchar(64) primary key, session_id varchar(64), request_id varchar(64), role varchar(64),
    content text, summary text, tool_result text, token_info text, model_info text, extra text default '',
    gmt_create integer);
create table chat_session (session_id varchar(64) primary key, session_title text, project_uri text,
    gmt_create integer);
create table secrets (name text, value text);
insert into secrets values ('token', 'FAKE-never-read');"""
#: 2026-08-21T12:00:00Z
START: Final = 1787313600000


def _tokens(prompt: int, completion: int, cached: int = 0) -> str:
    told = {"prompt_tokens": prompt, "completion_tokens": completion, "cached_tokens": cached}
    return json.dumps({**told, "max_input_tokens": 180_000})


def made(path: Path, *messages: tuple[Any, ...], wal: bool = False) -> sqlite3.Connection:
    """A database with messages (id, session, role, content, tokens, seconds); the connection stays open."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    if wal:
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma wal_autocheckpoint = 0")
    connection.executescript(SCHEMA)
    _say(connection, *messages)
    return connection


def _say(connection: sqlite3.Connection, *messages: tuple[Any, ...]) -> None:
    for key, session, role, content, tokens, seconds in messages:
        connection.execute(
            "insert into chat_message (id, session_id, request_id, role, content, token_info, model_info, gmt_create) "
            "values (?, ?, 'rq', ?, ?, ?, ?, ?)",
            (key, session, role, content, tokens, '{"model_key":"auto"}', START + seconds * 1000),
        )


MESSAGES: Final = (
    ("z1", "ide-1", "user", "What is this?", "", 0),
    ("a2", "ide-1", "assistant", "A test.", _tokens(17_553, 115, 500), 5),
    ("m3", "ide-1", "tool", None, _tokens(20_000, 40), 7),
    ("b4", "ide-2", "user", None, "", 9),
    ("b5", "ide-2", "assistant", None, _tokens(0, 0), 11),
)


def test_messages_are_dialogue_and_token_counts_of_their_sessions(tmp_path: Path) -> None:
    with closing(made(tmp_path / "home" / PLACE, *MESSAGES)) as connection:
        connection.execute(
            "insert into chat_session values ('ide-1', 'About tests', 'file:///srv/work/my%20app', ?)", (START,)
        )
    report = load_home(tmp_path / "home", tmp_path / "s.duckdb")
    assert report.findings == []
    found = table(tmp_path / "s.duckdb", "from sessions order by session_id")
    columns = ("session_id", "realm", "title", "cwd", "prompts", "text_rows", "model_calls", "input_tokens")
    assert [tuple(row[name] for name in columns) for row in found] == [
        ("qoder.ide:ide-1", "ide", "About tests", "/srv/work/my app", 1, 1, 2, 37_553),
        ("qoder.ide:ide-2", "ide", None, None, 0, 0, 1, None),
    ]
    assert rows(
        tmp_path / "s.duckdb",
        "select request_key, input_tokens, output_tokens, cache_read_tokens, context_window, usage_status "
        "from model_calls order by ts",
    ) == [
        ("a2", 17_553, 115, 500, 180_000, "reported"),
        ("m3", 20_000, 40, 0, 180_000, "reported"),
        ("b5", None, None, None, 180_000, "suppressed"),
    ]
    assert rows(tmp_path / "s.duckdb", "select role, text from dialogue order by seq") == [
        ("user", "What is this?"),
        ("assistant", "A test."),
    ]


def test_rows_are_ranked_by_time_and_keep_their_key(tmp_path: Path) -> None:
    made(tmp_path / "home" / PLACE, *MESSAGES).close()
    load_home(tmp_path / "home", tmp_path / "s.duckdb")
    assert rows(tmp_path / "s.duckdb", "select line_no, row_key, native_uuid from facts.records order by line_no") == [
        (n, f"chat_message:{key}", None) for n, (key, *_) in enumerate(MESSAGES, 1)
    ]
    assert rows(tmp_path / "s.duckdb", "select row_key from facts.dialogue order by line_no") == [
        ("chat_message:z1",),
        ("chat_message:a2",),
    ]
    assert rows(tmp_path / "s.duckdb", "select lines, session_id, tail_state from facts.sources") == [
        (None, None, "complete")
    ]


def _state(folder: Path) -> dict[str, tuple[int, int]]:
    return {path.name: (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.iterdir()}


def test_what_is_committed_beside_the_database_is_read_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "home" / PLACE
    with closing(made(path, *MESSAGES[:2], wal=True)) as writer:
        writer.execute("begin immediate")  # a lock is held, and what follows is not committed
        _say(writer, MESSAGES[2])
        before = _state(path.parent)
        assert before["local.db-wal"][0] > 0
        load_home(tmp_path / "home", tmp_path / "s.duckdb")
        assert _state(path.parent) == before
        writer.execute("rollback")
    assert rows(tmp_path / "s.duckdb", "select request_key from model_calls") == [("a2",)]


def test_a_database_locked_for_itself_alone_is_read(tmp_path: Path) -> None:
    with closing(made(tmp_path / "home" / PLACE, *MESSAGES)) as writer:
        writer.execute("pragma locking_mode = exclusive")
        writer.execute("begin exclusive")
        report = load_home(tmp_path / "home", tmp_path / "s.duckdb")
        assert (report.findings, report.sources_failed) == ([], 0)
    assert rows(tmp_path / "s.duckdb", "select count(*) from model_calls") == [(3,)]


def test_a_half_done_change_with_its_journal_is_undone_in_a_copy(tmp_path: Path) -> None:
    path = tmp_path / "home" / PLACE
    with closing(made(path, *MESSAGES)) as writer:
        writer.execute("pragma cache_size = 1")
        writer.execute("pragma cache_spill = 1")
        writer.execute("begin immediate")
        writer.execute("update chat_message set content = 'half done ' || hex(randomblob(4000))")
        before = _state(path.parent)
        assert before["local.db-journal"][0] > 0
        load_home(tmp_path / "home", tmp_path / "s.duckdb")
        assert _state(path.parent) == before
        writer.execute("rollback")
    assert rows(tmp_path / "s.duckdb", "select text from dialogue order by seq") == [("What is this?",), ("A test.",)]


def test_a_commit_that_stands_beside_the_database_alone_is_seen_as_a_change(tmp_path: Path) -> None:
    home, db = tmp_path / "home", tmp_path / "s.duckdb"
    with closing(made(home / PLACE, *MESSAGES[:2], wal=True)) as writer:
        load(home, db)
        assert load(home, db).state == "unchanged"
        file = (home / PLACE).stat()
        _say(writer, MESSAGES[2])
        assert (home / PLACE).stat().st_mtime_ns == file.st_mtime_ns
        assert load(home, db).sources_read == 1
    assert rows(db, "select count(*) from model_calls") == [(2,)]


@pytest.mark.parametrize("damage", ["no database", "cut", "overwritten"])
def test_a_damaged_database_is_a_row_that_says_so(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "home" / PLACE
    many = [(f"k{n:04}", "ide-1", "user", "x" * 500, "", n) for n in range(200)]
    made(path, *many).close()
    data = bytearray(path.read_bytes())
    if damage == "no database":
        data = bytearray(b"\x00\x01 encrypted " * 1000)
    elif damage == "cut":
        data = data[: len(data) // 2]
    else:
        data[len(data) // 3 :] = b"\xff" * (len(data) - len(data) // 3)
    path.write_bytes(data)
    (tmp_path / "home/.qoder/projects/-a").mkdir(parents=True)
    user = {"type": "user", "uuid": "u", "sessionId": "s", "timestamp": "2026-01-01T00:00:00Z", "message": "Hi"}
    (tmp_path / "home/.qoder/projects/-a/s.jsonl").write_text(json.dumps(user) + "\n")
    report = load_home(tmp_path / "home", tmp_path / "s.duckdb")
    assert report.sources_failed == 0
    (source,) = table(tmp_path / "s.duckdb", "from facts.sources where store_kind = 'qoder_ide_db'")
    assert source["tail_state"] == "truncated"
    assert source["note"]
    assert rows(tmp_path / "s.duckdb", "select reason from rejects") == [("io",)]
    assert rows(tmp_path / "s.duckdb", "select prompts from sessions where session_id = 'qoder:s'") == [(1,)]


def test_another_database_of_that_name_is_not_read(tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "local.db"
    other.parent.mkdir()
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("create table chat_message_of_another (id)")
    report = load_home(tmp_path / "none", tmp_path / "s.duckdb", qoder=other.parent)
    assert (report.not_recognised, report.sources_read) == (1, 0)


def test_a_named_database_is_read_wherever_it_stands(tmp_path: Path) -> None:
    made(tmp_path / "copied" / "local.db", *MESSAGES).close()
    load_home(tmp_path / "none", tmp_path / "s.duckdb", qoder=tmp_path / "copied")
    assert rows(tmp_path / "s.duckdb", "select count(*) from model_calls") == [(3,)]


def test_only_listed_columns_are_read_and_missing_ones_are_left_out(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute("create table t (k text primary key, a text, secret text)")
        connection.execute("insert into t values ('2', 'two', 'FAKE'), ('1', ?, 'FAKE')", (sqlite3.Binary(b"\xff"),))
        connection.commit()
    reader = SqliteReader(
        str(tmp_path / "a.db"), (DbTable("t", "k", ("a", "b"), ("b",)), DbTable("u", "k", ())), str(tmp_path)
    )
    assert [(record.row_key, record.value) for record in reader] == [
        ("t:1", {"k": "1", "a": b"\xff", "table": "t"}),
        ("t:2", {"k": "2", "a": "two", "table": "t"}),
    ]
    assert (reader.fault, reader.tables_found, reader.rows) == (None, 1, 2)
