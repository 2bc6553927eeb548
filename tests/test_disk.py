"""What does a load do where the disk is full or cannot be written, and where files change while they are read?"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from etl import pipeline
from etl.errors import StoreError
from etl.providers.base import Environment
from etl.request import Report, Request
from tests.loading import HOST, KEY, NOW
from tests.test_incremental import DEMO, copy, files_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
LINE = b'{"type":"ai-title","aiTitle":"Later"}\n'


def load(home: Path, db: Path, state: Path, **more: Any) -> Report:
    request = Request(str(db), HOST, Environment(str(home)), KEY, "0", str(state), ("qoder",), **more)
    return pipeline.load(request, lambda: NOW)


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


#: Bytes left on the disk, of the 6 MB or so that a small store takes: none at all, none for the folder of the
#: run's parts, for some parts, for part of the store.
FREE = [0, 4096, 65_536, 1_000_000, 4_000_000]


@pytest.mark.parametrize("free", FREE)
@pytest.mark.parametrize("copy_rows", [0, 1 << 60], ids=["copy", "afresh"])
def test_a_full_disk_leaves_the_store_as_it_was(
    home: Path, disk: Path, tmp_path: Path, free: int, copy_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "COPY_ROWS", copy_rows)
    db = disk / "store" / "s.duckdb"
    load(home, db, tmp_path / "state")
    grow(transcripts(home)[0])
    before = contents(db.parent)
    ballast = fill(disk, free)
    with pytest.raises(StoreError) as caught:
        load(home, db, tmp_path / "state")
    assert "No space left on device" in str(caught.value) or "memory" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert contents(db.parent) == before
    ballast.unlink()
    assert load(home, db, tmp_path / "state").sources_read == 1


@pytest.mark.parametrize("free", FREE)
def test_a_first_load_on_a_full_disk_leaves_nothing(home: Path, disk: Path, tmp_path: Path, free: int) -> None:
    db = disk / "store" / "s.duckdb"
    fill(disk, free)
    with pytest.raises(StoreError):
        load(home, db, tmp_path / "state")
    assert list(db.parent.iterdir()) == []
