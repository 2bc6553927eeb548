-- What trajectories (ATIF) are made of, over the sessions of the temporary table `chosen`, some of them at a time.

-- report: atif.told
-- about: the places of what a trajectory tells: dialogue and calls of the live branch. A copy of another session's
--   record is told as one, once, though two files of the session may hold it; what a better file of the same session
--   tells too is not.
create temp table told as
with copied as (
    select session_id, source_id, line_no, child
    from mart.copies
    where owner_session_id <> session_id and session_id in (select session_id from chosen)
    qualify row_number() over (
        partition by session_id, owner_session_id, owner_source_id, owner_line_no, owner_child
        order by source_id, line_no, child
    ) = 1
)
select m.session_id, m.seq, m.fact_id, 'dialogue' as what, m.is_copy
from mart.dialogue m
join facts.dialogue f on f.session_id = m.session_id and f.fact_id = m.fact_id
left join copied c on c.source_id = f.source_id and c.line_no = f.line_no and c.child = f.child
where m.branch = 'live' and (not m.is_copy or c.source_id is not null)
  and m.session_id in (select session_id from chosen)
union all
select m.session_id, m.seq, m.request_fact_id, 'call', m.is_copy
from mart.tool_calls m
join facts.tool_requests f on f.session_id = m.session_id and f.fact_id = m.request_fact_id
left join copied c on c.source_id = f.source_id and c.line_no = f.line_no and c.child = f.child
where m.branch = 'live' and (not m.is_copy or c.source_id is not null)
  and m.session_id in (select session_id from chosen);

-- report: atif.written
-- about: the sessions that make a trajectory: something is told of them, or a call of a model
select session_id from told
union
select session_id
from main.model_calls
semi join chosen using (session_id)
where owner = 'session' and branch = 'live' and grain <> 'session'
  and coalesce(input_tokens, output_tokens, credits, cost_usd) is not null
order by session_id;

-- report: atif.sessions
-- about: what a session is and adds up to, in the order of the entries; cached tokens are those of its own model calls
-- params: chunk bigint, low text, high text
with cached as (
    select session_id, try_cast(sum(cache_read_tokens) as bigint) as cached_tokens
    from main.model_calls
    where owner = 'session' and session_id between $low and $high
    group by session_id
)
select s.*, h.cached_tokens
from main.sessions s
join chosen c on c.session_id = s.session_id and c.chunk = $chunk
left join cached h on h.session_id = s.session_id
where s.session_id between $low and $high
order by c.provider, c.month, s.session_id;

-- report: atif.entries
-- about: dialogue and calls in order. The output of a call may stand in a file of another session (`elsewhere`).
-- params: chunk bigint, low text, high text
with elsewhere as (
    select m.session_id, m.call_key, f.result_text, f.result_truncated
    from (
        select m.session_id, m.call_key, m.result_fact_id
        from mart.tool_calls m
        anti join facts.tool_results r on r.session_id = m.session_id and r.fact_id = m.result_fact_id
        where m.result_fact_id is not null and m.session_id between $low and $high
    ) m
    join facts.tool_results f on f.fact_id = m.result_fact_id
)
select c.provider, c.month, t.session_id, t.seq, m.turn_no, m.kind, m.ts, m.model, m.message_key, t.is_copy,
    f.source_id, f.line_no, f.text, f.raw_envelope, f.attachments, null as call_key, null as name, null as mcp_server,
    null as args, null as status, null as is_error, null as exit_code, null as ended_at, null as latency_us,
    null as latency_source, null as latency_quality, null as has_result, null as result_text, null as result_bytes,
    null as result_truncated
from told t
join chosen c on c.session_id = t.session_id and c.chunk = $chunk
join mart.dialogue m on m.session_id = t.session_id and m.fact_id = t.fact_id
join facts.dialogue f on f.session_id = t.session_id and f.fact_id = t.fact_id
where t.what = 'dialogue' and t.session_id between $low and $high
union all
select c.provider, c.month, t.session_id, t.seq, m.turn_no, 'call', coalesce(q.ts, m.started_at), m.model,
    q.message_key, t.is_copy, q.source_id, q.line_no, null, false, null, m.call_key, coalesce(m.name_raw, m.name),
    m.mcp_server, q.args, m.status, m.is_error, m.exit_code, m.ended_at, m.latency_us, m.latency_source,
    m.latency_quality, m.result_fact_id is not null, coalesce(r.result_text, e.result_text), m.result_bytes,
    coalesce(r.result_truncated, e.result_truncated)
from told t
join chosen c on c.session_id = t.session_id and c.chunk = $chunk
join mart.tool_calls m on m.session_id = t.session_id and m.request_fact_id = t.fact_id
join facts.tool_requests q on q.session_id = t.session_id and q.fact_id = t.fact_id
left join facts.tool_results r on r.session_id = m.session_id and r.fact_id = m.result_fact_id
left join elsewhere e on e.session_id = m.session_id and e.call_key = m.call_key
where t.what = 'call' and t.session_id between $low and $high
order by provider, month, session_id, seq, call_key;

-- report: atif.usage
-- about: model calls of sessions, and the last line that states each; those of copied records are the other session's
-- params: chunk bigint, low text, high text
with stated as (
    select f.session_id, f.request_key, f.owner, arg_max(f.source_id, (f.line_no, f.source_id)) as source_id,
        max(f.line_no) as line_no
    from facts.model_calls f
    join chosen c on c.session_id = f.session_id and c.chunk = $chunk
    where f.session_id between $low and $high
    group by f.session_id, f.request_key, f.owner
)
select m.*, s.source_id, s.line_no
from main.model_calls m
join chosen c on c.session_id = m.session_id and c.chunk = $chunk
left join stated s on s.session_id = m.session_id and s.request_key = m.request_key and s.owner = m.owner
where m.session_id between $low and $high
order by m.session_id, m.ts nulls last, s.line_no, m.request_key, m.owner;

-- report: atif.links
-- about: who spawned whom, what was forked from what, and what goes on in what: seen from both sides
-- params: chunk bigint, low text, high text
select l.other_session_id as of, l.relation, l.session_id as other, l.via_call_key, true as is_origin
from main.session_links l
join chosen c on c.session_id = l.other_session_id and c.chunk = $chunk
where l.other_session_id between $low and $high
union all
select l.session_id, l.relation, l.other_session_id, l.via_call_key, false
from main.session_links l
join chosen c on c.session_id = l.session_id and c.chunk = $chunk
where l.session_id between $low and $high
order by all;
