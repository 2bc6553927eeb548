"""Are Muse Code's logs read as the format says, case by case?

``fixtures/muse/<case>/`` holds a home folder (``tree``), what is right (``expected.json``: a list of what is asked, as
a query, with the rows that answer it) and where the fact was seen (``NOTE.md``). The small cases are loaded together:
no two of them share a session. ``main``, ``mart`` and ``facts`` are asked alike.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import orjson
import pytest

from etl.extract import FLUSH_BYTES
from etl.providers.muse.vocabulary import SKIPPED
from etl.reports import report_rows, run_report
from etl.schema import TABLES
from etl.store import connect
from tests.loading import FIXTURES, NOW, build, find, join_trees, load_home

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb

    from etl.request import Report

CASES: Final = FIXTURES / "muse"
#: A whole home, loaded by itself.
ALONE: Final = "example"
#: Fields of events that the adapter looks into.
FIELDS: Final = (
    *("prompt", "text", "tool_calls", "results", "usage", "terminal", "questions", "answers", "source", "record"),
    *("details", "outcome", "items", "message_id", "call_id", "pending_action_id", "reason", "summary_index"),
)
NAMES: Final = sorted(path.name for path in CASES.iterdir())


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value


class Store:
    """A loaded home."""

    def __init__(self, home: Path, db: Path) -> None:
        self.home, self.db = home, db
        self.report: Report = load_home(home, db)
        self.connection: duckdb.DuckDBPyConnection = connect(str(db))

    def rows(self, sql: str) -> list[list[Any]]:
        """The rows of a query; an instant is text."""
        return [[_plain(value) for value in row] for row in self.connection.execute(sql).fetchall()]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Store]]:
    together = join_trees(tmp_path_factory.mktemp("home"), "muse", [name for name in NAMES if name != ALONE])
    small = Store(together, tmp_path_factory.mktemp("store") / "store.duckdb")
    example = Store(CASES / ALONE / "tree", tmp_path_factory.mktemp("store") / "store.duckdb")
    yield {name: example if name == ALONE else small for name in NAMES}
    for store in (small, example):
        store.connection.close()


def _asked() -> list[Any]:
    return [
        pytest.param(name, asked["sql"], asked["rows"], id=f"{name}-{asked['about']}")
        for name in NAMES
        for asked in json.loads((CASES / name / "expected.json").read_text())
    ]


@pytest.mark.parametrize(("name", "sql", "expected"), _asked())
def test_the_case_is_read_as_it_says(stores: dict[str, Store], name: str, sql: str, expected: list[list[Any]]) -> None:
    assert stores[name].rows(sql) == expected


@pytest.mark.parametrize("name", NAMES)
def test_the_case_says_where_it_was_seen(name: str) -> None:
    note = (CASES / name / "NOTE.md").read_text()
    assert 2 <= len(note.splitlines()) <= 6
    assert sorted(path.name for path in (CASES / name).iterdir()) == ["NOTE.md", "expected.json", "tree"]


@pytest.mark.parametrize("name", [ALONE, "kinds"])
def test_no_promise_is_broken(stores: dict[str, Store], name: str) -> None:
    report = stores[name].report
    assert (report.quarantined, report.sources_failed, report.findings) == ({}, 0, [])


def _envelopes(line: str) -> list[dict[str, Any]]:
    """The envelopes of a line, read by another route than the adapter's."""
    try:
        value = json.loads(line)
    except ValueError:
        return []
    if not isinstance(value, dict):
        return []
    found = []
    for child in value.get("children", [{"record_json": line}]):
        try:
            found.append(json.loads(child["record_json"]))
        except ValueError:
            found.append({})
    return found


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


@pytest.mark.parametrize("name", [ALONE, "kinds"])
def test_every_text_is_a_string_of_its_record(stores: dict[str, Store], name: str) -> None:
    """What stands in dialogue is a leaf of the record it names, or is joined of such leaves; never JSON of a record."""
    store = stores[name]
    asked = "select s.rel_path, d.line_no, d.child, d.text from facts.dialogue d join facts.sources s using (source_id)"
    lines: dict[str, list[str]] = {}
    found = store.rows(asked)
    assert found
    for path, line_no, child, text in found:
        listed = lines.setdefault(path, (store.home / path).read_text().split("\n"))
        leaves = set(_strings(_envelopes(listed[line_no - 1])[child]))
        parts = re.split(r"\n+", text)
        assert text in leaves or any(leaf.strip() and leaf.strip() in text for leaf in leaves), (path, line_no)
        assert all(not part.startswith('{"schema_version"') for part in parts)


def _kinds(home: Path) -> set[str]:
    """Every distinct event of the logs of a home, by scope and kind, or by payload type."""
    found = set()
    for path in home.rglob("session.jsonl"):
        for line in path.read_text().split("\n"):
            for record in _envelopes(line):
                payload = record.get("payload", {})
                event = payload.get("event")
                found.add(f"{payload.get('kind')}/{event['kind']}" if event else record.get("payload_type"))
    return {kind for kind in found if kind}


def test_one_case_has_more_kinds_of_events_than_a_real_session(stores: dict[str, Store]) -> None:
    """A real session has 27 distinct kinds of events (seen in 0.1.0); all of this one are known."""
    kinds = _kinds(CASES / "kinds" / "tree")
    assert len({kind for kind in kinds if "/" in kind}) >= 27
    unknown = stores["kinds"].rows(
        "select kind from record_census join sources using (source_id) "
        "where disposition = 'unknown' and session_id like '%0100'"
    )
    assert unknown == []
    counted = stores["kinds"].rows(
        "select distinct kind from record_census join sources using (source_id) "
        "where unit = 'record' and session_id like '%0100' and kind not like 'retained%'"
    )
    assert {kind.removeprefix("runtime.session/") for (kind,) in counted} == kinds


def test_every_reason_for_skipping_is_a_sentence() -> None:
    assert all(len(reason) > 10 and reason[0].islower() for reason in SKIPPED.values())


def test_the_report_counts_the_example(stores: dict[str, Store]) -> None:
    db = str(stores[ALONE].db)
    found = run_report(db, "muse", NOW)
    assert found.heading == "2-session Muse report, zero raw envelopes"
    (total,) = found.parts[0].table.to_pylist()
    wanted = {"turns": 6, "scheduled": 1, "failed": 1, "cancelled": 1, "unfinished": 1, "prompts": 5, "steers": 1}
    assert {name: total[name] for name in wanted} == wanted
    assert (total["tool_calls"], total["tool_errors"], total["subagents"], total["unwaited"]) == (9, 3, 2, 0)
    assert [row["row_kind"] for row in report_rows(db, "muse", NOW).to_pylist()] == ["total", "session", "session"]
    assert found.parts[1].table.num_rows == 2


def test_results_do_not_depend_on_the_order_of_files_or_on_what_was_loaded_before(tmp_path: Path) -> None:
    """A sub-agent's log may come before its parent's, or in a later load: the rows are the same."""
    home = tmp_path / "home"
    asked = """
        select session_id, kind, parent_session_id, spawn_call_key, cwd, prompts, text_rows, tool_calls, sources
        from mart.sessions order by all"""
    tree = CASES / ALONE / "tree"
    whole = Store(tree, tmp_path / "whole.duckdb")
    children = sorted(path for path in tree.rglob("session.jsonl") if "subagent" in path.parts)
    found: list[list[Any]] = []
    for path in sorted(tree.rglob("session.jsonl"), key=lambda path: path not in children):
        target = home / path.relative_to(tree)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
        partly = Store(home, tmp_path / "partly.duckdb")
        found = partly.rows(asked)
        partly.connection.close()
    assert found == whole.rows(asked)
    whole.connection.close()


def test_rows_do_not_depend_on_how_the_work_is_shared_out(tmp_path: Path) -> None:
    """One task for all logs, or a task a log in the other order, written out in small parts."""
    found = find(CASES / ALONE / "tree", "muse")
    tables = (*(f"facts.{name}" for name in TABLES), "mart.sessions", "mart.turns", "mart.dialogue", "mart.tool_calls",
              "mart.model_calls", "mart.session_links", "main.muse_turns", "main.muse_subagents")  # fmt: skip
    seen = []
    for n, (batches, flush) in enumerate((([found], FLUSH_BYTES), ([[item] for item in reversed(found)], 1000))):
        with build(batches, tmp_path / str(n), flush) as builder:
            seen.append({name: builder.connection.execute(f"from {name} order by all").fetchall() for name in tables})
    assert seen[0] == seen[1]
    assert len(seen[0]["mart.tool_calls"]) == 10


@pytest.mark.parametrize(
    "odd",
    [
        None, 1, "x", [], {}, [[]], {"kind": 1}, {"kind": "run"}, {"kind": "run", "event": 7},
        {"kind": [], "event": {"kind": {}}}, {"kind": "task", "event": {"kind": "status", "details": [1]}},
        {"kind": "approval", "event": {"kind": "decision_applied", "decision": {}, "decision_source": 3}},
    ],
)  # fmt: skip
def test_no_json_stops_the_adapter(odd: Any, tmp_path: Path) -> None:
    """Any payload under any known name, alone and as the value of any field of an event."""
    session = "01c00000-0000-7000-8000-000000000001"
    kinds = sorted(_kinds(CASES / "kinds" / "tree"))
    lines = []
    for n, kind in enumerate(kinds):
        scope, _, event = kind.partition("/")
        payloads = [odd, {"kind": scope, "record": odd, "event": odd, "run_id": odd, "task_id": odd}]
        payloads.append({"kind": scope, "event": {"kind": event, **dict.fromkeys(FIELDS, odd)}, "run_id": "r"})
        payloads.append({"kind": scope, "event": {"kind": event, **{name: [odd] for name in FIELDS}}, "run_id": odd})
        for m, payload in enumerate(payloads):
            record = {"schema_version": odd, "id": f"{n}-{m}", "stream": {"kind": "session", "id": session}}
            record |= {"sequence": odd, "recorded_at": odd, "payload_type": "runtime.session" if event else kind}
            lines.append(orjson.dumps(record | {"payload": payload}))
    lines.append(orjson.dumps({"retained_frame": odd, "children": odd}))
    lines.append(orjson.dumps({"retained_frame": "x", "children": [odd, {"child_index": odd, "record_json": odd}]}))
    lines.append(orjson.dumps({"retained_marker": odd, "position": odd}))
    lines.append(orjson.dumps({"schema_version": 1, "stream": odd, "payload_type": odd, "payload": odd}))
    path = tmp_path / f".local/share/muse/sessions/2026/09/21/{session}/session.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\n".join(lines) + b"\n")
    store = Store(tmp_path, tmp_path / "store.duckdb")
    assert (store.report.quarantined, store.report.sources_failed) == ({}, 0)
    assert store.rows("select sum(n)::bigint from record_census where unit = 'line'") == [[len(lines)]]
    store.connection.close()
