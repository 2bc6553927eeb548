"""Can every check turn red, and is each green on stores that are right?

``fixtures/checks/<check>/`` holds what turns that check red: ``damage*.sql``, run on a healthy store, for the promises
that are ours; ``tree/``, a home folder, for findings of the data.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pytest

from etl.sqlfiles import load_sql
from etl.store import run_checks
from tests.loading import FIXTURES, join_trees, load_home, table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDER: Final = FIXTURES / "checks"
CHECKS: Final = {item.name: item for item in load_sql("checks")}
DAMAGES: Final = sorted(FOLDER.glob("*/damage*.sql"))
TREES: Final = sorted(FOLDER.glob("*/tree"))
#: Cases of fixtures/qoder whose expected.json states a finding, and homes with stores of their own.
NOT_HEALTHY: Final = frozenset({"double_encoded_twice"})
ALONE: Final = frozenset({"example", "forty"})

#: Columns with a closed list of values.
CLOSED: Final = (
    "facts.dialogue role",
    "facts.dialogue kind",
    "mart.tool_calls status",
    "mart.tool_calls anomaly",
    "mart.tool_calls latency_source",
    "mart.tool_calls latency_quality",
    "mart.turns status",
    "mart.turns trigger",
    "mart.sessions kind",
    "mart.sessions status",
    "facts.sources tail_state",
    "facts.rejects reason",
    "facts.record_census unit",
    "facts.record_census disposition",
    "facts.model_calls usage_status",
    "facts.model_calls grain",
    "facts.model_calls owner",
    "facts.sources source_state",
    "facts.content_blocks disposition",
    "facts.merges reason",
    "facts.turn_marks mark",
    "facts.tool_spans span",
    "mart.copies reason",
    "mart.dialogue branch",
    "mart.tool_calls branch",
    "mart.model_calls cost_basis",
    "mart.session_links relation",
    "mart.session_links confidence",
)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of the demo home and the small cases of Qoder, without those that state a finding."""
    names = [path.name for path in (FIXTURES / "qoder").iterdir() if path.name not in NOT_HEALTHY | ALONE]
    home = join_trees(tmp_path_factory.mktemp("home"), "qoder", sorted(names))
    shutil.copytree(FIXTURES / "demo", home, dirs_exist_ok=True)
    db = tmp_path_factory.mktemp("store") / "healthy.duckdb"
    report = load_home(home, db)
    assert (report.findings, report.quarantined, report.sources_failed) == ([], {}, 0)
    return db


@pytest.fixture(scope="module")
def writable(healthy: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(str(healthy)) as connection:
        yield connection


@pytest.fixture
def damaged(writable: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """The healthy store, to be damaged: whatever is done to it is undone."""
    writable.execute("begin")
    yield writable
    writable.execute("rollback")


def _rows(connection: duckdb.DuckDBPyConnection, check: str) -> list[tuple[Any, ...]]:
    """What one check finds; all of them take a fifth of a second."""
    return connection.execute(CHECKS[check].sql).fetchall()


def test_every_check_has_a_fixture_that_turns_it_red() -> None:
    assert {path.parent.name for path in (*DAMAGES, *TREES)} == set(CHECKS)


def test_a_tree_is_for_findings_and_damage_for_promises() -> None:
    severities = {"damage": "broken", "tree": "finding"}
    for path in (*DAMAGES, *TREES):
        assert CHECKS[path.parent.name].options["severity"] == severities[path.stem.split("_")[0]], path


def test_no_fixture_is_left_over() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(CHECKS)


def test_a_healthy_store_has_no_finding(damaged: duckdb.DuckDBPyConnection) -> None:
    assert run_checks(damaged) == []


@pytest.mark.parametrize("statements", DAMAGES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_damage_turns_its_check_red(statements: Path, damaged: duckdb.DuckDBPyConnection) -> None:
    damaged.execute(statements.read_text(encoding="utf-8"))
    assert _rows(damaged, statements.parent.name) != []


@pytest.mark.parametrize("tree", TREES, ids=lambda path: path.parent.name)
def test_a_finding_of_the_data_is_published_and_reported(tree: Path, tmp_path: Path) -> None:
    db = tmp_path / "store.duckdb"
    # evidence of a Bridge has no default place: its root is named
    report = load_home(tree, db, **{"qoder_bridge": tree} if tree.parent.name.startswith("bridge_") else {})
    assert {finding.check for finding in report.findings} == {tree.parent.name}
    assert {finding.severity for finding in report.findings} == {"finding"}
    assert not report.clean
    assert (report.quarantined, report.sources_failed) == ({}, 0)
    assert [row["tail_state"] for row in table(db, "select tail_state from sources")] == ["complete"]


def test_one_rejected_line_less_is_within_the_budget(tmp_path: Path) -> None:
    shutil.copytree(FOLDER / "rejected_lines" / "tree", tmp_path / "home")
    (file,) = (tmp_path / "home").rglob("*.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:1] + lines[2:]))
    assert load_home(tmp_path / "home", tmp_path / "store.duckdb").clean


def test_many_rejected_lines_among_very_many_are_within_the_budget(tmp_path: Path) -> None:
    shutil.copytree(FOLDER / "rejected_lines" / "tree", tmp_path / "home")
    (file,) = (tmp_path / "home").rglob("*.jsonl")
    with file.open("ab") as stream:  # 23 lines are there, 21 of them broken: 2100 lines make that 1 %, which is allowed
        stream.write(b'{"type":"mode","sessionId":"broken-1","mode":"normal"}\n' * (2100 - 23))
    assert load_home(tmp_path / "home", tmp_path / "store.duckdb").clean


@pytest.mark.parametrize("column", CLOSED)
def test_a_value_outside_its_closed_list_is_seen(column: str, damaged: duckdb.DuckDBPyConnection) -> None:
    place, name = column.split()
    damaged.execute(f"update {place} set {name} = 'odd' where rowid = (select min(rowid) from {place})")  # noqa: S608
    assert _rows(damaged, "closed_values") != []


def test_a_check_that_names_a_source_names_the_right_one(damaged: duckdb.DuckDBPyConnection) -> None:
    damaged.execute((FOLDER / "census_sum" / "damage.sql").read_text(encoding="utf-8"))
    (expected,) = damaged.execute("select min(source_id) from facts.sources where lines is not null").fetchall()
    assert [(finding.source_id,) for finding in run_checks(damaged)] == [expected]
