-- The schema mart: what we conclude, one row per real thing. sql/resolve fills it from facts, never from itself.

-- object: mart.copies
-- kind: table
-- grain: one row per copied record whose owner is in the store
-- about: Copies by explicit origin or by the same record in two files. The owner is what was copied from nowhere, then the
--   earliest by time, then path.
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
create table mart.copies (
    session_id varchar,
    source_id varchar,
    line_no bigint,
    child integer,
    owner_session_id varchar,
    owner_source_id varchar,
    owner_line_no bigint,
    owner_child integer,
    reason varchar
);

-- object: mart.conflicts
-- kind: table
-- grain: one row per record that contradicts another file
-- about: The same id with other content in two files: both are kept; what a log calls a copy is one all the same.
--   Contradictions inside one file stand in facts.conflicts.
-- columns:
--   session_id: provider[.realm]:native id
--   source_id: the source that owns the row
--   line_no: physical line, from 1; for databases the rank by row_key
--   child: index of the record inside a framed or glued line, else 0
--   other_session_id: session of the other side
--   other_source_id: source of the other side
--   other_line_no: line of the other side
--   id_kind: record
--   id: the id both sides carry
--   digest: blake2b-64 of the first stored (masked) text or argument that differs
--   other_digest: digest of the other side's
--   rule: the rule that applied
--   resolution: which side is used: both, or other (the owner's)
create table mart.conflicts (
    session_id varchar,
    source_id varchar,
    line_no bigint,
    child integer,
    other_session_id varchar,
    other_source_id varchar,
    other_line_no bigint,
    id_kind varchar,
    id varchar,
    digest varchar,
    other_digest varchar,
    rule varchar,
    resolution varchar
);

-- object: mart.sessions
-- kind: table
-- grain: one row per session
-- about: What a session is and adds up to; copies and dead branches are left out of its counts, calls and usage of dead branches stay.
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
create table mart.sessions (
    session_id varchar,
    provider varchar,
    realm varchar,
    native_id varchar,
    kind varchar,
    title varchar,
    title_source varchar,
    parent_session_id varchar,
    root_session_id varchar,
    spawn_call_key varchar,
    cwd varchar,
    cwd_source varchar,
    project varchar,
    git_branch varchar,
    git_remote varchar,
    tool_version varchar,
    entrypoint varchar,
    model varchar,
    models varchar[],
    started_at timestamptz,
    ended_at timestamptz,
    status varchar,
    prompts bigint,
    assistant_messages bigint,
    text_rows bigint,
    thinking_rows bigint,
    tool_calls bigint,
    tool_errors bigint,
    model_calls bigint,
    unknown_items bigint,
    rejected_lines bigint,
    raw_envelopes bigint,
    input_tokens bigint,
    output_tokens bigint,
    cost_usd decimal(18,9),
    credits decimal(18,9),
    hosts varchar[],
    sources bigint,
    source_state varchar,
    is_empty boolean
);

-- object: mart.turns
-- kind: table
-- grain: one row per turn
-- about: A turn goes from what started it to what starts the next.
-- columns:
--   session_id: provider[.realm]:native id
--   turn_no: turn, from 1; 0 before the first
--   native_turn_id: the provider's turn id
--   trigger: person, scheduled, subagent, resume or unknown
--   prompt_source_id: source of the prompt
--   prompt_line_no: line of the prompt
--   prompt_child: child of the prompt
--   started_at: start
--   ended_at: end
--   reported_us: duration the log states, microseconds
--   wall_us: first to last record, microseconds
--   first_token_us: time to the first token, microseconds
--   tool_wall_us: union of the tool calls' intervals, microseconds
--   tool_sum_us: sum of the tool calls' latencies, microseconds
--   status: completed, failed, cancelled, superseded or open; NULL where the log's word for its end cannot be read
--   error_class: class of the failure
--   http_status: HTTP status of the failure
--   reason: why
--   branch: live, or dead (rewound, replaced)
create table mart.turns (
    session_id varchar,
    turn_no bigint,
    native_turn_id varchar,
    trigger varchar,
    prompt_source_id varchar,
    prompt_line_no bigint,
    prompt_child integer,
    started_at timestamptz,
    ended_at timestamptz,
    reported_us bigint,
    wall_us bigint,
    first_token_us bigint,
    tool_wall_us bigint,
    tool_sum_us bigint,
    status varchar,
    error_class varchar,
    http_status integer,
    reason varchar,
    branch varchar
);

-- object: mart.dialogue
-- kind: table
-- grain: one row per readable block
-- about: Order, turn and branch of a row of facts.dialogue; the text stays there.
-- columns:
--   session_id: provider[.realm]:native id
--   seq: order inside the session
--   turn_no: turn, from 1; 0 before the first
--   fact_id: deterministic id of the row: its source, table and place
--   role: user, assistant or system
--   kind: prompt (a person asked), steer, command, shell, text, thinking, question, answer, summary (of a compaction), context (injected), objective (a sub-agent's task), notice, error_notice or discarded
--   ts: when, as the record says
--   model: model as the log names it
--   message_key: message
--   text_chars: characters before masking
--   agent: sub-agent id
--   branch: live, or dead (rewound, replaced)
--   is_copy: a copy whose owner is in the store
create table mart.dialogue (
    session_id varchar,
    seq bigint,
    turn_no bigint,
    fact_id ubigint,
    role varchar,
    kind varchar,
    ts timestamptz,
    model varchar,
    message_key varchar,
    text_chars bigint,
    agent varchar,
    branch varchar,
    is_copy boolean
);

-- object: mart.tool_calls
-- kind: table
-- grain: one row per tool call
-- about: Request, result and best latency of a call, over all sources of its session.
-- columns:
--   session_id: provider[.realm]:native id
--   call_key: the provider's call id; #2 for a reused id, ~line.block where there is none
--   seq: order inside the session
--   turn_no: turn, from 1; 0 before the first
--   request_fact_id: row of facts.tool_requests
--   result_fact_id: row of facts.tool_results
--   name: tool name in the shared vocabulary
--   name_raw: tool name as the log has it
--   mcp_server: MCP server of the tool
--   result_bytes: bytes of the result
--   is_error: as the log says; NULL where it does not
--   exit_code: exit code of a command
--   status: ok, error, denied, cancelled, interrupted, background or missing_result
--   started_at: start
--   ended_at: end
--   latency_us: best latency, microseconds; NULL where nothing times the call
--   latency_source: execution, provider_duration, start_end, pair, batch or none
--   latency_quality: exact, good, bound or none
--   latency_evidence: the two places or the log it is from
--   pair_us: request to result of the same source, microseconds
--   provider_us: duration the provider states, microseconds
--   wait_us: waiting inside it, where told, microseconds
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
--   branch: live, or dead (rewound, replaced)
--   is_copy: a copy whose owner is in the store
--   anomaly: NULL, result_before_call, clock_step, duplicate_result or conflicting_result
create table mart.tool_calls (
    session_id varchar,
    call_key varchar,
    seq bigint,
    turn_no bigint,
    request_fact_id ubigint,
    result_fact_id ubigint,
    name varchar,
    name_raw varchar,
    mcp_server varchar,
    result_bytes bigint,
    is_error boolean,
    exit_code bigint,
    status varchar,
    started_at timestamptz,
    ended_at timestamptz,
    latency_us bigint,
    latency_source varchar,
    latency_quality varchar,
    latency_evidence varchar,
    pair_us bigint,
    provider_us bigint,
    wait_us bigint,
    human_gate_suspected boolean,
    is_parallel boolean,
    batch_key varchar,
    batch_size bigint,
    retry_of varchar,
    parent_call_key varchar,
    child_session_id varchar,
    model varchar,
    host varchar,
    target_path varchar,
    command_head varchar,
    branch varchar,
    is_copy boolean,
    anomaly varchar
);

-- object: mart.model_calls
-- kind: table
-- grain: one row per model call
-- about: Usage snapshots of one call resolved into one row, at the finest grain a session has.
-- columns:
--   session_id: provider[.realm]:native id
--   request_key: id of the model request
--   turn_no: turn, from 1; 0 before the first
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
--   cost_usd_reported: cost in USD the log states
--   context_ratio: share of the context window in use
--   context_window: tokens of the context window
--   duration_us: duration in microseconds
--   first_token_us: time to the first token, microseconds
--   stop_reason: why the model stopped
--   ts: when, as the record says
--   snapshots_merged: usage snapshots of the call
--   branch: live, or dead (rewound, replaced)
--   is_copy: a copy whose owner is in the store
--   cost_usd: cost in USD, NULL where it is not known
--   cost_basis: reported, listed, credits, subscription or unknown
--   price_id: row of the price table that the listed cost is computed by
create table mart.model_calls (
    session_id varchar,
    request_key varchar,
    turn_no bigint,
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
    snapshots_merged bigint,
    branch varchar,
    is_copy boolean,
    cost_usd decimal(18,9),
    cost_basis varchar,
    price_id varchar
);

-- object: mart.files_touched
-- kind: table
-- grain: one row per call and path
-- about: Which calls touch which files.
-- columns:
--   session_id: provider[.realm]:native id
--   call_key: the provider's call id; #2 for a reused id, ~line.block where there is none
--   path: path, masked
--   op: read, write, edit, delete or list
--   relative_to_cwd: path below the working folder
--   is_copy: a copy whose owner is in the store
create table mart.files_touched (
    session_id varchar,
    call_key varchar,
    path varchar,
    op varchar,
    relative_to_cwd varchar,
    is_copy boolean
);

-- object: mart.session_links
-- kind: table
-- grain: one row per relation of two sessions
-- about: Where a session comes from.
-- columns:
--   session_id: provider[.realm]:native id
--   other_session_id: the session it comes from
--   relation: subagent, fork, resume, continuation or compaction
--   via_call_key: call of the other session
--   evidence: what says so
--   confidence: explicit or inferred
create table mart.session_links (
    session_id varchar,
    other_session_id varchar,
    relation varchar,
    via_call_key varchar,
    evidence varchar,
    confidence varchar
);

-- object: mart.loads
-- kind: table
-- grain: one row per load that published
-- about: What a load did. A run that changed nothing stands in the state log only.
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
create table mart.loads (
    load_id varchar,
    started_at timestamptz,
    finished_at timestamptz,
    host varchar,
    version varchar,
    state varchar,
    sources_seen bigint,
    sources_changed bigint,
    sources_failed bigint,
    sources_gone bigint,
    rows_per_table varchar,
    rejects bigint,
    conflicts bigint,
    redactions bigint,
    bytes_read bigint,
    seconds_per_stage varchar,
    peak_rss varchar,
    checks varchar
);
