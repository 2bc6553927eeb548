"""What is a whole answer: text, tool calls, or a violation of the contract?

One shape is chosen up front and only its parser looks at the answer. Anything that looks like a call of another dialect
is a violation, never text. Which tools exist is known only where the log tells it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from etl.providers.qoder_bridge.envelopes import MALFORMED, Envelope, has_marker, scan
from etl.providers.qoder_bridge.schemas import violation
from etl.providers.qoder_bridge.strict import parse_strict, trim

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

_STRONG: Final = frozenset({"tool_calls", "tool_call", "tool_invocation", "function_call", "call_id", "tool_use_id"})
_NAMING: Final = ("name", "tool", "function")
_TYPES: Final = frozenset({"tool_call", "tool_calls", "tool_invocation", "function_call", "tool_use", "function"})
_DEPTH: Final = 8
_STRONG_KEY: Final = re.compile(rf'"(?:{"|".join(sorted(_STRONG))})"\s*:')
_TYPE_VALUE: Final = re.compile(r'"type"\s*:\s*"(?:tool_calls?|tool_invocation|function_call|tool_use|function)"')
_FUNCTION: Final = re.compile(r'"function"\s*:\s*\{')
_NAME_KEY: Final = re.compile(r'"(?:name|tool)"\s*:')
_ARGUMENTS_KEY: Final = re.compile(r'"arguments"\s*:')
_STANDARD: Final = "INVALID_STANDARD_ENVELOPE"
_NATIVE: Final = "INVALID_NATIVE_TOOL_USE"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that the contract accepts. ``index`` counts from 1; ``call_id`` None: the Bridge makes one up."""

    index: int
    name: str
    arguments: dict[str, Any]
    call_id: str | None = None


@dataclass(slots=True)
class Answer:
    """``kind``: text, calls or violation (``code`` and ``error`` say which). ``parser`` as the Bridge names it."""

    kind: str
    parser: str | None = None
    envelopes: list[Envelope] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    code: str | None = None
    error: str | None = None


class _Violation(Exception):
    def __init__(self, code: str, error: str) -> None:
        super().__init__(error)
        self.code, self.error = code, error


def read_answer(
    text: str,
    native: list[dict[str, Any]] | None = None,
    tools: Mapping[str, Any] | None = None,
    used_ids: AbstractSet[str] = frozenset(),
) -> Answer:
    """The answer that assembled text, or native tool_use blocks, are. ``tools`` are name to JSON Schema of arguments
    (None: not known, and no name is unknown then); ``used_ids`` are the call ids of the conversation so far.
    """
    answer = Answer("text")
    try:
        if native is not None:
            answer.parser = "native_tool_use"
            answer.calls = [_native(block, n) for n, block in enumerate(native, 1)]
        elif has_marker(text):
            answer.parser = "qoder_envelope"
            answer.envelopes = scan(text)
            answer.calls = [_call(envelope) for envelope in answer.envelopes]
        else:
            _bare(text, answer)
        _admit(answer.calls, tools, used_ids)
    except _Violation as violated:
        answer.kind, answer.code, answer.error = "violation", violated.code, violated.error
        answer.calls = []
    else:
        answer.kind = "calls" if answer.calls else "text"
    return answer


def _call(envelope: Envelope) -> Call:
    if envelope.code is not None or envelope.name is None or envelope.arguments is None:
        raise _Violation(envelope.code or "INVALID_ENVELOPE", f"envelope {envelope.index}: {envelope.error}")
    return Call(envelope.index, envelope.name, envelope.arguments, envelope.call_id)


def _bare(text: str, answer: Answer) -> None:
    """An answer without a marker: prose, ordinary JSON, one standard function call, or another dialect."""
    bare = trim(text)
    if not bare.startswith(("{", "[")):
        return
    value, error = parse_strict(bare)
    if error is not None:
        if _is_tool_like_text(bare):
            raise _Violation("UNKNOWN_TOOL_LIKE_FORMAT", "broken JSON that reads like a tool call")
    elif isinstance(value, dict) and value.get("type") == "function" and isinstance(value.get("function"), dict):
        answer.parser = "standard_function_envelope"
        answer.calls = [_standard(value)]
    elif _holds_tool_like(value, 0):
        raise _Violation("UNKNOWN_TOOL_LIKE_FORMAT", "a tool call of another dialect")


def _is_tool_like_text(text: str) -> bool:
    return any(cue.search(text) for cue in (_STRONG_KEY, _TYPE_VALUE, _FUNCTION)) or (
        _NAME_KEY.search(text) is not None and _ARGUMENTS_KEY.search(text) is not None
    )


def _holds_tool_like(value: Any, depth: int) -> bool:
    if depth > _DEPTH or not isinstance(value, (dict, list)):
        return False
    if isinstance(value, list):
        return any(_holds_tool_like(item, depth + 1) for item in value)
    kind = value.get("type")
    return (
        (isinstance(kind, str) and kind in _TYPES)
        or not _STRONG.isdisjoint(value)
        or ("arguments" in value and any(key in value for key in _NAMING))
        or any(_holds_tool_like(item, depth + 1) for item in value.values())
    )


def _standard(value: dict[str, Any]) -> Call:
    """``{id, type: "function", function: {name, arguments: "<JSON>"}}``, these keys and no other."""
    function, call_id = value["function"], value.get("id")
    if set(value) - {"id", "type", "function"} or set(function) - {"name", "arguments"}:
        raise _Violation(_STANDARD, "an unknown key")
    if not isinstance(call_id, str) or not call_id:
        raise _Violation(_STANDARD, "no id")
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(name, str) or not name:
        raise _Violation(_STANDARD, "no name")
    if not isinstance(arguments, str):
        raise _Violation(_STANDARD, "arguments are no JSON text")
    decoded, error = parse_strict(arguments)
    if error is not None:
        raise _Violation(MALFORMED, f"arguments: {error}")
    if not isinstance(decoded, dict):
        raise _Violation(_STANDARD, "arguments are no object")
    return Call(1, name, decoded, call_id)


def _native(block: dict[str, Any], index: int) -> Call:
    call_id, name, arguments = block.get("id"), block.get("name"), block.get("input")
    if set(block) - {"type", "id", "name", "input"}:
        raise _Violation(_NATIVE, f"block {index}: an unknown key")
    if not isinstance(call_id, str) or not call_id:
        raise _Violation(_NATIVE, f"block {index}: no id")
    if not isinstance(name, str) or not name:
        raise _Violation(_NATIVE, f"block {index}: no name")
    if not isinstance(arguments, dict):
        raise _Violation(_NATIVE, f"block {index}: the input is no object")
    return Call(index, name, arguments, call_id)


def _admit(calls: list[Call], tools: Mapping[str, Any] | None, used_ids: AbstractSet[str]) -> None:
    """Ids are used once, also over the conversation; tools exist; arguments fit without being changed."""
    seen: set[str] = set()
    for call in calls:
        if call.call_id is not None and call.call_id in seen:
            raise _Violation("DUPLICATE_ID", f"the id of call {call.index} is used twice in one answer")
        if tools is not None and call.name not in tools:
            raise _Violation("UNKNOWN_TOOL", f"call {call.index} asks for a tool that was not offered")
        why = None if tools is None else violation(call.arguments, tools[call.name])
        if why is not None:
            raise _Violation("INVALID_ARGUMENTS", f"call {call.index}: {why}")
        if call.call_id is not None:
            seen.add(call.call_id)
    if not seen.isdisjoint(used_ids):
        raise _Violation("DUPLICATE_ID", "an id of the conversation so far is used again")
