"""Does `explain` say which source and line contributed what, and lead back to the raw record?"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any, Final

import pytest

from etl.cli import run
from etl.errors import UsageError
from etl.explain import Places, explain
from etl.providers.base import Environment
from tests.loading import FIXTURES, KEY, load_home

if TYPE_CHECKING:
    from pathlib import Path

LATENCY: Final = FIXTURES / "qoder" / "stores_latency" / "tree"


@pytest.fixture(scope="module")
def latency(tmp_path_factory: pytest.TempPathFactory) -> Path:
    db = tmp_path_factory.mktemp("store") / "latency.duckdb"
    load_home(LATENCY, db)
    return db


def _places(home: Path) -> Places:
    return Places(Environment(str(home)), {}, KEY)


def _told(db: Path, session: str, what: str | None, home: Path = LATENCY) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = explain(str(db), session, what, _places(home)).statements.to_pylist()
    return told


def test_a_session_says_whose_dialogue_was_taken(latency: Path) -> None:
    found = explain(str(latency), "lat-1", None, _places(LATENCY))
    assert found.sources is not None
    columns = ("store_kind", "serves_as", "dialogue", "requests", "results", "spans")
    assert [tuple(row[name] for name in columns) for row in found.sources.to_pylist()] == [
        ("qoder_cli", "dialogue and turns", 1, 12, 11, None),
        ("qoder_logs", "evidence", None, 12, 11, 13),
    ]
    assert {row["part"] for row in found.rows.to_pylist()} == {"source", "statement"}


def test_every_timed_call_names_the_one_statement_that_gave_its_latency(latency: Path) -> None:
    won: dict[str, list[tuple[str, str, int, int | None]]] = {}
    for row in _told(latency, "lat-1", None):
        if row["gave_latency"]:
            won.setdefault(row["call_key"], []).append((row["store_kind"], row["what"], row["line_no"], row["line_to"]))
    assert won == {
        "call_w1": [("qoder_logs", "pair", 3, 7)],
        "call_s1": [("qoder_logs", "shell", 14, None)],
        "call_s2": [("qoder_logs", "shell", 15, None)],
        "call_q1": [("qoder_logs", "shell", 21, None)],
        "call_q2": [("qoder_logs", "shell", 23, None)],
        "call_q3": [("qoder_logs", "shell", 28, None)],
        "call_r1": [("qoder_logs", "pair", 30, 32)],
        "call_r2": [("qoder_logs", "pair", 31, 33)],
        "call_e1": [("qoder_logs", "pair", 34, 37)],
        "call_bg": [("qoder_logs", "shell", 40, None)],
        "call_no": [("qoder_cli", "pair", 21, 22)],
        "call_ab": [("qoder_logs", "shell", 48, None)],
    }


def test_a_call_leads_back_to_its_raw_lines(latency: Path) -> None:
    told = _told(latency, "lat-1", "call_w1")
    assert [(row["store_kind"], row["what"], row["ms"]) for row in told] == [
        ("qoder_cli", "request", None),
        ("qoder_cli", "pair", 119.0),
        ("qoder_cli", "result", None),
        ("qoder_logs", "request", None),
        ("qoder_logs", "pair", 275.0),
        ("qoder_logs", "hook", 52.0),
        ("qoder_logs", "result", None),
    ]
    files = {
        source: (LATENCY / source).read_text(encoding="utf-8").splitlines() for source in {r["source"] for r in told}
    }
    for row in told:
        assert row["raw"] == files[row["source"]][row["line_no"] - 1]


def test_a_row_of_dialogue_leads_back_to_its_record(latency: Path) -> None:
    (row,) = _told(latency, "lat-1", "1")
    assert (row["text"], row["src_pointer"], row["line_no"]) == ("Write it.", "/humanInput/text", 1)
    assert json.loads(row["raw"])["humanInput"]["text"] == "Write it."


def test_without_the_file_the_place_is_still_told(latency: Path, tmp_path: Path) -> None:
    told = _told(latency, "lat-1", "call_s1", tmp_path)
    assert [row["raw"] for row in told] == [None] * len(told)
    assert [row["line_no"] for row in told if row["gave_latency"]] == [14]


def test_raw_records_are_masked(tmp_path: Path) -> None:
    home = tmp_path / "home"
    shutil.copytree(FIXTURES / "qoder" / "example" / "tree", home)
    load_home(home, tmp_path / "s.duckdb")
    session = "qoder:3915f6e3-0a11-4c52-9d1e-2f60aa10b001"
    numbers = [str(n) for n in range(1, 40)]
    raw = []
    for number in numbers:
        try:
            raw += [row["raw"] for row in _told(tmp_path / "s.duckdb", session, number, home)]
        except UsageError:
            continue
    assert any("[redacted:gitlab-token]" in record for record in raw)
    assert not any("glpat-FAKE" in record for record in raw)


def test_a_guess_of_the_audit_trail_is_named_as_one(tmp_path: Path) -> None:
    tree = FIXTURES / "qoder" / "stores_audit" / "tree"
    load_home(tree, tmp_path / "s.duckdb")
    told = _told(tmp_path / "s.duckdb", "aud-1", "call_u3", tree)
    assert [(row["what"], row["ms"], row["line_no"], row["line_to"]) for row in told if row["gave_latency"]] == [
        ("pair (a guess)", 440.0, 8, 11)
    ]


def test_a_call_of_a_sub_agent_is_explained_by_the_log_of_its_parent(tmp_path: Path) -> None:
    tree = FIXTURES / "qoder" / "stores_subagent" / "tree"
    load_home(tree, tmp_path / "s.duckdb")
    told = _told(tmp_path / "s.duckdb", "sub-1/agent-h1", "call_inner", tree)
    assert [(row["store_kind"], row["line_no"]) for row in told if row["gave_latency"]] == [("qoder_logs", 6)]


def test_what_is_not_there_is_said(latency: Path) -> None:
    with pytest.raises(UsageError, match="no session key begins with 'nobody'"):
        _told(latency, "nobody", None)
    with pytest.raises(UsageError, match="has no call 'call_zz'"):
        _told(latency, "lat-1", "call_zz")
    with pytest.raises(UsageError, match="has no call '999'"):
        _told(latency, "lat-1", "999")


def test_the_command_prints_tables_for_people_and_one_table_for_machines(
    latency: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    asked = ["explain", "lat-1", "--db", str(latency)]
    assert run(asked) == 0
    text = capsys.readouterr().out
    assert text.startswith("qoder:lat-1\n")
    assert "dialogue and turns" in text
    assert run([*asked, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows[0]["part"] == "source"
    assert run(["explain", "lat-1", "call_w1", "--home", str(LATENCY), "--db", str(latency), "--format", "jsonl"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert all(json.loads(line["raw"])["type"] for line in lines)
