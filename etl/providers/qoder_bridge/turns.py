"""What is said in one turn, as rows of the Bridge's tables and as ordinary dialogue and calls?

Fed with the messages of boundary A in order; what they add up to is known at the end only, so the text of the answer
and its calls are said then, at the snapshot that completed them. Evidence that is no conversation of its own (a replay)
gives rows only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from etl.events import (
    Contradiction,
    Dialogue,
    Event,
    ModelCall,
    ProviderRow,
    RecordOpened,
    SessionEvent,
    SessionFact,
    UnreadItem,
)
from etl.grammars.tools import tool_request
from etl.providers.qoder_bridge import rows
from etl.providers.qoder_bridge.availability import QueueEvidence, is_queue_status
from etl.providers.qoder_bridge.envelopes import Envelope, around, scan
from etl.providers.qoder_bridge.masking import has_mask, has_masked_number, masked_text
from etl.providers.qoder_bridge.messages import content_of, delta_of, is_thinking, is_token, unknown_type
from etl.providers.qoder_bridge.stream import (
    AFTER,
    DUP_FINAL,
    DUP_UUID,
    KEPT,
    MISSING_RESULT,
    Snapshot,
    Stream,
    Verdict,
)
from etl.shape import as_count, as_dict, as_list, as_money, as_str, as_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.providers.base import RecordLike

#: The tools of Pi in the shared vocabulary.
TOOLS: Final = {
    "read": "Read",
    "write": "Write",
    "edit": "Edit",
    "bash": "Bash",
    "grep": "Grep",
    "find": "Glob",
    "ls": "LS",
}
_MODEL_EVENTS: Final = frozenset({"assistant", "stream_event", "result"})
_TOKENS: Final = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_INPUTS: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@dataclass(slots=True)
class Turn:
    """One turn: whose it is, and what was gathered of it. Times are microseconds since the turn began.

    ``session`` is empty for evidence that is no conversation. ``told`` are columns of facts.provider_turns that a
    label stated and nothing else can.
    """

    key: rows.TurnKey
    session: str
    prefix: str = "/payload/message"
    stream: Stream = field(default_factory=Stream)
    queue: QueueEvidence = field(default_factory=QueueEvidence)
    told: dict[str, Any] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    deltas: list[str] = field(default_factory=list)
    tools: dict[str, Any] | None = None
    used_ids: set[str] = field(default_factory=set)
    place: tuple[int, int] = (0, 0)
    is_masked: bool = False
    result_place: tuple[int, int] = (0, 0)

    def call_id(self, position: int) -> str:
        """The key of the call at a place of this turn's answer that the model gave no id: the request that brings its
        result names the same place.
        """
        return rows.call_id(self.key, position)

    def count(self, name: str) -> None:
        """One more of something."""
        self.counts[name] = self.counts.get(name, 0) + 1

    def message(
        self, record: RecordLike, kind: str, message: dict[str, Any], at: rows.Moment, digest: str | None
    ) -> Iterator[Event]:
        """One message of boundary A: the record is opened, and what it says by itself is said."""
        taken = self.stream.take(message, (record.line_no, record.child), digest)
        is_kept = taken.disposition == KEPT
        yield self._opened(record, kind, message, is_kept=is_kept)
        self.is_masked = self.is_masked or at.is_masked or has_masked_number(message)
        if taken.disposition != AFTER:
            self._watch(message, at.elapsed_us, taken.disposition)
        yield rows.sdk_message(self.key, at, message, digest, taken)
        if taken.clash is not None:  # the Bridge ends the turn; what was said before stands
            yield Contradiction(*taken.clash, resolution="other")
        if is_queue_status(message) and taken.disposition != DUP_UUID:
            yield rows.queue_event(self.key, at, message, taken)
        name = unknown_type(message)
        if name is not None:
            yield UnreadItem(0, name, "unknown")
        if is_kept and self.session:
            yield from self._said(message)

    def other(
        self, record: RecordLike, kind: str, told: str | None, at: rows.Moment, digest: str | None
    ) -> Iterator[Event]:
        """What should be a message of boundary A and is no object: it was received, so it counts as a message."""
        taken = self.stream.take_other()
        yield RecordOpened(record.line_no, record.child, record.raw, record.value, self.session, kind)
        self.is_masked = self.is_masked or at.is_masked
        if taken.disposition != AFTER:
            self._received(at.elapsed_us)
        yield rows.other_message(self.key, at, told, digest, taken)
        yield UnreadItem(0, "sdk:(no object)", "rejected")

    def _opened(self, record: RecordLike, kind: str, message: dict[str, Any], *, is_kept: bool) -> RecordOpened:
        opened = RecordOpened(record.line_no, record.child, record.raw, record.value, self.session, kind)
        if self.stream.result is message:
            self.result_place = (record.line_no, record.child)
        if self.session and is_kept and message.get("type") in ("assistant", "result"):
            body = as_dict(message.get("message"))
            opened.uuid, opened.chained = as_text(message.get("uuid")), True
            if message.get("type") == "assistant":
                opened.role, opened.counted = "assistant", "assistant"
                opened.model = as_text(body.get("model"))
                opened.message_key = as_text(body.get("id")) or opened.uuid or f"~{record.line_no}.{record.child}"
        return opened

    def _watch(self, message: dict[str, Any], elapsed_us: int | None, disposition: str) -> None:
        """Counts and times of a message that was consumed: the Bridge reads none behind the first result. What it
        dropped as a resend counts as a message and as nothing else.
        """
        self._received(elapsed_us)
        model = as_text(message.get("model")) or as_text(as_dict(message.get("message")).get("model"))
        if model is not None:
            self.told.setdefault("model", model)
        if is_queue_status(message):
            self.queue.queue(message)
            if disposition != DUP_UUID:
                self.count("queue_event_count")
        elif disposition != DUP_UUID:
            self.queue.model(message)
        kind, delta = as_str(message.get("type")), delta_of(message)
        if kind == "result":
            self.count("result_count")
        if delta is not None and delta.kind == "text_delta" and disposition != DUP_UUID:
            self.count("text_delta_count")
            self.deltas.append(delta.text)
        if kind in _MODEL_EVENTS:
            self._time("first_model_event_us", elapsed_us)
        if is_thinking(message):
            self._time("first_thinking_us", elapsed_us)
        if is_token(message):
            self._time("first_token_us", elapsed_us)
        if kind == "command_lifecycle" and message.get("state") == "started":
            self._time("runtime_ack_us", elapsed_us)

    def _received(self, elapsed_us: int | None) -> None:
        self.count("raw_chunk_count")
        self._time("first_message_us", elapsed_us)
        self.last("last_message_us", elapsed_us)

    def _time(self, name: str, elapsed_us: int | None) -> None:
        if elapsed_us is not None:
            self.times.setdefault(name, elapsed_us)

    def last(self, name: str, elapsed_us: int | None) -> None:
        """The latest time of something so far."""
        if elapsed_us is not None:
            self.times[name] = elapsed_us

    def _said(self, message: dict[str, Any]) -> Iterator[Event]:
        """What a kept message says by itself: thinking, usage, what the runtime states of itself, an error."""
        kind = message.get("type")
        if kind == "assistant":
            for block, item in enumerate(as_list(content_of(message))):
                yield from _block(item, block, f"{self.prefix}/message/content/{block}")
        elif kind == "result":
            yield _usage(self.key, message)
            if self.stream.failure is not None:
                errors = as_list(message.get("errors"))
                where = f"{self.prefix}/errors/0" if errors and isinstance(errors[0], str) else f"{self.prefix}/subtype"
                yield Dialogue("system", "error_notice", self.stream.failure, where, None)
                yield SessionEvent("error", as_str(message.get("subtype")), self.stream.failure)
        elif kind == "system" and message.get("subtype") == "init":
            for name, key in (("cwd", "cwd"), ("qodercli_version", "version"), ("model", "model.config")):
                if found := as_text(message.get(name)):
                    yield SessionFact(key, found)
            if found := as_text(message.get("session_id")):
                yield SessionFact("sdk_session", found)

    def end(self) -> Iterator[Event]:
        """No message follows: the answer with its calls, and the row of the turn."""
        verdict = self.stream.verdict(self.tools, self.used_ids)
        envelopes = verdict.answer.envelopes or scan(verdict.text)
        last = next((one for one in reversed(self.stream.snapshots) if one.text or self.stream.native), None)
        if verdict.text or self.stream.native:
            yield self._answered(last, verdict)
            yield from rows.envelopes(self.key, "A", envelopes, self._call_keys(verdict))
            if self.session:
                yield from self._spoken(last, verdict, envelopes)
        yield RecordOpened(*self.place, b"", {}, self.session, "(turn)", again=True)
        yield ProviderRow("provider_turns", self._row(verdict))

    def _answered(self, last: Snapshot | None, verdict: Verdict) -> RecordOpened:
        """The record that completed the answer stands open again: a snapshot, or the result that filled in."""
        if last is None:
            filled = {"assembled": verdict.text}
            return RecordOpened(*self.result_place, b"", filled, self.session, "(answer)", again=True)
        key = last.message_id or last.uuid or f"~{last.place[0]}.{last.place[1]}"
        value: dict[str, Any] = {"payload": {"message": last.message}} if self.prefix else {**last.message}
        value["assembled"] = verdict.text
        return RecordOpened(
            *last.place,
            b"",
            value,
            self.session,
            "(answer)",
            uuid=last.uuid,
            message_key=key,
            model=last.model,
            again=True,
        )

    def _call_keys(self, verdict: Verdict) -> dict[int, str]:
        if verdict.code is not None:
            return {}
        return {call.index: call.call_id or self.call_id(call.index) for call in verdict.answer.calls}

    def _spoken(self, last: Snapshot | None, verdict: Verdict, envelopes: list[Envelope]) -> Iterator[Event]:
        """The answer in the order of its text. Its rows stand behind the items of the snapshot they are said at: what
        they are is known of the whole text only.
        """
        answer, text, pointer = verdict.answer, verdict.text, self._pointer(last)
        base = len(as_list(content_of(last.message))) if last is not None else 0
        if verdict.is_delivered and answer.kind == "text":
            if text:
                yield Dialogue("assistant", "text", text, pointer, base)
            return
        if answer.parser != "standard_function_envelope":
            for number, piece in around(text, envelopes):
                yield Dialogue("assistant", "discarded", piece, pointer, base + 2 * number)
        if verdict.code is not None:
            return
        batch = last.message_id if last is not None else None
        for call in answer.calls:
            block, call_id = base + 2 * call.index - 1, call.call_id or self.call_id(call.index)
            yield tool_request(block, call_id, call.name, call.arguments, TOOLS, batch_key=batch)

    def _pointer(self, last: Snapshot | None) -> str:
        """Where the text stands: in its one leaf, or (``/assembled``) put together from several."""
        with_text = [one for one in self.stream.snapshots if one.text]
        if last is not None and len(with_text) == 1 and len(last.text_blocks) == 1:
            return f"{self.prefix}/message/content/{last.text_blocks[0]}/text"
        return "/assembled"

    def _row(self, verdict: Verdict) -> dict[str, Any]:
        stream, counts = self.stream, self.counts
        has_timed_out = "error_kind" in self.told
        code = None if verdict.code == MISSING_RESULT and has_timed_out else verdict.code
        row: dict[str, Any] = {
            **self.key.columns(),
            **{name: counts.get(name, 0) for name in rows.COUNTED},
            **self.times,
            "snapshot_count": len(stream.snapshots),
            "duplicate_uuids": stream.dispositions.get(DUP_UUID, 0),
            "duplicate_finals": stream.dispositions.get(DUP_FINAL, 0),
            "own_code": code,
            "own_error": verdict.error if code is not None else None,
            "own_failure": verdict.failure,
            "own_timeout": None if stream.is_over else self.queue.silence(continuation=self.is_continuation),
            "own_calls": len(verdict.answer.calls) if verdict.code is None else 0,
            "own_text": masked_text(verdict.text) if verdict.text or verdict.has_result else None,
            **rows.joined(self.deltas),
            "continuation": self.is_continuation,
            "masked_values": self.is_masked,
        }
        if stream.result is not None:
            row["raw_stop_reason"] = as_text(stream.result.get("stop_reason"))
            row["total_credits"] = as_money(stream.result.get("total_credits"))
        return row | self.told

    @property
    def is_continuation(self) -> bool:
        """Does the turn go on after tool results: as the log says, else every turn of a run but the first."""
        return bool(self.told.get("continuation", self.key.turn is not None and self.key.turn > 1))


def _block(item: Any, block: int, pointer: str) -> Iterator[Event]:
    if not isinstance(item, dict):
        yield UnreadItem(block, "(no object)", "rejected")
    elif item.get("type") == "thinking":
        if thought := as_str(item.get("thinking")):
            yield Dialogue("assistant", "thinking", thought, f"{pointer}/thinking", block)
    elif item.get("type") not in ("text", "tool_use"):
        kind = item.get("type")
        yield UnreadItem(block, kind if isinstance(kind, str) else "(no type)", "unknown")


def _usage(key: rows.TurnKey, message: dict[str, Any]) -> ModelCall:
    """Usage of the turn's result. The buckets are Anthropic's, disjoint: input is fresh + read + written here. Masked
    numbers are NULL. ``total_credits`` adds up over the SDK's session and stands in facts.provider_turns only.
    """
    usage = as_dict(message.get("usage"))
    call = ModelCall(key.request_id or f"{key.batch_id}/{key.run}.{key.turn}")
    call.stop_reason = as_text(message.get("stop_reason"))
    fresh, output, written, read = (as_count(usage.get(name)) for name in _TOKENS)
    is_masked = has_mask(usage, _TOKENS)
    if fresh is None and output is None and written is None and read is None:
        call.usage_status = "absent"
    elif not (fresh or output or written or read or is_masked):
        call.usage_status = "suppressed"
    else:
        # a part that is masked is not 0: the sum is not known
        is_known = fresh is not None and not has_mask(usage, _INPUTS)
        call.input_tokens = (fresh or 0) + (read or 0) + (written or 0) if is_known else None
        call.output_tokens, call.cache_read_tokens, call.cache_creation_5m_tokens = output, read, written
    return call
