"""What do the records of a Qoder project transcript say?

The vocabulary is that of qodercli 1.1.76 (its writer keeps 18 types), checked against real files of 1.0.40, 1.1.28
and 1.1.52. One model response is several rows with the same ``message.id``, one block each, or growing snapshots in
older builds; results of parallel calls may stand between them. Usage: tokens are zero by policy (``suppressed``),
credits are the meter.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from etl.events import (
    Dialogue,
    Event,
    ModelCall,
    RecordOpened,
    SessionEvent,
    SessionFact,
    ToolResult,
    TurnMark,
    Unread,
    UnreadItem,
)
from etl.grammars.blocks import Part, locate, project, request, result
from etl.providers.qoder.prompts import Prompt, classify
from etl.providers.qoder.states import SKIPPED, STATES, attachment, system
from etl.shape import as_count, as_dict, as_float, as_int, as_money, as_str, as_text, instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from etl.providers.base import RecordLike, Source

#: Qoder's tool names are already those of the shared vocabulary.
TOOLS: Final[dict[str, str]] = {}
#: Tiers that stand for a model chosen by the service.
_ALIASES: Final = frozenset({"auto", "efficient", "performance", "ultimate", "lite", "qmodel_latest"})
_TOKEN_KEYS: Final = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
#: What each record states about the session; a fact is written where it changes.
_RUNNING: Final = (("cwd", "cwd"), ("version", "version"), ("gitBranch", "branch"), ("entrypoint", "entrypoint"))
#: Kinds of parts that are counted as unread.
_UNREAD: Final = frozenset({"unknown", "rejected"})
_ONLY_RESULTS: Final = frozenset({"result"})
_SHAPES: Final = frozenset({"user", "assistant", "system", "attachment", *STATES, *SKIPPED})


def native_session(source: Source, head: Sequence[RecordLike]) -> str:
    """The native id of a file's session: for a sub-agent its path, else what most of the first records say, else the
    file's stem (records of a sub-agent carry the id of the parent).
    """
    claim = source.claim
    if claim.parent is not None:
        return f"{claim.parent}/agent-{claim.agent}"
    if claim.container == "json":
        return next((found for record in head if (found := as_text(record.value.get("id")))), claim.native_id)
    said = Counter(found for record in head if (found := as_text(record.value.get("sessionId"))))
    return said.most_common(1)[0][0] if said else claim.native_id


def recognise(records: Iterable[RecordLike]) -> bool | None:
    """Do first records look like a transcript of Qoder: a known type with a session or a message?"""
    seen = None
    for record in records:
        value = record.value
        if as_str(value.get("type", value.get("role"))) in _SHAPES and ("sessionId" in value or "message" in value):
            return True
        seen = False
    return seen


def adapt_transcript(source: Source, session: str, records: Iterator[RecordLike]) -> Iterator[Event]:
    """Events of one transcript. Its state is what the last record said of folder, version, branch and entry point."""
    read = _Transcript(source, session).read
    for record in records:
        yield from read(record)


class _Transcript:
    """The adapter's locals: the file's session, running facts, the open turn, and whether an objective was seen.

    A record's events are gathered in a list: generators in four levels for each record took twice the time.
    """

    def __init__(self, source: Source, session: str) -> None:
        self.source, self.session, self.agent = source, session, source.claim.agent
        self.running: dict[str, str] = {}
        self.stated: tuple[Any, ...] = ()
        self.used: tuple[Any, ...] = ()
        self.turn: str | None = None
        self.objective_seen = False
        self.is_first = True

    def read(self, record: RecordLike) -> Iterable[Event]:
        """What a record says."""
        value = record.value
        kind = value["type"] if "type" in value else value.get("role")
        if not isinstance(kind, str):
            return (Unread(record.line_no, record.child, "(no type)", "unknown"),)
        if kind in STATES:
            return (self._open(record, kind), *STATES[kind](value))
        if kind in ("user", "assistant"):
            return self._message(record, kind)
        if kind in ("system", "attachment"):
            said = system(value) if kind == "system" else attachment(value)
            return (self._open_chained(record, kind, "system"), *self._facts(value), *said)
        return (Unread(record.line_no, record.child, kind, "skipped" if kind in SKIPPED else "unknown"),)

    def _open(self, record: RecordLike, kind: str) -> RecordOpened:
        value = record.value
        ts = instant(value.get("timestamp"))
        source = None if ts is None else "record"
        return RecordOpened(
            record.line_no, record.child, record.raw, value, self.session, kind, ts, source, agent=self.agent
        )

    def _open_chained(self, record: RecordLike, kind: str, role: str) -> RecordOpened:
        """The record of a message or notice. Fields by position, in their order: a third of the time of names."""
        value = record.value
        ts = instant(value.get("timestamp"))
        opened = RecordOpened(
            record.line_no,
            record.child,
            record.raw,
            value,
            self.session,
            kind,
            ts,
            None if ts is None else "record",
            role,
            as_text(value.get("uuid")),
            as_text(value.get("parentUuid")),
        )
        opened.agent, opened.chained = self.agent, True
        opened.is_sidechain, opened.is_meta = value.get("isSidechain") is True, value.get("isMeta") is True
        if "logicalParentUuid" in value:
            opened.logical_parent_uuid = as_text(value["logicalParentUuid"])
        if "forkedFrom" in value:
            origin = as_dict(value["forkedFrom"])
            session = as_text(origin.get("sessionId"))
            opened.origin_session_id = None if session is None else self.source.session_id(session)
            opened.origin_uuid = as_text(origin.get("messageUuid"))
        return opened

    def _facts(self, value: dict[str, Any]) -> Sequence[Event]:
        stated_now = (value.get("cwd"), value.get("version"), value.get("gitBranch"), value.get("entrypoint"))
        if stated_now == self.stated:  # the usual case: nothing moved
            return ()
        self.stated = stated_now
        facts: list[Event] = []
        if self.is_first:
            self.is_first = False
            facts += self._lineage(value)
        running = self.running
        for name, key in _RUNNING:
            stated = value.get(name)
            if isinstance(stated, str) and stated and running.get(key) != stated:
                running[key] = stated
                facts.append(SessionFact(key, stated))
        return facts

    def _lineage(self, value: dict[str, Any]) -> Iterator[Event]:
        if self.source.claim.parent is not None:
            yield SessionFact("kind", "subagent")
            yield SessionFact("parent", self.source.session_id(self.source.claim.parent))
        elif value.get("isSidechain") is True:
            yield SessionFact("kind", "subagent")

    def _message(self, record: RecordLike, role: str) -> Sequence[Event]:
        content = locate(record.value, role)
        if content is None:
            return (Unread(record.line_no, record.child, role, "rejected"),)
        parts = list(project(content))
        if role == "user":
            return self._user(record, parts, decoded=content.decoded)
        return self._assistant(record, parts, content.message, decoded=content.decoded)

    def _user(self, record: RecordLike, parts: list[Part], *, decoded: bool) -> list[Event]:
        value = record.value
        kinds = {part.kind for part in parts}
        prompt = classify(value, parts, is_agent=self.agent is not None or value.get("isSidechain") is True)
        if prompt.kind == "objective":
            if self.objective_seen:
                prompt.kind = "context"
            self.objective_seen = True
        opened = self._open_chained(record, "user", "user")
        opened.message_key = key = opened.uuid or f"~{record.line_no}.{record.child}"
        opened.counted = None if "result" in kinds else "direct_user" if _is_direct(value) else "user"
        said: list[Event] = [opened, *self._facts(value)]
        self._turn_start(value, prompt, said)
        if kinds != _ONLY_RESULTS or prompt.typed is not None:
            said += _prompt_rows(prompt, parts, decoded=decoded)
        if "request" in kinds:
            # no build writes a request into a user record; where one stands it is a call like any other
            said += [request(part, TOOLS, key) for part in parts if part.kind == "request"]
        if "result" in kinds:
            _results(value, parts, said)
        _permission(value, said)
        if not kinds.isdisjoint(_UNREAD):
            said += _unread(parts)
        return said

    def _turn_start(self, value: dict[str, Any], prompt: Prompt, said: list[Event]) -> None:
        if prompt.kind == "objective":
            said.append(TurnMark("start", trigger="subagent"))
        elif prompt.kind in ("prompt", "command", "shell"):
            turn = as_text(value.get("promptId"))
            if turn is None or turn != self.turn:
                said.append(TurnMark("start", turn, "person"))
            self.turn = turn

    def _assistant(
        self, record: RecordLike, parts: list[Part], message: dict[str, Any], *, decoded: bool
    ) -> list[Event]:
        value = record.value
        opened = self._open_chained(record, "assistant", "assistant")
        key = as_text(message.get("id")) or opened.uuid or f"~{record.line_no}.{record.child}"
        model = as_text(message.get("model"))
        failed = value.get("isApiErrorMessage") is True
        synthetic = failed or model == "<synthetic>"
        stop_reason = as_text(message.get("stop_reason"))
        opened.message_key, opened.model, opened.counted = key, None if synthetic else model, "assistant"
        opened.closes_message = stop_reason is not None
        said: list[Event] = [opened, *self._facts(value)]
        text_kind = "error_notice" if failed else "summary" if value.get("isCompactSummary") is True else "text"
        unread = False
        for part in parts:
            what = part.kind
            if what in ("text", "thinking"):
                kind = text_kind if what == "text" else what
                said.append(Dialogue("assistant", kind, part.text, part.pointer, part.block, 0, decoded))
            elif what == "request":
                said.append(request(part, TOOLS, key))
            elif what == "result":
                said.append(result(part))
            elif what in _UNREAD:
                unread = True
        if unread:
            said += _unread(parts)
        if failed:
            said.append(SessionEvent("error", as_str(value.get("error")), attrs=_error_attrs(value)))
        used = (key, message.get("usage"), stop_reason)
        if not synthetic and used != self.used:  # fragments of one message repeat it
            self.used = used
            said.append(_usage(key, model, message, stop_reason))
        return said


def _is_direct(value: dict[str, Any]) -> bool:
    flags = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isSidechain")
    return not any(value.get(flag) is True for flag in flags)


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


def _results(value: dict[str, Any], parts: list[Part], said: list[Event]) -> None:
    """Tool results with what ``toolUseResult`` adds: one object, or an array aligned with the result items."""
    extra, denials = value.get("toolUseResult"), value.get("toolDenialKind")
    for n, part in enumerate([part for part in parts if part.kind == "result"]):
        told = result(part)
        said.append(told)
        if denials is not None:
            told.denial = as_text(_aligned(denials, n))
        detail = _aligned(extra, n)
        if isinstance(detail, dict):
            _detail(told, detail)
            agent = as_text(detail.get("agentId"))
            if agent and told.call_id:
                said.append(SessionFact(f"spawned.{agent}", told.call_id))


def _permission(value: dict[str, Any], said: list[Event]) -> None:
    feedback = as_text(_aligned(value["userFeedback"], 0)) if "userFeedback" in value else None
    if feedback:
        said.append(SessionEvent("permission", "denied", feedback))


def _aligned(value: Any, n: int) -> Any:
    if isinstance(value, list):
        return value[n] if n < len(value) else None
    return value


def _detail(told: ToolResult, detail: dict[str, Any]) -> None:
    told.exit_code = as_int(detail.get("exitCode"))
    if detail.get("interrupted") is True:
        told.status_raw = "interrupted"
    else:
        told.status_raw = as_str(detail.get("kind")) or as_str(detail.get("status"))
    ms = as_float(detail.get("totalDurationMs"))
    ms = as_float(detail.get("durationMs")) if ms is None else ms
    if ms is not None and 0 <= ms < 1e12:
        told.provider_us = round(ms * 1_000)


def _unread(parts: list[Part]) -> Iterator[Event]:
    for part in parts:
        if part.kind in _UNREAD:
            yield UnreadItem(part.block, part.item_type, part.kind)


def _error_attrs(value: dict[str, Any]) -> dict[str, Any]:
    # errorDetails repeats the whole request (a 120 kB line in 1.1.52): never kept
    code = value.get("displayErrorCode")
    return {"code": code} if isinstance(code, (int, str)) and not isinstance(code, bool) else {}


def _usage(key: str, model: str | None, message: dict[str, Any], stop_reason: str | None) -> ModelCall:
    """Usage of one response. Anthropic buckets are disjoint: input_tokens here is fresh + cache reads + cache writes.
    All-zero groups are policy, not measurement (every real transcript shows them): NULL and ``suppressed``.
    """
    call = ModelCall(key, model, model in _ALIASES, stop_reason=stop_reason)
    usage = message.get("usage")
    if not isinstance(usage, dict):
        call.usage_status = "absent"
        return call
    call.credits, call.original_credits = as_money(usage.get("credits")), as_money(usage.get("original_credits"))
    call.context_ratio = as_float(usage.get("context_usage_ratio"))
    fresh, output, written, read = (as_count(usage.get(name)) for name in _TOKEN_KEYS)
    if fresh is None and output is None and written is None and read is None:
        call.usage_status = "absent"
    elif not (fresh or output or written or read):
        call.usage_status = "suppressed"
    else:
        call.input_tokens = (fresh or 0) + (read or 0) + (written or 0) if fresh is not None else None
        call.output_tokens, call.cache_read_tokens = output, read
        split = as_dict(usage.get("cache_creation"))
        hour = as_count(split.get("ephemeral_1h_input_tokens"))
        call.cache_creation_1h_tokens = hour
        call.cache_creation_5m_tokens = written if hour is None or written is None else max(0, written - hour)
    return call
