"""Are the session files of Claude Code and Codex read as the formats say, case by case?

``fixtures/<provider>/<case>/`` holds a home folder (``tree``), what is right (``expected.json``) and where the fact was
seen (``NOTE.md``). The small cases of a provider are loaded together; their ``expected.json`` lists queries with the
rows that answer them. ``example`` is a whole home, with its answers in the words of ``tests/examples.py``.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pytest

from etl.store import connect
from tests import examples
from tests.loading import FIXTURES, join_trees, load_home

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

    from etl.request import Report

PROVIDERS: Final = ("claude_code", "codex")
ALONE: Final = "example"
NAMES: Final = {
    provider: sorted(path.name for path in (FIXTURES / provider).iterdir() if path.name != ALONE)
    for provider in PROVIDERS
}
EXPECTED: Final = {
    provider: json.loads((FIXTURES / provider / ALONE / "expected.json").read_text()) for provider in PROVIDERS
}

Loaded = dict[str, tuple["Report", "duckdb.DuckDBPyConnection"]]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    yield from _loaded(tmp_path_factory, {provider: [ALONE] for provider in PROVIDERS})


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    yield from _loaded(tmp_path_factory, NAMES)


def _loaded(factory: pytest.TempPathFactory, cases: dict[str, list[str]]) -> Iterator[Loaded]:
    loaded: Loaded = {}
    for provider, names in cases.items():
        db = factory.mktemp("store") / "store.duckdb"
        home = join_trees(factory.mktemp("home"), provider, names)
        loaded[provider] = (load_home(home, db), connect(str(db)))
    yield loaded
    for _, connection in loaded.values():
        connection.close()


@pytest.mark.parametrize(
    ("provider", "session"),
    [
        pytest.param(provider, session, id=f"{provider}-{session['native_id']}")
        for provider in PROVIDERS
        for session in EXPECTED[provider]["sessions"]
    ],
)
def test_a_session_of_the_example_is_read_to_the_number(
    example: Loaded, provider: str, session: dict[str, Any]
) -> None:
    found = examples.sessions(example[provider][1])
    assert len(found) == EXPECTED[provider]["summary"]["session_count"]
    told = examples.stated(session, found[session["native_id"]])
    for key, value in session.items():
        assert told[key] == value, key


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_example_rejects_and_copies_what_it_says(example: Loaded, provider: str) -> None:
    connection, expected = example[provider][1], EXPECTED[provider]
    assert examples.rejects(connection) == expected["rejects"]
    across = expected["copies"]["across_files"]
    assert examples.copies(connection) == [
        {key: row[key] for key in ("session", "copied_from", "records")} for row in across
    ]
    assert connection.execute("select count(*) from record_census where disposition = 'unknown'").fetchall() == [(0,)]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_totals_of_the_example_leave_copies_out(example: Loaded, provider: str) -> None:
    assert examples.plain(example[provider][1]) == EXPECTED[provider]["summary"]["plain_view"]


def test_the_resends_of_the_claude_example_are_one_row(example: Loaded) -> None:
    resent = [row["line"] for row in EXPECTED["claude_code"]["copies"]["within_file"]]
    asked = "select distinct line_no from facts.merges where reason = 'resend' order by line_no"
    assert [line for (line,) in example["claude_code"][1].execute(asked).fetchall()] == resent


@pytest.mark.parametrize(("provider", "key"), [("claude_code", "turn_duration_ms"), ("codex", "turn_ms")])
def test_the_turn_of_the_example_took_what_the_log_says(example: Loaded, provider: str, key: str) -> None:
    asked = "select distinct reported_ms from turns where reported_ms is not null"
    assert example[provider][1].execute(asked).fetchall() == [(EXPECTED[provider]["summary"][key],)]


def test_the_compaction_of_the_claude_example_is_an_event(example: Loaded) -> None:
    asked = "select count(*) from events where kind = 'compaction'"
    assert example["claude_code"][1].execute(asked).fetchone() == (EXPECTED["claude_code"]["summary"]["compactions"],)


def _asked() -> list[Any]:
    return [
        pytest.param(provider, asked["sql"], asked["rows"], id=f"{provider}-{name}-{asked['about']}")
        for provider in PROVIDERS
        for name in NAMES[provider]
        for asked in json.loads((FIXTURES / provider / name / "expected.json").read_text())
    ]


@pytest.mark.parametrize(("provider", "sql", "expected"), _asked())
def test_the_case_is_read_as_it_says(small: Loaded, provider: str, sql: str, expected: list[list[Any]]) -> None:
    assert [[_plain(value) for value in row] for row in small[provider][1].execute(sql).fetchall()] == expected


@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_promise_is_broken(example: Loaded, small: Loaded, provider: str) -> None:
    for loaded in (example, small):
        report = loaded[provider][0]
        assert (report.quarantined, report.sources_failed, report.findings) == ({}, 0, [])


@pytest.mark.parametrize(
    ("provider", "name"), [(provider, name) for provider in PROVIDERS for name in (ALONE, *NAMES[provider])]
)
def test_the_case_says_where_it_was_seen(provider: str, name: str) -> None:
    case = FIXTURES / provider / name
    assert 2 <= len((case / "NOTE.md").read_text().splitlines()) <= 6
    assert sorted(path.name for path in case.iterdir()) == ["NOTE.md", "expected.json", "tree"]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return float(value) if isinstance(value, Decimal) else value
