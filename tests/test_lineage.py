"""Are copies, forks and sub-agents told the same whatever comes first, and counted once wherever numbers stand?"""

from __future__ import annotations

import itertools
import json
import random
import shutil
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etl import pipeline
from etl.store import connect
from tests.loading import FIXTURES, join_trees
from tests.test_incremental import assert_same, copy, files_of, load

if TYPE_CHECKING:
    from pathlib import Path

#: Cases whose sessions are related to each other, or stand in several files.
RELATED: Final = (
    *("fork", "forks", "fork_sidecar", "equal_records", "one_session_twice", "one_id_two_contents", "agents_nested"),
    *("subagents", "branches", "compaction", "branch_odd"),
)
CASES: Final = FIXTURES / "qoder"


@pytest.fixture(scope="module")
def related(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return join_trees(tmp_path_factory.mktemp("related"), "qoder", RELATED)


@pytest.fixture(scope="module")
def full(related: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of a full load of it."""
    db = tmp_path_factory.mktemp("full") / "s.duckdb"
    load(related, db)
    return db


def numbers(db: Path, sql: str) -> list[Any]:
    with connect(str(db)) as connection:
        return [value for row in connection.execute(sql).fetchall() for value in row]


@pytest.mark.parametrize("seed", range(2))
def test_files_in_any_order_and_any_number_of_loads_give_the_store_of_one(
    related: Path, full: Path, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "COPY_ROWS", 0)  # on a copy of the store wherever that is allowed
    monkeypatch.setattr(pipeline, "_AFRESH_SHARE", 1.0)
    chance = random.Random(seed)
    files = files_of(related)
    chance.shuffle(files)
    home, db = tmp_path / "home", tmp_path / "step" / "s.duckdb"
    home.mkdir()
    cuts = sorted(chance.sample(range(1, len(files)), 4))
    for start, end in itertools.pairwise([0, *cuts, len(files)]):
        for file in files[start:end]:
            (home / file).parent.mkdir(parents=True, exist_ok=True)
            lines = (related / file).read_bytes().splitlines(keepends=True)
            kept = lines[: chance.randint(0, len(lines))] if file.suffix == ".jsonl" else lines
            (home / file).write_bytes(b"".join(kept))
        load(home, db)
    copy(related, home, files)
    load(home, db)
    assert_same(db, full)


def _uuid(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


#: A family of files over one pool of records: each file holds some of them, as its own, as forked, or as they are.
Plan = list[tuple[str, str, str | None, list[int]]]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    sessions = ["s0", "s1", "s2", "s3"]
    plan: Plan = []
    for number in range(draw(st.integers(2, 4))):
        session = draw(st.sampled_from(sessions))
        origin = draw(st.one_of(st.none(), st.sampled_from([*sessions, "gone"])))
        held = sorted(draw(st.sets(st.integers(1, 6), min_size=1, max_size=6)))
        plan.append((f"-work-{number}/{session}.jsonl", session, origin, held))
    return plan


def _lines(session: str, origin: str | None, held: list[int]) -> str:
    said = []
    for before, number in itertools.pairwise([0, *held]):
        record = {
            "type": "assistant",
            "uuid": _uuid(number),
            "parentUuid": _uuid(before) if before else None,
            "sessionId": session,
            "cwd": "/work",
            "timestamp": f"2026-03-02T10:00:{number:02}.000Z",
            "message": {
                "id": f"m{number}",
                "role": "assistant",
                "model": "performance",
                "stop_reason": "end_turn",
                "content": [
                    {"type": "text", "text": f"Said {number}."},
                    {"type": "tool_use", "id": f"c{number}", "name": "Bash", "input": {"command": "true"}},
                ],
                "usage": {"input_tokens": 0, "output_tokens": 0, "credits": 1},
            },
        }
        if origin is not None:
            record["forkedFrom"] = {"sessionId": origin, "messageUuid": _uuid(number)}
        said.append(json.dumps(record))
    return "".join(line + "\n" for line in said)


@given(plan=plans(), order=st.randoms(use_true_random=False))
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_records_that_many_files_share_count_once_whatever_comes_first(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan, order: random.Random
) -> None:
    folder = tmp_path_factory.mktemp("plan")
    arriving = list(plan)
    order.shuffle(arriving)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "COPY_ROWS", 0)
        patch.setattr(pipeline, "_AFRESH_SHARE", 1.0)
        for path, session, origin, held in arriving:
            file = folder / "home" / ".qoder/projects" / path
            file.parent.mkdir(parents=True)
            file.write_text(_lines(session, origin, held))
            load(folder / "home", folder / "step" / "s.duckdb")
    load(folder / "home", folder / "full" / "s.duckdb")
    assert_same(folder / "step" / "s.duckdb", folder / "full" / "s.duckdb")
    distinct = len({number for _, _, _, held in plan for number in held})
    counted = numbers(
        folder / "full" / "s.duckdb",
        # of every branch: two files of one session that go on in different ways leave one of the ways dead
        "select (select count(*) from mart.dialogue where not is_copy), (select count(*) from tool_calls), "
        "(select sum(credits) from model_calls)",
    )
    assert counted == [distinct, distinct, Decimal(distinct)]


def test_an_owner_that_goes_away_leaves_what_it_owned_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "COPY_ROWS", 0)
    monkeypatch.setattr(pipeline, "_AFRESH_SHARE", 1.0)
    home, db = tmp_path / "home", tmp_path / "step" / "s.duckdb"
    copy(CASES / "equal_records" / "tree", home, files_of(CASES / "equal_records" / "tree"))
    load(home, db)
    prompts = "select prompts from sessions where session_id = 'qoder:aa-second'"
    assert numbers(db, prompts) == [1]
    owner = home / ".qoder/projects/-work-equal-records/zz-first.jsonl"
    lines = owner.read_bytes().splitlines(keepends=True)
    owner.write_bytes(b"".join(lines[2:]))  # rewritten without what it owned: nothing in it tells of the other any more
    load(home, db)
    assert numbers(db, prompts) == [2]
    assert numbers(db, "select count(*) from copies") == [0]
    load(home, tmp_path / "full" / "s.duckdb")
    assert_same(db, tmp_path / "full" / "s.duckdb")
    owner.write_bytes(b"".join(lines))
    load(home, db)
    assert numbers(db, prompts) == [1]


def test_a_copy_that_a_broken_source_told_of_is_forgotten_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check takes the fork out of the first round of conclusions; its origin is concluded anew without it."""
    monkeypatch.setattr(pipeline, "COPY_ROWS", 0)
    home, db = tmp_path / "home", tmp_path / "step" / "s.duckdb"
    tree = CASES / "equal_records" / "tree"
    copy(tree, home, files_of(tree))
    file = home / ".qoder/projects/-work-equal-records/aa-second.jsonl"
    secret = "ghp_" + "FAKE0000" * 5
    monkeypatch.setattr("etl.finish.mask_series", lambda series, *_args, **_kwargs: (series, []))
    file.write_text(file.read_text().replace("Left.", secret))
    report = load(home, db)
    assert set(report.quarantined.values()) == {"ac6_nothing_secret"}
    assert numbers(db, "select count(*) from copies") == [0]
    assert numbers(db, "select prompts from sessions where session_id = 'qoder:zz-first'") == [2]


# --- Numbers that stand in many places


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of every small case and the demo home."""
    names = [path.name for path in CASES.iterdir() if path.name not in ("example", "forty")]
    home = join_trees(tmp_path_factory.mktemp("home"), "qoder", sorted(names))
    shutil.copytree(FIXTURES / "demo", home, dirs_exist_ok=True)
    db = tmp_path_factory.mktemp("store") / "s.duckdb"
    load(home, db)
    return db


def _with_subagents(column: str) -> str:
    """What the Qoder report says of a column, and what the sub-agents, which it leaves out, add to it."""
    return (
        f"select (select sum({column}) from qoder_session_report) "  # noqa: S608
        f"+ (select coalesce(sum({column}), 0) from sessions where kind = 'subagent')"
    )


_CALLS: Final = "from tool_calls c join sessions s using (session_id) where s.kind <> 'subagent'"
#: Statements that each give one total, by what they count.
TOTALS: Final = {
    "calls": [
        "select count(*) from tool_calls",
        "select sum(tool_calls) from sessions",
        "select count(*) from mart.tool_calls where not is_copy",
        "select sum(n) from (select count(distinct call_key) as n from tool_calls group by session_id)",
        "select count(*) + (select count(*) from tool_calls where latency_ms is null) from tool_latency",
        _with_subagents("tool_calls"),
    ],
    "reported calls": [
        "select sum(tool_calls) from qoder_session_report where ended_at is not null",
        "select tool_calls from qoder_report(100000)",
        "select sum(tool_calls) from qoder_latest(100000)",
        f"select count(*) {_CALLS} and s.ended_at is not null",
    ],
    "reported credits": [
        "select sum(credits) from qoder_session_report where ended_at is not null",
        "select credits from qoder_report(100000)",
        "select sum(credits) from qoder_latest(100000)",
    ],
    "credits": [
        "select sum(credits) from model_calls where owner = 'session'",
        "select sum(credits) from sessions",
        "select sum(credits) from mart.model_calls where not is_copy and owner = 'session'",
        _with_subagents("credits"),
    ],
    "output tokens": [
        "select sum(output_tokens) from model_calls where owner = 'session'",
        "select sum(output_tokens) from sessions",
        "select sum(output_tokens) from mart.model_calls where not is_copy and owner = 'session'",
    ],
    "input tokens": [
        "select sum(input_tokens) from model_calls where owner = 'session'",
        "select sum(input_tokens) from sessions",
    ],
    "model calls": [
        "select count(*) from model_calls where owner = 'session'",
        "select sum(model_calls) from sessions",
    ],
    "errors": [
        "select count(*) from tool_calls where status = 'error'",
        "select sum(tool_errors) from sessions",
        _with_subagents("tool_errors"),
    ],
    "texts": [
        "select count(*) from dialogue where kind = 'text'",
        "select sum(text_rows) from sessions",
        _with_subagents("text_rows"),
    ],
    "thoughts": [
        "select count(*) from dialogue where kind = 'thinking'",
        "select sum(thinking_rows) from sessions",
        _with_subagents("thinking_rows"),
    ],
    "prompts": [
        "select count(distinct (session_id, message_key)) from dialogue where kind in ('prompt', 'command')",
        "select sum(prompts) from sessions",
        _with_subagents("prompts"),
    ],
    "tool time": [
        "select sum(tool_sum_ms) from turns",
        "select sum(latency_ms) from tool_latency where turn_no > 0 and started_at is not null",
    ],
}


@pytest.mark.parametrize("what", TOTALS)
def test_a_total_is_the_same_wherever_it_is_stated(everything: Path, what: str) -> None:
    found = [numbers(everything, statement)[0] for statement in TOTALS[what]]
    assert found[0] > 0
    assert {Decimal(str(value)).quantize(Decimal("0.000001")) for value in found} == {
        Decimal(str(found[0])).quantize(Decimal("0.000001"))
    }, found


def test_no_view_shows_a_copy(everything: Path) -> None:
    """Every view with a place of its own is looked through for places of copies."""
    with connect(str(everything)) as connection:
        views = connection.execute(
            "select table_name from duckdb_columns() where schema_name = 'main' and column_name = 'line_no' "
            "and table_name in (select view_name from duckdb_views()) "
            "and database_name = 'store' intersect select table_name from duckdb_columns() "
            "where schema_name = 'main' and column_name = 'source_id'"
        ).fetchall()
        names = {name for (name,) in views} - {"copies", "rejects", "conflicts"}  # rows of files, not of sessions
        assert names >= {"dialogue", "tool_calls", "events", "orphan_results"}
        for name in names:
            shown = connection.execute(
                f"select count(*) from {name} v "  # noqa: S608
                "semi join copies c on c.source_id = v.source_id and c.line_no = v.line_no"
            ).fetchall()
            assert (name, shown) == (name, [(0,)])


def test_copies_of_a_large_store_are_many_and_owned_once(everything: Path) -> None:
    found = numbers(everything, "select count(*), count(distinct (source_id, line_no, child)) from copies")
    assert found[0] == found[1] > 50
