"""What does a load do where the disk is full or cannot be written, and where files change while they are read?"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from etl import pipeline
from etl.discover import Discovery, discover
from etl.errors import StoreError
from etl.providers.base import Environment
from etl.request import Report, Request
from tests.loading import HOST, KEY, rows
from tests.test_incremental import DEMO, assert_same, copy, files_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parent.parent
LINE = b'{"type":"ai-title","aiTitle":"Later"}\n'


def load(home: Path, db: Path, state: Path, **more: Any) -> Report:
    request = Request(str(db), HOST, Environment(str(home)), KEY, "0", str(state), ("qoder",), **more)
    return pipeline.load(request, lambda: datetime.now(UTC))


def command_load(home: Path, db: Path, state: Path) -> subprocess.CompletedProcess[str]:
    """A load by the command line."""
    return subprocess.run(
        [sys.executable, "-m", "etl", "load", "qoder", "--home", str(home), "--db", str(db), "--host", HOST],
        env={"PYTHONPATH": str(ROOT), "HOME": str(home), "XDG_STATE_HOME": str(state)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with twelve transcripts."""
    files = [file for file in files_of(DEMO) if file.suffix == ".jsonl" and "subagents" not in file.parts]
    copy(DEMO, tmp_path / "home", files[:12])
    return tmp_path / "home"


def transcripts(home: Path) -> list[Path]:
    return sorted(home.rglob("*.jsonl"))


def grow(path: Path) -> None:
    with path.open("ab") as more:
        more.write(LINE)


def lines(*paths: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in paths)


# --- Disks ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 32 MB."""
    place = tmp_path / "disk"
    place.mkdir()
    try:
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=32m,mode=700", "none", str(place)], capture_output=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("there is no mount command here")
    if made.returncode:
        pytest.skip(f"no disk can be mounted here: {made.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(disk: Path, free: int) -> Path:
    """Leaves so many bytes of a disk free; the file that takes the rest."""
    ballast = disk / "ballast"
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(disk).free - free)
    return ballast


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("free", "copy_rows"), [(0, 0), (65_536, 0), (4_000_000, 0), (4096, 1 << 60), (1_000_000, 1 << 60)]
)
def test_a_full_disk_leaves_the_store_as_it_was(
    home: Path, disk: Path, tmp_path: Path, free: int, copy_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Free are, of the 6 MB that a small store takes: none, too few for parts, too few for the copy or the tables."""
    monkeypatch.setattr(pipeline, "COPY_ROWS", copy_rows)
    db = disk / "store" / "s.duckdb"
    load(home, db, tmp_path / "state")
    grow(transcripts(home)[0])
    before = contents(db.parent)
    fill(disk, free)
    with pytest.raises(StoreError) as caught:
        load(home, db, tmp_path / "state")
    assert str(caught.value).endswith("No space left on device")
    assert "\n" not in str(caught.value)
    assert contents(db.parent) == before


@pytest.mark.parametrize("free", [0, 4096, 1_000_000])
def test_a_first_load_on_a_full_disk_leaves_nothing(home: Path, disk: Path, tmp_path: Path, free: int) -> None:
    db = disk / "store" / "s.duckdb"
    fill(disk, free)
    with pytest.raises(StoreError):
        load(home, db, tmp_path / "state")
    assert list(db.parent.iterdir()) == []


def test_the_command_says_it_in_one_sentence(home: Path, disk: Path, tmp_path: Path) -> None:
    db = disk / "store" / "s.duckdb"
    fill(disk, 65_536)
    command = command_load(home, db, tmp_path / "state")
    assert command.returncode == 3
    (said,) = command.stderr.splitlines()[1:]  # after the number of files found
    assert said.startswith("sessionmart: the store could not be written: ")
    assert said.endswith("No space left on device")
    assert (command.stdout, list(db.parent.iterdir())) == ("", [])


def test_a_store_on_a_read_only_disk_is_left_alone(home: Path, disk: Path, tmp_path: Path) -> None:
    db = disk / "store" / "s.duckdb"
    load(home, db, tmp_path / "state")
    grow(transcripts(home)[0])
    before = contents(db.parent)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    command = command_load(home, db, tmp_path / "state")
    assert command.returncode == 3
    assert command.stderr == (
        f"sessionmart: the folder of the store cannot be written: {db}.lock: Read-only file system\n"
    )
    assert contents(db.parent) == before
    with pytest.raises(StoreError, match="cannot make the folder of the store"):
        load(home, disk / "other" / "s.duckdb", tmp_path / "state")


def test_a_ledger_that_cannot_be_written_costs_the_next_load_its_skipping(
    home: Path, disk: Path, tmp_path: Path
) -> None:
    db, state = tmp_path / "store" / "s.duckdb", disk / "state"
    load(home, db, state)
    grow(transcripts(home)[0])
    files = sorted(path.name for path in state.iterdir())
    ballast = fill(disk, 0)
    with pytest.raises(
        StoreError, match=r"the store was published, but its ledger cannot be written below .*: No space"
    ):
        load(home, db, state)
    assert rows(db, "select sum(lines) from facts.sources") == [(lines(*transcripts(home)),)]
    assert sorted(path.name for path in state.iterdir()) == files
    ballast.unlink()
    assert load(home, db, state).sources_read == 12
    assert load(home, db, state).state == "unchanged"


def test_a_store_that_copies_have_blown_up_is_written_afresh(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half-filled blocks are no dead rows: a copy of a small store grows by more than its share of dead rows."""
    monkeypatch.setattr(pipeline, "COPY_ROWS", 0)
    db, state = tmp_path / "s.duckdb", tmp_path / "state"
    load(home, db, state)
    fresh, sizes, dead = db.stat().st_size, [], []
    for path in transcripts(home)[:3]:
        grow(path)
        load(home, db, state)
        sizes.append(db.stat().st_size / fresh)
        dead += rows(db, "select dead_rows from mart.store")
    assert dead[0] > (0,)  # a copy
    assert sizes[0] > 1.15
    assert (0,) in dead[1:]
    assert sizes[dead.index((0,))] < 1.15


# --- Files that change while they are read ----------------------------------------------------------------------------


def change_after_discovery(monkeypatch: pytest.MonkeyPatch, change: Callable[[], None]) -> None:
    """Lets files change once, between being found and being read."""
    left = [change]

    def found_and_changed(*given: Any) -> Discovery:
        found = discover(*given)
        while left:
            left.pop()()
        return found

    monkeypatch.setattr(pipeline, "discover", found_and_changed)


def full_load(home: Path, tmp_path: Path) -> Path:
    db = tmp_path / "full" / "s.duckdb"
    load(home, db, tmp_path / "full")
    return db


@pytest.mark.parametrize("copy_rows", [0, 1 << 60], ids=["copy", "afresh"])
def test_a_file_that_goes_away_before_it_is_read_is_gone(
    home: Path, tmp_path: Path, copy_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an earlier load read of it stays, as for any file that is gone; one never read leaves no trace."""
    monkeypatch.setattr(pipeline, "COPY_ROWS", copy_rows)
    db, state = tmp_path / "s.duckdb", tmp_path / "state"
    load(home, db, state)
    known = transcripts(home)[0]
    grow(known)
    new = known.with_name("00000000-0000-4000-8000-000000000001.jsonl")
    new.write_bytes(LINE)
    was = lines(*transcripts(home)) - 2  # without the line that is never read, and without the new file

    def remove() -> None:
        known.unlink()
        new.unlink()

    change_after_discovery(monkeypatch, remove)
    report = load(home, db, state)
    assert (report.sources_gone, report.sources_failed, report.clean) == (1, 0, True)
    told = "select count(*), sum(lines), count(*) filter (source_state = 'gone') from facts.sources"
    assert rows(db, told) == [(12, was, 1)]
    assert rows(db, "select reason from facts.rejects where reason = 'io'") == []
    assert load(home, db, state).state == "unchanged"
    copy(DEMO, home, [known.relative_to(home)])  # it comes back
    assert load(home, db, state).sources_read == 1
    assert_same(db, full_load(home, tmp_path))


def test_a_file_cut_short_before_it_is_read_is_read_as_it_is(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, state = tmp_path / "s.duckdb", tmp_path / "state"
    victim = max(transcripts(home), key=lambda path: path.stat().st_size)
    whole = victim.read_bytes()
    change_after_discovery(monkeypatch, lambda: os.truncate(victim, whole.index(b"\n") + 1))
    load(home, db, state)
    assert rows(db, "select sum(lines) from facts.sources") == [(lines(*transcripts(home)),)]
    victim.write_bytes(whole)
    assert load(home, db, state).sources_read == 1
    assert_same(db, full_load(home, tmp_path))


def test_files_that_grow_while_they_are_read_are_whole_after_the_next_load(home: Path, tmp_path: Path) -> None:
    """A writer appends half a line at a time: each load holds whole lines only, and the one after it all of them."""
    db, state = tmp_path / "s.duckdb", tmp_path / "state"
    writing = threading.Event()
    writing.set()
    files = transcripts(home)[:3]

    def write() -> None:
        while writing.is_set():
            for path in files:
                for half in (LINE[:20], LINE[20:]):
                    with path.open("ab") as more:
                        more.write(half)
            time.sleep(0.001)

    least = lines(*transcripts(home))
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(2):
            load(home, db, state)
            ((stored, broken),) = rows(
                db, "select sum(lines), count(*) filter (tail_state not in ('complete', 'partial')) from facts.sources"
            )
            assert broken == 0
            # the last line of each growing file may be half there, and is counted by its half
            assert least <= stored <= lines(*transcripts(home)) + len(files)
            least = stored - len(files)
    finally:
        writing.clear()
        writer.join()
    load(home, db, state)
    assert rows(db, "select sum(lines) from facts.sources") == [(lines(*transcripts(home)),)]
    assert_same(db, full_load(home, tmp_path))
