-- resolve: suspects
-- needs: facts.records, facts.session_facts, facts.sources, touched
-- about: records that may be copies or owners: those whose id stands in more than one record, that name an origin, or that
--   are named as one. Most sessions have none: all that follows works on these alone. A session is kin to the ones it was
--   forked from or continues: they may hold the same records without a word at each of them. A sub-agent of a fork is kin to
--   the sub-agent of the same name of its origin. A guest is a record in the log of another session than its own.
create or replace temp table kin as
with told as (
    select distinct session_id, origin_session_id as origin
    from facts.records
    where origin_session_id is not null and origin_session_id <> session_id and session_id in (select session_id from touched)
    union
    select distinct session_id, value from facts.session_facts
    where key in ('forked_from', 'continues') and session_id in (select session_id from touched)
)
select session_id, origin from told
union
select a.session_id, t.origin || substr(a.session_id, length(t.session_id) + 1)
from (select distinct session_id, value as parent from facts.session_facts where key = 'parent') a
join told t on t.session_id = a.parent and starts_with(a.session_id, t.session_id || '/');

create or replace temp table suspects as
with twice as (
    select hash(native_uuid) as id from facts.records
    where session_id in (select session_id from touched) and native_uuid is not null
    group by id having count(*) > 1
),
named as (
    select distinct origin_session_id as session_id, origin_uuid as native_uuid from facts.records
    where origin_session_id <> session_id and origin_uuid is not null and session_id in (select session_id from touched)
)
select r.session_id, split_part(r.session_id, ':', 1) as world, r.source_id, r.line_no, r.child, r.native_uuid, r.role, r.ts,
    s.rel_path, store_rank(s.store_kind) as rank, coalesce(s.session_id <> r.session_id, false) as is_guest, case when r.origin_session_id <> r.session_id then r.origin_session_id end as origin_session_id,
    coalesce(r.origin_uuid, r.native_uuid) as origin_uuid
from facts.records r
join facts.sources s using (source_id)
where r.session_id in (select session_id from touched) and r.native_uuid is not null
  and (
      hash(r.native_uuid) in (select id from twice)  -- by hash for speed: one record too many changes nothing
      or r.origin_session_id <> r.session_id
      or (r.session_id, r.native_uuid) in (select (session_id, native_uuid) from named)
  );

-- resolve: identities
-- needs: suspects, kin
-- about: one identity is one record of one session, in however many files. Each points to its origin: the one its log names
--   (which may not be loaded: then it is an identity without records), else the same id, of the same time, in a kin session.
create or replace temp table identities as
with own as (
    select session_id, native_uuid, world, min(ts) as ts, arg_min(rel_path, (rel_path, line_no, child)) as rel_path,
        min(line_no) as line_no, min((origin_session_id, origin_uuid)) filter (origin_session_id is not null) as origin
    from suspects
    group by session_id, native_uuid, world
),
implied as (
    select o.session_id, o.native_uuid, min((p.session_id, p.native_uuid)) as origin
    from own o
    join kin k on k.session_id = o.session_id
    join own p on p.session_id = k.origin and p.native_uuid = o.native_uuid and p.ts is not distinct from o.ts
    where o.origin is null
    group by o.session_id, o.native_uuid
),
listed as (
    select o.session_id, o.native_uuid, o.world, coalesce(o.origin, i.origin) as origin, true as is_loaded, o.ts, o.rel_path,
        o.line_no
    from own o
    left join implied i on i.session_id = o.session_id and i.native_uuid = o.native_uuid
    union all
    select distinct o.origin[1], o.origin[2], o.world, null, false, null::timestamptz, '', 0
    from own o
    anti join own p on p.session_id = o.origin[1] and p.native_uuid = o.origin[2]
    where o.origin is not null
)
select row_number() over (
        order by is_loaded, origin is not null, ts nulls last, rel_path, line_no, session_id, native_uuid
    ) as identity,
    *
from listed;

-- resolve: labels
-- needs: identities
-- about: label is the first of all identities that are reached from one by its origins. Jumps of 1, 2, 4, ... steps reach the
--   end of a chain of forks in few rounds; in a ring of forks they run out, with the same label all around.
create or replace temp table labels as
with recursive jump as (
    select 0 as round, i.identity, coalesce(o.identity, i.identity) as target,
        least(i.identity, coalesce(o.identity, i.identity)) as label, o.origin is null as is_end, o.is_loaded as is_origin_loaded
    from identities i
    left join identities o on o.session_id = i.origin[1] and o.native_uuid = i.origin[2]
    union all
    select a.round + 1, a.identity, b.target, least(a.label, b.label), b.is_end, a.is_origin_loaded
    from jump a
    join jump b on b.identity = a.target
    where a.round <= (select ceil(log2(count(distinct session_id) + 1)) from identities)
      and exists (select 1 from jump where not is_end)
)
select identity, label, coalesce(is_origin_loaded, false) as is_origin_loaded
from jump
where round = (select max(round) from jump);

-- resolve: shared
-- needs: suspects, identities, labels, facts.records
-- about: records that share an identity, with the owner of it. A global id is the same record in every session of its world
--   (provider and realm) when the times agree too; others say so only where a session names its origin. The owner is what was
--   copied from nowhere, then the earliest; copies keep the time of their original, so it is next the record of the session
--   that began to say things of its own first, then of the better store, then by path, line and child. A guest is a copy of
--   the record in its session's own file, whatever either says.
create or replace temp table shared as
with members as (
    select s.*, l.label, l.is_origin_loaded,
        s.is_guest and not bool_and(s.is_guest) over (partition by s.session_id, s.native_uuid) as is_told_at_home,
        case when is_global_id(e.session_id, e.native_uuid) then e.world else e.session_id end || ' ' || e.native_uuid as class
    from suspects s
    join identities i on i.session_id = s.session_id and i.native_uuid = s.native_uuid
    join labels l on l.identity = i.identity
    join identities e on e.identity = l.label
),
in_both as (
    select m.session_id, m.source_id, m.line_no, m.child
    from members m
    semi join (select class from members group by class having min(session_id) <> max(session_id)) using (class)
),
began as (
    select r.session_id, min(r.ts) as own_start
    from facts.records r
    anti join in_both b on b.source_id = r.source_id and b.line_no = r.line_no and b.child = r.child
    where r.session_id in (select session_id from in_both)
    group by r.session_id
),
placed as (
    select class, session_id, source_id, line_no, child, native_uuid, label, ts, is_told_at_home, row_number() over same_record as nth,
        first_value({
            'session_id': session_id, 'source_id': source_id, 'line_no': line_no, 'child': child, 'label': label, 'ts': ts,
            'is_guest': is_guest
        }) over same_record as owner
    from members
    left join began using (session_id)
    window same_record as (
        partition by class
        order by is_told_at_home, is_origin_loaded, ts nulls last, own_start nulls first, rank, rel_path, source_id, line_no, child
    )
)
select class, nth, session_id, source_id, line_no, child, native_uuid, owner.session_id as owner_session_id,
    owner.source_id as owner_source_id, owner.line_no as owner_line_no, owner.child as owner_child,
    case when session_id <> owner.session_id then label = owner.label else is_told_at_home and not owner.is_guest end as is_told
from placed
where nth > 1 and source_id <> owner.source_id
  and (session_id = owner.session_id or label = owner.label or ts is not distinct from owner.ts);

-- resolve: differing
-- needs: shared, facts.dialogue, facts.tool_requests, facts.tool_results
-- about: shared records that say something else than their owner at the same place. What only one of the two says is no
--   contradiction: a file may have been copied before a message had grown to its end.
create or replace temp table differing as
with said as (
    select source_id, line_no, child, what, block, digest
    from (
        select source_id, line_no, child, 1 as what, coalesce(block, -1) as block, digest from facts.dialogue
        union all
        select source_id, line_no, child, 2, coalesce(block, -1), digest from facts.tool_requests
        union all
        select source_id, line_no, child, 3, coalesce(block, -1), digest from facts.tool_results
    )
    where source_id in (select source_id from shared union select owner_source_id from shared)
),
compared as (
    select s.*, m.what, m.block, m.digest, o.digest as other_digest
    from shared s
    join said m on m.source_id = s.source_id and m.line_no = s.line_no and m.child = s.child
    left join said o on o.source_id = s.owner_source_id and o.line_no = s.owner_line_no and o.child = s.owner_child
        and o.what = m.what and o.block = m.block
)
select class, nth, session_id, source_id, line_no, child, native_uuid, owner_session_id, owner_source_id, owner_line_no,
    is_told, arg_min(digest, (what, block)) filter (digest <> other_digest) as digest,
    arg_min(other_digest, (what, block)) filter (digest <> other_digest) as other_digest,
    string_agg(what || '.' || block || '.' || coalesce(digest, ''), ' ' order by what, block) as signature
from compared
group by class, nth, session_id, source_id, line_no, child, native_uuid, owner_session_id, owner_source_id, owner_line_no, is_told
having count(*) filter (digest <> other_digest) > 0;

-- resolve: mart.conflicts
-- needs: differing
-- about: the same id with other content in two files. Both sides are kept; but where a session names its origin, its copy is one
--   all the same (it was not paid for again), and the owner's side is used, and so is that of a session's own file where the
--   other is a guest. Else both are shown.
delete from mart.conflicts where session_id in (select session_id from touched);

insert into mart.conflicts
select session_id, source_id, line_no, child, owner_session_id, owner_source_id, owner_line_no, 'record', native_uuid, digest,
    other_digest, 'same_id_in_two_files', case when is_told then 'other' else 'both' end
from differing
qualify row_number() over (partition by class, session_id, signature order by nth) = 1
order by source_id, line_no, child;

-- resolve: mart.copies
-- needs: shared, differing, facts.session_facts
-- about: a shared record is a copy of its owner; one that says something else, and that is not told to be a copy, is one of the
--   first that says the same.
delete from mart.copies where session_id in (select session_id from touched);

insert into mart.copies
with continued as (
    select distinct session_id, value as other from facts.session_facts where key = 'continues'
),
kept as (
    select *, row_number() over alike as place,
        first_value({'session_id': session_id, 'source_id': source_id, 'line_no': line_no, 'child': child}) over alike as first
    from differing
    where not is_told
    window alike as (partition by class, signature order by nth)
),
copied as (
    select s.session_id, s.source_id, s.line_no, s.child, s.owner_session_id, s.owner_source_id, s.owner_line_no, s.owner_child
    from shared s
    anti join kept k on k.source_id = s.source_id and k.line_no = s.line_no and k.child = s.child
    union all
    select session_id, source_id, line_no, child, first.session_id, first.source_id, first.line_no, first.child
    from kept
    where place > 1
)
select c.session_id, c.source_id, c.line_no, c.child, c.owner_session_id, c.owner_source_id, c.owner_line_no, c.owner_child,
    case when c.session_id = c.owner_session_id then 'duplicate_store' when n.session_id is not null then 'resume' else 'fork' end
from copied c
left join continued n on n.session_id = c.session_id and n.other = c.owner_session_id
order by c.source_id, c.line_no, c.child;
