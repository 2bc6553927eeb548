"""Does the command line keep its promises: stdout is data, stderr is narration, exit codes are an API?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from etl.cli import main

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "fixtures" / "demo"
TRUTH = json.loads((ROOT / "tests" / "expected" / "demo.json").read_text(encoding="utf-8"))


def run(*words: str, home: Path, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """One command in a process of its own, with its own home."""
    places = {f"XDG_{name}_HOME": str(home / name.lower()) for name in ("DATA", "STATE", "CONFIG", "CACHE")}
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT), **places, **variables}
    environment.pop("SESSIONMART_DB", None)
    command = [sys.executable, "-m", "etl", *words]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment,
        input=stdin,
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose store holds the example tree, at ``s.duckdb``."""
    home = tmp_path_factory.mktemp("cli")
    done = run("load", "--home", str(DEMO), "--db", str(home / "s.duckdb"), home=home)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "48 sources read" in done.stderr
    return home


def ask(place: Path, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return run(*words, "--db", str(place / "s.duckdb"), home=place, **more)


def test_the_demo_prints_the_report_of_the_example_tree(tmp_path: Path) -> None:
    done = run("demo", home=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "40-session Qoder report, zero raw envelopes"
    totals = dict(zip(lines[2].split(), lines[4].split(), strict=True))
    truth = TRUTH["report"]
    for name in ("sessions", "prompts", "text_rows", "thinking_rows", "tool_calls", "tool_errors", "paired_calls"):
        assert totals[name] == str(truth[name]), name
    assert float(totals["p95_ms"]) == pytest.approx(truth["p95_ms"])
    assert len(lines) == 4 + 1 + 1 + 2 + 40
    assert not list(tmp_path.rglob("*.duckdb"))


def test_the_report_for_machines_begins_with_the_totals(place: Path) -> None:
    done = ask(place, "report", "qoder", "--sessions", "40", "--format", "json")
    rows = json.loads(done.stdout)
    assert (done.returncode, len(rows)) == (0, 41)
    truth = TRUTH["report"]
    assert {name: rows[0][name] for name in ("row_kind", "sessions", "prompts", "tool_calls", "raw_envelopes")} == {
        "row_kind": "total",
        "sessions": 40,
        "prompts": truth["prompts"],
        "tool_calls": truth["tool_calls"],
        "raw_envelopes": 0,
    }
    assert rows[0]["credits"] == pytest.approx(float(truth["credits"]))
    listed = [row["session_id"].removeprefix("qoder:") for row in rows[1:]]
    assert listed == [session["session_id"] for session in TRUTH["sessions"]][:40]


@pytest.mark.parametrize("sessions", [1, 39, 44])
def test_the_report_counts_as_many_sessions_as_it_is_asked_for(place: Path, sessions: int) -> None:
    done = ask(place, "report", "qoder", "--sessions", str(sessions))
    assert done.stdout.startswith(f"{sessions}-session Qoder report, zero raw envelopes\n")


def test_sql_reads_from_words_files_and_stdin(place: Path, tmp_path: Path) -> None:
    query = "select count(*) as n, sum(prompts) as prompts, max(ended_at) as last from sessions"
    (tmp_path / "q.sql").write_text(query, encoding="utf-8")
    said = ask(place, "sql", query, "--format", "jsonl").stdout
    assert json.loads(said)["n"] == 46
    assert isinstance(json.loads(said)["prompts"], int)
    assert json.loads(said)["last"].endswith("Z")
    assert ask(place, "sql", "-f", str(tmp_path / "q.sql"), "--format", "jsonl").stdout == said
    assert ask(place, "sql", "-", "--format", "jsonl", stdin=query).stdout == said
    assert ask(place, "sql", query, "--format", "csv").stdout.splitlines()[0] == "n,prompts,last"


def test_show_reads_one_session_in_order(place: Path) -> None:
    session = TRUTH["sessions"][1]["session_id"]
    done = ask(place, "show", session[:13])
    assert done.returncode == 0
    assert f"qoder:{session}" in done.stdout
    assert done.stdout.index("--- turn 1") < done.stdout.index("--- turn 2")
    assert "glpat-" not in done.stdout


def test_check_finds_nothing_broken(place: Path) -> None:
    done = ask(place, "check", "--format", "json")
    assert (done.returncode, json.loads(done.stdout)) == (0, [])
    assert "0 broken promises" in done.stderr


def test_providers_and_schema_are_listed(place: Path) -> None:
    listed = json.loads(run("providers", "--home", str(DEMO), "--format", "json", home=place).stdout)
    assert [row["exists"] for row in listed if row["store_kind"] == "qoder_cli"] == [True]
    described = json.loads(run("schema", "--json", home=place).stdout)
    assert {"main.tool_latency", "mart.sessions", "facts.dialogue"} <= {item["name"] for item in described}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["report", "qodr"], 2, "did you mean qoder"),
        (["load", "qodr"], 2, "did you mean qoder"),
        (["load", "--root", "qoder"], 2, "PROVIDER=PATH"),
        (["load", "--root", "qoder=/no/such/place"], 2, "no such file or folder"),
        (["statsu"], 2, "Did you mean 'status'"),
        (["sql", "selec 1"], 2, "syntax error"),
        (["sql"], 2, "there is no query"),
        (["show", "no-such-session"], 2, "no session key begins"),
    ],
)
def test_a_wrong_word_is_named_and_is_exit_code_2(place: Path, words: list[str], code: int, said: str) -> None:
    done = ask(place, *words) if words[0] != "statsu" else run(*words, home=place)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr


def test_a_missing_store_is_exit_code_3(tmp_path: Path) -> None:
    for words in (["report", "qoder"], ["sql", "select 1"], ["show", "x"], ["check"]):
        done = run(*words, "--db", str(tmp_path / "none.duckdb"), home=tmp_path)
        assert (done.returncode, done.stdout) == (3, "")
        assert "there is no store" in done.stderr


def test_findings_over_budget_are_exit_code_4(tmp_path: Path) -> None:
    folder = tmp_path / "home" / ".qoder" / "projects" / "-srv-a"
    folder.mkdir(parents=True)
    (folder / "s1.jsonl").write_bytes(b"no json\n" * 21)
    done = run(
        "load", "--home", str(tmp_path / "home"), "--db", str(tmp_path / "s.duckdb"), "--format", "json", home=tmp_path
    )
    assert done.returncode == 4
    assert [finding["check"] for finding in json.loads(done.stdout)["findings"]] == ["rejected_lines"]


def test_a_reader_that_has_seen_enough_is_no_error(place: Path) -> None:
    query = f"{sys.executable} -m etl sql 'from dialogue, range(20)' --format jsonl --db {place}/s.duckdb"
    script = f"{query} | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
        timeout=120,
    )
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


def test_session_text_is_utf_8_whatever_the_locale(place: Path) -> None:
    done = ask(
        place,
        "sql",
        "select 'Gr' || chr(246) || chr(128512) as t",
        "--format",
        "csv",
        LC_ALL="C",
        PYTHONUTF8="0",
        PYTHONCOERCECLOCALE="0",
    )
    assert done.stdout.splitlines() == ["t", "Grö😀"]


def test_every_command_shows_an_example() -> None:
    for name, command in main.commands.items():
        assert "Example:" in (command.help or ""), name
