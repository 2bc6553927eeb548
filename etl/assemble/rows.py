"""How is each fact written as a row: its key, its place, its columns in the schema's order?

One method per table. What to write, and what was said before, is decided in ``fold``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from etl.assemble.envelope import is_raw_envelope
from etl.keys import BLOCK_SHIFT, CHILD_SHIFT
from etl.shape import canonical

if TYPE_CHECKING:
    from etl.assemble.messages import Place
    from etl.events import (
        ContentBlock,
        Contradiction,
        Dialogue,
        ModelCall,
        ProviderRow,
        RecordOpened,
        SessionEvent,
        SessionFact,
        ToolRequest,
        ToolResult,
        ToolSpan,
        TurnMark,
    )
    from etl.tables import Buffers


#: Ordinals of records that are opened again, below the million there is room for, and how many each has.
_REOPENED: Final = 500_000
_ROOM: Final = 16
#: Results are clipped when they have been masked, not before.
_CLIPPED = False


class Rows:
    """The rows of one source. ``at`` is the open record, from which they take place, session and time."""

    def __init__(self, source_id: str, buffers: Buffers) -> None:
        self.source_id, self.buffers = source_id, buffers
        self._ordinals: dict[str, int] = {}
        self._before_first, self._reopened = -1, 0
        self._records, self._content_blocks = buffers["records"], buffers["content_blocks"]
        self._dialogue, self._requests, self._results = (
            buffers["dialogue"],
            buffers["tool_requests"],
            buffers["tool_results"],
        )
        buffers.begin(source_id)

    def open_record(self, *, again: bool = False) -> None:
        """A record begins: its rows are numbered afresh; those of one that is opened again, far behind its first."""
        self._ordinals.clear()
        self._reopened += again
        self._before_first = _REOPENED + self._reopened * _ROOM % _REOPENED if again else -1

    def _slot(self, at: RecordOpened, table: str, block: int | None) -> int:
        """The place of a row inside its line. Rows that are no content item are numbered per table."""
        if at.row_key is not None:
            buffer = self.buffers[table]
            buffer.row_keys[len(buffer)] = at.row_key
        if block is not None:
            return at.child << CHILD_SHIFT | (block + 1) << BLOCK_SHIFT
        ordinal = self._ordinals[table] = self._ordinals.get(table, self._before_first) + 1
        return at.child << CHILD_SHIFT | ordinal

    def record(self, at: RecordOpened) -> None:
        """A row of facts.records, the only one of its record."""
        self._records.add(
            at.line_no,
            at.child << CHILD_SHIFT if at.row_key is None else self._slot(at, "records", None),
            at.session_id,
            at.kind,
            at.role,
            at.part,
            at.uuid,
            at.parent_uuid,
            at.logical_parent_uuid,
            at.origin_session_id,
            at.origin_uuid,
            at.message_key,
            at.is_sidechain,
            at.ts,
            at.sequence,
        )

    def content_blocks(self, at: RecordOpened, blocks: list[ContentBlock]) -> None:
        """Rows of facts.content_blocks: what the inventory walker saw in the record."""
        add = self._content_blocks.add
        line_no, session_id, child = at.line_no, at.session_id, at.child << CHILD_SHIFT
        for b in blocks:
            add(
                line_no,
                child | (b.block + 1) << BLOCK_SHIFT,
                session_id,
                b.role,
                b.block_type,
                b.leaf_type,
                b.leaf_chars,
                b.item_id,
                b.disposition,
            )

    def merge(self, place: Place, into: Place, reason: str) -> None:
        """A row of facts.merges: the block (None: the whole record) at a place stands in another row."""
        self.buffers["merges"].add(self.source_id, *place, *into, reason)

    def conflict(
        self,
        line_no: int,
        other_line_no: int,
        id_kind: str,
        identity: str | None,
        content: str | None,
        other: str | None,
        rule: str,
        resolution: str,
    ) -> None:
        """A row of facts.conflicts; the contents become digests when they have been masked."""
        self.buffers["conflicts"].add(
            self.source_id, line_no, other_line_no, id_kind, identity, content, other, rule, resolution
        )

    def contradiction(self, at: RecordOpened, event: Contradiction) -> None:
        """A row of facts.conflicts that a provider's own rule gives."""
        sides = (event.content, event.before, event.rule, event.resolution)
        self.conflict(at.line_no, event.before_line, event.id_kind, event.identity, *sides)

    def reject(
        self,
        place: Place,
        extent: tuple[int | None, int | None],
        reason: str,
        text: str,
        digest: str = "",
        *,
        recovered: bool,
    ) -> None:
        """A row of facts.rejects; ``extent`` is byte offset and length of the line."""
        self.buffers["rejects"].add(self.source_id, *place, *extent, reason, recovered, text, digest or None)

    def dialogue(self, at: RecordOpened, event: Dialogue) -> None:
        """A row of facts.dialogue; whether it is a raw envelope is decided here, on unmasked text."""
        self._dialogue.add(
            at.line_no,
            self._slot(at, "dialogue", event.block),
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

    def request(self, at: RecordOpened, event: ToolRequest, key: str, args: str | None, ts: int | None) -> None:
        """A row of facts.tool_requests, and one of facts.files_touched for each path it names."""
        self._requests.add(
            at.line_no,
            self._slot(at, "tool_requests", event.block),
            at.session_id,
            key,
            "synthesised" if event.call_id is None or event.call_id.startswith("~") else "native",
            event.parent_call_id,
            at.message_key,
            event.name_raw,
            event.name,
            event.mcp_server,
            args,
            event.args_parse_ok,
            None if args is None else _size(args),
            None,
            event.target_path,
            event.command_head,
            ts,
            event.batch_key,
        )
        for path, op in event.files:
            slot = self._slot(at, "files_touched", event.block)
            self.buffers["files_touched"].add(at.line_no, slot, at.session_id, key, path, op)

    def result(self, at: RecordOpened, event: ToolResult, key: str) -> None:
        """A row of facts.tool_results."""
        self._results.add(
            at.line_no,
            self._slot(at, "tool_results", event.block),
            at.session_id,
            key,
            event.text,
            None if event.text is None else _size(event.text),
            _CLIPPED,
            None,
            event.images,
            event.is_error,
            event.exit_code,
            event.status_raw,
            event.denial,
            at.ts,
            event.provider_us,
        )

    def span(self, at: RecordOpened, event: ToolSpan) -> None:
        """A row of facts.tool_spans."""
        self.buffers["tool_spans"].add(
            at.line_no,
            self._slot(at, "tool_spans", None),
            at.session_id,
            event.call_id,
            event.span,
            event.started_at,
            event.ended_at,
            event.duration_us,
            event.outcome,
        )

    def turn_mark(self, at: RecordOpened, event: TurnMark) -> None:
        """A row of facts.turn_marks."""
        self.buffers["turn_marks"].add(
            at.line_no,
            self._slot(at, "turn_marks", None),
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

    def model_call(self, at: RecordOpened, event: ModelCall) -> None:
        """A row of facts.model_calls."""
        self.buffers["model_calls"].add(
            at.line_no,
            self._slot(at, "model_calls", None),
            at.session_id,
            event.request_key,
            at.message_key,
            event.grain,
            event.owner,
            *usage_values(event),
            at.ts,
            event.request_id,
        )

    def session_fact(self, at: RecordOpened, event: SessionFact) -> None:
        """A row of facts.session_facts."""
        slot = self._slot(at, "session_facts", None)
        ts = at.ts if event.ts is None else event.ts
        self.buffers["session_facts"].add(at.line_no, slot, at.session_id, event.key, event.value, ts)

    def event(self, at: RecordOpened, event: SessionEvent) -> None:
        """A row of facts.events."""
        attrs = canonical(dict(event.attrs)) if event.attrs else None
        slot = self._slot(at, "events", None)
        self.buffers["events"].add(
            at.line_no, slot, at.session_id, event.kind, event.subtype, event.summary, attrs, at.ts
        )

    def provider_row(self, at: RecordOpened, event: ProviderRow) -> None:
        """A row of a table that only one provider fills."""
        slot = self._slot(at, event.table, event.values.get("block"))
        buffer = self.buffers[event.table]
        buffer.add(at.line_no, slot, *(event.values.get(name) for name in buffer.names[2:]))


def usage_values(event: ModelCall) -> tuple[Any, ...]:
    """What a usage snapshot says, in the order of the columns: equal snapshots have equal values."""
    return (
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


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
