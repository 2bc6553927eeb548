-- report: availability.heading
-- about: how often the services behind the agents were there: Bridge turns by class, errors and retries by day
-- params: provider text, project text, since timestamptz, until timestamptz
select how_many((
        select coalesce(sum(turns), 0) from main.provider_availability p
        where is_asked('qoder_bridge', null, p.stamp, $provider, $project, $since, $until)
    ), 'Bridge turn') || ', ' || how_many((
        select count(*) from main.events e where e.kind in ('error', 'retry') and is_asked(e.provider, e.project, e.ts, $provider, $project, $since, $until)
    ), 'error or retry event') || ', ' || how_many((
        select count(*) from main.turns t where t.status = 'failed' and is_asked(t.provider, t.project, t.started_at, $provider, $project, $since, $until)
    ), 'failed turn') as heading;

-- report: availability.bridge
-- about: what became of the turns of Bridge batches, by batch and model
-- title: Bridge
-- bars: turns
-- params: provider text, project text, since timestamptz, until timestamptz
select left(p.batch_id, 29) as batch, p.model, p.turns, p.answered, p.unavailable, p.queue_timeouts, p.response_timeouts,
    p.continuation_timeouts, round(100 * p.available_share, 1) as available_percent, round(p.longest_queue_wait_ms) as longest_queue_wait_ms,
    round(p.median_first_token_ms) as median_first_token_ms
from main.provider_availability p
where is_asked('qoder_bridge', null, p.stamp, $provider, $project, $since, $until)
order by p.batch_id, p.model;

-- report: availability.rows
-- about: by day and provider: turns, those that failed, and errors and retries
-- title: By day, the latest
-- bars: failed
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC, days integer 31
with turned as (
    select t.provider, strftime(timezone($tz, t.started_at), '%Y-%m-%d') as day, count(*) as turns,
        count(*) filter (t.status = 'failed') as failed
    from main.turns t
    where is_asked(t.provider, t.project, t.started_at, $provider, $project, $since, $until)
    group by all
),
happened as (
    select e.provider, strftime(timezone($tz, e.ts), '%Y-%m-%d') as day, count(*) filter (e.kind = 'error') as errors,
        count(*) filter (e.kind = 'retry') as retries
    from main.events e
    where e.kind in ('error', 'retry') and is_asked(e.provider, e.project, e.ts, $provider, $project, $since, $until)
    group by all
)
select coalesce(t.day, h.day) as day, coalesce(t.provider, h.provider) as provider, coalesce(t.turns, 0) as turns,
    coalesce(t.failed, 0) as failed, coalesce(h.errors, 0) as errors, coalesce(h.retries, 0) as retries
from turned t
full join happened h on h.provider = t.provider and h.day is not distinct from t.day
qualify dense_rank() over (order by coalesce(t.day, h.day) desc nulls last) <= $days
order by day desc nulls last, provider;
