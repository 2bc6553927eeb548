"""What does a line, or a text inside a record, say as JSON, and what was repaired when the strict decoder refused it?

The strict decoder is orjson, for the first try and for every retry: a repair changes the *bytes*, never the decoder.
So a repaired line obeys the same grammar, depth limit (1024) and number rules as any other line, and nothing depends on
how deep the caller's stack is. Numbers follow orjson 3.13: integers of 64 bits (signed or unsigned) are exact, wider
ones become floats, NaN and Infinity are not JSON. A number that not even a double can hold (``1e400``, an integer of
400 digits), which orjson refuses, is kept as the *string* of its digits: a float infinity or a huge int would raise in
arithmetic further on.

A text inside a record is decoded with the same repairs. There NaN and Infinity, which some writers put into the
arguments of a call, are kept as strings too: a refused line is a row that says so, a refused text would stand as prose.

Where a glued line is cut is found with ``json.JSONDecoder.raw_decode`` over the latin-1 text of the line: JSON's
structure is ASCII, so positions in that text are byte positions.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator

BOM = b"\xef\xbb\xbf"
RESYNC_ATTEMPTS = 64
"""How often the search for whole objects restarts inside one line; each try costs at most one pass over the line."""

_JSON_SPACE = b" \t\r\n"
_PADDING = b"\0" + _JSON_SPACE
_GAP = re.compile("(?:[ \t\r\n\0]++|\xef\xbb\xbf)*+")
# A pair, or a surrogate alone. The fixed prefix keeps the search fast in a line of 60 MB that has none.
_SURROGATE = re.compile(
    rb"\\u(?:([dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}|[dD][89a-fA-F][0-9a-fA-F]{2})"
)
# Possessive, and the closing quote optional: linear even in an unterminated string full of escaped quotes.
_STRING_OR_NUMBER = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|-?[0-9]++(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?', re.DOTALL)
_CONSTANT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|NaN|-?Infinity', re.DOTALL)
# The first keys of records seen in the files of all providers; an object right behind ``:``, ``,`` or ``[`` is nested.
_START = re.compile(r'(?<![:,\[])\{"(?:(type|timestamp|uuid|sessionId|parentUuid|id)"[ \t]*:)?')
_LOOK_BACK = 64
_BACKSLASH = ord("\\")


# Only the end of the object is wanted: numbers stay text (int() refuses more than 4300 digits), and an object with NaN
# is refused later by the strict decoder.
_BOUNDARY = json.JSONDecoder(parse_float=str, parse_int=str)


def decode_line(raw: bytes) -> tuple[dict[str, Any] | None, str | None]:
    """Decode one line (without its newline) that should hold one JSON object.

    Returns ``(value, reason)``:

    - ``(dict, None)``: an object, read as it stands; a byte order mark in front and a CR behind are no defect;
    - ``(dict, reason)``: an object after a repair: ``nul``, ``encoding`` or ``surrogate`` (the first that applied);
    - ``(None, reason)``: no object: ``malformed``, ``not_object``, ``depth``, ``nul`` or ``encoding``;
    - ``(None, None)``: blank, nothing but white space.

    Never raises on any bytes.
    """
    value, fault = _strict(raw)
    if fault is None:
        return _only_object(value, None)
    body, damage = _clean(raw)
    if not body.strip():
        return None, damage
    return _repair(body, damage)


def decode_nested(text: str) -> Any:
    """The JSON value of a text that stands inside a record; None where it is none (or ``null``). Never raises."""
    value, fault = _strict(text)
    if fault is None:
        return value
    body, _ = _clean(text.encode(errors="surrogatepass"))
    value, fault, _ = _mend(body)
    if fault is not None:
        quoted = _CONSTANT.sub(_quote_constant, body)
        value = _mend(quoted)[0] if quoted != body else None
    return value


def is_nul_padding(raw: bytes) -> bool:
    """Whether the bytes are NULs (at least one) and white space only: what a crash leaves of a block never written."""
    return b"\0" in raw and not raw.strip(_PADDING)


def split_glued(raw: bytes) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yield ``(slice, object)`` for each whole top-level object of a line that holds more than one JSON text.

    Objects are taken one after another from the start of the line. Behind a broken part the search goes on only where
    a record plausibly begins: at a ``}{"`` seam, or at a first key that records are known to have, not behind ``:``,
    ``,`` or ``[``; and such an object counts only if the line ends, or another object begins, right after it. The inner
    objects of one truncated record are therefore not taken for records. At most `RESYNC_ATTEMPTS` restarts. Never
    raises.
    """
    text = raw.decode("latin-1")
    position = _skip_gap(text, 0)
    attempts, resynced = 0, False
    while position < len(text):
        end = _object_end(text, position)
        value = decode_line(raw[position:end])[0] if end and (not resynced or _closes(text, end)) else None
        if value is not None:
            yield raw[position:end], value
            position, resynced = _skip_gap(text, end), False
        elif attempts == RESYNC_ATTEMPTS:
            return
        else:
            attempts, resynced = attempts + 1, True
            position = _next_start(text, position + 1)


def _strict(raw: bytes | str) -> tuple[Any, str | None]:
    """``(value, None)``, or ``(None, message of orjson)``."""
    try:
        return orjson.loads(raw), None
    except orjson.JSONDecodeError as error:
        return None, error.msg


def _only_object(value: object, reason: str | None) -> tuple[dict[str, Any] | None, str | None]:
    return (value, reason) if type(value) is dict else (None, "not_object")


def _clean(raw: bytes) -> tuple[bytes, str | None]:
    """Take away what is not text (padding, byte order mark, NULs, bytes that are not UTF-8), and name the damage."""
    damage = None
    if b"\0" in raw:
        damage = "nul"
        raw = raw.strip(_PADDING).replace(b"\0", b"")
    body = raw.strip(_JSON_SPACE).removeprefix(BOM).strip(_JSON_SPACE)
    try:
        body.decode()
    except UnicodeDecodeError:
        return body.decode(errors="replace").encode(), damage or "encoding"
    return body, damage


def _repair(body: bytes, damage: str | None) -> tuple[dict[str, Any] | None, str | None]:
    """What is left of a cleaned line that the strict decoder refuses, and what it needed."""
    value, fault, paired = _mend(body)
    if fault is None:
        return _only_object(value, damage or ("surrogate" if paired else None))
    if "depth" in fault or "recursion" in fault.lower():
        return None, "depth"
    return None, damage or "malformed"


def _mend(body: bytes) -> tuple[Any, str | None, bool]:
    """Try the cleaned bytes, then without lone surrogates, then without numbers that no double holds: the value, the
    fault that is left, and whether a surrogate was replaced.
    """
    value, fault = _strict(body)
    is_paired = False
    if fault is not None:
        paired = _SURROGATE.sub(_replace_lone, body)
        if paired != body:
            body, is_paired = paired, True
            value, fault = _strict(body)
    if fault is not None and "infinity" in fault:
        value, fault = _strict(_STRING_OR_NUMBER.sub(_quote_unrepresentable, body))
    return value, fault, is_paired


def _replace_lone(match: re.Match[bytes]) -> bytes:
    """What stands for a match of `_SURROGATE`: a backslash that is itself escaped begins no escape, only text."""
    body, start = match.string, match.start()
    run = start
    while run and body[run - 1] == _BACKSLASH:
        run -= 1
    escaped = (start - run) % 2 == 1
    if match[1] is None:
        return match[0] if escaped else rb"\ufffd"
    return rb"\u" + match[1] + rb"\ufffd" if escaped else match[0]


def _quote_unrepresentable(match: re.Match[bytes]) -> bytes:
    token = match[0]
    if token.startswith(b'"') or abs(float(token)) != float("inf"):
        return token
    return b'"' + token + b'"'


def _quote_constant(match: re.Match[bytes]) -> bytes:
    return match[0] if match[0].startswith(b'"') else b'"' + match[0] + b'"'


def _skip_gap(text: str, position: int) -> int:
    gap = _GAP.match(text, position)
    return gap.end() if gap else position


def _object_end(text: str, start: int) -> int:
    """The position after the object that begins at ``start``, 0 if no whole object begins there."""
    if not text.startswith("{", start):
        return 0
    try:
        return _BOUNDARY.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return 0


def _closes(text: str, end: int) -> bool:
    """Whether the line ends, or another object begins, right after ``end``."""
    after = _skip_gap(text, end)
    return after == len(text) or text.startswith("{", after)


def _next_start(text: str, position: int) -> int:
    """The next place where a record plausibly begins, ``len(text)`` if there is none."""
    for match in _START.finditer(text, position):
        start = match.start()
        before = text[max(0, start - _LOOK_BACK) : start].rstrip(" \t\r\0")[-1:]
        if before == "}" or (match[1] and before and before not in ":,["):
            return start
    return len(text)
