-- Which records were abandoned. Only sessions that fork are looked at, and of them only runs: a run is records that each follow
-- the one before, so a session without a fork is one run. Jumps of 1, 2, 4, ... runs at once keep chains of any length and
-- records in any order far from a walk step by step; what a ring of parents holds has no root, and stays live.

-- resolve: leaves
-- needs: facts.session_facts, facts.sources, touched
-- about: the last leaf that each session states, with the place of the statement, and the last place where a file said that
--   nothing is left ('': the branch was emptied)
create or replace temp table leaves as
with places as (
    select session_id, source_id, max(line_no * 1048576 + child) as place,
        max(line_no * 1048576 + child) filter (value = '') as emptied_place
    from facts.session_facts
    where key = 'leaf' and session_id in (select session_id from touched)
    group by session_id, source_id
),
said as (
    select p.session_id, p.source_id, s.rel_path, f.value as leaf, f.line_no, f.ts,
        case when p.emptied_place is not null
            then {'source_id': p.source_id, 'line_no': e.line_no, 'ts': e.ts} end as emptied
    from places p
    join facts.sources s on s.source_id = p.source_id
    join facts.session_facts f
        on f.key = 'leaf' and f.source_id = p.source_id and f.line_no * 1048576 + f.child = p.place
    left join facts.session_facts e
        on e.key = 'leaf' and e.source_id = p.source_id and e.line_no * 1048576 + e.child = p.emptied_place
)
select session_id, nullif(leaf, '') as leaf, source_id, line_no, ts, emptied.source_id as emptied_source,
    emptied.line_no as emptied_line, emptied.ts as emptied_ts
from (
    select session_id, leaf, source_id, line_no, ts, first_value(emptied ignore nulls) over latest as emptied
    from said
    window latest as (
        partition by session_id order by ts desc nulls last, rel_path desc, source_id
        rows between unbounded preceding and unbounded following
    )
    qualify row_number() over latest = 1
);

-- resolve: forked
-- needs: facts.records, leaves, touched
-- about: sessions in which something follows a record in more than one way, or after the record that is said to be the last.
--   A result or an aside that nothing follows is no second way (results of parallel calls hang beside the chain), unless it is
--   said to be the last. (Ids are compared by hash, for speed: one session too many costs time and changes nothing.)
create or replace temp table forked as
with linked as (
    select session_id, hash(session_id, native_uuid) as id, hash(session_id, coalesce(parent_uuid, logical_parent_uuid)) as parent,
        part
    from facts.records
    where native_uuid is not null and coalesce(parent_uuid, logical_parent_uuid) is not null
      and session_id in (select session_id from touched)
),
ways as (
    select session_id, id, parent from linked where part in ('prompt', 'answer')
    union all
    select l.session_id, l.id, l.parent
    from linked l
    semi join linked n on n.parent = l.id
    where l.part not in ('prompt', 'answer')
)
select any_value(session_id) as session_id from ways group by parent having min(id) <> max(id)
union
select session_id from leaves where hash(session_id, leaf) in (select parent from linked)
union
select l.session_id
from leaves l
join linked e on e.id = hash(l.session_id, l.leaf)
join linked n on n.parent = e.parent and n.id <> e.id
union
select session_id from leaves where emptied_source is not null;

-- resolve: chain
-- needs: forked, facts.records, facts.sources
-- about: the records of forked sessions, numbered by time (a source keeps its own order), each with its parent, its run, and the
--   last prompt or answer at or above it in the run. A record in two files is one. A parent that is not there, or is the record
--   itself, is none.
create or replace temp table chain as
with files as (
    select *, min(file_no) over (partition by session_id) as session_no,
        count(*) over (partition by session_id) > 1 as is_one_of_many
    from (
        select f.session_id, f.source_id, row_number() over (order by f.session_id, s.rel_path, f.source_id) as file_no
        from (
            select distinct session_id, source_id from facts.records where session_id in (select session_id from forked)
        ) f
        join facts.sources s using (source_id)
    )
),
own as (
    select f.session_id, f.session_no, f.file_no, f.is_one_of_many, r.native_uuid,
        coalesce(r.parent_uuid, r.logical_parent_uuid) as parent_uuid, r.part, r.message_key, coalesce(r.is_sidechain, false) as is_sidechain, r.source_id, r.line_no, r.child, r.ts
    from facts.records r
    join files f on f.session_id = r.session_id and f.source_id = r.source_id
    where r.native_uuid is not null
),
clocked as (  -- only the records of several files have to be brought into one order, and may be twice
    select *, null::timestamptz as clock from own where not is_one_of_many
    union all
    select *, coalesce(
            max(ts) over (partition by file_no order by line_no, child rows between unbounded preceding and current row),
            min(ts) over (partition by file_no)
        )
    from own
    where is_one_of_many
),
once as (
    select * from clocked where not is_one_of_many
    union all
    select *
    from clocked
    where is_one_of_many
    qualify row_number() over (
        partition by session_no, native_uuid, is_sidechain order by clock nulls first, file_no, line_no, child
    ) = 1
),
numbered as (
    select *, row_number() over (order by session_no, is_sidechain, clock nulls first, file_no, line_no, child) as n
    from once
),
linked as (
    select c.session_id, c.is_sidechain, c.native_uuid, c.part, c.message_key, c.source_id, c.line_no, c.ts, c.n, p.n as parent_n
    from numbered c
    left join numbered p on p.session_no = c.session_no and p.native_uuid = c.parent_uuid
        and p.is_sidechain = c.is_sidechain and p.n <> c.n
),
run_through as (
    select *,
        max(case when parent_n is distinct from n - 1 then n end) over (
            order by n rows between unbounded preceding and current row
        ) as run
    from linked
)
select *,
    max(case when part in ('prompt', 'answer') then n end) over (
        partition by run order by n rows between unbounded preceding and current row
    ) as spoken_n
from run_through;

-- resolve: runs
-- needs: chain
-- about: each run with the record that it branches off from, the last prompt or answer in it and the next one above it, and the
--   root run of its tree (NULL inside and behind a ring)
create or replace temp table runs as
with recursive plain as (
    select c.run, max(c.n) as last_n, max(c.spoken_n) as last_spoken_n, any_value(h.parent_n) as parent_n, any_value(p.run) as parent_run,
        any_value(p.spoken_n) as above_n
    from chain c
    join chain h on h.n = c.run
    left join chain p on p.n = h.parent_n
    group by c.run
),
jump as (
    select 0 as round, run, coalesce(parent_run, run) as target, parent_run is null as is_root, above_n from plain
    union all
    select a.round + 1, a.run, b.target, b.is_root, coalesce(a.above_n, b.above_n)
    from jump a
    join jump b on b.run = a.target
    where a.round <= (select ceil(log2(count(*) + 1)) from plain)
      and exists (select 1 from jump where not is_root)
),
settled as (
    select j.run, j.target, j.above_n
    from jump j
    join plain r on r.run = j.target and r.parent_run is null
    where j.round = (select max(round) from jump)
)
select p.run, p.last_n, p.last_spoken_n, p.parent_n, p.parent_run, s.above_n, s.target as root
from plain p
left join settled s using (run);

-- resolve: tips
-- needs: chain, runs, leaves
-- about: where each tree may end: at the leaf that the session states, or at its latest prompt or answer that no other follows.
--   The latter counts where none is stated in the tree; else it, or the latest record of any kind (n_later), counts where it was
--   written after the statement and follows from the leaf. A tree that ends before its file said that nothing is left ends
--   nowhere.
create or replace temp table tips as
with written as (
    select root, max(last_n) as last_n,
        max(last_spoken_n) filter (last_spoken_n not in (
            select above_n from runs where above_n is not null and last_spoken_n is not null
        )) as latest_n
    from runs
    where root is not null
    group by root
    having max(last_spoken_n) is not null
),
stated as (
    select r.root, c.n as leaf_n, l.source_id, l.line_no, l.ts
    from leaves l
    join chain c on c.session_id = l.session_id and c.native_uuid = l.leaf
    join runs r on r.run = c.run
    where r.root is not null
    qualify row_number() over (partition by l.session_id order by c.is_sidechain, c.n) = 1
),
later as (
    select s.root, c.n
    from stated s
    join (select root, unnest(list_distinct([last_n, latest_n])) as n from written) w using (root)
    join chain c using (n)
    where case when c.source_id = s.source_id then c.line_no > s.line_no else coalesce(c.ts > s.ts, false) end
)
select w.root, s.leaf_n, w.latest_n, l.n as later_n,
    s.leaf_n is null and e.emptied_source is not null and (
        case when c.source_id = e.emptied_source then c.line_no < e.emptied_line else coalesce(c.ts <= e.emptied_ts, false) end
    ) as is_emptied
from written w
join chain c on c.n = w.latest_n
left join stated s on s.root = w.root
left join later l on l.root = w.root
left join leaves e on e.session_id = c.session_id;

-- resolve: reached
-- needs: tips, runs, chain
-- about: of each tree the runs that lead to its end, and up to which record. The set of runs above a tip doubles with each round:
--   it is joined with jumps twice as far.
create or replace temp table reached as
with recursive step as (
    select 0 as round, true as is_jump, run as a, parent_run as b, null::bigint as tip
    from runs
    where parent_run is not null and root in (select root from tips)
    union all
    select 0, false, null, c.run, c.n
    from (
        select leaf_n as n from tips where leaf_n is not null
        union select latest_n from tips where leaf_n is null
        union select later_n from tips where later_n is not null
    ) t
    join chain c using (n)
    union all
    select round, is_jump, a, b, tip
    from (
        select x.round + 1 as round, true as is_jump, x.a, y.b, null::bigint as tip
        from step x
        join step y on y.a = x.b
        where x.is_jump and y.is_jump
        union all
        select round + 1, false, null, b, tip from step where not is_jump
        union all
        select x.round + 1, false, null, y.b, x.tip
        from step x
        join step y on y.a = x.b
        where not x.is_jump and y.is_jump
    )
    where exists (select 1 from step where is_jump)
),
above as (
    select tip, b as run from step where not is_jump and round = (select max(round) from step)
),
upto as (
    select a.tip, a.run, coalesce(max(r.parent_n), a.tip) as upto
    from above a
    left join (
        select x.tip, r.parent_run, r.parent_n from above x join runs r on r.run = x.run
    ) r on r.tip = a.tip and r.parent_run = a.run
    group by a.tip, a.run
),
followed as (  -- a prompt or an answer before what is neither
    select t.root, max_by(t.later_n, (t.later_n = t.latest_n, t.later_n)) as tip
    from tips t
    join chain l on l.n = t.leaf_n
    join upto u on u.tip = t.later_n and u.run = l.run and u.upto >= l.n
    group by t.root
)
select u.run, u.upto
from (
    select distinct coalesce(f.tip, t.leaf_n, t.latest_n) as tip
    from tips t
    left join followed f using (root)
    where not t.is_emptied
) t
join upto u using (tip);

-- resolve: dead
-- needs: chain, runs, reached, facts.records
-- about: the places of records of dead branches. Off the chain, fragments of a message that is on it are rejoined, and results,
--   summaries and asides that hang on what is live. Dead is what stands at or behind a prompt or an answer that was abandoned,
--   and an aside that leads to one.
create or replace temp table dead as
with recursive off_chain as (
    select c.*
    from chain c
    join runs r on r.run = c.run and r.root is not null
    left join reached l on l.run = c.run
    where l.run is null or c.n > l.upto
),
spoken as (
    select o.run, min(o.n) as first_n, max(o.n) as last_n
    from off_chain o
    where o.part in ('prompt', 'answer')
      and not (
          o.part = 'answer' and o.message_key is not null and (o.session_id, o.message_key) in (
              select (c.session_id, c.message_key)
              from chain c
              join reached l on l.run = c.run and c.n <= l.upto
              where c.part = 'answer' and c.message_key is not null
          )
      )
    group by o.run
),
side as (
    select r.run, r.parent_run, coalesce(s.first_n <= r.parent_n, false) as is_behind
    from runs r
    left join spoken s on s.run = r.parent_run
    where r.root in (select root from runs where run in (select run from spoken))
),
jump as (
    select 0 as round, run, coalesce(parent_run, run) as target, is_behind, parent_run is null as is_root from side
    union all
    select a.round + 1, a.run, b.target, a.is_behind or b.is_behind, b.is_root
    from jump a
    join jump b on b.run = a.target
    where exists (select 1 from jump where not is_root)
),
behind as (
    select run from jump where is_behind and round = (select max(round) from jump)
),
lost as (
    select o.session_id, o.native_uuid, o.is_sidechain
    from off_chain o
    left join spoken s on s.run = o.run
    where o.run in (select run from behind)
       or s.first_n <= o.n
       or (o.part = 'aside' and o.n < s.last_n)
)
select r.source_id, r.line_no, r.child
from facts.records r
join lost l on l.session_id = r.session_id and l.native_uuid = r.native_uuid and l.is_sidechain = coalesce(r.is_sidechain, false);
