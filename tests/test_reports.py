"""Do the reports say what the records of a small tree say, counted by hand?

Two days of two agents. Claude Code, project app: a prompt, two shells side by side (1 s and 3 s), a failed one (2 s,
exit 3), a question answered after 20 minutes, one call without a result, then an answer; the service was retried once.
The next day a session of project other: one call of an MCP server of 4 s. Codex, project tool: one shell of 0.5 s by
the log's own word, a model without a price.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pytest

from etl.reports import Filter, definitions, report_rows, run_report
from tests.authored import Claude, call, codex, text, usage
from tests.loading import load_home
from tests.test_cli import run

if TYPE_CHECKING:
    from pathlib import Path

NOW: Final = datetime(2026, 5, 6, tzinfo=UTC)
DAY: Final = 86_400
NAMES: Final = (
    *("availability", "bridge", "cost", "drift", "errors", "latency", "muse", "parallelism", "qoder", "quality"),
    *("sessions", "tools", "usage"),
)


def tree(home: Path) -> None:
    one = Claude(1).user(0, "Build it", gitBranch="main")
    # 1,000 fresh + 4,000 read, 100 out: 1,000 x 5 + 4,000 x 0.5 + 100 x 25 = 9,500 millionths of a USD
    spent = usage(1_000, 100, cache_read_input_tokens=4_000)
    one.assistant(10, "m1", call("t1"), call("t2", command="make test"), usage=spent, stop_reason="tool_use")
    one.result(11, "t1", "one").result(13, "t2", "two")
    one.assistant(20, "m2", call("t3", command="false"), stop_reason="tool_use")
    failed = {"type": "tool_result", "tool_use_id": "t3", "content": "Exit code 3\nno luck", "is_error": True}
    one.user(22, [failed], toolUseResult="Error: Exit code 3")
    one.assistant(30, "m3", call("t4", "AskUserQuestion", questions=[]), stop_reason="tool_use")
    one.result(1_230, "t4", "yes")
    one.add("system", 1_240, subtype="api_error", error={"status": 529, "type": "overloaded"}, retryAttempt=1)
    one.assistant(1_250, "m4", call("t5", "Read", file_path="/home/dev/app/a.py"), stop_reason="tool_use")
    one.assistant(1_260, "m5", text("Done."), usage=usage(0, 0), stop_reason="end_turn").write(home)
    two = Claude(2, "/home/dev/other").user(DAY, "Find it")
    two.assistant(DAY + 1, "m6", call("t6", "mcp__web__find", q="x"), usage=usage(200, 10)).result(
        DAY + 5, "t6", "found"
    )
    two.state("brand-new-row").write(home)
    ended = {"type": "exec_command_end", "call_id": "c1", "exit_code": 0, "duration": {"secs": 0, "nanos": 500_000_000}}
    codex(
        home,
        3,
        [
            ("event_msg", {"type": "task_started", "turn_id": "u1"}),
            ("turn_context", {"cwd": "/home/dev/tool", "model": "model-of-nobody"}),
            ("event_msg", {"type": "user_message", "message": "Go"}),
            (
                "response_item",
                {"type": "function_call", "name": "shell", "call_id": "c1", "arguments": '{"command":["ls"]}'},
            ),
            ("event_msg", ended | {"stdout": "a", "stderr": ""}),
            ("response_item", {"type": "function_call_output", "call_id": "c1", "output": "a"}),
            ("event_msg", {"type": "token_count", "info": _counted(300, 30)}),
        ],
        cwd="/home/dev/tool",
    )


def _counted(fresh: int, output: int) -> dict[str, Any]:
    counts = {"input_tokens": fresh, "cached_input_tokens": 0, "output_tokens": output, "total_tokens": fresh + output}
    return {"total_token_usage": counts, "last_token_usage": counts}


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("reports")
    tree(folder / "home")
    report = load_home(folder / "home", folder / "s.duckdb")
    assert (report.findings, report.quarantined) == ([], {})
    return str(folder / "s.duckdb")


def part(db: str, name: str, wanted: str, *columns: str, **stated: str) -> list[tuple[Any, ...]]:
    """Columns of one table of a report."""
    table = report_rows(db, name, NOW, wanted, **stated).select(list(columns))
    return [tuple(row.values()) for row in table.to_pylist()]


def test_these_are_the_reports() -> None:
    known = definitions()
    assert tuple(known) == NAMES
    assert all(len(found.about) > 40 and found.titled for found in known.values())


@pytest.mark.parametrize("name", NAMES)
def test_every_report_stands_with_each_of_its_parameters(db: str, name: str) -> None:
    for parameter in definitions()[name].parameters.values():
        value = {"integer": "3", "timestamptz": "2020-01-01", "text": "nobody"}[parameter.kind]
        stated = {"tz": "Europe/Berlin"}.get(parameter.name, value)
        if parameter.name != "batch":
            assert run_report(db, name, NOW, **{parameter.name: stated}).heading
    assert run_report(db, name, NOW).parts


@pytest.mark.parametrize("name", sorted({*NAMES} - {"bridge", "muse", "qoder"}))
def test_the_filters_are_taken_everywhere(db: str, name: str) -> None:
    assert {"provider", "project", "since", "until"} <= set(definitions()[name].parameters) | (
        {"project"} if name == "drift" else set()  # a type nobody knows is no project's
    )
    assert run_report(db, name, NOW, since="2027-01-01", tz="Asia/Tokyo").heading


def test_latency_is_told_with_and_without_human_waits(db: str) -> None:
    # measured: 1, 3, 2 (failed), 1,200 (a question), 4 and 0.5 s; without the question the median of five is 2 s
    assert (
        run_report(db, "latency", NOW).heading
        == "6 measured calls: p50 2000 ms, p95 3800 ms without 1 probable human wait"
    )
    columns = ("tool", "calls", "measured", "human_waits", "p50_ms", "p50_own_ms", "p99_own_ms", "total_s")
    assert part(db, "latency", "tools", *columns) == [
        ("Bash", 3, 3, 0, 2_000.0, 2_000.0, 2_980.0, 6.0),
        ("find", 1, 1, 0, 4_000.0, 4_000.0, 4_000.0, 4.0),
        ("shell", 1, 1, 0, 500.0, 500.0, 500.0, 0.5),
        ("AskUserQuestion", 1, 1, 1, 1_200_000.0, None, None, None),
    ]
    assert part(db, "latency", "providers", "provider", "calls", "p50_own_ms") == [
        *(("claude_code", 5, 2_500.0), ("codex", 1, 500.0))
    ]
    assert part(db, "latency", "hours", "hour", "calls", tz="Europe/Berlin") == [("12", 6)]
    assert part(db, "latency", "slowest", "tool", "latency_ms", "source", "human_wait", calls="2") == [
        *(("AskUserQuestion", 1_200_000.0, "pair", True), ("find", 4_000.0, "pair", False))
    ]


def test_filters_leave_out_what_was_not_asked_for(db: str) -> None:
    assert part(db, "latency", "tools", "tool", "calls", project="other") == [("find", 1)]
    assert part(db, "latency", "tools", "tool", "calls", provider="codex") == [("shell", 1)]
    assert part(db, "latency", "tools", "tool", "calls", since="2026-05-05") == [("find", 1)]
    assert part(db, "latency", "tools", "tool", "calls", until="2026-05-04", provider="claude_code") == [
        *(("Bash", 3), ("AskUserQuestion", 1))
    ]
    assert part(db, "latency", "tools", "tool", "calls", since="2026-05-05", until="2026-05-04") == []


def test_a_report_says_what_it_was_made_with(db: str) -> None:
    told = run_report(db, "latency", NOW, provider="codex", since="2d", until="2026-05-05", tz="Europe/Berlin").filters
    assert told == (  # NOW is 2026-05-06 00:00 UTC, Berlin two hours ahead; the 5th ends where the 6th begins
        Filter("provider", "codex"),
        Filter("project", None),
        Filter("since", "2d (2026-05-04 02:00:00 Europe/Berlin)"),
        Filter("until", "2026-05-05 (2026-05-06 00:00:00 Europe/Berlin)"),
        Filter("tz", "Europe/Berlin"),
        Filter("calls", "20"),
    )


def test_one_part_of_a_report_is_a_report_of_that_part(db: str) -> None:
    for wanted, title in (("hours", "By hour of the day"), ("rows", "")):
        found = run_report(db, "latency", NOW, wanted)
        (only,) = found.parts
        assert (only.name, only.title, found.heading) == (wanted, title, run_report(db, "latency", NOW).heading)
        assert only.table == report_rows(db, "latency", NOW, wanted)
        assert only.about


def test_tools_are_told_by_how_their_calls_ended(db: str) -> None:
    assert run_report(db, "tools", NOW).heading == "7 calls of 5 tools in 3 sessions"
    columns = ("tool", "provider", "calls", "ok", "error", "no_result", "error_percent")
    assert part(db, "tools", "rows", *columns) == [
        ("Bash", "claude_code", 3, 2, 1, 0, 33.3),
        ("AskUserQuestion", "claude_code", 1, 1, 0, 0, 0.0),
        ("Read", "claude_code", 1, 0, 0, 1, None),
        ("find", "claude_code", 1, 1, 0, 0, 0.0),
        ("shell", "codex", 1, 1, 0, 0, 0.0),
    ]
    assert part(db, "tools", "servers", "mcp_server", "calls", "tools") == [("web", 1, 1)]
    assert part(db, "tools", "files", "path", "touches", "reads", "changes") == [("/home/dev/app/a.py", 1, 1, 0)]


def test_errors_are_those_of_calls_turns_and_services(db: str) -> None:
    assert run_report(db, "errors", NOW).heading == "1 failed call, zero failed turns, 1 error or retry event"
    assert part(db, "errors", "tools", "tool", "exit_code", "failed") == [("Bash", 3, 1)]
    assert part(db, "errors", "services", "provider", "kind", "what", "http_status", "n", "latest") == [
        ("claude_code", "retry", "overloaded", "529", 1, "2026-05-04 10:20")
    ]
    assert part(db, "errors", "rows", "tool", "asked", "said", "call_key") == [
        ("Bash", "false", "Exit code 3 no luck", "t3")
    ]


def test_usage_is_told_by_day_model_project_and_host(db: str) -> None:
    # claude: 5,000 + 0 and 200 in, 100 + 0 and 10 out; codex 300 and 30
    assert run_report(db, "usage", NOW).heading == "7 model calls, 5500 tokens in, 140 out"
    columns = ("model_calls", "with_tokens", "input_tokens", "output_tokens", "cache_read_tokens")
    assert part(db, "usage", "days", "day", *columns) == [
        *(("2026-05-05", 1, 1, 200, 10, None), ("2026-05-04", 6, 3, 5_300, 130, 4_000))
    ]
    assert part(db, "usage", "models", "model", *columns) == [
        *(("claude-opus-4-7", 6, 3, 5_200, 110, 4_000), ("model-of-nobody", 1, 1, 300, 30, 0))
    ]
    assert part(db, "usage", "projects", "project", "model_calls") == [("app", 5), ("other", 1), ("tool", 1)]
    assert part(db, "usage", "hosts", "host", "model_calls") == [("testhost", 7)]


def test_cost_names_what_has_no_price(db: str) -> None:
    # 9,500 and 0 millionths; 200 x 5 + 10 x 25 = 1,250; nobody's model has no price
    assert run_report(db, "cost", NOW).heading == "0.01 USD for 7 model calls, 1 call without a price"
    rows = part(db, "cost", "models", "model", "cost_usd", "listed_usd", "unpriced")
    assert [(model, float(cost or 0), unpriced) for model, cost, _, unpriced in rows] == [
        *(("claude-opus-4-7", 0.0108, 0), ("model-of-nobody", 0.0, 1))
    ]
    assert rows[1][1] is None
    assert part(db, "cost", "unpriced", "provider", "model", "calls", "input_tokens") == [
        ("codex", "model-of-nobody", 1, 300)
    ]


def test_sessions_come_latest_first(db: str) -> None:
    assert run_report(db, "sessions", NOW).heading == "3 sessions of 2 agents in 3 projects, 3 prompts"
    columns = ("ended", "provider", "title", "project", "calls", "errors", "tokens_in", "tokens_out")
    assert part(db, "sessions", "list", *columns, sessions="2", tz="Asia/Tokyo") == [
        ("2026-05-05 19:00", "claude_code", "Find it", "other", 1, 0, 200, 10),
        ("2026-05-04 19:21", "claude_code", "Build it", "app", 5, 1, 5_000, 100),
    ]


def test_side_by_side_calls_are_held_against_the_time_that_went_by(db: str) -> None:
    # app: 1 + 3 + 2 + 1,200 s of calls; the first two overlap for 1 s
    assert part(db, "parallelism", "rows", "provider", "turns", "sum_s", "wall_s") == [
        *(("claude_code", 2, 1_210.0, 1_209.0), ("codex", 1, 0.5, 0.5))
    ]
    assert part(db, "parallelism", "batches", "at_once", "calls") == [(1, 4), (2, 2)]
    assert part(db, "parallelism", "turns", "project", "saved_s") == [("app", 1.0)]


def test_availability_drift_and_quality_count_what_went_wrong(db: str) -> None:
    assert part(db, "availability", "rows", "day", "provider", "turns", "failed", "retries") == [
        ("2026-05-05", "claude_code", 1, 0, 0),
        ("2026-05-04", "claude_code", 1, 0, 1),
        ("2026-05-04", "codex", 1, 0, 0),
    ]
    assert part(db, "drift", "rows", "provider", "unit", "kind", "n", "line_no") == [
        ("claude_code", "record", "brand-new-row", 1, 4)
    ]
    columns = ("provider", "sources", "rejected_lines", "unknown", "calls", "unpaired")
    assert part(db, "quality", "rows", *columns) == [("claude_code", 2, 0, 1, 6, 1), ("codex", 1, 0, 0, 1, 0)]
    assert part(db, "quality", "calls", "tool", "status", "n") == [("Read", "missing_result", 1)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["latncy"], "did you mean latency?"),
        (["latency", "-p", "call=3"], "did you mean calls?"),
        (["latency", "-p", "calls=none"], "calls is a number from 1, not 'none'"),
        (["latency", "-p", "calls"], "-p wants NAME=VALUE"),
        (["latency", "--since", "soon"], "is no instant"),
        (["latency", "--tz", "Europe/Berlim"], "did you mean Europe/Berlin?"),
        (["latency", "--part", "tool"], "did you mean tools?"),
        (["qoder", "--provider", "codex"], "there is no parameter of the report qoder 'provider'"),
        (["bridge", "--batch", "b"], "there is no Bridge batch 'b'; there are: none"),
    ],
)
def test_a_wrong_word_is_named(db: str, tmp_path: Path, words: list[str], said: str) -> None:
    done = run("report", *words, "--db", db, home=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_the_list_names_each_report_and_its_parameters(tmp_path: Path) -> None:
    done = run("report", "--format", "csv", home=tmp_path)
    assert done.returncode == 0
    assert [line.partition(",")[0] for line in done.stdout.splitlines()] == ["report", *NAMES]


def test_an_empty_store_has_every_report(tmp_path: Path) -> None:
    load_home(tmp_path / "home", tmp_path / "s.duckdb")
    for name in NAMES:
        assert run_report(str(tmp_path / "s.duckdb"), name, NOW).heading
