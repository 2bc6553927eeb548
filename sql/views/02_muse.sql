-- What Muse Code's logs tell beyond the plain views: runs as turns, and sub-agents with what became of them.

-- object: main.muse_turns
-- kind: view
-- grain: one row per run of a Muse session
-- about: Muse's runs with what happened in each: a scheduled run has no prompt, a run without an end is superseded or open.
-- columns:
--   session_id: provider[.realm]:native id
--   project: name of the project: the user's own, else of the git remote, the repository or the working folder
--   session_kind: root, subagent, fork or internal (the agent's own reminders)
--   turn_no: turn, from 1
--   run_id: id of the run
--   trigger: person, scheduled, subagent or unknown (the log's head is cut, or its prompt cannot be read)
--   prompt: text of the prompt or of the task; NULL where nobody asked (a prompt that never ran is no run's)
--   status: completed, failed, cancelled, superseded or open; NULL where the log's word for its end cannot be read
--   reason: why it ended so
--   error_class: class of the failure
--   http_status: HTTP status of the failure
--   started_at: start
--   ended_at: end
--   reported_ms: duration the log states, milliseconds
--   wall_ms: start to end as recorded, milliseconds
--   first_token_ms: time to the first token, milliseconds
--   steers: what the person added while it ran
--   texts: rows of kind text
--   thoughts: rows of kind thinking
--   questions: questions asked of the person
--   tool_calls: calls
--   tool_errors: calls of status error
--   tool_wall_ms: union of the tool calls' intervals, milliseconds
--   automated_wait_ms: waits for automated approval, milliseconds
--   human_wait_ms: waits for a person, milliseconds
--   model_calls: model calls of the session itself
--   input_tokens: input tokens, cached ones included
--   output_tokens: output tokens, reasoning included
--   review_tokens: tokens of the automated approval review, which are in no other total
create view main.muse_turns as
with said as (
    select m.session_id, m.turn_no,
        arg_min(f.text, m.seq) filter (m.kind in ('prompt', 'objective') and m.message_key = n.native_turn_id) as prompt,
        count(*) filter (m.kind = 'steer') as steers, count(*) filter (m.kind = 'text') as texts,
        count(*) filter (m.kind = 'thinking') as thoughts, count(*) filter (m.kind = 'question') as questions
    from mart.dialogue m
    join facts.dialogue f on f.session_id = m.session_id and f.fact_id = m.fact_id
    join mart.turns n on n.session_id = m.session_id and n.turn_no = m.turn_no
    where not m.is_copy and m.branch = 'live' and starts_with(m.session_id, 'muse')
    group by all
),
waits as (
    select session_id, call_key, sum(duration_us) filter (span = 'wait_permission') as automated_us,
        sum(duration_us) filter (span = 'wait_human') as human_us
    from facts.tool_spans
    where starts_with(session_id, 'muse')
    group by all
),
called as (
    select c.session_id, c.turn_no, count(*) as tool_calls, count(*) filter (c.status = 'error') as tool_errors,
        try_cast(sum(w.automated_us) as bigint) as automated_us, try_cast(sum(w.human_us) as bigint) as human_us
    from mart.tool_calls c
    left join waits w on w.session_id = c.session_id and w.call_key = c.call_key
    where not c.is_copy and starts_with(c.session_id, 'muse')
    group by all
),
used as (
    select session_id, turn_no, count(*) filter (owner = 'session') as model_calls,
        try_cast(sum(input_tokens) filter (owner = 'session') as bigint) as input_tokens,
        try_cast(sum(output_tokens) filter (owner = 'session') as bigint) as output_tokens,
        try_cast(sum(coalesce(total_tokens, input_tokens + output_tokens)) filter (owner = 'review') as bigint) as review_tokens
    from mart.model_calls
    where not is_copy and starts_with(session_id, 'muse')
    group by all
)
select t.session_id, s.project, s.kind as session_kind, t.turn_no, t.native_turn_id as run_id, t.trigger, d.prompt, t.status,
    t.reason, t.error_class, t.http_status, t.started_at, t.ended_at, t.reported_us / 1000.0 as reported_ms,
    t.wall_us / 1000.0 as wall_ms, t.first_token_us / 1000.0 as first_token_ms, coalesce(d.steers, 0) as steers,
    coalesce(d.texts, 0) as texts, coalesce(d.thoughts, 0) as thoughts, coalesce(d.questions, 0) as questions,
    coalesce(c.tool_calls, 0) as tool_calls, coalesce(c.tool_errors, 0) as tool_errors, t.tool_wall_us / 1000.0 as tool_wall_ms,
    c.automated_us / 1000.0 as automated_wait_ms, c.human_us / 1000.0 as human_wait_ms, coalesce(u.model_calls, 0) as model_calls,
    u.input_tokens, u.output_tokens, u.review_tokens
from mart.turns t
join mart.sessions s using (session_id)
left join said d using (session_id, turn_no)
left join called c using (session_id, turn_no)
left join used u using (session_id, turn_no)
where s.provider = 'muse';

-- object: main.muse_subagents
-- kind: view
-- grain: one row per spawning call
-- about: What became of each sub-agent that a Muse session spawned. A child's own log says how it ended; where there is none (one
--   that tells of approvals alone is none), a wait that answers ready does, else the end of the turn that spawned it:
--   children nobody waits for are common. One that was waited for, and not until it was done, is open.
-- columns:
--   session_id: session that spawned it
--   project: name of the project: the user's own, else of the git remote, the repository or the working folder
--   turn_no: turn of the spawning call
--   call_key: spawning call
--   subagent_id: id the parent knows it by; NULL where the spawn was refused
--   role: role it was given
--   task: task it was given
--   answer: accepted, rejected, or what else the spawn answered; NULL without a result
--   reason: why it was refused
--   waits: calls that waited for it
--   ready_at: when a wait was first told that it is done
--   state: completed, completed_unwaited, failed, cancelled or open
--   closed_by: wait, own_log, parent_end or refusal; NULL while it is open
--   child_session_id: its session, where the log or its own log ties it to the call
--   has_log: its own log is in the store
--   started_at: start of its log
--   ended_at: end of its log
--   tool_calls: calls in its log
--   input_tokens: input tokens of its log, cached ones included
--   output_tokens: output tokens of its log, reasoning included
create view main.muse_subagents as
with told as (
    select session_id, subtype, summary, ts, attrs ->> 'call_key' as call_key, attrs ->> 'subagent_id' as subagent_id,
        attrs ->> 'child_session_id' as child_session_id, attrs ->> 'role' as role
    from facts.events
    where kind = 'subagent' and starts_with(session_id, 'muse')
),
answers as (
    select session_id, call_key, arg_min(subtype, ts) as answer, arg_min(summary, ts) as reason, arg_min(subagent_id, ts) as subagent_id
    from told
    where call_key is not null and not starts_with(subtype, 'wait_') and child_session_id is null
    group by all
),
bound as (
    select session_id, subagent_id, min(child_session_id) as child_session_id, min(role) as role
    from told
    where subagent_id is not null
    group by all
),
waits as (
    select session_id, subagent_id, count(distinct call_key) as waits, min(ts) filter (subtype = 'wait_ready') as ready_at
    from told
    where starts_with(subtype, 'wait_')
    group by all
),
spawns as (
    select c.session_id, c.turn_no, c.call_key, a.subagent_id, a.answer, a.reason, b.role, coalesce(w.waits, 0) as waits, w.ready_at,
        coalesce(c.child_session_id, b.child_session_id) as child_session_id, c.request_fact_id
    from mart.tool_calls c
    left join answers a on a.session_id = c.session_id and a.call_key = c.call_key
    left join bound b on b.session_id = c.session_id and b.subagent_id = a.subagent_id
    left join waits w on w.session_id = c.session_id and w.subagent_id = a.subagent_id
    where c.name = 'Task' and not c.is_copy and starts_with(c.session_id, 'muse')
),
logs as (
    select *
    from mart.sessions
    where provider = 'muse' and session_id in (
        select session_id from facts.records
        where starts_with(session_id, 'muse') and not starts_with(record_kind, 'runtime.session/approval/')
    )
),
ends as (
    select session_id, arg_max(coalesce(status, ''), turn_no) as status from mart.turns where starts_with(session_id, 'muse') group by all
)
select p.session_id, s.project, p.turn_no, p.call_key, p.subagent_id,
    coalesce(p.role, case when q.args_parse_ok then q.args ->> 'role' end) as role,
    case when q.args_parse_ok then coalesce(q.args ->> 'task_name', q.args ->> 'description', q.args ->> 'prompt') end as task,
    p.answer, p.reason, p.waits, p.ready_at,
    case
        when p.answer = 'rejected' then 'failed'
        when e.status in ('completed', 'failed', 'cancelled') then e.status
        when p.ready_at is not null then 'completed'
        when is_left then 'completed_unwaited'
        else 'open'
    end as state,
    case
        when p.answer = 'rejected' then 'refusal'
        when p.ready_at is not null then 'wait'
        when e.status in ('completed', 'failed', 'cancelled') then 'own_log'
        when is_left then 'parent_end'
    end as closed_by,
    p.child_session_id, k.session_id is not null as has_log, k.started_at, k.ended_at, k.tool_calls, k.input_tokens, k.output_tokens
from spawns p
join mart.sessions s on s.session_id = p.session_id
join facts.tool_requests q on q.session_id = p.session_id and q.fact_id = p.request_fact_id
left join mart.turns t on t.session_id = p.session_id and t.turn_no = p.turn_no
left join logs k on k.session_id = p.child_session_id
left join ends e on e.session_id = p.child_session_id and k.session_id is not null
cross join lateral (
    select k.session_id is null and p.waits = 0 and p.answer is not null and t.status in ('completed', 'failed', 'cancelled') as is_left
) left_alone
where s.provider = 'muse';

-- object: main.muse_session_report
-- kind: view
-- grain: one row per Muse session of kind root or fork
-- about: The lines of the Muse report. Percentiles take calls of status ok and error that something times exactly or well, without
--   those that waited for a person.
-- columns:
--   session_id: provider[.realm]:native id
--   title: title by precedence: given by the person, by the agent, first prompt
--   project: name of the project: the user's own, else of the git remote, the repository or the working folder
--   kind: root or fork
--   started_at: start
--   ended_at: end
--   turns: runs
--   scheduled: runs that nobody asked for
--   failed: runs that failed
--   cancelled: runs that were cancelled
--   unfinished: runs without an end: superseded or open
--   prompts: what a person asked
--   steers: what a person added while a run went on
--   text_rows: rows of kind text
--   thinking_rows: rows of kind thinking
--   subagents: spawning calls
--   unwaited: sub-agents that nobody waited for
--   tool_calls: calls
--   tool_errors: calls of status error
--   p50_ms: median latency, milliseconds
--   p95_ms: 95th percentile of the same, milliseconds
--   human_wait_ms: waits for a person, milliseconds
--   input_tokens: input tokens, cached ones included
--   output_tokens: output tokens, reasoning included
--   review_tokens: tokens of the automated approval review
--   retries: requests to the provider that were tried again
--   compactions: summaries put in the place of the conversation
--   unknown_records: records that nobody has described
--   rejected_lines: non-blank lines that gave no JSON object, a torn tail included
--   raw_envelopes: rows that show transport JSON
create view main.muse_session_report as
with ran as (
    select session_id, count(*) as turns, count(*) filter (trigger = 'scheduled') as scheduled,
        count(*) filter (status = 'failed') as failed, count(*) filter (status = 'cancelled') as cancelled,
        count(*) filter (status in ('superseded', 'open')) as unfinished, sum(steers)::bigint as steers,
        sum(human_wait_ms) as human_wait_ms, try_cast(sum(review_tokens) as bigint) as review_tokens
    from main.muse_turns
    group by session_id
),
spawned as (
    select session_id, count(*) as subagents, count(*) filter (waits = 0 and answer = 'accepted') as unwaited
    from main.muse_subagents
    group by session_id
),
timed as (
    select session_id, round(quantile_cont(latency_us / 1000.0, 0.5), 3) as p50_ms, round(quantile_cont(latency_us / 1000.0, 0.95), 3) as p95_ms
    from mart.tool_calls
    where not is_copy and status in ('ok', 'error') and latency_quality in ('exact', 'good') and not human_gate_suspected
      and starts_with(session_id, 'muse')
    group by session_id
),
happened as (
    select session_id, count(*) filter (kind = 'retry') as retries,
        count(*) filter (kind = 'compaction' and attrs ->> 'install_id' is not null) as compactions
    from main.events
    where provider = 'muse'
    group by session_id
),
unread as (
    select s.session_id, sum(c.n)::bigint as unknown_records
    from facts.record_census c
    join facts.sources s using (source_id)
    where c.unit = 'record' and c.disposition = 'unknown' and s.provider = 'muse'
    group by s.session_id
)
select s.session_id, s.title, s.project, s.kind, s.started_at, s.ended_at, coalesce(r.turns, 0) as turns,
    coalesce(r.scheduled, 0) as scheduled, coalesce(r.failed, 0) as failed, coalesce(r.cancelled, 0) as cancelled,
    coalesce(r.unfinished, 0) as unfinished, s.prompts, coalesce(r.steers, 0) as steers, s.text_rows, s.thinking_rows,
    coalesce(a.subagents, 0) as subagents, coalesce(a.unwaited, 0) as unwaited, s.tool_calls, s.tool_errors, t.p50_ms, t.p95_ms,
    r.human_wait_ms, s.input_tokens, s.output_tokens, r.review_tokens, coalesce(h.retries, 0) as retries,
    coalesce(h.compactions, 0) as compactions, coalesce(u.unknown_records, 0) as unknown_records, s.rejected_lines, s.raw_envelopes
from mart.sessions s
left join ran r using (session_id)
left join spawned a using (session_id)
left join timed t using (session_id)
left join happened h using (session_id)
left join unread u using (session_id)
where s.provider = 'muse' and s.kind in ('root', 'fork');

-- object: main.muse_latest
-- kind: macro
-- grain: one row per session of the Muse report over n sessions
-- about: The latest n Muse sessions that have an end, latest first; of one project, or that ended in a span of time, where asked.
-- columns:
--   session_id: provider[.realm]:native id
--   title: title by precedence: given by the person, by the agent, first prompt
--   project: name of the project: the user's own, else of the git remote, the repository or the working folder
--   kind: root or fork
--   started_at: start
--   ended_at: end
--   turns: runs
--   scheduled: runs that nobody asked for
--   failed: runs that failed
--   cancelled: runs that were cancelled
--   unfinished: runs without an end: superseded or open
--   prompts: what a person asked
--   steers: what a person added while a run went on
--   text_rows: rows of kind text
--   thinking_rows: rows of kind thinking
--   subagents: spawning calls
--   unwaited: sub-agents that nobody waited for
--   tool_calls: calls
--   tool_errors: calls of status error
--   p50_ms: median latency, milliseconds
--   p95_ms: 95th percentile of the same, milliseconds
--   human_wait_ms: waits for a person, milliseconds
--   input_tokens: input tokens, cached ones included
--   output_tokens: output tokens, reasoning included
--   review_tokens: tokens of the automated approval review
--   retries: requests to the provider that were tried again
--   compactions: summaries put in the place of the conversation
--   unknown_records: records that nobody has described
--   rejected_lines: non-blank lines that gave no JSON object, a torn tail included
--   raw_envelopes: rows that show transport JSON
create macro main.muse_latest(n, only_project := null, since := null, until := null) as table
select *
from main.muse_session_report
where ended_at is not null and is_asked(null, project, ended_at, null, only_project, since, until)
order by ended_at desc, session_id
limit n;

-- object: main.muse_report
-- kind: macro
-- grain: one row
-- about: The Muse report: totals over the latest n sessions, and the latency of all their calls.
-- columns:
--   sessions: number of sessions
--   turns: runs
--   scheduled: runs that nobody asked for
--   failed: runs that failed
--   cancelled: runs that were cancelled
--   unfinished: runs without an end: superseded or open
--   prompts: what a person asked
--   steers: what a person added while a run went on
--   text_rows: rows of kind text
--   thinking_rows: rows of kind thinking
--   subagents: spawning calls
--   unwaited: sub-agents that nobody waited for
--   tool_calls: calls
--   tool_errors: calls of status error
--   p50_ms: median latency, milliseconds
--   p95_ms: 95th percentile of the same, milliseconds
--   human_wait_ms: waits for a person, milliseconds
--   input_tokens: input tokens, cached ones included
--   output_tokens: output tokens, reasoning included
--   review_tokens: tokens of the automated approval review
--   retries: requests to the provider that were tried again
--   compactions: summaries put in the place of the conversation
--   unknown_records: records that nobody has described
--   rejected_lines: non-blank lines that gave no JSON object, a torn tail included
--   raw_envelopes: rows that show transport JSON
create macro main.muse_report(n, only_project := null, since := null, until := null) as table
with latest as (
    from main.muse_latest(n, only_project := only_project, since := since, until := until)
),
calls as (
    select round(quantile_cont(latency_us / 1000.0, 0.5), 3) as p50_ms, round(quantile_cont(latency_us / 1000.0, 0.95), 3) as p95_ms
    from mart.tool_calls
    where session_id in (select session_id from latest) and not is_copy and status in ('ok', 'error')
      and latency_quality in ('exact', 'good') and not human_gate_suspected
)
select count(*) as sessions, coalesce(sum(turns), 0)::bigint as turns, coalesce(sum(scheduled), 0)::bigint as scheduled,
    coalesce(sum(failed), 0)::bigint as failed, coalesce(sum(cancelled), 0)::bigint as cancelled,
    coalesce(sum(unfinished), 0)::bigint as unfinished, coalesce(sum(prompts), 0)::bigint as prompts,
    coalesce(sum(steers), 0)::bigint as steers, coalesce(sum(text_rows), 0)::bigint as text_rows,
    coalesce(sum(thinking_rows), 0)::bigint as thinking_rows, coalesce(sum(subagents), 0)::bigint as subagents,
    coalesce(sum(unwaited), 0)::bigint as unwaited, coalesce(sum(tool_calls), 0)::bigint as tool_calls,
    coalesce(sum(tool_errors), 0)::bigint as tool_errors, any_value(calls.p50_ms) as p50_ms, any_value(calls.p95_ms) as p95_ms,
    round(sum(human_wait_ms), 3) as human_wait_ms, try_cast(sum(input_tokens) as bigint) as input_tokens,
    try_cast(sum(output_tokens) as bigint) as output_tokens, try_cast(sum(review_tokens) as bigint) as review_tokens,
    coalesce(sum(retries), 0)::bigint as retries, coalesce(sum(compactions), 0)::bigint as compactions,
    coalesce(sum(unknown_records), 0)::bigint as unknown_records, coalesce(sum(rejected_lines), 0)::bigint as rejected_lines,
    coalesce(sum(raw_envelopes), 0)::bigint as raw_envelopes
from latest, calls;
