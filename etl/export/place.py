"""How does a finished export take its place, so that no reader ever sees half of one?

It is built in a folder beside its destination and put there in one step. A folder is replaced only when it is empty or
an earlier export of the same kind that holds nothing else: its marker lists every file of it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TextIO

import orjson

from etl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The file that says what a folder is; readers of datasets pass over names that begin with an underscore.
MARKER: Final = "_sessionmart.json"
#: Number of the layout: another one is another promise.
LAYOUT: Final = 1
_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2


class Building:
    """An export that is being built: its folder, and what its marker will say."""

    def __init__(self, folder: Path, spill: Path, kind: str) -> None:
        self.folder, self.spill, self.kind = folder, spill, kind
        self.says: dict[str, Any] = {}
        self.files: list[str] = []

    def path(self, *parts: str) -> Path:
        """The place of a file that is about to be written, its folders made (0700)."""
        place = self.folder
        for part in parts[:-1]:
            place /= part
            place.mkdir(mode=0o700, exist_ok=True)
        self.files.append("/".join(parts))
        return place / parts[-1]

    def mark(self) -> None:
        """Writes the marker: the export is complete."""
        said = {"made_by": "sessionmart", "kind": self.kind, "layout": LAYOUT, **self.says, "files": sorted(self.files)}
        with private_file(self.folder / MARKER) as file:
            file.write(orjson.dumps(said, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def private_file(path: Path) -> BinaryIO:
    """A new file that only its owner reads, opened for writing bytes."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


@contextmanager
def replacing(dest: str, kind: str) -> Iterator[Building]:
    """A folder to build an export of a kind in, which becomes ``dest`` when the block ends well and is gone when not.

    Raises UsageError where ``dest`` is something else than an empty folder or an earlier export, or cannot be written.
    """
    target = Path(os.path.realpath(dest))
    with _told_as_usage(dest):
        _refuse(target, kind)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sweep(target)
        work = Path(tempfile.mkdtemp(prefix=f"{_prefix(target)}{os.getpid()}-", dir=target.parent))
        try:
            (work / "new").mkdir(mode=0o700)
            (work / "spill").mkdir(mode=0o700)
            building = Building(work / "new", work / "spill", kind)
            yield building
            building.mark()
            _refuse(target, kind)
            _put(work, target)
        finally:
            shutil.rmtree(work, ignore_errors=True)


@contextmanager
def replacing_file(dest: str) -> Iterator[TextIO]:
    """A file to write text to, which becomes ``dest`` (0600) when the block ends well. What is no plain file, such as a
    pipe or a terminal, is written to as it stands. Raises UsageError where it cannot be written.
    """
    target = Path(os.path.realpath(dest))
    with _told_as_usage(dest):
        if target.exists() and not target.is_file():
            with target.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
                yield file
            return
        descriptor, name = tempfile.mkstemp(prefix=_prefix(target), dir=target.parent)
        try:
            with open(descriptor, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:  # noqa: PTH123
                yield file
            Path(name).replace(target)
        finally:
            with suppress(FileNotFoundError):
                Path(name).unlink()


@contextmanager
def _told_as_usage(dest: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"cannot write {dest}: {error.strerror or error}") from error


def _prefix(target: Path) -> str:
    return f".{target.name}.export-"


def _refuse(target: Path, kind: str) -> None:
    """Raises UsageError unless what stands at the destination may be replaced."""
    if not os.path.lexists(target):
        return
    if not target.is_dir():
        raise UsageError(f"{target} is no folder: an export is one")
    held = {path.relative_to(target).as_posix() for path in target.rglob("*") if not path.is_dir() or path.is_symlink()}
    if not held:
        return
    said = _marker(target)
    if said is None:
        raise UsageError(f"{target} is not empty and no earlier export: nothing is written there")
    if said.get("kind") != kind:
        raise UsageError(f"{target} is an export of another kind ({said.get('kind')}): name another folder")
    foreign = held - {MARKER, *(name for name in said.get("files", ()) if isinstance(name, str))}
    if foreign:
        raise UsageError(f"{target} holds files that no export made, such as {min(foreign)}: nothing is written there")


def _marker(target: Path) -> dict[str, Any] | None:
    try:
        said = orjson.loads((target / MARKER).read_bytes())
    except (OSError, ValueError):
        return None
    return said if isinstance(said, dict) and said.get("made_by") == "sessionmart" else None


def _sweep(target: Path) -> None:
    """Removes what runs left that no longer run; their folder names the process."""
    for path in target.parent.glob(f"{_prefix(target)}*-*"):
        number = path.name.removeprefix(_prefix(target)).partition("-")[0]
        if number.isdecimal() and not _runs(int(number)):
            shutil.rmtree(path, ignore_errors=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True


def _put(work: Path, target: Path) -> None:
    """Puts the new folder at its place; one that stood there goes into the work folder."""
    if not target.exists():
        (work / "new").rename(target)
    elif not _exchange(work / "new", target):
        # two steps where the system cannot exchange: in between there is no export, but never half of one
        target.rename(work / "old")
        try:
            (work / "new").rename(target)
        except OSError:
            (work / "old").rename(target)
            raise


def _exchange(one: Path, other: Path) -> bool:
    """Exchanges two folders in one step, where kernel, file system and C library can (Linux)."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if sys.platform == "linux" else None
    if rename is None:
        return False
    done = rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), ctypes.c_uint(_RENAME_EXCHANGE))
    return bool(done == 0)
