"""Which files on this machine are session files, and of which provider?

Folders are walked with ``scandir``; no file's content is read here and nothing is ever written. What a path grammar
claims but is no readable file (a folder, a FIFO, a dangling link) is handed on with the reason: it becomes a row.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from etl.keys import relative_path
from etl.providers.base import Claim, Root, Source
from etl.sqlitedb import stamp_with_sides

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from etl.providers.base import Environment, Provider

#: Name endings of compressed session files: the grammar sees the name without them.
_COMPRESSED: Final = (".gz", ".zst")
#: Deeper trees than any provider writes; a runaway folder must not stop a load.
_MAX_DEPTH: Final = 32
#: A folder of such a name stands where a session file is expected.
_FILE_NAMES: Final = (".jsonl", "-session.json", ".meta.json")
_ENDING: Final = re.compile(r"\.[A-Za-z0-9]{1,8}")


@dataclass(frozen=True, slots=True)
class Found:
    """A claimed path: the source it will be, where it is, its size, and why it cannot be read (None: it can).

    ``stamp`` is what tells that it changed (size, modification and change time in nanoseconds, inode; zeros where the
    system says nothing), ``root`` the folder it was found below.
    """

    source: Source
    path: str
    size: int
    problem: str | None = None
    stamp: tuple[int, int, int, int] = (0, 0, 0, 0)
    root: str = ""


@dataclass(slots=True)
class Discovery:
    """What a provider's roots hold: claimed paths in path order, and counts of what the grammar does not claim.

    ``walked`` are the roots that were looked at, existing or not, with the number of files found below each.
    """

    found: list[Found] = field(default_factory=list)
    walked: dict[str, int] = field(default_factory=dict)
    unclaimed: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


class _Entry(NamedTuple):
    """A path below a root that is to be looked at: where it is, below the root, and what the system says of it."""

    path: str
    rel: str
    problem: str | None
    status: os.stat_result | None
    is_folder: bool = False


def discover(provider: Provider, environment: Environment, host: str, named: Sequence[str] = ()) -> Discovery:
    """Everything below the provider's default roots, or below the named paths, which replace them.

    Each file and each folder is there once, under the first path that leads to it.
    """
    discovery = Discovery()
    roots = [_named_root(path) for path in named] or list(provider.roots(environment))
    seen: set[tuple[int, int]] = set()
    taken: set[str] = set()
    for root in roots:
        discovery.walked.setdefault(printable(root.path), 0)
        if not os.path.lexists(root.path):
            if root.store_kind == "any":
                discovery.problems.append(printable(f"{root.path}: no such file or folder"))
            continue
        for entry in _walk(root, seen, discovery):
            claim = _claim(provider, root, entry)
            if entry.is_folder:
                claim = Claim(root.store_kind, "folder", os.path.basename(entry.path), realm=root.realm)
            if claim is None:
                discovery.unclaimed[_ending(entry.path)] += 1
            elif entry.problem is not None or _is_new(entry.status, seen):
                source = _source(provider, host, root, entry, claim, taken)
                size = 0 if entry.status is None or entry.problem else entry.status.st_size
                stamp = _stamp(entry.status)
                if claim.container == "sqlite":
                    stamp = stamp_with_sides(entry.path, stamp)
                found = Found(source, entry.path, size, entry.problem, stamp, printable(root.path))
                discovery.found.append(found)
                discovery.walked[found.root] += not entry.is_folder
            else:
                discovery.unclaimed["(another name of a file that is read)"] += 1
    discovery.found.sort(key=lambda found: (found.source.claim.realm or "", found.source.rel_path))
    return discovery


def _stamp(status: os.stat_result | None) -> tuple[int, int, int, int]:
    if status is None:
        return (0, 0, 0, 0)
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _named_root(path: str) -> Root:
    whole = os.path.abspath(path)
    base = whole if os.path.isdir(whole) else os.path.dirname(whole)
    return Root(whole, base, "any")


def _is_new(status: os.stat_result | None, seen: set[tuple[int, int]]) -> bool:
    """Was no other path to this file or folder taken? It is noted as taken."""
    if status is None:
        return True
    identity = (status.st_dev, status.st_ino)
    is_new = identity not in seen
    seen.add(identity)
    return is_new


def _claim(provider: Provider, root: Root, entry: _Entry) -> Claim | None:
    if entry.rel:
        return provider.claim(root, _plain(entry.rel))
    return provider.claim(replace(root, path=_plain(root.path)), "")


def _ending(path: str) -> str:
    """The ending of a file's name, if it is short enough to be one: what follows the last point may be anything."""
    ending = os.path.splitext(path)[1]
    return ending if _ENDING.fullmatch(ending) else "(odd ending)" if ending else "(no ending)"


def _plain(path: str) -> str:
    for ending in _COMPRESSED:
        path = path.removesuffix(ending)
    return path


def _source(provider: Provider, host: str, root: Root, entry: _Entry, claim: Claim, taken: set[str]) -> Source:
    """The source of a claimed path. Where two roots, or two forms of one name, give the same stored path, the later one
    is numbered: neither the order of files on disk nor the place of a root on this machine is in a name.
    """
    stored = relative_path(printable(os.path.relpath(entry.path, root.base)))
    source, n = Source(provider.name, host, stored, claim), 1
    while source.source_id in taken:
        n += 1
        source = Source(provider.name, host, f"#{n}/{stored}", claim)
    taken.add(source.source_id)
    return source


def printable(path: str) -> str:
    """A path as text: bytes that are no UTF-8 stay told apart."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _walk(root: Root, seen: set[tuple[int, int]], discovery: Discovery) -> Iterator[_Entry]:
    """Every path below a root that is no plain folder, folders named like files included.

    What a link leads to comes after everything that stands where it is: a file has its own name, not that of a link.
    Folders that cannot be looked into, and links back to a folder they lie in, are entries that say so.
    """
    if not os.path.isdir(root.path):
        status = _status(root.path)
        yield _Entry(root.path, "", _problem(status), status)
        return
    folders: list[tuple[str, str, int]] = [(root.path, "", 0)]
    linked: list[tuple[str, str, int]] = []
    late: list[_Entry] = []
    while folders or linked:
        is_link = not folders
        folder, rel, depth = linked.pop(0) if is_link else folders.pop()
        entries = _listed(folder, seen)
        if isinstance(entries, str):
            discovery.problems.append(printable(f"{folder}: {entries}"))
            yield _Entry(folder, rel, f"a folder that cannot be looked into: {entries}", None, is_folder=True)
            continue
        if entries is None:
            if is_link and _is_loop(folder):
                yield _Entry(folder, rel, "a link back to a folder that it lies in", None, is_folder=True)
            elif is_link:
                discovery.unclaimed["(another name of a folder that is read)"] += 1
            continue
        held = _sorted_out(entries, rel)
        yield from held.files
        late += held.links
        for below in reversed(held.folders):
            if depth >= _MAX_DEPTH:
                discovery.problems.append(printable(f"{below.path}: more than {_MAX_DEPTH} folders deep"))
            else:
                (linked if below.is_link else folders).append((below.path, below.rel, depth + 1))
    yield from late


class _Folder(NamedTuple):
    path: str
    rel: str
    is_link: bool


class _Held(NamedTuple):
    """What a folder holds: files (and folders named like files), links to files, and folders."""

    files: list[_Entry]
    links: list[_Entry]
    folders: list[_Folder]


def _sorted_out(entries: list[os.DirEntry[str]], rel: str) -> _Held:
    held = _Held([], [], [])
    for entry in entries:
        below = f"{rel}/{entry.name}" if rel else entry.name
        status, is_link = _status(entry.path), entry.is_symlink()
        if status is not None and stat.S_ISDIR(status.st_mode):
            held.folders.append(_Folder(entry.path, below, is_link))
            if entry.name.endswith(_FILE_NAMES):
                held.files.append(_Entry(entry.path, below, _problem(status), None))
        else:
            (held.links if is_link else held.files).append(_Entry(entry.path, below, _problem(status), status))
    return held


def _listed(folder: str, seen: set[tuple[int, int]]) -> list[os.DirEntry[str]] | str | None:
    """The entries of a folder by name; None when it was walked before, or the reason why it cannot be looked into."""
    try:
        if not _is_new(os.stat(folder), seen):
            return None
        return sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        return error.strerror or str(error)


def _is_loop(link: str) -> bool:
    target, lies_in = os.path.realpath(link), os.path.realpath(os.path.dirname(link))
    return os.path.commonpath([target, lies_in]) == target


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except OSError:
        return None


def _problem(status: os.stat_result | None) -> str | None:
    if status is None:
        return "a link that leads nowhere, or no permission to look"
    if stat.S_ISREG(status.st_mode):
        return None
    if stat.S_ISFIFO(status.st_mode):
        return "a FIFO, not a file"
    return "a folder, not a file" if stat.S_ISDIR(status.st_mode) else "not a regular file"
