-- resolve: touched
-- needs: facts.records, facts.session_facts, facts.model_calls, mart.copies, mart.conflicts, mart.session_links, changed
-- about: the sessions to resolve. The loader makes the table `changed(session_id)` first: the sessions of every source whose
--   rows or state differ from before. A session is concluded together with those it is related to (copies, parents and
--   sub-agents, forks, continuations, process runs, the same record or response in both), in both directions: a new earlier copy moves
--   ownership. What the store says of relations before this load counts too: whose owner went away must be concluded anew.
--   No row of mart becomes a row of mart by that.
create or replace temp table related as
with told as (
    select distinct session_id as a, origin_session_id as b
    from facts.records
    where origin_session_id is not null and origin_session_id <> session_id
    union
    select distinct session_id, value from facts.session_facts where key in ('parent', 'spawner', 'forked_from', 'continues', 'run')
    union
    select session_id, other_session_id from mart.session_links
    union
    select distinct session_id, owner_session_id from mart.copies where owner_session_id <> session_id
    union
    select distinct session_id, other_session_id from mart.conflicts where other_session_id <> session_id
)
select a, b from told
union
select b, a from told;

create or replace temp table touched as
with recursive closure as (
    select session_id from changed where session_id is not null
    union
    select session_id
    from (
        select r.b as session_id
        from closure c
        join related r on r.a = c.session_id
        union all
        select o.session_id
        from closure c
        join facts.records m on m.session_id = c.session_id
        join (
            select session_id, native_uuid, ts
            from facts.records
            anti join changed using (session_id)
            where is_global_id(session_id, native_uuid)  -- others are told by a session's word alone, which is in `related`
        ) o on o.native_uuid = m.native_uuid and o.ts is not distinct from m.ts
        union all
        select o.session_id
        from closure c
        join facts.model_calls m on m.session_id = c.session_id
        join (
            select distinct session_id, request_key
            from facts.model_calls
            anti join changed using (session_id)
            where is_response_id(session_id, request_key)
        ) o on o.request_key = m.request_key
    )
)
select distinct session_id from closure;
