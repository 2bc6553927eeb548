"""How does one event become rows, given what the same source said before?

The fold's state is ids, places, hashes and counters, never texts: its memory follows the number of messages of one
source, not its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from etl.assemble.calls import CallKeys
from etl.assemble.census import Census
from etl.assemble.envelope import is_raw_envelope
from etl.assemble.messages import Message
from etl.events import (
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
from etl.keys import fact_id, table_salt
from etl.schema import TABLES
from etl.shape import canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from etl.events import ContentBlock
    from etl.providers.base import RecordLike, Source
    from etl.tables import Buffers

    Inventory = Callable[[Mapping[str, Any]], Iterator[ContentBlock]]
    Reread = Callable[[int, int], dict[str, Any] | None]

_THINKING = frozenset({"thinking", "redacted_thinking"})


@dataclass(slots=True)
class _Seen:
    """A record with a uuid: the hash of its bytes, its place, and whether its message was complete."""

    raw_hash: int
    line_no: int
    child: int
    offset: int
    length: int
    complete: bool


class Fold:
    """The rows of one source.

    The extractor calls :meth:`begin` for each record before the adapter sees it, :meth:`take` for each event and
    :meth:`end` once; defects of the reader go to :meth:`lost`. ``reread(offset, length)`` gives an earlier line again,
    to tell a resend with other spacing from a conflict.
    """

    def __init__(self, source: Source, buffers: Buffers, inventory: Inventory | None, reread: Reread) -> None:
        self.source, self.source_id = source, source.source_id
        self.buffers, self.inventory, self.reread = buffers, inventory, reread
        self.census, self.calls = Census(), CallKeys()
        self.tool_version: str | None = None
        self.users = self.direct_users = self.thinking = 0
        self.assistant_keys: set[tuple[str, str]] = set()
        self._salts = {name: table_salt(self.source_id, name) for name in TABLES}
        self._messages: dict[tuple[str, str], Message] = {}
        self._seen: dict[tuple[str, str], _Seen] = {}
        self._usage: dict[tuple[str, str, str, str], tuple[Any, ...]] = {}
        self._call_entries: dict[tuple[str, str, str], tuple[str, int, tuple[int, int, int | None], int | None]] = {}
        self._ordinals: dict[tuple[str, int | None], int] = {}
        self._pulled: RecordLike | None = None
        self._answered = True
        self._open: RecordOpened | None = None
        self._is_resend = False
        self._message: Message | None = None
        self._take: dict[type, Callable[[Any], None]] = {
            RecordOpened: self._record,
            Unread: self._unread,
            Dialogue: self._dialogue,
            Merged: self._merged,
            ToolRequest: self._request,
            ToolResult: self._result,
            ToolSpan: self._span,
            TurnMark: self._mark,
            ModelCall: self._model_call,
            SessionFact: self._fact,
            SessionEvent: self._event,
            UnreadItem: self._item,
            ProviderRow: self._provider_row,
        }

    # -- the extractor's side

    def begin(self, record: RecordLike) -> None:
        """A record goes to the adapter; the one before it is complete."""
        self._close()
        self._pulled, self._answered = record, False

    def end(self) -> None:
        """No record follows."""
        self._close()
        self._pulled = None
        self.census.settle()

    def take(self, event: Event) -> None:
        """One event of the adapter."""
        if self._is_resend and not isinstance(event, (RecordOpened, Unread)):
            return
        self._take[type(event)](event)

    def lost(self, reason: str, place: tuple[int, int, int, int], text: str, digest: str, *, recovered: bool) -> None:
        """A defect of the reader: line number, child, byte offset and length; ``text`` is the line as far as kept.

        ``digest`` is given where the line was too long to keep; otherwise it is taken from the masked text later.
        """
        line_no, child, offset, length = place
        self._rejected(line_no, child, None, offset, length, reason, recovered=recovered, text=text, digest=digest)
        if not recovered and reason not in ("io", "not_a_file"):
            self.census.lost_line(reason, line_no)

    def _close(self) -> None:
        pulled = self._pulled
        if pulled is not None and not self._answered:
            # an adapter that says nothing of a record would lose it silently
            self.census.record("unknown", "(no event)", pulled.line_no)
        if self._message is not None and self._open is not None and self._open.closes_message:
            self._message.closed = True
        self._open = self._message = None
        self._is_resend = False

    # -- records

    def _record(self, event: RecordOpened) -> None:
        self._answered, self._open = True, event
        self._ordinals.clear()
        blocks = list(self.inventory(event.value)) if self.inventory and event.role in ("user", "assistant") else []
        earlier = self._earlier(event)
        if earlier is not None and self._is_same(event, earlier):
            self._resend(event, earlier, blocks)
            return
        if earlier is not None and not self._conflict(event, earlier, blocks):
            return
        self.census.record("used", event.kind, event.line_no)
        self._content_blocks(event, blocks)
        if event.uuid is not None:
            self._remember(event)
        self._count(event, blocks)
        if event.message_key is not None and event.role == "assistant":
            key = (event.session_id, event.message_key)
            self._message = self._messages.get(key)
            if self._message is None:
                self._message = self._messages[key] = Message()
        if event.chained:
            self._chained(event)

    def _earlier(self, event: RecordOpened) -> _Seen | None:
        return None if event.uuid is None else self._seen.get((event.session_id, event.uuid))

    def _remember(self, event: RecordOpened) -> None:
        pulled = self._pulled
        offset, length = getattr(pulled, "offset", 0), getattr(pulled, "length", 0)
        self._seen[event.session_id, event.uuid or ""] = _Seen(
            hash(event.raw), event.line_no, event.child, offset, length, event.closes_message
        )

    def _is_same(self, event: RecordOpened, earlier: _Seen) -> bool:
        """The same bytes, or the same JSON with other spacing or key order."""
        if earlier.raw_hash == hash(event.raw):
            return True
        before = self.reread(earlier.offset, earlier.length) if earlier.child == 0 else None
        return before is not None and canonical(before) == canonical(event.value)

    def _resend(self, event: RecordOpened, earlier: _Seen, blocks: list[ContentBlock]) -> None:
        self._is_resend = True
        self.census.record("skipped", f"{event.kind}:resend", event.line_no)
        self._content_blocks(event, blocks)
        for block in blocks:
            self._merge(event.line_no, event.child, block.block, (earlier.line_no, earlier.child, block.block), "resend")

    def _conflict(self, event: RecordOpened, earlier: _Seen, blocks: list[ContentBlock]) -> bool:
        """The same id with other content: both are named, the last complete one is used. True: this one."""
        before = self.reread(earlier.offset, earlier.length) if earlier.child == 0 else None
        use_this = event.closes_message or not earlier.complete
        self.buffers["conflicts"].add(
            self.source_id,
            event.line_no,
            earlier.line_no,
            "record",
            event.uuid,
            canonical(event.value),
            None if before is None else canonical(before),
            "last_complete_wins",
            "this" if use_this else "other",
        )
        if use_this:
            self._merge(earlier.line_no, earlier.child, None, (event.line_no, event.child, None), "resend")
            self._forget(event, earlier)
            return True
        self._resend(event, earlier, [])
        self._content_blocks(event, blocks)
        self._merge(event.line_no, event.child, None, (earlier.line_no, earlier.child, None), "resend")
        return False

    def _forget(self, event: RecordOpened, earlier: _Seen) -> None:
        record = (earlier.line_no, earlier.child)
        if event.message_key is not None:
            message = self._messages.get((event.session_id, event.message_key))
            if message is not None:
                message.forget(record)
        for key, (call_key, _, place, _) in list(self._call_entries.items()):
            if place[:2] == record:
                self.calls.withdrawn(key[0], key[2], call_key)
                del self._call_entries[key]

    def _content_blocks(self, event: RecordOpened, blocks: list[ContentBlock]) -> None:
        add, salt = self.buffers["content_blocks"].add, self._salts["content_blocks"]
        for b in blocks:
            add(
                fact_id(salt, event.line_no, event.child, b.block),
                self.source_id,
                event.line_no,
                event.row_key,
                event.child,
                b.block,
                event.session_id,
                b.role,
                b.block_type,
                b.leaf_type,
                b.leaf_chars,
                b.item_id,
                b.disposition,
            )

    def _count(self, event: RecordOpened, blocks: list[ContentBlock]) -> None:
        if event.counted == "assistant":
            self.assistant_keys.add((event.session_id, event.message_key or ""))
        elif event.counted is not None:
            self.users += 1
            self.direct_users += event.counted == "direct_user"
        self.thinking += sum(block.block_type in _THINKING for block in blocks)

    def _chained(self, event: RecordOpened) -> None:
        self.buffers["records"].add(
            fact_id(self._salts["records"], event.line_no, event.child),
            self.source_id,
            event.line_no,
            event.row_key,
            event.child,
            None,
            event.session_id,
            event.kind,
            event.role,
            event.uuid,
            event.parent_uuid,
            event.logical_parent_uuid,
            event.origin_session_id,
            event.origin_uuid,
            event.message_key,
            event.is_sidechain,
            event.ts,
        )

    def _unread(self, event: Unread) -> None:
        self._answered = True
        self._open, self._is_resend = None, False
        self.census.record(event.disposition, event.kind, event.line_no)
        if event.disposition == "rejected":
            pulled = self._pulled
            offset, length = getattr(pulled, "offset", None), getattr(pulled, "length", None)
            text = event.kind  # the type names it; a structure is never serialised
            self._rejected(
                event.line_no, event.child, None, offset, length, "invalid_shape", recovered=False, text=text, digest=""
            )

    # -- what a record says

    def _place(self, table: str, block: int | None) -> tuple[Any, ...]:
        """Provenance of the next row of a table at a block of the open record."""
        record = self._at()
        ordinal = self._ordinals.get((table, block), 0)
        self._ordinals[table, block] = ordinal + 1
        line_no, child = record.line_no, record.child
        key = fact_id(self._salts[table], line_no, child, block, ordinal)
        return (key, self.source_id, line_no, record.row_key, child, block)

    def _at(self) -> RecordOpened:
        record = self._open
        if record is None:
            raise ValueError("an adapter said something before it opened a record")
        return record

    def _merge(self, line_no: int, child: int, block: int | None, into: tuple[int, int, int | None], why: str) -> None:
        self.buffers["merges"].add(self.source_id, line_no, child, block, *into, why)

    def _merged(self, event: Merged) -> None:
        at = self._at()
        self._merge(at.line_no, at.child, event.block, (at.line_no, at.child, event.into_block), event.reason)

    def _dialogue(self, event: Dialogue) -> None:
        at = self._at()
        message, block = self._message, event.block
        if message is not None and block is not None and self._is_told(message, event, at, block):
            return
        self.buffers["dialogue"].add(
            *self._place("dialogue", block),
            at.session_id,
            event.role,
            event.kind,
            event.text,
            len(event.text),
            None,
            event.pointer or None,
            "VARCHAR" if event.pointer else None,
            is_raw_envelope(at.value, event.role, event.kind, event.text, event.pointer),
            at.message_key or at.uuid or f"~{at.line_no}.{at.child}",
            at.uuid,
            at.parent_uuid,
            at.model,
            at.ts,
            at.ts_source,
            at.agent,
            at.is_sidechain,
            at.is_meta,
            event.attachments,
            event.decoded,
        )

    def _is_told(self, message: Message, event: Dialogue, at: RecordOpened, block: int) -> bool:
        """Has the message said this text already? Else it is added, or takes the place of what it continues."""
        record, place = (at.line_no, at.child), (at.line_no, at.child, block)
        known = message.restated(event.kind, event.text, record)
        if known is not None:
            self._merge(*place, known.place, "resend")
            return True
        grown = message.grown(event.kind, event.text, block, record)
        if grown is None:
            message.add(event.kind, event.text, place, record)
        else:
            self._merge(*grown.place, place, "snapshot")
            message.replace(grown, event.text, place, record)
        return False

    def _request(self, event: ToolRequest) -> None:
        at = self._at()
        args = event.args if isinstance(event.args, str) else None if event.args is None else canonical(event.args)
        key, ts = self._call_key(event, at, args or "")
        if key is None:
            return
        self.buffers["tool_requests"].add(
            *self._place("tool_requests", event.block),
            at.session_id,
            key,
            "synthesised" if event.call_id is None else "native",
            event.parent_call_id,
            at.message_key,
            event.name_raw,
            event.name,
            event.mcp_server,
            args,
            event.args_parse_ok,
            None if args is None else len(args.encode("utf-8", "surrogatepass")),
            None,
            event.target_path,
            event.command_head,
            ts,
            event.batch_key,
        )
        for path, op in event.files:
            self.buffers["files_touched"].add(*self._place("files_touched", event.block), at.session_id, key, path, op)

    def _call_key(self, event: ToolRequest, at: RecordOpened, args: str) -> tuple[str | None, int | None]:
        """The key and time of a call; no key when the same message stated the same call before."""
        place = (at.line_no, at.child, event.block)
        synthetic = f"~{at.line_no}.{event.block or 0}"
        if event.call_id is None or at.message_key is None:
            return self.calls.requested(at.session_id, event.call_id, synthetic), at.ts
        slot = (at.session_id, at.message_key, event.call_id)
        known = self._call_entries.get(slot)
        if known is None or known[2][:2] == place[:2]:
            key, ts = self.calls.requested(at.session_id, event.call_id, synthetic), at.ts
            if self._message is not None:
                self._message.add("call", "", place, place[:2])
        elif known[1] == hash(args):
            self._merge(*place, known[2], "resend")
            return None, None
        else:
            key, ts = known[0], known[3]
            self._merge(*known[2], place, "snapshot")
        self._call_entries[slot] = (key, hash(args), place, ts)
        return key, ts

    def _result(self, event: ToolResult) -> None:
        at = self._at()
        key = self.calls.answered(at.session_id, event.call_id, f"~{at.line_no}.{event.block or 0}")
        text = event.text
        earlier = self.calls.first_result(at.session_id, key, hash(text), at.line_no)
        if earlier is not None and earlier[0] != hash(text):
            self.buffers["conflicts"].add(
                self.source_id, at.line_no, earlier[1], "tool_result", key, text, None, "first_wins", "other"
            )
        self.buffers["tool_results"].add(
            *self._place("tool_results", event.block),
            at.session_id,
            key,
            text,
            None if text is None else len(text.encode("utf-8", "surrogatepass")),
            False,
            None,
            event.images,
            event.is_error,
            event.exit_code,
            event.status_raw,
            event.denial,
            at.ts,
            event.provider_us,
        )

    def _span(self, event: ToolSpan) -> None:
        self.buffers["tool_spans"].add(
            *self._place("tool_spans", None),
            self._at().session_id,
            event.call_id,
            event.span,
            event.started_at,
            event.ended_at,
            event.duration_us,
            event.outcome,
        )

    def _mark(self, event: TurnMark) -> None:
        at = self._at()
        self.buffers["turn_marks"].add(
            *self._place("turn_marks", None),
            at.session_id,
            event.mark,
            event.native_turn_id,
            event.trigger,
            event.status_raw,
            event.reason,
            event.error_class,
            event.http_status,
            event.reported_us,
            event.first_token_us,
            at.ts,
        )

    def _model_call(self, event: ModelCall) -> None:
        at = self._at()
        values = (
            event.model,
            event.model_is_alias,
            event.input_tokens,
            event.output_tokens,
            event.cache_read_tokens,
            event.cache_creation_5m_tokens,
            event.cache_creation_1h_tokens,
            event.reasoning_tokens,
            event.total_tokens,
            event.usage_status,
            event.credits,
            event.original_credits,
            event.cost_usd_reported,
            event.context_ratio,
            event.context_window,
            event.duration_us,
            event.first_token_us,
            event.stop_reason,
        )
        slot = (at.session_id, event.request_key, event.grain, event.owner)
        if self._usage.get(slot) == values:
            return  # the same snapshot again: one row says it
        self._usage[slot] = values
        self.buffers["model_calls"].add(
            *self._place("model_calls", None),
            at.session_id,
            event.request_key,
            at.message_key,
            event.grain,
            event.owner,
            *values,
            at.ts,
        )

    def _fact(self, event: SessionFact) -> None:
        at = self._at()
        if event.key == "version":
            self.tool_version = event.value
        ts = at.ts if event.ts is None else event.ts
        place = self._place("session_facts", None)
        self.buffers["session_facts"].add(*place, at.session_id, event.key, event.value, ts)

    def _event(self, event: SessionEvent) -> None:
        at = self._at()
        attrs = None if not event.attrs else canonical(dict(event.attrs))
        place = self._place("events", None)
        self.buffers["events"].add(*place, at.session_id, event.kind, event.subtype, event.summary, attrs, at.ts)

    def _item(self, event: UnreadItem) -> None:
        at = self._at()
        self.census.count("item", event.disposition, event.item_type, at.line_no)
        pulled = self._pulled
        offset, length = getattr(pulled, "offset", None), getattr(pulled, "length", None)
        self._rejected(
            at.line_no,
            at.child,
            event.block,
            offset,
            length,
            "invalid_shape",
            recovered=True,
            text=event.item_type,
            digest="",
        )

    def _provider_row(self, event: ProviderRow) -> None:
        table = TABLES[event.table]
        place = self._place(event.table, event.values.get("block"))
        self.buffers[event.table].add(*place, *(event.values.get(name) for name in table.names[len(place) :]))

    def _rejected(  # noqa: PLR0913, PLR0917 - one parameter per column
        self,
        line_no: int,
        child: int,
        block: int | None,
        offset: int | None,
        length: int | None,
        reason: str,
        *,
        recovered: bool,
        text: str,
        digest: str,
    ) -> None:
        self.buffers["rejects"].add(
            self.source_id, line_no, child, block, offset, length, reason, recovered, text, digest or None
        )
