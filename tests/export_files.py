"""Which columns and types do the files of a Parquet export have?

    python -m tests.export_files > docs/export-schema.json

writes the promise anew, after a view has changed on purpose.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from etl.export.parquet import export_parquet
from etl.export.views import DEFAULT, Selection
from tests.loading import FIXTURES, join_trees, load_home


def every_case(home: Path) -> Path:
    """One home with every case of every provider that has sessions, and the Qoder demo."""
    shutil.copytree(FIXTURES / "demo", home, dirs_exist_ok=True)
    for provider in ("qoder", "muse", "codex", "claude_code"):
        names = sorted(case.name for case in (FIXTURES / provider).iterdir() if case.name not in ("example", "forty"))
        join_trees(home, provider, names)
    return home


def schema_of(folder: Path) -> dict[str, Any]:
    """By view the folders and columns of its files; asserts that all its files agree."""
    found = {}
    for view in DEFAULT:
        seen = []
        for file in sorted((folder / view).rglob("*.parquet")):
            places = [part.partition("=")[0] for part in file.relative_to(folder / view).parts[:-1]]
            columns = {field.name: str(field.type) for field in pq.read_schema(file)}
            seen.append({"folders": dict.fromkeys(places, "string"), "columns": columns})
        assert all(said == seen[0] for said in seen), view
        found[view] = seen[0]
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        load_home(FIXTURES / "demo", Path(place) / "s.duckdb")
        export_parquet(f"{place}/s.duckdb", f"{place}/out", Selection())
        sys.stdout.write(json.dumps(schema_of(Path(place) / "out"), indent=2) + "\n")
