-- report: muse.heading
-- about: the latest sessions of Muse Code: runs, sub-agents, calls with waits apart, usage
-- params: sessions integer 40, project text, since timestamptz, until timestamptz
select r.sessions || '-session Muse report, ' || how_many(r.raw_envelopes, 'raw envelope') as heading
from main.muse_report($sessions, only_project := $project, since := $since, until := $until) r;

-- report: muse.totals
-- about: the Muse report: totals over the latest sessions, in few columns (rows has them all)
-- title: -
-- params: sessions integer 40, project text, since timestamptz, until timestamptz
select sessions, turns, scheduled, failed, cancelled, unfinished, prompts, steers, text_rows, subagents, unwaited, tool_calls,
    tool_errors, p50_ms, p95_ms, input_tokens, output_tokens, unknown_records, rejected_lines, raw_envelopes
from main.muse_report($sessions, only_project := $project, since := $since, until := $until);

-- report: muse.sessions
-- about: the Muse report: the sessions it counts, latest first, in few and narrow columns
-- title: -
-- params: sessions integer 40, project text, since timestamptz, until timestamptz, tz text UTC
select local_time(ended_at, $tz) as ended, short_id(session_id) as session,
    left(title, 32) as title, project, turns, failed + cancelled + unfinished as not_done, prompts, text_rows as texts,
    subagents as agents, unwaited, tool_calls as calls, tool_errors as errors, round(p50_ms) as p50_ms, round(p95_ms) as p95_ms,
    round(human_wait_ms) as wait_ms, input_tokens as tokens_in, output_tokens as tokens_out, unknown_records as unknown,
    raw_envelopes as raw
from main.muse_latest($sessions, only_project := $project, since := $since, until := $until);

-- report: muse.rows
-- about: the Muse report as one table for machines: the row of kind total first, then the sessions, latest first
-- params: sessions integer 40, project text, since timestamptz, until timestamptz
select 'total' as row_kind, t.sessions, null as session_id, null as title, null as project, null as kind, null as started_at,
    null as ended_at, t.* exclude (sessions)
from main.muse_report($sessions, only_project := $project, since := $since, until := $until) t
union all by name
select 'session' as row_kind, 1 as sessions, *
from main.muse_latest($sessions, only_project := $project, since := $since, until := $until)
order by row_kind desc, ended_at desc, session_id;
