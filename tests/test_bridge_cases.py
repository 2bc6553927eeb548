"""Is evidence of a Qoder Bridge read as its format says, case by case?

``fixtures/qoder_bridge/<case>/`` holds a tree as a root would name it (``tree``), what is right (``expected.json``) and
where the fact was seen (``NOTE.md``). Each case is a store of its own. What ``expected.json`` may state is the list of
functions marked ``@states``; lists are complete, rows given as objects are partial.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pytest

from etl.store import connect
from tests.loading import FIXTURES, load_home, stated_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import duckdb

    from etl.request import Report

CASES: Final = FIXTURES / "qoder_bridge"
NAMES: Final = sorted(path.name for path in CASES.iterdir())


@dataclass
class Case:
    """A case, loaded."""

    name: str
    report: Report
    connection: duckdb.DuckDBPyConnection

    def rows(self, sql: str) -> list[list[Any]]:
        found = self.connection.execute(sql).fetchall()
        return [[_plain(value) for value in row] for row in found]

    def table(self, sql: str) -> list[dict[str, Any]]:
        found = self.rows(sql)
        names = [column[0] for column in self.connection.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found]


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Case]]:
    loaded = {}
    for name in NAMES:
        folder = tmp_path_factory.mktemp(name)
        report = load_home(folder, folder / "store.duckdb", qoder_bridge=CASES / name / "tree")
        loaded[name] = Case(name, report, connect(str(folder / "store.duckdb")))
    yield loaded
    for case in loaded.values():
        case.connection.close()


STATES: dict[str, Callable[[Case, Any], None]] = {}


def states(check: Callable[[Case, Any], None]) -> Callable[[Case, Any], None]:
    """A key of expected.json, by the function's name."""
    STATES[check.__name__] = check
    return check


@states
def runs(case: Case, expected: list[list[Any]]) -> None:
    """[batch, run, messages, tools, protocol errors, unavailable, continuation timeouts, terminal state]."""
    assert (
        case.rows(
            "select batch_id, run, sdk_raw_chunks, tool_count, protocol_errors, provider_unavailable, "
            "continuation_timeout, terminal_state from bridge_runs order by batch_id, run"
        )
        == expected
    )


@states
def turns(case: Case, expected: list[dict[str, Any]]) -> None:
    found = case.table("from bridge_turns order by source_kind = 'replay', source_kind = 'previous', run, turn")
    order = {(row["source_kind"], row["run"], row["turn"]): row for row in found}
    assert len(expected) == len(order)
    for stated in expected:
        kind = stated.get("source_kind", "log" if case.name == "debug_log" else "live")
        row = order[kind, stated["run"], stated["turn"]]
        assert {name: row[name] for name in stated} == stated


@states
def compare(case: Case, expected: list[list[Any]]) -> None:
    """[run, turn, first bad stage, origin, code]; replays last."""
    assert (
        case.rows(
            "select run, turn, first_bad_stage, origin, code from boundary_compare "
            "order by evidence_level = 'replay', run, turn"
        )
        == expected
    )


@states
def equal(case: Case, expected: list[list[Any]]) -> None:
    """[run, turn, transport = A, deltas = B, A = B, snapshots = B, B = C, D in C, C = E]."""
    assert (
        case.rows(
            "select run, turn, transport_equals_sdk, deltas_equal_b, a_equals_b, snapshots_equal_b, b_equals_c, "
            "d_within_c, c_equals_e from boundary_compare order by run, turn"
        )
        == expected
    )


@states
def dialogue(case: Case, expected: list[list[str]]) -> None:
    """[end of the session's id, kind, text]."""
    found = case.rows("select session_id, kind, text from dialogue order by session_id, seq")
    assert [[session.split("/")[-1].split("-")[-1], kind, text] for session, kind, text in found] == [
        [session.split("-")[-1], kind, text] for session, kind, text in expected
    ]


@states
def calls(case: Case, expected: list[list[str | None]]) -> None:
    """[end of the session's id, tool, path, status, result]; nothing times a call of a Bridge."""
    found = case.rows(
        "select session_id, name, target_path, status, result_text from tool_calls "
        "where latency_ms is null order by session_id, seq"
    )
    assert [[row[0].split("-")[-1], *row[1:]] for row in found] == [
        [str(row[0]).split("-")[-1], *row[1:]] for row in expected
    ]


@states
def call_keys(case: Case, expected: list[list[str]]) -> None:
    found = case.rows("select session_id, call_key, call_id_source from facts.tool_requests order by all desc")
    assert sorted([row[0].split("/")[-1], *row[1:]] for row in found) == sorted(expected)


@states
def sessions(case: Case, expected: list[list[Any]]) -> None:
    """[end of the session's id, status, text rows]."""
    found = case.rows("select session_id, status, text_rows from sessions order by session_id")
    assert [[row[0].split("/")[-1], *row[1:]] for row in found] == expected


@states
def model_calls(case: Case, expected: list[list[Any]]) -> None:
    assert case.rows("select input_tokens, output_tokens, cache_read_tokens, usage_status from model_calls") == expected


@states
def dispositions(case: Case, expected: dict[str, int]) -> None:
    assert dict(case.rows("select disposition, count(*) from facts.sdk_messages group by all")) == expected


@states
def disagreements(case: Case, expected: list[list[Any]]) -> None:
    """[run, turn, what, own, reported, by whom]."""
    assert (
        case.rows("select run, turn, what, own, reported, reported_by from bridge_disagreements order by all")
        == expected
    )


@states
def availability(case: Case, expected: list[list[int]]) -> None:
    """[turns, answered, unavailable, queue timeouts, response timeouts, continuation timeouts, aborted, other]."""
    assert (
        case.rows(
            "select turns, answered, unavailable, queue_timeouts, response_timeouts, continuation_timeouts, aborted, "
            "other from provider_availability"
        )
        == expected
    )


@states
def tails(case: Case, expected: dict[str, str]) -> None:
    found = dict(case.rows("select parse_filename(rel_path), tail_state from sources"))
    assert {name: found[name] for name in expected} == expected
    assert {state for name, state in found.items() if name not in expected} == {"complete"}


@states
def census(case: Case, expected: dict[str, int]) -> None:
    """unit/disposition/kind to the number; of lines that are not used, and of items, all."""
    found = dict(
        case.rows(
            "select unit || '/' || disposition || '/' || kind, sum(n)::int from record_census "
            "where unit <> 'record' and disposition <> 'used' group by all"
        )
    )
    assert found == expected


@states
def nowhere(case: Case, expected: list[str]) -> None:
    """Words that no text column of the Bridge's tables, or of dialogue, holds."""
    columns = case.rows(
        "select table_name, column_name from duckdb_columns() where schema_name = 'facts' and data_type = 'VARCHAR'"
    )
    for table, column in columns:
        for word in expected:
            assert (
                case.rows(f"select {column} from facts.{table} where contains({column}, '{word}')") == []  # noqa: S608
            ), (table, column)


@states
def rules(case: Case, expected: dict[str, dict[str, Any]]) -> None:
    """The streams as files: what one alone can show. It does not say whether it continues, or that it is empty."""
    found = {row["batch_id"]: row for row in case.table("from bridge_turns")}
    assert set(found) == set(expected) - {"continuation-silence"}
    for name, row in found.items():
        stated = dict(expected[name])
        stated.pop("continuation", None)
        if "timeout" in stated:
            assert (row["own_timeout"], row["own_code"]) == (stated.pop("timeout"), "MISSING_RESULT"), name
        text = stated.pop("text", None)
        if text is not None:
            said = case.rows(f"select text from dialogue where session_id = 'qoder_bridge:{name}'")  # noqa: S608
            assert said == [[text]], name
        names = {
            "calls": "own_calls",
            "code": "own_code",
            "dup_uuid": "duplicate_uuids",
            "dup_final": "duplicate_finals",
        }
        assert {key: row[names[key]] for key in stated} == stated, name


@states
def checks(case: Case, expected: dict[str, int]) -> None:
    """What the checks find; stated or not, nothing else is found, and nothing failed."""
    assert Counter(finding.check for finding in case.report.findings) == expected
    assert (case.report.failed, case.report.quarantined, case.report.not_recognised) == (
        {},
        {},
        int(case.name == "rules"),  # an empty file of no telling name is nobody's
    )


@pytest.mark.parametrize(("name", "key"), stated_keys(CASES, NAMES))
def test_the_case_is_read_as_it_says(cases: dict[str, Case], name: str, key: str) -> None:
    expected = json.loads((CASES / name / "expected.json").read_text())
    STATES[key](cases[name], expected.get(key, {}))


@pytest.mark.parametrize("name", NAMES)
def test_the_case_says_where_it_was_seen(name: str) -> None:
    assert 2 <= len((CASES / name / "NOTE.md").read_text().splitlines()) <= 6
    assert sorted(path.name for path in (CASES / name).iterdir()) == ["NOTE.md", "expected.json", "tree"]


# -- figures of the investigation's report


def _figures(case: Case) -> dict[str, Any]:
    live = "batch_id = '2026-09-30T05-12-53.712Z'"
    (row,) = case.table(f"""
        with timing as (from bridge_turn_timing)
        select
            (select sum(sdk_raw_chunks)::int from bridge_runs) as chunks,
            (select count(*) from bridge_turns where {live}) as turns,
            (select sum(text_delta_count)::int from bridge_turns where {live}) as text_deltas,
            (select count(*) from facts.queue_events) as queue_events,
            (select count(*) from facts.queue_events where status = 'queued' and not service_available) as unavailable,
            (select count(*) from facts.queue_events where status = 'ready') as ready,
            (select count(*) from bridge_turns where {live} and request_sent and runtime_ack_ms is not null) as sent,
            (select list(first_token_ms order by run) from timing where first_token_ms is not null) as tokens,
            (select count(*) from timing where outcome = 'PROVIDER_UNAVAILABLE' and first_token_ms is null) as failed,
            (select min(terminal_ms) from timing where outcome = 'PROVIDER_UNAVAILABLE') as first_end,
            (select max(terminal_ms) from timing where outcome = 'PROVIDER_UNAVAILABLE') as last_end,
            (select count(*) from timing where is_late or heartbeats_after_deadline > 0) as late,
            (select sum(tool_errors)::int from bridge_runs) as tool_errors,
            (select count(*) from bridge_runs where final_response) as final_responses,
            (select count(*) from facts.transport_frames where is_masked) as masked_frames,
            (select count(*) from boundary_compare where evidence_level = 'observed' and origin <> 'NONE') as defects
    """)  # noqa: S608
    return row


def test_the_figures_of_the_report(cases: dict[str, Case]) -> None:
    """170 chunks in 7 turns, 16 text deltas, 30 queue events (none ready), first tokens at 6.1 s and 6.8 s, ends at
    about 102 s of a deadline of 100 s; nothing malformed, nothing late, no final answer.
    """
    found = _figures(cases["five_runs"])
    ends = (found.pop("first_end"), found.pop("last_end"))
    assert found == {
        "chunks": 170,
        "turns": 7,
        "text_deltas": 16,
        "queue_events": 30,
        "unavailable": 30,
        "ready": 0,
        "sent": 7,
        "tokens": [6100.0, 6800.0],
        "failed": 5,
        "late": 0,
        "tool_errors": 0,
        "final_responses": 0,
        "masked_frames": 4,
        "defects": 0,
    }
    assert all(102_000 <= end < 102_500 for end in ends)


def test_in_the_replay_all_stages_hold_one_text(cases: dict[str, Case]) -> None:
    """A = B = C = E, byte for byte, and the parser was asked for what stands between the tags."""
    text = '<pi_tool_call>{"name":"read","arguments":{"path":"README.md"}}}</pi_tool_call>'
    texts = cases["five_runs"].rows(
        "select boundary, item_index, list(distinct text) from facts.boundary_events "
        "where evidence_level = 'replay' and boundary is not null and label <> 'parser_selected' "
        "group by all order by all"
    )
    assert texts == [
        ["A", None, [text]],
        ["B", None, [text]],
        ["C", None, [text]],
        ["D", 1, [text[14:-15]]],
        ["E", None, [text]],
    ]


def test_a_provenance_says_which_stages_were_observed(cases: dict[str, Case]) -> None:
    found = cases["five_runs"].rows(
        "select distinct boundary, observed, evidence_level from facts.boundary_events "
        "where label = 'provenance' order by all"
    )
    assert found == [
        ["A", True, "observed"],
        ["B", True, "observed"],
        ["C", False, "derived"],
        ["D", False, "derived"],
        ["E", False, "derived"],
    ]
