-- resolve: mart.dialogue
-- needs: timeline, copied, unelected, dead, facts.dialogue
-- about: order, turn and branch of each dialogue row. What a better source says too is a copy: a session never has its
--   dialogue twice
delete from mart.dialogue where session_id in (select session_id from touched);

insert into mart.dialogue
select d.session_id, t.seq, t.turn_no, d.fact_id, d.role, d.kind, d.ts, d.model, d.message_key, d.text_chars, d.agent,
    case when x.line_no is null then 'live' else 'dead' end, c.line_no is not null or u.source_id is not null
from facts.dialogue d
join timeline t on t.what = 'dialogue' and t.session_id = d.session_id and t.fact_id = d.fact_id
left join copied c on c.source_id = d.source_id and c.line_no = d.line_no and c.child = d.child
left join unelected u on u.session_id = d.session_id and u.source_id = d.source_id
left join dead x on x.source_id = d.source_id and x.line_no = d.line_no and x.child = d.child
order by d.session_id, t.seq;
