-- The schema facts: what each source said, nothing merged. One row has one owner, source_id.
-- Types are checked against etl/schema.py by a test.

-- migration: schemas
-- about: facts is what each source said, mart what is concluded from it, main the views people query
create schema facts;
create schema mart;

-- object: facts.sources
-- kind: table
-- grain: one row per file, claimed folder or database
-- about: The files that were read, with what each of them says when it is counted by itself. A claimed path that could not be read is a row too.
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
create table facts.sources (
    source_id varchar,
    host varchar,
    provider varchar,
    realm varchar,
    store_kind varchar,
    rel_path varchar,
    file_native_id varchar,
    native_session_id varchar,
    session_id varchar,
    format_version varchar,
    tool_version varchar,
    size bigint,
    lines bigint,
    blank_lines bigint,
    rejected_lines bigint,
    user_records bigint,
    direct_user_records bigint,
    assistant_messages bigint,
    thinking_blocks bigint,
    call_records bigint,
    result_records bigint,
    paired_records bigint,
    head_digest varchar,
    tail_state varchar,
    note varchar,
    parser_version integer,
    mask_version integer,
    first_load_id varchar,
    last_load_id varchar,
    source_state varchar
);

-- object: facts.records
-- kind: table
-- grain: one row per message-like record
-- about: Who follows whom: the chain of a session's records, and where copied records come from.
-- columns:
--   fact_id: deterministic id of the row: its source, table and place
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   row_key: table and primary key, for databases only
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   session_id: provider[.realm]:native id
--   record_kind: record type as the log names it
--   role: user, assistant or system
--   part: prompt, answer, result (of a call), summary (of a compaction, and its boundary) or aside (what is injected or noted): a
--     branch is dead from its first prompt or answer on
--   native_uuid: the record's own id
--   parent_uuid: the record it follows
--   logical_parent_uuid: the record it follows across a compaction
--   origin_session_id: session the record was copied from, where the log says so
--   origin_uuid: record it was copied from
--   message_key: id of the message the row belongs to
--   is_sidechain: the record belongs to a side chain
--   ts: when, as the record says
--   sequence: number of the record in its session, where the log numbers them: its order inside the source
create table facts.records (
    fact_id ubigint,
    source_id varchar,
    line_no bigint,
    row_key varchar,
    child integer,
    block integer,
    session_id varchar,
    record_kind varchar,
    role varchar,
    part varchar,
    native_uuid varchar,
    parent_uuid varchar,
    logical_parent_uuid varchar,
    origin_session_id varchar,
    origin_uuid varchar,
    message_key varchar,
    is_sidechain boolean,
    ts timestamptz,
    sequence bigint
);

-- object: facts.content_blocks
-- kind: table
-- grain: one row per content item of a message record
-- about: The inventory of message contents, written by a walker that does not use the projector. Checks compare dialogue and calls with it.
-- columns:
--   fact_id: deterministic id of the row: its source, table and place
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   row_key: table and primary key, for databases only
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   session_id: provider[.realm]:native id
--   role: user, assistant or system
--   block_type: type of the item, NULL where it has none
--   leaf_type: JSON type of the readable leaf
--   leaf_chars: characters of the readable leaf before masking
--   item_id: native id of a tool item
--   disposition: used, skipped, unknown, rejected; for lines also blank and pending
create table facts.content_blocks (
    fact_id ubigint,
    source_id varchar,
    line_no bigint,
    row_key varchar,
    child integer,
    block integer,
    session_id varchar,
    role varchar,
    block_type varchar,
    leaf_type varchar,
    leaf_chars bigint,
    item_id varchar,
    disposition varchar
);

-- object: facts.merges
-- kind: table
-- grain: one row per block, or record, that stands in another row of the same source
-- about: What the fold put together: exact resends, growing snapshots, and contents that the record's own humanInput replaces. Block NULL: the whole record.
-- columns:
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   into_line_no: line of the row it stands in
--   into_child: child of that row
--   into_block: block of that row
--   reason: resend, snapshot or human_input
create table facts.merges (
    source_id varchar,
    line_no bigint,
    child integer,
    block integer,
    into_line_no bigint,
    into_child integer,
    into_block integer,
    reason varchar
);

-- object: facts.dialogue
-- kind: table
-- grain: one row per readable block
-- about: What was said, in order. Tool items are never here; text is masked.
-- columns:
--   fact_id: deterministic id of the row: its source, table and place
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   row_key: table and primary key, for databases only
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   session_id: provider[.realm]:native id
--   role: user, assistant or system
--   kind: prompt (a person asked), steer, command, shell, text, thinking, question, answer, summary (of a compaction), context (injected), objective (a sub-agent's task), notice, error_notice or discarded
--   text: masked text
--   text_chars: characters before masking
--   digest: blake2b-64 of the stored (masked) content
--   src_pointer: JSON pointer of the string leaf the text came from; # steps into a string that holds JSON
--   leaf_type: JSON type of the readable leaf
--   raw_envelope: transport JSON stands here as if it were prose
--   message_key: id of the message the row belongs to
--   native_uuid: the record's own id
--   parent_uuid: the record it follows
--   model: model as the log names it
--   ts: when, as the record says
--   ts_source: where the time is from
--   agent: sub-agent id, where stated
--   is_sidechain: the record belongs to a side chain
--   is_meta: the record is marked as injected
--   attachments: pictures and documents of the message
--   decoded_from_string: the block came out of a transport string
create table facts.dialogue (
    fact_id ubigint,
    source_id varchar,
    line_no bigint,
    row_key varchar,
    child integer,
    block integer,
    session_id varchar,
    role varchar,
    kind varchar,
    text varchar using compression zstd,
    text_chars bigint,
    digest varchar,
    src_pointer varchar,
    leaf_type varchar,
    raw_envelope boolean,
    message_key varchar,
    native_uuid varchar,
    parent_uuid varchar,
    model varchar,
    ts timestamptz,
    ts_source varchar,
    agent varchar,
    is_sidechain boolean,
    is_meta boolean,
    attachments integer,
    decoded_from_string boolean
);

-- object: facts.tool_requests
-- kind: table
-- grain: one row per tool call asked for by a source
-- about: Requests of tool calls with their arguments.
-- columns:
--   fact_id: deterministic id of the row: its source, table and place
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   row_key: table and primary key, for databases only
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   session_id: provider[.realm]:native id
--   call_key: the provider's call id; #2 for a reused id, ~line.block where there is none
--   call_id_source: native or synthesised
--   parent_call_key: the call that wraps this one
--   message_key: id of the message the row belongs to
--   name_raw: tool name as the log has it
--   name: tool name in the shared vocabulary
--   mcp_server: MCP server of the tool
--   args: masked canonical JSON of the arguments, or the text that did not parse
--   args_parse_ok: the arguments are JSON
--   args_bytes: bytes of the arguments before masking
--   digest: blake2b-64 of the stored (masked) content
--   target_path: path the call names, masked
--   command_head: first 200 characters of the command, masked
--   ts: when, as the record says
--   batch_key: calls of one message or request
create table facts.tool_requests (
    fact_id ubigint,
    source_id varchar,
    line_no bigint,
    row_key varchar,
    child integer,
    block integer,
    session_id varchar,
    call_key varchar,
    call_id_source varchar,
    parent_call_key varchar,
    message_key varchar,
    name_raw varchar,
    name varchar,
    mcp_server varchar,
    args varchar using compression zstd,
    args_parse_ok boolean,
    args_bytes bigint,
    digest varchar,
    target_path varchar,
    command_head varchar,
    ts timestamptz,
    batch_key varchar
);

-- object: facts.tool_results
-- kind: table
-- grain: one row per tool result in a source
-- about: Results of tool calls with their text.
-- columns:
--   fact_id: deterministic id of the row: its source, table and place
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   row_key: table and primary key, for databases only
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   session_id: provider[.realm]:native id
--   call_key: the provider's call id; #2 for a reused id, ~line.block where there is none
--   result_text: masked text of the result, head and tail beyond 256 KiB
--   result_bytes: bytes before masking and clipping
--   result_truncated: the stored text is clipped
--   digest: blake2b-64 of the stored (masked) content
--   images: pictures in the result
--   is_error: as the log says; NULL where it does not
--   exit_code: exit code of a command
--   status_raw: status in the log's own word
--   denial: the log's word for a refusal
--   ts: when, as the record says
--   provider_us: duration the provider states, microseconds
create table facts.tool_results (
    fact_id ubigint,
    source_id varchar,
    line_no bigint,
    row_key varchar,
    child integer,
    block integer,
    session_id varchar,
    call_key varchar,
    result_text varchar using compression zstd,
    result_bytes bigint,
    result_truncated boolean,
    digest varchar,
    images integer,
    is_error boolean,
    exit_code bigint,
    status_raw varchar,
    denial varchar,
    ts timestamptz,
    provider_us bigint
);

-- object: facts.tool_spans
-- kind: table
-- grain: one row per timed part of a call
-- about: From logs that time a call directly.
-- columns:
--   fact_id: deterministic id of the row: its source, table and place
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   row_key: table and primary key, for databases only
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   session_id: provider[.realm]:native id
--   call_key: the provider's call id; #2 for a reused id, ~line.block where there is none
--   span: execution, wait_permission, wait_human, wait_queue, hook, shell or background (went on behind a call that had returned)
--   started_at: start
--   ended_at: end
--   duration_us: duration in microseconds
--   outcome: outcome in the log's own word
create table facts.tool_spans (
    fact_id ubigint,
    source_id varchar,
    line_no bigint,
    row_key varchar,
    child integer,
    block integer,
    session_id varchar,
    call_key varchar,
    span varchar,
    started_at timestamptz,
    ended_at timestamptz,
    duration_us bigint,
    outcome varchar
);

-- object: facts.turn_marks
-- kind: table
-- grain: one row per start or end of a turn that a source states, and per record that stands behind the start of another turn than its own
-- about: Turn boundaries as the log states them, and the turn of a record where its place does not tell it.
-- columns:
--   fact_id: deterministic id of the row: its source, table and place
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   row_key: table and primary key, for databases only
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   session_id: provider[.realm]:native id
--   mark: start, end or within (the record is of this turn, although another has started since)
--   native_turn_id: the provider's turn id
--   trigger: person, scheduled, subagent, resume or unknown
--   status_raw: status in the log's own word
--   reason: why
--   error_class: class of the failure
--   http_status: HTTP status of the failure
--   reported_us: duration the log states, microseconds
--   first_token_us: time to the first token, microseconds
--   ts: when, as the record says
create table facts.turn_marks (
    fact_id ubigint,
    source_id varchar,
    line_no bigint,
    row_key varchar,
    child integer,
    block integer,
    session_id varchar,
    mark varchar,
    native_turn_id varchar,
    trigger varchar,
    status_raw varchar,
    reason varchar,
    error_class varchar,
    http_status integer,
    reported_us bigint,
    first_token_us bigint,
    ts timestamptz
);

-- object: facts.model_calls
-- kind: table
-- grain: one row per usage snapshot of a model call
-- about: Tokens and credits as the log states them; several snapshots of one call are resolved in mart.
-- columns:
--   fact_id: deterministic id of the row: its source, table and place
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   row_key: table and primary key, for databases only
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   session_id: provider[.realm]:native id
--   request_key: id of the model request
--   message_key: id of the message the row belongs to
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
--   cost_usd_reported: cost in USD the log states
--   context_ratio: share of the context window in use
--   context_window: tokens of the context window
--   duration_us: duration in microseconds
--   first_token_us: time to the first token, microseconds
--   stop_reason: why the model stopped
--   ts: when, as the record says
--   request_id: the service's id of the request, by which two stores tell of the same call
create table facts.model_calls (
    fact_id ubigint,
    source_id varchar,
    line_no bigint,
    row_key varchar,
    child integer,
    block integer,
    session_id varchar,
    request_key varchar,
    message_key varchar,
    grain varchar,
    owner varchar,
    model varchar,
    model_is_alias boolean,
    input_tokens bigint,
    output_tokens bigint,
    cache_read_tokens bigint,
    cache_creation_5m_tokens bigint,
    cache_creation_1h_tokens bigint,
    reasoning_tokens bigint,
    total_tokens bigint,
    usage_status varchar,
    credits decimal(18,9),
    original_credits decimal(18,9),
    cost_usd_reported decimal(18,9),
    context_ratio double,
    context_window bigint,
    duration_us bigint,
    first_token_us bigint,
    stop_reason varchar,
    ts timestamptz,
    request_id varchar
);

-- object: facts.session_facts
-- kind: table
-- grain: one row per statement about a session
-- about: cwd, title, model, branch, version, parent and so on. Which one wins is decided in mart, in SQL.
-- columns:
--   fact_id: deterministic id of the row: its source, table and place
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   row_key: table and primary key, for databases only
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   session_id: provider[.realm]:native id
--   key: what is stated
--   value: the statement, masked
--   ts: when, as the record says
create table facts.session_facts (
    fact_id ubigint,
    source_id varchar,
    line_no bigint,
    row_key varchar,
    child integer,
    block integer,
    session_id varchar,
    key varchar,
    value varchar using compression zstd,
    ts timestamptz
);

-- object: facts.events
-- kind: table
-- grain: one row per thing that happened and is neither dialogue nor tool
-- about: Compactions, attachments, interrupts, errors, retries, hooks.
-- columns:
--   fact_id: deterministic id of the row: its source, table and place
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   row_key: table and primary key, for databases only
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   session_id: provider[.realm]:native id
--   kind: compaction, attachment, interrupt, error, permission, context_size, system, …
--   subtype: finer kind
--   summary: first 200 characters, masked
--   attrs: masked canonical JSON of scalar details
--   ts: when, as the record says
create table facts.events (
    fact_id ubigint,
    source_id varchar,
    line_no bigint,
    row_key varchar,
    child integer,
    block integer,
    session_id varchar,
    kind varchar,
    subtype varchar,
    summary varchar using compression zstd,
    attrs varchar using compression zstd,
    ts timestamptz
);

-- object: facts.files_touched
-- kind: table
-- grain: one row per call and path it names
-- about: Paths that a call reads, writes, edits, lists or deletes, by its arguments.
-- columns:
--   fact_id: deterministic id of the row: its source, table and place
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   row_key: table and primary key, for databases only
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   session_id: provider[.realm]:native id
--   call_key: the provider's call id; #2 for a reused id, ~line.block where there is none
--   path: path, masked
--   op: read, write, edit, delete or list
create table facts.files_touched (
    fact_id ubigint,
    source_id varchar,
    line_no bigint,
    row_key varchar,
    child integer,
    block integer,
    session_id varchar,
    call_key varchar,
    path varchar,
    op varchar
);

-- object: facts.record_census
-- kind: table
-- grain: one row per source, unit, disposition and kind
-- about: Every line counted once. For unit line the sum over a source equals its physical lines, blank ones included; unit record counts decoded records, unit item unread content items.
-- columns:
--   source_id: the source that owns the row
--   unit: line, record or item
--   disposition: used, skipped, unknown, rejected; for lines also blank and pending
--   kind: type of the record or item, or the reason of a rejected line
--   n: how many
--   first_line: line of the first one
create table facts.record_census (
    source_id varchar,
    unit varchar,
    disposition varchar,
    kind varchar,
    n bigint,
    first_line bigint
);

-- object: facts.rejects
-- kind: table
-- grain: one row per line, record or content item that was not read as it stands
-- about: What was not read, with its place and reason. A recovered one still gave rows.
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
create table facts.rejects (
    source_id varchar,
    line_no bigint,
    child integer,
    block integer,
    byte_offset bigint,
    length bigint,
    reason varchar,
    recovered boolean,
    head varchar using compression zstd,
    digest varchar
);

-- object: facts.conflicts
-- kind: table
-- grain: one row per contradiction inside a source
-- about: The same id with different content: both digests and places.
-- columns:
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   other_line_no: line of the other side
--   id_kind: record, message (final snapshots of a Bridge) or tool_result
--   id: the id both sides carry
--   digest: blake2b-64 of the stored (masked) content
--   other_digest: digest of the other side's masked content; NULL where it is no longer known
--   rule: the rule that applied
--   resolution: which side is used: this or other
create table facts.conflicts (
    source_id varchar,
    line_no bigint,
    other_line_no bigint,
    id_kind varchar,
    id varchar,
    digest varchar,
    other_digest varchar,
    rule varchar,
    resolution varchar
);

-- object: facts.redactions
-- kind: table
-- grain: one row per source, column, rule and secret
-- about: How many times a masking rule fired. The fingerprint is keyed and in no equality test.
-- columns:
--   source_id: the source that owns the row
--   column_name: table and column
--   rule: the rule that applied
--   n: how many
--   fingerprint: keyed digest of the secret
create table facts.redactions (
    source_id varchar,
    column_name varchar,
    rule varchar,
    n bigint,
    fingerprint varchar
);

-- object: facts.bridge_batches
-- kind: table
-- grain: one row per batch, as its evidence names it
-- about: Batches of Qoder Bridge investigations.
-- columns:
--   fact_id: deterministic id of the row: its source, table and place
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   row_key: table and primary key, for databases only
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   batch_id: the batch: its time stamp; for other evidence the name of the file or the id of the SDK's session
--   root: folder of the batch, masked
--   stamp: time in the name of the batch
--   source_kind: live (a harness's batch), replay, previous (the provenance of an earlier run), log (a debug log) or stream (messages of the SDK alone)
--   model: model as the log names it
--   sdk_version: version of the SDK, where stated
create table facts.bridge_batches (
    fact_id ubigint,
    source_id varchar,
    line_no bigint,
    row_key varchar,
    child integer,
    block integer,
    batch_id varchar,
    root varchar,
    stamp timestamptz,
    source_kind varchar,
    model varchar,
    sdk_version varchar
);

-- object: facts.provider_runs
-- kind: table
-- grain: one row per run as the harness reported it
-- about: The reported summary of a run: what was reported, not what was observed.
-- columns:
--   fact_id: deterministic id of the row: its source, table and place
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   row_key: table and primary key, for databases only
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   batch_id: the batch: its time stamp; for other evidence the name of the file or the id of the SDK's session
--   run: run number; in a log and in a provenance the ordinal
--   model: model as the log names it
--   tool_count: tool calls, as reported
--   tool_errors: failed tool calls, as reported
--   protocol_errors: violations of the envelope protocol, as reported
--   provider_timeouts: turns in which the provider did not answer in time, as reported
--   continuation_timeouts: turns that fell silent after a tool result, as reported
--   terminal_state: last state of the run's last turn
--   states: all states in order, JSON
--   final_response: the last answer said that it was the last
--   turns: turns of the run
--   failure: failure of the harness in its own words, masked
--   is_masked: a number of the report is masked: its column is NULL
create table facts.provider_runs (
    fact_id ubigint,
    source_id varchar,
    line_no bigint,
    row_key varchar,
    child integer,
    block integer,
    batch_id varchar,
    run integer,
    model varchar,
    tool_count bigint,
    tool_errors bigint,
    protocol_errors bigint,
    provider_timeouts bigint,
    continuation_timeouts bigint,
    terminal_state varchar,
    states varchar,
    final_response boolean,
    turns bigint,
    failure varchar,
    is_masked boolean
);

-- object: facts.provider_turns
-- kind: table
-- grain: one row per turn and file that tells of it
-- about: What one file says of a turn: its diagnostics, its transport log, or the summary; the view bridge_turns puts them together.
-- columns:
--   fact_id: deterministic id of the row: its source, table and place
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   row_key: table and primary key, for databases only
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   batch_id: the batch: its time stamp; for other evidence the name of the file or the id of the SDK's session
--   run: run number; in a log and in a provenance the ordinal
--   turn: turn number inside the run
--   request_id: id of the request
--   model: model as the messages name it
--   evidence_level: observed, derived (concluded from code), replay (saved messages fed in again) or summary_only
--   stop_reason: why the turn ended, as the Bridge says: toolUse, stop, length, error or aborted
--   raw_stop_reason: stop reason of the SDK's result
--   error_kind: kind of a timeout as the Bridge names it: PROVIDER_UNAVAILABLE, PROVIDER_QUEUE_TIMEOUT, PROVIDER_RESPONSE_TIMEOUT or POST_TOOL_CONTINUATION_TIMEOUT
--   error_code: violated rule of the protocol, as reported
--   error_message: message of the error, masked
--   error_class: protocol, availability, continuation_timeout, aborted, provider_error, or NULL where nothing tells
--   continuation: the turn goes on after tool results
--   request_sent: the user's frame was written to the worker
--   runtime_ack_us: to the acknowledgement of the runtime (command_lifecycle started), which is no token, microseconds
--   first_message_us: to the first message of the SDK, microseconds
--   first_model_event_us: to the first stream event, snapshot or result, microseconds
--   first_thinking_us: to the first thinking, microseconds
--   first_token_us: to the first text of the answer, microseconds
--   last_message_us: to the last message of the SDK, microseconds
--   terminal_us: to what ended the turn, cleanup included, microseconds
--   raw_chunk_count: messages of the SDK that were consumed, resends included; none behind the first result
--   transport_frame_count: frames handed over by the worker
--   text_delta_count: text deltas
--   snapshot_count: assistant snapshots that are part of the answer
--   queue_event_count: queue events
--   result_count: results
--   diag_count: diagnostic events
--   duplicate_uuids: resends dropped because uuid and content were seen before
--   duplicate_finals: final snapshots dropped because message id and content were seen before
--   sequence_gaps: places where the sequence number does not follow
--   backward_steps: places where the time since the turn began goes back
--   own_code: violated rule by our own reading of boundary A, or of the conversation that was sent
--   own_error: what is wrong, in our words
--   own_failure: what provider or runtime say went wrong, masked
--   own_timeout: class of a silence after the last message, by our own reading; NULL where a result came
--   own_calls: tool calls of the answer by our own reading
--   own_text: text of the answer put together from boundary A by the rules, masked on the Bridge's terms too
--   delta_text: text deltas joined, masked likewise
--   delta_defect: code of the first complete envelope of the joined deltas that is not right
--   snapshot_text: texts of the snapshots that the Bridge says it appended, joined, masked likewise
--   total_credits: credits of the SDK's session so far: cumulative, never to be summed
--   masked_values: a number was masked in the log: its column is NULL
create table facts.provider_turns (
    fact_id ubigint,
    source_id varchar,
    line_no bigint,
    row_key varchar,
    child integer,
    block integer,
    batch_id varchar,
    run integer,
    turn integer,
    request_id varchar,
    model varchar,
    evidence_level varchar,
    stop_reason varchar,
    raw_stop_reason varchar,
    error_kind varchar,
    error_code varchar,
    error_message varchar,
    error_class varchar,
    continuation boolean,
    request_sent boolean,
    runtime_ack_us bigint,
    first_message_us bigint,
    first_model_event_us bigint,
    first_thinking_us bigint,
    first_token_us bigint,
    last_message_us bigint,
    terminal_us bigint,
    raw_chunk_count bigint,
    transport_frame_count bigint,
    text_delta_count bigint,
    snapshot_count bigint,
    queue_event_count bigint,
    result_count bigint,
    diag_count bigint,
    duplicate_uuids bigint,
    duplicate_finals bigint,
    sequence_gaps bigint,
    backward_steps bigint,
    own_code varchar,
    own_error varchar,
    own_failure varchar,
    own_timeout varchar,
    own_calls bigint,
    own_text varchar using compression zstd,
    delta_text varchar using compression zstd,
    delta_defect varchar,
    snapshot_text varchar using compression zstd,
    total_credits decimal(18,9),
    masked_values boolean
);

-- object: facts.boundary_events
-- kind: table
-- grain: one row per diagnostic event, and per stage of a provenance
-- about: Events of the five boundaries: A received, B put together, C before normalising, D parser input, E error input.
-- columns:
--   fact_id: deterministic id of the row: its source, table and place
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   row_key: table and primary key, for databases only
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   batch_id: the batch: its time stamp; for other evidence the name of the file or the id of the SDK's session
--   run: run number; in a log and in a provenance the ordinal
--   turn: turn number inside the run
--   request_id: id of the request
--   sequence: order within the turn
--   elapsed_us: microseconds since the turn began
--   label: label of the event
--   boundary: A to E; NULL for events of no boundary
--   item_index: number of the envelope, from 1; 0 for the whole text
--   text: masked text
--   digest: digest as the Bridge states it, taken before its masking: to compare with digests only
--   digest_algo: sha256/16: the first 16 hex digits of SHA-256
--   uuid: id of the message
--   message_id: id of the model message
--   sdk_seq: number of the SDK message it belongs to
--   code: protocol code
--   observed: it was observed, not derived
--   evidence_level: observed, derived, replay or summary_only
--   payload: what no other column holds, masked JSON
--   is_masked: a number of the row is masked: its column is NULL
create table facts.boundary_events (
    fact_id ubigint,
    source_id varchar,
    line_no bigint,
    row_key varchar,
    child integer,
    block integer,
    batch_id varchar,
    run integer,
    turn integer,
    request_id varchar,
    sequence bigint,
    elapsed_us bigint,
    label varchar,
    boundary varchar,
    item_index integer,
    text varchar using compression zstd,
    digest varchar,
    digest_algo varchar,
    uuid varchar,
    message_id varchar,
    sdk_seq bigint,
    code varchar,
    observed boolean,
    evidence_level varchar,
    payload varchar using compression zstd,
    is_masked boolean
);

-- object: facts.sdk_messages
-- kind: table
-- grain: one row per SDK message at boundary A
-- about: Messages as received, with what became of them. The text of a delta is not stored by itself: pieces of a secret cannot be masked.
-- columns:
--   fact_id: deterministic id of the row: its source, table and place
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   row_key: table and primary key, for databases only
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   batch_id: the batch: its time stamp; for other evidence the name of the file or the id of the SDK's session
--   run: run number; in a log and in a provenance the ordinal
--   turn: turn number inside the run
--   sequence: order within the turn
--   elapsed_us: microseconds since the turn began
--   type: type of the message
--   subtype: finer kind
--   uuid: id of the message
--   message_id: id of the model message
--   digest: digest as the Bridge states it
--   stop_reason: why the model stopped
--   event_type: type of the stream event
--   delta_type: type of the delta
--   delta_chars: characters of the delta
--   comparable: the stream event with its delta's length, masked as both sides of a comparison are, JSON
--   text: text of a snapshot or echo of a result, masked
--   defect_code: code of the first complete envelope in it that is not right
--   is_masked: a number in it is masked
--   dup_of_line: line of the message it repeats or contradicts
--   disposition: kept, dup_uuid, dup_final, conflict, malformed (no object), after_error (a rule was broken before, or the model failed) or after_terminal (behind the first result: not consumed, in no count)
--   payload: what no other column holds, for messages that are no snapshot and no stream event, masked JSON
create table facts.sdk_messages (
    fact_id ubigint,
    source_id varchar,
    line_no bigint,
    row_key varchar,
    child integer,
    block integer,
    batch_id varchar,
    run integer,
    turn integer,
    sequence bigint,
    elapsed_us bigint,
    type varchar,
    subtype varchar,
    uuid varchar,
    message_id varchar,
    digest varchar,
    stop_reason varchar,
    event_type varchar,
    delta_type varchar,
    delta_chars bigint,
    comparable varchar using compression zstd,
    text varchar using compression zstd,
    defect_code varchar,
    is_masked boolean,
    dup_of_line bigint,
    disposition varchar,
    payload varchar using compression zstd
);

-- object: facts.transport_frames
-- kind: table
-- grain: one row per frame between SDK and worker
-- about: Frames repeat what the SDK hands on, to compare with; writes are what the Bridge sent.
-- columns:
--   fact_id: deterministic id of the row: its source, table and place
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   row_key: table and primary key, for databases only
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   batch_id: the batch: its time stamp; for other evidence the name of the file or the id of the SDK's session
--   run: run number; in a log and in a provenance the ordinal
--   turn: turn number inside the run
--   sequence: order within the turn, from 0
--   elapsed_us: microseconds since the turn began
--   direction: write, frame or omitted
--   type: type of the frame
--   subtype: finer kind
--   uuid: id of the message in it
--   delta_type: type of the delta
--   delta_chars: characters of the delta
--   comparable: as in sdk_messages
--   text: text of a snapshot, echo of a result, or the prompt that was written, masked
--   defect_code: code of the first complete envelope in it that is not right
--   is_masked: a number in it is masked
--   payload: what no other column holds, masked JSON
create table facts.transport_frames (
    fact_id ubigint,
    source_id varchar,
    line_no bigint,
    row_key varchar,
    child integer,
    block integer,
    batch_id varchar,
    run integer,
    turn integer,
    sequence bigint,
    elapsed_us bigint,
    direction varchar,
    type varchar,
    subtype varchar,
    uuid varchar,
    delta_type varchar,
    delta_chars bigint,
    comparable varchar using compression zstd,
    text varchar using compression zstd,
    defect_code varchar,
    is_masked boolean,
    payload varchar using compression zstd
);

-- object: facts.queue_events
-- kind: table
-- grain: one row per queue event at boundary A
-- about: Queue state as received; labels and transport frames repeat it.
-- columns:
--   fact_id: deterministic id of the row: its source, table and place
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   row_key: table and primary key, for databases only
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   batch_id: the batch: its time stamp; for other evidence the name of the file or the id of the SDK's session
--   run: run number; in a log and in a provenance the ordinal
--   turn: turn number inside the run
--   sequence: order within the turn
--   elapsed_us: microseconds since the turn began
--   status: queued or ready
--   service_available: the service says it is available; NULL where it does not say
--   request_id: id of the request in the queue
--   model_key: model asked for
--   queue_type: kind of queue
--   queue_count: requests in the queue
--   queue_wait_us: waited in the queue so far, microseconds
--   wait_us: wait that the service expects, microseconds
--   disposition: what became of the message, as in sdk_messages: after_terminal ones came behind the first result
--   is_masked: a number of the row is masked: its column is NULL
create table facts.queue_events (
    fact_id ubigint,
    source_id varchar,
    line_no bigint,
    row_key varchar,
    child integer,
    block integer,
    batch_id varchar,
    run integer,
    turn integer,
    sequence bigint,
    elapsed_us bigint,
    status varchar,
    service_available boolean,
    request_id varchar,
    model_key varchar,
    queue_type varchar,
    queue_count bigint,
    queue_wait_us bigint,
    wait_us bigint,
    disposition varchar,
    is_masked boolean
);

-- object: facts.envelopes
-- kind: table
-- grain: one row per boundary and tool-call envelope found in its text
-- about: Strictly read, never repaired.
-- columns:
--   fact_id: deterministic id of the row: its source, table and place
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   row_key: table and primary key, for databases only
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   batch_id: the batch: its time stamp; for other evidence the name of the file or the id of the SDK's session
--   run: run number; in a log and in a provenance the ordinal
--   turn: turn number inside the run
--   boundary: A (the text put together by our rules), B, C, or D (what the parser was asked)
--   envelope_index: number of the envelope in the text, from 1
--   raw: text between its tags, masked; of an incomplete one everything from the marker on
--   parse_ok: it is complete and strict JSON
--   parse_error: why it is not
--   code: code of what is wrong with it, NULL where it is right
--   tool_name: tool it asks for
--   call_key: id of the call, or its place in run, turn and answer where the model gave none
create table facts.envelopes (
    fact_id ubigint,
    source_id varchar,
    line_no bigint,
    row_key varchar,
    child integer,
    block integer,
    batch_id varchar,
    run integer,
    turn integer,
    boundary varchar,
    envelope_index integer,
    raw varchar using compression zstd,
    parse_ok boolean,
    parse_error varchar,
    code varchar,
    tool_name varchar,
    call_key varchar
);

-- object: facts.bridge_claims
-- kind: table
-- grain: one row per figure or conclusion that an evidence file states
-- about: What summaries, audits and replays conclude themselves: to compare with, never to count.
-- columns:
--   fact_id: deterministic id of the row: its source, table and place
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   row_key: table and primary key, for databases only
--   child: index of the record inside a framed or glued line, else 0
--   block: index of the content item; 0 for a message that is one string; NULL where the row is no content item
--   batch_id: the batch: its time stamp; for other evidence the name of the file or the id of the SDK's session
--   run: run number; in a log and in a provenance the ordinal
--   turn: turn number inside the run
--   claim: name of the figure
--   value: as stated; JSON unless it is a text
--   evidence_level: evidence that the file is: derived, replay or summary_only
--   is_masked: the figure is masked: value is NULL
create table facts.bridge_claims (
    fact_id ubigint,
    source_id varchar,
    line_no bigint,
    row_key varchar,
    child integer,
    block integer,
    batch_id varchar,
    run integer,
    turn integer,
    claim varchar,
    value varchar,
    evidence_level varchar,
    is_masked boolean
);
