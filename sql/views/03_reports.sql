-- object: main.latency_by
-- kind: macro
-- example: main.latency_by(null, null, null, null, 'UTC')
-- grain: one row per dimension and value
-- about: Latencies of tool calls by dimension (all, provider, tool, model, project, hour of the day in a time zone), twice:
--   of all calls that something measures (status ok or error, quality exact or good), and of the same without those that
--   probably waited for a person. Parameters: provider, project (NULL: all), since, until (by start of the call), time zone.
-- columns:
--   dimension: all, provider, tool, model, project or hour
--   value: its value; NULL where the log tells none
--   calls: timed calls
--   measured: of them those that percentiles take
--   bounds: of them those whose latency is only a bound
--   human_waits: of the measured ones those that probably waited for a person
--   p50_ms: median, milliseconds
--   p90_ms: 90th percentile
--   p95_ms: 95th percentile
--   p99_ms: 99th percentile
--   max_ms: longest
--   p50_own_ms: median without human waits
--   p90_own_ms: 90th percentile without human waits
--   p95_own_ms: 95th percentile without human waits
--   p99_own_ms: 99th percentile without human waits
--   max_own_ms: longest without human waits
--   total_s: sum of the measured latencies without human waits, seconds; parallel calls count each for itself
create macro main.latency_by(only_provider, only_project, since, until, tz) as table
with timed as (
    select latency_ms, latency_quality = 'bound' as is_bound, is_measured(status, latency_quality) as is_measured,
        coalesce(human_gate_suspected, false) as is_human,
        unnest([
            {'dimension': 'all', 'value': 'all'}, {'dimension': 'provider', 'value': provider},
            {'dimension': 'tool', 'value': name}, {'dimension': 'model', 'value': model},
            {'dimension': 'project', 'value': project},
            {'dimension': 'hour', 'value': strftime(timezone(tz, started_at), '%H')}
        ]) as place
    from main.tool_latency
    where is_asked(provider, project, started_at, only_provider, only_project, since, until)
),
counted as (
    select place.dimension, place.value, count(*) as calls, count(*) filter (is_measured) as measured,
        count(*) filter (is_bound) as bounds, count(*) filter (is_measured and is_human) as human_waits,
        quantile_cont(latency_ms, [0.5, 0.9, 0.95, 0.99, 1.0]) filter (is_measured) as q,
        quantile_cont(latency_ms, [0.5, 0.9, 0.95, 0.99, 1.0]) filter (is_measured and not is_human) as own,
        sum(latency_ms) filter (is_measured and not is_human) / 1000.0 as total_s
    from timed
    group by all
)
select dimension, value, calls, measured, bounds, human_waits, round(q[1], 3) as p50_ms, round(q[2], 3) as p90_ms,
    round(q[3], 3) as p95_ms, round(q[4], 3) as p99_ms, round(q[5], 3) as max_ms, round(own[1], 3) as p50_own_ms,
    round(own[2], 3) as p90_own_ms, round(own[3], 3) as p95_own_ms, round(own[4], 3) as p99_own_ms, round(own[5], 3) as max_own_ms,
    round(total_s, 3) as total_s
from counted;

-- object: main.usage_by
-- kind: macro
-- example: main.usage_by(null, null, null, null, 'UTC')
-- grain: one row per dimension and value
-- about: Usage and cost of model calls by dimension (all, day in a time zone, provider, model, project, host). Reviews and
--   judges are not the session's own and left out, as in its totals. Parameters as in latency_by.
-- columns:
--   dimension: all, day, provider, model, project or host
--   value: its value; NULL where the log tells none
--   sessions: sessions that called
--   model_calls: calls of a model, whether their tokens are reported or not
--   with_tokens: of them those whose tokens are reported
--   input_tokens: input tokens, cached ones included; NULL where none is reported
--   output_tokens: output tokens, reasoning included
--   cache_read_tokens: input tokens read from cache
--   cache_creation_tokens: input tokens written to cache
--   credits: credits charged
--   cost_usd: cost of the calls that have one
--   reported_usd: of it what logs state themselves
--   listed_usd: of it what the price table says
--   unpriced: calls with tokens and without a cost
create macro main.usage_by(only_provider, only_project, since, until, tz) as table
with used as (
    select m.*,
        unnest([
            {'dimension': 'all', 'value': 'all'}, {'dimension': 'day', 'value': strftime(timezone(tz, m.ts), '%Y-%m-%d')},
            {'dimension': 'provider', 'value': m.provider}, {'dimension': 'model', 'value': m.model},
            {'dimension': 'project', 'value': m.project}, {'dimension': 'host', 'value': s.hosts[1]}
        ]) as place
    from main.model_calls m
    join mart.sessions s on s.session_id = m.session_id
    where m.owner = 'session' and is_asked(m.provider, m.project, m.ts, only_provider, only_project, since, until)
)
select place.dimension, place.value, count(distinct session_id) as sessions, count(*) as model_calls,
    count(*) filter (input_tokens is not null or output_tokens is not null) as with_tokens,
    try_cast(sum(input_tokens) as bigint) as input_tokens, try_cast(sum(output_tokens) as bigint) as output_tokens,
    try_cast(sum(cache_read_tokens) as bigint) as cache_read_tokens,
    try_cast(sum(case when cache_creation_5m_tokens is not null or cache_creation_1h_tokens is not null
        then coalesce(cache_creation_5m_tokens, 0) + coalesce(cache_creation_1h_tokens, 0) end) as bigint) as cache_creation_tokens,
    try_cast(sum(credits) as decimal(18, 9)) as credits, try_cast(sum(cost_usd) as decimal(18, 9)) as cost_usd,
    try_cast(sum(cost_usd) filter (cost_basis = 'reported') as decimal(18, 9)) as reported_usd,
    try_cast(sum(cost_usd) filter (cost_basis = 'listed') as decimal(18, 9)) as listed_usd,
    count(*) filter (cost_usd is null and cost_basis = 'unknown' and (input_tokens is not null or output_tokens is not null)) as unpriced
from used
group by all;

-- object: main.drift
-- kind: view
-- grain: one row per provider, unit, kind and version of the agent
-- about: Record types and content items that no adapter knows. first_seen is the log's own time, not the load's: that of the
--   last dated record up to the first one of its kind in a source, else of the next dated record.
-- columns:
--   provider: name of the provider
--   unit: record or item
--   kind: type, as the log writes it
--   tool_version: version of the agent that wrote the source; NULL not stated
--   n: how many
--   sources: in how many sources
--   first_seen: when the first one was written, as far as the log tells
--   source_id: source of the earliest
--   line_no: its line
create view main.drift as
with places as (
    select s.provider, c.unit, c.kind, s.tool_version, c.n, c.source_id, c.first_line, coalesce(b.ts, a.ts) as ts
    from facts.record_census c
    join facts.sources s using (source_id)
    asof left join (select source_id, line_no, ts from facts.records where ts is not null) b
        on b.source_id = c.source_id and c.first_line >= b.line_no
    asof left join (select source_id, line_no, ts from facts.records where ts is not null) a
        on a.source_id = c.source_id and c.first_line < a.line_no
    where c.disposition = 'unknown' and c.unit in ('record', 'item')
)
select provider, unit, kind, tool_version, sum(n)::bigint as n, count(*) as sources, min(ts) as first_seen,
    first(source_id order by ts nulls last, source_id) as source_id,
    first(first_line order by ts nulls last, source_id) as line_no
from places
group by provider, unit, kind, tool_version
order by provider, unit desc, kind, tool_version nulls last;

-- object: main.is_batch_asked
-- kind: macro
-- about: is a Bridge batch the one that a report was asked for (NULL: any), and was it made in a span of time, as its name says?
create macro main.is_batch_asked(batch_id, only_batch, since, until) as
    (only_batch is null or batch_id = only_batch)
    and (since is null and until is null or batch_id in (
        select b.batch_id from main.bridge_batches b where is_asked(null, null, b.stamp, null, null, since, until)
    ));
