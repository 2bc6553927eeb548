-- resolve: mart.model_calls
-- needs: facts.model_calls, timeline, copied, dead
-- about: one row per model call; it is dead when all that states it is. Of several snapshots the one with most output tokens wins, then the last; credits and
--   the stop reason are the last that were stated. Of several grains a session and owner keep the finest.
delete from mart.model_calls where session_id in (select session_id from touched);

insert into mart.model_calls
with placed as (
    select m.*, t.turn_no, c.line_no is not null as is_copy, x.line_no is not null as is_dead,
        row_number() over (partition by m.session_id order by m.ts nulls first, s.rel_path, m.line_no, m.child, m.fact_id)
            as place,
        min(case m.grain when 'request' then 1 when 'message' then 2 else 3 end) over (partition by m.session_id, m.owner)
            as finest
    from facts.model_calls m
    join facts.sources s on s.source_id = m.source_id
    left join (
        select distinct on (session_id, source_id, line_no, child) session_id, source_id, line_no, child, turn_no
        from timeline
        order by session_id, source_id, line_no, child, turn_no desc
    ) t on t.session_id = m.session_id and t.source_id = m.source_id and t.line_no = m.line_no and t.child = m.child
    left join copied c on c.source_id = m.source_id and c.line_no = m.line_no and c.child = m.child
    left join dead x on x.source_id = m.source_id and x.line_no = m.line_no and x.child = m.child
    where m.session_id in (select session_id from touched)
),
best as (
    select *, row_number() over calls as nth, count(*) over (partition by session_id, request_key, owner, is_copy) as snapshots,
        last_value(credits ignore nulls) over whole as last_credits,
        last_value(original_credits ignore nulls) over whole as last_original,
        last_value(stop_reason ignore nulls) over whole as last_stop,
        min(is_copy) over (partition by session_id, request_key, owner) as has_own,
        min(is_dead) over (partition by session_id, request_key, owner, is_copy) as all_dead
    from placed
    where finest = case grain when 'request' then 1 when 'message' then 2 else 3 end
    window calls as (
        partition by session_id, request_key, owner, is_copy
        order by output_tokens desc nulls last,
            case usage_status when 'reported' then 0 when 'suppressed' then 1 when 'placeholder' then 2 else 3 end, place desc
    ), whole as (
        partition by session_id, request_key, owner, is_copy order by place
        rows between unbounded preceding and unbounded following
    )
)
select session_id, request_key, turn_no, message_key, grain, owner, model, model_is_alias, input_tokens, output_tokens,
    cache_read_tokens, cache_creation_5m_tokens, cache_creation_1h_tokens, reasoning_tokens, total_tokens, usage_status,
    last_credits, last_original, cost_usd_reported, context_ratio, context_window, duration_us, first_token_us, last_stop,
    ts, snapshots, case when all_dead then 'dead' else 'live' end, is_copy, cost_usd_reported,
    case when cost_usd_reported is not null then 'reported' when last_credits is not null then 'credits' else 'unknown' end,
    null
from best
where nth = 1 and is_copy = has_own
order by session_id, place;
