-- resolve: titles
-- needs: stated, facts.dialogue, mart.dialogue
-- about: the title, by precedence: the last custom title (an empty one clears it), the last generated one, the sidecar's,
--   the last prompt as the agent noted it, the last summary, the last /rename, else the first meaningful prompt (no wrapper of a command,
--   no interruption; a command is only a fallback), on one line, 200 characters.
create or replace temp table titles as
with candidates as (
    select session_id, last_value as title, key as source,
        case key when 'title.custom' then 1 when 'title.ai' then 2 when 'title.auto' then 2 when 'title.sidecar' then 3
            when 'title.last_prompt' then 4 when 'title.summary' then 5 when 'title.rename' then 5.5 end as rank
    from stated
    where starts_with(key, 'title.')
    union all
    select d.session_id, arg_min(d.text, m.seq), 'prompt',
        case when d.kind <> 'command' then 6 else 7 end
    from mart.dialogue m
    join facts.dialogue d on d.session_id = m.session_id and d.fact_id = m.fact_id
    where m.session_id in (select session_id from touched) and not m.is_copy and m.branch = 'live'
      and d.kind in ('prompt', 'command', 'shell', 'objective')
      and not regexp_matches(d.text, '^\s*<[a-z][\w-]*[\s>]') and not starts_with(d.text, '[Request interrupted')
    group by d.session_id, case when d.kind <> 'command' then 6 else 7 end
)
select session_id,
    case when length(line) > 200 then left(line, 200) || '…' else line end as title,
    source
from (
    select session_id, trim(regexp_replace(title, '\s*[\r\n]+\s*', ' ', 'g')) as line, replace(source, 'title.', '') as source, rank
    from candidates
)
where line <> ''
qualify row_number() over (partition by session_id order by rank) = 1;

-- resolve: mart.sessions
-- needs: members, unelected, stated, roots, titles, dead, working_folders, projects, mart.dialogue, mart.tool_calls,
--   mart.model_calls, mart.turns, mart.session_links
-- about: one row per session. What a dead branch said is not counted, its calls and usage are; it is as done as its last
--   live turn. Start and end are the first and last instant of its own message records: copies, state rows
--   and file times say nothing. The version is that of its process run where the transcript says "unknown".
--   A sum that its column cannot hold (impossible counts) is NULL: one odd file must not stop a load.
delete from mart.sessions where session_id in (select session_id from touched);

insert into mart.sessions
with files as (
    select m.session_id, any_value(provider order by rel_path) as provider, any_value(realm order by rel_path) as realm,
        coalesce(any_value(native_session_id order by rel_path), regexp_replace(m.session_id, '^[^:]*:', '')) as native_id,
        list_sort(list(distinct host)) as hosts,
        count(*) as sources, sum(rejected_lines) as rejected_lines,
        case when bool_or(source_state = 'present') then 'present' when bool_and(source_state = 'gone') then 'gone'
            else 'suspicious' end as source_state
    from (
        select m.session_id, s.* exclude (session_id) replace (
                case when m.is_guest then null else s.native_session_id end as native_session_id,
                case when m.is_guest then 0 else s.rejected_lines end as rejected_lines
            )
        from members m
        join facts.sources s on s.source_id = m.source_id
    ) m
    group by m.session_id
),
own as (
    select r.session_id, min(r.ts) as started_at, max(r.ts) as ended_at, count(*) as records,
        count(distinct r.message_key) filter (r.role = 'assistant' and x.line_no is null) as assistant_messages
    from facts.records r
    anti join copied c on c.source_id = r.source_id and c.line_no = r.line_no and c.child = r.child
    left join dead x on x.source_id = r.source_id and x.line_no = r.line_no and x.child = r.child
    anti join unelected u on u.session_id = r.session_id and u.source_id = r.source_id
    where r.session_id in (select session_id from touched)
    group by r.session_id
),
any_record as (select distinct session_id from facts.records where role in ('user', 'assistant')),
said as (
    select m.session_id,
        count(distinct m.message_key) filter (m.kind in ('prompt', 'command')) as prompts,
        count(*) filter (m.kind = 'text') as text_rows,
        count(*) filter (m.kind = 'thinking') as thinking_rows,
        count(*) filter (d.raw_envelope) as raw_envelopes
    from mart.dialogue m
    join facts.dialogue d on d.session_id = m.session_id and d.fact_id = m.fact_id
    where not m.is_copy and m.branch = 'live' and m.session_id in (select session_id from touched)
    group by m.session_id
),
called as (
    select session_id, count(*) as tool_calls, count(*) filter (status = 'error') as tool_errors
    from mart.tool_calls
    where not is_copy and session_id in (select session_id from touched)
    group by session_id
),
used as (
    select session_id,
        case when bool_or(grain <> 'session') then count(*) filter (grain <> 'session') else count(*) end as model_calls,
        mode(model order by model) filter (model is not null) as model,
        list_sort(list(distinct model) filter (model is not null)) as models,
        try_cast(sum(input_tokens) as bigint) as input_tokens, try_cast(sum(output_tokens) as bigint) as output_tokens,
        try_cast(sum(cost_usd) as decimal(18, 9)) as cost_usd, try_cast(sum(credits) as decimal(18, 9)) as credits
    from mart.model_calls
    where not is_copy and owner = 'session' and session_id in (select session_id from touched)
    group by session_id
),
unread as (
    select b.session_id, count(*) as unknown_items
    from facts.content_blocks b
    anti join copied c on c.source_id = b.source_id and c.line_no = b.line_no and c.child = b.child
    anti join facts.merges g on g.source_id = b.source_id and g.line_no = b.line_no and g.child = b.child
        and (g.block is null or g.block = b.block)
    anti join unelected u on u.session_id = b.session_id and u.source_id = b.source_id
    where b.disposition = 'unknown' and b.session_id in (select session_id from touched)
    group by b.session_id
),
ended as (
    select session_id, arg_max(coalesce(status, ''), turn_no) as status
    from mart.turns
    where branch = 'live' and session_id in (select session_id from touched)
    group by session_id
),
internals as (  -- another session says that this one is the agent's own
    select distinct substr(key, 10) as session_id from stated where starts_with(key, 'internal.')
),
facts_of as (
    select session_id,
        coalesce(any_value(last_filled) filter (key = 'kind'), case when bool_or(key = 'shadow') then 'subagent' end) as kind,
        any_value(last_filled) filter (key = 'branch') as branch,
        any_value(last_filled) filter (key = 'remote') as remote,
        any_value(last_filled) filter (key = 'version') as version,
        any_value(last_filled) filter (key = 'entrypoint') as entrypoint,
        any_value(last_filled) filter (key = 'model.config') as model_config
    from stated
    group by session_id
),
run_of as (
    select r.session_id, any_value(m.last_filled) filter (m.key = 'version.manifest') as version_manifest
    from stated r
    join stated m on m.session_id = r.last_value
    where r.key = 'run'
    group by r.session_id
),
lineage as (
    select session_id,
        any_value(other_session_id) filter (relation = 'subagent') as parent,
        any_value(via_call_key) filter (relation = 'subagent') as via_call_key,
        any_value(other_session_id) filter (relation = 'fork') as origin,
        any_value(other_session_id) filter (relation = 'continuation') as continued
    from mart.session_links
    where session_id in (select session_id from touched)
    group by session_id
)
select f.session_id, f.provider, f.realm, f.native_id,
    case when l.via_call_key is null and (k.kind = 'internal' or i.session_id is not null) then 'internal'
        when l.parent is not null or k.kind = 'subagent' then 'subagent' when l.origin is not null then 'fork' else 'root' end,
    t.title, t.source,
    coalesce(l.parent, l.origin, l.continued),
    coalesce(r.root, regexp_replace(coalesce(l.parent, f.session_id), '/agent-.*$', '')),
    l.via_call_key,
    w.cwd, w.source, p.project, k.branch, k.remote, coalesce(nullif(k.version, 'unknown'), n.version_manifest, k.version), k.entrypoint,
    coalesce(u.model, k.model_config), coalesce(u.models, []),
    o.started_at, o.ended_at,
    case when e.status is null then 'open' when e.status in ('failed') then 'failed'
        when e.status in ('completed', 'cancelled', 'superseded') then 'completed' else 'open' end,
    coalesce(s.prompts, 0), coalesce(o.assistant_messages, 0), coalesce(s.text_rows, 0), coalesce(s.thinking_rows, 0),
    coalesce(c.tool_calls, 0), coalesce(c.tool_errors, 0), coalesce(u.model_calls, 0), coalesce(x.unknown_items, 0),
    coalesce(f.rejected_lines, 0), coalesce(s.raw_envelopes, 0),
    u.input_tokens, u.output_tokens, u.cost_usd, u.credits, f.hosts, f.sources, f.source_state,
    a.session_id is null
from files f
left join facts_of k using (session_id)
left join run_of n using (session_id)
left join lineage l using (session_id)
left join roots r using (session_id)
left join working_folders w using (session_id)
left join projects p using (session_id)
left join internals i using (session_id)
left join titles t using (session_id)
left join own o using (session_id)
left join said s using (session_id)
left join called c using (session_id)
left join used u using (session_id)
left join unread x using (session_id)
left join ended e using (session_id)
left join any_record a using (session_id)
order by f.session_id;
