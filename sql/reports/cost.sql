-- report: cost.heading
-- about: what model calls cost in USD, by what logs state and the price table, and what has no price
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC
select coalesce(round(sum(cost_usd), 2)::varchar || ' USD', 'no known cost') || ' for ' || how_many(coalesce(sum(model_calls), 0), 'model call')
    || ', ' || how_many(coalesce(sum(unpriced), 0), 'call') || ' without a price' as heading
from main.usage_by($provider, $project, $since, $until, $tz)
where dimension = 'all';

-- report: cost.days
-- about: cost by day
-- title: By day, the latest
-- bars: cost_usd
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC, days integer 31
select coalesce(value, '(no time)') as day, model_calls, round(cost_usd, 4) as cost_usd, round(reported_usd, 4) as reported_usd,
    round(listed_usd, 4) as listed_usd, unpriced, credits
from main.usage_by($provider, $project, $since, $until, $tz)
where dimension = 'day'
order by day desc
limit $days;

-- report: cost.models
-- about: cost by model
-- title: By model
-- bars: cost_usd
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC
select coalesce(value, '(not stated)') as model, model_calls, round(cost_usd, 4) as cost_usd, round(reported_usd, 4) as reported_usd,
    round(listed_usd, 4) as listed_usd, unpriced, credits
from main.usage_by($provider, $project, $since, $until, $tz)
where dimension = 'model'
order by cost_usd desc nulls last, model;

-- report: cost.projects
-- about: cost by project
-- title: By project
-- bars: cost_usd
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC
select coalesce(value, '(no folder)') as project, model_calls, round(cost_usd, 4) as cost_usd, round(reported_usd, 4) as reported_usd,
    round(listed_usd, 4) as listed_usd, unpriced, credits
from main.usage_by($provider, $project, $since, $until, $tz)
where dimension = 'project'
order by cost_usd desc nulls last, project;

-- report: cost.unpriced
-- about: models whose calls report tokens and have no price
-- title: Without a price
-- bars: calls
-- params: provider text, project text, since timestamptz, until timestamptz
select m.provider, coalesce(m.model, '(not stated)') as model, count(*) as calls, try_cast(sum(m.input_tokens) as bigint) as input_tokens,
    try_cast(sum(m.output_tokens) as bigint) as output_tokens
from main.model_calls m
where m.owner = 'session' and m.cost_usd is null and m.cost_basis = 'unknown' and m.input_tokens is not null
  and m.output_tokens is not null and is_asked(m.provider, m.project, m.ts, $provider, $project, $since, $until)
group by all
order by calls desc, m.provider, model;

-- report: cost.rows
-- about: all of it as one table for machines
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC
select dimension, value, sessions, model_calls, cost_usd, reported_usd, listed_usd, unpriced, credits
from main.usage_by($provider, $project, $since, $until, $tz)
order by case dimension when 'all' then 0 else 1 end, dimension, value nulls last;
