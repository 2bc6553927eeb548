"""What does one event say, given what the same source said before?

The fold's state is ids, places, hashes and counters, never texts: its memory follows the number of messages of one
source, not its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from etl.assemble.calls import CallKeys
from etl.assemble.census import Census
from etl.assemble.messages import Message
from etl.assemble.rows import Rows, usage_values
from etl.events import (
    Contradiction,
    Dialogue,
    Event,
    Merged,
    ModelCall,
    ProviderRow,
    RecordOpened,
    SessionEvent,
    SessionFact,
    ToolRequest,
    ToolResult,
    ToolSpan,
    TurnMark,
    Unread,
    UnreadItem,
)
from etl.shape import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from etl.assemble.messages import Place
    from etl.events import ContentBlock
    from etl.providers.base import RecordLike, Source
    from etl.tables import Buffers

    Inventory = Callable[[Mapping[str, Any]], Iterable[ContentBlock]]
    Reread = Callable[[int, int], dict[str, Any] | None]

_THINKING: Final = frozenset({"thinking", "redacted_thinking"})
#: Defects of the source as a whole: they are no line.
_NO_LINE: Final = frozenset({"io", "not_a_file"})


class _Seen(NamedTuple):
    """A record with a uuid: the hash of its bytes, its place and extent, whether its message was complete, and how it
    was counted: as what, and with how many thinking blocks.
    """

    raw_hash: int
    line_no: int
    child: int
    offset: int
    length: int
    complete: bool
    counted: str | None
    thinking: int


@dataclass(slots=True)
class _Call:
    """A call of a message: its key, the hash of its arguments, where its row stands, and when it was asked for."""

    key: str
    args_hash: int
    place: Place
    ts: int | None


class Fold:
    """The facts of one source.

    The extractor calls :meth:`begin` for each record before the adapter sees it, :meth:`take` for each event and
    :meth:`end` once; defects of the reader go to :meth:`lost`. ``reread(offset, length)`` gives an earlier line again,
    to tell a resend with other spacing from a conflict.
    """

    def __init__(self, source: Source, buffers: Buffers, inventory: Inventory | None, reread: Reread) -> None:
        self.source, self.source_id = source, source.source_id
        self.buffers, self.inventory, self.reread = buffers, inventory, reread
        self.rows, self.census, self.calls = Rows(self.source_id, buffers), Census(), CallKeys()
        self.tool_version: str | None = None
        self.users = self.direct_users = self.thinking = 0
        self.assistant_keys: set[tuple[str, str]] = set()
        self.sessions: set[str] = set()
        self._messages: dict[tuple[str, str], Message] = {}
        self._seen: dict[tuple[str, str], _Seen] = {}
        self._usage: dict[tuple[str, str, str, str], tuple[Any, ...]] = {}
        self._message_calls: dict[tuple[str, str, str], _Call] = {}
        self._pulled: RecordLike | None = None
        self._opened: RecordOpened | None = None
        self._is_answered = True
        self._is_resend = False
        self._listed = 0
        self._message: Message | None = None
        rows = self.rows
        self._say: dict[type, Callable[[RecordOpened, Any], None]] = {
            Dialogue: self._dialogue,
            Merged: self._merged,
            ToolRequest: self._request,
            ToolResult: self._result,
            ToolSpan: rows.span,
            TurnMark: rows.turn_mark,
            ModelCall: self._model_call,
            SessionFact: self._fact,
            SessionEvent: rows.event,
            UnreadItem: self._item,
            ProviderRow: rows.provider_row,
            Contradiction: rows.contradiction,
        }

    # -- the extractor's side

    def begin(self, record: RecordLike) -> None:
        """A record goes to the adapter; the one before it is complete."""
        if self._pulled is not None:
            self._close()
        self._pulled, self._is_answered = record, False

    def end(self) -> None:
        """No record follows."""
        self._close()
        self._pulled = None
        self.census.settle()

    def take(self, event: Event) -> None:
        """One event of the adapter. What a resent record says is not said again."""
        say = self._say.get(type(event))
        if say is None:
            if isinstance(event, RecordOpened):
                self._record(event)
            else:
                self._unread(event)  # type: ignore[arg-type] # the only other event without a record
        elif not self._is_resend:
            if self._opened is None:
                raise ValueError("an adapter said something before it opened a record")
            say(self._opened, event)

    def lost(self, reason: str, place: tuple[int, int, int, int], text: str, digest: str, *, recovered: bool) -> None:
        """A defect of the reader: line number, child, byte offset and length; ``text`` is the line as far as kept.

        ``digest`` is given where the line was too long to keep; otherwise it is taken from the masked text later.
        """
        line_no, child, *extent = place
        self.rows.reject((line_no, child, None), (extent[0], extent[1]), reason, text, digest, recovered=recovered)
        if not recovered and reason not in _NO_LINE:
            self.census.lost_line(reason, line_no)

    def _close(self) -> None:
        if not self._is_answered and self._pulled is not None:
            # an adapter that says nothing of a record would lose it silently
            self.census.record("unknown", "(no event)", self._pulled.line_no)
        self._shut()

    def _shut(self) -> None:
        """The open record is complete. A line that is a frame holds several."""
        if self._message is not None:
            if self._opened is not None and self._opened.closes_message:
                self._message.closed = True
            self._message = None
        self._opened = None
        self._is_resend = False

    def _extent(self) -> tuple[int, int]:
        """Byte offset and length of the line of the record at hand (0 for documents)."""
        return getattr(self._pulled, "offset", 0), getattr(self._pulled, "length", 0)

    # -- records

    def _record(self, event: RecordOpened) -> None:
        if self._opened is not None:
            self._shut()
        self._is_answered, self._opened = True, event
        self.rows.open_record(again=event.again)
        if event.again:
            return
        blocks: list[ContentBlock] = []
        if self.inventory is not None and event.role in ("user", "assistant"):
            blocks = list(self.inventory(event.value))
            self.rows.content_blocks(event, blocks)
        self._listed = len(blocks)
        if event.uuid is not None and self._is_told(event, blocks):
            return
        self.census.record("used", event.kind, event.line_no)
        if event.counted is not None or blocks:
            self._count(event, blocks)
        if event.message_key is not None and event.role == "assistant":
            slot = (event.session_id, event.group_key or event.message_key)
            message = self._messages.get(slot)
            if message is None:
                message = self._messages[slot] = Message()
            self._message = message
        if event.chained:
            self.sessions.add(event.session_id)
            self.rows.record(event)

    def _is_told(self, event: RecordOpened, blocks: list[ContentBlock]) -> bool:
        """Was this record said before (a resend), or does an earlier one with its id win? Else it is remembered."""
        slot, raw_hash = (event.session_id, event.uuid or ""), hash(event.raw)
        earlier = self._seen.get(slot)
        if earlier is not None:
            is_resend, before = earlier.raw_hash == raw_hash, None
            if not is_resend:  # the same JSON with other spacing or key order is a resend too
                before = self._content(earlier)
                is_resend = before is not None and before == canonical(event.value)
            if is_resend:
                for block in blocks:
                    place, into = (
                        (event.line_no, event.child, block.block),
                        (earlier.line_no, earlier.child, block.block),
                    )
                    self.rows.merge(place, into, "resend")
                return self._resent(event)
            if not self._wins(event, earlier, before):
                return self._resent(event)
        offset, length = self._extent()
        if event.child or len(event.raw) != length:  # a part of a line cannot be read again by itself
            length = 0
        counts = (event.counted, _thinking(blocks))
        extent = (event.line_no, event.child, offset, length)
        self._seen[slot] = _Seen(raw_hash, *extent, event.closes_message, *counts)
        return False

    def _resent(self, event: RecordOpened) -> bool:
        self._is_resend = True
        self.census.record("skipped", f"{event.kind}:resend", event.line_no)
        return True

    def _content(self, earlier: _Seen) -> str | None:
        """What an earlier record said, read again, as canonical JSON; None where it cannot be read again."""
        before = self.reread(earlier.offset, earlier.length) if earlier.length else None
        return None if before is None else canonical(before)

    def _wins(self, event: RecordOpened, earlier: _Seen, before: str | None) -> bool:
        """The same id with other content than ``before``: a conflict is named, and the last complete one is used."""
        wins = not event.first_wins and (event.closes_message or not earlier.complete)
        here, there = (event.line_no, event.child, None), (earlier.line_no, earlier.child, None)
        self.rows.conflict(
            event.line_no,
            earlier.line_no,
            "record",
            event.uuid,
            canonical(event.value),
            before,
            "first_wins" if event.first_wins else "last_complete_wins",
            "this" if wins else "other",
        )
        if wins:
            self.rows.merge(there, here, "resend")
            self._forget(event, there[:2])
            self._discount(earlier)
        else:
            self.rows.merge(here, there, "resend")
        return wins

    def _forget(self, event: RecordOpened, record: tuple[int, int]) -> None:
        """The rows of a record are replaced: what its message and calls remember of it goes."""
        group = (event.session_id, event.group_key or event.message_key or "")
        if event.message_key is not None and group in self._messages:
            self._messages[group].forget(record)
        for slot in [slot for slot, call in self._message_calls.items() if call.place[:2] == record]:
            self.calls.withdrawn(slot[0], slot[2], self._message_calls.pop(slot).key)

    def _count(self, event: RecordOpened, blocks: list[ContentBlock]) -> None:
        if event.counted == "assistant":
            self.assistant_keys.add((event.session_id, event.group_key or event.message_key or ""))
        elif event.counted is not None:
            self.users += event.counted != "direct"
            self.direct_users += event.counted != "user"
        self.thinking += _thinking(blocks)

    def _discount(self, replaced: _Seen) -> None:
        """A record in whose place another stands counts no more (an assistant's is told by its message)."""
        if replaced.counted in ("user", "direct_user", "direct"):
            self.users -= replaced.counted != "direct"
            self.direct_users -= replaced.counted != "user"
        self.thinking -= replaced.thinking

    def _unread(self, event: Unread) -> None:
        self._shut()
        self._is_answered = True
        self.census.record(event.disposition, event.kind, event.line_no)
        if event.disposition == "rejected":
            # the type names it: a structure is never serialised
            place = (event.line_no, event.child, None)
            self.rows.reject(place, self._extent(), "invalid_shape", event.kind, recovered=False)

    # -- what a record says

    def _merged(self, at: RecordOpened, event: Merged) -> None:
        into = (*(event.into or (at.line_no, at.child)), event.into_block)
        self.rows.merge((at.line_no, at.child, event.block), into, event.reason)

    def _dialogue(self, at: RecordOpened, event: Dialogue) -> None:
        message, block = self._message, event.block
        if message is None or block is None:
            self.rows.dialogue(at, event)
            return
        record, place = (at.line_no, at.child), (at.line_no, at.child, block)
        known = message.restated(event.kind, event.text, record)
        if known is not None:
            self.rows.merge(place, known.place, "resend")
            return
        grown = message.grown(event.kind, event.text, block, record, self._listed)
        if grown is None:
            message.add(event.kind, event.text, place, record)
        else:
            self.rows.merge(grown.place, place, "snapshot")
            message.replace(grown, event.text, place, record)
        self.rows.dialogue(at, event)

    def _request(self, at: RecordOpened, event: ToolRequest) -> None:
        args = event.args if isinstance(event.args, str) else None if event.args is None else canonical(event.args)
        place = (at.line_no, at.child, event.block)
        synthetic = f"~{at.line_no}.{event.block or 0}"
        ts = at.ts
        if event.call_id is None and self._message is not None:
            told = self._message.restated(f"call {event.name_raw}", args or "", place[:2])
            if told is not None:  # a snapshot lists the call again; without an id it is known by name and arguments
                self.rows.merge(place, told.place, "resend")
                return
        slot = (at.session_id, at.message_key or "", event.call_id or synthetic)
        known = self._message_calls.get(slot) if at.message_key is not None else None
        if known is None or known.place[:2] == place[:2]:
            key = self.calls.requested(at.session_id, event.call_id, synthetic)
            if self._message is not None:
                self._message.add(f"call {event.name_raw}", args or "", place, place[:2])
        elif known.args_hash == hash(args):
            self.rows.merge(place, known.place, "resend")
            return
        else:  # a growing snapshot of the call: its last form counts, from when it was first asked for
            key, ts = known.key, known.ts
            self.rows.merge(known.place, place, "snapshot")
        self._message_calls[slot] = _Call(key, hash(args), place, ts)
        self.rows.request(at, event, key, args, ts)

    def _result(self, at: RecordOpened, event: ToolResult) -> None:
        key = self.calls.answered(at.session_id, event.call_id, f"~{at.line_no}.{event.block or 0}")
        said = hash((event.text, event.is_error))
        earlier = self.calls.first_result(at.session_id, key, said, at.line_no)
        if earlier is not None and earlier[0] != said:
            self.rows.conflict(at.line_no, earlier[1], "tool_result", key, event.text, None, "first_wins", "other")
        self.rows.result(at, event, key)

    def _model_call(self, at: RecordOpened, event: ModelCall) -> None:
        slot = (at.session_id, event.request_key, event.grain, event.owner)
        values = usage_values(event)
        if self._usage.get(slot) != values:  # the same snapshot again says nothing new
            self._usage[slot] = values
            self.rows.model_call(at, event)

    def _fact(self, at: RecordOpened, event: SessionFact) -> None:
        if event.key == "version":
            self.tool_version = event.value
        self.rows.session_fact(at, event)

    def _item(self, at: RecordOpened, event: UnreadItem) -> None:
        self.census.count("item", event.disposition, event.item_type, at.line_no)
        place = (at.line_no, at.child, event.block)
        self.rows.reject(place, self._extent(), "invalid_shape", event.item_type, recovered=True)


def _thinking(blocks: list[ContentBlock]) -> int:
    return sum(block.block_type in _THINKING for block in blocks)
