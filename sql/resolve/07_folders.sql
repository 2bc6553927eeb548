-- resolve: other_folders
-- needs: stated, mart.session_links
-- about: the working folder of sessions whose records name none: the folder they were started in, that of their branch, else
--   that of the session that spawned them, or of the first above it that has one.
create or replace temp table other_folders as
with recursive ranked as (
    select session_id, last_filled as cwd, replace(key, 'cwd.', '') as source,
        case key when 'cwd.route' then 1 when 'cwd.branch' then 2 end as rank
    from stated
    where key in ('cwd.route', 'cwd.branch') and last_filled is not null
),
folders as (
    select session_id, case when key = 'cwd' then first_value else last_filled end as cwd,
        case key when 'cwd.relocated' then 1 when 'cwd' then 2 when 'cwd.workspace' then 3 when 'cwd.sidecar' then 4
            when 'cwd.route' then 5 else 6 end as rank
    from stated
    where key in ('cwd.relocated', 'cwd', 'cwd.workspace', 'cwd.sidecar', 'cwd.route', 'cwd.branch') and last_filled is not null
    qualify row_number() over (partition by session_id order by rank) = 1
),
climb as (
    select session_id, other_session_id as ancestor, 1 as steps
    from mart.session_links
    where relation = 'subagent' and session_id in (select session_id from touched)
      and session_id not in (select session_id from folders)
    union all
    select c.session_id, l.other_session_id, c.steps + 1
    from climb c
    join mart.session_links l on l.session_id = c.ancestor and l.relation = 'subagent'
    where c.steps < 50 and c.ancestor not in (select session_id from folders)
)
select session_id, arg_min(cwd, rank) as cwd, arg_min(source, rank) as source from ranked group by session_id
union all
select c.session_id, arg_min(f.cwd, c.steps), 'parent'
from climb c
join folders f on f.session_id = c.ancestor
group by c.session_id;
