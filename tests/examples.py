"""What does a store say of its sessions, in the words of an example's ``expected.json``?

``fixtures/<provider>/example`` holds a home folder and its answers, derived by hand: sessions with their dialogue,
calls and usage (copies included), rejected lines, copies over files, and the totals without copies.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import duckdb

_SESSIONS: Final = """
    select s.session_id, regexp_replace(s.native_id, '^.*/', '') as native_id, s.title, s.kind,
        (select native_id from mart.sessions p where p.session_id = s.parent_session_id) as parent,
        (select min(relation) from mart.session_links l where l.session_id = s.session_id) as relation,
        s.spawn_call_key as parent_call_id, s.cwd, s.git_branch, s.model, s.tool_version, s.started_at, s.ended_at
    from mart.sessions s
"""
_FILES: Final = "select rel_path from facts.sources where session_id = $1 order by rel_path"
_DIALOGUE: Final = """
    select d.role, d.kind, d.text, m.branch, m.is_copy
    from mart.dialogue m join facts.dialogue d using (session_id, fact_id)
    where session_id = $1 order by m.seq
"""
_CALLS: Final = """
    select c.call_key as native_call_id, c.name, c.status, c.is_error, c.exit_code, c.parent_call_key,
        c.latency_us / 1000 as latency_ms,
        c.latency_source, c.pair_us / 1000 as pair_ms, c.branch, c.is_copy,
        regexp_replace(c.child_session_id, '^.*[/:]', '') as child_session
    from mart.tool_calls c where session_id = $1 order by c.seq
"""
_USAGE: Final = """
    select m.request_key as key, m.model, m.input_tokens, m.output_tokens, m.cache_read_tokens,
        m.cache_creation_5m_tokens + coalesce(m.cache_creation_1h_tokens, 0) as cache_creation_tokens,
        m.reasoning_tokens, m.branch, m.is_copy
    from mart.model_calls m where session_id = $1 order by m.ts, m.request_key
"""
_REJECTS: Final = """
    select s.rel_path as file, r.line_no as line, r.reason
    from facts.rejects r join facts.sources s using (source_id) order by all
"""
_COPIES: Final = """
    select s.native_id as session, o.native_id as copied_from, count(*) as records
    from mart.copies c
    join mart.sessions s on s.session_id = c.session_id
    join mart.sessions o on o.session_id = c.owner_session_id
    where c.session_id <> c.owner_session_id
    group by all order by all
"""
_PLAIN: Final = """
    select (select count(*) from sessions) as sessions,
        (select count(distinct message_key) from dialogue where kind in ('prompt', 'command')) as prompts,
        (select count(*) from dialogue) as dialogue, (select count(*) from tool_calls) as tool_calls,
        (select count(*) from model_calls) as model_calls, (select sum(input_tokens) from model_calls) as input_tokens,
        (select sum(output_tokens) from model_calls) as output_tokens
"""


def sessions(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, Any]]:
    """Every session by native id, with all that an example states of one."""
    found = {}
    for session in _rows(connection, _SESSIONS):
        key = session.pop("session_id")
        session["source_files"] = [row["rel_path"] for row in _rows(connection, _FILES, key)]
        session["dialogue"] = _rows(connection, _DIALOGUE, key)
        live = [row for row in session["dialogue"] if row["branch"] == "live" and not row["is_copy"]]
        session["prompts"] = [row["text"] for row in live if row["kind"] in ("prompt", "command")]
        session["tool_calls"] = _rows(connection, _CALLS, key)
        session["model_calls"] = _rows(connection, _USAGE, key)
        found[session["native_id"]] = session
    return found


def rejects(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Every rejected or pending line."""
    return _rows(connection, _REJECTS)


def copies(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """How many records each session has from another."""
    return _rows(connection, _COPIES)


def plain(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """The totals that the views state: without copies, and dialogue without dead branches."""
    return _rows(connection, _PLAIN)[0]


def stated(expected: Any, actual: Any) -> Any:
    """Of what a store says the part that an example states: the same keys of each object, every element of a list."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return {key: stated(value, actual.get(key)) for key, value in expected.items()}
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return [stated(*pair) for pair in zip(expected, actual, strict=True)]
    return actual


def _rows(connection: duckdb.DuckDBPyConnection, sql: str, *values: Any) -> list[dict[str, Any]]:
    cursor = connection.execute(sql, list(values))
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, map(_plain, row), strict=True)) for row in cursor.fetchall()]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return value
