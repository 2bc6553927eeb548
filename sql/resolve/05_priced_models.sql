-- resolve: named_models
-- needs: facts.model_calls, mart.price_rules, touched
-- about: which model of the price table each name in the logs means; each distinct name is looked at once. A provider is the
--   one that the prefix names, else the one whose names look like that; what has a prefix that is no provider
--   (qwen/qwen3-coder) is OpenRouter's way of naming, and anthropic.claude-… is Amazon's. A date without dashes is tried
--   with them where the name as it stands is nobody's.
create or replace temp table named_models as
with names as (
    select distinct model as stated, lower(trim(model)) as name
    from facts.model_calls
    where model is not null and session_id in (select session_id from touched)
),
asked as (
    select distinct 'prefix' as step, split_part(name, '/', 1) as text from names where contains(name, '/')
    union all
    select distinct 'name', name from names
),
owned as (
    select step, text, arg_min(provider, rank) as provider
    from (
        select a.step, a.text, r.provider, r.rank
        from asked a
        join mart.price_rules r on r.step = a.step
        group by a.step, a.text, r.provider, r.rank, r.alternative
        having bool_and(rule_holds(a.text, r.op, r.is_not, r.pattern))
    )
    group by step, text
),
prefixed as (
    select n.name, o.provider
    from names n
    join owned o on o.step = 'prefix' and contains(n.name, '/') and o.text = split_part(n.name, '/', 1)
),
placed as (
    select name, provider, substr(name, strpos(name, '/') + 1) as within, 1 as place from prefixed
    union all
    select n.name, o.provider, n.name, 2
    from names n
    join owned o on o.step = 'name' and o.text = n.name
    anti join prefixed p on p.name = n.name
    union all
    select name, 'openrouter', name, 3 from names anti join prefixed using (name) where contains(name, '/')
    union all
    select name, 'aws', name, 4 from names where regexp_matches(name, '^([a-z-]+\.)?anthropic\.')
),
tried as (
    select name, provider, within, place * 2 as place from placed
    union
    select name, provider,
        regexp_replace(within, '-(20\d{2})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(-|:|$)', '-\1-\2-\3\4'), place * 2 + 1
    from placed
),
found as (
    select t.name, t.place, r.rank, any_value(r.model) as model
    from tried t
    join mart.price_rules r on r.step = 'model' and r.provider = t.provider
    group by t.name, t.place, t.within, r.rank, r.alternative
    having bool_and(rule_holds(t.within, r.op, r.is_not, r.pattern))
)
select n.stated, f.model
from names n
join (select distinct on (name) name, model from found order by name, place, rank) f using (name);

-- resolve: priced_models
-- needs: named_models, mart.prices
-- about: the rows of the price table for each name in the logs, with instants in place of days
create or replace temp table priced_models as
select n.stated, p.* exclude (effective_from, effective_until),
    p.effective_from::timestamp at time zone 'UTC' as starts, p.effective_until::timestamp at time zone 'UTC' as ends
from named_models n
join mart.prices p using (model);
