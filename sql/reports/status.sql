-- report: status.store
-- about: which store this is, and the load that published it
select s.store_id, s.sessionmart_version as version, s.last_load_id, l.finished_at as changed_at
from mart.store s
left join mart.loads l on l.load_id = s.last_load_id;

-- report: status.loads
-- about: the latest loads that published; runs that changed nothing stand in the state log only
-- params: runs integer 5
select load_id, state, started_at, finished_at, sources_seen, sources_changed as sources_read, sources_failed, bytes_read
from mart.loads
order by started_at desc, load_id desc
limit $runs;

-- report: status.sources
-- about: sources by provider and state. One that is no longer there is gone or suspicious, whatever became of its last reading;
--   one that is there is failed (an adapter or a check stopped it; its earlier rows stay), unread (no file, no permission) or present
select provider,
    case when source_state <> 'present' then source_state when tail_state in ('failed', 'unread') then tail_state else 'present' end
        as state,
    count(*) as sources
from facts.sources
group by all
order by all;

-- report: status.drift
-- about: record types and content items that no adapter knows, by provider and version of the agent. first_seen is the log's own
--   time, not the load's: that of the last dated record up to the first one of its kind in a source, else of the next dated
--   record; source_id and line_no are the earliest place
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

-- report: status.findings
-- about: what the checks found when the store was published, by check
select f.key as check_name, f.value::bigint as n
from mart.store s
join mart.loads l on l.load_id = s.last_load_id, json_each(l.checks) f
order by check_name;
