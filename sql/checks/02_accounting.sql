-- Nothing is lost silently, keys hold, and a total is the same wherever it is stated.

-- check: census_sum
-- severity: broken
-- about: the lines of a source are each counted once: the census of unit line sums to its physical lines
select s.source_id, s.lines || ' lines, ' || coalesce(sum(c.n), 0) || ' in the census' as detail
from facts.sources s
left join facts.record_census c on c.source_id = s.source_id and c.unit = 'line'
where s.lines is not null
group by s.source_id, s.lines
having coalesce(sum(c.n), 0) <> s.lines;

-- check: census_rejected
-- severity: broken
-- about: the rejected lines of a source are those of its rejects that gave no object, a torn tail included
select s.source_id, s.rejected_lines || ' rejected lines, ' || count(r.line_no) || ' in rejects' as detail
from facts.sources s
left join facts.rejects r on r.source_id = s.source_id and not r.recovered and r.block is null
    and r.reason not in ('invalid_shape', 'io', 'not_a_file')
where s.rejected_lines is not null
group by s.source_id, s.rejected_lines
having count(r.line_no) <> s.rejected_lines;

-- check: failed_sources
-- severity: broken
-- about: no adapter stumbled over a source
select source_id, coalesce(note, 'failed') as detail from facts.sources where tail_state = 'failed' and coalesce(note, '') not like 'check %';

-- check: dangling_sources
-- severity: broken
-- about: every row of facts has its source
select source_id, place || ': no such source' as detail
from (
    select distinct source_id, 'records' as place from facts.records
    union all select distinct source_id, 'dialogue' from facts.dialogue
    union all select distinct source_id, 'tool_requests' from facts.tool_requests
    union all select distinct source_id, 'tool_results' from facts.tool_results
    union all select distinct source_id, 'tool_spans' from facts.tool_spans
    union all select distinct source_id, 'turn_marks' from facts.turn_marks
    union all select distinct source_id, 'model_calls' from facts.model_calls
    union all select distinct source_id, 'session_facts' from facts.session_facts
    union all select distinct source_id, 'events' from facts.events
    union all select distinct source_id, 'content_blocks' from facts.content_blocks
    union all select distinct source_id, 'record_census' from facts.record_census
    union all select distinct source_id, 'rejects' from facts.rejects
)
anti join facts.sources s using (source_id);

-- check: facts_are_concluded
-- severity: broken
-- about: every dialogue row and every call of facts stands in mart, and nothing else does. A call in a run log may be
--   that of a sub-agent; what the audit trail says of sessions that no other source shows stays in facts
select d.source_id, 'line ' || d.line_no || ': dialogue not in mart' as detail
from facts.dialogue d
anti join mart.dialogue m on m.session_id = d.session_id and m.fact_id = d.fact_id
union all
select q.source_id, 'line ' || q.line_no || ': call not in mart'
from (
    select q.session_id, q.source_id, q.line_no, q.call_key, q.call_id_source
    from facts.tool_requests q
    anti join mart.tool_calls c on c.session_id = q.session_id and c.call_key = q.call_key
) q
join facts.sources s on s.source_id = q.source_id
anti join (
    select distinct call_key, regexp_replace(session_id, '/agent-.*$', '') as top
    from mart.tool_calls where session_id like '%/agent-%'
) a on a.top = q.session_id and a.call_key = q.call_key and store_rank(s.store_kind) >= 6
where s.store_kind <> 'qoder_audit' or (not is_guess(s.store_kind, q.call_id_source)
    and q.session_id in (select session_id from mart.sessions))
union all
select q.source_id, 'line ' || q.line_no || ': a call without an id is taken for one of another file'
from facts.tool_requests q
join facts.sources s on s.source_id = q.source_id
join mart.tool_calls c on c.session_id = q.session_id and c.call_key = q.call_key and c.request_fact_id <> q.fact_id
join facts.tool_requests o on o.session_id = c.session_id and o.fact_id = c.request_fact_id
anti join mart.tool_calls m on m.session_id = q.session_id and m.request_fact_id = q.fact_id
anti join mart.copies k on k.source_id = q.source_id and k.line_no = q.line_no and k.child = q.child
where q.call_id_source = 'synthesised' and starts_with(q.call_key, '~') and store_rank(s.store_kind) < 6
  and (q.ts, q.digest) is distinct from (o.ts, o.digest)
union all
select null, 'mart.dialogue has a row without a fact: ' || m.session_id
from mart.dialogue m
anti join facts.dialogue d on d.session_id = m.session_id and d.fact_id = m.fact_id
union all
select null, 'mart.tool_calls has a row without a fact: ' || c.session_id || ' ' || c.call_key
from mart.tool_calls c
anti join facts.tool_requests q on q.session_id = c.session_id and q.fact_id = c.request_fact_id;

-- check: keys_are_unique
-- severity: broken
-- about: fact ids, sources, sessions, calls, turns and dialogue places are each there once
select any_value(source_id) as source_id, 'fact id twice in ' || place as detail
from (
    select 'dialogue' as place, fact_id, source_id from facts.dialogue
    union all select 'tool_requests', fact_id, source_id from facts.tool_requests
    union all select 'tool_results', fact_id, source_id from facts.tool_results
    union all select 'records', fact_id, source_id from facts.records
    union all select 'model_calls', fact_id, source_id from facts.model_calls
)
group by place, fact_id having count(*) > 1
union all
select source_id, 'source twice' from facts.sources group by source_id having count(*) > 1
union all
select null, 'session twice: ' || session_id from mart.sessions group by session_id having count(*) > 1
union all
select null, 'call twice: ' || session_id || ' ' || call_key from mart.tool_calls group by session_id, call_key having count(*) > 1
union all
select null, 'turn twice: ' || session_id || ' ' || turn_no from mart.turns group by session_id, turn_no having count(*) > 1
union all
select null, 'place twice: ' || session_id || ' ' || seq from mart.dialogue group by session_id, seq having count(*) > 1;

-- check: one_total
-- severity: broken
-- about: calls, tokens and credits add up to the same in sessions and in the views they are counted from (sessions whose
--   sum no column holds, which impossible counts can do, are left out on both sides)
select null as source_id, 'tool calls: ' || a.n || ' in sessions, ' || b.n || ' in tool_calls' as detail
from (select coalesce(sum(tool_calls), 0) as n from main.sessions) a, (select count(*) as n from main.tool_calls) b
where a.n <> b.n
union all
select null, 'output tokens: ' || a.n || ' in sessions, ' || b.n || ' in model_calls'
from (select coalesce(sum(output_tokens), 0) as n from main.sessions) a,
    (select coalesce(sum(try_cast(n as bigint)), 0) as n from (
        select sum(output_tokens) as n from main.model_calls where owner = 'session' group by session_id
    )) b
where a.n <> b.n
union all
select null, 'credits: ' || a.n || ' in sessions, ' || b.n || ' in model_calls'
from (select coalesce(sum(credits), 0) as n from main.sessions) a,
    (select coalesce(sum(try_cast(n as decimal(18, 9))), 0) as n from (
        select sum(credits) as n from main.model_calls where owner = 'session' group by session_id
    )) b
where a.n <> b.n
union all
select null, 'text rows: ' || a.n || ' in sessions, ' || b.n || ' in dialogue'
from (select coalesce(sum(text_rows), 0) as n from main.sessions) a,
    (select count(*) as n from main.dialogue where kind = 'text') b
where a.n <> b.n;

-- check: latency_has_a_source
-- severity: broken
-- about: a latency is there exactly where something times the call, is never negative, and says how good it is
select q.source_id, 'call ' || c.call_key || ': latency ' || coalesce(c.latency_us::varchar, 'NULL') || ' from ' || c.latency_source as detail
from mart.tool_calls c
join facts.tool_requests q on q.session_id = c.session_id and q.fact_id = c.request_fact_id
where (c.latency_us is null) <> (c.latency_source = 'none')
   or c.latency_us < 0
   or (c.latency_quality = 'none') <> (c.latency_source = 'none')
   or (c.result_fact_id is null and c.latency_source in ('pair', 'batch'));

-- check: closed_values
-- severity: broken
-- about: columns with a closed list hold nothing else
select d.source_id, 'dialogue ' || d.role || '/' || d.kind as detail
from facts.dialogue d
where d.role not in ('user', 'assistant', 'system')
   or d.kind not in ('prompt', 'steer', 'command', 'shell', 'text', 'thinking', 'question', 'answer', 'summary', 'context',
       'objective', 'notice', 'error_notice', 'discarded')
union all
select null, 'tool_calls.status ' || status from mart.tool_calls
where status not in ('ok', 'error', 'denied', 'cancelled', 'interrupted', 'background', 'missing_result')
union all
select null, 'tool_calls.anomaly ' || anomaly from mart.tool_calls
where anomaly not in ('result_before_call', 'clock_step', 'duplicate_result', 'conflicting_result', 'orphan_result')
union all
select null, 'tool_calls.latency_source ' || latency_source from mart.tool_calls
where latency_source not in ('execution', 'provider_duration', 'start_end', 'pair', 'batch', 'none')
union all
select null, 'tool_calls.latency_quality ' || latency_quality from mart.tool_calls
where latency_quality not in ('exact', 'good', 'bound', 'none')
union all
select null, 'turns.status ' || status from mart.turns
where status not in ('completed', 'failed', 'cancelled', 'superseded', 'open')
union all
select null, 'turns.trigger ' || trigger from mart.turns where trigger not in ('person', 'scheduled', 'subagent', 'resume', 'unknown')
union all
select null, 'sessions.kind ' || kind from mart.sessions where kind not in ('root', 'subagent', 'fork', 'internal')
union all
select null, 'sessions.status ' || status from mart.sessions where status not in ('completed', 'failed', 'open')
union all
select source_id, 'sources.tail_state ' || tail_state from facts.sources
where tail_state not in ('complete', 'partial', 'nul_padded', 'truncated', 'unread', 'failed')
union all
select source_id, 'rejects.reason ' || reason from facts.rejects
where reason not in ('malformed', 'partial_tail', 'glued', 'invalid_shape', 'oversize', 'nul', 'surrogate', 'depth', 'not_object',
    'encoding', 'io', 'not_a_file')
union all
select source_id, 'record_census ' || unit || '/' || disposition from facts.record_census
where unit not in ('line', 'record', 'item')
   or disposition not in ('used', 'skipped', 'unknown', 'rejected', 'blank', 'pending')
union all
select source_id, 'model_calls ' || usage_status || '/' || grain || '/' || owner from facts.model_calls
where usage_status not in ('reported', 'suppressed', 'absent', 'placeholder')
   or grain not in ('request', 'message', 'session') or owner not in ('session', 'review', 'judge')
union all
select source_id, 'sources.source_state ' || source_state from facts.sources
where source_state not in ('present', 'gone', 'suspicious')
union all
select source_id, 'content_blocks.disposition ' || disposition from facts.content_blocks
where disposition not in ('used', 'skipped', 'unknown', 'rejected')
union all
select source_id, 'merges.reason ' || reason from facts.merges where reason not in ('resend', 'snapshot', 'human_input')
union all
select source_id, 'turn_marks.mark ' || mark from facts.turn_marks where mark not in ('start', 'end', 'within')
union all
select source_id, 'tool_spans.span ' || span from facts.tool_spans
where span not in ('execution', 'wait_permission', 'wait_human', 'wait_queue', 'hook', 'shell', 'background')
union all
select source_id, 'copies.reason ' || reason from mart.copies
where reason not in ('resume', 'fork', 'compaction', 'replay', 'resend', 'duplicate_store')
union all
select null, 'branch ' || branch from (select branch from mart.dialogue union all select branch from mart.tool_calls)
where branch not in ('live', 'dead')
union all
select null, 'model_calls.cost_basis ' || cost_basis from mart.model_calls
where cost_basis not in ('reported', 'listed', 'credits', 'subscription', 'unknown')
union all
select null, 'session_links ' || relation || '/' || confidence from mart.session_links
where relation not in ('subagent', 'fork', 'resume', 'continuation', 'compaction') or confidence not in ('explicit', 'inferred');

-- check: zero_recognition
-- severity: finding
-- about: a source whose records gave nothing at all: its format may have changed (budget: 0)
select s.source_id, s.lines - s.blank_lines - s.rejected_lines || ' records, none of them known' as detail
from facts.sources s
where s.lines - s.blank_lines - s.rejected_lines > 0
  and not exists (
      from facts.record_census c where c.source_id = s.source_id and c.unit = 'record' and c.disposition in ('used', 'skipped')
  );

-- check: rejected_lines
-- severity: finding
-- about: rejected lines over budget: more than 20 and more than 1 % of a provider's lines
select null as source_id, provider || ': ' || sum(rejected_lines) || ' of ' || sum(lines) || ' lines rejected' as detail
from facts.sources
group by provider
having sum(rejected_lines) > 20 and sum(rejected_lines) > 0.01 * sum(lines);
