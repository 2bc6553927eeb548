-- report: bridge.heading
-- about: evidence of a Qoder Bridge: its runs, when its turns spoke and ended, where a malformed call first stands, availability
-- params: batch text, since timestamptz, until timestamptz
with runs as (
    select * from main.bridge_runs where is_batch_asked(batch_id, $batch, $since, $until)
),
totals as (
    select count(*) as runs, coalesce(sum(turns), 0)::bigint as turns, coalesce(sum(sdk_raw_chunks), 0)::bigint as messages,
        coalesce(sum(protocol_errors), 0)::bigint as protocol_errors, coalesce(sum(provider_unavailable), 0)::bigint as unavailable
    from runs
),
compared as (
    select count(*) as failures
    from main.boundary_compare
    where is_batch_asked(batch_id, $batch, $since, $until) and evidence_level = 'observed'
      and origin in ('TRANSPORT_OR_SDK_DEFECT', 'TRANSPORT_OR_STREAM_ASSEMBLY_DEFECT', 'BRIDGE_NORMALIZATION_DEFECT')
),
timed as (
    select count(*) as late
    from main.bridge_turn_timing
    where is_batch_asked(batch_id, $batch, $since, $until) and (is_late or heartbeats_after_deadline > 0)
)
select t.runs || '-run Qoder Bridge report: ' || t.messages || ' messages in ' || t.turns || ' turns, '
    || how_many(t.protocol_errors, 'protocol error') || ', ' || how_many(t.unavailable, 'turn') || ' without a provider, '
    || how_many(c.failures, 'failure') || ' of Bridge or transport, ' || how_many(d.late, 'late turn') as heading
from totals t, compared c, timed d;

-- report: bridge.totals
-- about: the Bridge report: totals over the runs of live batches and logs (one batch, or all where batch is empty), and over
--   every turn whose boundaries are compared, replays included
-- params: batch text, since timestamptz, until timestamptz
with runs as (
    select * from main.bridge_runs where is_batch_asked(batch_id, $batch, $since, $until)
),
timed as (
    select * from main.bridge_turn_timing where is_batch_asked(batch_id, $batch, $since, $until)
),
compared as (
    select * from main.boundary_compare where is_batch_asked(batch_id, $batch, $since, $until)
),
beats as (
    select coalesce(sum(queue_events), 0)::bigint as queue_events from main.provider_availability where is_batch_asked(batch_id, $batch, $since, $until)
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
    (select count(*) from main.bridge_disagreements where is_batch_asked(batch_id, $batch, $since, $until)) as disagreements;

-- report: bridge.runs
-- about: the Bridge report: its runs, in order, as the investigation tabulates them
-- title: Runs
-- params: batch text, since timestamptz, until timestamptz
select batch_id, run, sdk_raw_chunks, tool_count, protocol_errors, provider_unavailable, continuation_timeout, terminal_state
from main.bridge_runs
where is_batch_asked(batch_id, $batch, $since, $until)
order by batch_id, run;

-- report: bridge.timing
-- about: the Bridge report: when each turn was acknowledged, spoke and ended, milliseconds
-- title: Turns, milliseconds since each began
-- params: batch text, since timestamptz, until timestamptz
select left(batch_id, 19) as batch, run, turn, outcome, round(runtime_ack_ms) as ack_ms, round(first_model_event_ms) as model_event_ms,
    round(first_thinking_ms) as thinking_ms, round(first_token_ms) as token_ms, round(last_queue_ms) as last_queue_ms,
    round(terminal_ms) as terminal_ms, round(deadline_ms) as deadline_ms, is_late
from main.bridge_turn_timing
where is_batch_asked(batch_id, $batch, $since, $until)
order by batch_id, run, turn;

-- report: bridge.boundaries
-- about: the Bridge report: turns that have something to compare, or something wrong
-- title: Boundaries: transport, A received, B put together, C normalised, D parsed, E failed
-- params: batch text, since timestamptz, until timestamptz
select left(batch_id, 29) as batch, run, turn, evidence_level as evidence, transport_equals_sdk as transport_is_a, a_equals_b as a_is_b,
    b_equals_c as b_is_c, d_within_c as d_in_c, c_equals_e as c_is_e, code, first_bad_stage, origin
from main.boundary_compare
where is_batch_asked(batch_id, $batch, $since, $until) and (a_equals_b is not null or transport_equals_sdk is not null or code is not null or origin <> 'NONE')
order by batch_id, run, turn;

-- report: bridge.availability
-- about: the Bridge report: how often the provider was there, by batch and model
-- title: Availability of the provider
-- params: batch text, since timestamptz, until timestamptz
select left(batch_id, 19) as batch, model, turns, answered, unavailable, queue_timeouts, response_timeouts, continuation_timeouts,
    round(100 * available_share, 1) as available_percent, queue_events, ready_events,
    round(median_first_token_ms) as median_first_token_ms
from main.provider_availability
where is_batch_asked(batch_id, $batch, $since, $until)
order by batch_id, model;

-- report: bridge.disagreements
-- about: the Bridge report: what our reading and the other side state differently
-- title: Stated differently
-- params: batch text, since timestamptz, until timestamptz
select left(batch_id, 29) as batch, run, turn, what, left(own, 40) as own, left(reported, 40) as reported, reported_by
from main.bridge_disagreements
where is_batch_asked(batch_id, $batch, $since, $until)
order by all;

-- report: bridge.rows
-- about: the Bridge report as one table for machines: runs (row_kind run) as reported, then turns (row_kind turn) by our own
--   reading, with times and boundaries
-- params: batch text, since timestamptz, until timestamptz
select 'run' as row_kind, batch_id, run, null as turn, sdk_raw_chunks, tool_count, protocol_errors, provider_unavailable,
    continuation_timeout, terminal_state, null as outcome, null as runtime_ack_ms, null as first_model_event_ms,
    null as first_thinking_ms, null as first_token_ms, null as terminal_ms, null as deadline_ms, null as is_late,
    null as evidence_level, null as code, null as first_bad_stage, null as origin
from main.bridge_runs
where is_batch_asked(batch_id, $batch, $since, $until)
union all
select 'turn', b.batch_id, b.run, b.turn, t.raw_chunk_count, t.own_calls, (t.own_code is not null)::int, (t.error_class = 'availability')::int,
    (t.error_class = 'continuation_timeout')::int, null, i.outcome, i.runtime_ack_ms, i.first_model_event_ms,
    i.first_thinking_ms, i.first_token_ms, i.terminal_ms, i.deadline_ms, i.is_late, b.evidence_level, b.code, b.first_bad_stage, b.origin
from main.boundary_compare b
join main.bridge_turns t using (batch_id, run, turn)
left join main.bridge_turn_timing i using (batch_id, run, turn)
where is_batch_asked(b.batch_id, $batch, $since, $until)
order by row_kind, batch_id, run, turn;
