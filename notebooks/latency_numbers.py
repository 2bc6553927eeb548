"""Where does tool time go, in numbers?

Frames of one row per timed call (``CALLS``) or turn (``TURNS``) in, small frames out; every duration is in milliseconds
(``_ms``). What a column means is told by docs/tables.md (views tool_latency, tool_calls, turns).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

if TYPE_CHECKING:
    import duckdb

# A gap beside a call that its provider times is not inside its latency; every other suspected wait is the latency.
CALLS: Final = """
with calls as (
    select *, case
        when not coalesce(human_gate_suspected, false) then null
        when status = 'denied' then 'denied by the person'
        when name in ('AskUserQuestion', 'ExitPlanMode') then 'question to the person'
        when latency_source = 'provider_duration' then 'gap beside the call'
        else 'ten minutes or more' end as wait_reason
    from tool_latency
)
select c.session_id, c.call_key, c.turn_no, c.provider, coalesce(c.project, '(none)') as project, c.status,
    coalesce(c.mcp_server || ': ', '') || coalesce(c.name, '(unnamed)') as tool,
    coalesce(c.model, '(not reported)') as model, s.kind as session_kind, c.started_at, c.latency_ms, c.wait_ms,
    c.latency_source, c.latency_quality, coalesce(c.human_gate_suspected, false) as is_suspected, c.wait_reason,
    case c.wait_reason when 'gap beside the call' then c.pair_ms - c.provider_ms else c.latency_ms end as waited_ms,
    case when coalesce(c.wait_reason, 'gap beside the call') = 'gap beside the call' then c.latency_quality
        else 'human wait' end as kind
from calls c join sessions s using (session_id)
"""
TURNS: Final = """
select session_id, turn_no, provider, coalesce(project, '(none)') as project, tool_sum_ms as sum_ms,
    tool_wall_ms as wall_ms
from turns where tool_wall_ms is not null
"""
COVERAGE: Final = """
select provider, coalesce(project, '(none)') as project, status, count(*) as calls, count(latency_ms) as timed
from tool_calls group by all
"""
# One call or some, by key: the view joins arguments and results, which are not read for the others.
PLACES: Final = """
select c.session_id, c.call_key, s.title, f.host, f.rel_path, c.line_no, c.latency_evidence, c.target_path,
    coalesce(c.command_head, c.target_path, left(c.args, 200), '') as head, left(c.args, 4000) as args,
    left(c.result_text, 4000) as result
from tool_calls c
join (select unnest($sessions::varchar[]) as session_id, unnest($keys::varchar[]) as call_key) k
    using (session_id, call_key)
join sessions s using (session_id)
left join sources f on f.source_id = c.source_id
"""
PERCENTILES: Final = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
_LEN: Final = pl.len().cast(pl.Int64)  # signed: sorted by its negative
#: Kinds of time as they are stacked: how well a call is timed, or that a person probably had to act first.
KINDS: Final = ("exact", "good", "bound", "human wait")
_NAME: Final = 26  # characters of a name in a chart
_KIND_NO: Final = {kind: number for number, kind in enumerate(KINDS)}


def credited(calls: pl.DataFrame) -> pl.DataFrame:
    """The calls with ``wall_ms``: the part of a call in which no call of its turn that started before it ran. It adds
    up to the union of the intervals of a turn, however the calls are grouped. NULL for a call without a start.
    """
    turn = ["session_id", "turn_no"]
    start = pl.col("started_at").dt.timestamp("us")
    end = start + (pl.col("latency_ms") * 1000).round().cast(pl.Int64)
    return (
        calls.sort(*turn, "started_at", "latency_ms", "call_key")
        .with_columns(start_us=start, end_us=end)
        .with_columns(covered_us=pl.col("end_us").cum_max().shift(1).forward_fill().over(turn))
        .with_columns(wall_ms=(pl.col("end_us") - pl.max_horizontal("start_us", "covered_us")).clip(0) / 1000)
        .drop("start_us", "end_us", "covered_us")
    )


def _kind_no() -> pl.Expr:
    return pl.col("kind").replace_strict(_KIND_NO, default=len(KINDS), return_dtype=pl.Int64)


def time_split(calls: pl.DataFrame, by: str) -> pl.DataFrame:
    """Per ``by`` and kind of time: calls, sum_ms of their latencies, wall_ms; the longest wall time first."""
    return (
        calls.group_by(by, "kind")
        .agg(_LEN.alias("calls"), pl.sum("latency_ms").alias("sum_ms"), pl.sum("wall_ms"))
        .with_columns(kind_no=_kind_no())
        .sort(-pl.col("wall_ms").sum().over(by), by, "kind_no")
    )


def measured(calls: pl.DataFrame) -> pl.DataFrame:
    """The calls that percentiles are taken of: exact or good, and ended ok or in an error."""
    return calls.filter(pl.col("status").is_in(["ok", "error"]), pl.col("latency_quality").is_in(["exact", "good"]))


def tails(calls: pl.DataFrame, by: str) -> pl.DataFrame:
    """Per ``by``: calls and percentiles of all measured calls, and again without suspected human waits."""

    def ranks(suffix: str) -> list[pl.Expr]:
        return [_LEN.alias(f"calls{suffix}")] + [
            pl.col("latency_ms").quantile(share, "linear").alias(f"{name}_ms{suffix}")
            for name, share in PERCENTILES.items()
        ]

    everything = measured(calls).group_by(by).agg(ranks(""))
    unhindered = measured(calls).filter(~pl.col("is_suspected")).group_by(by).agg(ranks("_no_wait"))
    found = everything.join(unhindered, on=by, how="left").with_columns(pl.col("calls_no_wait").fill_null(0))
    return found.sort(-pl.col("calls"), by)


def timings(calls: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Per group: calls, p50_ms, p95_ms, longest_ms and sum_ms of all its calls, in the order of the groups."""
    latency = pl.col("latency_ms")
    order = [_kind_no() if column == "kind" else pl.col(column) for column in by]
    numbers = {
        "p50_ms": latency.quantile(0.5, "linear"),
        "p95_ms": latency.quantile(0.95, "linear"),
        "longest_ms": latency.max(),
        "sum_ms": latency.sum(),
    }
    return calls.group_by(by).agg(calls=_LEN, **numbers).sort(order)


def suspected_waits(calls: pl.DataFrame) -> pl.DataFrame:
    """Per tool and reason: calls, total_ms and longest_ms of suspected human waits, the longest total first."""
    waits = calls.filter(pl.col("wait_reason").is_not_null()).rename({"wait_reason": "reason"})
    totals = [_LEN.alias("calls"), pl.sum("waited_ms").alias("total_ms"), pl.max("waited_ms").alias("longest_ms")]
    return waits.group_by("tool", "reason").agg(totals).sort(-pl.col("total_ms").sum().over("tool"), "tool", "reason")


def told_waits(calls: pl.DataFrame) -> pl.DataFrame:
    """Per tool: calls whose log tells a wait itself, and the sum of those waits, told_ms."""
    told = calls.filter(pl.col("wait_ms") > 0).group_by("tool")
    return told.agg(calls=_LEN, told_ms=pl.sum("wait_ms")).sort(-pl.col("told_ms"), "tool")


def lumped(calls: pl.DataFrame, by: str, most: int, weight: str = "wall_ms") -> pl.DataFrame:
    """The calls in the order of their groups' weight, the heaviest first, with ``rank`` and ``label`` (group and number
    of calls). Beyond the ``most`` first groups all stand in one, which has the place of its name in ``by``. Names too
    long for a chart lose their middle, unless they could then be confused.
    """
    order = calls.group_by(by).agg(pl.sum(weight)).sort(-pl.col(weight), by)[by].to_list()
    most = most if len(order) > most + 1 else len(order)
    ranks = {name: min(rank, most) for rank, name in enumerate(order)}
    names = {name: name if len(name) <= _NAME else f"{name[: _NAME // 2]}…{name[1 - _NAME // 2 :]}" for name in order}
    if len(set(names.values())) < len(order):
        names = {}
    others = f"{len(order) - most} others"
    return (
        calls.with_columns(rank=pl.col(by).replace_strict(ranks, default=most, return_dtype=pl.Int64))
        .with_columns(
            pl.when(pl.col("rank") < most).then(pl.col(by).replace(names)).otherwise(pl.lit(others)).alias(by)
        )
        .with_columns(label=pl.format("{} ({})", by, _LEN.over(by)))
        .sort("rank")
    )


def binned(calls: pl.DataFrame, per_decade: int = 5) -> pl.DataFrame:
    """Lumped calls per label, kind and logarithmic bin of latency, with the label's p50_ms and p95_ms; what takes less
    than 1 ms stands in the first bin.
    """
    low = (pl.max_horizontal("latency_ms", pl.lit(1.0)).log10() * per_decade + 1e-9).floor()
    lines = tails(calls, "label").select("label", pl.col("p50_ms", "p95_ms").clip(1))
    return (
        calls.with_columns(low=low)
        .group_by("rank", "label", "kind", "low")
        .agg(calls=_LEN)
        .join(lines, on="label", how="left")
        .with_columns(
            low_ms=10 ** (pl.col("low") / per_decade),
            high_ms=10 ** ((pl.col("low") + 1) / per_decade),
            full=pl.col("calls").sum().over("label", "low"),
            kind_no=_kind_no(),
        )
        .sort("rank", "low", "kind_no")
        .with_columns(top=pl.col("calls").cum_sum().over("label", "low") / pl.col("full").max().over("label"))
        .with_columns(bottom=pl.col("top").shift(1, fill_value=0).over("label", "low"))
    )


def percentile_points(calls: pl.DataFrame, by: str) -> pl.DataFrame:
    """Lumped calls' percentiles as points: row (group and number of calls), waits (are suspected human waits in it?),
    percentile, latency_ms of 1 at least. A group has its second row only where waits are in it.
    """
    ranks = calls.group_by(by).agg(pl.min("rank"))
    found = tails(calls, by).join(ranks, on=by)
    parts = [
        found.filter(pl.col("calls") > pl.col("calls_no_wait") if waits else pl.col("calls_no_wait") > 0)
        .select(
            "rank",
            row=pl.format("{}, waits too ({})" if waits else "{} ({})", by, f"calls{suffix}"),
            waits=pl.lit(waits),
            **{name: pl.col(f"{name}_ms{suffix}").clip(1) for name in PERCENTILES},
        )
        .unpivot(list(PERCENTILES), index=["rank", "row", "waits"], variable_name="percentile", value_name="latency_ms")
        for waits, suffix in ((False, "_no_wait"), (True, ""))
    ]
    return pl.concat(parts).sort("rank", "waits", "percentile")


def turn_cells(turns: pl.DataFrame, per_decade: int = 6) -> pl.DataFrame:
    """Turns per logarithmic cell of sum_ms and wall_ms, and whether their calls overlapped."""

    def centre(column: str) -> pl.Expr:
        return 10 ** ((pl.max_horizontal(column, pl.lit(1.0)).log10() * per_decade).round() / per_decade)

    overlap = pl.when(pl.col("sum_ms") > pl.col("wall_ms")).then(pl.lit("in parallel"))
    cells = turns.with_columns(parallel=overlap.otherwise(pl.lit("one after another")))
    cells = cells.with_columns(sum_ms=centre("sum_ms"), wall_ms=centre("wall_ms"))
    return cells.group_by("sum_ms", "wall_ms", "parallel").agg(turns=_LEN).sort(-pl.col("turns"), "sum_ms", "wall_ms")


def parallelism(turns: pl.DataFrame) -> pl.DataFrame:
    """One row: turns with timed calls, those in which calls overlapped, sum_ms, wall_ms and saved_ms."""
    overlap = pl.col("sum_ms") > pl.col("wall_ms")
    saved = (pl.col("sum_ms") - pl.col("wall_ms")).sum()
    return turns.select(
        _LEN.alias("turns"), overlap.sum().alias("parallel_turns"), pl.sum("sum_ms", "wall_ms"), saved_ms=saved
    )


def untimed_calls(coverage: pl.DataFrame) -> pl.DataFrame:
    """Per status: calls without a latency."""
    untimed = coverage.group_by("status").agg(calls=pl.sum("calls") - pl.sum("timed"))
    return untimed.filter(pl.col("calls") > 0).sort("status")


def slowest(connection: duckdb.DuckDBPyConnection, calls: pl.DataFrame, most: int) -> pl.DataFrame:
    """The ``most`` slowest calls with the words they began with, and the file and line that hold them."""
    top = calls.sort(-pl.col("latency_ms"), "session_id", "call_key").head(most)
    keys = {"sessions": top["session_id"].to_list(), "keys": top["call_key"].to_list()}
    places = connection.sql(PLACES, params=keys).pl()
    shown = top.select("tool", "latency_ms", "kind", "status", "started_at", "model", "session_id", "call_key")
    return shown.join(places, on=["session_id", "call_key"], how="left", maintain_order="left")


def spoken(ms: float | None) -> str:
    """A duration for people: 52 ms, 3.1 s, 25 min, 2.1 h."""
    if ms is None:
        return ""
    for size, unit in ((3_600_000, "h"), (60_000, "min"), (1000, "s")):
        if abs(ms) >= size:
            return f"{ms / size:.1f} {unit}"
    return f"{ms:.0f} ms" if ms >= 10 or ms == int(ms) else f"{ms:.1f} ms"


def headline(calls: pl.DataFrame, coverage: pl.DataFrame, turns: pl.DataFrame) -> dict[str, Any]:
    """The totals as a dict; durations in milliseconds."""
    sides = calls.filter(pl.col("session_kind") == "subagent")
    return {
        "calls": coverage["calls"].sum(),
        "timed_calls": calls.height,
        "sessions": calls["session_id"].n_unique(),
        "sum_ms": calls["latency_ms"].sum(),
        "wall_ms": calls["wall_ms"].sum(),
        "human_wait_ms": calls.filter(pl.col("kind") == "human wait")["wall_ms"].sum(),
        "subagent_wall_ms": sides["wall_ms"].sum(),
        **parallelism(turns).select("turns", "parallel_turns", "saved_ms").row(0, named=True),
    }


def tables(
    calls: pl.DataFrame, coverage: pl.DataFrame, turns: pl.DataFrame, slow: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """Every table by name, as the notebook shows them; ``slow`` is what ``slowest`` gave."""
    return {
        "totals": pl.DataFrame([headline(calls, coverage, turns)]),
        "untimed_calls": untimed_calls(coverage),
        "time_by_tool": time_split(calls, "tool").drop("kind_no"),
        "time_by_model": time_split(calls, "model").drop("kind_no"),
        "tails_by_tool": tails(calls, "tool"),
        "tails_by_model": tails(calls, "model"),
        "parallel_calls": parallelism(turns),
        "suspected_waits": suspected_waits(calls),
        "told_waits": told_waits(calls),
        "by_quality": timings(calls, "tool", "kind"),
        "by_source": timings(calls, "latency_quality", "latency_source"),
        "slowest_calls": slow.select(
            "tool", "latency_ms", "kind", "head", "title", "session_id", "call_key", "rel_path", "line_no"
        ),
    }
