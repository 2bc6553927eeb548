"""What does one source say, as Arrow tables on disk?

This is what a worker runs: read, adapt, fold, mask, write Parquet. It is pure: the same bytes give the same rows,
whatever the order of sources or the size of a batch. It imports no database and no command line.
"""

from __future__ import annotations

import ctypes
import gc
import os
import resource
import sys
from dataclasses import dataclass, field, replace
from multiprocessing import parent_process
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from etl import providers
from etl.assemble import Fold
from etl.errors import SessionmartError, StoreError
from etl.filebytes import head, open_regular, take_again
from etl.finish import finish
from etl.mask import MASK_VERSION
from etl.reading import Stats, read_source
from etl.schema import PARSER_VERSION
from etl.tables import Buffers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from etl.discover import Found

#: Rows are written out after this much source, so that memory does not follow the size of the tree.
FLUSH_BYTES: Final = 16 * 1024 * 1024


class Part(NamedTuple):
    """One Parquet file of rows of one table."""

    table: str
    path: str
    rows: int


@dataclass(slots=True)
class Extracted:
    """What an extraction gave: the parts in order, sources read and failed, bytes read, and paths not recognised;
    ``vanished`` are sources whose files went away before they were opened: no row tells of them; ``worker`` is the
    process that ran it where that is a worker (else 0), ``peak_rss`` its peak memory in bytes.
    """

    parts: list[Part] = field(default_factory=list)
    sources: int = 0
    failed: int = 0
    not_recognised: int = 0
    bytes_read: int = 0
    peak_rss: int = 0
    worker: int = 0
    vanished: list[str] = field(default_factory=list)

    def by_table(self) -> dict[str, list[str]]:
        """The files of the parts by table."""
        files: dict[str, list[str]] = {}
        for part in self.parts:
            files.setdefault(part.table, []).append(part.path)
        return files

    def include(self, other: Extracted) -> Extracted:
        """This and another extraction together."""
        return Extracted(
            [*self.parts, *other.parts],
            self.sources + other.sources,
            self.failed + other.failed,
            self.not_recognised + other.not_recognised,
            self.bytes_read + other.bytes_read,
            vanished=[*self.vanished, *other.vanished],
        )


class _Unstorable(SessionmartError):
    """Gathered rows hold a value that its column cannot hold (an integer over 64 bits, say): a fault of an adapter."""


def extract(found: Sequence[Found], folder: str, label: str, key: bytes, flush_bytes: int | None = None) -> Extracted:
    """Extracts sources into Parquet parts ``<folder>/<label>-<n>-<table>.parquet``.

    ``key`` is the fingerprint key of the masking. A source that cannot be read, or over which an adapter stumbles, is a
    row with its reason; the others go on.
    """
    try:
        return _extract_batch(found, _Writer(folder, label, key, flush_bytes or FLUSH_BYTES))
    except _Unstorable as error:
        if len(found) == 1:
            return failed_source(found[0], folder, key, _describe(error.__cause__ or error))
    # which source gave it is not seen from the columns: each half is extracted again (parts are not yet handed over)
    half = len(found) // 2
    first = extract(found[:half], folder, f"{label}a", key, flush_bytes)
    return first.include(extract(found[half:], folder, f"{label}b", key, flush_bytes))


def _extract_batch(found: Sequence[Found], writer: _Writer) -> Extracted:
    collecting = gc.isenabled()
    gc.disable()  # rows are acyclic; collecting cost a fifth of the time on a large tree
    try:
        for item in found:
            _extract_one(item, writer)
        writer.flush()
    finally:
        if collecting:
            gc.enable()
        _give_back()
    writer.extracted.peak_rss = peak_rss()
    writer.extracted.worker = os.getpid() if parent_process() is not None else 0
    return writer.extracted


def _give_back() -> None:
    """What is freed goes back to the system, where its library can: else a worker grows with the number of its tasks
    (245 MB after 1 GB of source, 388 MB after 8 GB; with this the peak of the first tasks stays the peak).
    """
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:  # glibc has it, others do not
        trim(0)


class _Writer:
    """Gathers rows and writes them out in parts."""

    def __init__(self, folder: str, label: str, key: bytes, flush_bytes: int) -> None:
        self.folder, self.label, self.key, self.flush_bytes = folder, label, key, flush_bytes
        self.buffers = Buffers()
        self.extracted = Extracted()
        self._pending = 0
        self.number = 0

    def drop(self, before: dict[str, int], part: int) -> None:
        """Drops what a source that failed has given: rows above earlier lengths, or all if parts went out since.

        (Rows of it in those parts are left out by the store: its row says ``failed``.)
        """
        self.buffers.cut(before if part == self.number else dict.fromkeys(before, 0))

    def read(self, number: int) -> None:
        """So many more bytes of source were read; writes out when it is time."""
        self._pending += number
        if self._pending >= self.flush_bytes:
            self.flush()

    def flush(self) -> None:
        """Writes out what is gathered. Raises StoreError when the disk does not take it: no source is to blame."""
        self._pending = 0
        tables = finish(self.buffers, self.key)
        while (made := self._next(tables)) is not None:
            table, rows = made
            path = os.path.join(self.folder, f"{self.label}-{self.number:05d}-{table}.parquet")
            try:
                # read once and then deleted: what makes a file small costs more, here and at the reader, than it saves
                pq.write_table(rows, path, compression="none", use_dictionary=False, write_statistics=False)
            except OSError as error:
                reason = os.strerror(error.errno) if error.errno else error
                raise StoreError(f"the store could not be written: {path}: {reason}") from error
            self.extracted.parts.append(Part(table, path, rows.num_rows))
            del made, rows  # before the next is made
        self.number += 1

    def _next(self, tables: Iterator[tuple[str, pa.Table]]) -> tuple[str, pa.Table] | None:
        try:
            return next(tables, None)
        except Exception as error:
            raise _Unstorable(f"rows cannot be stored: {_describe(error)}") from error


def _extract_one(item: Found, writer: _Writer) -> None:
    provider = providers.get(item.source.provider)
    before, part = writer.buffers.lengths(), writer.number
    fold = Fold(
        item.source, writer.buffers, provider.inventory, lambda offset, length: take_again(item.path, offset, length)
    )
    if item.problem is not None:
        _unread(item, fold, writer, "not_a_file", item.problem)
        return
    try:
        stream = open_regular(item.path)
    except FileNotFoundError:
        writer.extracted.vanished.append(item.source.source_id)
        return
    except OSError as error:
        _unread(item, fold, writer, "io", error.strerror or type(error).__name__)
        return
    try:
        with stream:
            told = read_source(item, provider, fold, writer.read, stream, writer.folder)
    except (_Unstorable, StoreError):
        raise
    except Exception as error:  # noqa: BLE001 - a fault of an adapter must cost one source, not the load
        writer.drop(before, part)
        _failed(item, writer, _describe(error))
        return
    if told is None:
        writer.extracted.not_recognised += 1
        return
    writer.extracted.sources += 1
    writer.extracted.bytes_read += told.stats.size
    _source_row(replace(item, source=told.source), fold, told.stats, told.session, told.note)
    fold.census.write(writer.buffers, fold.source_id)
    writer.read(0)


def failed_source(item: Found, folder: str, key: bytes, why: str) -> Extracted:
    """The extraction of one source that could not be extracted: its row, which says why, and nothing else."""
    writer = _Writer(folder, f"failed-{item.source.source_id}", key, FLUSH_BYTES)
    _failed(item, writer, why)
    writer.flush()
    return writer.extracted


def _failed(item: Found, writer: _Writer, why: str) -> None:
    fold = Fold(item.source, writer.buffers, None, lambda _offset, _length: None)
    _source_row(item, fold, Stats(None, None, "failed", item.size), None, why)
    writer.extracted.sources += 1
    writer.extracted.failed += 1


def peak_rss() -> int:
    """Peak memory of this process, bytes (Linux counts kilobytes, macOS bytes)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _describe(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else f" at {os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
    return f"{type(error).__name__}{where}"


def _unread(item: Found, fold: Fold, writer: _Writer, reason: str, problem: str) -> None:
    writer.extracted.sources += 1
    fold.lost(reason, (0, 0, 0, item.size), problem, "", recovered=False)
    _source_row(item, fold, Stats(None, None, "unread", item.size), None, problem)


def _source_row(item: Found, fold: Fold, stats: Stats, session: str | None, note: str | None = None) -> None:
    source, claim = item.source, item.source.claim
    native = None if session is None else session.partition(":")[2]
    counted = stats.tail_state not in ("unread", "failed")
    fold.buffers["sources"].add(
        fold.source_id,
        source.host,
        source.provider,
        claim.realm,
        claim.store_kind,
        source.rel_path,
        claim.native_id,
        native,
        session,
        None,
        fold.tool_version,
        stats.size,
        stats.lines,
        stats.blank_lines,
        None if stats.lines is None else fold.census.rejected_lines,
        fold.users if counted else None,
        fold.direct_users if counted else None,
        len(fold.assistant_keys) if counted else None,
        fold.thinking if counted else None,
        len(fold.calls.requests) if counted else None,
        len(fold.calls.results) if counted else None,
        len(fold.calls.requests & fold.calls.results) if counted else None,
        head(item.path) if counted else None,
        stats.tail_state,
        note,
        PARSER_VERSION,
        MASK_VERSION,
    )
