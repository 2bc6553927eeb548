-- object: mart.store
-- kind: table
-- grain: one row
-- about: what this file is: which store, of which schema version, made by which version of sessionmart, and how much of it is
--   left over from replaced rows
-- columns:
--   store_id: random id of the store, kept for its whole life
--   schema_version: number of migrations it has seen
--   sessionmart_version: version that wrote it last
--   last_load_id: the load that published it
--   dead_rows: rows deleted since the file was last written afresh
create table mart.store (
    store_id varchar,
    schema_version integer,
    sessionmart_version varchar,
    last_load_id varchar,
    dead_rows bigint
);
