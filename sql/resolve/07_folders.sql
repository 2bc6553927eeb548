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

-- resolve: working_folders
-- needs: stated, other_folders
-- about: the working folder of each session that has one, by precedence: moved to, first of a record, workspace, sidecar,
--   manifest of its process run, then the others.
create or replace temp table working_folders as
with told as (
    select session_id, case when key = 'cwd' then first_value else last_filled end as cwd,
        case key when 'cwd' then 'record' else replace(key, 'cwd.', '') end as source,
        case key when 'cwd.relocated' then 1 when 'cwd' then 2 when 'cwd.workspace' then 3 else 4 end as rank
    from stated
    where key in ('cwd.relocated', 'cwd', 'cwd.workspace', 'cwd.sidecar')
    union all
    select r.session_id, m.last_filled, 'manifest', 5
    from stated r
    join stated m on m.session_id = r.last_value and m.key = 'cwd.manifest'
    where r.key = 'run'
    union all
    select session_id, cwd, source, 6
    from other_folders
)
select session_id, arg_min(cwd, rank) as cwd, arg_min(source, rank) as source
from told
where cwd is not null
group by session_id;

-- resolve: projects
-- needs: working_folders, stated, mart.project_names
-- about: the project of each session: as the user's own table says of its folder (the longest that fits) or its remote, else
--   the name of its git remote, else that of the folder it was in before it entered a worktree, else of its repository as
--   the place of the worktree tells, else of its working folder. Never from the name of the transcript's folder.
create or replace temp table projects as
with remotes as (select session_id, last_filled as remote from stated where key = 'remote' and last_filled is not null),
origins as (select session_id, last_filled as origin from stated where key = 'worktree.origin' and last_filled is not null),
places as (
    select session_id, w.cwd, coalesce(o.origin, repository_of(w.cwd)) as folder, r.remote
    from working_folders w
    full join remotes r using (session_id)
    left join origins o using (session_id)
),
named as (
    select p.session_id, arg_max(n.project, case n.kind when 'folder' then 1 + length(n.place) else 0 end) as project
    from places p
    join mart.project_names n
        on case n.kind when 'folder' then is_within(p.cwd, n.place) or is_within(p.folder, n.place)
            else remote_key(n.place) = remote_key(p.remote) end
    group by p.session_id
)
select session_id, coalesce(n.project, last_part(p.remote), last_part(p.folder)) as project
from places p
left join named n using (session_id);
