-- report: qoder.heading
-- about: the latest sessions of Qoder: what was said and called, credits, models, waits against execution, unknown records
-- params: sessions integer 40, project text, since timestamptz, until timestamptz
select r.sessions || '-session Qoder report, ' || how_many(r.raw_envelopes, 'raw envelope') as heading
from main.qoder_report($sessions, only_project := $project, since := $since, until := $until) r;

-- report: qoder.totals
-- about: the Qoder report: totals over the latest sessions; models and waits have tables of their own
-- title: -
-- params: sessions integer 40, project text, since timestamptz, until timestamptz
select * exclude (models, timed_by_log, wait_ms) from main.qoder_report($sessions, only_project := $project, since := $since, until := $until);

-- report: qoder.sessions
-- about: the Qoder report: the sessions it counts, latest first, in few and narrow columns
-- title: -
-- params: sessions integer 40, project text, since timestamptz, until timestamptz, tz text UTC
select local_time(ended_at, $tz) as ended, short_id(session_id) as session,
    left(title, 48) as title, project, prompts, text_rows as texts, thinking_rows as thoughts, tool_calls as calls,
    tool_errors as errors, round(p50_ms) as p50_ms, round(p95_ms) as p95_ms, human_waits as waits, credits, unknown_items as unknown,
    rejected_lines as rejected, raw_envelopes as raw
from main.qoder_latest($sessions, only_project := $project, since := $since, until := $until);

-- report: qoder.rows
-- about: the Qoder report as one table for machines: the row of kind total first, then the sessions, latest first
-- params: sessions integer 40, project text, since timestamptz, until timestamptz
select 'total' as row_kind, sessions, null as session_id, null as title, null as project, null as kind, null as started_at,
    null as ended_at, prompts, text_rows, thinking_rows, readable_rows, tool_calls, tool_errors, paired_calls, p50_ms, p95_ms, human_waits,
    credits, unknown_items, rejected_lines, raw_envelopes, models, timed_by_log, wait_ms
from main.qoder_report($sessions, only_project := $project, since := $since, until := $until)
union all
select 'session', 1, session_id, title, project, kind, started_at, ended_at, prompts, text_rows, thinking_rows, readable_rows,
    tool_calls, tool_errors, paired_calls, p50_ms, p95_ms, human_waits, credits, unknown_items, rejected_lines, raw_envelopes, models, timed_by_log,
    wait_ms
from main.qoder_latest($sessions, only_project := $project, since := $since, until := $until)
order by row_kind desc, ended_at desc, session_id;

-- report: qoder.models
-- about: models of the sessions of the Qoder report and of their sub-agents: calls, credits, and tokens where they are
--   reported. A tier (auto, efficient, …) stands for a model the service chose
-- title: Models
-- params: sessions integer 40, project text, since timestamptz, until timestamptz
with latest as (from main.qoder_latest($sessions, only_project := $project, since := $since, until := $until))
select coalesce(m.model, '(not stated)') as model, bool_or(m.model_is_alias) as is_tier, count(*) as model_calls,
    try_cast(sum(m.credits) as decimal(18, 9)) as credits, try_cast(sum(m.original_credits) as decimal(18, 9)) as original_credits,
    count(*) filter (m.usage_status = 'reported') as with_tokens, try_cast(sum(m.input_tokens) as bigint) as input_tokens,
    try_cast(sum(m.output_tokens) as bigint) as output_tokens, max(m.context_ratio) as max_context_ratio
from main.model_calls m
join mart.sessions s on s.session_id = m.session_id
where s.provider = 'qoder' and s.root_session_id in (select regexp_replace(session_id, '/agent-.*$', '') from latest)
group by all
order by model_calls desc, model;

-- report: qoder.waits
-- about: tools of the sessions of the Qoder report: what a run log says that they took, beside the pair of their records,
--   and what they waited for before. Medians; waits are summed (each call's own)
-- title: Tools: execution and waits
-- params: sessions integer 40, project text, since timestamptz, until timestamptz
with latest as (from main.qoder_latest($sessions, only_project := $project, since := $since, until := $until))
select c.name as tool, count(*) as calls, count(*) filter (c.latency_source = 'execution') as timed_by_log,
    round(median(c.latency_us / 1000.0) filter (c.latency_source = 'execution'), 1) as execution_ms,
    round(median(c.pair_us / 1000.0) filter (c.latency_source = 'execution'), 1) as pair_of_the_same_ms,
    round(median(c.latency_us / 1000.0) filter (c.latency_source in ('pair', 'batch')), 1) as pair_alone_ms,
    count(*) filter (c.latency_quality = 'bound') as bounds, count(*) filter (c.wait_us > 0) as waited,
    round(try_cast(sum(c.wait_us) as bigint) / 1000.0, 1) as wait_ms, count(*) filter (c.status = 'denied') as denied,
    count(*) filter (c.status in ('cancelled', 'interrupted')) as stopped
from mart.tool_calls c
where c.session_id in (select session_id from latest) and not c.is_copy
group by all
order by calls desc, tool;

-- report: qoder.unknown
-- about: record types and content items of Qoder that nobody has described, by version of the CLI (a
--   run log's is that of its session) and store
-- title: Unknown records by version
select coalesce(s.tool_version, m.tool_version, '(not stated)') as tool_version, s.store_kind, c.unit, c.kind, sum(c.n)::bigint as n,
    count(distinct s.source_id) as sources
from facts.record_census c
join facts.sources s using (source_id)
left join mart.sessions m on m.session_id = s.session_id
where s.provider = 'qoder' and c.disposition = 'unknown' and c.unit in ('record', 'item')
group by all
order by tool_version, store_kind, unit desc, kind;
