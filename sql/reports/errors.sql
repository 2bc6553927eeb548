-- report: errors.heading
-- about: what went wrong: calls that failed by tool, failed turns, errors and retries of the services, and the latest failures
-- params: provider text, project text, since timestamptz, until timestamptz
select how_many((
        select count(*) from main.tool_calls c where c.status = 'error' and is_asked(c.provider, c.project, c.started_at, $provider, $project, $since, $until)
    ), 'failed call') || ', ' || how_many((
        select count(*) from main.turns t where t.status = 'failed' and is_asked(t.provider, t.project, t.started_at, $provider, $project, $since, $until)
    ), 'failed turn') || ', ' || how_many((
        select count(*) from main.events e where e.kind in ('error', 'retry') and is_asked(e.provider, e.project, e.ts, $provider, $project, $since, $until)
    ), 'error or retry event') as heading;

-- report: errors.tools
-- about: failed calls by tool and exit code
-- title: Failed calls
-- bars: failed
-- params: provider text, project text, since timestamptz, until timestamptz
select c.name as tool, c.provider, c.exit_code, count(*) as failed, count(distinct c.session_id) as sessions,
    count(*) filter (exists (
        select 1 from mart.tool_calls r where r.session_id = c.session_id and r.retry_of = c.call_key
    )) as tried_again
from main.tool_calls c
where c.status = 'error' and is_asked(c.provider, c.project, c.started_at, $provider, $project, $since, $until)
group by all
order by failed desc, tool, c.provider, c.exit_code;

-- report: errors.services
-- about: errors and retries that logs tell of, by provider, kind and status
-- title: Errors and retries of services
-- bars: n
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC
select e.provider, e.kind, coalesce(e.subtype, '(not stated)') as what, e.attrs ->> 'status' as http_status, count(*) as n,
    count(distinct e.session_id) as sessions, max(local_time(e.ts, $tz)) as latest
from main.events e
where e.kind in ('error', 'retry') and is_asked(e.provider, e.project, e.ts, $provider, $project, $since, $until)
group by all
order by n desc, e.provider, e.kind, what, http_status;

-- report: errors.turns
-- about: failed turns by provider and class
-- title: Failed turns
-- bars: turns
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC
select t.provider, coalesce(t.error_class, '(not stated)') as error_class, t.http_status, count(*) as turns,
    max(local_time(t.started_at, $tz)) as latest
from main.turns t
where t.status = 'failed' and is_asked(t.provider, t.project, t.started_at, $provider, $project, $since, $until)
group by all
order by turns desc, t.provider, error_class, t.http_status;

-- report: errors.rows
-- about: the latest failed calls, with the beginning of what they said
-- title: Latest failed calls
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC, calls integer 20
select local_time(c.started_at, $tz) as started, short_id(c.session_id) as session, c.name as tool, c.exit_code,
    left(regexp_replace(coalesce(c.command_head, c.target_path, ''), '\s+', ' ', 'g'), 48) as asked,
    left(regexp_replace(coalesce(c.result_text, ''), '\s+', ' ', 'g'), 120) as said, c.provider, c.project, c.session_id, c.call_key
from main.tool_calls c
where c.status = 'error' and is_asked(c.provider, c.project, c.started_at, $provider, $project, $since, $until)
order by c.started_at desc nulls last, c.session_id, c.seq desc
limit $calls;
