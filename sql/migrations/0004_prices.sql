-- object: mart.prices
-- kind: table
-- grain: one row per model, span of days, part of a day and tier of input tokens
-- about: The price table by which mart.model_calls was costed: USD per million tokens. Rows of a model do not overlap. A price
--   that the data does not state by itself is that of the wider kind (cached input is input), and stands in assumed.
-- columns:
--   price_id: stable name of the row: provider/model, @first day, T start of the part of the day, > tokens of the tier
--   provider: who charges it
--   model: provider/model, as rules name it
--   effective_from: first day (UTC), NULL since ever
--   effective_until: day (UTC) on which it no longer holds, NULL open
--   time_from: start of the part of the day (UTC), NULL all day
--   time_until: end of the part of the day (UTC), NULL midnight
--   input_above: holds for calls of more input tokens than this, NULL from none
--   input_up_to: holds for calls of at most so many input tokens, NULL without end
--   input_usd: a million uncached input tokens
--   output_usd: a million output tokens, reasoning included
--   cache_read_usd: a million input tokens read from cache
--   cache_write_5m_usd: a million input tokens written to the 5-minute cache
--   cache_write_1h_usd: a million input tokens written to the 1-hour cache; twice the input price for Claude models where
--     the data is silent
--   assumed: which cache prices the data does not state, NULL none
create table mart.prices (
    price_id varchar,
    provider varchar,
    model varchar,
    effective_from date,
    effective_until date,
    time_from time,
    time_until time,
    input_above bigint,
    input_up_to bigint,
    input_usd decimal(18,9),
    output_usd decimal(18,9),
    cache_read_usd decimal(18,9),
    cache_write_5m_usd decimal(18,9),
    cache_write_1h_usd decimal(18,9),
    assumed varchar
);

-- object: mart.price_rules
-- kind: table
-- grain: one row per condition
-- about: Which model of the price table a name in a log means. The conditions of one alternative hold together, any
--   alternative is enough, and the lowest rank wins. Names and patterns are in lower case.
-- columns:
--   step: prefix (who is meant by what stands before the first slash), name (whose model a name without one is) or model
--     (which model of a provider a name is)
--   provider: prefix, name: whom the rule finds; model: within whose models it looks
--   rank: order of rules within a step and provider (prefix, name: within the step)
--   alternative: number of the alternative within the rule
--   op: equals, starts_with, ends_with, contains or regex
--   is_not: the condition must not hold
--   pattern: what the name is compared with
--   model: the model found, as mart.prices names it
create table mart.price_rules (
    step varchar,
    provider varchar,
    rank integer,
    alternative integer,
    op varchar,
    is_not boolean,
    pattern varchar,
    model varchar
);

-- object: mart.price_list
-- kind: table
-- grain: one row
-- about: Which price table the store was costed by. A load with another one computes every cost anew.
-- columns:
--   digest: stands for the contents of the table
--   source: package whose data it is made of
--   version: version of that package
--   licence: licence of that data
create table mart.price_list (
    digest varchar,
    source varchar,
    version varchar,
    licence varchar
);
