-- resolve: stated
-- needs: facts.session_facts, facts.sources
-- about: of each key the first and the last statement of a session. Order: time, then path, then place.
create or replace temp table stated as
select f.session_id, f.key, arg_min(f.value, place) as first_value, arg_max(f.value, place) as last_value,
    arg_max(f.value, place) filter (f.value <> '') as last_filled
from (
    select f.*, row_number() over (
        partition by f.session_id, f.key order by f.ts nulls first, s.rel_path, f.line_no, f.child, f.fact_id
    ) as place
    from facts.session_facts f
    join facts.sources s using (source_id)
    where f.session_id in (select session_id from touched)
) f
group by all;

-- resolve: mart.session_links
-- needs: stated, facts.records
-- about: a sub-agent comes from its parent by its path and the spawning call (its meta document, else the parent's
--   result that names it); a fork from the session its records or its sidecar name; a continuation from its sidecar.
delete from mart.session_links where session_id in (select session_id from touched);

insert into mart.session_links
select p.session_id, p.last_value, 'subagent', coalesce(m.last_value, r.last_value),
    case when m.last_value is not null then 'meta document' when r.last_value is not null then 'tool result' else 'path' end,
    'explicit'
from stated p
left join stated m on m.session_id = p.session_id and m.key = 'spawn_call'
left join stated r on r.session_id = p.last_value
    and r.key = 'spawned.' || regexp_replace(p.session_id, '^.*/agent-', '')
where p.key = 'parent'
union all
select session_id, any_value(origin_session_id order by line_no), 'fork', null, 'records', 'explicit'
from facts.records
where origin_session_id is not null and origin_session_id <> session_id and session_id in (select session_id from touched)
group by session_id
union all
select f.session_id, f.last_value, 'fork', null, 'sidecar', 'explicit'
from stated f
where f.key = 'forked_from'
  and f.session_id not in (select session_id from facts.records where origin_session_id is not null)
union all
select session_id, last_value, 'continuation', null, 'sidecar', 'explicit' from stated where key = 'continues'
order by all;
