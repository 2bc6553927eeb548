-- resolve: rekeyed
-- needs: touched, copied, facts.tool_requests, facts.sources
-- about: calls without an id are named by their line and block, which two files of one session can share: the later ones get
--   #2, #3 and so on. What says the same at the same time is one call.
create or replace temp table rekeyed as
select session_id, source_id, call_key, call_key || '#' || n as new_key
from (
    select q.session_id, q.source_id, q.call_key,
        dense_rank() over (partition by q.session_id, q.call_key order by q.ts nulls last, q.digest) as n
    from facts.tool_requests q
    join facts.sources s using (source_id)
    anti join copied c on c.source_id = q.source_id and c.line_no = q.line_no and c.child = q.child
    where q.call_id_source = 'synthesised' and starts_with(q.call_key, '~') and store_rank(s.store_kind) < 6
      and q.session_id in (select session_id from touched)
)
where n > 1;

-- resolve: carried
-- needs: mart.copies, touched, facts.tool_requests, facts.tool_results
-- about: calls that ended in another session: it begins with a copy of theirs (resumed or forked while they ran), and their own
--   has no result of them
create or replace temp table carried as
select distinct q.session_id, q.call_key, c.owner_session_id as owner
from facts.tool_requests q
join mart.copies c on c.source_id = q.source_id and c.line_no = q.line_no and c.child = q.child
anti join facts.tool_results r on r.session_id = c.owner_session_id and r.call_key = q.call_key
where c.owner_session_id <> q.session_id and q.call_id_source = 'native' and q.session_id in (select session_id from touched);

-- resolve: paired
-- needs: timeline, copied, dead, adopted, carried, members, rekeyed, reordered, facts.tool_requests, facts.tool_results,
--   facts.sources
-- about: each call with its first request and its first result, of the best source that has one. pair_us is taken inside
--   one source only: between a session and the one that goes on from it lies what nobody timed. A result that stands before
--   its call, or ends before it, times nothing. What stands before what is told by the log's own numbers where it has them
--   (at_line, at_child).
create or replace temp table paired as
with request as (
    select q.* replace (coalesce(a.owner, q.session_id) as session_id, coalesce(k.new_key, q.call_key) as call_key),
        t.seq, t.turn_no, s.host, s.rel_path, store_rank(s.store_kind) as request_rank,
        coalesce(o.at_line, q.line_no) as at_line, coalesce(o.at_child, q.child) as at_child,
        c.line_no is not null as is_copy, x.line_no is not null as is_dead
    from facts.tool_requests q
    join timeline t on t.what = 'call' and t.session_id = q.session_id and t.fact_id = q.fact_id
    join facts.sources s on s.source_id = q.source_id
    left join copied c on c.source_id = q.source_id and c.line_no = q.line_no and c.child = q.child
    left join dead x on x.source_id = q.source_id and x.line_no = q.line_no and x.child = q.child
    left join adopted a on a.session_id = q.session_id and a.call_key = q.call_key
    left join rekeyed k on k.session_id = q.session_id and k.source_id = q.source_id and k.call_key = q.call_key
    left join reordered o on o.session_id = q.session_id and o.source_id = q.source_id and o.line_no = q.line_no
        and o.child = q.child
    where not is_guess(s.store_kind, q.call_id_source) and q.session_id in (select session_id from members)
    qualify row_number() over (
        partition by coalesce(a.owner, q.session_id), coalesce(k.new_key, q.call_key)
        order by is_copy, store_rank(s.store_kind), t.seq
    ) = 1
),
results as (
    select r.* replace (coalesce(a.owner, r.session_id) as session_id, coalesce(k.new_key, r.call_key) as call_key),
        s.rel_path, store_rank(s.store_kind) as rank, null as from_session,
        coalesce(o.at_line, r.line_no) as at_line, coalesce(o.at_child, r.child) as at_child,
        count(*) over (partition by r.session_id, r.call_key, r.source_id) as results_here,
        count(distinct (r.digest, r.is_error)) over (partition by r.session_id, r.call_key, r.source_id) as digests_here
    from facts.tool_results r
    join facts.sources s using (source_id)
    left join adopted a on a.session_id = r.session_id and a.call_key = r.call_key
    left join rekeyed k on k.session_id = r.session_id and k.source_id = r.source_id and k.call_key = r.call_key
    left join reordered o on o.session_id = r.session_id and o.source_id = r.source_id and o.line_no = r.line_no
        and o.child = r.child
    where r.session_id in (select session_id from touched)
    union all
    select r.* replace (k.owner as session_id), s.rel_path, store_rank(s.store_kind), r.session_id, r.line_no, r.child, 1, 1
    from facts.tool_results r
    join carried k on k.session_id = r.session_id and k.call_key = r.call_key
    join facts.sources s using (source_id)
)
select q.session_id, q.call_key, q.seq, q.turn_no, q.fact_id as request_fact_id, r.fact_id as result_fact_id,
    q.name, q.name_raw, q.mcp_server, q.parent_call_key, q.message_key, q.host, q.target_path, q.command_head, q.is_copy,
    case when q.is_dead then 'dead' else 'live' end as branch,
    q.digest as args_digest, coalesce(q.batch_key, q.message_key) as batch_key,
    q.source_id, q.line_no as request_line, r.line_no as result_line, q.ts as request_ts, r.ts as result_ts,
    q.source_id = r.source_id as is_one_source,
    r.result_bytes, r.is_error, r.exit_code, r.status_raw, r.denial, r.provider_us, r.images,
    r.results_here, r.digests_here, r.rank as result_rank, r.from_session, q.request_rank,
    case when q.source_id = r.source_id and (q.line_no, q.child) <> (r.line_no, r.child) and r.ts >= q.ts
        then epoch_us(r.ts) - epoch_us(q.ts) end as pair_us,
    case
        when q.source_id = r.source_id and r.ts < q.ts and (r.at_line, r.at_child) < (q.at_line, q.at_child) then 'result_before_call'
        when q.source_id = r.source_id and r.ts < q.ts then 'clock_step'
        when r.digests_here > 1 then 'conflicting_result'
        when r.results_here > 1 then 'duplicate_result'
    end as anomaly
from request q
left join (
    select * from results
    qualify row_number() over (partition by session_id, call_key, source_id order by at_line, at_child, block, fact_id) = 1
) r on r.session_id = q.session_id and r.call_key = q.call_key
qualify row_number() over (
    partition by q.session_id, q.call_key
    order by is_one_source desc nulls last, r.rank nulls last, r.ts nulls last, r.rel_path, r.line_no
) = 1;

-- resolve: said_elsewhere
-- needs: paired, adopted, facts.tool_results, facts.sources
-- about: what run logs and the audit trail say of how a call ended, the run log first: it fills what the result that was
--   taken leaves open
create or replace temp table said_elsewhere as
select coalesce(a.owner, r.session_id) as session_id, r.call_key,
    arg_min(r.is_error, (store_rank(s.store_kind), s.rel_path, r.line_no)) filter (r.is_error is not null) as is_error,
    arg_min(r.exit_code, (store_rank(s.store_kind), s.rel_path, r.line_no)) filter (r.exit_code is not null) as exit_code,
    arg_min(r.denial, (store_rank(s.store_kind), s.rel_path, r.line_no)) filter (r.denial is not null) as denial,
    bool_or(r.status_raw = 'backgrounded') as is_background
from facts.tool_results r
join facts.sources s on s.source_id = r.source_id
left join adopted a on a.session_id = r.session_id and a.call_key = r.call_key
where store_rank(s.store_kind) >= 6 and r.session_id in (select session_id from touched)
group by all;

-- resolve: spilled
-- needs: stated, facts.tool_results, facts.session_facts
-- about: calls whose whole output stands in a file of its own, which the session's folder holds; the name in their result ties
--   both together. A sub-agent's lie in the folder of its top session.
create or replace temp table spilled as
select k.session_id, k.last_value as call_key, arg_min(r.fact_id, r.source_id) as fact_id,
    arg_min(r.result_bytes, r.source_id) as result_bytes
from stated k
join facts.tool_results r on r.session_id = regexp_replace(k.session_id, '/agent-.*$', '')
    and r.call_key = '~spilled/' || substr(k.key, 9)
where starts_with(k.key, 'spilled.')
group by all;

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
    where batch_key is not null and result_ts is not null and is_one_source
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
-- needs: paired, flushed, closing, spans, waits_inside, logged_pairs, said_elsewhere, spilled, facts.model_calls, mart.session_links
-- about: status and best latency of each call, by one rule for all providers: execution, provider duration, own start and
--   end, own pair (first of transcript, run log, audit trail), bound of the batch. Execution is what a second log times
--   directly (exact; start and end in the log of the call itself are start_end), else its own request and result without
--   what a person took (good, and a bound in a parallel group, whose results are written together; a denied call ran
--   never). A shell that was aborted is interrupted, unless the transcript's result says in its own word how it ended; one
--   that was killed is so only where no result came. A call without a result has no latency, unless a log timed it. A denied
--   call's time is a human wait: it is kept, and percentiles leave it out.
delete from mart.tool_calls where session_id in (select session_id from touched);

insert into mart.tool_calls
with models as (
    select session_id, message_key, any_value(model order by model) as model
    from facts.model_calls
    where session_id in (select session_id from touched) and model is not null
    group by all
),
children as (
    select other_session_id, via_call_key, min(session_id) as session_id
    from mart.session_links
    where relation = 'subagent' and via_call_key is not null
    group by all
),
log_pairs as (
    select * from logged_pairs where rank = 6
    qualify row_number() over (partition by session_id, call_key order by rel_path, source_id, line_no) = 1
),
audit_pairs as (
    select * from logged_pairs where rank = 9
    qualify row_number() over (partition by session_id, call_key order by is_guess, rel_path, source_id, line_no) = 1
),
judged as (
    select p.* replace (
            coalesce(p.is_error, e.is_error) as is_error, coalesce(p.exit_code, e.exit_code) as exit_code,
            coalesce(p.denial, e.denial) as denial, coalesce(w.fact_id, p.result_fact_id) as result_fact_id,
            coalesce(w.result_bytes, p.result_bytes) as result_bytes
        ),
        case when w.fact_id is not null then '; output in a file' else '' end as spill,
        s.span,
        case when s.execution_us is not null then greatest(0, s.execution_us - coalesce(o.us, 0)) end as execution_us,
        p.request_rank < 6 and s.source_id is not distinct from p.source_id as is_own_span,
        s.started_at as span_start, s.ended_at as span_end, s.line_no as span_line, s.wait_us,
        g.us as log_us, g.line_no as log_line, g.result_line as log_result_line,
        greatest(0, g.us - coalesce(s.human_us, 0)) as log_execution_us, s.human_us,
        a.us as audit_us, a.line_no as audit_line, a.result_line as audit_result_line, a.is_guess,
        m.model, l.session_id as child_session_id,
        greatest(
            count(*) over (partition by p.session_id, p.source_id, p.batch_key), coalesce(g.calls_in_batch, 1)
        ) as calls_in_batch,
        f.call_key is not null as is_flushed,
        call_status(
            p.result_fact_id is not null, coalesce(p.is_error, e.is_error), coalesce(p.exit_code, e.exit_code),
            coalesce(p.denial, e.denial),
            case when e.is_background or s.is_background then 'backgrounded'
                when s.is_aborted and (p.result_rank >= 6 or p.status_raw is null) then 'interrupted' else p.status_raw end,
            c.last_seq > p.seq or coalesce(s.is_aborted or s.is_killed, false)
        ) as status
    from paired p
    left join spans s on s.session_id = p.session_id and s.call_key = p.call_key
    left join log_pairs g on g.session_id = p.session_id and g.call_key = p.call_key
    left join audit_pairs a on a.session_id = p.session_id and a.call_key = p.call_key
    left join said_elsewhere e on e.session_id = p.session_id and e.call_key = p.call_key
    left join waits_inside o on o.session_id = p.session_id and o.call_key = p.call_key
    left join models m on m.session_id = p.session_id and m.message_key = p.message_key
    left join flushed f on f.session_id = p.session_id and f.call_key = p.call_key
    left join closing c on c.session_id = p.session_id and c.turn_no = p.turn_no
    left join spilled w on w.session_id = p.session_id and w.call_key = p.call_key and p.result_fact_id is not null
    left join children l on l.other_session_id = p.session_id and l.via_call_key = p.call_key
),
timed as (
    select *,
        case
            when execution_us is not null then 'span'
            when result_fact_id is null then 'none'
            when log_us is not null and status not in ('denied', 'cancelled') then 'log'
            when provider_us is not null then 'provider_duration'
            when pair_us is not null and is_flushed and calls_in_batch > 1 then 'batch'
            when pair_us is not null then 'pair'
            when log_us is not null then 'log_pair'
            when audit_us is not null then 'audit'
            else 'none'
        end as how
    from judged
)
select session_id, call_key, seq, turn_no, request_fact_id, result_fact_id, name, name_raw, mcp_server, result_bytes,
    is_error, exit_code, status,
    case how when 'span' then coalesce(span_start, request_ts) else request_ts end,
    case how when 'span' then coalesce(span_end, result_ts) else result_ts end,
    case how when 'span' then execution_us when 'log' then log_execution_us when 'provider_duration' then provider_us
        when 'log_pair' then log_us when 'audit' then audit_us when 'none' then null else pair_us end as latency_us,
    case how when 'span' then case when is_own_span then 'start_end' else 'execution' end when 'log' then 'execution'
        when 'log_pair' then 'pair' when 'audit' then 'pair' else how end as source,
    case
        when how = 'none' then 'none'
        when how = 'batch' or status = 'background' then 'bound'
        when how = 'log' and calls_in_batch > 1 then 'bound'
        when how in ('span', 'provider_duration') then 'exact'
        else 'good'
    end,
    nullif(coalesce(case how
        when 'span' then case when is_own_span then 'start and end, ' else 'run log, ' || span || ' ' end || 'ended on line ' || span_line
        when 'log' then 'run log, requested to finished, lines ' || log_line || ' and ' || log_result_line
            || case when human_us > 0 then ', without what a person took' else '' end
        when 'log_pair' then 'run log, lines ' || log_line || ' and ' || log_result_line
        when 'audit' then 'audit trail, lines ' || audit_line || ' and ' || audit_result_line
            || case when is_guess then ', ambiguous: no call id' else '' end
        when 'pair' then case request_rank when 6 then 'run log, ' when 9 then 'audit trail, ' else '' end
            || 'lines ' || request_line || ' and ' || result_line
        when 'batch' then 'lines ' || request_line || ' and ' || result_line
        else 'result in ' || from_session
    end, '') || spill, ''),
    coalesce(pair_us, log_us, case when result_fact_id is not null then audit_us end), provider_us, wait_us,
    is_human_gate(
        name, status, denial, source, case how when 'none' then null else pair_us end, provider_us,
        (select value::bigint from mart.settings s where s.name = 'human_wait_us')
    ),
    batch_key is not null and calls_in_batch > 1,
    batch_key, case when batch_key is null then 1 else calls_in_batch end,
    case when lag(status) over same_call = 'error' then lag(call_key) over same_call end,
    parent_call_key, child_session_id, model, host, target_path, command_head, branch, is_copy, anomaly
from timed
window same_call as (partition by session_id, is_copy, name_raw, args_digest order by seq)
order by session_id, seq;
