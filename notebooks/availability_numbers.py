"""Was the provider there, in numbers?

Frames of one row per turn (``TURNS``) or heartbeat of the queue (``BEATS``) in, small frames out; times are milliseconds
since a turn began (``_ms``). What a column means is told by docs/tables.md (views bridge_turns, bridge_turn_timing).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl

if TYPE_CHECKING:
    import duckdb

#: How a turn ended, in the order of the stacks.
OUTCOMES: Final = (
    "answered",
    "unavailable",
    "queue timeout",
    "response timeout",
    "continuation timeout",
    "protocol error",
    "provider error",
    "cancelled",
    "not told",
)
TURNS: Final = """
select t.batch_id, b.stamp, t.run, t.turn, coalesce(t.model, '(not reported)') as model, t.continuation,
    case
        when t.error_class = 'availability' and t.error_kind = 'PROVIDER_UNAVAILABLE' then 'unavailable'
        when t.error_class = 'availability' and t.error_kind = 'PROVIDER_QUEUE_TIMEOUT' then 'queue timeout'
        when t.error_class = 'availability' then 'response timeout'
        when t.error_class = 'continuation_timeout' then 'continuation timeout'
        when t.error_class = 'protocol' then 'protocol error'
        when t.error_class = 'provider_error' then 'provider error'
        when t.error_class = 'aborted' then 'cancelled'
        when t.error_class is null and (t.result_count > 0 or t.stop_reason in ('toolUse', 'stop', 'length')) then 'answered'
        else 'not told'
    end as outcome,
    i.runtime_ack_ms, i.first_model_event_ms, i.first_thinking_ms, i.first_token_ms, i.last_message_ms, i.terminal_ms,
    i.deadline_ms, i.is_late, t.raw_chunk_count, t.queue_event_count
from bridge_turns t
join bridge_batches b using (batch_id)
left join bridge_turn_timing i using (batch_id, run, turn)
where t.source_kind in ('live', 'log') and t.evidence_level in ('observed', 'summary_only')
order by b.stamp nulls last, t.batch_id, t.run, t.turn
"""
BEATS: Final = """
select q.batch_id, q.run, q.turn, q.elapsed_us / 1000.0 as elapsed_ms, q.status, q.queue_count,
    q.queue_wait_us / 1000.0 as queue_wait_ms, q.model_key,
    case when not q.service_available then 'not available' when q.status = 'ready' then 'ready' else 'queued' end as word
from facts.queue_events q
join bridge_sources s using (source_id, batch_id, run, turn)
where not s.is_copy and q.disposition <> 'after_terminal'
order by q.batch_id, q.run, q.turn, q.line_no
"""
RUNS: Final = """
select batch_id, run, sdk_raw_chunks, tool_count, protocol_errors, provider_unavailable, continuation_timeout, terminal_state
from bridge_runs order by batch_id, run
"""
AVAILABILITY: Final = "from provider_availability order by stamp nulls last, batch_id, model"
BOUNDARIES: Final = """
select batch_id, run, turn, evidence_level, transport_equals_sdk, deltas_equal_b, a_equals_b, b_equals_c, d_within_c,
    c_equals_e, code, first_bad_stage, origin
from boundary_compare order by batch_id, run, turn
"""
_MARKS: Final = {
    "runtime_ack_ms": "acknowledged",
    "first_model_event_ms": "first model event",
    "first_thinking_ms": "first thinking",
    "first_token_ms": "first token",
    "terminal_ms": "end",
}


def spoken(ms: float | None) -> str:
    """A duration for people: 361 ms, 6.1 s, 102.0 s."""
    if ms is None:
        return ""
    return f"{ms:.0f} ms" if abs(ms) < 1000 else f"{ms / 1000:,.1f} s"


def named(turns: pl.DataFrame) -> pl.DataFrame:
    """The turns with ``row``, the name of a turn in a chart: run and turn, with the batch where there are several."""
    name = pl.format("run {} turn {}", "run", "turn")
    several = turns["batch_id"].n_unique() > 1
    return turns.with_columns(row=pl.format("{}: {}", pl.col("batch_id").str.head(19), name) if several else name)


def milestones(turns: pl.DataFrame) -> pl.DataFrame:
    """Per named turn and mark (acknowledged, first model event, first thinking, first token, end): elapsed_ms."""
    long = turns.unpivot(list(_MARKS), index=["row", "outcome"], variable_name="mark", value_name="elapsed_ms")
    return long.drop_nulls("elapsed_ms").with_columns(pl.col("mark").replace_strict(_MARKS, return_dtype=pl.String))


def outcomes(turns: pl.DataFrame) -> pl.DataFrame:
    """Per batch, model and outcome: turns, in the order of the batches; outcome_no is the place in the stack."""
    number = {name: number for number, name in enumerate(OUTCOMES)}
    return (
        turns.group_by("stamp", "batch_id", "model", "outcome")
        .agg(turns=pl.len().cast(pl.Int64))
        .with_columns(outcome_no=pl.col("outcome").replace_strict(number, return_dtype=pl.Int64))
        .sort("stamp", "batch_id", "model", "outcome_no", nulls_last=True)
    )


def headline(turns: pl.DataFrame, beats: pl.DataFrame) -> dict[str, Any]:
    """The totals as a dict: turns by what matters, heartbeats, and the median first token."""
    there = turns.filter(pl.col("outcome").is_in(["unavailable", "queue timeout", "response timeout"]))
    return {
        "batches": turns["batch_id"].n_unique(),
        "runs": turns.select(pl.struct("batch_id", "run").n_unique()).item(),
        "turns": turns.height,
        "answered": turns.filter(pl.col("outcome") == "answered").height,
        "without_provider": there.height,
        "heartbeats": beats.height,
        "heartbeats_ready": beats.filter(pl.col("word") == "ready").height,
        "median_ack_ms": turns["runtime_ack_ms"].median(),
        "median_first_token_ms": turns["first_token_ms"].median(),
        "late_turns": turns["is_late"].sum(),
    }


def timing(turns: pl.DataFrame) -> pl.DataFrame:
    """The turns whose messages were seen, with their times."""
    seen = turns.filter(pl.col("raw_chunk_count").is_not_null())
    return seen.select(
        *("batch_id", "run", "turn", "outcome", "runtime_ack_ms", "first_model_event_ms", "first_thinking_ms"),
        *("first_token_ms", "last_message_ms", "terminal_ms", "deadline_ms", "is_late"),
    )


def tables(connection: duckdb.DuckDBPyConnection, turns: pl.DataFrame, beats: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Every table by name, as the notebook shows them; of the batches that ``turns`` holds."""
    held = turns["batch_id"].unique().to_list()
    boundaries = connection.sql(BOUNDARIES).pl()
    return {
        "totals": pl.DataFrame([headline(turns, beats)]),
        "runs": connection.sql(RUNS).pl().filter(pl.col("batch_id").is_in(held)),
        "availability": connection.sql(AVAILABILITY).pl().filter(pl.col("batch_id").is_in(held)),
        "outcomes": outcomes(turns).drop("outcome_no"),
        "timing": timing(turns),
        "boundaries": boundaries.filter(pl.col("batch_id").is_in(held) | (pl.col("evidence_level") == "replay")),
    }
