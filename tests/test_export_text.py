"""Does a view leave a store as CSV and JSON Lines that `sessionmart sql` would write too, a few rows at a time?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from etl.cli import run
from etl.export import views
from etl.export.views import DEFAULT
from etl.render.machine import csv_lines, json_lines
from etl.store import connect
from tests.loading import FIXTURES, load_home

ROOT = Path(__file__).parents[1]
MONTH = "(select strftime(started_at, '%Y-%m') from mart.sessions s where s.session_id = v.session_id)"
#: The order in which views are exported (the store has one provider).
ORDER = {
    "sessions": f"{MONTH}, session_id",
    "tool_calls": f"{MONTH}, session_id, seq, call_key",
    "dialogue": f"{MONTH}, session_id, seq",
    "last_turn": "all",
    "prices": "all",
}


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of one Qoder case, with sessions of two months."""
    path = tmp_path_factory.mktemp("text") / "s.duckdb"
    load_home(FIXTURES / "qoder" / "example" / "tree", path)
    return path


def as_sql_writes(db: Path, view: str, fmt: str) -> str:
    with connect(str(db)) as connection:
        table = connection.sql(f"from {view} v order by {ORDER[view]}").to_arrow_table()
    return "".join(csv_lines(table) if fmt == "csv" else json_lines(table))


@pytest.mark.parametrize("fmt", ["csv", "jsonl"])
@pytest.mark.parametrize("view", ORDER)
def test_a_view_is_written_as_sql_writes_it(
    db: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, view: str, fmt: str
) -> None:
    monkeypatch.setattr(views, "_ROWS", 3)
    monkeypatch.setattr(views, "_WIDE_ROWS", 2)
    monkeypatch.setattr(views, "_CHUNK_BYTES", 500)
    assert run(["export", fmt, view, "--db", str(db)]) == 0
    said = capsys.readouterr()
    assert said.out == as_sql_writes(db, view, fmt)
    assert said.err == ""


@pytest.mark.parametrize("view", DEFAULT)
def test_every_public_view_has_its_own_columns_and_no_other(
    db: Path, capsys: pytest.CaptureFixture[str], view: str
) -> None:
    assert run(["export", "csv", view, "--db", str(db)]) == 0
    with connect(str(db)) as connection:
        columns = [row[0] for row in connection.execute(f"describe from {view}").fetchall()]
        (expected,) = connection.execute(f"select count(*) from {view}").fetchone() or ()  # noqa: S608 - as above
    out = capsys.readouterr().out
    assert out.splitlines()[0].split(",") == columns
    assert run(["export", "jsonl", view, "--db", str(db)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == expected


def test_a_view_without_rows_is_a_header_or_nothing(db: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["tool_latency", "--db", str(db), "--provider", "muse"]
    assert run(["export", "jsonl", *words]) == 0
    assert capsys.readouterr().out == ""
    assert run(["export", "csv", *words]) == 0
    assert capsys.readouterr().out.startswith("provider,realm,project,host,session_id,call_key,")


def test_numbers_times_and_nulls_are_those_of_the_machine_formats(db: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["export", "jsonl", "sessions", "--db", str(db)])
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert first["started_at"].endswith("Z")
    assert isinstance(first["prompts"], int)
    assert isinstance(first["models"], list)
    assert first["realm"] is None


def test_a_file_is_written_whole_and_for_its_owner_alone(
    db: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "latency.csv"
    target.write_text("older", encoding="utf-8")
    assert run(["export", "csv", "tool_latency", "--db", str(db), "-o", str(target)]) == 0
    assert run(["export", "csv", "tool_latency", "--db", str(db)]) == 0
    assert target.read_text(encoding="utf-8") == capsys.readouterr().out
    assert target.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["latency.csv"]


def test_what_is_no_plain_file_is_written_to_and_not_replaced(db: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "etl", "export", "csv", "sources", "--db", str(db), "-o", str(pipe)]
    with subprocess.Popen(command, cwd=ROOT) as running:
        assert pipe.read_text(encoding="utf-8").startswith("source_id,")
    assert running.returncode == 0
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["csv", "tool_latncy"], 2, "there is no view 'tool_latncy'; did you mean tool_latency?"),
        (["jsonl", "facts.dialogue"], 2, "there is no view 'facts.dialogue'"),
        (["csv", "prices", "--provider", "qoder"], 2, "tells of no session and no file"),
        (["csv", "sessions", "-o", "/no/such/folder/x.csv"], 2, "cannot write /no/such/folder/x.csv"),
        (["parquett", "x"], 2, "Did you mean 'parquet'"),
    ],
)
def test_a_wrong_word_is_exit_code_2(
    db: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, said: str
) -> None:
    more = ["--db", str(db)] if words[0] != "parquett" else []
    assert run(["export", *words, *more]) == code
    written = capsys.readouterr()
    assert written.out == ""
    assert said in written.err


def test_an_engine_that_fails_is_said_in_a_sentence(
    db: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "_MEMORY", "1MB")
    assert run(["export", "csv", "tool_calls", "--db", str(db), "-o", str(tmp_path / "x.csv")]) == 2
    assert "the engine could not give the rows" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_has_seen_enough_is_no_error(db: Path) -> None:
    script = f"{sys.executable} -m etl export jsonl dialogue --db {db} | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    first, code = done.stdout.splitlines()
    assert (json.loads(first)["seq"], code, done.stderr) == (1, "0", "")
