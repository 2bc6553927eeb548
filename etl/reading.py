"""How do the records of one source come through adapter and fold, by the kind of its container?

A JSONL stream, one JSON document, a document that holds a list of messages, one text, a SQLite file, or a file that is
never read. What the reader could not read goes to the fold beside the records, in file order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from etl.decode import BOM, decode_line
from etl.events import RecordOpened
from etl.filebytes import readable, take
from etl.jsonl import LINE_CAP, Defect, JsonlReader, Record
from etl.loglines import LineReader
from etl.sequence import in_sequence
from etl.shape import canonical
from etl.sqlitedb import SqliteReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from etl.assemble import Fold
    from etl.discover import Found
    from etl.providers.base import Provider, RecordLike, Source
    from etl.sqlitedb import DbRecord

    Progress = Callable[[int], None]

#: A file's session is told by its first records, at most this much of it.
HEAD_BYTES: Final = 256 * 1024
#: Where a document of messages keeps them.
_LISTS: Final = ("messages", "entries", "items", "history", "conversation")


class Stats(NamedTuple):
    """Physical lines, blank ones, state of the tail, and bytes; lines are None where a file has none."""

    lines: int | None
    blank_lines: int | None
    tail_state: str
    size: int


@dataclass(frozen=True, slots=True)
class Told:
    """What reading a source gave: the source as its records settle it, its figures, the key of the session the file
    belongs to (None: of none, or of many), and a note for who asks why it was not read in whole.
    """

    source: Source
    stats: Stats
    session: str | None
    note: str | None = None


def read_source(
    item: Found, provider: Provider, fold: Fold, progress: Progress, stream: Any, scratch: str
) -> Told | None:
    """Reads one source; None when its records are another's. ``scratch`` is a folder for copies of databases."""
    container = item.source.claim.container
    if container == "opaque":
        return _pass_over(item, fold)
    if container == "text":
        return _read_text(item, provider, fold, stream)
    if container == "sqlite":
        return _read_database(item, provider, fold, progress, scratch)
    if container in ("json", "json_array", "messages"):
        return _read_document(item, provider, fold, stream)
    return _read_lines(item, provider, fold, progress, stream, scratch)


def _read_lines(
    item: Found, provider: Provider, fold: Fold, progress: Progress, stream: Any, scratch: str
) -> Told | None:
    reader = LineReader(stream) if item.source.claim.container == "lines" else JsonlReader(stream)
    pulled = iter(reader)
    head = _first(pulled)
    records = [record for record in head if isinstance(record, Record)]
    source = _settled(item.source, provider, records)
    if source is None:
        return None
    session = _session(source, provider, records)
    items: Iterator[Record | Defect] = chain(head, pulled)
    if provider.numbered is not None:
        items = in_sequence(items, provider.numbered, item.path, scratch)
    feed = _feed(items, fold, progress)
    for event in provider.adapt(source, session, feed):
        fold.take(event)
    for _ in feed:  # an adapter that stops early does not hide the rest
        pass
    fold.end()
    fold.census.blank_lines(reader.blank_lines)
    stats = Stats(reader.lines, reader.blank_lines, reader.tail_state, reader.size)
    return Told(source, stats, _owner(source, session, fold))


def _session(source: Source, provider: Provider, records: Sequence[RecordLike]) -> str:
    """The session a file belongs to; empty where its provider says that it is none's."""
    native = provider.native_session(source, records)
    return source.session_id(native) if native else ""


def _settled(source: Source, provider: Provider, records: Sequence[RecordLike]) -> Source | None:
    """The source with its claim as the records settle it; None when they are of something else."""
    claim = source.claim
    if claim.certain:
        return source
    told = provider.recognise(records)
    if told is False or (told is None and claim.sniffed):
        return None
    return source if provider.settle is None else replace(source, claim=provider.settle(claim, records))


def _owner(source: Source, session: str, fold: Fold) -> str | None:
    """The session a file belongs to: a log makes one only where its records tell of it."""
    if not session or source.claim.holds == "many" or (source.claim.holds == "log" and session not in fold.sessions):
        return None
    return session


def _first(pulled: Iterator[Record | Defect]) -> list[Record | Defect]:
    head: list[Record | Defect] = []
    for item in pulled:
        head.append(item)
        if item.offset + item.length >= HEAD_BYTES:
            break
    return head


def _feed(items: Iterator[Record | Defect], fold: Fold, progress: Progress) -> Iterator[Record]:
    """Records for the adapter; defects go to the fold beside it."""
    last = 0
    for item in items:
        if isinstance(item, Record):
            fold.begin(item)
            yield item
        else:
            _lost(fold, item)
        if item.line_no != last:
            progress(item.length)
            last = item.line_no


def _lost(fold: Fold, defect: Defect) -> None:
    place = (defect.line_no, defect.child, defect.offset, defect.length)
    fold.lost(defect.reason, place, readable(defect.raw), defect.digest, recovered=defect.recovered)


def _read_document(item: Found, provider: Provider, fold: Fold, stream: Any) -> Told:
    """One JSON document: a record, one for each of its messages as well, or one for each element of an array; or a
    reject with its reason.
    """
    source = item.source
    container = source.claim.container
    raw, is_whole = take(stream, LINE_CAP + 1)
    value, reason = (None, "oversize") if len(raw) > LINE_CAP else _decode(raw, container) if is_whole else (None, "io")
    items = list(enumerate(value or ()))
    records = [Record(1, child, 0, len(raw), raw, found) for child, found in items if isinstance(found, dict)]
    if container == "messages" and records:
        records += messages_of(records[0].value)
    session = _session(source, provider, records)
    if value is None:
        fold.lost(reason or "malformed", (1, 0, 0, len(raw)), readable(raw[:4096]), "", recovered=False)
    for child, found in items:
        if not isinstance(found, dict):  # its type names it: it may be anything
            fold.lost("not_object", (1, child, 0, len(raw)), type(found).__name__, "", recovered=False)
    says_something = _adapt(source, session, records, provider, fold)
    stats = Stats(None, None, "complete" if is_whole else "truncated", len(raw))
    # a document that says nothing makes no session
    return Told(source, stats, _owner(source, session, fold) if says_something else None)


def _decode(raw: bytes, container: str) -> tuple[list[Any] | None, str | None]:
    """The records of one document: itself, or the elements of an array, which should be objects."""
    if container != "json_array":
        value, reason = decode_line(raw)
        return (None if value is None else [value]), reason
    value, reason = decode_line(b'{"items":' + raw.removeprefix(BOM) + b"}")
    items = None if value is None else value["items"]
    return (items, reason) if isinstance(items, list) else (None, reason or "not_object")


def messages_of(document: dict[str, Any]) -> Iterator[Record]:
    """The messages of a document: children 1, 2, … of its one line."""
    listed = next((document[key] for key in _LISTS if isinstance(document.get(key), list)), ())
    for child, value in enumerate(listed, 1):
        if isinstance(value, dict):
            yield Record(1, child, 0, 0, canonical(value).encode("utf-8", "surrogatepass"), value)


def _adapt(source: Source, session: str, records: Iterable[RecordLike], provider: Provider, fold: Fold) -> bool:
    """Runs records that are all there through adapter and fold; was any of them used?"""

    def feed() -> Iterator[RecordLike]:
        for record in records:
            fold.begin(record)
            yield record

    says_something = False
    for event in provider.adapt(source, session, feed()):
        fold.take(event)
        says_something = says_something or isinstance(event, RecordOpened)
    fold.end()
    return says_something


def _read_text(item: Found, provider: Provider, fold: Fold, stream: Any) -> Told:
    """A file that is one text: a record whose bytes are the file's; longer than a line may be, it is a reject."""
    source = item.source
    raw, is_whole = take(stream, LINE_CAP + 1)
    if len(raw) > LINE_CAP or not is_whole:
        fold.lost("oversize" if is_whole else "io", (1, 0, 0, len(raw)), readable(raw[:4096]), "", recovered=False)
        records = []
    else:
        records = [Record(1, 0, 0, len(raw), raw, {})]
    session = source.session_id(source.claim.native_id)
    _adapt(source, session, records, provider, fold)
    return Told(
        source, Stats(None, None, "complete" if is_whole else "truncated", len(raw)), _owner(source, session, fold)
    )


def _read_database(item: Found, provider: Provider, fold: Fold, progress: Progress, scratch: str) -> Told | None:
    """The rows of a SQLite file. One that cannot be read, or not to its end, is a reject that says why; what was read
    of it stays.
    """
    source = item.source
    reader = SqliteReader(item.path, provider.tables, scratch)
    session = source.session_id(source.claim.native_id)
    _adapt(source, session, _paced(reader, item.size, progress), provider, fold)
    if not reader.tables_found and not source.claim.certain:
        return None
    if reader.fault is not None:
        fold.lost("io", (0, 0, 0, item.size), reader.fault, "", recovered=False)
    stats = Stats(None, None, "complete" if reader.fault is None else "truncated", item.size)
    return Told(source, stats, _owner(source, session, fold), reader.fault)


def _paced(reader: SqliteReader, size: int, progress: Progress) -> Iterator[DbRecord]:
    """The rows, with the bytes of their texts as progress (a database is often mostly something else)."""
    held = 0
    for record in reader:
        yield record
        held += sum(len(text) for text in record.value.values() if isinstance(text, str))
        if held >= HEAD_BYTES:
            progress(min(held, size))
            held = 0


def _pass_over(item: Found, fold: Fold) -> Told:
    """A file that may be encrypted: that it is there is all that is said of it."""
    fold.census.record("skipped", item.source.claim.store_kind, 1)
    fold.end()
    return Told(item.source, Stats(None, None, "complete", item.size), None, "not read: it may be encrypted")
