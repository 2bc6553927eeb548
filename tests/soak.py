"""Does a store stay whole over hundreds of killed loads and a year of nights?

    python -m tests.soak [--kills 200] [--nights 365] [--mb 110] [--seed 1]

Kills: loads of a changing tree are killed at random moments (KILL, TERM or INT); after each the store must be the last
good one byte for byte or a whole new one, workers must be gone, and in the end it must equal a full load.
Nights: each night some transcripts grow, some come and some go. The store's size is held against that of a fresh one,
every 30 nights its rows against those of a full load. Figures go to stdout; a broken promise ends
it with exit 1. (Below some 90 MB of transcripts the product writes every store afresh.)
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson

from etl import pipeline
from etl.providers.base import Environment
from etl.request import Report, Request
from etl.store import connect, run_checks
from tests.bench.draw import Draw, Mix
from tests.bench.qoder import sessions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.bench.draw import File

_ROOT: Final = Path(__file__).parent.parent
_KEY: Final = b"FAKE-fingerprint-key-of-the-soak0"
#: A store may be so much larger than a fresh one of the same sources, once it is above the least size: blocks of a
#: small file are mostly empty.
_SIZE_BOUND: Final = 1.3
_LEAST_SIZE: Final = 5_000_000
#: A worker ends when its loader does.
_LEAVE_SECONDS: Final = 3.0
#: Trees of the kills need not be larger: what is killed is the same for every size.
_KILL_SIZE: Final = 12_000_000
#: What is killed: workers at small tasks, and a store brought up to date on a copy.
_SETTINGS: Final = "pipeline.COPY_ROWS = pipeline.POOL_BYTES = 0; pipeline.TASK_BYTES = 2_000_000"
_COMMAND: Final = f"import sys; from etl import cli, pipeline; {_SETTINGS}; sys.exit(cli.run(sys.argv[1:]))"
#: Columns that know the load, and so stand outside every equality.
_OUTSIDE: Final = {"first_load_id", "last_load_id", "source_state", "fingerprint"}


class Broken(Exception):
    """A promise does not hold."""


@dataclass(slots=True)
class Tree:
    """A home whose transcripts grow, come and go. Lines that a night brings are those the session would write next.

    ``attic`` keeps what went: a store keeps its rows, so that it equals a full load of both.
    """

    home: Path
    attic: Path
    chance: random.Random
    source: Iterator[list[File]]
    rest: dict[Path, list[bytes]] = field(default_factory=dict)

    def fill(self, size: int) -> None:
        """Adds sessions until there are so many bytes."""
        written = 0
        while written < size:
            written += self.add()

    def add(self) -> int:
        """Adds a session, of which a part is still to come; the bytes written."""
        written = 0
        for file in next(self.source):
            path = self.home / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            lines = file.body.splitlines(keepends=True)
            now = self.chance.randint(len(lines) // 2, len(lines)) if file.path.endswith(".jsonl") else len(lines)
            body = b"".join(lines[:now])
            path.write_bytes(body)
            self.rest[path] = lines[now:]
            written += len(body)
        return written

    def night(self, *, may_go: bool) -> Counter[str]:
        """Lets some files grow, some come and some go; how many of each. What goes has been loaded as it was."""
        done: Counter[str] = Counter()
        if may_go and self.chance.random() < 0.2 and len(self.rest) > 10:
            path = self.chance.choice(sorted(self.rest))
            to = self.attic / path.relative_to(self.home)
            to.parent.mkdir(parents=True, exist_ok=True)
            path.rename(to)
            del self.rest[path]
            done["gone"] += 1
        growing = [path for path, lines in self.rest.items() if lines]
        for path in self.chance.sample(growing, min(len(growing), self.chance.randint(1, 4))):
            lines, number = self.rest[path], self.chance.randint(1, 30)
            with path.open("ab") as more:
                more.write(b"".join(lines[:number]))
            del lines[:number]
            done["grown"] += 1
        for _ in range(self.chance.choice((0, 0, 1, 1, 2))):
            self.add()
            done["come"] += 1
        return done

    def load_all(self, folder: Path) -> tuple[Path, float]:
        """A first load, in a new folder, of all that is there and all that went; the store, and its bytes per row."""
        shutil.rmtree(folder, ignore_errors=True)
        for root in (self.home, self.attic):
            for path in (path for path in root.rglob("*") if path.is_file()):
                to = folder / "home" / path.relative_to(root)
                to.parent.mkdir(parents=True, exist_ok=True)
                os.link(path, to)
        db = folder / "s.duckdb"
        report = load(folder / "home", db, folder / "state")
        return db, db.stat().st_size / sum(report.rows.values())


def planted(folder: Path, size: int, seed: int, chance: random.Random) -> Tree:
    """A tree of so many bytes below a folder."""
    tree = Tree(folder / "home", folder / "attic", chance, sessions(Draw(seed, size), Mix()))
    tree.fill(size)
    return tree


def load(home: Path, db: Path, state: Path) -> Report:
    """A load in this process."""
    request = Request(str(db), "soak", Environment(str(home)), _KEY, "0", str(state), ("qoder",))
    return pipeline.load(request, lambda: datetime.now(UTC))


def content(db: Path) -> dict[str, str]:
    """A digest of the rows of each table that an equality holds for."""
    found = {}
    with connect(str(db)) as connection:
        tables = connection.execute(
            "select schema_name, table_name from duckdb_tables() where schema_name in ('facts', 'mart') "
            "and table_name not in ('loads', 'store') order by all"
        ).fetchall()
        for schema, table in tables:
            described = connection.execute(f"describe {schema}.{table}").fetchall()
            columns = ", ".join(row[0] for row in described if row[0] not in _OUTSIDE)
            digest = hashlib.sha256()
            cursor = connection.execute(f"select {columns} from {schema}.{table} order by all")  # noqa: S608
            while rows := cursor.fetchmany(10_000):
                digest.update(repr(rows).encode("utf-8", "surrogatepass"))
            found[f"{schema}.{table}"] = digest.hexdigest()
    return found


def require_equal(db: Path, other: Path, when: str) -> None:
    """Raises Broken where two stores differ, naming the tables."""
    left, right = content(db), content(other)
    differ = [table for table in left.keys() | right.keys() if left.get(table) != right.get(table)]
    if differ:
        raise Broken(f"{when}: differs from a full load in {', '.join(sorted(differ))}")


def require_whole(db: Path, when: str) -> None:
    """Raises Broken where a store does not open, or a check finds a broken promise."""
    with connect(str(db)) as connection:
        broken = [finding for finding in run_checks(connection) if finding.severity == "broken"]
    if broken:
        raise Broken(f"{when}: {broken[0].check}: {broken[0].detail}")


# --- Kills ------------------------------------------------------------------------------------------------------------


def soak_kills(folder: Path, kills: int, size: int, seed: int) -> dict[str, Any]:
    """Kills loads at random moments; figures. Raises Broken."""
    chance = random.Random(seed)
    tree = planted(folder, min(size, _KILL_SIZE), seed, chance)
    db, state = folder / "store" / "s.duckdb", folder / "state"
    length, seen = _timed(tree.home, db, state), Counter[str]()
    for number in range(kills):
        tree.night(may_go=False)
        good = _digest(db)
        command = _start(tree.home, db, state)
        time.sleep(chance.random() * length * 1.1)
        sent = chance.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT))
        command.send_signal(sent)
        command.wait()
        seen[sent.name if command.returncode in (-sent, 130) else "ended before"] += 1
        _require_left(command.pid, f"kill {number}")
        if _digest(db) != good:
            seen["published"] += 1
            require_whole(db, f"kill {number}")
        if number % 10 == 9:
            length = _timed(tree.home, db, state)
            require_whole(db, f"load after kill {number}")
            if left := [path.name for path in db.parent.iterdir() if path != db]:
                raise Broken(f"kill {number}: left over: {', '.join(left)}")
    _timed(tree.home, db, state)
    require_equal(db, tree.load_all(folder / "full")[0], "after all kills")
    return {"kills": kills, "outcomes": dict(seen), "seconds_of_a_load": round(length, 2), "files": len(tree.rest)}


def _start(home: Path, db: Path, state: Path) -> subprocess.Popen[bytes]:
    environment = {"PYTHONPATH": str(_ROOT), "HOME": str(home), "XDG_STATE_HOME": str(state)}
    told = ["load", "qoder", "--home", str(home), "--db", str(db), "--host", "soak", "--jobs", "2"]
    return subprocess.Popen(
        [sys.executable, "-c", _COMMAND, *told], env=environment, start_new_session=True, stderr=subprocess.DEVNULL
    )


def _timed(home: Path, db: Path, state: Path) -> float:
    """A load by the command line that is left to end; its seconds. Raises Broken when it fails."""
    start = time.monotonic()
    command = _start(home, db, state)
    if command.wait() not in (0, 4):
        raise Broken(f"a load that nobody interrupted ended with {command.returncode}")
    return time.monotonic() - start


def _digest(db: Path) -> str:
    with db.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _require_left(session: int, when: str) -> None:
    """Raises Broken when processes of a session are still there after the time workers have to leave."""
    end = time.monotonic() + _LEAVE_SECONDS
    while left := _processes(session):
        if time.monotonic() > end:
            raise Broken(f"{when}: processes left: {left}")
        time.sleep(0.05)


def _processes(session: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            told = (entry / "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        if entry.name.isdigit() and int(told[3]) == session and told[0] != b"Z":
            found.append(int(entry.name))
    return found


# --- Nights -----------------------------------------------------------------------------------------------------------


def soak_nights(folder: Path, nights: int, size: int, seed: int) -> dict[str, Any]:
    """A load each night; figures. Raises Broken."""
    chance = random.Random(seed)
    tree = planted(folder, size, seed, chance)
    db, state = folder / "store" / "s.duckdb", folder / "state"
    report = load(tree.home, db, state)
    done, ratios, compared, afresh = Counter[str](), list[float](), 0, 0
    per_row = db.stat().st_size / sum(report.rows.values())
    for number in range(1, nights + 1):
        done += tree.night(may_go=True)
        report = load(tree.home, db, state)
        afresh += _dead_rows(db) == 0
        if number % 30 == 0 or number == nights:
            fresh, per_row = tree.load_all(folder / "full")
            require_whole(db, f"night {number}")
            require_equal(db, fresh, f"night {number}")
            compared += 1
        ratios.append(_require_small(db, per_row * sum(report.rows.values()), f"night {number}"))
        if number % 30 == 0:
            sys.stderr.write(f"night {number}: equal to a full load; largest so far {max(ratios):.2f} of a fresh one\n")
    return {
        "nights": nights,
        "files": dict(done),
        "written_afresh": afresh,
        "size": db.stat().st_size,
        "largest_ratio": round(max(ratios), 3),
        "mean_ratio": round(sum(ratios) / len(ratios), 3),
        "compared": compared,
    }


def _dead_rows(db: Path) -> int:
    with connect(str(db)) as connection:
        return int(connection.execute("select dead_rows from mart.store").fetchall()[0][0])


def _require_small(db: Path, fresh: float, when: str) -> float:
    """The size of a store as a share of what it would take afresh. Raises Broken above the bound."""
    size = db.stat().st_size
    if size / fresh > _SIZE_BOUND and size > _LEAST_SIZE:
        raise Broken(f"{when}: {size} bytes, {size / fresh:.2f} of a fresh store")
    return size / fresh


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs both; 0, or 1 when a promise is broken."""
    parser = argparse.ArgumentParser(prog="soak", description="Kills loads, and loads night after night.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--nights", type=int, default=365)
    parser.add_argument(
        "--mb", type=float, default=110, help="size of the tree of the nights in 10^6 bytes (default 110)"
    )
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    size = int(chosen.mb * 1e6)
    with tempfile.TemporaryDirectory(prefix="soak-") as place:
        try:
            for name, soak, number in (("kills", soak_kills, chosen.kills), ("nights", soak_nights, chosen.nights)):
                start = time.monotonic()
                found = soak(Path(place) / name, number, size, chosen.seed) if number else {}
                told = {**found, "seconds": round(time.monotonic() - start)}
                sys.stdout.write(orjson.dumps({name: told}).decode() + "\n")
        except Broken as broken:
            sys.stdout.write(f"soak: {broken} (seed {chosen.seed})\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
