-- resolve: mart.copies
-- needs: facts.records, touched
-- about: a record is a copy when its log names the record it was copied from and that record is in the store
--   (forkedFrom), or when the same session holds the same record in two files. The owner of the latter is the earliest
--   by time, then relative path, line and child; a copy whose owner is not loaded is no copy.
delete from mart.copies where source_id in (select source_id from facts.records semi join touched using (session_id));

insert into mart.copies
select c.source_id, c.line_no, c.child, o.source_id, o.line_no, 'fork'
from facts.records c
join facts.records o on o.session_id = c.origin_session_id and o.native_uuid = c.origin_uuid
join facts.sources s on s.source_id = o.source_id
where c.session_id in (select session_id from touched)
  and c.session_id is distinct from o.session_id
qualify row_number() over (partition by c.source_id, c.line_no, c.child order by o.ts, s.rel_path, o.line_no, o.child) = 1;

insert into mart.copies
with same as (
    select r.source_id, r.line_no, r.child, r.ts, s.rel_path,
        first_value({'source_id': r.source_id, 'line_no': r.line_no}) over same_record as owner,
        row_number() over same_record as nth
    from facts.records r
    join facts.sources s using (source_id)
    where r.session_id in (select session_id from touched) and r.native_uuid is not null
    window same_record as (
        partition by r.session_id, r.native_uuid order by r.ts nulls last, s.rel_path, r.line_no, r.child
    )
)
select source_id, line_no, child, owner.source_id, owner.line_no, 'duplicate_store'
from same
where nth > 1
  and owner.source_id <> source_id
  and (source_id, line_no, child) not in (select (source_id, line_no, child) from mart.copies);
