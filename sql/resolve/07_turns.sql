-- resolve: mart.turns
-- needs: timeline, dead, turn_ends, mart.dialogue, mart.tool_calls, mart.model_calls, facts.turn_marks
-- about: a turn goes from what starts it to what starts the next. Its status is judged by the log alone: interrupted is
--   cancelled, ending in an error is failed, a last answer with a stop reason other than tool use is completed; else the
--   next turn supersedes it, or it is open; where the log tells the ends of turns, that is what counts. Tool wall time is the union of the intervals of its calls: parallel calls
--   are never summed. A sum that no BIGINT holds (impossible clocks) is NULL: one odd file must not stop a load.
delete from mart.turns where session_id in (select session_id from touched);

insert into mart.turns
with starts as (
    select t.session_id, t.turn_no, m.native_turn_id, m.trigger, m.ts, m.source_id, m.line_no, m.child,
        m.reported_us, m.first_token_us, m.error_class, m.http_status, m.reason
    from timeline t
    join facts.turn_marks m on m.session_id = t.session_id and m.fact_id = t.fact_id
    where t.what = 'start'
),
ends as (
    select session_id, native_turn_id, max(reported_us) as reported_us
    from facts.turn_marks
    where mark = 'end' and native_turn_id is not null and session_id in (select session_id from touched)
    group by all
),
extent as (
    select t.session_id, t.turn_no, min(t.ts) as first_ts, max(t.ts) as last_ts
    from timeline t
    anti join copied c on c.source_id = t.source_id and c.line_no = t.line_no and c.child = t.child
    where t.what in ('record', 'start')
    group by all
),
said as (
    select d.session_id, d.turn_no, arg_max(d.kind, d.seq) as last_kind, arg_max(d.role, d.seq) as last_role
    from mart.dialogue d
    where not d.is_copy
    group by all
),
stopped as (
    select session_id, turn_no, arg_max(stop_reason, ts) filter (stop_reason is not null) as stop_reason
    from mart.model_calls
    where not is_copy
    group by all
),
intervals as (
    select session_id, turn_no, epoch_us(started_at) as from_us, epoch_us(started_at) + latency_us as to_us,
        max(epoch_us(started_at) + latency_us) over (
            partition by session_id, turn_no order by started_at, latency_us, call_key
            rows between unbounded preceding and 1 preceding
        ) as covered_us
    from mart.tool_calls
    where latency_us is not null and started_at is not null and not is_copy
),
tools as (
    select session_id, turn_no, try_cast(sum(greatest(0, to_us - greatest(from_us, coalesce(covered_us, from_us)))) as bigint) as wall_us,
        try_cast(sum(to_us - from_us) as bigint) as sum_us
    from intervals
    group by all
)
select s.session_id, s.turn_no, s.native_turn_id, coalesce(s.trigger, 'unknown'), s.source_id, s.line_no, s.child,
    coalesce(s.ts, e.first_ts), coalesce(te.ts, e.last_ts), coalesce(te.reported_us, s.reported_us, n.reported_us),
    epoch_us(coalesce(te.ts, e.last_ts)) - epoch_us(coalesce(s.ts, e.first_ts)),
    coalesce(te.first_token_us, s.first_token_us), tools.wall_us, tools.sum_us,
    case
        when te.session_id is not null then te.status
        when c.last_seq is not null then 'cancelled'
        when said.last_kind = 'error_notice' then 'failed'
        when stopped.stop_reason is not null and stopped.stop_reason not in ('tool_use', 'pause_turn') then 'completed'
        when stopped.stop_reason is null and said.last_role = 'assistant' and said.last_kind = 'text' then 'completed'
        when lead(s.turn_no) over (partition by s.session_id order by s.turn_no) is not null then 'superseded'
        else 'open'
    end,
    coalesce(te.error_class, s.error_class), coalesce(te.http_status, s.http_status), coalesce(te.reason, s.reason),
    case when x.line_no is null then 'live' else 'dead' end
from starts s
left join dead x on x.source_id = s.source_id and x.line_no = s.line_no and x.child = s.child
left join turn_ends te on te.session_id = s.session_id and te.turn_no = s.turn_no
left join extent e on e.session_id = s.session_id and e.turn_no = s.turn_no
left join ends n on n.session_id = s.session_id and n.native_turn_id = s.native_turn_id
left join said on said.session_id = s.session_id and said.turn_no = s.turn_no
left join stopped on stopped.session_id = s.session_id and stopped.turn_no = s.turn_no
left join tools on tools.session_id = s.session_id and tools.turn_no = s.turn_no
left join closing c on c.session_id = s.session_id and c.turn_no = s.turn_no
where s.session_id in (select session_id from touched)
order by s.session_id, s.turn_no;
