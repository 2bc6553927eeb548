"""How do tests load a tree of session files into a store, and read rows of it?"""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from etl import pipeline, store
from etl.builder import Builder
from etl.discover import discover
from etl.extract import FLUSH_BYTES, extract
from etl.providers import get
from etl.providers.base import Environment
from etl.request import Report, Request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from etl.discover import Found

HOST = "testhost"
KEY = b"FAKE-fingerprint-key-for-tests-00"
NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
FIXTURES = Path(__file__).parent.parent / "fixtures"


def load_home(home: Path, db: Path, **roots: Path | Sequence[Path]) -> Report:
    """Loads a home folder into a store at ``db``; ``roots`` (provider=path or paths) replace default roots."""
    named = {
        name: (str(paths),) if isinstance(paths, Path) else tuple(str(path) for path in paths)
        for name, paths in roots.items()
    }
    request = Request(str(db), HOST, Environment(str(home)), KEY, "0.0.0", roots=named)
    return pipeline.load(request, lambda: NOW)


def stated_keys(cases: Path, names: Sequence[str]) -> list[tuple[str, str]]:
    """What the ``expected.json`` of each case states, as (case, key); ``checks`` holds for every case."""
    return [
        (name, key)
        for name in names
        for key in {**json.loads((cases / name / "expected.json").read_text()), "checks": {}}
    ]


def rows(db: Path, sql: str) -> list[tuple[Any, ...]]:
    """The rows of one query on a store."""
    with store.connect(str(db)) as connection:
        return connection.execute(sql).fetchall()


def table(db: Path, sql: str) -> list[dict[str, Any]]:
    """The rows of one query on a store, by column name."""
    with store.connect(str(db)) as connection:
        cursor = connection.execute(sql)
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def find(home: Path, provider: str = "qoder") -> list[Found]:
    """The sources below a home, as the load would find them."""
    return discover(get(provider), Environment(str(home)), HOST).found


def build(batches: Sequence[Sequence[Found]], folder: Path, flush_bytes: int = FLUSH_BYTES) -> Builder:
    """A resolved, unpublished store of batches of sources, each extracted by a task of its own, in this process.

    No check is run and nothing is quarantined: use it where faults are provoked. ``with build(…) as builder``.
    """
    parts_folder = folder / "parts"
    parts_folder.mkdir(parents=True)
    parts = [
        (part.table, part.path)
        for n, batch in enumerate(batches)
        for part in extract(batch, str(parts_folder), f"task{n}", KEY, flush_bytes).parts
    ]
    return conclude(parts, folder)


def conclude(parts: Sequence[tuple[str, str]], folder: Path) -> Builder:
    """A resolved, unpublished store of Parquet parts (table, file), as ``build`` gives it."""
    files: dict[str, list[str]] = {}
    for table_name, path in parts:
        files.setdefault(table_name, []).append(path)
    builder = Builder(str(folder / "built.duckdb"), str(folder / "spill"), None, afresh=True)
    builder.add(files, "load-1")
    builder.resolve()
    return builder


def join_trees(folder: Path, provider: str, cases: Sequence[str]) -> Path:
    """One home made of the trees of several cases of ``fixtures/<provider>``; no two of them may hold the same path."""
    for case in cases:
        tree = FIXTURES / provider / case / "tree"
        for path in (path for path in tree.rglob("*") if path.is_file()):
            target = folder / path.relative_to(tree)
            assert not target.exists(), f"{case}: {path.relative_to(tree)} stands in another case"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    return folder
