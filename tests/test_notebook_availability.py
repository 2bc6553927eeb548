"""Does the notebook of availability run as a script on any store, and are its numbers those that SQL gives?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.loading import FIXTURES, load_home, rows, table

NOTEBOOK = Path(__file__).parent.parent / "notebooks" / "provider_availability.py"
CASES = FIXTURES / "qoder_bridge"

pytestmark = pytest.mark.slow


class Run:
    """One run of the notebook as a script, in a folder of its own: what it wrote and said."""

    def __init__(self, folder: Path, named: Path) -> None:
        summary, self.charts = folder / "summary.json", folder / "charts"
        (folder / "tmp").mkdir()
        done = subprocess.run(
            [sys.executable, NOTEBOOK, "--summary", summary, "--charts", self.charts],
            cwd=folder,
            env={**os.environ, "SESSIONMART_DB": str(named), "TMPDIR": str(folder / "tmp")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        self.tables: dict[str, list[dict[str, Any]]] = json.loads(summary.read_text(encoding="utf-8"))
        self.out, self.err = done.stdout, done.stderr
        self.left = list((folder / "tmp").rglob("*.duckdb*"))
        self.pictures = {path.stem for path in self.charts.iterdir()}


def test_without_a_store_the_five_runs_are_shown(tmp_path: Path) -> None:
    found = Run(tmp_path, tmp_path / "none.duckdb")

    (totals,) = found.tables["totals"]
    assert totals == {
        "batches": 1,
        "runs": 5,
        "turns": 7,
        "answered": 2,
        "without_provider": 5,
        "heartbeats": 30,
        "heartbeats_ready": 0,
        "median_ack_ms": 361.0,
        "median_first_token_ms": 6450.0,  # between 6.1 s and 6.8 s
        "late_turns": 0,
    }
    assert [row["sdk_raw_chunks"] for row in found.tables["runs"]] == [18, 18, 59, 57, 18]
    assert found.pictures == {"outcomes", "timeline", "milestones", "queue"}
    assert all((found.charts / f"{name}.png").read_bytes().startswith(b"\x89PNG\r\n") for name in found.pictures)
    assert found.err.startswith("example data: there is no store at ")
    assert "PROVIDER_OUTPUT_DEFECT" in found.out
    assert found.left == []


def test_an_empty_store_has_no_chart_and_no_number(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    load_home(tmp_path / "home", tmp_path / "empty.duckdb")
    found = Run(tmp_path, tmp_path / "empty.duckdb")

    (totals,) = found.tables.pop("totals")
    assert not any(totals.values())
    assert not any(found.tables.values())
    assert (found.pictures, found.err) == (set(), "")


def test_numbers_are_those_of_the_views(tmp_path: Path) -> None:
    """Several batches, a log, turns of every end, and evidence without times."""
    names = ("five_runs", "killed_run", "empty_turn", "contradictions", "markers", "old_summary", "debug_log")
    db = tmp_path / "store.duckdb"
    load_home(tmp_path, db, qoder_bridge=[CASES / name / "tree" for name in names])
    found = Run(tmp_path, db)

    (totals,) = found.tables["totals"]
    (shares,) = table(
        db,
        "select sum(turns)::int as turns, sum(answered)::int as answered, sum(queue_events)::int as heartbeats, "
        "sum(unavailable + queue_timeouts + response_timeouts)::int as without_provider from provider_availability",
    )
    assert {name: totals[name] for name in shares} == shares
    counted: dict[str, int] = {}
    for row in found.tables["outcomes"]:
        counted[row["outcome"]] = counted.get(row["outcome"], 0) + row["turns"]
    # five runs: 2 and 5; killed: 1, and 1 nobody tells of; empty: 1 cancelled, 1 that never began; contradictions: 2
    # and 2; markers: 5 and 2; the old summary: 2 and 3; the log: 1 and 3
    assert counted == {
        "answered": 2 + 1 + 2 + 5 + 2 + 1,
        "unavailable": 5 + 1,
        "response timeout": 1,
        "continuation timeout": 1,
        "protocol error": 2 + 2 + 1 + 2,
        "cancelled": 1,
        "not told": 2,
    }
    assert len(found.tables["runs"]) == rows(db, "select count(*) from bridge_runs")[0][0]
    assert found.pictures == {"outcomes", "timeline", "milestones", "queue"}
