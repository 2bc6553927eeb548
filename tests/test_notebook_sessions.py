"""Does the notebook of sessions run as a script on any store, and are its numbers those that SQL gives?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.loading import FIXTURES, load_home, rows, table

NOTEBOOK = Path(__file__).parent.parent / "notebooks" / "sessions.py"
DEMO = FIXTURES / "demo"
#: One row: what the views say the totals are.
TOTALS = """
select count(*) filter (kind in ('root', 'fork')) as sessions, count(*) filter (kind = 'subagent') as subagents,
    sum(prompts) filter (kind in ('root', 'fork'))::int as prompts, sum(tool_calls)::int as tool_calls,
    (select count(*) from model_calls where owner = 'session') as model_calls,
    (select sum(output_tokens)::bigint from model_calls where owner = 'session') as output_tokens
from sessions where not is_empty
"""
#: Turns that a person began, in sessions that a person opened.
ASKED = """
select count(*) from turns t join sessions s using (session_id)
where trigger = 'person' and turn_no > 0 and t.started_at is not null and s.kind in ('root', 'fork')
"""
GROUPED = """
select case when prompts = 0 then 'none' when prompts = 1 then '1' when prompts < 4 then '2-3' else '4-7' end, count(*)
from sessions where kind in ('root', 'fork') and not is_empty and prompts < 8 group by 1
"""
LONGEST = """
select max(ms) from (
    select sum(wall_ms) as ms from turns t join sessions s using (session_id)
    where s.kind in ('root', 'fork') and turn_no > 0 group by session_id
)
"""

pytestmark = pytest.mark.slow


class Run:
    """One run of the notebook as a script, in a folder of its own: what it wrote and said."""

    def __init__(self, folder: Path, db: Path, named: Path) -> None:
        self.db, summary, charts = db, folder / "summary.json", folder / "charts"
        (folder / "tmp").mkdir()
        done = subprocess.run(
            [sys.executable, NOTEBOOK, "--summary", summary, "--charts", charts],
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
        self.pictures = {path.stem: path.read_bytes() for path in charts.iterdir()}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Without a store: the example tree."""
    folder = tmp_path_factory.mktemp("demo")
    load_home(DEMO, folder / "demo.duckdb")
    return Run(folder, folder / "demo.duckdb", folder / "none.duckdb")


@pytest.fixture(scope="module")
def muse(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A store with two providers, tokens, scheduled runs and sub-agents."""
    folder = tmp_path_factory.mktemp("muse")
    trees = [FIXTURES / "muse" / name / "tree" for name in ("example", "turns", "spawns")]
    load_home(DEMO, folder / "both.duckdb", muse=trees)
    return Run(folder, folder / "both.duckdb", folder / "both.duckdb")


@pytest.fixture(params=["demo", "muse"])
def full(request: pytest.FixtureRequest) -> Run:
    found: Run = request.getfixturevalue(request.param)
    return found


def test_totals(full: Run) -> None:
    (totals,) = full.tables["totals"]
    (counted,) = table(full.db, TOTALS)

    assert {name: totals[name] for name in counted} == counted


def test_groups_add_up_to_the_totals(full: Run) -> None:
    (totals,) = full.tables["totals"]
    for name in ("by_prompts", "by_project"):
        assert sum(row["sessions"] for row in full.tables[name]) == totals["sessions"], name
    assert sum(row["prompts"] for row in full.tables["by_project"]) == totals["prompts"]
    assert sum(row["tool_calls"] for row in full.tables["by_project"]) == totals["tool_calls"]
    assert sum(row["model_calls"] for row in full.tables["by_model"]) == totals["model_calls"]
    ((turns,),) = rows(full.db, ASKED)
    assert sum(row["turns"] for row in full.tables["by_hour"]) == turns > 0
    assert sum(row["turns"] for row in full.tables["by_day"]) == turns


def test_what_is_not_reported_is_no_zero(demo: Run) -> None:
    """Qoder's policy zeros: credits are told, tokens are not."""
    for row in demo.tables["by_model"]:
        assert (row["output_tokens"], row["cost_usd"], row["reported"]) == (None, None, 0)
        assert float(row["credits"]) > 0


def test_sessions_are_grouped_by_their_prompts(demo: Run) -> None:
    assert {row["group"]: row["sessions"] for row in demo.tables["by_prompts"]} == dict(rows(demo.db, GROUPED))


def test_longest_sessions_stand_in_order(full: Run) -> None:
    spans = [row["wall_ms"] for row in full.tables["longest_sessions"] if row["wall_ms"] is not None]
    ((longest,),) = rows(full.db, LONGEST)
    assert spans == sorted(spans, reverse=True)
    assert spans[0] == pytest.approx(longest)


def test_charts_are_pictures(demo: Run, muse: Run) -> None:
    assert set(demo.pictures) == {"by_day", "by_hour", "by_project", "by_prompts"}
    assert set(muse.pictures) == {*demo.pictures, "by_model"}
    assert all(picture.startswith(b"\x89PNG\r\n") for picture in [*demo.pictures.values(), *muse.pictures.values()])


def test_nothing_is_left_of_the_example_store(demo: Run, muse: Run) -> None:
    assert demo.err.startswith("example data: there is no store at ")
    assert "edge-proxy" in demo.out
    assert (demo.left, muse.left, muse.err) == ([], [], "")


def test_an_empty_store_has_no_chart_and_no_number(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    load_home(tmp_path / "home", tmp_path / "empty.duckdb")
    empty = Run(tmp_path, tmp_path / "empty.duckdb", tmp_path / "empty.duckdb")

    (totals,) = empty.tables.pop("totals")
    assert not any(totals.values())
    assert not any(empty.tables.values())
    assert (empty.pictures, empty.err) == ({}, "")
