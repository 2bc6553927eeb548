-- resolve: touched
-- needs: facts.sources, facts.records, facts.session_facts
-- about: the sessions to resolve: all of them. Every further step reads this table and no old row of mart, so a session
--   resolves to the same rows in any load.
create or replace temp table touched as
select distinct session_id from facts.sources where session_id is not null
union
select distinct session_id from facts.records
union
select distinct session_id from facts.session_facts;
