"""How long does a load of a generated tree take, and how does that compare with decoding the same lines?

    python -m tests.bench.run --mb 100 [--rounds 3] [--jobs N] [--style qoder] [--json]

The tree is made once and kept in ``--cache``. Each round measures, one after the other, so that a busy minute hits all
three alike: bare ``orjson.loads`` over every line in one process, a load into a fresh store, and a second load of the
unchanged tree into the same store. Ratios are to the bare decoding of the same round. Nothing is asserted about time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.bench import watched
from tests.bench.machine import facts
from tests.bench.table import summary, table

if TYPE_CHECKING:
    from collections.abc import Sequence

_ROOT: Final = Path(__file__).parent.parent.parent
#: The load ran and published: without (0) or with findings (4).
_PUBLISHED: Final = (0, 4)


class Failed(Exception):
    """A command of the benchmark did not do its work."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; 0, or 1 when a command failed."""
    chosen = _parser().parse_args(arguments)
    try:
        found = measure(chosen)
    except Failed as failure:
        sys.stderr.write(f"bench: {failure}\n")
        return 1
    sys.stdout.write(json.dumps(found, indent=2) + "\n" if chosen.json else table(found))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench", description="Measures loads of a generated tree.")
    parser.add_argument("--mb", type=float, default=100, help="size of the tree in 10^6 bytes (default 100)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", type=int, help="workers of the load (default: the product's own)")
    parser.add_argument("--style", choices=("claude", "muse", "qoder"), default="qoder")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--cache", type=Path, default=_ROOT / ".bench", help="where trees are kept (default .bench)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def measure(chosen: argparse.Namespace) -> dict[str, Any]:
    """Every measurement of the rounds, their summary, the tree and the machine. Raises Failed."""
    tree = _tree(chosen.cache, chosen.mb, chosen.style, chosen.seed)
    command = _load_command(chosen.jobs)
    rounds = [_round(n, chosen.rounds, tree, command, chosen.cache) for n in range(1, chosen.rounds + 1)]
    files = sum(path.is_file() for path in tree.rglob("*"))
    about = {"style": chosen.style, "seed": chosen.seed, "files": files}
    about |= {name: rounds[0]["bare"][name] for name in ("bytes", "lines")} if rounds else {}
    return {
        "machine": facts(),
        "tree": about,
        "command": " ".join(["sessionmart", *command[3:]]),
        "rounds": rounds,
        "summary": summary(rounds),
    }


def _tree(cache: Path, mb: float, style: str, seed: int) -> Path:
    """The generated tree, made where it is missing or was made by another generator; the outdated one goes."""
    name = f"{style}-{mb:g}mb-seed{seed}"
    tree = cache / f"{name}-{_generator_digest()}"
    if tree.is_dir():
        return tree
    cache.mkdir(parents=True, exist_ok=True)
    for outdated in cache.glob(f"{name}-*"):
        shutil.rmtree(outdated)
    with tempfile.TemporaryDirectory(dir=cache, prefix="making-") as folder:
        making = Path(folder) / "tree"
        size = ["--mb", str(mb), "--style", style, "--seed", str(seed)]
        # in a process of its own: this one stays small (see tests/bench/watched.py)
        _python(["-m", "tests.bench.gen_corpus", str(making), *size])
        making.rename(tree)
    return tree


def _generator_digest() -> str:
    sources = ("calls", "claude", "draw", "gen_corpus", "muse", "qoder")
    here = Path(__file__).parent
    return hashlib.sha256(b"".join((here / f"{name}.py").read_bytes() for name in sources)).hexdigest()[:8]


def _load_command(jobs: int | None) -> list[str]:
    command = [sys.executable, "-m", "etl", "load"]
    if jobs is None:
        return command
    if "--jobs" not in _python(["-m", "etl", "load", "--help"]):
        raise Failed("this version of `sessionmart load` has no --jobs")
    return [*command, "--jobs", str(jobs)]


def _python(arguments: Sequence[str]) -> str:
    command = [sys.executable, *arguments]
    ran = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise Failed(f"{' '.join(command[1:])}: exit code {ran.returncode}\n{ran.stderr}")
    return ran.stdout


def _round(number: int, of: int, tree: Path, command: Sequence[str], cache: Path) -> dict[str, Any]:
    """Bare decoding, a load into a fresh store, a load of the same again; all that they leave is removed."""
    with tempfile.TemporaryDirectory(dir=cache, prefix="round-") as folder:
        place = Path(folder)
        bare = json.loads(_python(["-m", "tests.bench.bare", str(tree)]))
        fresh = _load(command, tree, place)
        unchanged = _load(command, tree, place)
    for load in (fresh, unchanged):
        load["ratio"] = load["seconds"] / bare["seconds"]
        load["cpu_ratio"] = load["cpu_seconds"] / bare["seconds"]
    seconds = ", ".join(f"{name} {part['seconds']:.2f} s" for name, part in
                        (("bare", bare), ("load", fresh), ("unchanged", unchanged)))  # fmt: skip
    sys.stderr.write(f"round {number} of {of}: {seconds}\n")
    return {"bare": bare, "load": fresh, "unchanged": unchanged}


def _load(command: Sequence[str], tree: Path, place: Path) -> dict[str, Any]:
    """One run of ``sessionmart load``. Its store, state and keys are in ``place``, never in the user's folders."""
    store = place / "store.duckdb"
    before = store.stat().st_ino if store.exists() else None
    where = ["--home", str(tree), "--db", str(store), "--format", "json", "--quiet"]
    folders = {f"XDG_{name}_HOME": str(place / name.lower()) for name in ("DATA", "STATE", "CONFIG", "CACHE")}
    cost = watched.run([*command, *where], _ROOT, {**os.environ, "HOME": str(place), **folders})
    if cost.code not in _PUBLISHED:
        raise Failed(f"load: exit code {cost.code}\n{cost.stderr}")
    report = _report(cost.stdout)
    return {
        "seconds": cost.seconds,
        "cpu_seconds": cost.cpu_seconds,
        "main_rss": cost.main_rss,
        "workers_rss": cost.workers_rss,
        "tree_rss": cost.tree_rss,
        "processes": cost.processes,
        "bytes_read": report.get("bytes_read"),
        "store_bytes": store.stat().st_size,
        "same_store": before == store.stat().st_ino,
        "stages": report.get("seconds"),
        "reported_rss": report.get("peak_rss"),
    }


def _report(stdout: str) -> dict[str, Any]:
    try:
        report = json.loads(stdout)
    except ValueError as error:
        raise Failed(f"load --format json printed no JSON: {stdout[:200]!r}") from error
    if not isinstance(report, dict):
        raise Failed("load --format json printed no object")
    return report


if __name__ == "__main__":
    sys.exit(main())
