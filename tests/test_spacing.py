"""Do session files whose JSON is written with spaces give the store of the same files without?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from etl.store import connect
from tests.loading import FIXTURES, join_trees, load_home

if TYPE_CHECKING:
    from pathlib import Path

#: What tells of bytes: their places, their number, and digests and heads of them.
BYTES: Final = frozenset({"byte_offset", "length", "size", "record_digest", "head_digest", "digest", "head"})
#: Digests of texts and values: the same, however the line was written.
OF_VALUES: Final = frozenset(
    {"dialogue", "tool_requests", "tool_results", "price_list", "boundary_events", "sdk_messages"}
)
OUTSIDE: Final = frozenset({"first_load_id", "last_load_id"})
PROVIDERS: Final = ("claude_code", "codex", "muse", "qoder", "qoder_bridge")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_spaced_json_gives_the_same_tables(provider: str, tmp_path: Path) -> None:
    cases = FIXTURES / provider
    names = sorted(case.name for case in cases.iterdir() if (case / "tree").is_dir() and case.name != "example")
    stores = []
    for form, separators in (("compact", (",", ":")), ("spaced", (", ", ": "))):
        home = tmp_path / form / "home"
        for name in names if provider == "qoder_bridge" else ():
            join_trees(home / name, provider, [name])
        if provider != "qoder_bridge":
            join_trees(home, provider, names)
        assert sum(rewritten(path, separators) for path in home.rglob("*.json*") if path.is_file()) > 20
        roots = {"qoder_bridge": home} if provider == "qoder_bridge" else {}
        load_home(home, tmp_path / form / "s.duckdb", **roots)
        stores.append(content(tmp_path / form / "s.duckdb"))
    compact, spaced = stores
    assert compact.keys() == spaced.keys()
    for table in compact:
        assert compact[table] == spaced[table], table


def rewritten(path: Path, separators: tuple[str, str]) -> int:
    """Writes a file's lines of JSON in one way; what is no JSON, or says a name twice, stays. How many were written."""
    written = 0
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines):
        try:
            value = json.loads(line, object_pairs_hook=once)
        except ValueError:
            continue
        lines[number] = json.dumps(value, separators=separators, ensure_ascii=False).encode("utf-8", "surrogatepass")
        written += 1
    path.write_bytes(b"\n".join(lines))
    return written


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found


def content(db: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of facts and mart without what tells of bytes, sorted, by table."""
    found = {}
    with connect(str(db)) as connection:
        tables = connection.execute(
            "select schema_name, table_name from duckdb_tables() where schema_name in ('facts', 'mart') "
            "and table_name not in ('loads', 'store')"
        ).fetchall()
        for schema, table in tables:
            left = OUTSIDE if table in OF_VALUES else OUTSIDE | BYTES
            columns = [row[0] for row in connection.execute(f"describe {schema}.{table}").fetchall()]
            kept = ", ".join(column for column in columns if column not in left)
            told = connection.execute(f"select {kept} from {schema}.{table} order by all")  # noqa: S608
            found[f"{schema}.{table}"] = told.fetchall()
    return found
