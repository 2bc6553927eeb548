-- resolve: paired
-- needs: timeline, copied, facts.tool_requests, facts.tool_results, facts.sources
-- about: each call with its first request and its first result. pair_us is taken inside one source only. A result that
--   stands before its call, or ends before it, times nothing.
create or replace temp table paired as
with request as (
    select q.*, t.seq, t.turn_no, s.host, s.rel_path, c.line_no is not null as is_copy
    from facts.tool_requests q
    join timeline t on t.what = 'call' and t.session_id = q.session_id and t.fact_id = q.fact_id
    join facts.sources s on s.source_id = q.source_id
    left join copied c on c.source_id = q.source_id and c.line_no = q.line_no and c.child = q.child
    qualify row_number() over (partition by q.session_id, q.call_key order by is_copy, t.seq) = 1
),
results as (
    select r.*, s.rel_path,
        count(*) over (partition by r.session_id, r.call_key, r.source_id) as results_here,
        count(distinct (r.digest, r.is_error)) over (partition by r.session_id, r.call_key, r.source_id) as digests_here
    from facts.tool_results r
    join facts.sources s using (source_id)
    where r.session_id in (select session_id from touched)
)
select q.session_id, q.call_key, q.seq, q.turn_no, q.fact_id as request_fact_id, r.fact_id as result_fact_id,
    q.name, q.name_raw, q.mcp_server, q.parent_call_key, q.message_key, q.host, q.target_path, q.command_head, q.is_copy,
    q.digest as args_digest, coalesce(q.batch_key, q.message_key) as batch_key,
    q.source_id, q.line_no as request_line, r.line_no as result_line, q.ts as request_ts, r.ts as result_ts,
    q.source_id = r.source_id as is_one_source,
    r.result_bytes, r.is_error, r.exit_code, r.status_raw, r.denial, r.provider_us, r.images,
    r.results_here, r.digests_here,
    case when q.source_id = r.source_id and r.ts >= q.ts then epoch_us(r.ts) - epoch_us(q.ts) end as pair_us,
    case
        when q.source_id = r.source_id and r.ts < q.ts and (r.line_no, r.child) < (q.line_no, q.child) then 'result_before_call'
        when q.source_id = r.source_id and r.ts < q.ts then 'clock_step'
        when r.digests_here > 1 then 'conflicting_result'
        when r.results_here > 1 then 'duplicate_result'
    end as anomaly
from request q
left join (
    select * from results
    qualify row_number() over (partition by session_id, call_key, source_id order by line_no, child, block, fact_id) = 1
) r on r.session_id = q.session_id and r.call_key = q.call_key
qualify row_number() over (
    partition by q.session_id, q.call_key order by is_one_source desc nulls last, r.ts nulls last, r.rel_path, r.line_no
) = 1;

-- resolve: flushed
-- needs: paired
-- about: calls of one message whose results stand at most 250 ms apart were flushed together by the agent: the pair then
--   bounds the latency and measures nothing (seen in Qoder 1.1.52: a 0.5 s and a 1.9 s call both end at 1.9 s).
create or replace temp table flushed as
select session_id, call_key
from (
    select session_id, call_key, result_ts,
        lag(result_ts) over results as before_ts, lead(result_ts) over results as after_ts
    from paired
    where batch_key is not null and result_ts is not null
    window results as (partition by session_id, source_id, batch_key order by result_ts, result_line, call_key)
)
where epoch_us(result_ts) - epoch_us(before_ts) <= 250000 or epoch_us(after_ts) - epoch_us(result_ts) <= 250000;

-- resolve: closing
-- needs: timeline, turn_ends, facts.dialogue
-- about: turns in which the person interrupted, with the place of the last interruption (behind all else where the log says
--   that the turn ended so)
create or replace temp table closing as
select session_id, turn_no, max(last_seq) as last_seq
from (
    select t.session_id, t.turn_no, t.seq as last_seq
    from facts.dialogue d
    join timeline t on t.what = 'dialogue' and t.session_id = d.session_id and t.fact_id = d.fact_id
    where d.kind = 'notice' and starts_with(d.text, '[Request interrupted')
    union all
    select session_id, turn_no, 9223372036854775807 from turn_ends where status = 'cancelled'
)
group by all;

-- resolve: mart.tool_calls
-- needs: paired, flushed, closing, waits_inside, facts.tool_spans, facts.model_calls, mart.session_links
-- about: status and best latency of each call, by one rule for all providers: execution, provider duration, own start and
--   end, own pair, bound of the batch. A call without a result has no latency. A denied call's time is a human wait: it
--   is kept, and percentiles leave it out. Execution is what a second log times; start and end in the log of the call itself
--   are start_end.
delete from mart.tool_calls where session_id in (select session_id from touched);

insert into mart.tool_calls
with spans as (
    select session_id, call_key,
        sum(duration_us) filter (span in ('execution', 'shell')) as execution_us,
        min(source_id) filter (span in ('execution', 'shell') and duration_us is not null) as span_source,
        min(started_at) filter (span in ('execution', 'shell') and duration_us is not null) as span_start,
        max(ended_at) filter (span in ('execution', 'shell') and duration_us is not null) as span_end,
        max(line_no) filter (span in ('execution', 'shell') and duration_us is not null) as span_line,
        sum(duration_us) filter (span in ('wait_permission', 'wait_human', 'wait_queue')) as wait_us
    from facts.tool_spans
    where session_id in (select session_id from touched)
    group by all
),
models as (
    select session_id, message_key, any_value(model order by model) as model
    from facts.model_calls
    where session_id in (select session_id from touched) and model is not null
    group by all
),
judged as (
    select p.*, case when s.execution_us is not null then greatest(0, s.execution_us - coalesce(o.us, 0)) end as execution_us,
        s.span_source, s.span_start, s.span_end, s.span_line,
        s.wait_us, m.model, l.session_id as child_session_id,
        count(*) over (partition by p.session_id, p.source_id, p.batch_key) as calls_in_batch,
        f.call_key is not null as is_flushed,
        call_status(p.result_fact_id is not null, p.is_error, p.exit_code, p.denial, p.status_raw, c.last_seq > p.seq)
            as status
    from paired p
    left join spans s on s.session_id = p.session_id and s.call_key = p.call_key
    left join waits_inside o on o.session_id = p.session_id and o.call_key = p.call_key
    left join models m on m.session_id = p.session_id and m.message_key = p.message_key
    left join flushed f on f.session_id = p.session_id and f.call_key = p.call_key
    left join closing c on c.session_id = p.session_id and c.turn_no = p.turn_no
    left join mart.session_links l
        on l.relation = 'subagent' and l.other_session_id = p.session_id and l.via_call_key = p.call_key
),
timed as (
    select *,
        case
            when result_fact_id is null and execution_us is null then 'none'
            when execution_us is not null then case when span_source = source_id then 'start_end' else 'execution' end
            when provider_us is not null then 'provider_duration'
            when pair_us is null then 'none'
            when is_flushed and calls_in_batch > 1 then 'batch'
            else 'pair'
        end as source
    from judged
)
select session_id, call_key, seq, turn_no, request_fact_id, result_fact_id, name, name_raw, mcp_server, result_bytes,
    is_error, exit_code, status,
    case when source in ('execution', 'start_end') then coalesce(span_start, request_ts) else request_ts end,
    case when source in ('execution', 'start_end') then coalesce(span_end, result_ts) else result_ts end,
    case source when 'execution' then execution_us when 'start_end' then execution_us when 'provider_duration' then provider_us when 'none' then null
        else pair_us end as latency_us,
    source,
    case
        when source = 'none' then 'none'
        when source = 'batch' or status = 'background' then 'bound'
        when source in ('execution', 'provider_duration', 'start_end') then 'exact'
        else 'good'
    end,
    case when source in ('pair', 'batch') then 'lines ' || request_line || ' and ' || result_line
        when source = 'start_end' then 'start and end, ended on line ' || span_line end,
    pair_us, provider_us, wait_us,
    is_human_gate(name, status, source, case source when 'none' then null else pair_us end, provider_us),
    batch_key is not null and calls_in_batch > 1,
    batch_key, case when batch_key is null then 1 else calls_in_batch end,
    case when lag(status) over same_call = 'error' then lag(call_key) over same_call end,
    parent_call_key, child_session_id, model, host, target_path, command_head, 'live', is_copy, anomaly
from timed
window same_call as (partition by session_id, is_copy, name_raw, args_digest order by seq)
order by session_id, seq;
