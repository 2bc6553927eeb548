"""What do the records of a Qoder project transcript say?

The vocabulary is that of qodercli 1.1.76 (its writer keeps 18 types), checked against real files of 1.0.40, 1.1.28
and 1.1.52. One model response is several rows with the same ``message.id``, one block each, or growing snapshots in
older builds; results of parallel calls may stand between them. Usage: tokens are zero by policy (``suppressed``),
credits are the meter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from etl.events import (
    Dialogue,
    Event,
    RecordOpened,
    SessionEvent,
    SessionFact,
    ToolResult,
    TurnMark,
    Unread,
)
from etl.grammars.blocks import Part, locate, project, request, result
from etl.grammars.chained import Running, is_direct, open_chained, open_record, unread_items
from etl.providers.qoder.prompts import Prompt, classify
from etl.providers.qoder.states import BOUNDARIES, SKIPPED, STATES, attachment, system
from etl.providers.qoder.usage import usage_of
from etl.shape import as_bool, as_dict, as_float, as_int, as_str, as_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.providers.base import RecordLike, Source

#: Qoder's tool names are already those of the shared vocabulary.
TOOLS: Final[dict[str, str]] = {}
#: What a user record is in the conversation, by the kind of its rows; any other is an aside.
_PARTS: Final = {**dict.fromkeys(("prompt", "command", "shell", "objective"), "prompt"), "summary": "summary"}


def adapt_transcript(source: Source, session: str, records: Iterator[RecordLike]) -> Iterator[Event]:
    """Events of one transcript. Its state is what the last record said of folder, version, branch and entry point."""
    transcript = Transcript(source, session)
    for record in records:
        yield from transcript.read(record)


class Transcript:
    """The adapter's locals: the file's session, running facts, the open turn, and whether an objective was seen."""

    def __init__(self, source: Source, session: str) -> None:
        self.source, self.session, self.agent = source, session, source.claim.agent
        self.running = Running()
        self.used: tuple[Any, ...] = ()
        self.turn: str | None = None
        self.objective_seen = False
        self.is_first = True

    def read(self, record: RecordLike) -> Iterator[Event]:
        """The events of one record."""
        value = record.value
        kind = value["type"] if "type" in value else value.get("role")
        if not isinstance(kind, str):
            yield Unread(record.line_no, record.child, "(no type)", "unknown")
        elif kind in ("user", "assistant"):
            yield from self._message(record, kind)
        elif kind in ("system", "attachment"):
            yield from self._chained(record, kind)
        elif kind in STATES:
            yield open_record(self.source, self.session, record, kind)
            if kind != "active-leaf" or self._is_own(value):
                yield from STATES[kind](value)
        else:
            yield Unread(record.line_no, record.child, kind, "skipped" if kind in SKIPPED else "unknown")

    def _is_own(self, value: dict[str, Any]) -> bool:
        """The leaf of another session, carried along by a fork, says nothing of this one's branches. (A sub-agent's
        records carry the id of its parent.)
        """
        stated = as_text(value.get("sessionId"))
        return stated is None or self.agent is not None or self.source.session_id(stated) == self.session

    def _open_chained(self, record: RecordLike, kind: str, role: str | None, **more: Any) -> RecordOpened:
        return open_chained(self.source, self.session, record, kind, role, **more)

    def _facts(self, value: dict[str, Any]) -> Iterator[Event]:
        if self.is_first:
            self.is_first = False
            yield from self._lineage(value)
        yield from self.running.changed(value)

    def _lineage(self, value: dict[str, Any]) -> Iterator[Event]:
        if self.source.claim.parent is not None:
            yield SessionFact("kind", "subagent")
            yield SessionFact("parent", self.source.session_id(self.source.claim.parent))
        elif value.get("isSidechain") is True:
            yield SessionFact("kind", "subagent")

    def _chained(self, record: RecordLike, kind: str) -> Iterator[Event]:
        value = record.value
        is_boundary = kind == "system" and value.get("subtype") in BOUNDARIES
        yield self._open_chained(record, kind, "system", part="summary" if is_boundary else "aside")
        yield from self._facts(value)
        yield from system(value) if kind == "system" else attachment(value)

    def _message(self, record: RecordLike, role: str) -> Iterator[Event]:
        value = record.value
        content = locate(value, role)
        if content is None:
            yield Unread(record.line_no, record.child, role, "rejected")
            return
        parts = list(project(content))
        if role == "user":
            yield from self._user(record, parts, decoded=content.decoded)
        else:
            yield from self._assistant(record, parts, content.message, decoded=content.decoded)

    def _user(self, record: RecordLike, parts: list[Part], *, decoded: bool) -> Iterator[Event]:
        value = record.value
        has_result = any(part.kind == "result" for part in parts)
        prompt = classify(value, parts, is_agent=self.agent is not None or value.get("isSidechain") is True)
        if prompt.kind == "objective" and self.objective_seen:
            prompt.kind = "context"
        self.objective_seen = self.objective_seen or prompt.kind == "objective"
        key = as_text(value.get("uuid")) or f"~{record.line_no}.{record.child}"
        counted = None if has_result else "direct_user" if is_direct(value) else "user"
        part = "result" if has_result else _PARTS.get(prompt.kind, "aside")
        yield self._open_chained(record, "user", "user", part=part, message_key=key, counted=counted)
        yield from self._facts(value)
        yield from self._turn_start(value, prompt)
        yield from _prompt_rows(prompt, parts, decoded=decoded)
        # no build writes a request into a user record; where one stands it is a call like any other
        yield from (request(part, TOOLS, key) for part in parts if part.kind == "request")
        yield from _results(value, parts)
        yield from unread_items(parts)

    def _turn_start(self, value: dict[str, Any], prompt: Prompt) -> Iterator[Event]:
        if prompt.kind == "objective":
            yield TurnMark("start", trigger="subagent")
        elif prompt.kind in ("prompt", "command", "shell"):
            turn = as_text(value.get("promptId"))
            if turn is None or turn != self.turn:
                yield TurnMark("start", turn, "person")
            self.turn = turn

    def _assistant(
        self, record: RecordLike, parts: list[Part], message: dict[str, Any], *, decoded: bool
    ) -> Iterator[Event]:
        value = record.value
        key = as_text(message.get("id")) or as_text(value.get("uuid")) or f"~{record.line_no}.{record.child}"
        model = as_text(message.get("model"))
        failed = value.get("isApiErrorMessage") is True
        synthetic = failed or model == "<synthetic>"
        stop_reason = as_text(message.get("stop_reason"))
        text_kind = "error_notice" if failed else "summary" if value.get("isCompactSummary") is True else "text"
        yield self._open_chained(
            record,
            "assistant",
            "assistant",
            part="summary" if text_kind == "summary" else "answer",
            message_key=key,
            model=None if synthetic else model,
            counted="assistant",
            closes_message=stop_reason is not None,
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
            yield SessionEvent("error", as_str(value.get("error")), attrs=_error_attrs(value))
        request_id = as_text(value.get("requestId")) or as_text(value.get("request_id"))
        used = (key, message.get("usage"), stop_reason, request_id)
        if not synthetic and used != self.used:  # fragments of one message repeat it
            self.used = used
            yield usage_of(key, model, message.get("usage"), stop_reason, request_id)


def _prompt_rows(prompt: Prompt, parts: list[Part], *, decoded: bool) -> Iterator[Event]:
    """The dialogue rows of a user record. What the person typed (``humanInput``) replaces the content's leaves."""
    attachments = sum(part.kind == "media" for part in parts)
    if prompt.typed is not None:
        yield Dialogue("user", prompt.kind, prompt.typed, "/humanInput/text", None, attachments)
    for part in parts:
        if part.kind not in ("text", "thinking"):
            continue
        if prompt.typed is not None:
            yield prompt.merged(part)
        else:
            kind, text = prompt.row(part)
            yield Dialogue("user", kind, text, part.pointer, part.block, attachments, decoded)
            attachments = 0
    if attachments and prompt.typed is None:
        yield Dialogue("user", prompt.kind, "", "", None, attachments)
    if prompt.interrupt:
        yield SessionEvent("interrupt", summary=prompt.interrupt)


def _results(value: dict[str, Any], parts: list[Part]) -> Iterator[Event]:
    """Tool results with what ``toolUseResult`` adds: one object, or an array aligned with the result items."""
    extra, denials = value.get("toolUseResult"), value.get("toolDenialKind")
    results = [part for part in parts if part.kind == "result"]
    for n, part in enumerate(results):
        told = result(part)
        detail = as_dict(_aligned(extra, n))
        _detail(told, detail)
        told.denial = as_text(_aligned(denials, n))
        yield told
        agent = as_text(detail.get("agentId"))
        if agent and told.call_id:
            yield SessionFact(f"spawned.{agent}", told.call_id)
    yield from _feedback(value.get("userFeedback"), results)


def _feedback(said: Any, results: list[Part]) -> Iterator[Event]:
    """What the person said to calls that were refused: one text, or an array aligned with the result items."""
    texts = said if isinstance(said, list) else [said]
    is_told = isinstance(said, list) or len(results) == 1  # one text beside several results is of none of them
    for n, item in enumerate(texts):
        if text := as_text(item):
            call_id = result(results[n]).call_id if is_told and n < len(results) else None
            yield SessionEvent("permission", "denied", text, {"tool_call_id": call_id} if call_id else None)


def _aligned(value: Any, n: int) -> Any:
    if isinstance(value, list):
        return value[n] if n < len(value) else None
    return value


def _detail(told: ToolResult, detail: dict[str, Any]) -> None:
    told.exit_code = as_int(detail.get("exitCode"))
    if as_bool(detail.get("interrupted")):
        told.status_raw = "interrupted"
    else:
        told.status_raw = as_str(detail.get("kind")) or as_str(detail.get("status"))
    ms = as_float(detail.get("totalDurationMs"))
    ms = as_float(detail.get("durationMs")) if ms is None else ms
    if ms is not None and 0 <= ms < 1e12:
        told.provider_us = round(ms * 1_000)


def _error_attrs(value: dict[str, Any]) -> dict[str, Any]:
    # errorDetails repeats the whole request (a 120 kB line in 1.1.52): never kept
    code = value.get("displayErrorCode")
    return {"code": code} if isinstance(code, (int, str)) and not isinstance(code, bool) else {}
