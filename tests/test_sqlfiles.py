"""Are headers of SQL files read as written, and do wrong ones say where they are wrong?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import duckdb
import pytest

from etl.errors import SessionmartError
from etl.sqlfiles import comments, load_sql, shipped, tables_markdown

if TYPE_CHECKING:
    from pathlib import Path

TABLES = """\
-- What the sources said. This line is no header.

-- object: facts.notes
-- kind: table
-- grain: one row per note
-- about: what a source noted; kept as
--   it's written
-- columns:
--   source_id: the owner | keeper
--   text: the note, which
--     goes on
create table facts.notes (
    source_id varchar, -- ends in a comment;
    text varchar default ';'
);

-- object: facts.note_texts
-- kind: view
-- grain: one row per note
-- needs: facts.notes, facts.other
-- about: the texts alone
-- columns:
--   text: the note's text
create view facts.note_texts as select text from facts.notes;
"""
MACROS = """\
-- macro: twice
-- about: double a number
-- params: n
create or replace macro twice(n) as n * 2;

-- object: latest
-- kind: macro
-- about: the first notes.
-- columns:
--   text: the note
create macro latest(n) as table select text from facts.notes limit n;
"""
CHECK = """\
-- check: no_empty_note
-- severity: finding
-- needs: facts.notes
-- about: every note has a text
select source_id from facts.notes where text = '';
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in {
        "migrations/001.sql": TABLES,
        "macros/all.sql": MACROS,
        "checks/notes.sql": CHECK,
        "resolve/20.sql": "-- resolve: second\n-- about: two steps\ncreate temp table a as select 1;\ndrop table a;\n",
        "resolve/10.sql": "-- object: resolve first\n-- about: one step\nselect 1;\n",
        "resolve/readme.txt": "no SQL",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_a_header_is_read_as_written(root: Path) -> None:
    table, view = load_sql("migrations", root)

    assert (table.name, table.kind, table.schema, table.grain) == ("facts.notes", "table", "facts", "one row per note")
    assert table.about == "what a source noted; kept as it's written"
    assert table.columns == (("source_id", "the owner | keeper"), ("text", "the note, which goes on"))
    assert table.sql.startswith("create table facts.notes (")
    assert table.sql.endswith("';'\n);")
    assert table.path == "migrations/001.sql"
    assert (table.needs, dict(table.options)) == ((), {})
    assert view.needs == ("facts.notes", "facts.other")


def test_files_are_read_in_the_order_of_their_names(root: Path) -> None:
    assert [(obj.kind, obj.name) for obj in load_sql("resolve", root)] == [("resolve", "first"), ("resolve", "second")]


def test_keys_without_a_field_are_options(root: Path) -> None:
    (check,) = load_sql("checks", root)
    twice, latest = load_sql("macros", root)

    assert (check.kind, check.name, dict(check.options)) == ("check", "no_empty_note", {"severity": "finding"})
    assert (twice.schema, dict(twice.options)) == ("main", {"params": "n"})
    assert dict(latest.options) == {}


def test_the_engine_takes_every_comment(root: Path) -> None:
    objects = [*load_sql("migrations", root), *load_sql("macros", root), *load_sql("checks", root)]
    with duckdb.connect() as db:
        db.execute("create schema facts")
        for obj in objects:
            db.execute(obj.sql)
        for statement in comments(objects):
            db.execute(statement)

        tables = db.execute("select table_name, comment from duckdb_tables() where schema_name = 'facts'").fetchall()
        views = db.execute("select view_name, comment from duckdb_views() where schema_name = 'facts'").fetchall()
        columns = db.execute(
            "select table_name, column_name, comment from duckdb_columns() where schema_name = 'facts' order by all"
        ).fetchall()
        macros = db.execute(
            "select function_name, comment from duckdb_functions() where not internal and comment <> '' order by all"
        ).fetchall()

    assert tables == [("notes", "what a source noted; kept as it's written. Grain: one row per note.")]
    assert views == [("note_texts", "the texts alone. Grain: one row per note.")]
    assert columns == [
        ("note_texts", "text", "the note's text"),
        ("notes", "source_id", "the owner | keeper"),
        ("notes", "text", "the note, which goes on"),
    ]
    assert macros == [("latest", "the first notes. Columns: text: the note."), ("twice", "double a number.")]


def test_a_column_that_does_not_exist_is_noticed(root: Path) -> None:
    file = root / "migrations/001.sql"
    file.write_text(TABLES.replace("--   text: the note, which", "--   texd: the note, which"), encoding="utf-8")
    objects = load_sql("migrations", root)
    with duckdb.connect() as db:
        db.execute("create schema facts")
        for obj in objects:
            db.execute(obj.sql)
        with pytest.raises(duckdb.Error, match="texd"):
            db.execute("".join(comments(objects)))


def test_a_migration_describes_the_columns_it_adds(root: Path) -> None:
    (root / "migrations/002.sql").write_text(
        "-- object: facts.notes\n-- kind: migration\n-- about: notes have a language\n-- columns:\n"
        "--   lang: two letters\nalter table facts.notes add column lang varchar;\n",
        encoding="utf-8",
    )
    objects = load_sql("migrations", root)

    assert comments(objects)[-1] == """comment on column "facts"."notes"."lang" is 'two letters';"""
    assert "| `lang` |  | two letters |" in tables_markdown(objects, {})


def test_the_page_lists_schemas_objects_and_live_columns(root: Path) -> None:
    objects = [*load_sql("migrations", root), *load_sql("macros", root), *load_sql("checks", root)]
    live = {"facts.notes": [("text", "VARCHAR"), ("source_id", "VARCHAR"), ("extra", "BIGINT")]}

    page = tables_markdown(objects, live)

    assert re.findall(r"^##+ .*", page, re.MULTILINE) == [
        "## facts",
        "### facts.note_texts",
        "### facts.notes",
        "## main",
        "### latest",
        "### twice",
        "## Checks",
    ]
    assert (
        """### facts.notes

table, one row per note

what a source noted; kept as it's written

| column | type | meaning |
| --- | --- | --- |
| `text` | VARCHAR | the note, which goes on |
| `source_id` | VARCHAR | the owner \\| keeper |
| `extra` | BIGINT |  |
"""
        in page
    )
    assert page.endswith("| `no_empty_note` | finding | every note has a text |\n")


HEAD = "-- object: a\n-- kind: view\n-- grain: g\n-- about: b\n"
VIEW = "create view a as select 1 as x;\n"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("-- object: a\n-- kind: vue\n-- about: b\n" + VIEW, 1, "unknown kind 'vue'"),
        ("\n-- object: a\n-- about: b\n" + VIEW, 2, "a has no kind"),
        ("-- check: a\n-- kind: view\n-- about: b\nselect 1;\n", 1, "a is said to be a check and a view"),
        ("-- object: a b\n-- kind: view\n-- about: b\n" + VIEW, 1, "unknown kind 'a'"),
        ("-- view: a;b\n-- about: b\n" + VIEW, 1, "'a;b' is no name"),
        ("-- view: a\n-- grain: g\n" + VIEW, 1, "view a has no about"),
        ("-- view: a\n-- about: b\n" + VIEW, 1, "view a has no grain"),
        (HEAD + "-- about: c\n" + VIEW, 5, "key about is given twice"),
        (HEAD + "-- columns:\n--   x: one\n--   y: two\n--   x: three\n" + VIEW, 8, "column x is given twice"),
        (HEAD + "-- columns:\n--   x:\n" + VIEW, 6, "neither"),
        (HEAD + "-- columns: x\n" + VIEW, 1, "a line of its own"),
        (HEAD + "-- no key\n" + VIEW, 5, "neither"),
        (HEAD + VIEW + HEAD + VIEW, 6, "view a is described already, at sql/views/v.sql:1"),
        ("create view b as select 1;\n" + HEAD + VIEW, 1, "without a header"),
        (HEAD + VIEW + "create view b as select 1;\n", 1, "more than one statement"),
        (HEAD, 1, "no statement follows"),
        (HEAD + "create view a as select 1 -- end;\n", 1, "does not end with a semicolon"),
        (HEAD + "create view b as select 1;\n", 1, "does not create it"),
        (HEAD + "create table a (x int);\n", 1, "does not create it"),
        ("-- check: a\n-- about: b\nselect 1;\n", 1, "severity"),
        ("-- check: a\n-- severity: grave\n-- about: b\nselect 1;\n", 1, "severity of broken or finding"),
        (HEAD + "-- severity: broken\n" + VIEW, 1, "severity"),
    ],
)
def test_a_wrong_header_names_file_and_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    folder = tmp_path / "views"
    folder.mkdir()
    (folder / "v.sql").write_text(text, encoding="utf-8")

    with pytest.raises(SessionmartError, match=re.escape(message)) as raised:
        load_sql("views", tmp_path)

    assert str(raised.value).startswith(f"sql/views/v.sql:{line}: ")


def test_the_same_object_in_two_files_is_refused(root: Path) -> None:
    (root / "checks/other.sql").write_text(CHECK, encoding="utf-8")

    with pytest.raises(SessionmartError, match=r"sql/checks/other\.sql:1: .* at sql/checks/notes\.sql:1"):
        load_sql("checks", root)


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SessionmartError, match="no SQL folder"):
        load_sql("views", tmp_path)
    with pytest.raises(SessionmartError, match="'nowhere'"):
        shipped("nowhere", "nowhere")
