-- report: latency.heading
-- about: where tool time goes: percentiles with and without waits for a person, by provider, tool, model and hour, and the
--   slowest calls
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC
select how_many(coalesce(sum(measured), 0), 'measured call') || ': p50 ' || coalesce(round(any_value(p50_own_ms))::bigint::varchar, '?')
    || ' ms, p95 ' || coalesce(round(any_value(p95_own_ms))::bigint::varchar, '?') || ' ms without '
    || how_many(coalesce(sum(human_waits), 0), 'probable human wait') as heading
from main.latency_by($provider, $project, $since, $until, $tz)
where dimension = 'all';

-- report: latency.providers
-- about: latency by provider; own: without calls that probably waited for a person
-- title: By provider
-- bars: total_s
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC
select value as provider, calls, measured, bounds, human_waits, p50_ms, p90_ms, p95_ms, p99_ms, p50_own_ms, p90_own_ms, p95_own_ms,
    p99_own_ms, total_s
from main.latency_by($provider, $project, $since, $until, $tz)
where dimension = 'provider'
order by calls desc, provider;

-- report: latency.tools
-- about: latency by tool
-- title: By tool
-- bars: total_s
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC
select value as tool, calls, measured, bounds, human_waits, p50_ms, p90_ms, p95_ms, p99_ms, p50_own_ms, p90_own_ms, p95_own_ms,
    p99_own_ms, total_s
from main.latency_by($provider, $project, $since, $until, $tz)
where dimension = 'tool'
order by total_s desc nulls last, calls desc, tool;

-- report: latency.models
-- about: latency by model that asked for the call
-- title: By model
-- bars: total_s
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC
select coalesce(value, '(not stated)') as model, calls, measured, bounds, human_waits, p50_own_ms, p90_own_ms, p95_own_ms, p99_own_ms,
    total_s
from main.latency_by($provider, $project, $since, $until, $tz)
where dimension = 'model'
order by calls desc, model;

-- report: latency.hours
-- about: latency by hour of the day
-- title: By hour of the day
-- bars: calls
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC
select value as hour, calls, measured, human_waits, p50_own_ms, p90_own_ms, p95_own_ms, p99_own_ms
from main.latency_by($provider, $project, $since, $until, $tz)
where dimension = 'hour'
order by hour nulls last;

-- report: latency.slowest
-- about: the slowest calls, with what timed them, and why where it is above an hour
-- title: Slowest calls
-- bars: latency_ms
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC, calls integer 20
select local_time(l.started_at, $tz) as started, short_id(l.session_id) as session, l.name as tool, l.status,
    round(l.latency_ms, 1) as latency_ms, l.latency_source as source, l.latency_quality as quality, l.human_gate_suspected as human_wait,
    l.long_because, round(l.wait_ms, 1) as wait_ms, l.project, l.call_key
from main.tool_latency l
where is_asked(l.provider, l.project, l.started_at, $provider, $project, $since, $until)
order by l.latency_ms desc, l.session_id, l.call_key
limit $calls;

-- report: latency.rows
-- about: all of it as one table for machines: dimension and value, all first
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC
select *
from main.latency_by($provider, $project, $since, $until, $tz)
order by case dimension when 'all' then 0 else 1 end, dimension, value nulls last;
