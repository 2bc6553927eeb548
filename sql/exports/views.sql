-- What leaves a store as files of rows. Each statement gives the columns of one view, in its order and sorted by its
-- key, over the sessions of the temporary table `chosen` (made first), some of them at a time: sorted as a whole, calls
-- with their results did not fit into a limit of 256 MB although the store was of 106. The range of session ids is
-- there for speed: the engine hands it down to every table of the view. `-- partition:` names the columns that become
-- folders of Parquet, `month` among them where it is one, which is the month of the session's start and the last
-- column.

-- report: export.views
-- about: the views there are to export
select view_name
from duckdb_views()
where database_name = current_database() and schema_name = 'main' and not internal
order by view_name;

-- report: export.providers
-- about: the providers whose sessions or files the store holds
select provider from mart.sessions
union
select provider from facts.sources
order by provider;

-- report: export.asked
-- about: the sessions of the providers that are asked for; of sessions that are, these and their sub-agents
-- params: providers text[] (empty: all), sessions text[] (empty: all)
create temp table asked as
with recursive family as (
    select unnest($sessions::varchar[]) as session_id
    union
    select l.session_id
    from family f
    join mart.session_links l on l.other_session_id = f.session_id and l.relation = 'subagent'
)
select session_id, provider, started_at
from mart.sessions
where (len($providers::varchar[]) = 0 or list_contains($providers::varchar[], provider))
  and (len($sessions::varchar[]) = 0 or session_id in (select session_id from family));

-- report: export.chosen
-- about: the sessions that are exported, each with the month (UTC) it began in; a session without a start has none, and
--   is left out where days are asked for. Chunks are what is taken out at a time: neighbours in the order of provider,
--   month and session, of so many bytes of text, by what the log had before masking and clipping.
-- params: since date (NULL: no bound), until date (NULL: no bound; the day itself counts), chunk_bytes bigint
create temp table chosen as
with held as (
    select session_id, count(*) as entries, sum(text_chars) as bytes from mart.dialogue group by session_id
    union all
    select session_id, count(*), sum(least(result_bytes, 300000)) from mart.tool_calls group by session_id
    union all
    select session_id, count(*), sum(args_bytes) from facts.tool_requests group by session_id
),
heavy as (
    select session_id, sum(entries) * 1000 + sum(coalesce(bytes, 0)) as bytes from held group by session_id
),
dated as (
    select session_id, provider, strftime(started_at at time zone 'UTC', '%Y-%m') as month
    from asked
    where ($since::date is null or started_at >= $since::date::timestamp at time zone 'UTC')
      and ($until::date is null or started_at < ($until::date + 1)::timestamp at time zone 'UTC')
)
select d.*, (sum(coalesce(h.bytes, 0)) over (order by provider, month, session_id) // $chunk_bytes)::bigint as chunk
from dated d
left join heavy h using (session_id);

-- report: export.chunks
-- about: the chunks in order, with the range of their sessions
select chunk, min(session_id) as low, max(session_id) as high
from chosen
group by chunk
order by chunk;

-- report: export.chosen_sessions
-- about: how many they are
select count(*) from chosen;

-- report: export.read
-- about: the files that are exported: of the providers that are asked for, of whatever day
-- params: providers text[] (empty: all)
create temp table chosen_sources as
select source_id
from facts.sources
where len($providers::varchar[]) = 0 or list_contains($providers::varchar[], provider);

-- report: export.undated
-- about: how many sessions are left out because they have no start, where days are asked for
select count(*) from asked where started_at is null;

-- report: export.any
-- about: any other view, whole
-- params: view text
from query_table($view)
order by all;

-- report: export.any_of_sessions
-- about: any other view that has sessions, those that are asked for
-- params: view text
select v.*
from query_table($view) v
join chosen c on c.session_id = v.session_id and c.chunk = $chunk
where v.session_id between $low and $high
order by c.provider, c.month, v.session_id, columns(v.*);

-- report: export.any_of_sources
-- about: any other view that has files and no sessions, those that are asked for
-- params: view text
from query_table($view)
semi join chosen_sources using (source_id)
order by all;

-- report: export.sessions
-- about: sessions
-- partition: provider
select v.*
from main.sessions v
join chosen c on c.session_id = v.session_id and c.chunk = $chunk
where v.session_id between $low and $high
order by v.provider, c.month, v.session_id;

-- report: export.turns
-- about: turns
-- partition: provider, month
select v.*, c.month
from main.turns v
join chosen c on c.session_id = v.session_id and c.chunk = $chunk
where v.session_id between $low and $high
order by v.provider, c.month, v.session_id, v.turn_no;

-- report: export.dialogue
-- about: what was said
-- partition: provider, month
select v.*, c.month
from main.dialogue v
join chosen c on c.session_id = v.session_id and c.chunk = $chunk
where v.session_id between $low and $high
order by v.provider, c.month, v.session_id, v.seq;

-- report: export.tool_calls
-- about: tool calls with arguments and results
-- partition: provider, month
select v.*, c.month
from main.tool_calls v
join chosen c on c.session_id = v.session_id and c.chunk = $chunk
where v.session_id between $low and $high
order by v.provider, c.month, v.session_id, v.seq, v.call_key;

-- report: export.tool_latency
-- about: timed tool calls
-- partition: provider, month
select v.*, c.month
from main.tool_latency v
join chosen c on c.session_id = v.session_id and c.chunk = $chunk
where v.session_id between $low and $high
order by v.provider, c.month, v.session_id, v.seq, v.call_key;

-- report: export.model_calls
-- about: usage
-- partition: provider, month
select v.*, c.month
from main.model_calls v
join chosen c on c.session_id = v.session_id and c.chunk = $chunk
where v.session_id between $low and $high
order by v.provider, c.month, v.session_id, v.ts, v.request_key, v.owner;

-- report: export.files_touched
-- about: paths that calls name
-- partition: provider, month
select v.*, c.month
from main.files_touched v
join chosen c on c.session_id = v.session_id and c.chunk = $chunk
where v.session_id between $low and $high
order by v.provider, c.month, v.session_id, v.call_key, v.path, v.op;

-- report: export.events
-- about: what else happened; two equal rows are told apart by nothing
-- partition: provider, month
select v.*, c.month
from main.events v
join chosen c on c.session_id = v.session_id and c.chunk = $chunk
where v.session_id between $low and $high
order by v.provider, c.month, v.session_id, v.ts, v.source_id, v.line_no, v.kind, v.subtype, v.summary, v.attrs;

-- report: export.session_links
-- about: where sessions come from
-- partition: provider
select v.*
from main.session_links v
join chosen c on c.session_id = v.session_id and c.chunk = $chunk
where v.session_id between $low and $high
order by v.provider, c.month, v.session_id, v.other_session_id, v.relation, v.via_call_key, v.evidence;

-- report: export.copies
-- about: copied records
select v.*
from main.copies v
join chosen c on c.session_id = v.session_id and c.chunk = $chunk
where v.session_id between $low and $high
order by c.provider, c.month, v.session_id, v.source_id, v.line_no, v.child, v.owner_source_id, v.owner_line_no,
    v.owner_child;

-- report: export.sources
-- about: files that were read
-- partition: provider
select *
from main.sources
semi join chosen_sources using (source_id)
order by provider, source_id;

-- report: export.rejects
-- about: what was not read
select *
from main.rejects
semi join chosen_sources using (source_id)
order by source_id, line_no, child, block, byte_offset, reason, length, digest;

-- report: export.record_census
-- about: every line counted once
select *
from main.record_census
semi join chosen_sources using (source_id)
order by source_id, unit, disposition, kind;
