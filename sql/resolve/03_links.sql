-- resolve: stated
-- needs: facts.session_facts, facts.sources
-- about: of each key the first and the last statement of a session. Order: time, then path, then place. (Which record is the
--   last one is said after every write, and read in `leaves`.)
create or replace temp table stated as
select f.session_id, f.key, arg_min(f.value, place) as first_value, arg_max(f.value, place) as last_value,
    arg_max(f.value, place) filter (f.value <> '') as last_filled
from (
    select f.*, row_number() over (
        partition by f.session_id, f.key order by f.ts nulls first, s.rel_path, f.line_no, f.child, f.fact_id
    ) as place
    from facts.session_facts f
    join facts.sources s using (source_id)
    where f.key <> 'leaf' and f.session_id in (select session_id from touched)
) f
group by all;

-- resolve: spawned
-- needs: stated, members, facts.tool_requests
-- about: of each sub-agent the session and the call that spawned it. Its path names the top session of its family, else the
--   log that speaks of it as its child (one that no source shows is no session); its meta
--   document, or the result that names it, the call. The session that asked for that call is the parent, whichever of the
--   family that is; where none did (or several: a copy), the one the meta document names; else the top session.
create or replace temp table spawned as
with agents as (
    select p.session_id, p.last_value as family, m.last_value as meta_call, p.key = 'parent' as is_path,
        p.last_value || '/agent-' || regexp_replace(a.last_value, '^agent-', '') as meta_parent
    from (
        select * from stated where key in ('parent', 'spawner')
        qualify row_number() over (partition by session_id order by key) = 1  -- the path first
    ) p
    left join stated m on m.session_id = p.session_id and m.key = 'spawn_call'
    left join stated a on a.session_id = p.session_id and a.key = 'parent_agent'
    where p.last_value <> p.session_id and p.session_id in (select session_id from members)
),
results as (
    select a.session_id, arg_min(r.last_value, (r.session_id <> a.family, r.session_id)) as result_call
    from agents a
    join stated r on r.key = 'spawned.' || regexp_replace(a.session_id, '^.*/agent-', '')
    where (r.session_id = a.family or starts_with(r.session_id, a.family || '/')) and r.session_id <> a.session_id
    group by a.session_id
),
called as (
    select a.*, r.result_call, coalesce(a.meta_call, r.result_call) as call_key
    from agents a
    left join results r using (session_id)
),
asking as (
    select c.session_id,
        arg_min(q.session_id, (q.session_id is distinct from c.meta_parent, q.session_id <> c.family, q.session_id)) as parent
    from called c
    join (select distinct session_id, call_key from facts.tool_requests where session_id in (select session_id from touched)) q
        on q.call_key = c.call_key
    where (q.session_id = c.family or starts_with(q.session_id, c.family || '/')) and q.session_id <> c.session_id
    group by c.session_id
)
select c.session_id, coalesce(a.parent, nullif(c.meta_parent, c.session_id), c.family) as parent, c.call_key,
    case when c.meta_call is not null then 'meta document' when c.result_call is not null then 'tool result'
        when c.is_path then 'path' else 'records' end as evidence
from called c
left join asking a using (session_id);

-- resolve: mart.session_links
-- needs: spawned, stated, facts.records, mart.copies
-- about: a sub-agent comes from the session that spawned it; a fork from the session that its last copied record or its sidecar
--   names, else, where it is told by equal records alone, from the one that owns the last of them; a continuation from its
--   sidecar.
delete from mart.session_links where session_id in (select session_id from touched);

insert into mart.session_links
with copied_from as (
    select r.session_id, max_by(r.origin_session_id, (s.rel_path, r.line_no, r.child)) as origin
    from facts.records r
    join facts.sources s using (source_id)
    where r.origin_session_id <> r.session_id and r.session_id in (select session_id from touched)
      and r.session_id not in (select session_id from spawned)  -- an agent's context may be a copy of its parent's
    group by r.session_id
),
told as (
    select session_id, parent as other_session_id, 'subagent' as relation, call_key, evidence, 'explicit' as confidence from spawned
    union all
    select session_id, origin, 'fork', null, 'records', 'explicit' from copied_from
    union all
    select session_id, last_value, 'fork', null, 'sidecar', 'explicit'
    from stated
    where key = 'forked_from' and session_id not in (select session_id from copied_from)
    union all
    select session_id, last_value, 'continuation', null, 'sidecar', 'explicit' from stated where key = 'continues'
),
shared_with as (
    select c.session_id, max_by(c.owner_session_id, (s.rel_path, c.line_no, c.child)) as origin
    from mart.copies c
    join facts.sources s using (source_id)
    where c.owner_session_id <> c.session_id and c.session_id in (select session_id from touched)
    group by c.session_id
)
select * from told
union all
select session_id, origin, 'fork', null, 'equal records', 'inferred'
from shared_with
where session_id not in (select session_id from told)
order by all;

-- resolve: roots
-- needs: mart.session_links
-- about: the top of each sub-agent's lineage. A lineage that runs in a ring has none.
create or replace temp table roots as
with recursive climb as (
    select session_id, other_session_id as top, 1 as steps
    from mart.session_links
    where relation = 'subagent' and session_id in (select session_id from touched)
    union all
    select c.session_id, l.other_session_id, c.steps + 1
    from climb c
    join mart.session_links l on l.session_id = c.top and l.relation = 'subagent'
    where c.steps < 100
)
select session_id, max_by(top, steps) as root
from climb
group by session_id
having max(steps) < 100;
