-- Acceptance of the dialogue: what the inventory of contents says against what became dialogue and calls. The inventory
-- is written by a walker that does not use the projector. Each check returns rows (source_id, detail); none is good.

-- check: ac1_thinking_is_dialogue
-- severity: broken
-- about: every thinking item with text has its row of dialogue of kind thinking with as many characters, or stands in
--   another row (merges)
select b.source_id, 'line ' || b.line_no || ' block ' || b.block || ': thinking without its row' as detail
from facts.content_blocks b
anti join facts.dialogue d on d.source_id = b.source_id and d.line_no = b.line_no and d.child = b.child
    and d.block = b.block and d.kind = 'thinking' and d.text_chars = b.leaf_chars
anti join facts.merges g on g.source_id = b.source_id and g.line_no = b.line_no and g.child = b.child
    and (g.block is null or g.block = b.block)
where b.role = 'assistant' and b.block_type = 'thinking' and b.leaf_chars > 0;

-- check: ac2_text_is_dialogue
-- severity: broken
-- about: every text, output_text and untyped text item, of assistants and of users, has its row of dialogue, or stands
--   in another row. Users' command wrappers are unfolded, so characters are compared for assistants only
select b.source_id, 'line ' || b.line_no || ' block ' || b.block || ': text without its row' as detail
from facts.content_blocks b
anti join facts.dialogue d on d.source_id = b.source_id and d.line_no = b.line_no and d.child = b.child
    and d.block = b.block and d.kind <> 'thinking' and (b.role = 'user' or d.text_chars = b.leaf_chars)
anti join facts.merges g on g.source_id = b.source_id and g.line_no = b.line_no and g.child = b.child
    and (g.block is null or g.block = b.block)
where b.disposition = 'used' and b.leaf_chars > 0 and (b.block_type is null or b.block_type in ('text', 'output_text'));

-- check: ac3_tool_items_are_calls
-- severity: broken
-- about: every tool_use item is a request and every tool_result item a result, or stands in another row; a record of
--   tool items only gives no dialogue
select b.source_id, 'line ' || b.line_no || ' block ' || b.block || ': ' || b.block_type || ' without its row' as detail
from facts.content_blocks b
anti join facts.tool_requests q on q.source_id = b.source_id and q.line_no = b.line_no and q.child = b.child and q.block = b.block
anti join facts.tool_results r on r.source_id = b.source_id and r.line_no = b.line_no and r.child = b.child and r.block = b.block
anti join facts.merges g on g.source_id = b.source_id and g.line_no = b.line_no and g.child = b.child
    and (g.block is null or g.block = b.block)
where b.disposition = 'used' and (b.block_type like '%tool_use' or b.block_type like '%tool_result')
union all
select d.source_id, 'line ' || d.line_no || ': dialogue from a record of tool items only'
from facts.dialogue d
semi join (
    select source_id, line_no, child
    from facts.content_blocks
    group by all
    having bool_and(coalesce(block_type like '%tool_use' or block_type like '%tool_result', false))
) t on t.source_id = d.source_id and t.line_no = d.line_no and t.child = d.child;

-- check: ac4_textual_order
-- severity: broken
-- about: dialogue rows of one record keep the order of their items, and no row stands at the place of a tool item
select d.source_id, 'line ' || d.line_no || ' block ' || d.block || ': out of order' as detail
from (
    select f.source_id, f.line_no, f.child, f.block, m.seq,
        max(f.block) over (
            partition by f.source_id, f.line_no, f.child order by m.seq rows between unbounded preceding and 1 preceding
        ) as before
    from facts.dialogue f
    join mart.dialogue m on m.session_id = f.session_id and m.fact_id = f.fact_id
    where f.block is not null
) d
where d.before > d.block
union all
select d.source_id, 'line ' || d.line_no || ' block ' || d.block || ': dialogue at a tool item'
from facts.dialogue d
join facts.content_blocks b on b.source_id = d.source_id and b.line_no = d.line_no and b.child = d.child and b.block = d.block
where b.block_type like '%tool_use' or b.block_type like '%tool_result';

-- check: ac5_unread_items_are_counted
-- severity: broken
-- about: an unknown or malformed item gives no dialogue, and is counted in the census
select d.source_id, 'line ' || d.line_no || ' block ' || d.block || ': dialogue from an unread item' as detail
from facts.dialogue d
join facts.content_blocks b on b.source_id = d.source_id and b.line_no = d.line_no and b.child = d.child and b.block = d.block
where b.disposition in ('unknown', 'rejected', 'skipped')
union all
select b.source_id, any_value('line ' || b.line_no || ': items of type ' || b.block_type || ' are not in the census')
from facts.content_blocks b
anti join facts.record_census c on c.source_id = b.source_id and c.unit = 'item' and c.disposition = 'unknown' and c.kind = b.block_type
anti join facts.merges g on g.source_id = b.source_id and g.line_no = b.line_no and g.child = b.child and g.block is null
anti join facts.merges g on g.source_id = b.source_id and g.line_no = b.line_no and g.child = b.child and g.block = b.block
where b.disposition = 'unknown'
group by b.source_id, b.block_type
union all
select b.source_id, count(*) || ' items could not be read, ' || coalesce(any_value(c.n), 0) || ' are in the census'
from facts.content_blocks b
anti join facts.merges g on g.source_id = b.source_id and g.line_no = b.line_no and g.child = b.child and g.block is null
anti join facts.merges g on g.source_id = b.source_id and g.line_no = b.line_no and g.child = b.child and g.block = b.block
left join (
    select source_id, sum(n) as n from facts.record_census where unit = 'item' and disposition = 'rejected' group by all
) c on c.source_id = b.source_id
where b.disposition = 'rejected'
group by b.source_id
having count(*) <> coalesce(any_value(c.n), 0);

-- check: ac6_rows_have_an_item
-- severity: broken
-- about: no tool input or result stands as prose: a row of an assistant's dialogue at an item must find a readable item
--   there, and its text is never the arguments or the result of a call of the same message unless the item says so
select d.source_id, 'line ' || d.line_no || ' block ' || coalesce(d.block::varchar, '-') || ': dialogue without a readable item' as detail
from facts.dialogue d
semi join facts.content_blocks r on r.source_id = d.source_id and r.line_no = d.line_no and r.child = d.child
anti join facts.content_blocks b on b.source_id = d.source_id and b.line_no = d.line_no and b.child = d.child
    and b.block = d.block and b.disposition = 'used' and b.leaf_chars > 0
where d.role = 'assistant'
union all
select d.source_id, 'line ' || d.line_no || ': the arguments of call ' || q.call_key || ' stand as prose'
from facts.dialogue d
join facts.tool_requests q on q.source_id = d.source_id and q.message_key = d.message_key and q.digest = d.digest
anti join facts.content_blocks b on b.source_id = d.source_id and b.line_no = d.line_no and b.child = d.child
    and b.block = d.block and b.disposition = 'used' and b.leaf_chars = d.text_chars
where d.role = 'assistant' and length(q.args) > 2;

-- check: ac6_calls_pair_once
-- severity: broken
-- about: a result whose call is known belongs to exactly one call, and a pair's latency is result time minus request time
--   (one in a run log or the audit trail may be that of a sub-agent's call, or of a session that no other source shows)
select r.source_id, 'line ' || r.line_no || ': call ' || r.call_key || ' is there ' || count(c.call_key) || ' times' as detail
from facts.tool_results r
semi join facts.tool_requests q on q.session_id = r.session_id and q.call_key = r.call_key
join facts.sources s on s.source_id = r.source_id
left join mart.tool_calls c on c.session_id = r.session_id and c.call_key = r.call_key
group by r.source_id, r.line_no, r.call_key, r.fact_id, s.store_kind
having count(c.call_key) > 1 or (count(c.call_key) = 0 and store_rank(s.store_kind) < 6)
union all
select q.source_id, 'line ' || q.line_no || ': latency of call ' || c.call_key || ' is not its pair'
from mart.tool_calls c
join facts.tool_requests q on q.session_id = c.session_id and q.fact_id = c.request_fact_id
join facts.tool_results r on r.session_id = c.session_id and r.fact_id = c.result_fact_id
where c.latency_source in ('pair', 'batch') and starts_with(c.latency_evidence, 'lines') and r.source_id = q.source_id
  and c.latency_us is distinct from epoch_us(r.ts) - epoch_us(q.ts);

-- check: ac6_files_are_attributed
-- severity: broken
-- about: every call that reads, writes or edits the path it names has its row of files_touched
select q.source_id, 'line ' || q.line_no || ': ' || q.name || ' of a path without files_touched' as detail
from facts.tool_requests q
semi join mart.tool_calls c on c.session_id = q.session_id and c.request_fact_id = q.fact_id
anti join mart.files_touched f on f.session_id = q.session_id and f.call_key = q.call_key
where q.name in ('Read', 'Write', 'Edit', 'MultiEdit', 'NotebookEdit') and q.target_path is not null;

-- check: ac6_prompts_are_kept
-- severity: broken
-- about: what a person asked is kept: every readable item of a user record that holds no tool result gives a row of a
--   user (or of the parent that set a sub-agent its task), whatever its kind, in its own place or in that of the typed text
select b.source_id, 'line ' || b.line_no || ': a user record without a row' as detail
from facts.content_blocks b
anti join facts.dialogue d on d.source_id = b.source_id and d.line_no = b.line_no and d.child = b.child
    and (d.role = 'user' or d.kind = 'objective')
anti join facts.merges g on g.source_id = b.source_id and g.line_no = b.line_no and g.child = b.child and g.reason = 'resend'
where b.role = 'user' and b.leaf_chars > 0
group by b.source_id, b.line_no;

-- check: ac6_nothing_secret
-- severity: broken
-- about: no text that is a well-known token is stored: a second look at what masking should have caught, at shapes that
--   are tokens for sure (a placeholder like xoxb-your-token-here is none, and must not take its source out)
select source_id, 'line ' || line_no || ': a token is stored in ' || place as detail
from (
    select source_id, line_no, 'dialogue' as place, text from facts.dialogue
    union all select source_id, line_no, 'arguments', args from facts.tool_requests
    union all select source_id, line_no, 'results', result_text from facts.tool_results
    union all select source_id, line_no, 'session facts', value from facts.session_facts
    union all select source_id, line_no, 'rejects', head from facts.rejects
)
where regexp_matches(text, '\bglpat-[0-9A-Za-z_-]{20}|gh[pousr]_[0-9A-Za-z_]{20}|github_pat_[0-9A-Za-z_]{20}'
    || '|\bxox[abprs]-[0-9]{10}|\bAKIA[0-9A-Z]{16}\b');

-- check: raw_envelopes
-- severity: finding
-- about: no dialogue row shows transport JSON as if it were prose (budget: 0)
select source_id, 'line ' || line_no || ': a raw envelope' as detail
from facts.dialogue
where raw_envelope;
