-- What evidence of a Qoder Bridge says. A file that stands twice (another root, another machine) counts once; replays and
-- conclusions of scripts are compared with and counted nowhere. Times of a turn are milliseconds since it began.

-- object: main.bridge_sources
-- kind: view
-- grain: one row per turn and file that tells of it
-- about: Which file speaks for a turn. Of several of one kind the longest does, then the first by machine and path.
-- columns:
--   source_id: the source that owns the row
--   batch_id: the batch
--   run: run number
--   turn: turn number inside the run
--   part: messages, transport or summary
--   store_kind: which kind of file it is
--   is_copy: another file speaks for the turn
create view main.bridge_sources as
select t.source_id, t.batch_id, t.run, t.turn, t.part, s.store_kind,
    row_number() over (
        partition by t.batch_id, t.run, t.turn, t.part order by s.size desc, s.host, s.rel_path, t.source_id
    ) > 1 as is_copy
from (
    select source_id, batch_id, run, turn,
        case when evidence_level = 'summary_only' then 'summary' when transport_frame_count is not null then 'transport'
            else 'messages' end as part
    from facts.provider_turns
) t
join facts.sources s using (source_id);

-- object: main.bridge_batches
-- kind: view
-- grain: one row per batch
-- about: Batches and what they hold.
-- columns:
--   batch_id: the batch: its time stamp; for other evidence the name of the file or the id of the SDK's session
--   source_kind: live (a harness's batch), replay, previous (the provenance of an earlier run), log or stream
--   stamp: time in the name of the batch
--   root: folder of the batch, masked
--   model: model as the log names it
--   runs: runs of which there is evidence
--   turns: turns of which there is evidence
create view main.bridge_batches as
select t.batch_id, coalesce(any_value(b.source_kind), 'live') as source_kind, any_value(b.stamp) as stamp,
    any_value(b.root order by b.root) as root,
    coalesce(any_value(b.model order by b.model), any_value(t.model order by t.run, t.turn, t.model)) as model,
    count(distinct t.run) as runs, count(distinct (t.run, t.turn)) as turns
from facts.provider_turns t
left join facts.bridge_batches b using (batch_id)
group by t.batch_id;

-- object: main.bridge_turns
-- kind: view
-- grain: one row per turn
-- about: What diagnostics, transport and summary say of a turn, put together. Columns named own_ are our reading of
--   boundary A by the Bridge's rules; errors are as reported.
-- columns:
--   batch_id: the batch
--   run: run number
--   turn: turn number inside the run
--   source_kind: live, replay, previous, log or stream
--   evidence_level: observed, derived, replay or summary_only
--   request_id: id of the request
--   model: model as the messages name it
--   stop_reason: why the turn ended, as the Bridge says
--   raw_stop_reason: stop reason of the SDK's result
--   error_kind: class of a timeout as the Bridge names it
--   error_code: violated rule of the protocol, as reported
--   error_message: message of the error, masked
--   error_class: protocol, availability, continuation_timeout, aborted, provider_error, or NULL where nothing tells
--   continuation: the turn goes on after tool results
--   request_sent: the user's frame was written to the worker; NULL without a transport log
--   runtime_ack_ms: to the acknowledgement of the runtime, which is no token
--   first_message_ms: to the first message of the SDK
--   first_model_event_ms: to the first stream event, snapshot or result
--   first_thinking_ms: to the first thinking
--   first_token_ms: to the first text of the answer
--   last_message_ms: to the last message of the SDK
--   terminal_ms: to what ended the turn, cleanup included
--   raw_chunk_count: messages of the SDK that were consumed, resends included; none behind the first result. NULL where no
--     file shows them
--   transport_frame_count: frames handed over by the worker
--   text_delta_count: text deltas
--   snapshot_count: assistant snapshots that are part of the answer
--   queue_event_count: queue events
--   result_count: results that the SDK handed on
--   transport_result_count: results that the worker handed over
--   diag_count: diagnostic events
--   duplicate_uuids: resends dropped by our reading
--   duplicate_finals: repeated final snapshots dropped by our reading
--   sequence_gaps: places where the sequence number does not follow
--   backward_steps: places where the time since the turn began goes back
--   own_code: violated rule by our reading. A missing result counts only where the stream is known to have ended
--   own_error: what is wrong, in our words
--   own_failure: what provider or runtime say went wrong, masked
--   own_timeout: class of a silence after the last message by our reading; NULL where something ended the turn
--   own_calls: tool calls of the answer by our reading
--   total_credits: credits of the SDK's session so far: cumulative, never to be summed
--   masked_values: a number was masked in one of the logs
create view main.bridge_turns as
with told as (
    select t.*, b.part, b.store_kind
    from facts.provider_turns t
    join main.bridge_sources b using (source_id, batch_id, run, turn)
    where not b.is_copy
),
joined as (
    select t.batch_id, t.run, t.turn,
        any_value(t.evidence_level) filter (t.part = 'messages') as seen,
        bool_or(t.part = 'transport') as has_transport,
        any_value(t.store_kind) filter (t.part = 'messages') as store_kind,
        any_value(t.request_id) as request_id, any_value(t.model) as model,
        coalesce(any_value(t.stop_reason) filter (t.part = 'summary'), any_value(t.stop_reason)) as stop_reason,
        any_value(t.raw_stop_reason) as raw_stop_reason,
        coalesce(any_value(t.error_kind) filter (t.part = 'summary'), any_value(t.error_kind)) as error_kind,
        coalesce(any_value(t.error_code) filter (t.part = 'messages'), any_value(t.error_code)) as error_code,
        coalesce(any_value(t.error_message) filter (t.part = 'summary'), any_value(t.error_message)) as error_message,
        coalesce(any_value(t.error_class) filter (t.part = 'summary'), any_value(t.error_class)) as error_class,
        coalesce(any_value(t.continuation) filter (t.part = 'transport'), any_value(t.continuation)) as continuation,
        any_value(t.request_sent) as request_sent,
        max(t.runtime_ack_us) as runtime_ack_us, max(t.first_message_us) as first_message_us,
        max(t.first_model_event_us) as first_model_event_us, max(t.first_thinking_us) as first_thinking_us,
        max(t.first_token_us) as first_token_us, max(t.last_message_us) as last_message_us,
        max(t.terminal_us) as terminal_us, max(t.raw_chunk_count) as raw_chunk_count,
        max(t.transport_frame_count) as transport_frame_count,
        max(t.text_delta_count) filter (t.part = 'messages') as text_delta_count,
        max(t.snapshot_count) as snapshot_count, max(t.queue_event_count) as queue_event_count,
        max(t.result_count) filter (t.part = 'messages') as result_count,
        max(t.result_count) filter (t.part = 'transport') as transport_result_count, max(t.diag_count) as diag_count,
        max(t.duplicate_uuids) as duplicate_uuids, max(t.duplicate_finals) as duplicate_finals,
        max(t.sequence_gaps) as sequence_gaps, max(t.backward_steps) as backward_steps,
        coalesce(any_value(t.own_code) filter (t.part = 'messages'), any_value(t.own_code)) as own_code,
        any_value(t.own_error) as own_error, any_value(t.own_failure) as own_failure,
        any_value(t.own_timeout) as own_timeout, max(t.own_calls) as own_calls, max(t.total_credits) as total_credits,
        coalesce(bool_or(t.masked_values), false) as masked_values
    from told t
    group by t.batch_id, t.run, t.turn
),
judged as (
    select j.*,
        j.own_code = 'MISSING_RESULT' and j.store_kind in ('bridge_diagnostics', 'bridge_log')
            and j.error_code is distinct from 'MISSING_RESULT' as may_be_cut
    from joined j
)
select j.batch_id, j.run, j.turn, b.source_kind,
    coalesce(j.seen, case when j.has_transport then 'observed' else 'summary_only' end) as evidence_level,
    j.request_id, coalesce(j.model, b.model) as model, j.stop_reason, j.raw_stop_reason, j.error_kind, j.error_code,
    j.error_message,
    coalesce(j.error_class, case when j.own_failure is not null then 'provider_error' end) as error_class,
    j.continuation, j.request_sent,
    j.runtime_ack_us / 1000.0 as runtime_ack_ms, j.first_message_us / 1000.0 as first_message_ms,
    j.first_model_event_us / 1000.0 as first_model_event_ms, j.first_thinking_us / 1000.0 as first_thinking_ms,
    j.first_token_us / 1000.0 as first_token_ms, j.last_message_us / 1000.0 as last_message_ms,
    j.terminal_us / 1000.0 as terminal_ms, j.raw_chunk_count, j.transport_frame_count, j.text_delta_count,
    j.snapshot_count, j.queue_event_count, j.result_count, j.transport_result_count, j.diag_count, j.duplicate_uuids,
    j.duplicate_finals, j.sequence_gaps, j.backward_steps,
    case when not coalesce(j.may_be_cut, false) then j.own_code end as own_code,
    case when not coalesce(j.may_be_cut, false) then j.own_error end as own_error,
    j.own_failure, j.own_timeout, j.own_calls, j.total_credits, j.masked_values
from judged j
join main.bridge_batches b using (batch_id);

-- object: main.bridge_runs
-- kind: view
-- grain: one row per run of a live batch or a log
-- about: The table of an investigation: messages observed, the rest as the harness reported it. Availability is the
--   provider's and never a fault of the Bridge. Replays and earlier evidence are left out; a run that was killed before
--   its report is there, with NULL for what nobody reported.
-- columns:
--   batch_id: the batch
--   run: run number
--   sdk_raw_chunks: messages of the SDK that were consumed
--   tool_count: tool calls, as reported
--   protocol_errors: violations of the protocol, as reported
--   provider_unavailable: turns that ended in an availability class (PROVIDER_…); one that was cancelled is none of them
--   continuation_timeout: turns that fell silent after a tool result
--   terminal_state: last state of the run's last turn
--   model: model as the log names it
--   turns: turns of the run
--   unavailable_strict: turns that ended in PROVIDER_UNAVAILABLE itself
--   tool_errors: failed tool calls, as reported
--   own_protocol_errors: turns that break a rule by our own reading
--   own_tool_calls: tool calls by our own reading
--   final_response: the last answer said that it was the last
--   failure: failure of the harness in its own words, masked
create view main.bridge_runs as
with reported as (
    select r.*
    from facts.provider_runs r
    join facts.sources s using (source_id)
    qualify row_number() over (
        partition by r.batch_id, r.run order by s.size desc, s.host, s.rel_path, r.source_id, r.child
    ) = 1
),
seen as (
    select batch_id, run, sum(raw_chunk_count)::bigint as sdk_raw_chunks, count(*) as turns,
        any_value(model order by turn) as model,
        -- the kind is what the queue said last; the class is how the turn ended (it may have been cancelled)
        count(*) filter (error_class = 'availability') as provider_unavailable,
        count(*) filter (error_class = 'availability' and error_kind = 'PROVIDER_UNAVAILABLE') as unavailable_strict,
        count(*) filter (error_class = 'continuation_timeout') as continuation_timeout,
        count(own_code) as own_protocol_errors, sum(own_calls)::bigint as own_tool_calls
    from main.bridge_turns
    where source_kind in ('live', 'log') and evidence_level in ('observed', 'summary_only')
    group by batch_id, run
)
select batch_id, run, s.sdk_raw_chunks, r.tool_count, r.protocol_errors,
    coalesce(s.provider_unavailable, 0) as provider_unavailable, coalesce(s.continuation_timeout, 0) as continuation_timeout,
    r.terminal_state, coalesce(r.model, s.model) as model, coalesce(s.turns, r.turns) as turns,
    coalesce(s.unavailable_strict, 0) as unavailable_strict, r.tool_errors,
    coalesce(s.own_protocol_errors, 0) as own_protocol_errors, s.own_tool_calls, r.final_response, r.failure
from seen s
full join reported r using (batch_id, run);

-- object: main.bridge_turn_timing
-- kind: view
-- grain: one row per observed turn of a live batch or a log
-- about: When a turn was acknowledged, thought, spoke and ended, each apart: an acknowledgement is no token. No heartbeat
--   of the queue may extend a deadline.
-- columns:
--   batch_id: the batch
--   run: run number
--   turn: turn number inside the run
--   continuation: the turn goes on after tool results
--   outcome: the error's kind (of a timeout), code (of a broken rule) or class, else the stop reason; open where nothing ended
--     the turn
--   runtime_ack_ms: to the acknowledgement of the runtime
--   first_message_ms: to the first message of the SDK
--   first_model_event_ms: to the first stream event, snapshot or result
--   first_thinking_ms: to the first thinking
--   first_token_ms: to the first text of the answer
--   last_queue_ms: to the last heartbeat of the queue
--   queue_wait_ms: waited in the queue by then, as the service says
--   last_message_ms: to the last message of the SDK
--   terminal_ms: to what ended the turn, cleanup included
--   deadline_ms: when the turn had to give up: the total deadline that its error states; else the end of the silence that it
--     states, and for a live batch at most the 100 s that the harness sets (unless the silence alone was longer)
--   is_late: the turn ended more than 5 s (the longest cleanup) after its deadline; NULL where neither is known
--   heartbeats_after_deadline: queue events later than the deadline
--   backward_steps: places where the time since the turn began goes back
create view main.bridge_turn_timing as
with queue as (
    select q.batch_id, q.run, q.turn, max(q.elapsed_us) / 1000.0 as last_queue_ms, max(q.queue_wait_us) / 1000.0 as queue_wait_ms,
        list(q.elapsed_us / 1000.0) as heartbeats
    from facts.queue_events q
    join main.bridge_sources b using (source_id, batch_id, run, turn)
    where not b.is_copy and q.disposition <> 'after_terminal'
    group by all
),
stated as (
    select *, try_cast(nullif(regexp_extract(error_message, 'total deadline (\d{1,12})ms', 1), '') as double) as total_ms,
        try_cast(nullif(regexp_extract(error_message, 'no provider message for (\d{1,12})ms', 1), '') as double) as silence_ms
    from main.bridge_turns
    where source_kind in ('live', 'log') and evidence_level = 'observed'
),
bounded as (
    select t.*, q.last_queue_ms, q.queue_wait_ms, q.heartbeats,
        -- a total deadline that is stated is the one: the harness's is a default. The end of a silence states none, since each
        -- heartbeat puts it off: the default bounds it, or a heartbeat would extend a turn. The Bridge waits for no silence
        -- longer than what is left of its total: one longer than the default shows that another total was set
        coalesce(t.total_ms, least(
            t.last_message_ms + t.silence_ms,
            case when t.source_kind = 'live' and t.terminal_ms is not null and coalesce(t.silence_ms, 0) <= 100000 then 100000.0 end
        )) as deadline_ms
    from stated t
    left join queue q using (batch_id, run, turn)
)
select batch_id, run, turn, continuation,
    coalesce(
        case when error_class in ('availability', 'continuation_timeout') then error_kind when error_class = 'protocol' then error_code end,
        error_class, error_kind, error_code, stop_reason, 'open'
    ) as outcome,
    runtime_ack_ms, first_message_ms, first_model_event_ms, first_thinking_ms, first_token_ms, last_queue_ms, queue_wait_ms,
    last_message_ms, terminal_ms, deadline_ms, terminal_ms > deadline_ms + 5000 as is_late,
    len(list_filter(heartbeats, lambda beat: beat > deadline_ms)) as heartbeats_after_deadline, backward_steps
from bounded;

-- object: main.boundary_compare
-- kind: view
-- grain: one row per turn whose messages were observed, live or in a replay
-- about: Where did a malformed tool call come from? Frames of the transport against messages of the SDK (A), these
--   against the text that was put together (B), the text before normalising (C), the parser's input (D) and the text
--   that failed (E). NULL where a stage is absent. A provenance was concluded from code and has no row.
-- columns:
--   batch_id: the batch
--   run: run number
--   turn: turn number inside the run
--   evidence_level: observed or replay
--   transport_equals_sdk: snapshots, results and stream events of A are frames of the transport, in order and alike; NULL
--     without its log, or where that was cut before the result
--   transport_mismatches: messages of A for which that does not hold
--   deltas_equal_b: the text deltas joined are B
--   a_equals_b: the text put together from A by our rules is B
--   snapshots_equal_b: the snapshots that the Bridge says it appended, joined, are B
--   b_equals_c: B is C
--   d_within_c: what the parser was asked is what the scanner finds in C
--   c_equals_e: C is E
--   transport_defects: frames that hold an envelope that is not right
--   a_defects: messages of A that hold one
--   b_defects: envelopes of B that are not right
--   d_defects: parser inputs that are not right
--   code: protocol code as reported at E, else by our reading
--   first_bad_stage: A_TRANSPORT_FRAME, A_SDK_MESSAGE, A (there is no transport log to tell the two apart), B, C_OR_D or
--     NULL
--   origin: PROVIDER_OUTPUT_DEFECT, TRANSPORT_OR_SDK_DEFECT, UNDETERMINED_FRAGMENT_ASSEMBLY,
--     TRANSPORT_OR_STREAM_ASSEMBLY_DEFECT, BRIDGE_NORMALIZATION_DEFECT or NONE
create view main.boundary_compare as
with owner as (
    select * from main.bridge_sources where not is_copy
),
messages as (
    select m.*,
        row_number() over (partition by m.source_id, m.turn, m.run, m.type, m.uuid order by m.line_no, m.child) as nth
    from facts.sdk_messages m
    join owner o using (source_id, batch_id, run, turn)
    where m.type in ('assistant', 'result', 'stream_event')
),
frames as (
    select f.*, row_number() over (partition by f.source_id, f.type, f.uuid order by f.line_no, f.child) as nth
    from facts.transport_frames f
    join owner o using (source_id, batch_id, run, turn)
    where f.direction = 'frame' and f.type in ('assistant', 'result', 'stream_event')
),
matched as (
    select m.batch_id, m.run, m.turn,
        f.line_no is not null
            and coalesce(f.line_no > max(f.line_no) over (
                partition by m.batch_id, m.run, m.turn order by m.line_no, m.child
                rows between unbounded preceding and 1 preceding
            ), true)
            and f.text is not distinct from m.text and f.comparable is not distinct from m.comparable as is_equal
    from messages m
    left join frames f
        on f.batch_id = m.batch_id and f.run = m.run and f.turn = m.turn and f.type = m.type
        and f.uuid is not distinct from m.uuid and f.nth = m.nth
),
transport as (
    select o.batch_id, o.run, o.turn, any_value(t.delta_text) as delta_text, any_value(t.text_delta_count) as deltas,
        count(f.defect_code) + count(distinct t.delta_defect) as defects,
        coalesce(bool_or(f.type = 'result'), false) as has_result, any_value(s.tail_state) <> 'complete' as is_torn
    from owner o
    join facts.provider_turns t using (source_id, batch_id, run, turn)
    join facts.sources s on s.source_id = o.source_id
    left join frames f on f.source_id = o.source_id
    where o.part = 'transport'
    group by all
),
compared as (
    select batch_id, run, turn, count(*) filter (not is_equal) as mismatches from matched group by all
),
received as (
    select batch_id, run, turn, count(defect_code) filter (disposition = 'kept') as defects,
        count(*) filter (disposition = 'kept' and type = 'assistant' and text is not null) as texts,
        bool_or(type = 'result') as has_result
    from messages group by all
),
events as (
    select e.*
    from facts.boundary_events e
    join owner o using (source_id, batch_id, run, turn)
    where e.boundary in ('B', 'C', 'D', 'E')
),
texts as (
    select batch_id, run, turn, arg_max(text, line_no) filter (boundary = 'B') as b,
        arg_max(text, line_no) filter (boundary = 'C') as c, bool_or(boundary = 'C') as has_c,
        arg_max(text, line_no) filter (boundary = 'E') as e, bool_or(boundary = 'E') as has_e,
        arg_max(code, line_no) filter (boundary = 'E') as code,
        any_value(text) filter (label = 'parser_selected') as parser
    from events group by all
),
found as (
    select v.*
    from facts.envelopes v
    join owner o using (source_id, batch_id, run, turn)
    where o.part = 'messages'
),
judged as (
    select batch_id, run, turn, count(code) filter (boundary = 'A') as own_defects,
        count(code) filter (boundary = 'B') as b_defects, count(code) filter (boundary = 'D') as d_defects,
        bool_or(boundary = 'A' and code = 'UNCLOSED_ENVELOPE') as is_unclosed
    from found group by all
),
asked as (
    select d.batch_id, d.run, d.turn,
        bool_and(case
            when t.parser = 'native_tool_use' or (d.item_index is null and d.is_masked) then null
            when coalesce(d.item_index, 0) = 0 or t.parser = 'standard_function_envelope' then d.text is not distinct from t.c
            else d.text is not distinct from c.raw
        end) as is_within
    from events d
    join texts t using (batch_id, run, turn)
    left join found c on c.batch_id = d.batch_id and c.run = d.run and c.turn = d.turn and c.boundary = 'C'
        and c.envelope_index = d.item_index
    where d.boundary = 'D' and d.label = 'parse_input'
    group by all
),
stages as (
    select o.batch_id, o.run, o.turn, p.evidence_level, u.own_code, x.code as e_code,
        x.b is not null as has_b,
        -- a log that was cut before the result is no witness: a frame that it does not have may have been there
        t.batch_id is not null and (t.has_result or not (coalesce(r.has_result, false) or t.is_torn)) as has_transport,
        coalesce(m.mismatches, 0) + (t.deltas = p.text_delta_count and p.duplicate_uuids = 0
            and t.delta_text is distinct from p.delta_text)::int as mismatches, m.batch_id is not null as has_model_messages,
        case when x.b is not null and p.delta_text is not null then p.delta_text = x.b end as deltas_equal_b,
        case when x.b is not null then coalesce(p.own_text, '') = x.b end as a_equals_b,
        case when x.b is not null and nullif(p.snapshot_text, '') is not null then p.snapshot_text = x.b end as snapshots_equal_b,
        case when x.has_c and x.b is not null then x.b is not distinct from x.c end as b_equals_c,
        case when x.has_c then a.is_within end as d_within_c,
        case when x.has_e and x.has_c then x.c is not distinct from x.e end as c_equals_e,
        coalesce(t.defects, 0) as t_defects,
        -- what no single message completes is a defect of the one message that holds all the text
        coalesce(r.defects, 0) + (p.delta_defect is not null)::int
            + (coalesce(j.is_unclosed, false) and coalesce(r.texts, 0) <= 1)::int as a_defects,
        coalesce(j.b_defects, 0) as b_defects, coalesce(j.own_defects, 0) as own_defects, coalesce(j.d_defects, 0) as d_defects
    from owner o
    join facts.provider_turns p using (source_id, batch_id, run, turn)
    join main.bridge_turns u using (batch_id, run, turn)
    left join transport t using (batch_id, run, turn)
    left join compared m using (batch_id, run, turn)
    left join received r using (batch_id, run, turn)
    left join texts x using (batch_id, run, turn)
    left join judged j using (batch_id, run, turn)
    left join asked a using (batch_id, run, turn)
    where o.part = 'messages' and p.evidence_level in ('observed', 'replay')
),
verdicts as (
    select *,
        case
            when t_defects > 0 or (has_transport and a_defects > 0 and mismatches = 0) then 'A_TRANSPORT_FRAME'
            when a_defects > 0 and has_transport then 'A_SDK_MESSAGE'
            when a_defects > 0 then 'A'
            when has_b and (b_defects > 0 or not a_equals_b or snapshots_equal_b = false) then 'B'
            when d_defects > 0 or b_equals_c = false or d_within_c = false or c_equals_e = false then 'C_OR_D'
            when has_transport and mismatches > 0 then 'A_SDK_MESSAGE'
        end as stage
    from stages
)
select batch_id, run, turn, evidence_level,
    case when has_transport and has_model_messages then mismatches = 0 end as transport_equals_sdk,
    case when has_transport and has_model_messages then mismatches end as transport_mismatches,
    deltas_equal_b, a_equals_b, snapshots_equal_b, b_equals_c, d_within_c, c_equals_e,
    case when has_transport then t_defects end as transport_defects, a_defects, case when has_b then b_defects end as b_defects,
    d_defects, coalesce(e_code, own_code) as code, stage as first_bad_stage,
    case
        when stage in ('A_TRANSPORT_FRAME', 'A') then 'PROVIDER_OUTPUT_DEFECT'
        when stage = 'A_SDK_MESSAGE' then 'TRANSPORT_OR_SDK_DEFECT'
        when stage = 'B' and b_defects > 0 and own_defects > 0 and a_equals_b and snapshots_equal_b is distinct from false
            then 'UNDETERMINED_FRAGMENT_ASSEMBLY'
        when stage = 'B' then 'TRANSPORT_OR_STREAM_ASSEMBLY_DEFECT'
        when stage = 'C_OR_D' then 'BRIDGE_NORMALIZATION_DEFECT'
        else 'NONE'
    end as origin
from verdicts;

-- object: main.provider_availability
-- kind: view
-- grain: one row per batch and model of live batches and logs
-- about: How often the provider was there. Classes come from the last word of the queue; silence after a tool result,
--   broken rules and cancelled turns are no availability.
-- columns:
--   batch_id: the batch
--   stamp: time in the name of the batch
--   model: model as the messages name it
--   turns: turns of which there is evidence
--   answered: turns with a result
--   unavailable: turns that ended in PROVIDER_UNAVAILABLE
--   queue_timeouts: turns that ended in PROVIDER_QUEUE_TIMEOUT
--   response_timeouts: turns that ended in PROVIDER_RESPONSE_TIMEOUT (or PROVIDER_TIMEOUT of older Bridges)
--   continuation_timeouts: turns that fell silent after a tool result
--   protocol_errors: turns reported to break the protocol
--   provider_errors: turns that the provider itself failed
--   aborted: turns that were cancelled
--   other: turns that ended otherwise, or of whose end nothing is told
--   available_share: answered turns among those answered and those that the provider was not there for
--   queue_events: heartbeats of the queue
--   unavailable_events: of them those that say the service is not available
--   ready_events: of them those that say ready
--   longest_queue_wait_ms: longest wait that the service states
--   median_first_token_ms: median time to the first token of turns that have one
--   median_ack_ms: median time to the acknowledgement of the runtime
create view main.provider_availability as
with beats as (
    select q.batch_id, q.run, q.turn, count(*) as queue_events, count(*) filter (not q.service_available) as unavailable_events,
        count(*) filter (q.status = 'ready') as ready_events, max(q.queue_wait_us) / 1000.0 as queue_wait_ms
    from facts.queue_events q
    join main.bridge_sources b using (source_id, batch_id, run, turn)
    where not b.is_copy and q.disposition <> 'after_terminal'
    group by all
),
classed as (
    select t.*, q.* exclude (batch_id, run, turn),
        case
            when t.error_class is not null then t.error_class
            when t.result_count > 0 or t.stop_reason in ('toolUse', 'stop', 'length') then 'answered'
            else 'other'
        end as class
    from main.bridge_turns t
    left join beats q using (batch_id, run, turn)
    where t.source_kind in ('live', 'log') and t.evidence_level in ('observed', 'summary_only')
)
select c.batch_id, b.stamp, c.model, count(*) as turns, count(*) filter (c.class = 'answered') as answered,
    count(*) filter (c.class = 'availability' and c.error_kind = 'PROVIDER_UNAVAILABLE') as unavailable,
    count(*) filter (c.class = 'availability' and c.error_kind = 'PROVIDER_QUEUE_TIMEOUT') as queue_timeouts,
    count(*) filter (c.class = 'availability' and c.error_kind not in ('PROVIDER_UNAVAILABLE', 'PROVIDER_QUEUE_TIMEOUT'))
        as response_timeouts,
    count(*) filter (c.class = 'continuation_timeout') as continuation_timeouts,
    count(*) filter (c.class = 'protocol') as protocol_errors, count(*) filter (c.class = 'provider_error') as provider_errors,
    count(*) filter (c.class = 'aborted') as aborted, count(*) filter (c.class = 'other') as other,
    count(*) filter (c.class = 'answered') / nullif(count(*) filter (c.class in ('answered', 'availability')), 0) as available_share,
    coalesce(sum(c.queue_events), 0)::bigint as queue_events, coalesce(sum(c.unavailable_events), 0)::bigint as unavailable_events,
    coalesce(sum(c.ready_events), 0)::bigint as ready_events, max(c.queue_wait_ms) as longest_queue_wait_ms,
    median(c.first_token_ms) as median_first_token_ms, median(c.runtime_ack_ms) as median_ack_ms
from classed c
join main.bridge_batches b using (batch_id)
group by all;

-- object: main.bridge_disagreements
-- kind: view
-- grain: one row per figure or conclusion that two sides state differently
-- about: Our reading of boundary A against what the Bridge reported itself (labels and errors), against the harness's
--   summary, and against what audit scripts and replays concluded. Absence is no witness: a file without a line, or one
--   that was cut, contradicts nobody about how a turn ended.
-- columns:
--   batch_id: the batch
--   run: run number
--   turn: turn number inside the run; NULL for a figure of the run
--   what: name of the figure
--   own: what we read
--   reported: what the other side states
--   reported_by: diagnostics, transport, summary, audit or replay
create view main.bridge_disagreements as
with labelled as (
    select e.batch_id, e.run, e.turn, count(*) filter (e.label = 'duplicate_uuid') as duplicate_uuids,
        count(*) filter (e.label = 'duplicate_final_snapshot') as duplicate_finals,
        count(*) filter (e.label = 'queue_status') as queue_events, max(e.elapsed_us) filter (e.label = 'handoff_ack') as ack_us,
        arg_max(e.text, e.line_no) filter (e.boundary = 'B') as b
    from facts.boundary_events e
    join main.bridge_sources s using (source_id, batch_id, run, turn)
    where not s.is_copy and s.store_kind in ('bridge_diagnostics', 'bridge_replay')
    group by all
),
told as (
    -- a file says something of a turn where it has a line and was not cut: absence is no witness
    select p.*, s.part, s.store_kind,
        f.tail_state = 'complete' and greatest(p.diag_count, p.raw_chunk_count, p.transport_frame_count) > 0 as is_witness
    from facts.provider_turns p
    join main.bridge_sources s using (source_id, batch_id, run, turn)
    join facts.sources f using (source_id)
    where not s.is_copy
),
read as (
    select p.batch_id, p.run, p.turn, p.own_text, t.* exclude (batch_id, run, turn), p.is_witness, p.error_kind as stated_kind,
        p.error_code as stated_code, h.error_kind as summary_kind,
        case when h.error_class = 'protocol' then h.error_code end as summary_code,
        case
            when p.store_kind = 'bridge_log' or coalesce(p.stop_reason, p.error_kind, p.error_message) is not null then 'diagnostics'
            when coalesce(h.stop_reason, h.error_message) is not null then 'summary'
        end as ended_by
    from told p
    join main.bridge_turns t using (batch_id, run, turn)
    left join told h on h.batch_id = p.batch_id and h.run = p.run and h.turn = p.turn and h.part = 'summary'
    where p.part = 'messages'
),
concluded as (
    select b.batch_id, b.run, b.turn, t.raw_chunk_count, t.transport_frame_count, t.snapshot_count, t.text_delta_count,
        t.duplicate_uuids, t.duplicate_finals, t.first_token_ms, t.diag_count, b.origin, b.first_bad_stage
    from main.boundary_compare b
    join main.bridge_turns t using (batch_id, run, turn)
),
figures as (
    select batch_id, run, turn, unnest(map_entries(map {
        'raw_chunk_count': raw_chunk_count::varchar, 'transport_frame_count': transport_frame_count::varchar,
        'snapshot_count': snapshot_count::varchar, 'text_delta_count': text_delta_count::varchar,
        'duplicate_uuids': duplicate_uuids::varchar, 'duplicate_finals': duplicate_finals::varchar,
        'diag_count': diag_count::varchar, 'origin': origin, 'first_bad_stage': coalesce(first_bad_stage, 'null')
    })) as figure
    from concluded
),
claims as (
    select c.batch_id, c.run, c.turn, c.claim, c.value,
        case c.evidence_level when 'summary_only' then 'summary' else 'audit' end as reported_by
    from facts.bridge_claims c
    join facts.sources s using (source_id)
    where s.store_kind in ('bridge_summary', 'bridge_audit') and not c.is_masked
    union all
    select t.batch_id, t.run, t.turn, case c.claim when 'firstBadStage' then 'first_bad_stage' else c.claim end, c.value, 'replay'
    from facts.bridge_claims c
    join facts.sources s using (source_id)
    join facts.sources r on r.store_kind = 'bridge_replay' and r.host = s.host
        and s.rel_path = replace(r.rel_path, '.jsonl', '-summary.json')
    join facts.provider_turns t on t.source_id = r.source_id
    where s.store_kind = 'bridge_replay_summary' and not c.is_masked
)
select batch_id, run, turn, what, own, reported, reported_by
from (
    select r.batch_id, r.run, r.turn, 'text of B' as what, r.own_text as own, l.b as reported, 'diagnostics' as reported_by
    from read r join labelled l using (batch_id, run, turn)
    where l.b is not null and l.b is distinct from coalesce(r.own_text, '')
    union all
    select r.batch_id, r.run, r.turn, 'duplicate_uuids', r.duplicate_uuids::varchar, l.duplicate_uuids::varchar, 'diagnostics'
    from read r join labelled l using (batch_id, run, turn) where r.duplicate_uuids <> l.duplicate_uuids
    union all
    select r.batch_id, r.run, r.turn, 'duplicate_finals', r.duplicate_finals::varchar, l.duplicate_finals::varchar, 'diagnostics'
    from read r join labelled l using (batch_id, run, turn) where r.duplicate_finals <> l.duplicate_finals
    union all
    select r.batch_id, r.run, r.turn, 'queue_events', r.queue_event_count::varchar, l.queue_events::varchar, 'diagnostics'
    from read r join labelled l using (batch_id, run, turn) where l.queue_events > 0 and r.queue_event_count <> l.queue_events
    union all
    select r.batch_id, r.run, r.turn, 'queue_events', r.queue_event_count::varchar, count(f.fact_id)::varchar, 'transport'
    from read r
    join told o on o.batch_id = r.batch_id and o.run = r.run and o.turn = r.turn and o.part = 'transport' and o.is_witness
    left join (
        -- the Bridge reads no frame behind the first result
        from facts.transport_frames
        qualify count(*) filter (type = 'result' and direction = 'frame') over (
            partition by source_id order by line_no, child
        ) = 0
    ) f on f.source_id = o.source_id and f.subtype = 'model_queue_status' and f.direction = 'frame'
    where r.is_witness
    group by all having count(f.fact_id) <> r.queue_event_count
    union all
    select r.batch_id, r.run, r.turn, 'runtime_ack_ms', r.runtime_ack_ms::varchar, (l.ack_us / 1000.0)::varchar, 'diagnostics'
    from read r join labelled l using (batch_id, run, turn)
    where l.ack_us is not null and r.runtime_ack_ms is distinct from l.ack_us / 1000.0
      and not (r.runtime_ack_ms is null and r.masked_values)
    union all
    select batch_id, run, turn, 'protocol code', own_code, stated_code, 'diagnostics'
    from read
    where stated_code is not null and own_code is distinct from stated_code
    union all
    select batch_id, run, turn, 'protocol code', own_code, summary_code, 'summary'
    from read
    where summary_code is not null and summary_code is distinct from stated_code and own_code is distinct from summary_code
      and is_witness
    union all
    -- the turn ended otherwise, as somebody says
    select batch_id, run, turn, 'protocol code', own_code, null, ended_by
    from read
    where own_code is not null and coalesce(stated_code, summary_code) is null and ended_by is not null and source_kind <> 'stream'
    union all
    select batch_id, run, turn, 'timeout class', own_timeout, stated_kind, 'diagnostics'
    from read
    where stated_kind <> 'PROVIDER_TIMEOUT' and own_timeout is distinct from stated_kind
    union all
    select batch_id, run, turn, 'timeout class', own_timeout, summary_kind, 'summary'
    from read
    where summary_kind <> 'PROVIDER_TIMEOUT' and summary_kind is distinct from stated_kind
      and own_timeout is distinct from summary_kind and is_witness
    union all
    -- a turn that nothing is known of may have asked for more
    select r.batch_id, r.run, null, 'tool_count', r.own_tool_calls::varchar, r.tool_count::varchar, 'summary'
    from main.bridge_runs r
    where r.own_tool_calls > r.tool_count
       or (r.own_tool_calls < r.tool_count
           and r.turns = (select count(*) from read w where w.batch_id = r.batch_id and w.run = r.run and w.is_witness))
    union all
    select f.batch_id, f.run, f.turn, f.figure.key, f.figure.value, c.value, c.reported_by
    from figures f
    join claims c on c.batch_id = f.batch_id and c.run = f.run and c.turn = f.turn and c.claim = f.figure.key
    where f.figure.value is not null and f.figure.value is distinct from c.value
);
