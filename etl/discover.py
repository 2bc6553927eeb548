"""Which files on this machine are session files, and of which provider?

Folders are walked with ``scandir``; no file's content is read here and nothing is ever written. What a path grammar
claims but is no readable file (a folder, a FIFO, a dangling link) is handed on with the reason: it becomes a row.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from etl.keys import relative_path
from etl.providers.base import Root, Source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from etl.providers.base import Environment, Provider

#: Name endings of compressed session files: the grammar sees the name without them.
_COMPRESSED: Final = (".gz", ".zst")
#: Deeper trees than any provider writes; a runaway folder must not stop a load.
_MAX_DEPTH: Final = 32


@dataclass(frozen=True, slots=True)
class Found:
    """A claimed path: the source it will be, where it is, its size, and why it cannot be read (None: it can)."""

    source: Source
    path: str
    size: int
    problem: str | None = None


@dataclass(slots=True)
class Discovery:
    """What a provider's roots hold: claimed paths in path order, and counts of what the grammar does not claim."""

    found: list[Found] = field(default_factory=list)
    roots: list[Root] = field(default_factory=list)
    unclaimed: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def discover(provider: Provider, environment: Environment, host: str, named: Sequence[str] = ()) -> Discovery:
    """Everything below the provider's default roots, or below the named paths, which replace them."""
    discovery = Discovery()
    roots = [_named_root(path) for path in named] or list(provider.roots(environment))
    seen: set[tuple[int, int]] = set()
    taken: set[str] = set()
    for root in roots:
        if not os.path.lexists(root.path):
            if root.store_kind == "any":
                discovery.problems.append(f"{root.path}: no such file or folder")
            continue
        discovery.roots.append(root)
        for path, rel, problem, size in _walk(root, seen, discovery):
            _claim(provider, host, root, path, rel, problem, size, discovery, taken)
    discovery.found.sort(key=lambda found: (found.source.claim.realm or "", found.source.rel_path))
    return discovery


def _named_root(path: str) -> Root:
    whole = os.path.abspath(path)
    base = whole if os.path.isdir(whole) else os.path.dirname(whole)
    return Root(whole, base, "any")


def _claim(  # noqa: PLR0913, PLR0917 - one path and the places it is noted
    provider: Provider,
    host: str,
    root: Root,
    path: str,
    rel: str,
    problem: str | None,
    size: int,
    discovery: Discovery,
    taken: set[str],
) -> None:
    plain = rel
    for ending in _COMPRESSED:
        plain = plain.removesuffix(ending)
    claim = provider.claim(root, plain if rel or root.store_kind != "any" else "")
    if claim is None:
        discovery.unclaimed[os.path.splitext(rel)[1] or "(no ending)"] += 1
        return
    stored = relative_path(_printable(os.path.relpath(path, root.base)))
    source = Source(provider.name, host, stored, claim)
    if source.source_id in taken:  # two roots of one realm with the same paths below them
        source = Source(provider.name, host, relative_path(_printable(path.lstrip("/"))), claim)
    taken.add(source.source_id)
    discovery.found.append(Found(source, path, size, problem))


def _printable(path: str) -> str:
    """A path as text: bytes that are no UTF-8 stay told apart."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _walk(root: Root, seen: set[tuple[int, int]], discovery: Discovery) -> Iterator[tuple[str, str, str | None, int]]:
    """Every path below a root that is no plain folder: (path, path below the root, problem, size)."""
    if not os.path.isdir(root.path):
        status = _status(root.path)
        yield root.path, "", _problem(status), status.st_size if status else 0
        return
    stack = [(root.path, "", 0)]
    while stack:
        folder, rel, depth = stack.pop()
        try:
            info = os.stat(folder)
            if (info.st_dev, info.st_ino) in seen:  # a link back into a folder that was walked
                continue
            seen.add((info.st_dev, info.st_ino))
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            discovery.problems.append(f"{folder}: {error.strerror or error}")
            continue
        folders: list[tuple[str, str, int]] = []
        for entry in entries:
            below = f"{rel}/{entry.name}" if rel else entry.name
            status = _status(entry.path)
            if status is not None and stat.S_ISDIR(status.st_mode):
                if depth < _MAX_DEPTH:
                    folders.append((entry.path, below, depth + 1))
                if entry.name.endswith((".jsonl", "-session.json", ".meta.json")):
                    yield entry.path, below, "a folder, not a file", 0
            else:
                yield entry.path, below, _problem(status), status.st_size if status else 0
        stack.extend(reversed(folders))


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
