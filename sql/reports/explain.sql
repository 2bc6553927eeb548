-- report: explain.sources
-- about: which sources tell of a session, what each said, and what it is to the session: its dialogue, a second telling of
--   it, or evidence for calls and usage
-- params: session text
with told as (
    select source_id, 'records' as what, count(*) as n from facts.records where session_id = $session group by all
    union all select source_id, 'dialogue', count(*) from facts.dialogue where session_id = $session group by all
    union all select source_id, 'requests', count(*) from facts.tool_requests where session_id = $session group by all
    union all select source_id, 'results', count(*) from facts.tool_results where session_id = $session group by all
    union all select source_id, 'spans', count(*) from facts.tool_spans where session_id = $session group by all
    union all select source_id, 'usage', count(*) from facts.model_calls where session_id = $session group by all
    union all select source_id, 'statements', count(*) from facts.session_facts where session_id = $session group by all
    union all select source_id, 'records', 0 from facts.sources where session_id = $session
),
counted as (
    select t.source_id, s.store_kind, s.rel_path, store_rank(s.store_kind) as rank,
        sum(n) filter (what = 'records')::bigint as records, sum(n) filter (what = 'dialogue')::bigint as dialogue,
        sum(n) filter (what = 'requests')::bigint as requests, sum(n) filter (what = 'results')::bigint as results,
        sum(n) filter (what = 'spans')::bigint as spans, sum(n) filter (what = 'usage')::bigint as usage,
        sum(n) filter (what = 'statements')::bigint as statements
    from told t
    join facts.sources s using (source_id)
    group by all
)
select store_kind,
    case when coalesce(records, 0) = 0 then 'statements'
        when rank = min(rank) filter (records > 0) over () then 'dialogue and turns'
        when dialogue > 0 then 'said again' else 'evidence' end as serves_as,
    dialogue, requests, results, spans, usage, statements, rel_path as source, source_id
from counted
order by rank, rel_path, source_id;

-- report: explain.calls
-- about: what each source said of a call, with lines and times, and which of it gave the latency. A sub-agent's calls
--   stand in the run log of its parent too
-- params: session text, call text
with calls as (
    select *, regexp_replace(session_id, '/agent-.*$', '') as top
    from mart.tool_calls
    where session_id = $session and ($call is null or call_key = $call)
),
requests as (
    select c.call_key, q.source_id, q.line_no, q.child, q.ts, q.session_id
    from calls c
    join facts.tool_requests q on q.session_id in (c.session_id, c.top)
        and case when starts_with(c.call_key, '~') then q.fact_id = c.request_fact_id else q.call_key = c.call_key end
),
results as (
    select c.call_key, r.source_id, r.line_no, r.child, r.ts, r.session_id,
        concat_ws(' ', r.status_raw, r.denial, case when r.is_error then 'error' end, 'exit ' || r.exit_code) as outcome
    from calls c
    join facts.tool_results r on r.session_id in (c.session_id, c.top)
        and case when starts_with(c.call_key, '~') then r.fact_id = c.result_fact_id else r.call_key = c.call_key end
),
guesses as (
    select c.call_key, q.source_id, q.line_no, q.child, q.ts, q.session_id, r.line_no as line_to, r.ts as ended
    from calls c
    join facts.tool_requests q on q.session_id = c.session_id and q.name_raw = c.name_raw and q.call_id_source = 'synthesised'
    join facts.tool_results r on r.session_id = q.session_id and r.source_id = q.source_id and r.call_key = q.call_key
    join facts.sources s on s.source_id = q.source_id and s.store_kind = 'qoder_audit'
    where contains(c.latency_evidence, 'lines ' || q.line_no || ' and ' || r.line_no || ', ambiguous')
),
evidence as (
    select call_key, source_id, session_id, line_no, child, null as line_to, 'request' as what, ts, null::bigint as us, null as outcome
    from requests
    union all
    select call_key, source_id, session_id, line_no, child, null, 'result', ts, null, nullif(outcome, '') from results
    union all
    select q.call_key, q.source_id, q.session_id, q.line_no, q.child, r.line_no, 'pair', q.ts,
        case when r.ts >= q.ts then epoch_us(r.ts) - epoch_us(q.ts) end, null
    from requests q
    join results r on r.call_key = q.call_key and r.source_id = q.source_id and r.session_id = q.session_id
    union all
    select call_key, source_id, session_id, line_no, child, line_to, 'pair (a guess)', ts, epoch_us(ended) - epoch_us(ts), null
    from guesses
    union all
    select c.call_key, p.source_id, p.session_id, p.line_no, p.child, null, p.span, p.started_at, p.duration_us, p.outcome
    from calls c
    join facts.tool_spans p on p.call_key = c.call_key and p.session_id in (c.session_id, c.top)
)
select c.seq, e.call_key, c.name, e.what, round(e.us / 1000.0, 3) as ms,
    case
        when starts_with(e.what, 'pair') then contains(
            c.latency_evidence || ',', 'lines ' || e.line_no || ' and ' || e.line_to || ','
        ) and (store_rank(s.store_kind) = 6) = starts_with(c.latency_evidence, 'run log')
            and (store_rank(s.store_kind) = 9) = starts_with(c.latency_evidence, 'audit trail')
        when e.what in ('shell', 'execution') then coalesce(
            c.latency_evidence in ('run log, ' || e.what || ' ended on line ' || e.line_no,
                'start and end, ended on line ' || e.line_no), false)
    end as gave_latency,
    s.store_kind, e.line_no, e.child, e.line_to, e.ts, e.outcome, s.rel_path as source, e.source_id,
    c.latency_source, c.latency_quality, round(c.latency_us / 1000.0, 3) as latency_ms, round(c.wait_us / 1000.0, 3) as wait_ms
from evidence e
join calls c on c.call_key = e.call_key
join facts.sources s on s.source_id = e.source_id
where e.session_id = c.session_id or store_rank(s.store_kind) >= 6
order by c.seq, e.call_key, store_rank(s.store_kind), s.rel_path, e.line_no,
    case e.what when 'request' then 0 when 'result' then 1 else 2 end, e.what;

-- report: explain.row
-- about: the place of a dialogue row of a session
-- params: session text, seq integer
select m.seq, null as call_key, m.kind as name, 'dialogue' as what, s.store_kind, f.line_no, f.child, f.src_pointer, m.ts,
    m.is_copy, m.branch, s.rel_path as source, f.source_id, left(f.text, 200) as text
from mart.dialogue m
join facts.dialogue f on f.session_id = m.session_id and f.fact_id = m.fact_id
join facts.sources s on s.source_id = f.source_id
where m.session_id = $session and m.seq = $seq;
