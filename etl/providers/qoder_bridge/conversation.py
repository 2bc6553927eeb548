"""What does a request send to the model: which entries are new, which tools exist, and is the history sound?

The Bridge sends the whole conversation with every request, as ``PI_CONVERSATION_JSON=[…]``. What stands after the last
answer of the assistant is new: a prompt, or the results of that answer's calls.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from etl.providers.qoder_bridge.strict import parse_strict
from etl.shape import as_dict, as_list, as_str, as_text

PREFIX: Final = "PI_CONVERSATION_JSON="
_TOOLS: Final = "PI_TOOLS="
#: Ids that the Bridge makes up, anew for each call: the model gave none.
_MADE_UP: Final = re.compile(r"qoder_[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")


@dataclass(frozen=True, slots=True)
class Said:
    """A new entry with text: ``kind`` as dialogue has it (prompt, context)."""

    role: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Answered:
    """A new tool result: its call's id, the place of the call in the answer (from 1; 0: not found there)."""

    call_id: str | None
    position: int
    text: str | None
    is_error: bool | None

    @property
    def is_made_up(self) -> bool:
        """The Bridge made up the id; the model's answer holds none."""
        return self.call_id is None or _MADE_UP.match(self.call_id) is not None


@dataclass(slots=True)
class Conversation:
    """What a request says. ``answers`` counts the assistant's answers so far; ``used_ids`` are the ids of their calls;
    ``code`` names what is wrong with the history by the Bridge's rules.
    """

    said: list[Said] = field(default_factory=list)
    answered: list[Answered] = field(default_factory=list)
    answers: int = 0
    used_ids: set[str] = field(default_factory=set)
    is_continuation: bool = False
    code: str | None = None


def read_prompt(text: str) -> Conversation | None:
    """The conversation of a prompt text; None when it is none."""
    if not text.startswith(PREFIX):
        return None
    value, _ = parse_strict(text[len(PREFIX) :])
    return read_history(value) if isinstance(value, list) else None


def read_history(history: Any) -> Conversation:
    """The conversation of a history. Never raises."""
    entries = [as_dict(entry) for entry in as_list(history)]
    answers = [n for n, entry in enumerate(entries) if entry.get("role") == "assistant"]
    last = answers[-1] if answers else -1
    calls = _calls(entries[last]) if answers else []
    ids = [as_text(call.get("id")) for call in calls]
    told = Conversation(answers=len(answers))
    told.is_continuation = bool(entries) and _is_result(entries[-1])
    told.code = _unsound(entries)
    for number in answers:
        told.used_ids |= {found for call in _calls(entries[number]) if (found := as_text(call.get("id")))}
    for entry in entries[last + 1 :]:
        if _is_result(entry):
            call_id = as_text(entry.get("toolCallId"))
            position = ids.index(call_id) + 1 if call_id in ids else 0
            error = entry.get("isError")
            content = as_str(entry.get("content"))
            told.answered.append(Answered(call_id, position, content, error if isinstance(error, bool) else None))
        elif text := as_text(entry.get("content")):
            is_person = entry.get("role") == "user"
            told.said.append(Said("user" if is_person else "system", "prompt" if is_person else "context", text))
    return told


def _is_result(entry: dict[str, Any]) -> bool:
    return entry.get("role") in ("tool_result", "toolResult")


def _calls(entry: dict[str, Any]) -> list[dict[str, Any]]:
    items = [as_dict(item) for item in as_list(entry.get("content"))]
    return [item for item in items if item.get("type") in ("tool_call", "toolCall")]


def _unsound(entries: list[dict[str, Any]]) -> str | None:
    """The rule that the history breaks: every call is answered once, in order, before anything else is said."""
    ids: set[str] = set()
    pending: list[dict[str, Any]] = []
    for entry in entries:
        if _is_result(entry):
            if not pending:
                return "CONTINUATION_ORPHAN_RESULT"
            call = pending.pop(0)
            if entry.get("toolCallId") != call.get("id"):
                return "CONTINUATION_ORDER"
            if entry.get("toolName") != call.get("name"):
                return "CONTINUATION_RESULTS_MISMATCH"
            if not isinstance(entry.get("isError"), bool) or not isinstance(entry.get("content"), (str, list)):
                return "INVALID_TOOL_RESULT"
            continue
        if pending:
            return "CONTINUATION_RESULTS_MISMATCH"
        if entry.get("role") == "assistant":
            pending = _calls(entry)
            told = [as_text(call.get("id")) for call in pending]
            if None in told or len(set(told)) < len(told) or not ids.isdisjoint(map(str, told)):
                return "DUPLICATE_ID"
            ids |= set(map(str, told))
    return "CONTINUATION_RESULTS_MISMATCH" if pending else None


def offered_tools(system_prompt: Any) -> dict[str, Any] | None:
    """Name to JSON Schema of the arguments of the tools that a system prompt offers; None where it tells none."""
    text = as_str(system_prompt) or ""
    start = text.rfind(_TOOLS)
    if start < 0:
        return None
    value, _ = parse_strict(text[start + len(_TOOLS) :])
    if not isinstance(value, list):
        return None
    tools = [as_dict(tool) for tool in value]
    return {name: tool.get("parameters") for tool in tools if (name := as_text(tool.get("name")))}
