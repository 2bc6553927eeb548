-- resolve: guests
-- needs: facts.records, facts.sources, mart.copies, touched
-- about: a log may hold records of another session (a parent's log those of its sub-agents). They are that session's, and
--   copies where its own file says the same: the same kind of record of the same message or run.
insert into mart.copies by name
with placed as (
    select r.session_id, r.source_id, r.line_no, r.child, r.record_kind, r.message_key, s.session_id = r.session_id as is_own
    from facts.records r
    join facts.sources s using (source_id)
    where r.message_key is not null and r.session_id in (select session_id from touched) and s.session_id is not null
),
guests as (
    select * from placed g
    where not is_own
      and (source_id, line_no, child) not in (select (source_id, line_no, child) from mart.copies)
      and (source_id, line_no) not in (select (owner_source_id, owner_line_no) from mart.copies)
)
select g.source_id, g.line_no, g.child, o.source_id as owner_source_id, o.line_no as owner_line_no, 'duplicate_store' as reason
from guests g
join placed o on o.session_id = g.session_id and o.record_kind = g.record_kind and o.message_key = g.message_key and o.is_own
qualify row_number() over (
    partition by g.source_id, g.line_no, g.child order by o.line_no, o.child, o.source_id
) = 1;
