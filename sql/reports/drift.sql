-- report: drift.heading
-- about: record types and content items that no adapter knows: what an agent's new version writes
-- params: provider text, project text, since timestamptz, until timestamptz
select how_many(count(*), 'unknown type') || ' of records and items, seen ' || how_many(coalesce(sum(d.n), 0), 'time') as heading
from main.drift d
where is_asked(d.provider, null, d.first_seen, $provider, $project, $since, $until);

-- report: drift.rows
-- about: unknown types by provider and version, with the earliest place of each
-- title: Unknown types
-- bars: n
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC
select d.provider, d.unit, d.kind, d.tool_version, d.n, d.sources, local_time(d.first_seen, $tz) as first_seen, d.source_id, d.line_no
from main.drift d
where is_asked(d.provider, null, d.first_seen, $provider, $project, $since, $until)
order by d.first_seen desc nulls last, d.provider, d.unit desc, d.kind, d.tool_version nulls last;
