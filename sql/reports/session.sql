-- report: session.find
-- about: sessions whose key or native id is, or begins with, what was asked for; an exact one comes first
-- params: wanted text
select session_id
from main.sessions
where session_id = $wanted or native_id = $wanted or starts_with(session_id, $wanted) or starts_with(native_id, $wanted)
order by session_id <> $wanted, native_id <> $wanted, session_id
limit 3;

-- report: session.head
-- about: what a session is, for the head of its text
-- params: session text
select session_id, title, project, cwd, git_branch, model, tool_version, kind, parent_session_id, started_at, ended_at, status,
    prompts, tool_calls, tool_errors, credits
from main.sessions
where session_id = $session;

-- report: session.lines
-- about: dialogue and calls of a session in order, with a label and a body each
-- params: session text
select seq, turn_no, ts, 'dialogue' as what, case when kind = 'text' then role else kind end as label, text as body
from main.dialogue
where session_id = $session
union all
select seq, turn_no, started_at, 'call', name,
    concat_ws(' ', status,
        case when latency_ms is not null
            then printf('%.0f ms', latency_ms) || case latency_quality when 'bound' then ' at most' else '' end end,
        coalesce(command_head, target_path, left(args, 120)))
from main.tool_calls
where session_id = $session
order by seq;
