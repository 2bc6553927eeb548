"""What does a turn's stream of SDK messages add up to, by the Bridge's own rules applied from boundary A?

In this order: a uuid seen before is dropped when the message is the same and an error when it is not; a finished
snapshot of a message id seen before likewise, whatever its uuid; other snapshots are appended, also when their text is
equal; deltas and the echo of the result are never part of the text (the echo fills in where no snapshot brought any);
the first result ends the turn. Nothing is told apart by its text. State: ids, digests and the text of one turn, and
what its first messages said.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from etl.providers.qoder_bridge.answers import Answer, read_answer
from etl.providers.qoder_bridge.masking import Content, content_of_value
from etl.providers.qoder_bridge.messages import content_of, text_of
from etl.providers.qoder_bridge.strict import storable
from etl.shape import as_dict, as_list, as_str, as_text, canonical

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

KEPT, DUP_UUID, DUP_FINAL, CONFLICT, AFTER = "kept", "dup_uuid", "dup_final", "conflict", "after_terminal"
AFTER_ERROR, NO_OBJECT = "after_error", "malformed"
#: Codes of boundary A, in the words of the Bridge.
DUPLICATE_UUID: Final = "DUPLICATE_UUID"
DUPLICATE_FINAL: Final = "DUPLICATE_ASSISTANT_FINAL"
MISSING_RESULT: Final = "MISSING_RESULT"
INVALID_MESSAGE: Final = "INVALID_ASSISTANT_MESSAGE"
INVALID_CONTENT: Final = "INVALID_ASSISTANT_CONTENT"
MIXED: Final = "MIXED_CONTENT"
STOP_REASON: Final = "STOP_REASON_CONTRADICTION"
_CALL_STOPS: Final = frozenset({"tool_use", "end_turn", "stop_sequence"})


#: Characters of a turn's messages that are remembered, to say what a contradiction is to: many times a real turn.
_REMEMBERED: Final = 1 << 22


class Clash(NamedTuple):
    """An id with two contents: which kind of id, the line of the first, what the two say (the first: None where it is
    no longer known), and the code of the rule they break.
    """

    id_kind: str
    identity: str
    before_line: int
    content: str
    before: str | None
    rule: str


class Taken(NamedTuple):
    """What became of a message, the line of the one it repeats or contradicts, and the contradiction."""

    disposition: str
    other_line: int | None = None
    clash: Clash | None = None


@dataclass(slots=True)
class _Known:
    """A message that was seen: the digest that the log stated, what it holds, its line, and its canonical JSON."""

    digest: str | None
    content: Content
    line_no: int
    text: str | None

    def is_same(self, digest: str | None, content: Content) -> bool:
        """Is it sent again? A digest was taken before the log masked anything: it tells only of another digest."""
        if self.digest is not None and digest is not None:
            return self.digest == digest
        if not self.content.is_same(content):
            return False
        self.digest = self.digest or digest
        return True


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An assistant snapshot that is part of the text: its line and child, whose it is, its text and the blocks that
    hold it.
    """

    place: tuple[int, int]
    message_id: str | None
    uuid: str | None
    model: str | None
    text: str
    text_blocks: tuple[int, ...]
    message: dict[str, Any]


@dataclass(slots=True)
class Verdict:
    """What the turn is. ``code`` None: no rule is broken. ``failure`` is what provider or runtime say went wrong
    themselves. ``is_delivered``: the Bridge hands the answer on.
    """

    text: str
    answer: Answer
    code: str | None
    error: str | None
    failure: str | None
    has_result: bool

    @property
    def is_delivered(self) -> bool:
        """The turn ended in a result, and nothing is wrong with it."""
        return self.has_result and self.code is None and self.failure is None


@dataclass(slots=True)
class Stream:
    """The messages of one turn, taken in order by :meth:`take`; :meth:`verdict` says what they add up to."""

    snapshots: list[Snapshot] = field(default_factory=list)
    native: list[dict[str, Any]] | None = None
    result: dict[str, Any] | None = None
    code: str | None = None
    error: str | None = None
    failure: str | None = None
    dispositions: dict[str, int] = field(default_factory=dict)
    _seen: dict[str, _Known] = field(default_factory=dict)
    _finals: dict[str, _Known] = field(default_factory=dict)
    _room: int = _REMEMBERED
    _had_result: bool = False

    @property
    def is_over(self) -> bool:
        """A result, an error of provider or runtime, or a broken rule ended the turn."""
        return self.result is not None or self.code is not None or self.failure is not None

    @property
    def text(self) -> str:
        """The text of the kept snapshots, in order."""
        return "".join(snapshot.text for snapshot in self.snapshots)

    def take(self, message: dict[str, Any], place: tuple[int, int], digest: str | None = None) -> Taken:
        """The next message, at a line and child. ``digest`` is the one the log states: it was taken before the log
        masked anything, so it is compared with digests only; where one of two has none, the contents decide.
        """
        taken = self._taken(message, place, digest)
        self.dispositions[taken.disposition] = self.dispositions.get(taken.disposition, 0) + 1
        return taken

    def take_other(self) -> Taken:
        """The next message is none: no object. It was received, and nothing follows from it."""
        return Taken(AFTER if self._had_result else NO_OBJECT)

    def _taken(self, message: dict[str, Any], place: tuple[int, int], digest: str | None) -> Taken:
        if self._had_result:
            return Taken(AFTER)
        self._had_result = message.get("type") == "result"
        if self.is_over:  # the log shows that it was consumed all the same: an older Bridge knows fewer rules
            return Taken(AFTER_ERROR)
        uuid = as_text(message.get("uuid"))
        if uuid is not None:
            text, known = canonical(message), self._seen.get(uuid)
            content = content_of_value(message, text)
            if known is not None and known.is_same(digest, content):
                return Taken(DUP_UUID, known.line_no)
            if known is not None:
                clash = Clash("record", uuid, known.line_no, text, known.text, DUPLICATE_UUID)
                return self._clashed(clash, "a uuid again with other content")
            self._seen[uuid] = _Known(digest, content, place[0], self._remembered(text))
        if message.get("type") == "assistant":
            return self._assistant(message, place)
        if message.get("type") == "result":
            self.result = message
            if message.get("subtype") != "success" or message.get("is_error") is True:
                told = [text for text in as_list(message.get("errors")) if isinstance(text, str)]
                self.failure = "; ".join(told) or as_str(message.get("subtype")) or "error"
        return Taken(KEPT)

    def _remembered(self, text: str) -> str | None:
        if len(text) > self._room:
            return None
        self._room -= len(text)
        return text

    def _broken(self, code: str, error: str) -> Taken:
        self.code, self.error = code, error
        return Taken(KEPT)

    def _clashed(self, clash: Clash, error: str) -> Taken:
        self.code, self.error = clash.rule, error
        return Taken(CONFLICT, clash.before_line, clash)

    def _assistant(self, message: dict[str, Any], place: tuple[int, int]) -> Taken:
        body, blocks = as_dict(message.get("message")), content_of(message)
        if message.get("error"):
            self.failure = as_str(message["error"]) or "model error"
            return Taken(KEPT)
        if body.get("role") != "assistant" or body.get("type") != "message" or not isinstance(blocks, list):
            return self._broken(INVALID_MESSAGE, "an assistant message of another role, type or content")
        stop, message_id = as_text(body.get("stop_reason")), as_text(body.get("id"))
        if stop is not None and message_id is not None:
            final, known = {"blocks": blocks, "stop": stop}, self._finals.get(message_id)
            text = canonical(final)
            content = content_of_value(final, text)
            if known is not None and known.is_same(None, content):
                return Taken(DUP_FINAL, known.line_no)
            if known is not None:
                clash = Clash("message", message_id, known.line_no, text, known.text, DUPLICATE_FINAL)
                return self._clashed(clash, "two final snapshots of one message differ")
            self._finals[message_id] = _Known(None, content, place[0], self._remembered(text))
        violated = self._contents(blocks, stop)
        if violated is not None:
            return self._broken(*violated)
        texts = tuple(n for n, b in enumerate(blocks) if b.get("type") == "text" and as_str(b.get("text")))
        uuid, model = as_text(message.get("uuid")), as_text(body.get("model"))
        self.snapshots.append(Snapshot(place, message_id, uuid, model, text_of(message), texts, message))
        return Taken(KEPT)

    def _contents(self, blocks: list[Any], stop: str | None) -> tuple[str, str] | None:
        """What is wrong with the blocks of a snapshot. Native calls stand alone: without text, in one snapshot."""
        if not all(isinstance(block, dict) for block in blocks):
            return INVALID_CONTENT, "a content block that is no object"
        calls = [block for block in blocks if block.get("type") == "tool_use"]
        others = [block for block in blocks if block.get("type") != "tool_use"]
        if any(block.get("type") not in ("text", "thinking") for block in others):
            return INVALID_CONTENT, "a content block of an unsupported type"
        has_text = any(_is_said(block, "text") for block in others)
        if (calls and self.text.strip()) or (self.native is not None and has_text):
            return MIXED, "text and native calls in one turn"
        if calls and (has_text or any(_is_said(block, "thinking") for block in others)):
            return MIXED, "text or thinking beside native calls"
        if calls and self.native is not None:
            return MIXED, "native calls in two snapshots"
        if calls:
            self.native = calls
        if stop == "tool_use" and self.native is None:
            return STOP_REASON, "the message stops for a tool and holds no call"
        return None

    def verdict(self, tools: Mapping[str, Any] | None = None, used_ids: AbstractSet[str] = frozenset()) -> Verdict:
        """What the turn is, now that no message follows. Without a result no answer is read: what was said so far was
        never handed on.
        """
        has_result = self.result is not None
        text = self.text
        if not text and self.native is None and self.result is not None and self.failure is None:
            text = storable(as_str(self.result.get("result")) or "")
        answer, code, error = Answer("text"), self.code, self.error
        if code is None and self.failure is None:
            if self.result is None:
                code, error = MISSING_RESULT, "the stream ended without a result"
            else:
                answer = read_answer(text, self.native, tools, used_ids)
                code, error = answer.code, answer.error
                if code is None and (why := _contradiction(answer, as_text(self.result.get("stop_reason")))):
                    code, error = STOP_REASON, why
        return Verdict(text, answer, code, error, self.failure, has_result)


def _is_said(block: dict[str, Any], key: str) -> bool:
    return block.get("type") == key and bool((as_str(block.get(key)) or "").strip())


def _contradiction(answer: Answer, stop: str | None) -> str | None:
    if answer.kind == "calls" and stop is not None and stop not in _CALL_STOPS:
        return "calls, and the result stops for another reason"
    if answer.kind == "text" and stop == "tool_use":
        return "the result stops for a tool and there is no call"
    return None
