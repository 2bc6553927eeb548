"""Does every query of the cookbook run, and say what the fixtures hold?

All run on a store of the demo and of every case of Claude Code, Codex and Muse Code. What they say is compared on a
store of the demo, a few named cases and one batch of a Bridge: rows counted by hand in the lines of the cases, or from
the demo's lines by the code that counts its truth (``tests/demo_truth.py``).
"""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pytest

from etl.sqlfiles import load_sql
from etl.store import connect
from tests.demo_truth import MESSAGE_ROWS, calls, count, items, moment, read_lines
from tests.loading import FIXTURES, join_trees, load_home
from tests.pages import blocks, page

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import duckdb

QUERIES: Final = {block.heading: block.text for block in blocks("cookbook.md", "sql")}
DEMO: Final = FIXTURES / "demo" / ".qoder" / "projects"
FEW: Final = {
    "claude_code": ("calls", "compaction", "refusals", "resumed", "usage"),
    "codex": ("current", "kinds", "taken_back"),
    "muse": ("usage",),
}
#: What the cookbook's `now()` is in the tests.
NOW: Final = datetime(2026, 11, 20, tzinfo=UTC)


def load(folder: Path, cases: Mapping[str, Sequence[str]]) -> Path:
    home, db = folder / "home", folder / "s.duckdb"
    for path in (path for path in (FIXTURES / "demo").rglob("*") if path.is_file()):
        target = home / path.relative_to(FIXTURES / "demo")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    for provider, names in cases.items():
        join_trees(home, provider, names)
    load_home(home, db)
    return db


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """The demo and every case."""
    every = {
        provider: sorted(case.name for case in (FIXTURES / provider).iterdir() if case.name != "example")
        for provider in ("claude_code", "codex", "muse")
    }
    connection = connect(str(load(tmp_path_factory.mktemp("every"), every)))
    yield connection
    connection.close()


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """The demo, a few cases, and the batch of five runs."""
    folder = tmp_path_factory.mktemp("few")
    db = load(folder, dict(FEW))
    load_home(folder, db, qoder_bridge=FIXTURES / "qoder_bridge" / "five_runs" / "tree")
    connection = connect(str(db))
    yield connection
    connection.close()


def ask(store: duckdb.DuckDBPyConnection, question: str) -> list[dict[str, Any]]:
    """The rows of a query, by column; `now()` is NOW."""
    cursor = store.execute(QUERIES[question].replace("now()", f"timestamptz '{NOW:%Y-%m-%d} 00:00:00+00'"))
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def of(rows: list[dict[str, Any]], provider: str) -> list[tuple[Any, ...]]:
    """The rows of one provider, without its name."""
    return [tuple(v for k, v in row.items() if k != "provider") for row in rows if row["provider"] == provider]


def demo_files() -> list[Path]:
    return sorted(DEMO.rglob("*.jsonl"))


@pytest.mark.parametrize("question", QUERIES)
def test_a_query_runs_and_gives_columns(store: duckdb.DuckDBPyConnection, question: str) -> None:
    cursor = store.execute(QUERIES[question])
    assert len(cursor.description or ()) >= 3
    cursor.fetchall()


@pytest.mark.parametrize("question", QUERIES)
def test_a_query_reads_public_views_alone(question: str) -> None:
    views = {item.name.removeprefix("main.") for item in load_sql("views") if item.kind == "view"}
    named = set(re.findall(r"\b(?:from|join)\s+([\w.]+)", QUERIES[question]))
    local = set(re.findall(r"\bwith (\w+) as", QUERIES[question]))
    assert named - local <= views
    assert named - local


def test_there_are_enough_questions_and_each_has_one_query_and_a_word_on_reading_it() -> None:
    parts = re.split(r"^### ", page("cookbook.md"), flags=re.MULTILINE)[1:]
    assert len(parts) == len(QUERIES) >= 25
    for part in parts:
        told = re.fullmatch(r"([^\n]+\?)\n\n```sql\n([^;]+;)\n```\n\n(.+)", part, re.DOTALL)
        assert told, part.splitlines()[0]
        assert told[3].split("\n## ")[0].strip().endswith("."), told[1]


# --- Counted by hand in the lines of the cases ------------------------------------------------------------------------


def test_what_fails_most(few: duckdb.DuckDBPyConnection) -> None:
    found = ask(few, "Which tool fails most, and what did it say last?")
    # calls: five results (Bash_0 twice, one without an id, early, back); resumed: toolu_far; refusals: toolu_fail alone
    # ended in ok or error (three were denied, one went on behind, one was cut)
    assert of(found, "claude_code") == [("Bash", 1, 7, 14.3, "Exit code 3\nno")]
    assert of(found, "codex") == [("look", 1, 1, 100.0, "no eye")]  # call_m of the server eye
    demo = [status for path in demo_files() for status, _ in calls(read_lines(path)[0])]
    assert sum(row["failed"] for row in found if row["provider"] == "qoder") == demo.count("error")
    assert of(found, "muse") == []


def test_what_was_refused(few: duckdb.DuckDBPyConnection) -> None:
    found = ask(few, "Which calls did people refuse?")
    assert of(found, "claude_code") == [("Bash", "curl x", 1), ("Bash", "git push", 1), ("Bash", "rm -r x", 1)]
    assert of(found, "codex") == [("apply_patch", "a.py", 1)]
    demo = [status for path in demo_files() for status, _ in calls(read_lines(path)[0])]
    assert sum(row["denied"] for row in found if row["provider"] == "qoder") == demo.count("denied")


def test_what_never_got_a_result(few: duckdb.DuckDBPyConnection) -> None:
    found = ask(few, "Which calls never got a result?")
    # toolu_open; that of codex was cut by the turn's end (interrupted), that of the copied session is in the other file
    assert of(found, "claude_code") == [("Bash", 1, 1, datetime(2026, 5, 4, 10, 0, 30, tzinfo=UTC))]
    assert len(found) == 1


def test_what_services_said(few: duckdb.DuckDBPyConnection) -> None:
    found = ask(few, "Which services answered with errors?")
    assert of(found, "claude_code") == [
        ("error", "overloaded_error", "529", 1, datetime(2026, 5, 4, 10, 0, 4, tzinfo=UTC)),
        ("retry", "overloaded_error", "529", 1, datetime(2026, 5, 4, 10, 0, 6, tzinfo=UTC)),
    ]


def test_a_bridge_that_was_not_there(few: duckdb.DuckDBPyConnection) -> None:
    # seven turns in five runs: the first turns of runs 3 and 4 have a result, the other five PROVIDER_UNAVAILABLE
    row = ("2026-09-30T05-12-53.712Z", "Qwen3.8-Flash", 7, 2, 5, 0, 0, 0, 28.6)
    assert [tuple(found.values()) for found in ask(few, "Was a Qoder Bridge available?")] == [row]


def test_tokens_by_day_and_model(few: duckdb.DuckDBPyConnection) -> None:
    found = ask(few, "How many tokens by day and model?")
    # usage 1005 + 31 + 0 in, 1 + 9 + 0 out; compaction 10, 10 once; resumed 11 + 13, 12 + 14 once; the other cases
    # state no usage, which is no call of zero tokens but one whose tokens are not reported
    claude = [row for row in of(found, "claude_code") if row[1] == "claude-opus-4-7"]
    assert [(row[0], *row[3:]) for row in claude] == [(date(2026, 5, 4), 1070, 46)]
    # current: 9000, 300; its fork 9500, 400 without its parent's; a turn taken back: 10, 1, in two files once
    codex = of(found, "codex")
    assert sum(row[3] or 0 for row in codex) == 18510
    assert sum(row[4] or 0 for row in codex) == 701
    assert {row[3:] for row in of(found, "qoder")} == {(None, None)}


def test_what_has_no_price(few: duckdb.DuckDBPyConnection) -> None:
    # 20 + 33 + 22 + 11 in, 2 + 1 + 1 + 1 out; the price table has muse-spark-1.1 to 1.3
    assert of(ask(few, "What has no price?"), "muse") == [("muse-spark-1.4", 4, 86, 5), ("muse-max-2", 1, 30, 3)]


def test_the_share_of_the_cache(few: duckdb.DuckDBPyConnection) -> None:
    found = ask(few, "How much of the input came from the cache?")
    # 400 of 1005 and 0 of 0; msg_s, compaction and resumed are silent about the cache and in neither number
    assert of(found, "claude_code") == [("claude-opus-4-7", 400, 1005, 39.8)]
    assert of(found, "codex") == [("gpt-5.5-codex", 16000, 18510, 86.4)]  # 8000 + 8000 + 0 of 9000 + 9500 + 10


def test_what_was_thrown_away(few: duckdb.DuckDBPyConnection) -> None:
    # the turn taken back: 10 tokens in at 5 USD a million, 1 out at 30
    rows = [tuple(row.values()) for row in ask(few, "What was spent on branches that were thrown away?")]
    assert rows == [("codex", 1, 10, 1, Decimal("0.00008"))]


def test_which_sessions_ran_out_of_context(few: duckdb.DuckDBPyConnection) -> None:
    found = of(ask(few, "Which sessions ran out of context?"), "claude_code")
    session, when = "claude_code:00000022-0000-4000-8000-000000000022", datetime(2026, 5, 4, 10, 0, 2, tzinfo=UTC)
    assert found == [(session, 1, when, "Long work")]


def test_which_sessions_are_copies(few: duckdb.DuckDBPyConnection) -> None:
    prefix = "claude_code:000000{0}-0000-4000-8000-0000000000{0}"
    rows = [tuple(row.values()) for row in ask(few, "Which sessions are copies or forks of others?")]
    assert rows == [("claude_code", prefix.format(26), prefix.format(25), "fork", 2)]  # its first two lines


def test_what_was_not_known(few: duckdb.DuckDBPyConnection) -> None:
    found = [row[:-1] for row in of(ask(few, "What did sessionmart not know?"), "codex")]
    assert found == [
        ("item", "hologram", "0.130.0", 1),
        ("record", "event_msg:hologram_seen", "0.130.0", 1),
        ("record", "moon", "0.130.0", 1),
        ("record", "response_item:hologram", "0.130.0", 1),
    ]


def test_which_prompts_led_to_failed_turns(few: duckdb.DuckDBPyConnection) -> None:
    found = ask(few, "Which prompts led to failed turns?")
    assert [row[1:4] for row in of(found, "codex")] == [("error", None, "Fail")]
    assert len(of(found, "qoder_bridge")) == 5  # every run ends FAILED
    assert of(found, "claude_code") == []


# --- Counted in the lines of the demo ---------------------------------------------------------------------------------


def test_what_was_lost_of_the_demo(few: duckdb.DuckDBPyConnection) -> None:
    found = of(ask(few, "What was lost?"), "qoder")
    lost = sum(read_lines(path)[1] for path in demo_files())
    assert sum(without for _, _, without, _ in found) == lost == 2


def test_the_secrets_of_the_demo(few: duckdb.DuckDBPyConnection) -> None:
    texts = {path: re.findall(r"glpat-\w+", path.read_text(encoding="utf-8")) for path in demo_files()}
    holding = [found for found in texts.values() if found]
    row = ("gitlab-token", len({s for found in holding for s in found}), sum(map(len, holding)), len(holding))
    assert of(ask(few, "Which secrets were masked?"), "qoder") == [row]


def test_the_servers_of_the_demo(few: duckdb.DuckDBPyConnection) -> None:
    used: dict[str, str] = {}
    sessions = set()
    for path in demo_files():
        for row in read_lines(path)[0]:
            for item in items(row) if row["type"] == "assistant" else []:
                if item["type"] == "tool_use" and item["name"].startswith("mcp__"):
                    used[item["id"]] = item["name"]
                    sessions.add(path.stem)
    assert {name.split("__")[1] for name in used.values()} == {"browser"}
    found = {row["mcp_server"]: tuple(row.values())[1:] for row in ask(few, "Which MCP servers are used?")}
    assert found == {"browser": (len(used), len({*used.values()}), 0, len(sessions)), "eye": (1, 1, 1, 1)}


def test_the_file_of_the_demo_that_sessions_touched(few: duckdb.DuckDBPyConnection) -> None:
    touched: dict[str, list[str]] = {}
    for path in demo_files():
        for row in read_lines(path)[0]:
            for item in items(row) if row["type"] == "assistant" else []:
                if item["type"] == "tool_use" and json.dumps(item["input"]).count('/src/pricing.py"'):
                    touched.setdefault(f"qoder:{path.stem}", []).append(item["name"])
    expected = {session: (names.count("Read"), len(names) - names.count("Read")) for session, names in touched.items()}
    found = ask(few, "Which sessions touched a file?")
    assert {row["session_id"]: (row["reads"], row["changes"]) for row in found} == expected
    assert len(expected) == 2


def test_two_weeks_of_the_demo(few: duckdb.DuckDBPyConnection) -> None:
    """No case of another agent lies in these two weeks of November."""
    weeks: dict[str, list[dict[str, Any]]] = {"this week": [], "week before": []}
    for path in sorted(DEMO.glob("*/*.jsonl")):
        begun = min(moment(row) for row in read_lines(path)[0] if row["type"] in MESSAGE_ROWS)
        days = (NOW - begun).total_seconds() / 86400
        if 0 < days <= 14:
            weeks["this week" if days <= 7 else "week before"].append(count(path)[0])
    found = ask(few, "Did this week differ from the one before?")
    keys = ("prompts", "tool_calls", "tool_errors")
    assert {row["week"]: (row["sessions"], *(row[key] for key in keys)) for row in found} == {
        week: (len(told), *(sum(one[key] for one in told) for key in keys)) for week, told in weeks.items()
    }
    assert all(weeks.values())
    assert [row["cost_usd"] for row in found] == [None, None]  # Qoder charges credits
