"""Of which class is the error that a turn is reported with?

Availability is the provider's, never a fault of the Bridge; silence after a tool result is a class of its own. The
Bridge writes the kind of a timeout before a colon; what breaks its contract it says in words of its own.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_KIND: Final = re.compile(r"(?P<kind>(?:PROVIDER|POST_TOOL)_[A-Z_]+)(?::|\Z)")
_CODE: Final = re.compile(r"\b[A-Z]{3,}(?:_[A-Z]+)+\b")

#: What the contract's violations are called.
CODES: Final = frozenset(
    {
        "MALFORMED_ENVELOPE_JSON",
        "INVALID_ENVELOPE",
        "UNCLOSED_ENVELOPE",
        "UNKNOWN_TOOL",
        "INVALID_ARGUMENTS",
        "DUPLICATE_ID",
        "INVALID_STANDARD_ENVELOPE",
        "INVALID_NATIVE_TOOL_USE",
        "UNKNOWN_TOOL_LIKE_FORMAT",
        "MIXED_CONTENT",
        "INVALID_ASSISTANT_MESSAGE",
        "INVALID_ASSISTANT_CONTENT",
        "STOP_REASON_CONTRADICTION",
        "DUPLICATE_UUID",
        "DUPLICATE_ASSISTANT_FINAL",
        "MISSING_RESULT",
        "INVALID_STATE_TRANSITION",
        "CONTINUATION_ORPHAN_RESULT",
        "CONTINUATION_ORDER",
        "CONTINUATION_RESULTS_MISMATCH",
        "INVALID_TOOL_RESULT",
    }
)
#: Words in which the Bridge reports a violation, by code; the first that fits.
_PHRASES: Final = (
    (re.compile(r"contains invalid JSON|arguments are invalid JSON"), "MALFORMED_ENVELOPE_JSON"),
    (re.compile(r"without a complete envelope"), "UNCLOSED_ENVELOPE"),
    (re.compile(r"requested unlisted tool"), "UNKNOWN_TOOL"),
    (re.compile(r"failed schema validation"), "INVALID_ARGUMENTS"),
    (re.compile(r"(?:duplicate|reused?) (?:a )?tool call id", re.IGNORECASE), "DUPLICATE_ID"),
    (re.compile(r"^standard tool call", re.IGNORECASE), "INVALID_STANDARD_ENVELOPE"),
    (re.compile(r"^native tool_use block #"), "INVALID_NATIVE_TOOL_USE"),
    (re.compile(r"tool-call payload shape|structured tool payload"), "UNKNOWN_TOOL_LIKE_FORMAT"),
    (re.compile(r"mixes meaningful text|confined to a single assistant snapshot"), "MIXED_CONTENT"),
    (re.compile(r"Invalid SDK assistant"), "INVALID_ASSISTANT_MESSAGE"),
    (re.compile(r"unsupported content block type"), "INVALID_ASSISTANT_CONTENT"),
    (re.compile(r"stop_reason is"), "STOP_REASON_CONTRADICTION"),
    (re.compile(r"repeated with different content"), "DUPLICATE_UUID"),
    (re.compile(r"Conflicting final snapshots"), "DUPLICATE_ASSISTANT_FINAL"),
    (re.compile(r"without a terminal result|produced no messages"), "MISSING_RESULT"),
    (re.compile(r"^[A-Z_]+ -> [A-Z_]+$"), "INVALID_STATE_TRANSITION"),
    (re.compile(r"Unexpected or duplicate tool result"), "CONTINUATION_ORPHAN_RESULT"),
    (re.compile(r"toolResult id/order mismatch"), "CONTINUATION_ORDER"),
    (re.compile(r"Tool result name mismatch|Missing tool results"), "CONTINUATION_RESULTS_MISMATCH"),
    (re.compile(r"Invalid tool result content"), "INVALID_TOOL_RESULT"),
    (re.compile(r"^pi_tool_call #\d+"), "INVALID_ENVELOPE"),
)


class Failure(NamedTuple):
    """``kind`` is the class of a timeout as the Bridge names it, ``code`` the violated rule; ``error_class``:
    protocol, availability, continuation_timeout, aborted, provider_error, or None where nothing tells.
    """

    kind: str | None = None
    code: str | None = None
    error_class: str | None = None


def failure_of(message: str | None, stop_reason: str | None = None, code: str | None = None) -> Failure:
    """The class of a reported error. ``code`` is the one that the log states beside it."""
    text = message or ""
    found = _KIND.match(text)
    kind = found["kind"] if found else None
    code = code if code is not None else None if kind else code_of(text)
    if stop_reason == "aborted":
        return Failure(kind, code, "aborted")
    if kind is not None and kind.startswith("POST_TOOL"):
        return Failure(kind, code, "continuation_timeout")
    if kind is not None:
        return Failure(kind, code, "availability")
    if code is not None:
        return Failure(None, code, "protocol")
    return Failure(None, None, "provider_error" if text.startswith("Qoder model error:") else None)


def code_of(text: str) -> str | None:
    """The code that an error text names, or says in its words."""
    named = next((word for word in _CODE.findall(text) if word in CODES), None)
    return named or next((code for phrase, code in _PHRASES if phrase.search(text)), None)
