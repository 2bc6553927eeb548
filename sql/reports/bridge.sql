-- report: bridge.totals
-- about: the Bridge report: totals over the runs of live batches and logs (one batch, or all where batch is empty), and over
--   every turn whose boundaries are compared, replays included
-- params: batch text
with runs as (
    select * from main.bridge_runs where $batch in ('', batch_id)
),
timed as (
    select * from main.bridge_turn_timing where $batch in ('', batch_id)
),
compared as (
    select * from main.boundary_compare where $batch in ('', batch_id)
),
beats as (
    select coalesce(sum(queue_events), 0)::bigint as queue_events from main.provider_availability where $batch in ('', batch_id)
)
select (select count(*) from runs) as runs, (select coalesce(sum(turns), 0)::bigint from runs) as turns,
    (select coalesce(sum(sdk_raw_chunks), 0)::bigint from runs) as sdk_raw_chunks,
    (select coalesce(sum(tool_count), 0)::bigint from runs) as tool_calls,
    (select coalesce(sum(protocol_errors), 0)::bigint from runs) as protocol_errors,
    (select coalesce(sum(provider_unavailable), 0)::bigint from runs) as provider_unavailable,
    (select coalesce(sum(continuation_timeout), 0)::bigint from runs) as continuation_timeouts,
    (select queue_events from beats) as queue_events,
    (select count(*) from timed where is_late or heartbeats_after_deadline > 0) as late_turns,
    (select count(*) from compared where evidence_level = 'observed' and origin = 'PROVIDER_OUTPUT_DEFECT') as provider_defects,
    (select count(*) from compared where evidence_level = 'observed' and origin = 'TRANSPORT_OR_SDK_DEFECT') as transport_failures,
    (select count(*) from compared where evidence_level = 'observed'
        and origin in ('TRANSPORT_OR_STREAM_ASSEMBLY_DEFECT', 'BRIDGE_NORMALIZATION_DEFECT')) as bridge_failures,
    (select count(*) from main.bridge_disagreements where $batch in ('', batch_id)) as disagreements;

-- report: bridge.runs
-- about: the Bridge report: its runs, in order, as the investigation tabulates them
-- params: batch text
select batch_id, run, sdk_raw_chunks, tool_count, protocol_errors, provider_unavailable, continuation_timeout, terminal_state
from main.bridge_runs
where $batch in ('', batch_id)
order by batch_id, run;

-- report: bridge.timing
-- about: the Bridge report: when each turn was acknowledged, spoke and ended, milliseconds
-- params: batch text
select left(batch_id, 19) as batch, run, turn, outcome, round(runtime_ack_ms) as ack_ms, round(first_model_event_ms) as model_event_ms,
    round(first_thinking_ms) as thinking_ms, round(first_token_ms) as token_ms, round(last_queue_ms) as last_queue_ms,
    round(terminal_ms) as terminal_ms, round(deadline_ms) as deadline_ms, is_late
from main.bridge_turn_timing
where $batch in ('', batch_id)
order by batch_id, run, turn;

-- report: bridge.boundaries
-- about: the Bridge report: turns that have something to compare, or something wrong
-- params: batch text
select left(batch_id, 29) as batch, run, turn, evidence_level as evidence, transport_equals_sdk as transport_is_a, a_equals_b as a_is_b,
    b_equals_c as b_is_c, d_within_c as d_in_c, c_equals_e as c_is_e, code, first_bad_stage, origin
from main.boundary_compare
where $batch in ('', batch_id) and (a_equals_b is not null or transport_equals_sdk is not null or code is not null or origin <> 'NONE')
order by batch_id, run, turn;

-- report: bridge.availability
-- about: the Bridge report: how often the provider was there, by batch and model
-- params: batch text
select left(batch_id, 19) as batch, model, turns, answered, unavailable, queue_timeouts, response_timeouts, continuation_timeouts,
    round(100 * available_share, 1) as available_percent, queue_events, ready_events,
    round(median_first_token_ms) as median_first_token_ms
from main.provider_availability
where $batch in ('', batch_id)
order by batch_id, model;

-- report: bridge.disagreements
-- about: the Bridge report: what our reading and the other side state differently
-- params: batch text
select left(batch_id, 29) as batch, run, turn, what, left(own, 40) as own, left(reported, 40) as reported, reported_by
from main.bridge_disagreements
where $batch in ('', batch_id)
order by all;

-- report: bridge.rows
-- about: the Bridge report as one table for machines: runs (row_kind run) as reported, then turns (row_kind turn) by our own
--   reading, with times and boundaries
-- params: batch text
select 'run' as row_kind, batch_id, run, null as turn, sdk_raw_chunks, tool_count, protocol_errors, provider_unavailable,
    continuation_timeout, terminal_state, null as outcome, null as runtime_ack_ms, null as first_model_event_ms,
    null as first_thinking_ms, null as first_token_ms, null as terminal_ms, null as deadline_ms, null as is_late,
    null as evidence_level, null as code, null as first_bad_stage, null as origin
from main.bridge_runs
where $batch in ('', batch_id)
union all
select 'turn', b.batch_id, b.run, b.turn, t.raw_chunk_count, t.own_calls, (t.own_code is not null)::int, (t.error_class = 'availability')::int,
    (t.error_class = 'continuation_timeout')::int, null, i.outcome, i.runtime_ack_ms, i.first_model_event_ms,
    i.first_thinking_ms, i.first_token_ms, i.terminal_ms, i.deadline_ms, i.is_late, b.evidence_level, b.code, b.first_bad_stage, b.origin
from main.boundary_compare b
join main.bridge_turns t using (batch_id, run, turn)
left join main.bridge_turn_timing i using (batch_id, run, turn)
where $batch in ('', b.batch_id)
order by row_kind, batch_id, run, turn;
