-- resolve: copied
-- needs: mart.copies, unelected
-- about: the places of copies, to mark rows with. The same record in a better store and in a worse one is a copy in the
--   worse one, whichever of them is called its owner
create or replace temp table copied as
select distinct source_id, line_no, child
from mart.copies
where session_id in (select session_id from touched)
    and not (reason = 'duplicate_store' and owner_source_id in (select source_id from unelected));

-- resolve: timeline
-- needs: facts.records, facts.turn_marks, facts.dialogue, facts.tool_requests, copied, unelected, reordered
-- about: one order for everything a session says. Inside a source the order is that of its lines, or of its own numbering
--   where that differs (at_line, at_child); the sources of a
--   session are merged by time, but a source is never reordered (its running latest time is what is compared). Turn
--   starts of copied records count for no turn of the copy's session; records and turn starts of a source that is not
--   elected neither. A record is of the turn that started last, unless it names another one that started before.
create or replace temp table timeline as
with places as (
    select r.session_id, r.source_id, r.line_no, r.child, -2 as rank_in_record, null::ubigint as fact_id, 'record' as what,
        r.ts
    from facts.records r
    anti join unelected u on u.session_id = r.session_id and u.source_id = r.source_id
    union all
    select m.session_id, m.source_id, m.line_no, m.child, -3, m.fact_id, 'start', m.ts
    from facts.turn_marks m
    anti join copied c on c.source_id = m.source_id and c.line_no = m.line_no and c.child = m.child
    anti join unelected u on u.session_id = m.session_id and u.source_id = m.source_id
    where m.mark = 'start'
    union all
    select session_id, source_id, line_no, child, coalesce(block, -1), fact_id, 'dialogue', ts
    from facts.dialogue
    union all
    select session_id, source_id, line_no, child, coalesce(block, -1), fact_id, 'call', ts
    from facts.tool_requests
),
clocked as (
    select p.*, s.rel_path,
        coalesce(
            max(ts) over (
                partition by p.session_id, p.source_id order by at_line, at_child, rank_in_record, what, fact_id
                rows between unbounded preceding and current row
            ),
            min(ts) over (partition by p.session_id, p.source_id)
        ) as clock
    from (
        select places.*, coalesce(o.at_line, line_no) as at_line, coalesce(o.at_child, child) as at_child
        from places
        left join reordered o using (session_id, source_id, line_no, child)
    ) p
    join facts.sources s using (source_id)
    where p.session_id in (select session_id from touched)
)
select session_id, source_id, line_no, child, fact_id, what, ts,
    sum(case when what = 'start' then 1 else 0 end) over walk as turn_no,
    sum(case when what in ('dialogue', 'call') then 1 else 0 end) over walk as seq
from clocked
window walk as (
    partition by session_id
    order by clock nulls first, rel_path, source_id, at_line, at_child, rank_in_record,
        case what when 'start' then 0 when 'record' then 1 when 'dialogue' then 2 else 3 end, fact_id
    rows between unbounded preceding and current row
);

update timeline
set turn_no = named.turn_no
from (
    select w.session_id, w.source_id, w.line_no, w.child, min(t.turn_no) as turn_no
    from facts.turn_marks w
    join facts.turn_marks s on s.mark = 'start' and s.session_id = w.session_id and s.native_turn_id = w.native_turn_id
    join timeline t on t.what = 'start' and t.session_id = s.session_id and t.fact_id = s.fact_id
    where w.mark = 'within' and w.session_id in (select session_id from touched)
    group by all
) named
where timeline.what <> 'start' and timeline.session_id = named.session_id and timeline.source_id = named.source_id
    and timeline.line_no = named.line_no and timeline.child = named.child;
