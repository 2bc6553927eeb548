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
-- about: did a person probably have to act before the call could end? Questions to the person always wait for one; else
--   where only a pair of records times the call, ten minutes or more are suspected (an approval prompt or a break; a
--   call that the provider times itself is not)
create macro is_human_gate(name, status, source, pair_us, provider_us) as case
    when source = 'none' then null
    when name in ('AskUserQuestion', 'ExitPlanMode') or status = 'denied' then true
    when source in ('pair', 'batch') then pair_us >= 600000000 and name not in ('Agent', 'Task', 'TaskWait')
    when source = 'provider_duration' then coalesce(pair_us - provider_us >= 600000000, false)
    else false
end;

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
