-- resolve: adopted
-- needs: touched, members, facts.tool_requests, facts.sources
-- about: run logs and the audit trail tell of the calls of sub-agents under their parent's session: such a call is the
--   sub-agent's, where the sub-agent's transcript shows it and the parent's does not. A key that names a line says of no other
--   source which call it is.
create or replace temp table adopted as
with logged as (
    select distinct q.session_id, q.call_key
    from facts.tool_requests q
    join facts.sources s on s.source_id = q.source_id
    where store_rank(s.store_kind) >= 6 and q.call_id_source = 'native' and q.session_id in (select session_id from touched)
),
shown as (
    select distinct q.session_id, q.call_key
    from facts.tool_requests q
    semi join members m on m.session_id = q.session_id and m.source_id = q.source_id and m.rank < 6
    where q.call_key in (select call_key from logged)
)
select l.session_id, l.call_key, min(a.session_id) as owner
from logged l
anti join shown o on o.session_id = l.session_id and o.call_key = l.call_key
join shown a on a.call_key = l.call_key and starts_with(a.session_id, l.session_id || '/agent-')
group by all;

-- resolve: spans
-- needs: adopted, facts.tool_spans, facts.sources
-- about: of each call what a log timed directly, from one log (a copy of it says the same again). A shell's own start and
--   end come before those of the call around it: in current versions the end of the call is written when the whole batch
--   has ended. What it waited for is the union of its waits: permission, a person, another call, hooks. human_us is
--   what a person took.
create or replace temp table spans as
with told as (
    select coalesce(a.owner, p.session_id) as session_id, p.call_key, p.source_id, p.line_no, p.fact_id, p.span, p.outcome,
        p.started_at, p.ended_at, p.duration_us,
        first_value(p.source_id) over (
            partition by coalesce(a.owner, p.session_id), p.call_key
            order by (p.span in ('shell', 'execution')) desc, s.rel_path, p.source_id, p.line_no, p.fact_id
        ) as chosen
    from facts.tool_spans p
    join facts.sources s on s.source_id = p.source_id
    left join adopted a on a.session_id = p.session_id and a.call_key = p.call_key
    where p.session_id in (select session_id from touched)
),
runs as (
    select session_id, call_key, any_value(source_id) as source_id,
        case when bool_or(span = 'shell') then 'shell' when bool_or(span = 'execution') then 'execution' end as span,
        sum(duration_us) filter (span = 'shell') as shell_us,
        sum(duration_us) filter (span = 'execution') as call_us,
        min(started_at) filter (span = 'shell') as shell_start, max(ended_at) filter (span = 'shell') as shell_end,
        min(started_at) filter (span = 'execution') as call_start, max(ended_at) filter (span = 'execution') as call_end,
        max(line_no) filter (span = 'shell') as shell_line, max(line_no) filter (span = 'execution') as call_line,
        bool_or(span = 'shell' and outcome = 'aborted') as is_aborted,
        bool_or(span = 'shell' and outcome = 'killed') as is_killed,
        bool_or(span = 'shell' and outcome = 'backgrounded') as is_background
    from told
    where source_id = chosen
    group by all
),
waits as (
    select session_id, call_key, epoch_us(started_at) as from_us, epoch_us(ended_at) as to_us, duration_us, outcome, span,
        max(epoch_us(ended_at)) over (
            partition by session_id, call_key order by started_at, ended_at, fact_id
            rows between unbounded preceding and 1 preceding
        ) as covered_us
    from (  -- a copy of a log says the same again; another log of the session may tell of the waits
        select session_id, call_key, started_at, ended_at, duration_us, outcome, span, min(fact_id) as fact_id
        from told
        where span in ('wait_permission', 'wait_human', 'wait_queue', 'hook')
        group by all
    )
),
waited as (
    select session_id, call_key,
        sum(case when from_us is null then duration_us
            else greatest(0, to_us - greatest(from_us, coalesce(covered_us, from_us))) end)::bigint as wait_us,
        sum(duration_us) filter (span = 'wait_human' or starts_with(outcome, 'user:'))::bigint as human_us
    from waits
    group by all
)
select r.session_id, r.call_key, r.source_id, r.span, coalesce(r.shell_us, r.call_us)::bigint as execution_us,
    case when r.shell_us is null then r.call_start else r.shell_start end as started_at,
    case when r.shell_us is null then r.call_end else r.shell_end end as ended_at,
    coalesce(r.shell_line, r.call_line) as line_no, coalesce(r.is_aborted, false) as is_aborted,
    coalesce(r.is_killed, false) as is_killed, coalesce(r.is_background, false) as is_background, w.wait_us, w.human_us
from runs r
left join waited w using (session_id, call_key);

-- resolve: logged_pairs
-- needs: adopted, members, facts.tool_requests, facts.tool_results, facts.sources
-- about: of each call its own request and result in a source that is no transcript: a run log times a call so where it
--   names no start, the audit trail where nothing else does. A pair of the audit trail without a call id is tied to the
--   nth call of its session with that tool and, where it states them, these arguments: a guess.
create or replace temp table logged_pairs as
with request as (
    select coalesce(a.owner, q.session_id) as session_id, q.call_key, q.source_id, q.line_no, q.ts, s.rel_path,
        store_rank(s.store_kind) as rank, is_guess(s.store_kind, q.call_id_source) as is_guess, q.name_raw, q.digest,
        count(*) over (partition by q.session_id, q.source_id, q.batch_key) as calls_in_batch, q.batch_key
    from facts.tool_requests q
    join facts.sources s on s.source_id = q.source_id
    left join adopted a on a.session_id = q.session_id and a.call_key = q.call_key
    where store_rank(s.store_kind) >= 6 and q.session_id in (select session_id from touched)
),
pair as (
    select q.*, r.line_no as result_line, epoch_us(r.ts) - epoch_us(q.ts) as us
    from request q
    join facts.tool_results r on r.source_id = q.source_id and r.call_key = q.call_key
    left join adopted a on a.session_id = r.session_id and a.call_key = r.call_key
    where coalesce(a.owner, r.session_id) = q.session_id and r.ts >= q.ts
    qualify row_number() over (partition by q.session_id, q.call_key, q.source_id order by r.line_no, r.fact_id) = 1
),
calls as (
    select session_id, call_key, name_raw, digest,
        row_number() over (partition by session_id, name_raw order by ts, line_no, call_key) as nth,
        row_number() over (partition by session_id, name_raw, digest order by ts, line_no, call_key) as nth_alike
    from facts.tool_requests q
    semi join members m on m.session_id = q.session_id and m.source_id = q.source_id
    where (q.session_id, q.name_raw) in (select (session_id, name_raw) from pair where is_guess)
    qualify row_number() over (partition by session_id, call_key order by ts, line_no, source_id) = 1
),
guess as (
    select *, row_number() over (partition by session_id, name_raw, digest order by ts, rel_path, line_no) as nth
    from pair
    where is_guess
)
select session_id, call_key, rank, is_guess, source_id, line_no, result_line, us, rel_path,
    case when batch_key is null then 1 else calls_in_batch end as calls_in_batch
from pair
where not is_guess
union all
select g.session_id, c.call_key, g.rank, true, g.source_id, g.line_no, g.result_line, g.us, g.rel_path, 1
from guess g
join calls c on c.session_id = g.session_id and c.name_raw = g.name_raw
    and case when g.digest is null then c.nth = g.nth else c.digest = g.digest and c.nth_alike = g.nth end;
