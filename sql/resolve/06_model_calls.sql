-- resolve: same_requests
-- needs: facts.model_calls, facts.sources, touched
-- about: which model call of a transcript a call of a run log, or of the IDE's database, is. By the service's id of the
--   request, which transcripts have as the id of the message (1.1.28), in its usage or in the row; where none names one
--   (1.0.40, 1.1.52) by time: a transcript's row is written within two seconds of the response. A sub-agent's requests stand in
--   the log of its parent.
create or replace temp table same_requests as
with calls as (
    select m.session_id, m.request_key, store_rank(s.store_kind) >= 5 as is_low, min(m.ts) as ts
    from facts.model_calls m
    join facts.sources s on s.source_id = m.source_id
    where m.session_id in (select session_id from touched) and m.grain = 'request'
    group by all
),
named as (  -- rows of one message may name different ids
    select distinct session_id, request_key, unnest([request_key, request_id]) as id
    from facts.model_calls
    where session_id in (select session_id from touched) and grain = 'request'
),
low as (select * from calls where is_low),
high as (
    select c.*, regexp_replace(c.session_id, '/agent-.*$', '') as top
    from calls c
    where not is_low and regexp_replace(c.session_id, '/agent-.*$', '') in (select session_id from low)
),
by_id as (
    select l.session_id, l.request_key, h.session_id as into_session, h.request_key as into_key
    from (select * from low join named using (session_id, request_key)) l
    join (select * from high join named using (session_id, request_key)) h on h.top = l.session_id and h.id = l.id
    qualify row_number() over (partition by l.session_id, l.request_key order by h.session_id, h.request_key) = 1
),
in_time as (
    select session_id as top, session_id, request_key, is_low, ts, ts as place
    from low anti join by_id using (session_id, request_key) where ts is not null
    union all
    select h.top, h.session_id, h.request_key, h.is_low, h.ts, h.ts + interval 50 milliseconds
    from high h
    anti join by_id b on b.into_session = h.session_id and b.into_key = h.request_key
    where h.ts is not null
),
by_time as (
    select before.session_id, before.request_key, session_id as into_session, request_key as into_key
    from (
        select *, lag({'session_id': session_id, 'request_key': request_key, 'is_low': is_low, 'ts': ts}) over (
            partition by top order by place, is_low desc, session_id, request_key
        ) as before
        from in_time
    )
    where not is_low and before.is_low and ts - before.ts <= interval 2 seconds
)
select * from by_id
union all
select * from by_time;

-- resolve: retold
-- needs: facts.model_calls, facts.sources, copied, touched
-- about: responses that a session tells again although another had them, in records of its own: a side question is answered by an
--   agent whose file begins with a replay of its parent's messages, under other record ids. The session itself counts before
--   its agents, then the earliest.
create or replace temp table retold as
select session_id, request_key
from (
    select m.session_id, m.request_key, row_number() over (
            partition by split_part(m.session_id, ':', 1), m.request_key
            order by contains(m.session_id, '/agent-'), min(m.ts) nulls last, min(s.rel_path), m.session_id
        ) as n
    from facts.model_calls m
    join facts.sources s on s.source_id = m.source_id
    anti join copied c on c.source_id = m.source_id and c.line_no = m.line_no and c.child = m.child
    where m.session_id in (select session_id from touched) and is_response_id(m.session_id, m.request_key)
    group by m.session_id, m.request_key
)
where n > 1;

-- resolve: mart.model_calls
-- needs: facts.model_calls, facts.sources, timeline, copied, unelected, dead, same_requests, retold, priced_models
-- about: one row per model call; it is dead when all that states it is. Of several snapshots the one with most output
--   tokens wins, then the last; what else they state is the last that the best source states, credits among it. Of several
--   grains a session and owner keep the finest; a coarser one that states credits alone stays where no finer one of the
--   elected sources states any: a total is cumulative, so the largest counts, whatever file or line it stands on, and a
--   source that is not elected may be the only one that tells it. A call that a run log tells of beside a transcript counts once; one that only the log
--   tells of counts where it reports tokens (of a model that the user brought), else the transcript is the record.
--   Cost: what the log states; else, where no credits were charged and tokens are reported, what the price table lists for
--   the model at the time of the call (without a time only a price that never changed will do) and for its input tokens (a
--   total over a session says nothing of a higher tier: each call chooses its own); else unknown, and NULL.
delete from mart.model_calls where session_id in (select session_id from touched);

insert into mart.model_calls
with ranked as (
    select m.*, store_rank(s.store_kind) as rank, s.rel_path,
        case m.grain when 'request' then 1 when 'message' then 2 else 3 end as grain_rank,
        min(store_rank(s.store_kind)) over (partition by m.session_id) < 5 as has_transcript
    from facts.model_calls m
    join facts.sources s on s.source_id = m.source_id
    where m.session_id in (select session_id from touched)
),
placed as (
    select m.* replace (
            coalesce(y.into_session, m.session_id) as session_id, coalesce(y.into_key, m.request_key) as request_key
        ),
        t.turn_no,
        c.line_no is not null or w.request_key is not null or (u.source_id is not null and m.rank < 5 and m.grain_rank < 3)
            or (y.into_key is null and m.rank >= 5 and m.has_transcript and m.usage_status <> 'reported') as is_copy,
        x.line_no is not null as is_dead,
        row_number() over (partition by m.session_id order by m.ts nulls first, m.rel_path, m.line_no, m.child, m.fact_id)
            as place,
        min(m.grain_rank) over (partition by m.session_id, m.owner) as finest,
        bool_or(m.credits is not null and m.grain_rank < 3 and (u.source_id is null or m.rank >= 5))
            over (partition by m.session_id, m.owner) as has_fine_credits
    from ranked m
    left join (
        select distinct on (session_id, source_id, line_no, child) session_id, source_id, line_no, child, turn_no
        from timeline
        order by session_id, source_id, line_no, child, turn_no desc
    ) t on t.session_id = m.session_id and t.source_id = m.source_id and t.line_no = m.line_no and t.child = m.child
    left join copied c on c.source_id = m.source_id and c.line_no = m.line_no and c.child = m.child
    left join dead x on x.source_id = m.source_id and x.line_no = m.line_no and x.child = m.child
    left join unelected u on u.session_id = m.session_id and u.source_id = m.source_id
    left join retold w on w.session_id = m.session_id and w.request_key = m.request_key
    left join same_requests y on y.session_id = m.session_id and y.request_key = m.request_key and m.rank >= 5
),
best as (
    select *, row_number() over calls as nth, count(*) over (partition by session_id, request_key, owner, is_copy) as snapshots,
        case when grain_rank = 3 then max(credits) over whole else last_value(credits ignore nulls) over whole end as last_credits,
        last_value(original_credits ignore nulls) over whole as last_original,
        last_value(stop_reason ignore nulls) over whole as last_stop,
        last_value(turn_no ignore nulls) over whole as last_turn,
        last_value(message_key ignore nulls) over whole as last_message,
        last_value(model ignore nulls) over whole as last_model,
        last_value(model_is_alias ignore nulls) over whole as last_alias,
        last_value(context_ratio ignore nulls) over whole as last_ratio,
        last_value(context_window ignore nulls) over whole as last_window,
        last_value(duration_us ignore nulls) over whole as last_duration,
        last_value(ts ignore nulls) over whole as last_ts,
        min(is_copy) over (partition by session_id, request_key, owner) as has_own,
        min(is_dead) over (partition by session_id, request_key, owner, is_copy) as all_dead
    from placed
    where grain_rank = finest
       or (credits is not null and input_tokens is null and output_tokens is null and not has_fine_credits)
    window calls as (
        partition by session_id, request_key, owner, is_copy
        order by output_tokens desc nulls last,
            case usage_status when 'reported' then 0 when 'suppressed' then 1 when 'placeholder' then 2 else 3 end,
            rank, place desc
    ), whole as (
        partition by session_id, request_key, owner, is_copy order by rank desc, place
        rows between unbounded preceding and unbounded following
    )
)
select b.session_id, request_key, last_turn, last_message, grain, owner, last_model, last_alias, input_tokens, output_tokens,
    cache_read_tokens, cache_creation_5m_tokens, cache_creation_1h_tokens, reasoning_tokens, total_tokens, usage_status,
    last_credits, last_original, cost_usd_reported, last_ratio, last_window, last_duration, first_token_us, last_stop,
    last_ts, snapshots, case when all_dead then 'dead' else 'live' end, is_copy, coalesce(cost_usd_reported, listed),
    case when cost_usd_reported is not null then 'reported' when last_credits is not null then 'credits'
        when listed is not null then 'listed' else 'unknown' end,
    case when listed is not null then price_id end
from (
    select b.*, p.price_id,
        listed_cost(
            b.input_tokens, b.output_tokens, b.cache_read_tokens, b.cache_creation_5m_tokens, b.cache_creation_1h_tokens,
            p.input_usd, p.output_usd, p.cache_read_usd, p.cache_write_5m_usd, p.cache_write_1h_usd
        ) as listed
    from (select * from best where nth = 1 and is_copy = has_own) b
    left join priced_models p on p.stated = b.last_model
        and b.usage_status = 'reported' and b.cost_usd_reported is null and b.last_credits is null
        and b.last_alias is not true
        and (p.starts is null or b.last_ts >= p.starts) and (p.ends is null or b.last_ts < p.ends)
        and (p.time_from is null or (b.last_ts at time zone 'UTC')::time >= p.time_from)
        and (p.time_until is null or (b.last_ts at time zone 'UTC')::time < p.time_until)
        and (p.input_above is null or (b.input_tokens > p.input_above and b.grain <> 'session'))
        and (p.input_up_to is null or b.input_tokens <= p.input_up_to)
) b
order by b.session_id, place;
