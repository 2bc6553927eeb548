"""What evidence does a Qoder Bridge leave of its batches, runs and turns, and what does it say?

``paths``: which files. ``diagnostics``, ``transport``, ``debuglog``, ``documents``: what each kind of file says.
``turns``: one turn as rows, dialogue and calls, by the rules of ``stream``, ``answers`` and ``envelopes``. Facts and
their evidence: docs/providers.md.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from etl.events import ContentBlock, RecordOpened
from etl.providers.base import Provider
from etl.providers.qoder_bridge import paths, rows
from etl.providers.qoder_bridge.debuglog import MARK, DebugLog
from etl.providers.qoder_bridge.diagnostics import LABELS, Diagnostics
from etl.providers.qoder_bridge.documents import adapt_document
from etl.providers.qoder_bridge.messages import TYPES, content_of
from etl.providers.qoder_bridge.transport import LABELS as FRAMES
from etl.providers.qoder_bridge.transport import Transport
from etl.providers.qoder_bridge.turns import Turn
from etl.shape import as_dict, as_list, as_str, as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from etl.events import Event
    from etl.providers.base import RecordLike, Source

#: Evidence that is a batch by itself (that of a harness has its row from the summary), and what kind of batch.
_BATCHES: Final = {paths.REPLAY: "replay", paths.LOG: "log", paths.ANY: "stream"}
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z", re.IGNORECASE)


def recognise(records: Iterable[RecordLike]) -> bool | None:
    """Do first records look like evidence of a Bridge: diagnostics, transport frames, SDK messages, or its log?"""
    seen = None
    for record in records:
        seen = False
        if record.raw.startswith(MARK) or _form(record.value) is not None:
            return True
    return seen


def _form(value: Mapping[str, Any]) -> str | None:
    """Which kind of line a record is: of diagnostics, of transport, or a message of the SDK itself."""
    label = as_str(value.get("label"))
    if label is not None and "payload" in value:
        if label in FRAMES:
            return paths.TRANSPORT
        return paths.DIAGNOSTICS if label in LABELS or "requestId" in value else None
    is_message = as_str(value.get("type")) in TYPES and "uuid" in value and "session_id" in value
    return paths.ANY if is_message and "sessionId" not in value else None


def native_session(source: Source, head: Sequence[RecordLike]) -> str:
    """The native id of the session a file belongs to: a run of a batch is one, a log, and a stream of the SDK.
    Documents and replays are of none ('').
    """
    claim = source.claim
    place = paths.place_of(claim)
    if claim.store_kind in (paths.DIAGNOSTICS, paths.TRANSPORT):
        return f"{place.batch_id}/run-{place.run}"
    if claim.store_kind in (paths.LOG, paths.ANY):
        return _stated(head) or claim.native_id
    return ""


def _stated(head: Sequence[RecordLike]) -> str | None:
    """The first session id of the SDK that the first records state."""
    for record in head:
        if record.raw.startswith(MARK):
            found = re.search(rb'"session_id":"([0-9a-fA-F-]{36})"', record.raw)
            told = found[1].decode() if found else None
        else:
            told = as_text(record.value.get("session_id")) or as_text(
                as_dict(record.value.get("payload")).get("session_id")
            )
        if told and _UUID.match(told):
            return told
    return None


def adapt(source: Source, session: str, records: Iterator[RecordLike]) -> Iterator[Event]:
    """The adapter: one grammar for each kind of file."""
    kind, place = source.claim.store_kind, paths.place_of(source.claim)
    if source.claim.container.startswith("json_") or source.claim.container == "json":
        yield from adapt_document(source, records)
        return
    native = session.partition(":")[2]
    if kind == paths.LOG:
        reader: DebugLog | Diagnostics | Transport | _Messages = DebugLog(native, session)
    else:
        first = next(records, None)
        if kind == paths.ANY and first is not None:
            kind = _form(first.value) or paths.ANY
            place = paths.Place(native or source.claim.native_id, 1, 1)
        key = rows.TurnKey(place.batch_id, place.run, place.turn)
        if kind == paths.REPLAY:
            key.evidence = rows.REPLAYED
            request = None if first is None else as_text(first.value.get("requestId"))
            key.batch_id = f"{place.batch_id}/{request[:8]}" if request else place.batch_id
        reader = _reader(kind, key, session)
        records = chain(() if first is None else (first,), records)
    for record in records:
        yield from reader.read(record)
    yield from reader.end()
    source_kind = _BATCHES.get(source.claim.store_kind)
    if source_kind is not None:
        yield RecordOpened(0, 0, b"", {}, session, "(batch)", again=True)
        yield rows.batch(reader.batch_id, source_kind)


def _reader(kind: str, key: rows.TurnKey, session: str) -> Diagnostics | Transport | _Messages:
    if kind == paths.TRANSPORT:
        return Transport(key, session)
    if kind == paths.ANY:
        return _Messages(Turn(key, session, prefix=""))
    return Diagnostics(Turn(key, session))


class _Messages:
    """Reads a stream of SDK messages as the worker writes them, a message a line: one turn, without times."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.batch_id = turn.key.batch_id
        self.lines = 0

    def read(self, record: RecordLike) -> Iterator[Event]:
        self.lines += 1
        if self.lines == 1:
            self.turn.place = (record.line_no, record.child)
        yield from self.turn.message(record, "sdk_message", record.value, rows.Moment(self.lines, None), None)

    def end(self) -> Iterator[Event]:
        yield from self.turn.end()


def inventory(record: Mapping[str, Any]) -> Iterator[ContentBlock]:
    """The items of an assistant message that holds no text, walked without the adapter. Text is put together with that
    of other messages first: the boundaries are compared with each other instead (``boundary_compare``).
    """
    message = as_dict(as_dict(record.get("payload")).get("message")) if "payload" in record else record
    items = as_list(content_of(dict(message))) if message.get("type") == "assistant" else []
    if any(isinstance(item, dict) and item.get("type") == "text" and item.get("text") for item in items):
        return
    for block, item in enumerate(items):
        if not isinstance(item, dict):
            yield ContentBlock("assistant", block, None, None, None, None, "rejected")
        elif item.get("type") == "thinking":
            leaf = as_str(item.get("thinking"))
            disposition = "used" if leaf else "skipped"
            yield ContentBlock("assistant", block, "thinking", "VARCHAR", len(leaf or ""), None, disposition)
        elif item.get("type") not in ("text", "tool_use"):
            kind = item.get("type")
            named = kind if isinstance(kind, str) else "(no type)"
            yield ContentBlock("assistant", block, named, None, None, None, "unknown")


PROVIDER: Final = Provider(
    name="qoder_bridge",
    title="Qoder Bridge evidence",
    roots=paths.roots,
    claim=paths.claim,
    recognise=recognise,
    native_session=native_session,
    adapt=adapt,
    inventory=inventory,
)
