"""Does the latency notebook run as a script on any store, and are its numbers those that SQL gives?"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import struct
import subprocess
import sys
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pytest

from tests.loading import FIXTURES, load_home, rows, table

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parent.parent
NOTEBOOKS = ROOT / "notebooks"
DEMO = FIXTURES / "demo"

pytestmark = pytest.mark.slow

# 100,000 calls by closed formulas: 1,000 sessions of 25 turns of 4 calls in 45 tools of 7 models. A turn lasts an hour;
# its first two calls start together, the others 20 and 40 minutes later, and no call takes 20 minutes: so the wall time
# of a turn is the longer of the first two, and the others.
MANY = """
create temp table made as
with numbers as (select range as n, range // 100 as session_no, range // 4 % 25 + 1 as turn_no, range % 4 as slot,
        range * 7 % 45 as tool_no from range(100_000)),
called as (select *, case when n % 101 = 0 then 'missing_result' when n % 997 = 0 then 'denied'
            when n % 50 = 0 then 'error' when n % 333 = 0 then 'background' else 'ok' end as status,
        case when slot < 2 and turn_no % 5 = 0 then 'batch'
            when tool_no % 3 = 0 then 'provider_duration' else 'pair' end as source,
        case when n % 1000 = 7 then 900_000_000
            else (1 + n * 7919 % 9973) * [1, 10, 100, 1_000, 10_000][tool_no % 5 + 1] end as us
    from numbers)
select n, 'qoder:many-' || session_no as session_id, 'call-' || n as call_key, turn_no, tool_no, status,
    timestamptz '2026-01-01 00:00:00Z' + to_days(session_no::int) + to_hours(turn_no::int)
        + to_minutes((20 * greatest(slot - 1, 0))::int) as started_at,
    case when status <> 'missing_result' then us end as us,
    case when status = 'missing_result' then 'none' else source end as source,
    case when status = 'missing_result' then 'none' when source = 'batch' or status = 'background' then 'bound'
        when source = 'provider_duration' then 'exact' else 'good' end as quality,
    status = 'denied' or n % 1000 = 7 or (source = 'provider_duration' and n % 700 = 9) as gate
from called;
insert into mart.sessions (session_id, provider, native_id, kind, title, project)
    select distinct session_id, 'qoder', session_id[7:], 'root', 'Many calls', 'many' from made;
insert into facts.sources (source_id, host, provider, rel_path, session_id)
    select distinct session_id, 'testhost', 'qoder', session_id[7:] || '.jsonl', session_id from made;
insert into facts.tool_requests (fact_id, source_id, line_no, session_id, call_key, name, command_head)
    select n, session_id, n + 1, session_id, call_key, 'T' || tool_no, 'echo ' || n from made;
insert into mart.tool_calls by name
    select session_id, call_key, n as seq, turn_no, n as request_fact_id, 'T' || tool_no as name, status, started_at,
        us as latency_us, source as latency_source, quality as latency_quality,
        us + case when gate and source = 'provider_duration' and status = 'ok' then 700_000_000 else 0 end as pair_us,
        case when source = 'provider_duration' then us end as provider_us,
        case when n % 500 = 3 then 2_000 end as wait_us, gate as human_gate_suspected, 'M' || n % 7 as model,
        'testhost' as host, 'live' as branch, false as is_copy
    from made;
insert into mart.turns (session_id, turn_no, trigger, tool_wall_us, tool_sum_us)
    select session_id, turn_no, 'person',
        coalesce(max(us) filter (n % 4 < 2), 0) + coalesce(sum(us) filter (n % 4 >= 2), 0), sum(us)
    from made group by all;
"""

BY = {"tool": "coalesce(mcp_server || ': ', '') || name as tool", "model": "model"}


@dataclass(frozen=True)
class Run:
    """One run of the notebook: the store it read, what it wrote."""

    db: Path
    charts: Path
    tables: dict[str, list[dict[str, Any]]]
    out: str
    err: str


def run(folder: Path, db: Path, named: Path, *, pictures: bool = True) -> Run:
    """Runs the notebook as a script, in a folder of its own, on the store ``named``; ``db`` has the rows to compare.

    All charts are built in any case; drawing them as pictures takes as long as all the rest.
    """
    summary, charts = folder / "summary.json", folder / "charts"
    (folder / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, NOTEBOOKS / "tool_latency.py", "--summary", summary, *(("--charts", charts) * pictures)],
        cwd=folder,
        env={**os.environ, "SESSIONMART_DB": str(named), "TMPDIR": str(folder / "tmp")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Run(db, charts, json.loads(summary.read_text(encoding="utf-8")), done.stdout, done.stderr)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Without a store: the example tree."""
    folder = tmp_path_factory.mktemp("demo")
    load_home(DEMO, folder / "demo.duckdb")
    return run(folder, folder / "demo.duckdb", folder / "none.duckdb")


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("empty")
    (folder / "home").mkdir()
    load_home(folder / "home", folder / "empty.duckdb")
    return run(folder, folder / "empty.duckdb", folder / "empty.duckdb")


@pytest.fixture(scope="module")
def many(empty: Run, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("many")
    db = folder / "many.duckdb"
    shutil.copyfile(empty.db, db)
    with duckdb.connect(str(db)) as connection:
        connection.execute(MANY)
    return run(folder, db, db, pictures=False)


@pytest.fixture(params=["demo", "many"])
def full(request: pytest.FixtureRequest) -> Run:
    found: Run = request.getfixturevalue(request.param)
    return found


def timed(columns: str, where: str = "true") -> str:
    return f"select {columns} from tool_latency where {where} group by all"  # noqa: S608 - only words of this file


def same(found: list[dict[str, Any]], db: Path, sql: str, *key: str) -> None:
    """The rows of a table of the notebook, in any order, are those of a query, in each column the query has."""
    expected = {tuple(row.pop(k) for k in key): row for row in table(db, sql)}
    seen = {tuple(row[k] for k in key): row for row in found}
    assert len(seen) == len(found)
    assert seen.keys() == expected.keys()
    for name, row in expected.items():
        numbers = {column: value for column, value in row.items() if value is not None}
        assert {column for column in row if seen[name][column] is None} == row.keys() - numbers.keys(), name
        assert {column: seen[name][column] for column in numbers} == pytest.approx(numbers, rel=1e-9), name


def test_totals(full: Run) -> None:
    (totals,) = full.tables["totals"]
    (calls,) = rows(full.db, "select count(*), count(latency_ms), sum(latency_ms) from tool_calls")
    (sessions,) = rows(full.db, "select count(distinct session_id) from tool_latency")
    (turns,) = rows(
        full.db,
        "select count(*), count(*) filter (tool_sum_ms > tool_wall_ms), sum(tool_wall_ms), "
        "sum(tool_sum_ms - tool_wall_ms) from turns where tool_wall_ms is not null",
    )
    names = ("calls", "timed_calls", "sum_ms", "sessions", "turns", "parallel_turns", "wall_ms", "saved_ms")

    assert [totals[name] for name in names] == pytest.approx([*calls, *sessions, *turns])


@pytest.mark.parametrize("by", BY)
def test_wall_time_is_split_without_rest(full: Run, by: str) -> None:
    split = full.tables[f"time_by_{by}"]
    ((wall,),) = rows(full.db, "select sum(tool_wall_ms) from turns")
    waits = "human_gate_suspected and not (latency_source = 'provider_duration' and status = 'ok')"
    kind = f"case when {waits} then 'human wait' else latency_quality end as kind"

    same(split, full.db, timed(f"{BY[by]}, {kind}, count(*) as calls, sum(latency_ms) as sum_ms"), by, "kind")
    assert sum(row["wall_ms"] for row in split) == pytest.approx(wall)
    assert all(0 <= row["wall_ms"] <= row["sum_ms"] + 1e-6 for row in split)


@pytest.mark.parametrize("by", BY)
def test_tails_are_told_twice(full: Run, by: str) -> None:
    shares = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
    numbers = [
        number
        for suffix, only in (("", "true"), ("_no_wait", "not human_gate_suspected"))
        for number in (
            f"count(*) filter ({only}) as calls{suffix}",
            *(f"quantile_cont(latency_ms, {s}) filter ({only}) as {name}_ms{suffix}" for name, s in shares.items()),
        )
    ]
    measured = "status in ('ok', 'error') and latency_quality in ('exact', 'good')"

    same(full.tables[f"tails_by_{by}"], full.db, timed(", ".join([BY[by], *numbers]), measured), by)


def test_qualities_stand_apart(full: Run) -> None:
    numbers = "count(*) as calls, quantile_cont(latency_ms, 0.95) as p95_ms, max(latency_ms) as longest_ms"
    by_source = timed(f"latency_quality, latency_source, {numbers}")
    bound = timed(f"{BY['tool']}, {numbers}", "latency_quality = 'bound' and not human_gate_suspected")

    same(full.tables["by_source"], full.db, by_source, "latency_quality", "latency_source")
    same([row for row in full.tables["by_quality"] if row["kind"] == "bound"], full.db, bound, "tool")


def test_waits(full: Run) -> None:
    reason = """case when status = 'denied' then 'denied by the person'
        when name = 'AskUserQuestion' then 'question to the person'
        when latency_source = 'provider_duration' then 'gap beside the call' else 'ten minutes or more' end as reason"""
    waited = """sum(case when latency_source = 'provider_duration' and status <> 'denied' then pair_ms - provider_ms
        else latency_ms end) as total_ms"""
    suspected = timed(f"{BY['tool']}, {reason}, count(*) as calls, {waited}", "human_gate_suspected")
    told = timed(f"{BY['tool']}, count(*) as calls, sum(wait_ms) as told_ms", "wait_ms > 0")

    same(full.tables["suspected_waits"], full.db, suspected, "tool", "reason")
    same(full.tables["told_waits"], full.db, told, "tool")


def test_the_slowest_calls(full: Run) -> None:
    sql = (
        "select latency_ms, session_id, call_key, line_no from tool_calls order by latency_ms desc nulls last limit 300"
    )
    known = rows(full.db, sql)
    slow = full.tables["slowest_calls"]

    assert [row["latency_ms"] for row in slow] == [row[0] for row in known[:100]]
    assert {(row["latency_ms"], row["session_id"], row["call_key"], row["line_no"]) for row in slow} <= set(known)


def test_a_slow_call_leads_back_to_its_line(demo: Run) -> None:
    for call in demo.tables["slowest_calls"]:
        line = (DEMO / call["rel_path"]).read_text(encoding="utf-8").split("\n")[call["line_no"] - 1]
        items = {item["id"]: item for item in json.loads(line)["message"]["content"] if item["type"] == "tool_use"}
        assert call["call_key"] in items
        if call["tool"] == "Bash":
            assert items[call["call_key"]]["input"]["command"] == call["head"]


def test_a_script_prints_its_tables(demo: Run) -> None:
    assert "git push origin v2.4.0" in demo.out  # 25 minutes: the longest call of the example tree
    assert "25.0 min" in demo.out
    assert demo.err.startswith("example data: there is no store at ")


def test_nothing_is_left_of_the_example_store(demo: Run) -> None:
    assert list((demo.charts.parent / "tmp").rglob("*.duckdb*")) == []
    assert not (demo.charts.parent / "none.duckdb").exists()


def test_an_empty_store_has_no_chart_and_no_number(empty: Run) -> None:
    (totals,) = empty.tables.pop("totals")
    (parallel,) = empty.tables.pop("parallel_calls")

    assert not any(totals.values())
    assert not any(parallel.values())
    assert not any(empty.tables.values())
    assert list(empty.charts.iterdir()) == []
    assert empty.err == ""


def test_charts_are_pictures(demo: Run) -> None:
    names = {path.stem for path in demo.charts.iterdir()}

    assert names == {
        *(f"{what}_by_{by}" for what in ("time", "spread", "tails") for by in ("tool", "model")),
        *("by_quality", "suspected_waits", "parallel_calls"),
    }
    for path in demo.charts.iterdir():
        width, height, colours = picture(path)
        assert 800 < width < 3000, path.name
        assert 200 < height < 3000, path.name
        assert colours > 20, path.name


def picture(path: Path) -> tuple[int, int, int]:
    """Width and height of a PNG, and how many different bytes its pixels are made of (blank: 2 or 3)."""
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    packed, at = b"", 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + length]
        at += length + 12
    return width, height, len(set(zlib.decompress(packed)))


@pytest.fixture
def numbers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(NOTEBOOKS)
    return importlib.import_module("latency_numbers")


def test_what_is_drawn_stays_small_however_many_calls(many: Run, numbers: ModuleType) -> None:
    with duckdb.connect(str(many.db), read_only=True) as connection:
        calls = numbers.credited(connection.sql(numbers.CALLS).pl())
        turns = connection.sql(numbers.TURNS).pl()
    some = numbers.lumped(calls, "tool", 12)

    assert calls.height > 98_000
    assert some["tool"].unique().len() == 13
    assert some.filter(pl.col("tool") == "33 others").height == some.filter(pl.col("rank") == 12).height > 0
    assert numbers.binned(some)["calls"].sum() == calls.height
    assert numbers.binned(some).height < 1_000
    assert numbers.turn_cells(turns)["turns"].sum() == turns.height
    assert numbers.turn_cells(turns).height < 1_000


def test_a_moment_counts_once_for_the_call_that_started_first(numbers: ModuleType) -> None:
    # Seconds from the start of the turn: a 0-10, b 5-8 inside it, c 8-15 beyond it, d 20-21 apart; e in another turn.
    spans = {"a": (1, 0, 10), "b": (1, 5, 3), "c": (1, 8, 7), "d": (1, 20, 1), "e": (2, 5, 3)}
    start = datetime(2026, 6, 1, 12, tzinfo=UTC)
    calls = pl.DataFrame(
        {
            "session_id": ["s"] * len(spans),
            "turn_no": [turn for turn, _, _ in spans.values()],
            "call_key": list(spans),
            "started_at": [start + timedelta(seconds=begin) for _, begin, _ in spans.values()],
            "latency_ms": [length * 1000.0 for _, _, length in spans.values()],
        }
    )

    found = numbers.credited(calls.reverse()).select("call_key", "wall_ms").rows()

    assert dict(found) == {"a": 10_000, "b": 0, "c": 5_000, "d": 1_000, "e": 3_000}


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (None, ""),
        (0, "0 ms"),
        (0.25, "0.2 ms"),
        (52, "52 ms"),
        (3_140, "3.1 s"),
        (1_500_018, "25.0 min"),
        (7.56e6, "2.1 h"),
    ],
)
def test_durations_are_spoken(numbers: ModuleType, ms: float | None, words: str) -> None:
    assert numbers.spoken(ms) == words
