-- macro: call_status
-- about: the status of a tool call from what its result says: denied, cancelled, interrupted, background, error or ok;
--   without a result interrupted where the turn was interrupted later, else missing_result
create macro call_status(has_result, is_error, exit_code, denial, status_raw, interrupted_later) as case
    when not has_result then case when interrupted_later then 'interrupted' else 'missing_result' end
    when denial in ('cancelled', 'canceled') then 'cancelled'
    when denial = 'interrupted' then 'interrupted'
    when denial is not null then 'denied'
    when status_raw = 'interrupted' then 'interrupted'
    when status_raw in ('backgrounded', 'background', 'async_launched') then 'background'
    when is_error or coalesce(exit_code, 0) <> 0 then 'error'
    else 'ok'
end;

-- macro: is_human_gate
-- about: did a person probably have to act before the call could end? Questions to the person always wait for one, and so
--   does what was refused by anything but a rule; else where only a pair of records times the call, after_us (ten minutes unless the user's
--   settings say otherwise) or more are suspected: an approval prompt, or a break. A call that the provider times itself is
--   not, unless its records stand that much further apart; nor is a sub-agent, which works for as long as it takes
create macro is_human_gate(name, status, denial, source, pair_us, provider_us, after_us) as case
    when source = 'none' then null
    when name in ('AskUserQuestion', 'ExitPlanMode') or (status = 'denied' and denial is distinct from 'rule') then true
    when source in ('pair', 'batch') then pair_us >= after_us and name not in ('Agent', 'Task', 'TaskWait')
    when source = 'provider_duration' then coalesce(pair_us - provider_us >= after_us, false)
    else false
end;

-- macro: long_because
-- about: why a latency is above one hour; NULL for one that is not. human_wait: a person is suspected or known to have been
--   waited for; sub_agent: it worked so long; timed: a clock of the agent's own says so; bound: it ended no later, when the
--   results of its batch were written; pair: only its records say so
create macro long_because(name, latency_us, latency_source, wait_us, human_gate) as case
    when coalesce(latency_us, 0) <= 3600000000 then null
    when human_gate or coalesce(wait_us, 0) >= 3600000000 then 'human_wait'
    when name in ('Agent', 'Task', 'TaskWait') then 'sub_agent'
    when latency_source in ('execution', 'provider_duration', 'start_end') then 'timed'
    when latency_source = 'batch' then 'bound'
    else 'pair'
end;

-- macro: remote_key
-- about: host and path of a git remote, whatever way it is written: https, ssh or scp form, with credentials, a port or .git
create macro remote_key(remote) as regexp_replace(
    lower(trim(remote)), '^(?:[a-z+]+://)?(?:[^@/]*@)?([^/:]+)(?::\d+)?[:/]+(.*?)(?:\.git)?/*$', '\1/\2'
);

-- macro: last_part
-- about: the last part of a path or remote, without .git; NULL for one that has none
create macro last_part(place) as nullif(regexp_extract(place, '([^/\\:]+?)(?:\.git)?[/\\]*$', 1), '');

-- macro: repository_of
-- about: the folder itself, or for a worktree where the agent makes its own (<repository>/.claude/worktrees/<name>) the
--   repository
create macro repository_of(folder) as regexp_replace(folder, '[/\\]\.claude[/\\]worktrees[/\\][^/\\]+.*$', '');

-- macro: is_within
-- about: is a folder another one or somewhere below it?
create macro is_within(folder, other) as folder = other or starts_with(folder, other || '/') or starts_with(folder, other || '\');

-- macro: rule_holds
-- about: does a condition of the price table's rules hold for a name in lower case?
create macro rule_holds(name, op, is_not, pattern) as (case op
    when 'equals' then name = pattern
    when 'starts_with' then starts_with(name, pattern)
    when 'ends_with' then ends_with(name, pattern)
    when 'contains' then contains(name, pattern)
    when 'regex' then regexp_matches(name, pattern)
    else false
end) <> is_not;

-- macro: priced_tokens
-- about: so many tokens at a price per million, exactly (a division would give a floating number); no tokens cost nothing,
--   whatever their price
create macro priced_tokens(tokens, usd) as case
    when tokens = 0 then 0::decimal(38, 15)
    else (tokens::decimal(19, 0) * (usd * 0.000001::decimal(7, 6))::decimal(18, 15))::decimal(38, 15)
end;

-- macro: listed_cost
-- about: what a call costs in USD at prices per million tokens, exactly; NULL where a count or a price that is needed is
--   missing, a count is negative, or the sum is beyond its column. Input includes cached and written tokens; a split that is
--   not reported is none. Where the split exceeds the input, nothing is left uncached.
create macro listed_cost(
    input_tokens, output_tokens, cache_read, cache_5m, cache_1h, input_usd, output_usd, read_usd, write_5m_usd, write_1h_usd
) as case
    when input_tokens is null or output_tokens is null then null
    when least(input_tokens, output_tokens, coalesce(cache_read, 0), coalesce(cache_5m, 0), coalesce(cache_1h, 0)) < 0 then null
    else try_cast(
        priced_tokens(greatest(
            input_tokens::hugeint - coalesce(cache_read, 0) - coalesce(cache_5m, 0) - coalesce(cache_1h, 0), 0::hugeint
        ), input_usd)
        + priced_tokens(output_tokens, output_usd) + priced_tokens(coalesce(cache_read, 0), read_usd)
        + priced_tokens(coalesce(cache_5m, 0), write_5m_usd) + priced_tokens(coalesce(cache_1h, 0), write_1h_usd)
        as decimal(18, 9)
    )
end;
