"""Does the command line load evidence of a Bridge, and does its report come in every format?"""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.loading import FIXTURES
from tests.test_cli import run

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

TREE = FIXTURES / "qoder_bridge" / "five_runs" / "tree"
STAMP = "2026-09-30T05-12-53.712Z"
RUNS = [[1, 18, 0, 0, 1, 0, "FAILED"], [2, 18, 0, 0, 1, 0, "FAILED"], [3, 59, 1, 0, 1, 0, "FAILED"]]
RUNS += [[4, 57, 1, 0, 1, 0, "FAILED"], [5, 18, 0, 0, 1, 0, "FAILED"]]
COLUMNS = ("run", "sdk_raw_chunks", "tool_count", "protocol_errors", "provider_unavailable", "continuation_timeout")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("bridge")
    done = run("load", "--root", f"qoder_bridge={TREE}", "--db", str(home / "s.duckdb"), home=home)
    assert done.returncode == 0, done.stderr
    assert "18 sources read" in done.stderr
    return home


def ask(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run(*words, "--db", str(place / "s.duckdb"), home=place)


def test_the_report_for_people_has_the_table_of_the_investigation(place: Path) -> None:
    done = ask(place, "report", "bridge")

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == (
        "5-run Qoder Bridge report: 170 messages in 7 turns, zero protocol errors, 5 turns without a provider, "
        "zero failures of Bridge or transport, zero late turns"
    )
    shown = [
        line.split()[1:] for line in done.stdout.splitlines() if line.startswith(STAMP) and line.endswith("FAILED")
    ]
    assert shown == [[str(cell) for cell in row] for row in RUNS]
    assert "Stated differently" not in done.stdout


@pytest.mark.parametrize("fmt", ["json", "jsonl", "csv"])
def test_the_report_for_machines_is_one_table(place: Path, fmt: str) -> None:
    out = ask(place, "report", "bridge", "--format", fmt).stdout
    rows: list[dict[str, Any]]
    if fmt == "csv":
        rows = list(csv.DictReader(io.StringIO(out)))
    else:
        rows = json.loads(out) if fmt == "json" else [json.loads(line) for line in out.splitlines()]

    runs = [[*(int(row[name]) for name in COLUMNS), row["terminal_state"]] for row in rows if row["row_kind"] == "run"]
    assert runs == RUNS
    turns = [(row["origin"], row["evidence_level"]) for row in rows if row["row_kind"] == "turn"]
    assert turns == [("NONE", "observed")] * 7 + [("PROVIDER_OUTPUT_DEFECT", "replay")]


def test_markdown_has_a_table_for_each_part(place: Path) -> None:
    out = ask(place, "report", "bridge", "--format", "markdown").stdout

    assert sum(line.startswith("| ---") for line in out.splitlines()) == 4
    assert f"| {STAMP} | 3 | 59 | 1 | 0 | 1 | 0 | FAILED |" in out


def test_one_batch_may_be_chosen(place: Path) -> None:
    replay = json.loads(
        ask(place, "report", "bridge", "--batch", "previous-run3-replay/ac203c98", "--format", "json").stdout
    )
    wrong = ask(place, "report", "bridge", "--batch", "2026")

    assert [row["first_bad_stage"] for row in replay] == ["A"]
    assert (wrong.returncode, STAMP in wrong.stderr) == (2, True)


def test_a_store_without_evidence_has_an_empty_report(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    run("load", "--home", str(tmp_path / "none"), "--db", str(tmp_path / "s.duckdb"), home=tmp_path)

    assert ask(tmp_path, "report", "bridge").stdout.startswith("0-run Qoder Bridge report: 0 messages in 0 turns")
    assert json.loads(ask(tmp_path, "report", "bridge", "--format", "json").stdout) == []


def test_the_store_still_says_what_the_files_say(place: Path) -> None:
    done = ask(place, "verify", "--root", f"qoder_bridge={TREE}", "--format", "json")

    assert done.returncode == 0, done.stderr
    assert ask(place, "check").returncode == 0


def test_a_provider_without_a_default_place_is_listed(place: Path) -> None:
    rows = json.loads(run("providers", "--format", "json", home=place).stdout)

    (bridge,) = [row for row in rows if row["provider"] == "qoder_bridge"]
    assert (bridge["path"], bridge["exists"]) == (None, False)
