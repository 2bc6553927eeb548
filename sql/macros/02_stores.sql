-- macro: store_rank
-- about: how good a store of a provider is as a witness of what was said, the best first: a session takes its dialogue and
--   its turns from the sources of the lowest rank that tell of it, and a call its request and result. 0 a transcript (and
--   every store of a provider that has one kind), 1 an execution transcript, 2 home sessions, 3 the cache, 4 a captured
--   stream, 5 the IDE's database, 6 run logs, 9 the audit trail
create macro store_rank(store_kind) as case store_kind
    when 'qoder_transcript' then 1
    when 'qoder_home_sessions' then 2
    when 'qoder_cache' then 3
    when 'qoder_stream' then 4
    when 'qoder_ide_db' then 5
    when 'qoder_logs' then 6
    when 'qoder_audit' then 9
    else 0
end;

-- macro: is_guess
-- about: a request of the audit trail without a call id: evidence for a call that another store shows, no call of its own
create macro is_guess(store_kind, call_id_source) as store_kind = 'qoder_audit' and call_id_source = 'synthesised';

-- macro: is_global_id
-- about: is a record of that id the same record in every session of its provider and realm? An id of 32 characters or more
--   is; Claude Code's always are (they are UUIDs, kept by resume, fork and compaction); shorter ones of other providers say
--   so only where a session names its origin
create macro is_global_id(session_id, id) as length(id) >= 32 or starts_with(session_id, 'claude_code:');

-- macro: is_response_id
-- about: is the key of a model call the service's id of its response, which no two responses share, whatever session tells of
--   it? Claude Code's are message ids (msg_ and 24 characters; gateways write ids of their own)
create macro is_response_id(session_id, request_key) as
    starts_with(session_id, 'claude_code:') and length(request_key) >= 20 and not starts_with(request_key, '~');
