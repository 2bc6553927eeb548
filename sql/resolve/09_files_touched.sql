-- resolve: mart.files_touched
-- needs: rekeyed, facts.files_touched, mart.tool_calls, mart.sessions
-- about: paths of calls, and where they lie below the session's working folder
delete from mart.files_touched where session_id in (select session_id from touched);

insert into mart.files_touched
select distinct f.session_id, c.call_key, f.path, f.op,
    case
        when starts_with(f.path, s.cwd || '/') then substr(f.path, length(s.cwd) + 2)
        when not regexp_matches(f.path, '^(/|[A-Za-z]:|\\)') then f.path
    end,
    c.is_copy
from facts.files_touched f
left join rekeyed k on k.session_id = f.session_id and k.source_id = f.source_id and k.call_key = f.call_key
join mart.tool_calls c on c.session_id = f.session_id and c.call_key = coalesce(k.new_key, f.call_key)
join mart.sessions s on s.session_id = f.session_id
where f.session_id in (select session_id from touched)
order by all;
