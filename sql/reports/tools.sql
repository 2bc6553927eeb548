-- report: tools.heading
-- about: which tools were called, how the calls ended, through which MCP servers, and which files they touched most
-- params: provider text, project text, since timestamptz, until timestamptz
select how_many(count(*), 'call') || ' of ' || how_many(count(distinct c.name), 'tool') || ' in '
    || how_many(count(distinct c.session_id), 'session') as heading
from main.tool_calls c
where is_asked(c.provider, c.project, c.started_at, $provider, $project, $since, $until);

-- report: tools.rows
-- about: calls by provider and tool, and how they ended
-- title: By tool
-- bars: calls
-- params: provider text, project text, since timestamptz, until timestamptz
select c.name as tool, c.provider, count(*) as calls, count(distinct c.session_id) as sessions,
    count(*) filter (c.status = 'ok') as ok, count(*) filter (c.status = 'error') as error,
    count(*) filter (c.status = 'denied') as denied,
    count(*) filter (c.status in ('cancelled', 'interrupted')) as stopped,
    count(*) filter (c.status = 'background') as background, count(*) filter (c.status = 'missing_result') as no_result,
    round(100.0 * count(*) filter (c.status = 'error') / nullif(count(*) filter (c.status in ('ok', 'error')), 0), 1) as error_percent,
    count(*) filter (c.retry_of is not null) as retries,
    round(quantile_cont(c.latency_ms, 0.5)
        filter (is_measured(c.status, c.latency_quality) and not coalesce(c.human_gate_suspected, false)), 3) as p50_own_ms
from main.tool_calls c
where is_asked(c.provider, c.project, c.started_at, $provider, $project, $since, $until)
group by all
order by calls desc, tool, c.provider;

-- report: tools.servers
-- about: calls by MCP server
-- title: MCP servers
-- bars: calls
-- params: provider text, project text, since timestamptz, until timestamptz
select c.mcp_server, count(*) as calls, count(distinct c.name_raw) as tools, count(*) filter (c.status = 'error') as error,
    count(distinct c.session_id) as sessions
from main.tool_calls c
where c.mcp_server is not null and is_asked(c.provider, c.project, c.started_at, $provider, $project, $since, $until)
group by all
order by calls desc, c.mcp_server;

-- report: tools.files
-- about: the files that calls touched most
-- title: Files
-- bars: touches
-- params: provider text, project text, since timestamptz, until timestamptz, files integer 20
select f.path, count(*) as touches, count(*) filter (f.op = 'read') as reads,
    count(*) filter (f.op in ('write', 'edit', 'delete')) as changes, count(distinct f.session_id) as sessions
from main.files_touched f
join mart.tool_calls c on c.session_id = f.session_id and c.call_key = f.call_key
where is_asked(f.provider, f.project, c.started_at, $provider, $project, $since, $until)
group by all
order by touches desc, f.path
limit $files;
