-- Copies, branches and relations of sessions hang together: what is left out has an owner that is not, and says the same everywhere.

-- check: copies_have_owners
-- severity: broken
-- about: a copy and its owner are records of the sessions that are named; no owner is a copy, and nothing is a copy of itself
select c.source_id, 'line ' || c.line_no || ': a copy that is no record of ' || c.session_id as detail
from mart.copies c
anti join facts.records r on r.source_id = c.source_id and r.line_no = c.line_no and r.child = c.child and r.session_id = c.session_id
union all
select c.source_id, 'line ' || c.line_no || ': a copy without its owner, line ' || c.owner_line_no || ' of ' || c.owner_source_id
from mart.copies c
anti join facts.records r on r.source_id = c.owner_source_id and r.line_no = c.owner_line_no and r.child = c.owner_child
    and r.session_id = c.owner_session_id
union all
select c.source_id, 'line ' || c.line_no || ': a copy of what is a copy'
from mart.copies c
semi join mart.copies o on o.source_id = c.owner_source_id and o.line_no = c.owner_line_no and o.child = c.owner_child
union all
select any_value(source_id), 'line ' || line_no || ': a copy of ' || count(*) || ' owners'
from mart.copies
group by source_id, line_no, child having count(*) > 1;

-- check: copies_are_marked
-- severity: broken
-- about: what a copied record says is marked as a copy, and nothing else is: dialogue by its place, calls by that of their
--   request. Of sessions that transcripts alone tell of: what a worse store says too is marked without being a copied record
with further as (
    select distinct r.session_id
    from facts.records r
    join facts.sources s on s.source_id = r.source_id
    where store_rank(s.store_kind) > 0
)
select f.source_id, 'line ' || f.line_no || ': dialogue ' || case when m.is_copy then 'is marked as a copy' else 'of a copy is not marked' end as detail
from mart.dialogue m
join facts.dialogue f on f.session_id = m.session_id and f.fact_id = m.fact_id
left join mart.copies c on c.source_id = f.source_id and c.line_no = f.line_no and c.child = f.child
where m.is_copy <> (c.source_id is not null) and m.session_id not in (select session_id from further)
union all
select f.source_id, 'line ' || f.line_no || ': call ' || m.call_key || case when m.is_copy then ' is marked as a copy' else ' of a copy is not marked' end
from mart.tool_calls m
join facts.tool_requests f on f.session_id = m.session_id and f.fact_id = m.request_fact_id
left join mart.copies c on c.source_id = f.source_id and c.line_no = f.line_no and c.child = f.child
where m.is_copy <> (c.source_id is not null) and m.session_id not in (select session_id from further);

-- check: copies_are_left_out
-- severity: broken
-- about: counted from facts without what stands in copies, calls and credits are those of the plain views: each call and each
--   request of a session once. Of sessions that transcripts alone tell of: what a further store adds is not counted so
with further as (
    select distinct regexp_replace(t.session_id, '/agent-.*$', '') as top
    from (
        select session_id, source_id from facts.tool_requests
        union all select session_id, source_id from facts.model_calls
        union all select session_id, source_id from facts.records
    ) t
    join facts.sources s on s.source_id = t.source_id
    where store_rank(s.store_kind) > 0
)
select null as source_id, 'calls: ' || a.n || ' in facts, ' || b.n || ' in tool_calls' as detail
from (
    select count(*) as n from (
        select distinct q.session_id, q.call_key,
            -- without an id, a key is that of a line, which two files can share
            case when q.call_id_source = 'synthesised' and starts_with(q.call_key, '~') then (q.ts, q.digest) end
        from facts.tool_requests q
        anti join mart.copies c on c.source_id = q.source_id and c.line_no = q.line_no and c.child = q.child
        where regexp_replace(q.session_id, '/agent-.*$', '') not in (select top from further)
    )
) a, (
    select count(*) as n from main.tool_calls
    where regexp_replace(session_id, '/agent-.*$', '') not in (select top from further)
) b
where a.n <> b.n
union all
select null, 'model calls: ' || a.n || ' in facts, ' || b.n || ' in model_calls'
from (
    select count(*) as n from (
        select distinct m.session_id, m.owner, m.request_key
        from facts.model_calls m
        join (
            select session_id, owner, min(array_position(['request', 'message', 'session'], grain)) as finest
            from facts.model_calls group by all
        ) g on g.session_id = m.session_id and g.owner = m.owner and g.finest = array_position(['request', 'message', 'session'], m.grain)
        anti join mart.copies c on c.source_id = m.source_id and c.line_no = m.line_no and c.child = m.child
        where regexp_replace(m.session_id, '/agent-.*$', '') not in (select top from further)
    )
) a, (
    select count(*) as n from main.model_calls
    where regexp_replace(session_id, '/agent-.*$', '') not in (select top from further)
) b
where a.n <> b.n;

-- check: one_fate
-- severity: broken
-- about: all that one record says stands on one branch, in however many files; the leaf that a session stated last is live
select any_value(source_id) as source_id, 'line ' || line_no || ': live and dead at once' as detail
from (
    select f.source_id, f.line_no, f.child, m.branch
    from mart.dialogue m
    join facts.dialogue f on f.session_id = m.session_id and f.fact_id = m.fact_id
    union all
    select f.source_id, f.line_no, f.child, m.branch
    from mart.tool_calls m
    join facts.tool_requests f on f.session_id = m.session_id and f.fact_id = m.request_fact_id
)
group by source_id, line_no, child having min(branch) <> max(branch)
union all
select any_value(f.source_id), 'record ' || f.native_uuid || ' of ' || f.session_id || ': live in one file, dead in another'
from mart.dialogue m
join facts.dialogue f on f.session_id = m.session_id and f.fact_id = m.fact_id
where f.native_uuid is not null and f.session_id in (select session_id from mart.dialogue where branch = 'dead')
group by f.session_id, f.native_uuid, f.is_sidechain having min(m.branch) <> max(m.branch);

-- check: children_have_parents
-- severity: broken
-- about: a call and the sub-agent it spawned name each other: the sub-agent's parent is the call's session, and its spawning
--   call is that call
select null as source_id, 'call ' || c.call_key || ' of ' || c.session_id || ': its sub-agent ' || c.child_session_id || ' says otherwise' as detail
from mart.tool_calls c
anti join mart.sessions s on s.session_id = c.child_session_id and s.parent_session_id = c.session_id and s.spawn_call_key = c.call_key
where c.child_session_id is not null
union all
select null, s.session_id || ': its spawning call ' || s.spawn_call_key || ' names no sub-agent'
from mart.sessions s
join mart.tool_calls c on c.session_id = s.parent_session_id and c.call_key = s.spawn_call_key
where c.child_session_id is null and s.kind = 'subagent';
