"""Which rows do the tables of a SQLite file hold, read without touching the file or what stands beside it?

Opening a database in WAL mode, even read-only, writes a ``-shm`` file beside it, and a writer may hold it locked. So a
file that stands alone is opened ``immutable`` (no lock is taken or heeded, nothing is written), and one with a
write-ahead log or a rollback journal beside it is copied with it, and the copy is opened: the engine then brings it to
its last committed state. What is read is an allow-list of tables and columns; what a database does not have is NULL.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.request import pathname2url

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: What a database may have beside it: together with them it is copied, and they count for its stamp.
BESIDE: Final = ("-wal", "-journal")
_HEADER: Final = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class DbTable:
    """What is read of one table: the column of its key, further columns, and those that its rows are ordered by.

    The order gives the rows their rank (``line_no``): it must be that in which things were said, so a time comes before
    a random key. The key always breaks ties.
    """

    name: str
    key: str
    columns: tuple[str, ...]
    order: tuple[str, ...] = ()


class DbRecord(NamedTuple):
    """One row. ``line_no`` is its rank over all tables, from 1; ``row_key`` is ``table:key``; ``value`` holds the
    columns of the allow-list that the table has, and ``table``.
    """

    line_no: int
    child: int
    raw: bytes
    value: dict[str, Any]
    row_key: str


@dataclass(slots=True)
class SqliteReader:
    """Iterate once: the rows of the tables, in the order of the list. Nothing is raised for what the file holds.

    Afterwards ``fault`` says why reading ended early (None: it did not), ``tables_found`` how many of the tables there
    are, and ``rows`` how many rows were given. ``scratch`` is the folder a copy is made in, if one is needed.
    """

    path: str
    tables: Sequence[DbTable]
    scratch: str
    fault: str | None = None
    tables_found: int = 0
    rows: int = field(default=0)

    def __iter__(self) -> Iterator[DbRecord]:
        try:
            if not _is_sqlite(self.path):
                self.fault = "no SQLite database"
                return
            if not is_written_beside(self.path):
                yield from self._read(_uri(self.path, "immutable=1"))
                return
            with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
                yield from self._read(_uri(_copied(self.path, folder), "mode=rw"))
        except (sqlite3.Error, OSError) as error:
            self.fault = f"{type(error).__name__}: {error.strerror if isinstance(error, OSError) else error}"

    def _read(self, uri: str) -> Iterator[DbRecord]:
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
            connection.text_factory = _text
            connection.execute("pragma trusted_schema = off")
            for table in self.tables:
                present = {row[1] for row in connection.execute(f"pragma table_info({table.name})")}
                if table.key in present:
                    self.tables_found += 1
                    yield from self._rows(connection, table, present)

    def _rows(self, connection: sqlite3.Connection, table: DbTable, present: set[str]) -> Iterator[DbRecord]:
        names = [name for name in (table.key, *table.columns) if name in present]
        order = [name for name in (*table.order, table.key) if name in present]
        # names come from an allow-list in the provider's code, never from a file
        statement = f"select {', '.join(names)} from {table.name} order by {', '.join(order)}"  # noqa: S608
        for row in connection.execute(statement):
            self.rows += 1
            value = dict(zip(names, row, strict=True)) | {"table": table.name}
            yield DbRecord(self.rows, 0, b"", value, f"{table.name}:{value[table.key]}")


def is_written_beside(path: str) -> bool:
    """Does a write-ahead log or a rollback journal with content stand beside a database?"""
    return any(_size(path + ending) > 0 for ending in BESIDE)


def stamp_with_sides(path: str, stamp: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """The stamp of a database together with what stands beside it: what is committed may be there alone for days."""
    size, modified, changed, inode = stamp
    for ending in BESIDE:
        try:
            status = os.stat(path + ending)
        except OSError:
            continue
        size += status.st_size
        modified, changed = max(modified, status.st_mtime_ns), max(changed, status.st_ctime_ns)
    return size, modified, changed, inode


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _copied(path: str, folder: str) -> str:
    copy = os.path.join(folder, "copy.db")
    for ending in ("", *BESIDE):
        if not ending or os.path.exists(path + ending):
            shutil.copyfile(path + ending, copy + ending)
    return copy


def _is_sqlite(path: str) -> bool:
    with open(path, "rb") as file:
        head = file.read(len(_HEADER))
    return head == _HEADER or not head  # an empty file is an empty database


def _uri(path: str, how: str) -> str:
    return f"file:{pathname2url(os.path.abspath(path))}?{how}"


def _text(raw: bytes) -> str:
    """Text as it stands; bytes that are no UTF-8 stay visible instead of ending the table."""
    return raw.decode("utf-8", "replace")
