-- object: mart.settings
-- kind: table
-- grain: one row per setting
-- about: The user's settings by which mart was concluded (config.toml). A load with others concludes every session anew.
-- columns:
--   name: human_wait_us, or digest, which stands for all settings
--   value: its value as text
create table mart.settings (
    name varchar,
    value varchar
);

-- object: mart.project_names
-- kind: table
-- grain: one row per folder or git remote that the user named
-- about: Which project sessions belong to, by the user's own table; it goes before what the logs say.
-- columns:
--   kind: folder (that one and all below it) or remote
--   place: the folder, or the remote in any way of writing it
--   project: the project's name
create table mart.project_names (
    kind varchar,
    place varchar,
    project varchar
);
