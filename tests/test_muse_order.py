"""Does it matter in which order lines and files of Muse come, or in how many loads?"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

import pytest

from etl.store import connect
from tests.loading import FIXTURES, load_home

if TYPE_CHECKING:
    from pathlib import Path

CASES: Final = FIXTURES / "muse"
#: Cases in which what one line or file says changes what another one means.
GROWN: Final = (
    "shuffled",
    "nameless_results",
    "bound_late",
    "shadow_only",
    "late_words",
    "unreadable",
    "no_record",
    "two_tellings",
    "intents",
)
#: Columns that know the load, and so stand outside every equality.
OUTSIDE: Final = {"first_load_id", "last_load_id", "source_state", "fingerprint"}


def _content(db: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of facts and mart that an equality holds for, by table."""
    connection = connect(str(db))
    named = connection.execute(
        "select c.schema_name || '.' || c.table_name, list(column_name order by column_index) "
        "from duckdb_columns() c join duckdb_tables() t using (schema_name, table_name) "
        "where schema_name in ('facts', 'mart') and table_name not in ('loads', 'store') group by all"
    ).fetchall()
    found = {
        table: connection.execute(
            f"select {', '.join(name for name in names if name not in OUTSIDE)} from {table} order by all"  # noqa: S608
        ).fetchall()
        for table, names in named
    }
    connection.close()
    return found


@pytest.mark.parametrize("case", GROWN)
def test_logs_that_grow_in_any_order_give_the_store_of_a_full_load(case: str, tmp_path: Path) -> None:
    """Three loads: each file is absent, cut at any byte, and whole."""
    tree = CASES / case / "tree"
    chance = random.Random(case)
    home, step, full = tmp_path / "home", tmp_path / "step.duckdb", tmp_path / "full.duckdb"
    files = sorted(path for path in tree.rglob("*") if path.is_file())
    for load in range(3):
        for path in files:
            body, target = path.read_bytes(), home / path.relative_to(tree)
            cut = chance.choice([None, chance.randrange(len(body) + 1)]) if load < 2 else len(body)
            if cut is not None:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(body[:cut])
        report = load_home(home, step)
        assert (report.quarantined, report.sources_failed) == ({}, 0)
    load_home(home, full)
    stepped, whole = _content(step), _content(full)
    assert whole["facts.records"]
    for table, rows in whole.items():
        assert stepped[table] == rows, table
