-- Evidence of a Qoder Bridge: what a turn's row counts is there row by row, answers are kept, and clocks hold.

-- check: bridge_counts
-- severity: broken
-- about: the messages, queue events and frames that the row of a turn counts are there one by one; those that came after its
--   first result are there and not counted
select t.source_id, t.batch_id || ' ' || t.run || '.' || t.turn || ': ' || t.raw_chunk_count || ' messages, ' || count(m.fact_id) || ' rows' as detail
from facts.provider_turns t
left join facts.sdk_messages m on m.source_id = t.source_id and m.batch_id = t.batch_id and m.run = t.run and m.turn = t.turn
    and m.disposition <> 'after_terminal'
where t.raw_chunk_count is not null
group by t.source_id, t.batch_id, t.run, t.turn, t.raw_chunk_count
having count(m.fact_id) <> t.raw_chunk_count
union all
select t.source_id, t.batch_id || ' ' || t.run || '.' || t.turn || ': ' || t.queue_event_count || ' queue events, ' || count(q.fact_id) || ' rows'
from facts.provider_turns t
left join facts.queue_events q on q.source_id = t.source_id and q.batch_id = t.batch_id and q.run = t.run and q.turn = t.turn
    and q.disposition <> 'after_terminal'
where t.queue_event_count is not null
group by t.source_id, t.batch_id, t.run, t.turn, t.queue_event_count
having count(q.fact_id) <> t.queue_event_count
union all
select t.source_id, t.batch_id || ' ' || t.run || '.' || t.turn || ': ' || t.transport_frame_count || ' frames, ' || count(f.fact_id) || ' rows'
from facts.provider_turns t
left join facts.transport_frames f on f.source_id = t.source_id and f.run = t.run and f.turn = t.turn and f.direction = 'frame'
where t.transport_frame_count is not null
group by t.source_id, t.batch_id, t.run, t.turn, t.transport_frame_count
having count(f.fact_id) <> t.transport_frame_count;

-- check: bridge_answers_are_kept
-- severity: broken
-- about: the text of an observed answer is somewhere: as dialogue (said or discarded), as an envelope, or as a call, and never
--   is an envelope both a call and prose
select t.source_id, t.batch_id || ' ' || t.run || '.' || t.turn || ': an answer that is nowhere' as detail
from facts.provider_turns t
join facts.sources s using (source_id)
where t.raw_chunk_count is not null and s.session_id is not null and trim(t.own_text) <> ''
  and not exists (from facts.dialogue d where d.source_id = t.source_id and d.role = 'assistant' and d.kind in ('text', 'discarded'))
  and not exists (from facts.envelopes e where e.source_id = t.source_id and e.boundary = 'A' and e.run = t.run and e.turn = t.turn)
  and not exists (from facts.tool_requests q where q.source_id = t.source_id)
union all
select d.source_id, 'line ' || d.line_no || ': an envelope stands as prose'
from facts.dialogue d
join facts.envelopes e on e.source_id = d.source_id and e.line_no = d.line_no and e.boundary = 'A'
where d.role = 'assistant' and d.kind = 'text';

-- check: bridge_values
-- severity: broken
-- about: columns of the Bridge's tables with a closed list hold nothing else
select source_id, 'provider_turns ' || evidence_level || '/' || coalesce(error_class, '-') as detail
from facts.provider_turns
where evidence_level not in ('observed', 'derived', 'replay', 'summary_only')
   or error_class not in ('protocol', 'availability', 'continuation_timeout', 'aborted', 'provider_error')
union all
select source_id, 'sdk_messages.disposition ' || disposition from facts.sdk_messages
where disposition not in ('kept', 'dup_uuid', 'dup_final', 'conflict', 'malformed', 'after_error', 'after_terminal')
union all
select source_id, 'queue_events.disposition ' || disposition from facts.queue_events
where disposition not in ('kept', 'conflict', 'after_error', 'after_terminal')
union all
select source_id, 'boundary_events ' || coalesce(boundary, '-') || '/' || evidence_level from facts.boundary_events
where boundary not in ('A', 'B', 'C', 'D', 'E') or evidence_level not in ('observed', 'derived', 'replay', 'summary_only')
union all
select source_id, 'transport_frames.direction ' || direction from facts.transport_frames
where direction not in ('write', 'frame', 'omitted')
union all
select source_id, 'envelopes.boundary ' || boundary from facts.envelopes where boundary not in ('A', 'B', 'C', 'D')
union all
select source_id, 'bridge_batches.source_kind ' || source_kind from facts.bridge_batches
where source_kind not in ('live', 'replay', 'previous', 'log', 'stream');

-- check: bridge_clock
-- severity: finding
-- about: the time since a turn began does not go back; where it does, the order of the lines stays and times are not to be
--   trusted
select source_id, batch_id || ' ' || run || '.' || turn || ': time goes back ' || backward_steps || ' times' as detail
from facts.provider_turns
where backward_steps > 0;

-- check: bridge_deadline
-- severity: finding
-- about: no turn goes on more than 5 s (the longest cleanup) after its deadline, and no heartbeat of the queue extends it
select b.source_id, t.batch_id || ' ' || t.run || '.' || t.turn || ': ended at ' || t.terminal_ms || ' ms, deadline ' || t.deadline_ms || ' ms' as detail
from main.bridge_turn_timing t
join main.bridge_sources b using (batch_id, run, turn)
where b.part = 'messages' and not b.is_copy and (t.is_late or t.heartbeats_after_deadline > 0);
