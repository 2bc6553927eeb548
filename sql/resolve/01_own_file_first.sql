-- resolve: guests
-- needs: facts.records, facts.sources, mart.copies, touched
-- about: a log may hold records of another session (a parent's log those of its sub-agents). They are that session's, and
--   copies where its own file says the same: the same kind of record of the same message or run.
insert into mart.copies by name
with guests as (
    select r.session_id, r.source_id, r.line_no, r.child, r.record_kind, r.message_key
    from facts.records r
    join facts.sources s on s.source_id = r.source_id and s.session_id <> r.session_id
    anti join mart.copies c on c.source_id = r.source_id and c.line_no = r.line_no and c.child = r.child
    anti join mart.copies o on o.owner_source_id = r.source_id and o.owner_line_no = r.line_no
        and o.owner_child = r.child
    where r.message_key is not null and r.session_id in (select session_id from touched)
),
own as (
    select r.session_id, r.source_id, r.line_no, r.child, r.record_kind, r.message_key
    from facts.records r
    join facts.sources s on s.source_id = r.source_id and s.session_id = r.session_id
    where r.session_id in (select session_id from guests)
)
select g.session_id, g.source_id, g.line_no, g.child, o.session_id as owner_session_id, o.source_id as owner_source_id,
    o.line_no as owner_line_no, o.child as owner_child, 'duplicate_store' as reason
from guests g
join own o on o.session_id = g.session_id and o.record_kind = g.record_kind and o.message_key = g.message_key
qualify row_number() over (
    partition by g.source_id, g.line_no, g.child order by o.line_no, o.child, o.source_id
) = 1;
