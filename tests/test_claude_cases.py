"""Are Claude Code's transcripts read as the format says, case by case?

``fixtures/claude_code/<case>/`` holds a home folder (``tree``), what is right (``expected.json``) and where the fact
was seen (``NOTE.md``). The small cases are loaded together; their ``expected.json`` lists queries with the rows that
answer them. ``example`` is a whole home, with its answers in the words of ``tests/examples.py``.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pytest

from etl.store import connect
from tests import examples
from tests.loading import FIXTURES, join_trees, load_home

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

    from etl.request import Report

CASES: Final = FIXTURES / "claude_code"
ALONE: Final = "example"
NAMES: Final = sorted(path.name for path in CASES.iterdir() if path.name != ALONE)
EXPECTED: Final = json.loads((CASES / ALONE / "expected.json").read_text())

Loaded = tuple["Report", "duckdb.DuckDBPyConnection"]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    db = tmp_path_factory.mktemp("store") / "store.duckdb"
    report = load_home(CASES / ALONE / "tree", db)
    with connect(str(db)) as connection:
        yield report, connection


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    home = join_trees(tmp_path_factory.mktemp("home"), "claude_code", NAMES)
    db = tmp_path_factory.mktemp("store") / "store.duckdb"
    report = load_home(home, db)
    with connect(str(db)) as connection:
        yield report, connection


@pytest.mark.parametrize("session", EXPECTED["sessions"], ids=lambda session: session["native_id"])
def test_a_session_of_the_example_is_read_to_the_number(example: Loaded, session: dict[str, Any]) -> None:
    found = examples.sessions(example[1])
    assert len(found) == EXPECTED["summary"]["session_count"]
    told = examples.stated(session, found[session["native_id"]])
    for key, value in session.items():
        assert told[key] == value, key


def test_the_example_rejects_and_copies_what_it_says(example: Loaded) -> None:
    connection = example[1]
    assert examples.rejects(connection) == EXPECTED["rejects"]
    across = EXPECTED["copies"]["across_files"]
    assert examples.copies(connection) == [
        {key: row[key] for key in ("session", "copied_from", "records")} for row in across
    ]
    resent = [row["line"] for row in EXPECTED["copies"]["within_file"]]
    asked = "select distinct line_no from facts.merges where reason = 'resend' order by line_no"
    assert [line for (line,) in connection.execute(asked).fetchall()] == resent
    assert connection.execute("select count(*) from record_census where disposition = 'unknown'").fetchall() == [(0,)]


def test_the_totals_of_the_example_leave_copies_out(example: Loaded) -> None:
    assert examples.plain(example[1]) == EXPECTED["summary"]["plain_view"]


def test_the_turn_and_the_compaction_of_the_example(example: Loaded) -> None:
    summary = EXPECTED["summary"]
    reported = example[1].execute("select reported_ms from turns where reported_ms is not null").fetchall()
    assert reported == [(summary["turn_duration_ms"],)]
    assert example[1].execute("select count(*) from events where kind = 'compaction'").fetchone() == (
        summary["compactions"],
    )


def _asked() -> list[Any]:
    return [
        pytest.param(asked["sql"], asked["rows"], id=f"{name}-{asked['about']}")
        for name in NAMES
        for asked in json.loads((CASES / name / "expected.json").read_text())
    ]


@pytest.mark.parametrize(("sql", "expected"), _asked())
def test_the_case_is_read_as_it_says(small: Loaded, sql: str, expected: list[list[Any]]) -> None:
    assert [[_plain(value) for value in row] for row in small[1].execute(sql).fetchall()] == expected


def test_no_promise_is_broken(example: Loaded, small: Loaded) -> None:
    for report, _ in (example, small):
        assert (report.quarantined, report.sources_failed, report.findings) == ({}, 0, [])


@pytest.mark.parametrize("name", [ALONE, *NAMES])
def test_the_case_says_where_it_was_seen(name: str) -> None:
    assert 2 <= len((CASES / name / "NOTE.md").read_text().splitlines()) <= 6
    assert sorted(path.name for path in (CASES / name).iterdir()) == ["NOTE.md", "expected.json", "tree"]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value
