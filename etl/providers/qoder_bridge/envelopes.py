"""Which tool-call envelopes does an answer hold, and is each exactly what the contract asks for?

``<pi_tool_call>{"name": …, "arguments": {…}, "id"?: …}</pi_tool_call>``. A marker counts in any spelling outside
Markdown code, but only the exact opening tag opens; the closing tag counts outside JSON strings only. Nothing is
repaired and nothing is tried again: what is not exactly right has a code.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from etl.providers.qoder_bridge.codespans import code_spans
from etl.providers.qoder_bridge.strict import parse_strict, trim

OPEN: Final = "<pi_tool_call>"
CLOSE: Final = "</pi_tool_call>"
MALFORMED: Final = "MALFORMED_ENVELOPE_JSON"
INVALID: Final = "INVALID_ENVELOPE"
UNCLOSED: Final = "UNCLOSED_ENVELOPE"

_MARKER: Final = re.compile(r"</?pi_tool_call\b", re.IGNORECASE | re.ASCII)
_STRING_OR_CLOSE: Final = re.compile('"|</pi_tool_call>')
_STRING_END: Final = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
#: Code that begins like an envelope, after a language name of a fence.
_CODE_ENVELOPE: Final = re.compile(r"(?:[\w+-]+\r?\n)?\s*<pi_tool_call\b\s*>?\s*[\[{]", re.IGNORECASE | re.ASCII)
_KEYS: Final = frozenset({"name", "arguments", "id"})


@dataclass(frozen=True, slots=True)
class Envelope:
    """One envelope. ``index`` counts from 1, ``raw`` is the text between the tags, ``start`` and ``end`` its place in
    the text, tags included. ``code`` None: it is right, and the other fields say what it asks for. An incomplete one
    ends at the end of the text and its ``raw`` is everything from the marker on.
    """

    index: int
    raw: str
    start: int
    end: int
    code: str | None = None
    error: str | None = None
    name: str | None = None
    arguments: dict[str, Any] | None = None
    call_id: str | None = None

    @property
    def is_complete(self) -> bool:
        """It has both its tags."""
        return self.code != UNCLOSED


def has_marker(text: str) -> bool:
    """Is there a marker outside Markdown code? Then the text is meant for the parser, right or wrong."""
    return _MARKER.search(text) is not None and _MARKER.search(visible(text)) is not None


def scan(text: str) -> list[Envelope]:
    """The envelopes of a text, in order, up to and including the first incomplete one. Never raises."""
    if _MARKER.search(text) is None:
        return []
    found: list[Envelope] = []
    seen, position = visible(text), 0
    while marker := _MARKER.search(seen, position):
        start, index = marker.start(), len(found) + 1
        end = _closing(text, start + len(OPEN)) if text.startswith(OPEN, start) else None
        if end is None:
            why = "a marker without a complete envelope"
            found.append(Envelope(index, text[start:], start, len(text), UNCLOSED, why))
            return found
        found.append(judge(trim(text[start + len(OPEN) : end]), index, start, end + len(CLOSE)))
        position = end + len(CLOSE)
    return found


def visible(text: str) -> str:
    """The text with Markdown code blanked, as long as before. Where the whole answer is code, code that begins like an
    envelope stays: it is one.
    """
    spans = code_spans(text)
    if not spans:
        return text
    pieces, position = [], 0
    for span in spans:
        pieces.append(text[position : span.start])
        position = span.end
    pieces.append(text[position:])
    is_all_code = not trim("".join(pieces))
    out = pieces[:1]
    for span, piece in zip(spans, pieces[1:], strict=True):
        stays = is_all_code and _CODE_ENVELOPE.match(trim(span.inner)) is not None
        out += [text[span.start : span.end] if stays else " " * (span.end - span.start), piece]
    return "".join(out)


def judge(raw: str, index: int, start: int = 0, end: int = 0) -> Envelope:
    """The envelope that a payload is: strict JSON, an object, no other key, a name, an object of arguments."""
    value, error = parse_strict(raw)
    if error is not None:
        return Envelope(index, raw, start, end, MALFORMED, error)
    if not isinstance(value, dict):
        return Envelope(index, raw, start, end, INVALID, "not an object")
    odd = next((key for key in value if key not in _KEYS), None)
    name, arguments, call_id = value.get("name"), value.get("arguments"), value.get("id")
    if odd is not None:
        error = f"unknown key {odd}"
    elif not isinstance(name, str) or not name:
        error = "no name"
    elif not isinstance(arguments, dict):
        error = "arguments are no object"
    elif "id" in value and (not isinstance(call_id, str) or not call_id):
        error = "the id is no text"
    else:
        return Envelope(index, raw, start, end, None, None, name, arguments, call_id)
    return Envelope(index, raw, start, end, INVALID, error)


def _closing(text: str, position: int) -> int | None:
    """Where the closing tag stands outside JSON strings."""
    while found := _STRING_OR_CLOSE.search(text, position):
        if found[0] != '"':
            return found.start()
        string = _STRING_END.match(text, found.end())
        if string is None:
            return None
        position = string.end()
    return None


def around(text: str, envelopes: list[Envelope]) -> list[tuple[int, str]]:
    """The text outside the envelopes: pieces that hold more than white space, each with the number of envelopes that
    stand before it.
    """
    pieces, position = [], 0
    for envelope in envelopes:
        pieces.append(text[position : envelope.start])
        position = envelope.end
    pieces.append(text[position:])
    return [(number, piece) for number, piece in enumerate(pieces) if trim(piece)]
