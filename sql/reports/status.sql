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
-- about: record types and content items that no adapter knows, with the earliest place of each
from main.drift;

-- report: status.findings
-- about: what the checks found when the store was published, by check
select f.key as check_name, f.value::bigint as n
from mart.store s
join mart.loads l on l.load_id = s.last_load_id, json_each(l.checks) f
order by check_name;
