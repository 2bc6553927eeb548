"""Which files has the last load read, and which of those found now need reading again?

The ledger is one JSON file per store, outside it (0600). It belongs to a store by the
store's id and the id of its last load: one that does not match is ignored and everything is read again.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import orjson

from etl.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from etl.discover import Found

_VERSION: Final = 1


#: What ``stat`` says of a file: size, modification time, change time (nanoseconds), inode. The change time is part of
#: it: a file rewritten in place with its old size and modification time still has a new one.
Stamp = tuple[int, int, int, int]
#: The stamp of no file: a source that is to be read again, whatever it looks like.
UNREAD: Final[Stamp] = (-1, -1, -1, -1)


@dataclass(frozen=True, slots=True)
class Entry:
    """One source that was read: its stamp then, the version of the rules that read it, and its root, masked.

    The path of the file is not kept: names may hold secrets, and what is found is looked up by source id.
    """

    stamp: Stamp
    rules: str
    root: str


@dataclass(slots=True)
class Ledger:
    """The sources of a store by source id, as the load ``load_id`` left them.

    ``rows`` are the rows of facts then, ``bytes_per_row`` what the file took for each when it was last written afresh
    (0: not known): together they tell what the store would take without what copies have left in it.
    """

    store_id: str
    load_id: str
    entries: dict[str, Entry] = field(default_factory=dict)
    rows: int = 0
    bytes_per_row: float = 0.0

    @staticmethod
    def read(folder: str, store_id: str, load_id: str) -> Ledger:
        """The ledger of a store; an empty one when there is none, it is damaged, or it tells of another load."""
        fresh = Ledger(store_id, load_id)
        if not folder:
            return fresh
        try:
            with open(_path(folder, store_id), "rb") as file:
                told = orjson.loads(file.read())
            if (told["version"], told["store_id"], told["load_id"]) != (_VERSION, store_id, load_id):
                return fresh
            fresh.entries = {source: _entry(row) for source, row in told["entries"].items()}
            fresh.rows, fresh.bytes_per_row = int(told.get("rows", 0)), float(told.get("bytes_per_row", 0))
        except (OSError, orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
            return Ledger(store_id, load_id)
        return fresh

    def write(self, folder: str) -> None:
        """Writes the ledger in one step, after the store it tells of was published. Without a folder none is kept.

        Raises StoreError where the folder cannot be written.
        """
        if not folder:
            return
        told: dict[str, Any] = {
            "version": _VERSION,
            "store_id": self.store_id,
            "load_id": self.load_id,
            "rows": self.rows,
            "bytes_per_row": self.bytes_per_row,
            "entries": {source: [*entry.stamp, entry.rules, entry.root] for source, entry in self.entries.items()},
        }
        try:
            _write_aside(_path(folder, self.store_id), orjson.dumps(told))
        except OSError as error:
            raise StoreError(
                f"the store was published, but its ledger cannot be written below {folder}: {error.strerror}; "
                "the next load reads everything again"
            ) from error


def _write_aside(path: str, data: bytes) -> None:
    """One step for who reads it. The file aside has one name: what a killed load left of it is written over."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    aside = f"{path}.new"
    try:
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)
        os.replace(aside, path)
    except OSError:
        with suppress(OSError):
            os.unlink(aside)
        raise


def _path(folder: str, store_id: str) -> str:
    return os.path.join(folder, f"ledger-{store_id}.json")


def _entry(row: list[Any]) -> Entry:
    size, mtime_ns, ctime_ns, inode, rules, root = row
    return Entry((int(size), int(mtime_ns), int(ctime_ns), int(inode)), str(rules), str(root))


@dataclass(slots=True)
class Plan:
    """What a load has to do: files to read (new, grown or rewritten), source ids left as they are, and source ids of
    the store that are no longer there. ``suspicious`` ones lay below a root that suddenly holds nothing at all.
    ``entries`` is what the ledger will say of the files found.
    """

    read: list[Found] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    suspicious: list[str] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """There is nothing to do."""
        return not (self.read or self.gone or self.suspicious)


def plan(
    ledger: Ledger,
    found: Iterable[Found],
    rules: str,
    walked: Mapping[str, int],
    masked: Mapping[str, str],
    *,
    full: bool,
) -> Plan:
    """Compares what is found with what the ledger knows.

    ``rules`` names the versions that rows depend on; ``walked`` are the masked roots that were walked, with the number
    of files found below each: only what lay below one of them can be gone; ``masked`` gives a root as the ledger keeps
    it. ``full`` reads everything again.
    """
    made = Plan()
    for item in found:
        source_id = item.source.source_id
        entry = Entry(item.stamp, rules, masked[item.root])
        if not full and ledger.entries.get(source_id) == entry:
            made.unchanged.append(source_id)
        else:
            made.read.append(item)
        made.entries[source_id] = entry
    for source_id, entry in ledger.entries.items():
        if source_id not in made.entries and entry.root in walked:
            (made.gone if walked[entry.root] else made.suspicious).append(source_id)
    return made


def tasks_of(found: list[Found], target: int) -> list[list[Found]]:
    """Files in tasks of about ``target`` bytes, the largest first: a large file is a task of its own."""
    tasks: list[list[Found]] = []
    filled = 0
    for item in sorted(found, key=lambda item: (-item.size, item.path)):
        if not tasks or filled + item.size > target:
            tasks.append([])
            filled = 0
        tasks[-1].append(item)
        filled += item.size
    return tasks
