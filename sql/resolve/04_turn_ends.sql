-- resolve: turn_ends
-- needs: timeline, copied, facts.turn_marks
-- about: how turns ended, where the log says so itself: a start of status_raw open promises an end of the same native turn id.
--   Without one the turn was superseded by the next, or is open. A word for its end that nobody knows is NULL.
create or replace temp table turn_ends as
with starts as (
    select t.session_id, t.turn_no, m.native_turn_id, m.status_raw,
        lead(t.turn_no) over (partition by t.session_id order by t.turn_no) is not null as is_followed
    from timeline t
    join facts.turn_marks m on m.session_id = t.session_id and m.fact_id = t.fact_id
    where t.what = 'start'
),
ends as (
    select m.*
    from facts.turn_marks m
    anti join copied c on c.source_id = m.source_id and c.line_no = m.line_no and c.child = m.child
    where m.mark = 'end' and m.native_turn_id is not null and m.session_id in (select session_id from touched)
    qualify row_number() over (
        partition by m.session_id, m.native_turn_id order by m.ts desc nulls last, m.line_no desc, m.child desc, m.fact_id
    ) = 1
)
select s.session_id, s.turn_no, e.ts, e.reason, e.error_class, e.http_status, e.reported_us, e.first_token_us,
    case
        when e.fact_id is null then case when s.is_followed then 'superseded' else 'open' end
        when e.status_raw in ('cancelled', 'canceled', 'interrupted', 'aborted') then 'cancelled'
        when e.status_raw in ('failed', 'error', 'timed_out') or e.error_class is not null then 'failed'
        when coalesce(e.status_raw, 'completed') = 'completed' then 'completed'
    end as status
from starts s
left join ends e on e.session_id = s.session_id and e.native_turn_id = s.native_turn_id
where s.status_raw = 'open';

-- resolve: waits_inside
-- needs: adopted, facts.tool_spans, touched
-- about: of each call how long it waited for an approval or a person while a log counted it as running: that is no execution.
--   What a copy of a log says again is one span.
create or replace temp table waits_inside as
with told as (
    select distinct coalesce(a.owner, p.session_id) as session_id, p.call_key, p.span, p.started_at, p.ended_at
    from facts.tool_spans p
    left join adopted a on a.session_id = p.session_id and a.call_key = p.call_key
    where p.span in ('execution', 'wait_permission', 'wait_human') and p.session_id in (select session_id from touched)
)
select e.session_id, e.call_key,
    try_cast(sum(least(epoch_us(e.ended_at), epoch_us(w.ended_at)) - greatest(epoch_us(e.started_at), epoch_us(w.started_at)))
        as bigint) as us
from told e
join told w on w.session_id = e.session_id and w.call_key = e.call_key
    and w.started_at < e.ended_at and w.ended_at > e.started_at
where e.span = 'execution' and w.span <> 'execution'
group by all;
