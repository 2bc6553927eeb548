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
