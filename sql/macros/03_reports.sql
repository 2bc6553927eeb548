-- macro: is_asked
-- about: is a row of a provider, a project and an instant among those that a report was asked for? What has no instant is in
--   no span of time; NULL asks for all
create macro is_asked(provider, project, ts, only_provider, only_project, since, until) as
    (only_provider is null or coalesce(provider = only_provider, false))
    and (only_project is null or coalesce(project = only_project, false))
    and (since is null or coalesce(ts >= since, false))
    and (until is null or coalesce(ts < until, false));

-- macro: is_measured
-- about: does a latency measure something, so that percentiles take it? Bounds measure nothing, and what was denied, cancelled
--   or left running behind did not run to its end
create macro is_measured(status, latency_quality) as status in ('ok', 'error') and latency_quality in ('exact', 'good');

-- macro: short_id
-- about: the beginning of a session's native id, enough to find it by (`sessionmart show`)
create macro short_id(session_id) as left(regexp_replace(session_id, '^[^:]*:', ''), 13);

-- macro: local_time
-- about: an instant to the minute on the clock of a time zone
create macro local_time(ts, tz) as strftime(timezone(tz, ts), '%Y-%m-%d %H:%M');

-- macro: how_many
-- about: a number with its noun: zero findings, 1 finding, 12 findings
create macro how_many(n, noun) as case when n = 0 then 'zero' else n::bigint::varchar end || ' ' || noun
    || case when n = 1 then '' else 's' end;
