"""Are the tables of facts the same in Python and in SQL?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from etl.builder import Builder
from etl.schema import SQL_TYPES, TABLES, arrow_schema

if TYPE_CHECKING:
    from pathlib import Path

#: Of sources the store knows more than a source says: which loads read it, and whether its file is still there.
OF_THE_STORE = [("first_load_id", "VARCHAR"), ("last_load_id", "VARCHAR"), ("source_state", "VARCHAR")]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[str, str]]]:
    folder: Path = tmp_path_factory.mktemp("store")
    with Builder(str(folder / "store.duckdb"), str(folder / "spill"), None, afresh=True) as builder:
        columns = builder.connection.execute(
            "select table_name, column_name, data_type from duckdb_columns() "
            "where database_name = 'store' and schema_name = 'facts' order by table_name, column_index"
        ).fetchall()
    found: dict[str, list[tuple[str, str]]] = {}
    for table, column, data_type in columns:
        found.setdefault(table, []).append((column, data_type))
    return found


def test_the_migrations_make_every_table_and_no_other(tables: dict[str, list[tuple[str, str]]]) -> None:
    assert sorted(tables) == sorted(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_names_order_and_types_are_the_same(name: str, tables: dict[str, list[tuple[str, str]]]) -> None:
    expected = [(column.name, SQL_TYPES[column.type]) for column in TABLES[name].columns]
    assert tables[name] == expected + (OF_THE_STORE if name == "sources" else [])


@pytest.mark.parametrize("name", TABLES)
def test_arrow_has_the_same_columns(name: str) -> None:
    assert arrow_schema(name).names == list(TABLES[name].names)


@pytest.mark.parametrize("name", TABLES)
def test_only_text_is_masked(name: str) -> None:
    schema = arrow_schema(name)
    assert [column for column in TABLES[name].masked if schema.field(column).type != pa.string()] == []


def test_every_row_has_one_owner() -> None:
    assert [name for name, table in TABLES.items() if "source_id" not in table.names] == []
