"""Does every view and report that states a total of tokens or calls state the same one?

What states such a number is found by its columns: a view or report that is added must say here how its numbers add up.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final

import pytest

from etl.reports import taken_by
from etl.sqlfiles import load_sql
from etl.store import connect, described
from tests.loading import FIXTURES, join_trees, load_home

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

    from etl.sqlfiles import SqlObject

#: A column that states a total, and as which it is compared.
TOTALS: Final = {
    "tool_calls": "tool_calls",
    "calls": "tool_calls",
    "input_tokens": "input_tokens",
    "tokens_in": "input_tokens",
    "output_tokens": "output_tokens",
    "tokens_out": "output_tokens",
    "model_calls": "model_calls",
    "cost_usd": "cost_usd",
    "credits": "credits",
}
#: What there is per session, from the rows themselves: copies left out, reviews not the session's own.
BASE: Final = """
select s.session_id, s.provider, s.kind, s.root_session_id, c.tool_calls, u.*
from (select session_id, provider, kind, root_session_id from mart.sessions) s
left join (
    select session_id, count(*)::bigint as tool_calls from mart.tool_calls where not is_copy group by session_id
) c using (session_id)
left join (
    select session_id as used_by, count(*)::bigint as model_calls, sum(input_tokens)::bigint as input_tokens,
        sum(output_tokens)::bigint as output_tokens, sum(cost_usd) as cost_usd, sum(credits) as credits
    from mart.model_calls where not is_copy and owner = 'session' group by session_id
) u on u.used_by = s.session_id
"""
MUSE_LISTED: Final = "provider = 'muse' and session_id in (select session_id from muse_latest(1000))"
QODER_LISTED: Final = "provider = 'qoder' and session_id in (select session_id from qoder_latest(1000))"
QODER_FAMILY: Final = "provider = 'qoder' and root_session_id in (select session_id from qoder_latest(1000))"
#: Sessions of their own, and the sub-agents of those.
FAMILIES: Final = """kind in ('root', 'fork') or kind in ('subagent', 'internal')
and root_session_id in (select session_id from mart.sessions where kind in ('root', 'fork'))"""
#: name: (what to sum, over which sessions of BASE).
STATED: Final[dict[str, tuple[str, str]]] = {
    "main.sessions": ("main.sessions", "true"),
    "main.model_calls": (
        "(select count(*) as model_calls, * from main.model_calls where owner = 'session' group by all)",
        "true",
    ),
    "main.muse_turns": ("main.muse_turns", "provider = 'muse'"),
    "main.muse_session_report": ("main.muse_session_report", "provider = 'muse' and kind in ('root', 'fork')"),
    "main.muse_latest": ("main.muse_latest(1000)", MUSE_LISTED),
    "main.muse_report": ("main.muse_report(1000)", MUSE_LISTED),
    "main.qoder_session_report": ("main.qoder_session_report", "provider = 'qoder' and kind in ('root', 'fork')"),
    "main.qoder_latest": ("main.qoder_latest(1000)", QODER_LISTED),
    "main.qoder_report": ("main.qoder_report(1000)", QODER_LISTED),
    "muse.totals": ("{report}", MUSE_LISTED),
    "muse.sessions": ("{report}", MUSE_LISTED),
    "muse.rows": ("(from {report} where row_kind = 'session')", MUSE_LISTED),
    "qoder.totals": ("{report}", QODER_LISTED),
    "qoder.sessions": ("{report}", QODER_LISTED),
    "qoder.rows": ("(from {report} where row_kind = 'session')", QODER_LISTED),
    "qoder.models": ("{report}", QODER_FAMILY),
    "qoder.waits": ("{report}", QODER_LISTED),
    "main.usage_by": ("(from main.usage_by(null, null, null, null, 'UTC') where dimension = 'all')", "true"),
    "usage.rows": ("(from {report} where dimension = 'all')", "true"),
    "cost.rows": ("(from {report} where dimension = 'all')", "true"),
    **dict.fromkeys(("usage.days", "usage.models", "usage.projects", "usage.hosts"), ("{report}", "true")),
    **dict.fromkeys(("cost.days", "cost.models", "cost.projects"), ("{report}", "true")),
    "sessions.list": ("{report}", FAMILIES),
    "sessions.rows": ("{report}", "kind in ('root', 'fork')"),
    "tools.rows": ("{report}", "true"),
    "quality.rows": ("{report}", "true"),
}
#: What states numbers of another kind, and why they are no totals.
OTHER: Final = {
    "main.source_summary": "what one file says, copies included",
    "main.unpriced_models": "the calls that have no cost, a part of all",
    "main.muse_subagents": "per spawning call: a child that two calls name stands twice",
    "bridge.totals": "what the evidence of runs says, which need not be sessions of the store",
    "session.head": "one row of main.sessions",
    "tools.servers": "the calls of MCP servers, a part of all",
    "cost.unpriced": "the calls that have no price, a part of all",
    **dict.fromkeys(
        ("main.latency_by", "latency.providers", "latency.tools", "latency.models", "latency.hours", "latency.rows"),
        "the calls that something times, a part of all",
    ),
    "parallelism.batches": "the calls that something times, a part of all",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Every case of every provider that has sessions."""
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("store")
    for provider in ("qoder", "muse", "codex", "claude_code"):
        cases = FIXTURES / provider
        names = sorted(case.name for case in cases.iterdir() if case.name not in ("example", "forty"))
        join_trees(home, provider, names)
    load_home(home, folder / "s.duckdb")
    connection = connect(str(folder / "s.duckdb"))
    yield connection
    connection.close()


def statement(item: SqlObject) -> str:
    """A report with its parameters filled in: a thousand rows of anything, nothing left out."""
    numbers = {f"${taken.name}": "1000" for taken in taken_by(item) if taken.kind == "integer"}
    filled = numbers | {"$tz": "'UTC'"}
    return re.sub(r"\$\w+", lambda name: filled.get(name[0], "null"), item.sql.strip().rstrip(";"))


def columns_of(store: duckdb.DuckDBPyConnection, source: str) -> list[str]:
    """The columns of a source that state a total."""
    return [row[0] for row in store.execute(f"describe from {source}").fetchall() if row[0] in TOTALS]


def stating(store: duckdb.DuckDBPyConnection) -> set[str]:
    """The views, macros and reports that state a total."""
    objects, types = described()
    found = {
        item.name
        for item in objects
        if item.kind in ("view", "macro") and {name for name, _ in types.get(item.name, [])} & {*TOTALS}
    }
    return found | {item.name for item in load_sql("reports") if columns_of(store, f"({statement(item)})")}


def test_whatever_states_a_total_is_compared(store: duckdb.DuckDBPyConnection) -> None:
    assert stating(store) == {*STATED, *OTHER}


def source_of(name: str) -> str:
    what, _ = STATED[name]
    return what.format(report=next((f"({statement(item)})" for item in load_sql("reports") if item.name == name), ""))


@pytest.mark.parametrize("name", STATED)
def test_it_is_the_total_of_the_rows(store: duckdb.DuckDBPyConnection, name: str) -> None:
    source, listed = source_of(name), STATED[name][1]
    columns = columns_of(store, source)
    assert columns
    stated = ", ".join(f"coalesce(sum({column}), 0)" for column in columns)
    right = ", ".join(f"coalesce(sum({TOTALS[column]}), 0)" for column in columns)
    found = store.execute(f"select {stated} from {source}").fetchall()  # noqa: S608
    expected = store.execute(f"select {right} from ({BASE}) where {listed}").fetchall()  # noqa: S608
    for column, ours, right_one in zip(columns, found[0], expected[0], strict=True):
        allowed = Decimal("0.01") if column == "cost_usd" else 0  # reports round what a row costs
        assert abs(ours - right_one) <= allowed, column


def test_the_store_has_something_to_add_up(store: duckdb.DuckDBPyConnection) -> None:
    there = "provider, sum(tool_calls) > 0, sum(coalesce(output_tokens, 0) + coalesce(credits, 0)) > 0"
    found = store.execute(f"select {there} from ({BASE}) group by provider order by provider").fetchall()  # noqa: S608
    assert found == [(name, True, True) for name in ("claude_code", "codex", "muse", "qoder")]
    assert store.execute("select count(*) > 0 from mart.model_calls where is_copy").fetchall() == [(True,)]
