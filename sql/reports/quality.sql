-- report: quality.heading
-- about: what the numbers rest on: lines that were rejected, contradictions, masked secrets, calls without a result
-- params: provider text, project text, since timestamptz, until timestamptz
select how_many(coalesce(sum(f.rejected_lines), 0), 'rejected line') || ' in ' || how_many(count(*), 'source') || ', '
    || how_many(count(*) filter (f.tail_state = 'failed'), 'failed source') as heading
from facts.sources f
left join mart.sessions s on s.session_id = f.session_id
where is_asked(f.provider, s.project, s.ended_at, $provider, $project, $since, $until);

-- report: quality.rows
-- about: by provider: sources and lines, what was rejected or unknown, contradictions, masked secrets, calls without a result.
--   A span of time takes the sources of sessions that ended in it
-- title: By provider
-- bars: rejected_lines
-- params: provider text, project text, since timestamptz, until timestamptz
with asked as (
    select f.source_id, f.provider, f.session_id, f.lines, f.rejected_lines, f.tail_state
    from facts.sources f
    left join mart.sessions s on s.session_id = f.session_id
    where is_asked(f.provider, s.project, s.ended_at, $provider, $project, $since, $until)
),
read as (
    select provider, count(*) as sources, count(*) filter (tail_state = 'failed') as failed, sum(lines)::bigint as lines,
        coalesce(sum(rejected_lines), 0)::bigint as rejected_lines
    from asked
    group by provider
),
unknown as (
    select a.provider, coalesce(sum(c.n), 0)::bigint as n
    from facts.record_census c
    join asked a using (source_id)
    where c.disposition = 'unknown' and c.unit in ('record', 'item')
    group by a.provider
),
contradicted as (select a.provider, count(*) as n from main.conflicts c join asked a using (source_id) group by a.provider),
masked as (select a.provider, sum(r.n)::bigint as n from facts.redactions r join asked a using (source_id) group by a.provider),
called as (
    select c.provider, count(*) as calls, count(*) filter (c.status in ('missing_result', 'interrupted') and c.result_text is null) as unpaired,
        count(*) filter (c.anomaly is not null) as odd
    from main.tool_calls c
    join mart.sessions s using (session_id)
    where is_asked(c.provider, s.project, s.ended_at, $provider, $project, $since, $until)
    group by c.provider
)
select r.provider, r.sources, r.failed, r.lines, r.rejected_lines, coalesce(u.n, 0) as unknown, coalesce(x.n, 0) as conflicts,
    coalesce(m.n, 0) as redactions, coalesce(c.calls, 0) as calls, coalesce(c.unpaired, 0) as unpaired, coalesce(c.odd, 0) as odd_calls
from read r
left join unknown u using (provider)
left join contradicted x using (provider)
left join masked m using (provider)
left join called c using (provider)
order by r.provider;

-- report: quality.rejects
-- about: rejected lines by provider and reason
-- title: Rejected lines
-- bars: n
-- params: provider text, project text, since timestamptz, until timestamptz
select f.provider, r.reason, count(*) as n, count(*) filter (r.recovered) as recovered, count(distinct r.source_id) as sources
from facts.rejects r
join facts.sources f using (source_id)
left join mart.sessions s on s.session_id = f.session_id
where is_asked(f.provider, s.project, s.ended_at, $provider, $project, $since, $until)
group by all
order by n desc, f.provider, r.reason;

-- report: quality.conflicts
-- about: the same id with other content, by rule and what was kept
-- title: Contradictions
-- bars: n
-- params: provider text, project text, since timestamptz, until timestamptz
select f.provider, c.id_kind, c.rule, c.resolution as kept, count(*) as n
from main.conflicts c
join facts.sources f using (source_id)
left join mart.sessions s on s.session_id = f.session_id
where is_asked(f.provider, s.project, s.ended_at, $provider, $project, $since, $until)
group by all
order by n desc, f.provider, c.id_kind, c.rule, kept;

-- report: quality.redactions
-- about: masked secrets by rule and column
-- title: Masked secrets
-- bars: n
-- params: provider text, project text, since timestamptz, until timestamptz
select f.provider, r.rule, r.column_name, sum(r.n)::bigint as n, count(distinct r.fingerprint) as different,
    count(distinct r.source_id) as sources
from facts.redactions r
join facts.sources f using (source_id)
left join mart.sessions s on s.session_id = f.session_id
where is_asked(f.provider, s.project, s.ended_at, $provider, $project, $since, $until)
group by all
order by n desc, f.provider, r.rule, r.column_name;

-- report: quality.calls
-- about: calls that have no result, and those whose records are odd
-- title: Calls without a result, and odd ones
-- bars: n
-- params: provider text, project text, since timestamptz, until timestamptz
select c.provider, c.name as tool, c.status, c.anomaly, count(*) as n, count(distinct c.session_id) as sessions
from main.tool_calls c
join mart.sessions s using (session_id)
where (c.anomaly is not null or c.status in ('missing_result', 'interrupted') and c.result_text is null) and is_asked(c.provider, s.project, s.ended_at, $provider, $project, $since, $until)
group by all
order by n desc, c.provider, tool, c.status, c.anomaly;
