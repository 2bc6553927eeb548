-- report: qoder.totals
-- about: the Qoder report: totals over the latest sessions
-- params: sessions integer 40
select * from main.qoder_report($sessions);

-- report: qoder.sessions
-- about: the Qoder report: the sessions it counts, latest first, in few and narrow columns
-- params: sessions integer 40
select strftime(ended_at, '%Y-%m-%d %H:%M') as ended, left(regexp_replace(session_id, '^[^:]*:', ''), 13) as session,
    left(title, 48) as title, project, prompts, text_rows as texts, thinking_rows as thoughts, tool_calls as calls,
    tool_errors as errors, round(p50_ms) as p50_ms, round(p95_ms) as p95_ms, credits, unknown_items as unknown,
    rejected_lines as rejected, raw_envelopes as raw
from main.qoder_latest($sessions);

-- report: qoder.rows
-- about: the Qoder report as one table for machines: the row of kind total first, then the sessions, latest first
-- params: sessions integer 40
select 'total' as row_kind, sessions, null as session_id, null as title, null as project, null as kind, null as started_at,
    null as ended_at, prompts, text_rows, thinking_rows, readable_rows, tool_calls, tool_errors, paired_calls, p50_ms, p95_ms,
    credits, unknown_items, rejected_lines, raw_envelopes
from main.qoder_report($sessions)
union all
select 'session', 1, session_id, title, project, kind, started_at, ended_at, prompts, text_rows, thinking_rows, readable_rows,
    tool_calls, tool_errors, paired_calls, p50_ms, p95_ms, credits, unknown_items, rejected_lines, raw_envelopes
from main.qoder_latest($sessions)
order by row_kind desc, ended_at desc, session_id;
