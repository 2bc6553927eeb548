-- report: sessions.heading
-- about: the latest sessions of all agents: when, where, what was asked, what it took
-- params: provider text, project text, since timestamptz, until timestamptz, sessions integer 40
with latest as (
    select * from main.sessions s
    where s.kind in ('root', 'fork') and not (s.is_empty and s.tool_calls + s.model_calls = 0) and is_asked(s.provider, s.project, s.ended_at, $provider, $project, $since, $until)
    order by s.ended_at desc nulls last, s.session_id
    limit $sessions
)
select how_many(count(*), 'session') || ' of ' || how_many(count(distinct provider), 'agent') || ' in '
    || how_many(count(distinct project), 'project') || ', ' || how_many(coalesce(sum(prompts), 0), 'prompt') as heading
from latest;

-- report: sessions.list
-- about: the latest sessions, their sub-agents' calls and tokens with them
-- title: Latest first
-- bars: calls
-- params: provider text, project text, since timestamptz, until timestamptz, tz text UTC, sessions integer 40
with latest as (
    select * from main.sessions s
    where s.kind in ('root', 'fork') and not (s.is_empty and s.tool_calls + s.model_calls = 0) and is_asked(s.provider, s.project, s.ended_at, $provider, $project, $since, $until)
    order by s.ended_at desc nulls last, s.session_id
    limit $sessions
),
family as (
    select root_session_id as session_id, count(*) as agents, sum(tool_calls)::bigint as tool_calls,
        try_cast(sum(input_tokens) as bigint) as input_tokens, try_cast(sum(output_tokens) as bigint) as output_tokens,
        try_cast(sum(cost_usd) as decimal(18, 9)) as cost_usd
    from mart.sessions
    where kind in ('subagent', 'internal')
    group by root_session_id
)
select local_time(l.ended_at, $tz) as ended, l.provider, short_id(l.session_id) as session, left(l.title, 48) as title, l.project,
    l.prompts, l.tool_calls + coalesce(f.tool_calls, 0) as calls, l.tool_errors as errors, coalesce(f.agents, 0) as agents,
    coalesce(l.input_tokens + coalesce(f.input_tokens, 0), f.input_tokens) as tokens_in,
    coalesce(l.output_tokens + coalesce(f.output_tokens, 0), f.output_tokens) as tokens_out,
    round(coalesce(l.cost_usd + coalesce(f.cost_usd, 0), f.cost_usd), 2) as cost_usd, l.status
from latest l
left join family f using (session_id)
order by l.ended_at desc nulls last, l.session_id;

-- report: sessions.rows
-- about: the latest sessions as main.sessions has them
-- params: provider text, project text, since timestamptz, until timestamptz, sessions integer 40
select * from main.sessions s
where s.kind in ('root', 'fork') and not (s.is_empty and s.tool_calls + s.model_calls = 0) and is_asked(s.provider, s.project, s.ended_at, $provider, $project, $since, $until)
order by s.ended_at desc nulls last, s.session_id
limit $sessions;
