"""Does a load that is interrupted at any moment leave the last good store, or the next one, and nothing in between?

The loads are real commands, killed at moments spread over the time they take. How many lines a store must hold is told
by the files it was loaded from.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from etl import pipeline
from etl.providers.base import Environment
from etl.request import Report, Request
from etl.store import connect, run_checks
from tests.loading import HOST, KEY
from tests.test_incremental import DEMO, assert_same, copy, files_of

ROOT = Path(__file__).parent.parent
#: The command line as a terminal starts it; ``SETTINGS`` says what is changed before it runs. What a shell starts in
#: the background ignores Ctrl-C, and hands that down to the tests' own children.
COMMAND = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from etl import cli, pipeline; exec(os.environ['SETTINGS']); sys.exit(cli.run(sys.argv[1:]))"
)
#: A store of any size is brought up to date on a copy, by workers.
COPY = "pipeline.COPY_ROWS = pipeline.POOL_BYTES = 0; pipeline.TASK_BYTES = 100_000"
#: A load is under way from its first line on.
BEGUN = "files found"


class Place:
    """A home with transcripts, a store, and the state of sessionmart, all below one folder."""

    def __init__(self, folder: Path, sessions: int = 12) -> None:
        self.folder, self.home, self.db = folder, folder / "home", folder / "store" / "s.duckdb"
        files = [file for file in files_of(DEMO) if file.suffix == ".jsonl" and "subagents" not in file.parts]
        copy(DEMO, self.home, files[:sessions])
        self.files = [self.home / file for file in files[:sessions]]
        self.nights = 0

    def load(self, db: Path | None = None) -> Report:
        """A load in this process, with the ledger the commands use."""
        state = self.folder / "state" / "sessionmart" if db is None else db.parent / "state"
        home = Environment(str(self.home))
        return pipeline.load(
            Request(str(db or self.db), HOST, home, KEY, "0", str(state), ("qoder",)), lambda: datetime.now(UTC)
        )

    def start(self, settings: str = "", db: Path | None = None) -> subprocess.Popen[str]:
        """A load as a command, in a process group of its own."""
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.home),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "SETTINGS": settings,
        }
        told = ["load", "qoder", "--home", str(self.home), "--db", str(db or self.db), "--host", HOST, "--jobs", "2"]
        return subprocess.Popen(
            [sys.executable, "-c", COMMAND, *told],
            env=environment,
            start_new_session=True,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def change(self) -> None:
        """One night's work: a transcript grows by a line, and a new one comes."""
        self.nights += 1
        line = b'{"type":"ai-title","aiTitle":"Night %d"}\n' % self.nights
        grown = self.files[self.nights % len(self.files)]
        with grown.open("ab") as more:
            more.write(line)
        new = grown.with_name(f"00000000-0000-4000-8000-{self.nights:012d}.jsonl")
        new.write_bytes(line)
        self.files.append(new)

    def lines(self) -> int:
        """Lines of all transcripts, counted in their bytes."""
        return sum(path.read_bytes().count(b"\n") for path in self.files)

    def leavings(self) -> list[str]:
        """What stands beside the store."""
        return sorted(path.name for path in self.db.parent.iterdir() if path != self.db)


def digest(db: Path) -> str:
    return hashlib.sha256(db.read_bytes()).hexdigest()


def stored_lines(db: Path) -> int:
    """Lines of all sources of a store, once it has opened and no check found a broken promise."""
    with connect(str(db)) as connection:
        assert [finding for finding in run_checks(connection) if finding.severity == "broken"] == []
        return int(connection.execute("select sum(lines) from facts.sources").fetchall()[0][0])


def begun(command: subprocess.Popen[str]) -> float:
    """When the load had begun, by the steady clock."""
    assert command.stderr is not None
    assert BEGUN in command.stderr.readline()
    return time.monotonic()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# --- Killed -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "settings"), [(1, ""), (2, COPY)], ids=["afresh", "copy"])
def test_a_load_killed_at_any_moment_leaves_a_whole_store(place: Place, seed: int, settings: str) -> None:
    chance, kills = random.Random(seed), 6
    place.start(settings).communicate()
    place.change()
    command = place.start(settings)
    start = begun(command)
    command.communicate()
    length = time.monotonic() - start
    assert command.returncode == 0
    for number in range(kills):
        good, before = digest(place.db), place.lines()
        place.change()
        command = place.start(settings)
        begun(command)
        time.sleep(length * (number + chance.random()) / kills)
        command.send_signal(chance.choice((signal.SIGKILL, signal.SIGTERM)))
        command.communicate()
        if digest(place.db) != good:
            assert stored_lines(place.db) == place.lines() > before
        place.load()
        assert stored_lines(place.db) == place.lines()
        assert place.leavings() == []
    place.load(place.folder / "full" / "s.duckdb")
    assert_same(place.db, place.folder / "full" / "s.duckdb")


DIE = "os.kill(os.getpid(), 9)"
#: The steps at the end of a load, each with what dies there: before and after the replace, and at the ledger.
STEPS = {
    "built": f"pipeline.publish = lambda *_: {DIE}",
    "published": f"was = pipeline.publish; pipeline.publish = lambda *given: (was(*given), {DIE})",
    "ledger": f"pipeline.os.replace = lambda old, new: {DIE} if 'ledger-' in new else os.rename(old, new)",
    "log": f"pipeline.append = lambda *_: {DIE}",
}


@pytest.mark.parametrize("step", STEPS)
def test_a_load_killed_at_a_step_of_its_end_leaves_a_whole_store(place: Place, step: str) -> None:
    place.load()
    good, before = digest(place.db), place.lines()
    place.change()
    command = place.start(STEPS[step])
    command.communicate()
    assert command.returncode == -signal.SIGKILL
    assert (digest(place.db) == good) == (step == "built")
    assert stored_lines(place.db) == (before if step == "built" else place.lines())
    assert place.leavings() != []
    report = place.load()
    # a store without its ledger is read again as a whole; a load that only lacks its line in the log is done
    assert report.sources_read == {"built": 2, "published": 13, "ledger": 13, "log": 0}[step]
    assert stored_lines(place.db) == place.lines()
    assert place.leavings() == []
    assert [path.name for path in (place.folder / "state" / "sessionmart").iterdir() if path.suffix == ".new"] == []


def test_a_first_load_that_is_killed_leaves_no_store(place: Place) -> None:
    command = place.start(STEPS["built"])
    command.communicate()
    assert command.returncode == -signal.SIGKILL
    assert not place.db.exists()
    place.load()
    assert stored_lines(place.db) == place.lines()
    assert place.leavings() == []


# --- Interrupted from the keyboard ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("seed", "settings"), [(3, ""), (4, COPY)], ids=["afresh", "copy"])
def test_ctrl_c_ends_a_load_with_130_and_one_word(place: Place, seed: int, settings: str) -> None:
    """As the terminal does it: the signal goes to the whole process group, workers included."""
    chance, interrupts = random.Random(seed), 2
    place.load()
    place.change()
    good = digest(place.db)
    for number in range(interrupts):
        command = place.start(settings)
        begun(command)
        time.sleep(0.9 * (number + chance.random()) / interrupts)
        os.killpg(command.pid, signal.SIGINT)
        out, told = command.communicate()
        assert (command.returncode, out, told) == (130, "", "\ninterrupted\n")
        assert digest(place.db) == good
        assert place.leavings() == []
    place.load()
    assert stored_lines(place.db) == place.lines()


# --- Two loads at once ------------------------------------------------------------------------------------------------


def test_a_second_load_says_who_is_at_work_and_the_first_ends_well(place: Place) -> None:
    place.db.parent.mkdir()
    waiting = "import time; was = pipeline.publish; pipeline.publish = lambda *given: (sys.stdin.read(1), was(*given))"
    first = place.start(waiting)
    begun(first)
    second = place.start()
    _, told = second.communicate()
    assert second.returncode == 3
    assert told == f"sessionmart: another load is running on {place.db} (process {first.pid})\n"
    assert not place.db.exists()
    first.communicate("\n")
    assert first.returncode == 0
    assert stored_lines(place.db) == place.lines()
    assert place.leavings() == []


# --- Readers ----------------------------------------------------------------------------------------------------------


READER = """
import sys
import etl
totals = "select sum(lines), count(*) from facts.sources"
held = etl.connect(sys.argv[1])
first, last = held.execute(totals).fetchone(), None
while True:
    with etl.connect(sys.argv[1]) as connection:
        seen = connection.execute(totals).fetchone()
    assert held.execute(totals).fetchone() == first
    if seen != last:
        print(*seen, flush=True)
        last = seen
"""


def test_a_reader_sees_whole_stores_only(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """One connection is opened for each query, another stays open over all loads and keeps what it saw first."""
    monkeypatch.setattr(pipeline, "COPY_ROWS", 0)
    place.load()
    known = [f"{place.lines()} {len(place.files)}"]
    reader = subprocess.Popen(
        [sys.executable, "-c", READER, str(place.db)], env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True
    )
    assert reader.stdout is not None
    try:
        seen = [reader.stdout.readline().rstrip()]
        for _ in range(3):
            place.change()
            known.append(f"{place.lines()} {len(place.files)}")
            place.load()
            seen.append(reader.stdout.readline().rstrip())
        assert reader.poll() is None  # no query of it failed
    finally:
        reader.kill()
        rest, _ = reader.communicate()
    assert (seen, rest) == (known, "")
