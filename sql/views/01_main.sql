-- The views people query. The plain name gives the right number: copies are left out everywhere, dead branches where
-- people read (dialogue). Durations are milliseconds.

-- object: main.sessions
-- kind: view
-- grain: one row per session
-- about: Sessions with what they add up to; copies are counted nowhere.
-- columns:
--   session_id: provider[.realm]:native id
--   provider: name of the provider
--   realm: NULL, cn, work or ide: separate worlds of one provider
--   native_id: the provider's own id; a sub-agent's adds its parent
--   kind: root, subagent, fork or internal
--   title: title by precedence: custom, generated, sidecar, last prompt, summary, first prompt
--   title_source: where the title is from
--   parent_session_id: session that spawned it, or that it was forked from
--   root_session_id: top of the lineage of sub-agents
--   spawn_call_key: call of the parent that spawned it
--   cwd: working folder
--   cwd_source: where it is from
--   project: name of the project: the user's own, else of the git remote, the repository or the working folder
--   git_branch: last branch stated
--   git_remote: git remote, where stated
--   tool_version: version of the agent, where stated
--   entrypoint: how the agent was started
--   model: model as the log names it
--   models: all models, sorted
--   started_at: start
--   ended_at: end
--   status: completed, failed or open, judged by the log alone
--   prompts: distinct messages a person asked with (kinds prompt and command)
--   assistant_messages: distinct assistant messages
--   text_rows: rows of kind text
--   thinking_rows: rows of kind thinking
--   tool_calls: distinct calls, copies left out
--   tool_errors: calls of status error (a denied call is none)
--   model_calls: model calls, copies left out
--   unknown_items: content items of unknown type
--   rejected_lines: non-blank lines that gave no JSON object, a torn tail included
--   raw_envelopes: rows that show transport JSON
--   input_tokens: input tokens, cached ones included
--   output_tokens: output tokens, reasoning included
--   cost_usd: cost in USD of the calls whose cost is known, NULL where none is
--   credits: credits charged
--   hosts: machines whose files hold it
--   sources: files that hold it
--   source_state: present, gone or suspicious
--   is_empty: it has no message record
create view main.sessions as
select * from mart.sessions;

-- object: main.turns
-- kind: view
-- grain: one row per turn
-- about: What a prompt (or another trigger) started, until the next.
-- columns:
--   provider: name of the provider
--   realm: NULL, cn, work or ide: separate worlds of one provider
--   project: name of the project: the user's own, else of the git remote, the repository or the working folder
--   session_id: provider[.realm]:native id
--   turn_no: turn, from 1; 0 before the first
--   native_turn_id: the provider's turn id
--   trigger: person, scheduled, subagent, resume or unknown
--   prompt_source_id: source of the prompt
--   prompt_line_no: line of the prompt
--   prompt_child: child of the prompt
--   started_at: start
--   ended_at: end
--   reported_ms: duration the log states, milliseconds
--   wall_ms: first to last record, milliseconds
--   first_token_ms: time to the first token, milliseconds
--   tool_wall_ms: union of the tool calls' intervals, milliseconds
--   tool_sum_ms: sum of the tool calls' latencies, milliseconds
--   status: completed, failed, cancelled, superseded or open; NULL where the log's word for its end cannot be read
--   error_class: class of the failure
--   http_status: HTTP status of the failure
--   reason: why
--   branch: live, or dead (rewound, replaced)
create view main.turns as
select s.provider, s.realm, s.project, t.session_id, t.turn_no, t.native_turn_id, t.trigger, t.prompt_source_id, t.prompt_line_no, t.prompt_child,
    t.started_at, t.ended_at, t.reported_us / 1000.0 as reported_ms, t.wall_us / 1000.0 as wall_ms,
    t.first_token_us / 1000.0 as first_token_ms, t.tool_wall_us / 1000.0 as tool_wall_ms,
    t.tool_sum_us / 1000.0 as tool_sum_ms, t.status, t.error_class, t.http_status, t.reason, t.branch
from mart.turns t
join mart.sessions s using (session_id);

-- object: main.dialogue
-- kind: view
-- grain: one row per readable block on the live branch
-- about: What was said, without copies and dead branches.
-- columns:
--   provider: name of the provider
--   realm: NULL, cn, work or ide: separate worlds of one provider
--   project: name of the project: the user's own, else of the git remote, the repository or the working folder
--   session_id: provider[.realm]:native id
--   seq: order inside the session
--   turn_no: turn, from 1; 0 before the first
--   role: user, assistant or system
--   kind: prompt (a person asked), steer, command, shell, text, thinking, question, answer, summary (of a compaction), context (injected), objective (a sub-agent's task), notice, error_notice or discarded
--   text: masked text
--   ts: when, as the record says
--   model: model as the log names it
--   agent: sub-agent id
--   message_key: message
--   text_chars: characters before masking
--   attachments: pictures and documents of the message
--   raw_envelope: transport JSON stands here as if it were prose
--   decoded_from_string: the block came out of a transport string
--   src_pointer: JSON pointer of the string leaf the text came from; # steps into a string that holds JSON
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
create view main.dialogue as
select s.provider, s.realm, s.project, m.session_id, m.seq, m.turn_no, m.role, m.kind, f.text, m.ts, m.model, m.agent, m.message_key, m.text_chars,
    f.attachments, f.raw_envelope, f.decoded_from_string, f.src_pointer, f.source_id, f.line_no, f.child, f.block
from mart.dialogue m
join facts.dialogue f on f.session_id = m.session_id and f.fact_id = m.fact_id
join mart.sessions s on s.session_id = m.session_id
where not m.is_copy and m.branch = 'live';

-- object: main.tool_calls
-- kind: view
-- grain: one row per tool call
-- about: Tool calls with request, result and best latency. Calls of dead branches did happen and are kept, with their branch.
-- columns:
--   provider: name of the provider
--   realm: NULL, cn, work or ide: separate worlds of one provider
--   project: name of the project: the user's own, else of the git remote, the repository or the working folder
--   session_id: provider[.realm]:native id
--   call_key: the provider's call id; #2 for a reused id, ~line.block where there is none
--   seq: order inside the session
--   turn_no: turn, from 1; 0 before the first
--   name: tool name in the shared vocabulary
--   name_raw: tool name as the log has it
--   mcp_server: MCP server of the tool
--   status: ok, error, denied, cancelled, interrupted, background or missing_result
--   started_at: start
--   ended_at: end
--   latency_ms: best latency, milliseconds
--   latency_source: execution, provider_duration, start_end, pair, batch or none
--   latency_quality: exact, good, bound or none
--   latency_evidence: the two places or the log it is from
--   pair_ms: request to result of the same source, milliseconds
--   provider_ms: duration the provider states, milliseconds
--   wait_ms: waiting inside it, where told, milliseconds
--   human_gate_suspected: a person probably had to act first
--   is_parallel: another call of the same message ran too
--   batch_key: calls of one message or request
--   batch_size: calls of the same message
--   retry_of: the failed call it repeats
--   parent_call_key: the call that wraps this one
--   child_session_id: the sub-agent it spawned
--   model: model as the log names it
--   host: name of the machine the tree belongs to
--   target_path: path the call names, masked
--   command_head: first 200 characters of the command, masked
--   args: masked JSON of the arguments
--   result_text: masked text of the result
--   result_bytes: bytes of the result
--   is_error: as the log says; NULL where it does not
--   exit_code: exit code of a command
--   branch: live, or dead (rewound, replaced)
--   anomaly: NULL, result_before_call, clock_step, duplicate_result or conflicting_result
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
create view main.tool_calls as
select s.provider, s.realm, s.project, c.session_id, c.call_key, c.seq, c.turn_no, c.name, c.name_raw, c.mcp_server, c.status, c.started_at, c.ended_at,
    c.latency_us / 1000.0 as latency_ms, c.latency_source, c.latency_quality, c.latency_evidence,
    c.pair_us / 1000.0 as pair_ms, c.provider_us / 1000.0 as provider_ms, c.wait_us / 1000.0 as wait_ms,
    c.human_gate_suspected, c.is_parallel, c.batch_key, c.batch_size, c.retry_of, c.parent_call_key, c.child_session_id,
    c.model, c.host, c.target_path, c.command_head, q.args, coalesce(r.result_text, e.result_text) as result_text, c.result_bytes, c.is_error, c.exit_code,
    c.branch, c.anomaly, q.source_id, q.line_no
from mart.tool_calls c
join mart.sessions s on s.session_id = c.session_id
join facts.tool_requests q on q.session_id = c.session_id and q.fact_id = c.request_fact_id
left join facts.tool_results r on r.session_id = c.session_id and r.fact_id = c.result_fact_id
left join (
    select x.session_id, x.call_key, f.result_text
    from (
        from mart.tool_calls where starts_with(latency_evidence, 'result in ') or ends_with(latency_evidence, '; output in a file')
    ) x
    join facts.tool_results f on f.fact_id = x.result_fact_id
) e on e.session_id = c.session_id and e.call_key = c.call_key
where not c.is_copy;

-- object: main.tool_latency
-- kind: view
-- grain: one row per timed tool call
-- about: Where tool time goes. Only calls that something times; each says from what, and how good it is.
-- columns:
--   provider: name of the provider
--   realm: NULL, cn, work or ide: separate worlds of one provider
--   project: name of the project: the user's own, else of the git remote, the repository or the working folder
--   host: name of the machine the tree belongs to
--   session_id: provider[.realm]:native id
--   call_key: the provider's call id; #2 for a reused id, ~line.block where there is none
--   seq: order inside the session
--   turn_no: turn, from 1; 0 before the first
--   name: tool name in the shared vocabulary
--   mcp_server: MCP server of the tool
--   model: model as the log names it
--   status: ok, error, denied, cancelled, interrupted, background or missing_result
--   started_at: start
--   latency_ms: best latency, milliseconds
--   pair_ms: request to result of the same source, milliseconds
--   provider_ms: duration the provider states, milliseconds
--   wait_ms: waiting inside it, where told, milliseconds
--   latency_source: execution, provider_duration, start_end, pair, batch or none
--   latency_quality: exact, good, bound or none
--   human_gate_suspected: a person probably had to act first
--   long_because: why it is above one hour: human_wait, sub_agent, timed, bound or pair; NULL where it is not
--   is_parallel: another call of the same message ran too
--   batch_size: calls of the same message
--   branch: live, or dead (rewound, replaced)
create view main.tool_latency as
select s.provider, s.realm, s.project, c.host, c.session_id, c.call_key, c.seq, c.turn_no, c.name, c.mcp_server, c.model, c.status, c.started_at,
    c.latency_us / 1000.0 as latency_ms, c.pair_us / 1000.0 as pair_ms, c.provider_us / 1000.0 as provider_ms,
    c.wait_us / 1000.0 as wait_ms, c.latency_source, c.latency_quality, c.human_gate_suspected,
    long_because(c.name, c.latency_us, c.latency_source, c.wait_us, c.human_gate_suspected) as long_because, c.is_parallel,
    c.batch_size, c.branch
from mart.tool_calls c
join mart.sessions s using (session_id)
where not c.is_copy and c.latency_us is not null;

-- object: main.model_calls
-- kind: view
-- grain: one row per model call
-- about: Usage: input includes cached tokens, output includes reasoning; NULL is not reported. Calls of dead branches were made
--   and are kept, with their branch.
-- columns:
--   provider: name of the provider
--   realm: NULL, cn, work or ide: separate worlds of one provider
--   project: name of the project: the user's own, else of the git remote, the repository or the working folder
--   session_id: provider[.realm]:native id
--   turn_no: turn, from 1; 0 before the first
--   request_key: id of the model request
--   message_key: message
--   grain: request, message or session
--   owner: session, review or judge
--   model: model as the log names it
--   model_is_alias: the model is a tier, not a model
--   input_tokens: input tokens, cached ones included
--   output_tokens: output tokens, reasoning included
--   cache_read_tokens: input tokens read from cache
--   cache_creation_5m_tokens: input tokens written to the 5-minute cache
--   cache_creation_1h_tokens: input tokens written to the 1-hour cache
--   reasoning_tokens: reasoning tokens, part of output
--   total_tokens: total the log states
--   usage_status: reported, suppressed (zero by policy), absent or placeholder
--   credits: credits charged
--   original_credits: credits before discounts
--   cost_usd: cost in USD, NULL where it is not known
--   cost_basis: reported, listed, credits, subscription or unknown
--   price_id: row of the view prices that the listed cost is computed by
--   context_ratio: share of the context window in use
--   context_window: tokens of the context window
--   duration_ms: duration, milliseconds
--   first_token_ms: time to the first token, milliseconds
--   stop_reason: why the model stopped
--   ts: when, as the record says
--   snapshots_merged: usage snapshots of the call
--   branch: live, or dead (rewound, replaced)
create view main.model_calls as
select s.provider, s.realm, s.project, m.session_id, m.turn_no, m.request_key, m.message_key, m.grain, m.owner, m.model, m.model_is_alias,
    m.input_tokens, m.output_tokens, m.cache_read_tokens, m.cache_creation_5m_tokens, m.cache_creation_1h_tokens,
    m.reasoning_tokens, m.total_tokens, m.usage_status, m.credits, m.original_credits, m.cost_usd, m.cost_basis,
    m.price_id, m.context_ratio, m.context_window, m.duration_us / 1000.0 as duration_ms, m.first_token_us / 1000.0 as first_token_ms,
    m.stop_reason, m.ts, m.snapshots_merged, m.branch
from mart.model_calls m
join mart.sessions s using (session_id)
where not m.is_copy;

-- object: main.files_touched
-- kind: view
-- grain: one row per call and path
-- about: Which calls read, write, edit, list or delete which paths, by their arguments.
-- columns:
--   provider: name of the provider
--   realm: NULL, cn, work or ide: separate worlds of one provider
--   project: name of the project: the user's own, else of the git remote, the repository or the working folder
--   session_id: provider[.realm]:native id
--   call_key: the provider's call id; #2 for a reused id, ~line.block where there is none
--   path: path, masked
--   op: read, write, edit, delete or list
--   relative_to_cwd: path below the working folder
create view main.files_touched as
select s.provider, s.realm, s.project, f.session_id, f.call_key, f.path, f.op, f.relative_to_cwd
from mart.files_touched f
join mart.sessions s using (session_id)
where not f.is_copy;

-- object: main.events
-- kind: view
-- grain: one row per event
-- about: Compactions, attachments, interrupts, errors and other things that happened; those of copied records are left out.
-- columns:
--   provider: name of the provider
--   realm: NULL, cn, work or ide: separate worlds of one provider
--   project: name of the project: the user's own, else of the git remote, the repository or the working folder
--   session_id: provider[.realm]:native id
--   kind: compaction, attachment, interrupt, error, permission, context_size, system, …
--   subtype: finer kind
--   summary: first 200 characters, masked
--   attrs: masked canonical JSON of scalar details
--   ts: when, as the record says
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
create view main.events as
select s.provider, s.realm, s.project, e.session_id, e.kind, e.subtype, e.summary, e.attrs, e.ts, e.source_id, e.line_no
from facts.events e
join mart.sessions s using (session_id)
anti join mart.copies c on c.source_id = e.source_id and c.line_no = e.line_no and c.child = e.child;

-- object: main.session_links
-- kind: view
-- grain: one row per relation of two sessions
-- about: Where sessions come from.
-- columns:
--   provider: name of the provider
--   realm: NULL, cn, work or ide: separate worlds of one provider
--   project: name of the project: the user's own, else of the git remote, the repository or the working folder
--   session_id: provider[.realm]:native id
--   other_session_id: the session it comes from
--   relation: subagent, fork, resume, continuation or compaction
--   via_call_key: call of the other session
--   evidence: what says so
--   confidence: explicit or inferred
create view main.session_links as
select s.provider, s.realm, s.project, l.session_id, l.other_session_id, l.relation, l.via_call_key, l.evidence, l.confidence
from mart.session_links l
join mart.sessions s using (session_id);

-- object: main.sources
-- kind: view
-- grain: one row per source
-- about: The files that were read.
-- columns:
--   source_id: the source that owns the row
--   host: name of the machine the tree belongs to
--   provider: name of the provider
--   realm: NULL, cn, work or ide: separate worlds of one provider
--   store_kind: which of the provider's stores the file belongs to
--   rel_path: path below the root, masked
--   file_native_id: the session id in the file's name
--   native_session_id: the provider's own id of the session
--   session_id: provider[.realm]:native id
--   format_version: version of the file format, where stated
--   tool_version: version of the agent, where stated
--   size: bytes read, after decompression
--   lines: physical lines; NULL for documents and databases
--   blank_lines: lines of white space
--   rejected_lines: non-blank lines that gave no JSON object, a torn tail included
--   user_records: records of role user without tool results
--   direct_user_records: those neither injected, a summary nor of a side chain
--   assistant_messages: distinct assistant messages
--   thinking_blocks: thinking items, resends left out
--   call_records: distinct calls requested
--   result_records: distinct calls with a result
--   paired_records: distinct calls with both
--   head_digest: digest of the masked first 4 KiB
--   tail_state: complete, partial, nul_padded, truncated, unread or failed
--   note: why a source was not read
--   parser_version: version of the reading rules
--   mask_version: version of the masking rules
--   first_load_id: the load that read the source first
--   last_load_id: the load that read the source last
--   source_state: present, gone or suspicious
create view main.sources as
select * from facts.sources;

-- object: main.record_census
-- kind: view
-- grain: one row per source, unit, disposition and kind
-- about: Every line counted once.
-- columns:
--   source_id: the source that owns the row
--   unit: line, record or item
--   disposition: used, skipped, unknown, rejected; for lines also blank and pending
--   kind: type of the record or item, or the reason of a rejected line
--   n: how many
--   first_line: line of the first one
create view main.record_census as
select * from facts.record_census;

-- object: main.rejects
-- kind: view
-- grain: one row per line, record or item not read as it stands
-- about: What was not read, and why.
-- columns:
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   byte_offset: byte offset of the line
--   length: bytes of the line without its end
--   reason: malformed, partial_tail, glued, invalid_shape, oversize, nul, surrogate, depth, not_object, encoding, io or not_a_file
--   recovered: the line still gave rows
--   head: first 200 characters, masked
--   digest: blake2b-64 of the stored (masked) content
create view main.rejects as
select * from facts.rejects;

-- object: main.conflicts
-- kind: view
-- grain: one row per contradiction
-- about: The same id with different content, in one file or in two.
-- columns:
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   other_source_id: source of the other side
--   other_line_no: line of the other side
--   id_kind: record, message (final snapshots of a Bridge) or tool_result
--   id: the id both sides carry
--   digest: blake2b-64 of the stored (masked) content
--   other_digest: digest of the other side's masked content
--   rule: the rule that applied
--   resolution: which side is used: this, other or both
create view main.conflicts as
select source_id, line_no, source_id as other_source_id, other_line_no, id_kind, id, digest, other_digest, rule, resolution
from facts.conflicts
union all
select source_id, line_no, other_source_id, other_line_no, id_kind, id, digest, other_digest, rule, resolution
from mart.conflicts;

-- object: main.redactions
-- kind: view
-- grain: one row per source, column, rule and secret
-- about: Secrets that were masked.
-- columns:
--   source_id: the source that owns the row
--   column_name: table and column
--   rule: the rule that applied
--   n: how many
--   fingerprint: keyed digest of the secret
create view main.redactions as
select * from facts.redactions;

-- object: main.copies
-- kind: view
-- grain: one row per copied record
-- about: Records that are copies, with their owner.
-- columns:
--   session_id: provider[.realm]:native id
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   child: index of the record inside a framed or glued line, else 0
--   owner_session_id: session of the owner
--   owner_source_id: source of the owner
--   owner_line_no: line of the owner
--   owner_child: index of the owner inside a framed or glued line, else 0
--   reason: resume, fork, compaction, replay, resend or duplicate_store
create view main.copies as
select * from mart.copies;

-- object: main.loads
-- kind: view
-- grain: one row per load that published
-- about: What each load did.
-- columns:
--   load_id: id of the load
--   started_at: start
--   finished_at: end
--   host: name of the machine the tree belongs to
--   version: version of sessionmart
--   state: how it ended
--   sources_seen: sources found
--   sources_changed: sources read
--   sources_failed: sources that failed
--   sources_gone: sources no longer there
--   rows_per_table: rows by table, JSON
--   rejects: rejected lines
--   conflicts: contradictions inside sources
--   redactions: secrets masked
--   bytes_read: bytes of source read
--   seconds_per_stage: seconds by stage, JSON
--   peak_rss: peak memory, bytes, JSON
--   checks: checks that found something, JSON
create view main.loads as
select * from mart.loads;

-- object: main.orphan_results
-- kind: view
-- grain: one row per result without a call
-- about: Results whose call no source shows; copies are left out.
-- columns:
--   session_id: provider[.realm]:native id
--   call_key: the provider's call id; #2 for a reused id, ~line.block where there is none
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   result_text: masked text of the result
--   result_bytes: bytes of the result
--   is_error: as the log says; NULL where it does not
--   ts: when, as the record says
create view main.orphan_results as
select r.session_id, r.call_key, r.source_id, r.line_no, r.child, r.block, r.result_text, r.result_bytes, r.is_error, r.ts
from facts.tool_results r
anti join facts.tool_requests q on q.session_id = r.session_id and q.call_key = r.call_key
anti join mart.copies c on c.source_id = r.source_id and c.line_no = r.line_no and c.child = r.child
anti join (
    from mart.tool_calls where ends_with(latency_evidence, '; output in a file')
) f on f.result_fact_id = r.fact_id;

-- object: main.source_summary
-- kind: view
-- grain: one row per source
-- about: What one file says, counted at extract, before copies are left out. Anyone can count it again.
-- columns:
--   source_id: the source that owns the row
--   provider: name of the provider
--   rel_path: path below the root, masked
--   lines: physical lines; NULL for documents and databases
--   blank_lines: lines of white space
--   rejected_lines: non-blank lines that gave no JSON object, a torn tail included
--   user_records: records of role user without tool results
--   direct_user_records: those neither injected, a summary nor of a side chain
--   assistant_messages: distinct assistant messages
--   thinking_blocks: thinking items, resends left out
--   tool_calls: distinct calls, copies left out
--   tool_results: distinct calls with a result
--   paired_calls: calls with a result
--   first_at: first instant of a record
--   last_at: last instant of a record
--   output_tokens: output tokens of the session itself, reasoning included
create view main.source_summary as
select s.source_id, s.provider, s.rel_path, s.lines, s.blank_lines, s.rejected_lines, s.user_records, s.direct_user_records,
    s.assistant_messages, s.thinking_blocks, s.call_records as tool_calls, s.result_records as tool_results,
    s.paired_records as paired_calls, r.first_at, r.last_at, u.output_tokens
from facts.sources s
left join (
    select source_id, min(ts) as first_at, max(ts) as last_at from facts.records group by source_id
) r using (source_id)
left join (
    select source_id, try_cast(sum(output_tokens) as bigint) as output_tokens
    from (
        select source_id, session_id, request_key, max(output_tokens) as output_tokens
        from facts.model_calls where owner = 'session' group by all
    )
    group by source_id
) u using (source_id);

-- object: main.last_turn
-- kind: view
-- grain: one row per session
-- about: The last live turn of each session: its prompt, where it has one, and what followed. What the person added while it ran,
--   and prompts that never ran, follow.
-- columns:
--   provider: name of the provider
--   realm: NULL, cn, work or ide: separate worlds of one provider
--   project: name of the project: the user's own, else of the git remote, the repository or the working folder
--   session_id: provider[.realm]:native id
--   turn_no: turn, from 1; 0 before the first
--   trigger: person, scheduled, subagent, resume or unknown
--   prompt_at: when it was asked
--   prompt: the prompt's text
--   what_followed: rows after the prompt, in order
--   status: completed, failed, cancelled, superseded or open; NULL where the log's word for its end cannot be read
create view main.last_turn as
with last as (
    select session_id, max(turn_no) as turn_no from mart.turns where branch = 'live' group by session_id
),
said as (
    select d.session_id, d.turn_no, d.seq, d.role, d.kind, f.text,
        d.kind in ('prompt', 'command', 'shell') and e.line_no is null as is_prompt
    from mart.dialogue d
    join facts.dialogue f on f.session_id = d.session_id and f.fact_id = d.fact_id
    left join (
        select distinct source_id, line_no, child from facts.events where kind = 'prompt' and subtype = 'unstarted'
    ) e on e.source_id = f.source_id and e.line_no = f.line_no and e.child = f.child
    where not d.is_copy and d.branch = 'live'
)
select s.provider, s.realm, s.project, t.session_id, t.turn_no, t.trigger, t.started_at as prompt_at,
    string_agg(d.text, chr(10) order by d.seq) filter (d.is_prompt) as prompt,
    list({'role': d.role, 'kind': d.kind, 'text': d.text} order by d.seq) filter (not d.is_prompt) as what_followed,
    t.status
from last
join mart.turns t using (session_id, turn_no)
join mart.sessions s using (session_id)
left join said d on d.session_id = t.session_id and d.turn_no = t.turn_no
group by all;

-- object: main.qoder_session_report
-- kind: view
-- grain: one row per Qoder session of kind root or fork
-- about: The lines of the Qoder report. Percentiles take calls of status ok and error.
-- columns:
--   session_id: provider[.realm]:native id
--   title: title by precedence: custom, generated, sidecar, last prompt, summary, first prompt
--   project: name of the project: the user's own, else of the git remote, the repository or the working folder
--   kind: root or fork
--   started_at: start
--   ended_at: end
--   prompts: distinct messages a person asked with (kinds prompt and command)
--   text_rows: rows of kind text
--   thinking_rows: rows of kind thinking
--   readable_rows: text and thinking rows
--   tool_calls: distinct calls, copies left out
--   tool_errors: calls of status error (a denied call is none)
--   paired_calls: calls with a result
--   p50_ms: median latency of calls of status ok and error, milliseconds
--   p95_ms: 95th percentile of the same, milliseconds
--   human_waits: of these calls those that probably waited for a person
--   credits: credits charged
--   models: models that answered, sorted
--   timed_by_log: calls whose execution a run log times
--   wait_ms: what calls waited for permission, for a person, for each other and for hooks, summed, milliseconds; NULL where
--     no log tells
--   unknown_items: content items of unknown type
--   rejected_lines: non-blank lines that gave no JSON object, a torn tail included
--   raw_envelopes: rows that show transport JSON
create view main.qoder_session_report as
select s.session_id, s.title, s.project, s.kind, s.started_at, s.ended_at, s.prompts, s.text_rows, s.thinking_rows,
    s.text_rows + s.thinking_rows as readable_rows, s.tool_calls, s.tool_errors,
    coalesce(c.paired_calls, 0) as paired_calls, c.p50_ms, c.p95_ms, coalesce(c.human_waits, 0) as human_waits, s.credits, s.models,
    coalesce(c.timed_by_log, 0) as timed_by_log, c.wait_ms, s.unknown_items, s.rejected_lines,
    s.raw_envelopes
from mart.sessions s
left join (
    select session_id, count(result_fact_id) as paired_calls,
        round(quantile_cont(latency_us / 1000.0, 0.5) filter (status in ('ok', 'error')), 3) as p50_ms,
        round(quantile_cont(latency_us / 1000.0, 0.95) filter (status in ('ok', 'error')), 3) as p95_ms,
        count(*) filter (status in ('ok', 'error') and human_gate_suspected) as human_waits,
        count(*) filter (latency_source = 'execution') as timed_by_log,
        try_cast(sum(wait_us) as bigint) / 1000.0 as wait_ms
    from mart.tool_calls
    where not is_copy
    group by session_id
) c using (session_id)
where s.provider = 'qoder' and s.kind in ('root', 'fork');

-- object: main.qoder_latest
-- kind: macro
-- grain: one row per session of the Qoder report over n sessions
-- about: The latest n Qoder sessions that have an end, latest first; of one project, or that ended in a span of time, where asked.
-- columns:
--   session_id: provider[.realm]:native id
--   title: title by precedence: custom, generated, sidecar, last prompt, summary, first prompt
--   project: name of the project: the user's own, else of the git remote, the repository or the working folder
--   kind: root or fork
--   started_at: start
--   ended_at: end
--   prompts: distinct messages a person asked with (kinds prompt and command)
--   text_rows: rows of kind text
--   thinking_rows: rows of kind thinking
--   readable_rows: text and thinking rows
--   tool_calls: distinct calls, copies left out
--   tool_errors: calls of status error (a denied call is none)
--   paired_calls: calls with a result
--   p50_ms: median latency of calls of status ok and error, milliseconds
--   p95_ms: 95th percentile of the same, milliseconds
--   human_waits: of these calls those that probably waited for a person
--   credits: credits charged
--   models: models that answered, sorted
--   timed_by_log: calls whose execution a run log times
--   wait_ms: what calls waited for permission, for a person, for each other and for hooks, summed, milliseconds; NULL where
--     no log tells
--   unknown_items: content items of unknown type
--   rejected_lines: non-blank lines that gave no JSON object, a torn tail included
--   raw_envelopes: rows that show transport JSON
create macro main.qoder_latest(n, only_project := null, since := null, until := null) as table
select *
from main.qoder_session_report
where ended_at is not null and is_asked(null, project, ended_at, null, only_project, since, until)
order by ended_at desc, session_id
limit n;

-- object: main.qoder_report
-- kind: macro
-- grain: one row
-- about: The Qoder report: totals over the latest n sessions.
-- columns:
--   sessions: number of sessions
--   prompts: distinct messages a person asked with (kinds prompt and command)
--   text_rows: rows of kind text
--   thinking_rows: rows of kind thinking
--   readable_rows: text and thinking rows
--   tool_calls: distinct calls, copies left out
--   tool_errors: calls of status error (a denied call is none)
--   paired_calls: calls with a result
--   p50_ms: median latency of calls of status ok and error, milliseconds
--   p95_ms: 95th percentile of the same, milliseconds
--   human_waits: of these calls those that probably waited for a person
--   credits: credits charged
--   models: models that answered, sorted
--   timed_by_log: calls whose execution a run log times
--   wait_ms: what calls waited for permission, for a person, for each other and for hooks, summed, milliseconds; NULL where
--     no log tells
--   unknown_items: content items of unknown type
--   rejected_lines: non-blank lines that gave no JSON object, a torn tail included
--   raw_envelopes: rows that show transport JSON
create macro main.qoder_report(n, only_project := null, since := null, until := null) as table
with latest as (
    from main.qoder_latest(n, only_project := only_project, since := since, until := until)
),
calls as (
    select round(quantile_cont(latency_us / 1000.0, 0.5), 3) as p50_ms, round(quantile_cont(latency_us / 1000.0, 0.95), 3) as p95_ms
    from mart.tool_calls
    where session_id in (select session_id from latest) and not is_copy and status in ('ok', 'error')
)
select count(*) as sessions, coalesce(try_cast(sum(prompts) as bigint), 0) as prompts, coalesce(try_cast(sum(text_rows) as bigint), 0) as text_rows,
    coalesce(try_cast(sum(thinking_rows) as bigint), 0) as thinking_rows, coalesce(try_cast(sum(readable_rows) as bigint), 0) as readable_rows,
    coalesce(try_cast(sum(tool_calls) as bigint), 0) as tool_calls, coalesce(try_cast(sum(tool_errors) as bigint), 0) as tool_errors,
    coalesce(try_cast(sum(paired_calls) as bigint), 0) as paired_calls, any_value(calls.p50_ms) as p50_ms,
    any_value(calls.p95_ms) as p95_ms, coalesce(try_cast(sum(human_waits) as bigint), 0) as human_waits, try_cast(sum(credits) as decimal(18, 9)) as credits,
    coalesce(list_sort(list_distinct(flatten(list(models)))), []) as models,
    coalesce(try_cast(sum(timed_by_log) as bigint), 0) as timed_by_log, sum(wait_ms) as wait_ms,
    coalesce(try_cast(sum(unknown_items) as bigint), 0) as unknown_items, coalesce(try_cast(sum(rejected_lines) as bigint), 0) as rejected_lines,
    coalesce(try_cast(sum(raw_envelopes) as bigint), 0) as raw_envelopes
from latest, calls;

-- object: main.prices
-- kind: view
-- grain: one row per model, span of days, part of a day and tier of input tokens
-- about: What a million tokens cost, by the price table that the store was costed by.
-- columns:
--   price_id: name of the row, in mart.model_calls too
--   provider: who charges it
--   model: provider/model
--   effective_from: first day (UTC), NULL since ever
--   effective_until: day (UTC) on which it no longer holds, NULL open
--   time_from: start of the part of the day (UTC), NULL all day
--   time_until: end of the part of the day (UTC), NULL midnight
--   input_above: holds for calls of more input tokens than this, NULL from none
--   input_up_to: holds for calls of at most so many input tokens, NULL without end
--   input_usd: a million uncached input tokens
--   output_usd: a million output tokens, reasoning included
--   cache_read_usd: a million input tokens read from cache
--   cache_write_5m_usd: a million input tokens written to the 5-minute cache
--   cache_write_1h_usd: a million input tokens written to the 1-hour cache
--   assumed: which cache prices the data does not state, NULL none
create view main.prices as
select * from mart.prices;

-- object: main.unpriced_models
-- kind: view
-- grain: one row per provider and model
-- about: Models whose calls report tokens and cost nobody knows what: the price table does not have them, or has no price
--   for a kind of token or a time that they need. Tiers and aliases among them are no models.
-- columns:
--   provider: name of the provider
--   model: model as the log names it
--   calls: calls without a cost
--   input_tokens: their input tokens, cached ones included
--   output_tokens: their output tokens, reasoning included
create view main.unpriced_models as
select s.provider, m.model, count(*) as calls, try_cast(sum(m.input_tokens) as bigint) as input_tokens,
    try_cast(sum(m.output_tokens) as bigint) as output_tokens
from mart.model_calls m
join mart.sessions s using (session_id)
where not m.is_copy and m.cost_basis = 'unknown' and m.usage_status = 'reported'
  and m.input_tokens is not null and m.output_tokens is not null
group by s.provider, m.model
order by calls desc, s.provider, m.model;
