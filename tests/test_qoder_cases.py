"""Are Qoder's project transcripts read as the format says, case by case?

``fixtures/qoder/<case>/`` holds a home folder (``tree``), what is right (``expected.json``) and where the fact was seen
(``NOTE.md``). The small cases are loaded together, in one store: no two of them share a path or a session. What
``expected.json`` may state is the list of functions marked ``@states`` below; rows are partial, lists are complete.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pytest

from etl.store import connect
from tests.loading import FIXTURES, join_trees, load_home, stated_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import duckdb

    from etl.request import Report

CASES: Final = FIXTURES / "qoder"
#: Loaded on their own: a whole home with every kind of store, and the forty sessions of the report.
ALONE: Final = frozenset({"example", "forty"})
NAMES: Final = sorted(path.name for path in CASES.iterdir())

_SOURCES: Final = "select source_id from facts.sources where list_contains($paths, rel_path)"
_SESSIONS: Final = (
    "select session_id from facts.sources where list_contains($paths, rel_path) and session_id is not null"
)

Rows = list[tuple[Any, ...]]


@dataclass
class Case:
    """A case in its store: its files, and what it must be."""

    name: str
    report: Report
    connection: duckdb.DuckDBPyConnection
    paths: list[str]
    expected: dict[str, Any] = field(default_factory=dict)

    def rows(self, sql: str) -> Rows:
        """Rows of a query; ``{sources}`` and ``{sessions}`` are those of the case."""
        paths = {"paths": self.paths} if "{" in sql else None
        found = self.connection.execute(sql.format(sources=_SOURCES, sessions=_SESSIONS), paths).fetchall()
        return [tuple(_plain(value) for value in row) for row in found]

    def table(self, sql: str) -> list[dict[str, Any]]:
        """The same as dicts."""
        found = self.rows(sql)
        names = [column[0] for column in self.connection.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return str(value) if isinstance(value, Decimal) else value


def _paths(home: Path) -> list[str]:
    return sorted(path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Case]]:
    together = join_trees(tmp_path_factory.mktemp("home"), "qoder", [name for name in NAMES if name not in ALONE])
    homes = {"": together, **{name: CASES / name / "tree" for name in ALONE}}
    stores = {}
    for name, home in homes.items():
        db = tmp_path_factory.mktemp("store") / "store.duckdb"
        stores[name] = (load_home(home, db), connect(str(db)))
    yield {
        name: Case(
            name,
            *stores[name if name in ALONE else ""],
            _paths(CASES / name / "tree"),
            json.loads((CASES / name / "expected.json").read_text()),
        )
        for name in NAMES
    }
    for _, connection in stores.values():
        connection.close()


STATES: dict[str, Callable[[Case, Any], None]] = {}


def states(check: Callable[[Case, Any], None]) -> Callable[[Case, Any], None]:
    """A key of expected.json, by the function's name."""
    STATES[check.__name__] = check
    return check


def _partial(found: list[dict[str, Any]], expected: list[dict[str, Any]], key: str) -> None:
    """The rows of a list, all of them and in order; of each the columns that are stated."""
    assert [row[key] for row in found] == [row[key] for row in expected]
    for row, stated in zip(found, expected, strict=True):
        assert {name: row[name] for name in stated} == stated


_SAID: Final = """
    select {columns} from mart.dialogue m
    join facts.dialogue f on f.session_id = m.session_id and f.fact_id = m.fact_id
    where m.session_id in ({{sessions}}) and not m.is_copy order by m.session_id, m.seq"""


def _said(case: Case, columns: str) -> list[Any]:
    found = case.rows(_SAID.format(columns=columns))
    return [list(row) if len(row) > 1 else row[0] for row in found]


@states
def sessions(case: Case, expected: list[dict[str, Any]]) -> None:
    _partial(
        case.table("from mart.sessions where session_id in ({sessions}) order by session_id"), expected, "session_id"
    )


@states
def dialogue(case: Case, expected: list[list[str]]) -> None:
    """[kind, text] by session and order, copies left out; the plain view says the same."""
    assert _said(case, "f.kind, f.text") == expected
    seen = case.rows("select kind, text from main.dialogue where session_id in ({sessions}) order by session_id, seq")
    assert [list(row) for row in seen] == expected


@states
def pointers(case: Case, expected: list[str | None]) -> None:
    assert _said(case, "f.src_pointer") == expected


@states
def decoded(case: Case, expected: list[bool]) -> None:
    assert _said(case, "f.decoded_from_string") == expected


@states
def raw_envelopes(case: Case, expected: list[bool]) -> None:
    assert _said(case, "f.raw_envelope") == expected


@states
def attachments(case: Case, expected: list[int]) -> None:
    assert _said(case, "f.attachments") == expected


@states
def tool_calls(case: Case, expected: list[dict[str, Any]]) -> None:
    found = case.table(
        "select *, latency_us / 1000 as latency_ms, pair_us / 1000 as pair_ms from mart.tool_calls "
        "where session_id in ({sessions}) and not is_copy order by session_id, seq"
    )
    _partial(found, expected, "call_key")


@states
def call_id_source(case: Case, expected: dict[str, str]) -> None:
    found = case.rows("select call_key, call_id_source from facts.tool_requests where source_id in ({sources})")
    assert dict(found) == expected


@states
def orphan_results(case: Case, expected: list[list[str]]) -> None:
    found = case.rows(
        "select call_key, result_text from main.orphan_results where session_id in ({sessions}) order by call_key"
    )
    assert [list(row) for row in found] == expected


@states
def files(case: Case, expected: list[list[str | None]]) -> None:
    """[call, path, op, path below the working folder]."""
    found = case.rows(
        "select call_key, path, op, relative_to_cwd from mart.files_touched "
        "where session_id in ({sessions}) order by all"
    )
    assert [list(row) for row in found] == expected


@states
def model_calls(case: Case, expected: list[dict[str, Any]]) -> None:
    found = case.table(
        "from mart.model_calls where session_id in ({sessions}) and not is_copy order by session_id, ts, request_key"
    )
    _partial(found, expected, "request_key")


@states
def turns(case: Case, expected: list[list[Any]]) -> None:
    """[session, turn, trigger, status]."""
    found = case.rows(
        "select session_id, turn_no, trigger, status from mart.turns where session_id in ({sessions}) order by all"
    )
    assert [list(row) for row in found] == expected


@states
def branches(case: Case, expected: list[list[str]]) -> None:
    """[session, kind, text, branch] by session and order, copies left out; the plain view leaves out what is dead."""
    found = case.rows(_SAID.format(columns="m.session_id, f.kind, f.text, m.branch"))
    assert [list(row) for row in found] == expected
    seen = case.rows(
        "select session_id, kind, text from main.dialogue where session_id in ({sessions}) order by session_id, seq"
    )
    assert [list(row) for row in seen] == [row[:3] for row in expected if row[3] == "live"]


@states
def turn_branches(case: Case, expected: list[list[Any]]) -> None:
    """[session, turn, branch]."""
    found = case.rows(
        "select session_id, turn_no, branch from main.turns where session_id in ({sessions}) order by all"
    )
    assert [list(row) for row in found] == expected


@states
def last_turns(case: Case, expected: list[list[Any]]) -> None:
    """[session, turn, prompt]."""
    found = case.rows("select session_id, turn_no, prompt from last_turn where session_id in ({sessions}) order by all")
    assert [list(row) for row in found] == expected


_FILE: Final = "regexp_replace({}.rel_path, '.*/projects/', '')"


@states
def copies(case: Case, expected: list[list[Any]]) -> None:
    """[file, line, owner's file, owner's line, reason] by file and line; files below the projects folder."""
    found = case.rows(
        f"select {_FILE.format('s')}, c.line_no, {_FILE.format('o')}, c.owner_line_no, c.reason "  # noqa: S608
        "from main.copies c join facts.sources s using (source_id) "
        "join facts.sources o on o.source_id = c.owner_source_id where c.source_id in ({sources})"
    )
    assert sorted(list(row) for row in found) == expected


@states
def file_conflicts(case: Case, expected: list[list[Any]]) -> None:
    """[file, line, other file, other line, id] of conflicts over two files, likewise."""
    found = case.rows(
        f"select {_FILE.format('s')}, c.line_no, {_FILE.format('o')}, c.other_line_no, c.id, "  # noqa: S608
        "c.digest <> c.other_digest from main.conflicts c join facts.sources s using (source_id) "
        "join facts.sources o on o.source_id = c.other_source_id "
        "where c.source_id <> c.other_source_id and c.source_id in ({sources})"
    )
    assert sorted(list(row) for row in found) == [[*row, True] for row in expected]


@states
def turn_times(case: Case, expected: list[list[Any]]) -> None:
    """[session, turn, wall ms, tool wall ms, summed tool ms]."""
    found = case.rows(
        "select session_id, turn_no, wall_us / 1000, tool_wall_us / 1000, tool_sum_us / 1000 "
        "from mart.turns where session_id in ({sessions}) order by all"
    )
    assert [list(row) for row in found] == expected


@states
def events(case: Case, expected: list[list[str | None]]) -> None:
    """[kind, subtype, summary] by place."""
    found = case.rows(
        "select kind, subtype, summary from facts.events where source_id in ({sources}) "
        "order by session_id, line_no, fact_id"
    )
    assert [list(row) for row in found] == expected


@states
def event_attrs(case: Case, expected: list[dict[str, Any] | None]) -> None:
    """Of the same events, what else they tell."""
    found = case.rows(
        "select attrs from facts.events where source_id in ({sources}) order by session_id, line_no, fact_id"
    )
    assert [None if row[0] is None else json.loads(row[0]) for row in found] == expected


@states
def links(case: Case, expected: list[list[str | None]]) -> None:
    """[session, other session, relation, call, evidence]."""
    found = case.rows(
        "select session_id, other_session_id, relation, via_call_key, evidence from mart.session_links "
        "where session_id in ({sessions}) order by all"
    )
    assert [list(row) for row in found] == expected


@states
def merges(case: Case, expected: list[list[Any]]) -> None:
    """[line, block, into line, into block, reason]."""
    found = case.rows(
        "select line_no, block, into_line_no, into_block, reason from facts.merges "
        "where source_id in ({sources}) order by line_no, block"
    )
    assert [list(row) for row in found] == expected


@states
def conflicts(case: Case, expected: list[list[Any]]) -> None:
    """[line, other line, kind of id, id, which is used]; the two sides are told apart by their digests."""
    found = case.table("from facts.conflicts where source_id in ({sources}) order by line_no")
    named = [[row[n] for n in ("line_no", "other_line_no", "id_kind", "id", "resolution")] for row in found]
    assert named == expected
    assert all(row["digest"] and row["digest"] != row["other_digest"] for row in found)


@states
def census(case: Case, expected: dict[str, int]) -> None:
    """unit/disposition/kind to the number; of content items all, of lines and records those that are stated."""
    found = case.rows(
        "select unit || '/' || disposition || '/' || kind, sum(n) from facts.record_census "
        "where source_id in ({sources}) group by all"
    )
    counted = {key: int(number) for key, number in found if key in expected or key.startswith("item/")}
    assert counted == expected


@states
def first_lines(case: Case, expected: dict[str, int]) -> None:
    found = case.rows(
        "select unit || '/' || disposition || '/' || kind, first_line from facts.record_census "
        "where source_id in ({sources})"
    )
    assert {key: line for key, line in found if key in expected} == expected


@states
def tool_versions(case: Case, expected: list[str]) -> None:
    assert [
        row[0] for row in case.rows("select tool_version from facts.sources where source_id in ({sources})")
    ] == expected


@states
def unread_paths(case: Case, expected: list[str]) -> None:
    """Files of the tree that are no source; every other one is."""
    found = {row[0] for row in case.rows("select rel_path from facts.sources")}
    assert sorted(path for path in case.paths if path not in found) == sorted(expected)


@states
def report(case: Case, expected: dict[str, dict[str, Any]]) -> None:
    """The totals of the latest n sessions."""
    for number, totals in expected.items():
        (found,) = case.table(f"from qoder_report({number})")
        assert {name: float(found[name]) for name in totals} == pytest.approx(totals)


@states
def checks(case: Case, expected: dict[str, int]) -> None:
    """What the checks find in the case's sources, by name; stated or not, nothing else is found."""
    sources = {row[0] for row in case.rows("{sources}")}
    found = Counter(finding.check for finding in case.report.findings if finding.source_id in sources)
    assert found == expected
    assert [check for source, check in case.report.quarantined.items() if source in sources] == []


@pytest.mark.parametrize(("name", "key"), stated_keys(CASES, NAMES))
def test_the_case_is_read_as_it_says(cases: dict[str, Case], name: str, key: str) -> None:
    case = cases[name]
    STATES[key](case, case.expected.get(key, {}))


@pytest.mark.parametrize("name", NAMES)
def test_the_case_says_where_it_was_seen(name: str) -> None:
    note = (CASES / name / "NOTE.md").read_text()
    assert 2 <= len(note.splitlines()) <= 6
    assert sorted(path.name for path in (CASES / name).iterdir()) == ["NOTE.md", "expected.json", "tree"]


def test_no_session_stands_in_two_cases(cases: dict[str, Case]) -> None:
    owners: dict[str, set[str]] = {}
    for name in set(NAMES) - ALONE:
        for (session,) in cases[name].rows("{sessions}"):
            owners.setdefault(session, set()).add(name)
    assert {session: names for session, names in owners.items() if len(names) > 1} == {}
