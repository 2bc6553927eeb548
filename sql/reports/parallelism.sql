-- report: parallelism.heading
-- about: how much tools ran side by side: the time that calls took together against the time that went by
-- params: provider text, project text, since timestamptz, until timestamptz
select how_many(count(*), 'turn') || ' with calls: ' || round(coalesce(sum(t.tool_sum_ms), 0) / 1000.0, 1) || ' s of calls in '
    || round(coalesce(sum(t.tool_wall_ms), 0) / 1000.0, 1) || ' s' as heading
from main.turns t
where t.tool_wall_ms is not null and is_asked(t.provider, t.project, t.started_at, $provider, $project, $since, $until);

-- report: parallelism.rows
-- about: by provider: sum of the calls' latencies, union of their intervals, and how far the one exceeds the other
-- title: By provider
-- bars: side_by_side
-- params: provider text, project text, since timestamptz, until timestamptz
select t.provider, count(*) as turns, count(*) filter (t.tool_sum_ms > t.tool_wall_ms) as turns_side_by_side,
    round(sum(t.tool_sum_ms) / 1000.0, 3) as sum_s, round(sum(t.tool_wall_ms) / 1000.0, 3) as wall_s,
    round(sum(t.tool_sum_ms) / nullif(sum(t.tool_wall_ms), 0), 2) as side_by_side
from main.turns t
where t.tool_wall_ms is not null and is_asked(t.provider, t.project, t.started_at, $provider, $project, $since, $until)
group by all
order by turns desc, t.provider;

-- report: parallelism.batches
-- about: calls by how many the model asked for at once
-- title: Calls asked for at once
-- bars: calls
-- params: provider text, project text, since timestamptz, until timestamptz
select l.batch_size as at_once, count(*) as calls, count(*) filter (l.latency_quality = 'bound') as bounds,
    round(quantile_cont(l.latency_ms, 0.5) filter (is_measured(l.status, l.latency_quality)), 3) as p50_ms
from main.tool_latency l
where is_asked(l.provider, l.project, l.started_at, $provider, $project, $since, $until)
group by all
order by at_once;

-- report: parallelism.turns
-- about: the turns that gained most
-- title: Turns that gained most
-- bars: saved_s
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC, turns integer 20
select local_time(t.started_at, $tz) as started, short_id(t.session_id) as session, t.turn_no as turn, t.project,
    round(t.tool_sum_ms / 1000.0, 3) as sum_s, round(t.tool_wall_ms / 1000.0, 3) as wall_s,
    round((t.tool_sum_ms - t.tool_wall_ms) / 1000.0, 3) as saved_s
from main.turns t
where t.tool_sum_ms > t.tool_wall_ms and is_asked(t.provider, t.project, t.started_at, $provider, $project, $since, $until)
order by t.tool_sum_ms - t.tool_wall_ms desc, t.session_id, t.turn_no
limit $turns;
