-- report: usage.heading
-- about: tokens and credits of model calls by day, model, project and host; NULL is not reported
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC
select how_many(coalesce(sum(model_calls), 0), 'model call') || ', ' || coalesce(sum(input_tokens)::bigint::varchar, 'no reported')
    || ' tokens in, ' || coalesce(sum(output_tokens)::bigint::varchar, 'no reported') || ' out' as heading
from main.usage_by($provider, $project, $since, $until, $tz)
where dimension = 'all';

-- report: usage.days
-- about: usage by day
-- title: By day, the latest
-- bars: output_tokens
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC, days integer 31
select coalesce(value, '(no time)') as day, sessions, model_calls, with_tokens, input_tokens, output_tokens, cache_read_tokens,
    cache_creation_tokens, credits
from main.usage_by($provider, $project, $since, $until, $tz)
where dimension = 'day'
order by day desc
limit $days;

-- report: usage.models
-- about: usage by model
-- title: By model
-- bars: output_tokens
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC
select coalesce(value, '(not stated)') as model, sessions, model_calls, with_tokens, input_tokens, output_tokens, cache_read_tokens,
    cache_creation_tokens, credits
from main.usage_by($provider, $project, $since, $until, $tz)
where dimension = 'model'
order by model_calls desc, model;

-- report: usage.projects
-- about: usage by project
-- title: By project
-- bars: output_tokens
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC
select coalesce(value, '(no folder)') as project, sessions, model_calls, with_tokens, input_tokens, output_tokens, cache_read_tokens,
    cache_creation_tokens, credits
from main.usage_by($provider, $project, $since, $until, $tz)
where dimension = 'project'
order by model_calls desc, project;

-- report: usage.hosts
-- about: usage by host
-- title: By host
-- bars: output_tokens
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC
select coalesce(value, '(not stated)') as host, sessions, model_calls, with_tokens, input_tokens, output_tokens, cache_read_tokens,
    cache_creation_tokens, credits
from main.usage_by($provider, $project, $since, $until, $tz)
where dimension = 'host'
order by model_calls desc, host;

-- report: usage.rows
-- about: all of it as one table for machines
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC
select dimension, value, sessions, model_calls, with_tokens, input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, credits
from main.usage_by($provider, $project, $since, $until, $tz)
order by case dimension when 'all' then 0 else 1 end, dimension, value nulls last;
