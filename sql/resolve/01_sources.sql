-- resolve: members
-- needs: touched, facts.sources, facts.records
-- about: which sources tell of which sessions. A file is of one session as a rule; the records of a database name theirs.
--   The audit trail makes no session: what it says of one that no other source shows stays in facts. A guest is a session
--   without a file of its own, in the log of another.
create or replace temp table members as
select session_id, source_id, store_rank(store_kind) as rank, false as is_guest
from facts.sources
where session_id in (select session_id from touched)
union
select r.session_id, r.source_id, store_rank(s.store_kind), s.session_id is not null
from (select distinct session_id, source_id from facts.records where session_id in (select session_id from touched)) r
join facts.sources s on s.source_id = r.source_id
where s.store_kind <> 'qoder_audit' and s.session_id is distinct from r.session_id
  and (s.session_id is null or r.session_id not in (select session_id from facts.sources where session_id is not null));

-- resolve: unelected
-- needs: touched, facts.records, facts.sources
-- about: sources whose dialogue, turns and times do not count for a session, because a better source tells of it: the
--   lowest rank with a message record is elected, with all its sources (the same session may stand in two folders)
create or replace temp table unelected as
with lower as (select source_id from facts.sources where store_rank(store_kind) > 0),
contested as (
    select distinct r.session_id
    from facts.records r
    semi join lower using (source_id)
    where r.session_id in (select session_id from touched)
),
talking as (
    select distinct r.session_id, r.source_id
    from facts.records r
    where r.session_id in (select session_id from contested)
)
select t.session_id, t.source_id
from talking t
join facts.sources s on s.source_id = t.source_id
qualify store_rank(s.store_kind) > min(store_rank(s.store_kind)) over (partition by t.session_id);
