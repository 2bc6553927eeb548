"""What do the records of a Claude Code transcript say?

One model response is several rows with the same ``message.id``, one content block each; results of parallel calls may
stand between them. Checked against real files of 1.0.24 to 2.1.332.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from etl.events import (
    Dialogue,
    Event,
    RecordOpened,
    SessionEvent,
    SessionFact,
    TurnMark,
    Unread,
)
from etl.grammars.blocks import Part, locate, project, request, result
from etl.grammars.chained import Running, is_direct, open_chained, open_record, unread_items
from etl.providers.claude_code.pictures import pictures
from etl.providers.claude_code.prompts import kind_of, prompt_rows, started_by
from etl.providers.claude_code.results import results
from etl.providers.claude_code.states import BOUNDARIES, SKIPPED, STATES, attachment, spawned, system, turn_us
from etl.providers.claude_code.usage import usage_of
from etl.shape import as_dict, as_int, as_str, as_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.providers.base import RecordLike, Source

#: Claude Code's tool names are those of the shared vocabulary.
TOOLS: Final[dict[str, str]] = {}
#: What a user record is in the conversation, by its kind; any other is an aside.
_PARTS: Final = {"prompt": "prompt", "objective": "prompt", "summary": "summary"}
#: An agent that the CLI starts for itself, to summarise a conversation.
_COMPACTING: Final = "acompact-"
#: The model of rows that the CLI wrote itself.
_SYNTHETIC: Final = "<synthetic>"


def adapt_transcript(source: Source, session: str, records: Iterator[RecordLike]) -> Iterator[Event]:
    """Events of one transcript: of a session, or of a sub-agent."""
    transcript = Transcript(source, session)
    for record in records:
        yield from transcript.read(record)


class Transcript:
    """The adapter's locals: the file's session, running facts, the open turn, and which leaves have a summary."""

    def __init__(self, source: Source, session: str) -> None:
        self.source, self.session, self.agent = source, session, source.claim.agent
        self.running = Running()
        self.used: tuple[Any, ...] = ()
        self.turn: str | None = None
        self.objective_seen = False
        self.is_first = True
        self.spawned: set[str] = set()
        self.summaries: dict[str, str] = {}
        self.uuids: set[str] = set()

    def read(self, record: RecordLike) -> Iterator[Event]:
        """The events of one record."""
        value = record.value
        kind = value.get("type")
        if not isinstance(kind, str):
            yield Unread(record.line_no, record.child, "(no type)", "unknown")
        elif kind in ("user", "assistant"):
            yield from self._message(record, kind)
        elif kind in ("system", "attachment", "progress"):
            yield from self._chained(record, kind)
        elif kind == "summary":
            yield from self._summary(record)
        elif kind in STATES:
            yield open_record(self.source, self.session, record, kind)
            yield from STATES[kind](value)
        else:
            yield Unread(record.line_no, record.child, kind, "skipped" if kind in SKIPPED else "unknown")

    def _open_chained(self, record: RecordLike, kind: str, role: str | None, **more: Any) -> RecordOpened:
        return open_chained(self.source, self.session, record, kind, role, **more)

    def _facts(self, value: dict[str, Any]) -> Iterator[Event]:
        """What every record of the chain states of the session."""
        if self.is_first:
            self.is_first = False
            yield from self._lineage(value)
        uuid = as_text(value.get("uuid"))
        if uuid is not None:
            self.uuids.add(uuid)
            if title := self.summaries.pop(uuid, None):
                yield SessionFact("title.summary", title)
        yield from self.running.changed(value)

    def _lineage(self, value: dict[str, Any]) -> Iterator[Event]:
        source, stated = self.source, as_text(value.get("sessionId"))
        if source.claim.agent is not None:
            yield SessionFact("kind", "internal" if source.claim.agent.startswith(_COMPACTING) else "subagent")
            if source.claim.parent is not None:
                yield SessionFact("parent", source.session_id(source.claim.parent))
        elif stated is not None and source.session_id(stated) != self.session:
            yield SessionFact("continues", source.session_id(stated))

    def _summary(self, record: RecordLike) -> Iterator[Event]:
        """A title of the conversation that ends at a leaf. The CLI writes those of other sessions here too: it is a
        title only where its leaf stands in this file, before it or behind.
        """
        title, leaf = as_text(record.value.get("summary")), as_text(record.value.get("leafUuid"))
        yield open_record(self.source, self.session, record, "summary")
        if title is None:
            return
        if leaf is None or leaf in self.uuids:
            yield SessionFact("title.summary", title)
        else:
            self.summaries[leaf] = title

    def _chained(self, record: RecordLike, kind: str) -> Iterator[Event]:
        value = record.value
        is_boundary = kind == "system" and value.get("subtype") in BOUNDARIES
        part = "summary" if is_boundary else "prompt" if _is_queued(value) else "aside"
        yield self._open_chained(record, kind, "system", part=part)
        yield from self._facts(value)
        if kind == "progress":  # superseded by the result, but a link of the chain
            told = spawned(value)
            if told is not None and told[0] not in self.spawned:
                self.spawned.add(told[0])
                yield SessionFact(f"spawned.{told[0]}", told[1])
        elif kind == "attachment":
            yield from attachment(value)
        elif value.get("subtype") == "turn_duration":
            yield TurnMark("end", self.turn, reported_us=turn_us(value))
        else:
            yield from system(value)

    def _message(self, record: RecordLike, role: str) -> Iterator[Event]:
        content = locate(record.value, role)
        if content is None:
            yield Unread(record.line_no, record.child, role, "rejected")
            return
        parts = list(project(content))
        if role == "user":
            yield from self._user(record, parts, decoded=content.decoded)
        else:
            yield from self._assistant(record, parts, content.message, decoded=content.decoded)

    def _kind_of(self, value: dict[str, Any], parts: list[Part]) -> str:
        """The first prompt of an agent is its objective, and so is that of a side chain in an old session's file."""
        is_side = value.get("isSidechain") is True
        kind = kind_of(value, parts, is_agent=self.agent is not None or is_side)
        if kind == "objective" and self.objective_seen and not (is_side and value.get("parentUuid") is None):
            return "context"
        self.objective_seen = self.objective_seen or kind == "objective"
        return kind

    def _user(self, record: RecordLike, parts: list[Part], *, decoded: bool) -> Iterator[Event]:
        value = record.value
        has_result = any(part.kind == "result" for part in parts)
        kind = self._kind_of(value, parts)
        key = as_text(value.get("uuid")) or f"~{record.line_no}.{record.child}"
        counted = None if has_result else "direct_user" if is_direct(value) else "user"
        part = "result" if has_result else _PARTS.get(kind, "aside")
        yield self._open_chained(record, "user", "user", part=part, message_key=key, counted=counted)
        yield from self._facts(value)
        if started_by(kind, parts):
            yield from self._turn_start(value, kind, key)
        yield from prompt_rows(kind, parts, decoded=decoded)
        # no version writes a request into a user record; where one stands it is a call like any other
        yield from (request(part, TOOLS, key) for part in parts if part.kind == "request")
        yield from results(value, parts)
        yield from pictures(parts)
        yield from unread_items(parts)

    def _turn_start(self, value: dict[str, Any], kind: str, key: str) -> Iterator[Event]:
        if kind == "objective":
            if self.agent is not None:  # a side chain runs inside a turn of the session
                yield TurnMark("start", key, "subagent")
                self.turn = key
            return
        turn = as_text(value.get("promptId")) or key
        if turn != self.turn:
            yield TurnMark("start", turn, "person")
        self.turn = turn

    def _assistant(
        self, record: RecordLike, parts: list[Part], message: dict[str, Any], *, decoded: bool
    ) -> Iterator[Event]:
        value = record.value
        key = as_text(message.get("id")) or as_text(value.get("uuid")) or f"~{record.line_no}.{record.child}"
        model = as_text(message.get("model"))
        failed = value.get("isApiErrorMessage") is True
        is_own = failed or model == _SYNTHETIC
        text_kind = _text_kind(value, failed=failed, is_own=is_own)
        yield self._open_chained(
            record,
            "assistant",
            "assistant",
            part="summary" if text_kind == "summary" else "answer",
            message_key=key,
            model=None if is_own else model,
            counted="assistant",
        )
        yield from self._facts(value)
        for part in parts:
            if part.kind in ("text", "thinking"):
                kind = text_kind if part.kind == "text" else "thinking"
                yield Dialogue("assistant", kind, part.text, part.pointer, part.block, decoded=decoded)
            elif part.kind == "request":
                yield request(part, TOOLS, key)
            elif part.kind == "result":
                yield result(part)
        yield from unread_items(parts)
        if failed:
            attrs = {"status": as_int(value.get("apiErrorStatus"))}
            yield SessionEvent("error", as_str(value.get("error")) or as_str(value.get("apiErrorType")), attrs=attrs)
        if not is_own:
            yield usage_of(key, value, message, parts)


def _text_kind(value: dict[str, Any], *, failed: bool, is_own: bool) -> str:
    if failed:
        return "error_notice"
    if is_own:
        return "notice"
    return "summary" if value.get("isCompactSummary") is True else "text"


def _is_queued(value: dict[str, Any]) -> bool:
    return as_dict(value.get("attachment")).get("type") == "queued_command"
