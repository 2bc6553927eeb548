"""What was worked on, in numbers?

Frames of one row per session (``SESSIONS``), turn (``TURNS``) or model call (``USAGE``) in, small frames out; durations
are milliseconds (``_ms``), days and hours those of ``UTC``. NULL is "not reported", 0 is zero: a sum over nothing that
was reported is NULL. What a column means is told by docs/tables.md (views sessions, turns, model_calls).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

if TYPE_CHECKING:
    import duckdb

# What a person opened: a sub-agent's calls and usage stand in rows of its own, in the sums below, not in the counts here.
SESSIONS: Final = """
select session_id, provider, coalesce(project, '(none)') as project, kind, kind in ('root', 'fork') as is_opened,
    coalesce(title, '(no title)') as title, status, started_at, ended_at, prompts, tool_calls, tool_errors, output_tokens,
    credits, cost_usd, (epoch_us(ended_at) - epoch_us(started_at)) / 1000.0 as span_ms
from sessions where not is_empty
"""
TURNS: Final = """
select t.session_id, t.provider, coalesce(t.project, '(none)') as project, t.trigger, t.status, t.started_at, t.wall_ms
from turns t join sessions s using (session_id) where s.kind in ('root', 'fork') and t.turn_no > 0
"""
USAGE: Final = """
select session_id, provider, coalesce(project, '(none)') as project, coalesce(model, '(not reported)') as model, ts,
    usage_status, input_tokens, output_tokens, cache_read_tokens, credits, cost_usd
from model_calls where owner = 'session'
"""
WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
#: Prompts of a session, by the lower end of a group of sessions.
GROUPS: Final = {0: "none", 1: "1", 2: "2-3", 4: "4-7", 8: "8-15", 16: "16-31", 32: "32-63", 64: "64 or more"}
_LEN: Final = pl.len().cast(pl.Int64)


def _told(column: str) -> pl.Expr:
    """A sum that is NULL where no row reports the number."""
    return pl.when(pl.col(column).count() > 0).then(pl.col(column).sum()).alias(column)


def opened(sessions: pl.DataFrame) -> pl.DataFrame:
    """The sessions that a person opened."""
    return sessions.filter(pl.col("is_opened"))


def by_day(sessions: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Per day and provider: sessions that began, and turns of a person. A session without a time stands under no day."""
    began = opened(sessions).drop_nulls("started_at").group_by(pl.col("started_at").dt.date().alias("day"), "provider")
    asked = turns.filter(pl.col("trigger") == "person").drop_nulls("started_at")
    asked = asked.group_by(pl.col("started_at").dt.date().alias("day"), "provider")
    found = began.agg(sessions=_LEN).join(asked.agg(turns=_LEN), on=["day", "provider"], how="full", coalesce=True)
    return found.with_columns(pl.col("sessions", "turns").fill_null(0)).sort("day", "provider")


def by_hour(turns: pl.DataFrame) -> pl.DataFrame:
    """Per weekday (``weekday``, ``weekday_no`` from 1) and hour: turns that a person began."""
    asked = turns.filter(pl.col("trigger") == "person").drop_nulls("started_at")
    number, hour = pl.col("started_at").dt.weekday().cast(pl.Int64), pl.col("started_at").dt.hour().cast(pl.Int64)
    names = dict(enumerate(WEEKDAYS, start=1))
    return (
        asked.group_by(weekday_no=number, hour=hour)
        .agg(turns=_LEN)
        .with_columns(weekday=pl.col("weekday_no").replace_strict(names, return_dtype=pl.String))
        .sort("weekday_no", "hour")
    )


def by_project(sessions: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Per project: sessions, prompts, time in turns, tool calls and errors, tokens, cost and credits; sub-agents' too."""
    rows = sessions.group_by("project").agg(
        pl.col("is_opened").sum().cast(pl.Int64).alias("sessions"),
        pl.col("prompts").filter(pl.col("is_opened")).sum().alias("prompts"),
        pl.sum("tool_calls", "tool_errors"),
        *(_told(name) for name in ("output_tokens", "cost_usd", "credits")),
    )
    time = turns.group_by("project").agg(_told("wall_ms"))
    order = (-pl.col("prompts"), -pl.col("tool_calls"), "project")
    found = rows.join(time, on="project", how="left").sort(order)
    return found.select("project", "sessions", "prompts", "wall_ms", pl.exclude("project", "sessions", "prompts", "wall_ms"))


def by_model(usage: pl.DataFrame) -> pl.DataFrame:
    """Per provider and model: model calls, those whose log reports usage, tokens, cost and credits."""
    sums = ("input_tokens", "cache_read_tokens", "output_tokens", "cost_usd", "credits")
    found = usage.group_by("provider", "model").agg(
        _LEN.alias("model_calls"),
        (pl.col("usage_status") == "reported").sum().cast(pl.Int64).alias("reported"),
        *(_told(name) for name in sums),
    )
    return found.sort(-pl.col("model_calls"), "provider", "model")


def by_prompts(sessions: pl.DataFrame) -> pl.DataFrame:
    """Sessions by number of prompts: group, group_no, sessions."""
    lows = list(GROUPS)
    number = pl.col("prompts").cut(lows[1:], labels=[str(low) for low in lows], left_closed=True).cast(pl.String).cast(pl.Int64)
    found = opened(sessions).group_by(group_no=number).agg(sessions=_LEN)
    return found.with_columns(group=pl.col("group_no").replace_strict(GROUPS, return_dtype=pl.String)).sort("group_no")


def by_status(sessions: pl.DataFrame) -> pl.DataFrame:
    """Per provider, kind and status: sessions."""
    return sessions.group_by("provider", "kind", "status").agg(sessions=_LEN).sort("provider", "kind", "status")


def longest(sessions: pl.DataFrame, turns: pl.DataFrame, most: int) -> pl.DataFrame:
    """The ``most`` sessions with the longest time in turns: ``wall_ms`` is that time, ``span_ms`` first to last record
    with every night between.
    """
    time = turns.group_by("session_id").agg(_told("wall_ms"))
    rows = opened(sessions).join(time, on="session_id", how="left")
    rows = rows.sort(pl.col("wall_ms"), pl.col("prompts"), descending=True, nulls_last=True).head(most)
    columns = ("title", "project", "provider", "started_at", "wall_ms", "span_ms", "prompts", "tool_calls", "tool_errors")
    return rows.select(*columns, "status", "session_id")


def headline(sessions: pl.DataFrame, turns: pl.DataFrame, usage: pl.DataFrame) -> dict[str, Any]:
    """The totals as a dict."""
    mine = opened(sessions)
    return {
        "sessions": mine.height,
        "subagents": sessions.filter(pl.col("kind") == "subagent").height,
        "projects": mine["project"].n_unique(),
        "days": mine["started_at"].drop_nulls().dt.date().n_unique(),
        "prompts": mine["prompts"].sum(),
        "turns": turns.height,
        "wall_ms": turns["wall_ms"].sum(),
        "tool_calls": sessions["tool_calls"].sum(),
        "model_calls": usage.height,
        **usage.select(_told("output_tokens"), _told("cost_usd"), _told("credits")).row(0, named=True),
    }


def spoken(ms: float | None) -> str:
    """A duration for people: 3.1 s, 25 min, 2.1 h, 3.0 d."""
    if ms is None:
        return ""
    for size, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")):
        if abs(ms) >= size:
            return f"{ms / size:.1f} {unit}"
    return f"{ms:.0f} ms"


def tables(
    connection: duckdb.DuckDBPyConnection, chosen: dict[str, str] | None = None
) -> tuple[dict[str, pl.DataFrame], dict[str, pl.DataFrame]]:
    """The frames of the store (sessions, turns, usage) where columns have the ``chosen`` values, and every table by name."""
    only = [pl.col(column) == value for column, value in (chosen or {}).items()]
    queries = {"sessions": SESSIONS, "turns": TURNS, "usage": USAGE}
    frames = {name: connection.sql(query).pl().filter(*only) for name, query in queries.items()}
    sessions, turns, usage = frames.values()
    found = {
        "totals": pl.DataFrame([headline(sessions, turns, usage)]),
        "by_day": by_day(sessions, turns),
        "by_hour": by_hour(turns).select("weekday", "hour", "turns"),
        "by_project": by_project(sessions, turns),
        "by_model": by_model(usage),
        "by_prompts": by_prompts(sessions).select("group", "sessions"),
        "by_status": by_status(sessions),
        "longest_sessions": longest(sessions, turns, 50),
    }
    return frames, found
