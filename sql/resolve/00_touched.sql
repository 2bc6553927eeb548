-- resolve: touched
-- needs: facts.records, facts.session_facts, changed
-- about: the sessions to resolve. The loader makes the table `changed(session_id)` first: the sessions of every source whose
--   rows or state differ from before. A session is concluded together with those it is related to (copies, parents and
--   sub-agents, forks, continuations, process runs), in both directions: a new earlier copy moves ownership.
create or replace temp table related as
select distinct session_id as a, origin_session_id as b
from facts.records
where origin_session_id is not null and origin_session_id <> session_id
union
select distinct session_id, value from facts.session_facts where key in ('parent', 'forked_from', 'continues', 'run');

create or replace temp table touched as
with recursive closure as (
    select session_id from changed
    union
    select case when r.a = c.session_id then r.b else r.a end
    from closure c
    join related r on r.a = c.session_id or r.b = c.session_id
)
select distinct session_id from closure where session_id is not null;
