-- resolve: reordered
-- needs: facts.records, touched
-- about: records that stand in their source in another order than the log's own numbering of its session: each with the place
--   at which it belongs (at_line, at_child). Empty where lines are in order, which is the rule.
create or replace temp table reordered as
with numbered as (
    select session_id, source_id, line_no, child, sequence,
        lag(sequence) over (partition by session_id, source_id order by line_no, child) as before
    from facts.records
    where sequence is not null and session_id in (select session_id from touched)
),
placed as (
    select session_id, source_id, line_no, child,
        row_number() over (partition by session_id, source_id order by line_no, child) as stands,
        row_number() over (partition by session_id, source_id order by sequence, line_no, child) as belongs
    from numbered
    where (session_id, source_id) in (select (session_id, source_id) from numbered where sequence < before)
)
select a.session_id, a.source_id, a.line_no, a.child, b.line_no as at_line, b.child as at_child
from placed a
join placed b on b.session_id = a.session_id and b.source_id = a.source_id and b.stands = a.belongs
where a.stands <> a.belongs;
