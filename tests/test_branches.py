"""Which records does the branch SQL call dead, in graphs of any shape and any size?

The statements of ``sql/resolve`` run on tables filled here; what they must find is told by a walk, record by record.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etl.sqlfiles import load_sql

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

START = datetime(2026, 5, 1, tzinfo=UTC)
PARTS = ("prompt", "answer", "result", "summary", "aside")
#: Steps of resolve that tell branches, and what they need before them.
STEPS = ("touched", "leaves", "forked", "chain", "runs", "tips", "reached", "dead")


@dataclass(frozen=True)
class Node:
    """A record: its id, what it follows (an id, or None), what it is, and its message."""

    uuid: str
    parent: str | None
    part: str
    message: str | None = None


@dataclass(frozen=True)
class Leaf:
    """A statement that a record is the last one; None: nothing is left."""

    uuid: str | None


Line = Node | Leaf


@pytest.fixture(scope="module")
def tables() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as connection:
        connection.execute("set timezone = 'UTC'")
        for item in (*load_sql("migrations"), *load_sql("macros")):
            connection.execute(item.sql)
        connection.execute("create temp table changed (session_id varchar)")
        connection.execute("insert into changed values ('s')")
        yield connection


def dead(connection: duckdb.DuckDBPyConnection, lines: Sequence[Line]) -> set[str]:
    """The ids of dead records of a session whose one file has these lines, as SQL tells them."""
    run = connection.execute
    for name in ("facts.sources", "facts.records", "facts.session_facts"):
        run(f"delete from {name}")  # noqa: S608
    run("insert into facts.sources (source_id, rel_path, session_id) values ('f', 'f.jsonl', 's')")
    records: list[tuple[Any, ...]] = []
    leaves: list[tuple[Any, ...]] = []
    for number, line in enumerate(lines, 1):
        ts = START + timedelta(seconds=number)
        if isinstance(line, Node):
            records.append((number, line.uuid, line.parent, line.part, line.message or line.uuid, ts))
        else:
            leaves.append((number, line.uuid or "", ts))
    _insert(connection, "records", "line_no, native_uuid, parent_uuid, part, message_key, ts", records)
    _insert(connection, "session_facts", "line_no, value, ts", leaves)
    run("update facts.session_facts set key = 'leaf'")
    steps = {step.name: step.sql for step in load_sql("resolve")}
    for name in STEPS:
        run(steps[name])
    found = run("select r.native_uuid from facts.records r join dead using (source_id, line_no, child)").fetchall()
    return {uuid for (uuid,) in found}


def _insert(connection: duckdb.DuckDBPyConnection, table: str, columns: str, rows: Sequence[tuple[Any, ...]]) -> None:
    if not rows:
        return
    names = [name.strip() for name in columns.split(",")]
    given_rows = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    unnested = ", ".join(f"unnest(${name}) as {name}" for name in names)
    connection.execute(
        f"insert into facts.{table} by name "  # noqa: S608
        f"select 'f' as source_id, 's' as session_id, 0 as child, * from (select {unnested})",
        given_rows,
    )


def walked(lines: Sequence[Line]) -> set[str]:
    """The same by a walk over a graph of plain dicts."""
    nodes = {line.uuid: line for line in lines if isinstance(line, Node)}
    number = {line.uuid: n for n, line in enumerate(lines) if isinstance(line, Node)}
    up = {u: n.parent if n.parent in nodes and n.parent != u else None for u, n in nodes.items()}

    def path(uuid: str) -> list[str] | None:
        """The record and all that it follows, up to a root; None where it runs in a ring."""
        seen: dict[str, None] = {}
        here: str | None = uuid
        while here is not None:
            if here in seen:
                return None
            seen[here] = None
            here = up[here]
        return list(seen)

    paths = {uuid: found for uuid in nodes if (found := path(uuid)) is not None}
    speaking = {uuid for uuid, node in nodes.items() if node.part in ("prompt", "answer")}
    followed = {next((above for above in paths[uuid][1:] if above in speaking), None) for uuid in speaking & set(paths)}
    last = next((n for n in range(len(lines) - 1, -1, -1) if isinstance(lines[n], Leaf)), None)
    stated = lines[last] if last is not None else None
    leaf = stated.uuid if isinstance(stated, Leaf) and stated.uuid in paths else None
    emptied = max((n for n, line in enumerate(lines) if isinstance(line, Leaf) and line.uuid is None), default=None)
    live: set[str] = set()
    for root in {found[-1] for found in paths.values()}:
        tree = [uuid for uuid, found in paths.items() if found[-1] == root]
        tip = max((uuid for uuid in tree if uuid in speaking - followed), key=number.__getitem__, default=None)
        if tip is None:  # nothing was said that could be abandoned
            continue
        if leaf in tree and last is not None and leaf is not None:
            later = [uuid for uuid in (tip, max(tree, key=number.__getitem__)) if number[uuid] > last]
            tip = next((uuid for uuid in later if leaf in paths[uuid]), leaf)
        elif emptied is not None and number[tip] < emptied:
            continue
        live |= set(paths[tip])
    messages = {nodes[uuid].message or uuid for uuid in live if nodes[uuid].part == "answer"}

    def is_abandoned(uuid: str) -> bool:
        node = nodes[uuid]
        is_rejoined = node.part == "answer" and (node.message or uuid) in messages
        return uuid not in live and node.part in ("prompt", "answer") and not is_rejoined

    return {uuid for uuid, found in paths.items() if uuid not in live and any(is_abandoned(above) for above in found)}


@st.composite
def sessions(draw: st.DrawFn) -> list[Line]:
    """Lines of a session: mostly each follows the one before, some fork, some run in rings or follow nothing."""
    size = draw(st.integers(1, 14))
    names = [f"n{n}" for n in range(size)]
    lines: list[Line] = []
    for n, name in enumerate(names):
        before = names[n - 1] if n else None
        parent = draw(st.one_of(st.just(before), st.just(before), st.sampled_from([*names, None, "gone"])))
        message = draw(st.one_of(st.none(), st.sampled_from(["m1", "m2"])))
        lines.append(Node(name, parent, draw(st.sampled_from(PARTS)), message))
        if draw(st.integers(0, 3)) == 0:
            lines.append(Leaf(draw(st.sampled_from([name, *names, None, "nowhere"]))))
    return lines


@given(lines=sessions())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_dead_is_what_a_walk_finds(tables: duckdb.DuckDBPyConnection, lines: list[Line]) -> None:
    asides = {line.uuid for line in lines if isinstance(line, Node) and line.part == "aside"}
    assert dead(tables, lines) - asides == walked(lines) - asides


@given(lines=sessions())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_aside_is_dead_at_most_where_it_is_off_the_chain(
    tables: duckdb.DuckDBPyConnection, lines: list[Line]
) -> None:
    found = dead(tables, lines)
    assert walked(lines) <= found
    graph = {line.uuid: line for line in lines if isinstance(line, Node)}
    for uuid in found - walked(lines):  # it leads to what was abandoned
        assert graph[uuid].part == "aside"
        assert _behind(uuid, graph) & walked(lines)


def _behind(uuid: str, graph: dict[str, Node]) -> set[str]:
    """All that follows a record, directly or not."""
    behind: set[str] = set()
    following = {uuid}
    while following:
        following = {node.uuid for node in graph.values() if node.parent in following} - behind
        behind |= following
    return behind


def test_an_aside_that_leads_to_an_abandoned_prompt_is_dead(tables: duckdb.DuckDBPyConnection) -> None:
    lines: list[Line] = [
        *(Node("u1", None, "prompt"), Node("a1", "u1", "answer"), Node("r1", "a1", "result")),
        *(Node("t1", "r1", "aside"), Node("u2", "t1", "prompt"), Node("a2", "u2", "answer")),
        *(Node("a3", "a1", "answer", "a1"), Node("r3", "a3", "result"), Node("a4", "r3", "answer"), Leaf("a4")),
    ]
    assert dead(tables, lines) == {"t1", "u2", "a2"}


def _chain(size: int) -> list[Line]:
    """Prompt and answer in turn, forked at the middle: the second half of the first way is dead."""
    parts = ("prompt", "answer")
    first: list[Line] = [Node(f"n{n}", f"n{n - 1}" if n else None, parts[n % 2]) for n in range(size)]
    again = [Node("again", f"n{size // 2 - 1}", "prompt"), Node("done", "again", "answer")]
    return [*first, *again, Leaf("done")]


ORDERS = {"as written": 1, "backwards": -1, "every other one": 2}


@pytest.mark.parametrize("order", ORDERS)
def test_a_chain_of_fifty_thousand_records_is_told_in_seconds(tables: duckdb.DuckDBPyConnection, order: str) -> None:
    size = 50_000
    lines = _chain(size)
    records, rest = lines[:size], lines[size:]
    step = ORDERS[order]
    records = records[::step] if step != 2 else [*records[::2], *records[1::2]]
    started = time.monotonic()
    found = dead(tables, [*records, *rest])
    assert time.monotonic() - started < 30  # a walk row by row takes minutes; this takes a second or two
    assert len(found) == size // 2
    assert f"n{size // 2}" in found
    assert f"n{size // 2 - 1}" not in found


def test_fifty_thousand_branches_off_one_record(tables: duckdb.DuckDBPyConnection) -> None:
    size = 50_000
    lines: list[Line] = [Node("u0", None, "prompt"), *(Node(f"n{n}", "u0", "answer") for n in range(size))]
    assert len(dead(tables, lines)) == size - 1


def test_a_ring_of_fifty_thousand_records_is_live(tables: duckdb.DuckDBPyConnection) -> None:
    size = 50_000
    ring: list[Line] = [Node(f"n{n}", f"n{(n + 1) % size}", "answer") for n in range(size)]
    off: list[Line] = [Node("x1", "n7", "prompt"), Node("x2", "n7", "prompt"), Leaf("x2")]
    assert dead(tables, [*ring, *off]) == set()
