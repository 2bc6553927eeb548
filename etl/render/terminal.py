"""How many terminal cells does a text take, and what of it may reach a terminal?

Stored text comes from sessions: it may hold escape sequences that recolour, retitle or overwrite the reader's
terminal, and bidirectional overrides that make a line read as something else. None of them passes.
"""

from __future__ import annotations

import re
import unicodedata

ELLIPSIS = "…"

# CSI, strings (OSC, DCS, SOS, PM, APC) and short escapes of ECMA-48. No part can run past the next escape, so that the
# time is linear in the text.
_SEQUENCES = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)"
    "|\x1b[ -/]*[0-~]"
)
_NOT_ASCII = re.compile("[^\x00-\x7f]")
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
# They ask for another glyph of the same character, which a terminal may draw one cell wide or two.
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
_DROPPED = frozenset({"Cf", "Cs"})  # format characters (bidi, zero width, tags), surrogates
_ZERO_WIDTH = frozenset({"Mn", "Me"})


def clean(text: str) -> str:
    """The text on one line, safe to print.

    Escape sequences and format characters are gone; a run of newlines, tabs and other controls is one space.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _SELECTORS.sub("", _CONTROLS.sub(" ", _SEQUENCES.sub("", text)))
    if text.isprintable():
        return text
    return "".join(char for char in text if unicodedata.category(char) not in _DROPPED)


def cell_width(text: str) -> int:
    """Cells of a clean text: two for an East Asian wide character or an emoji, none for a combining mark, else one."""
    if text.isascii():
        return len(text)
    odd = _NOT_ASCII.findall(text)
    return len(text) - len(odd) + sum(map(_char_width, odd))


def cut(text: str, width: int) -> str:
    """The text itself, or as much of it as fits into ``width`` (at least 1) cells with ``…`` at the end."""
    if text.isascii():
        return text if len(text) <= width else text[: width - 1] + ELLIPSIS
    if cell_width(text) <= width:
        return text
    used = 0
    for end, char in enumerate(text):
        used += _char_width(char)
        if used > width - 1:
            return text[:end] + ELLIPSIS
    return text


def pad(text: str, width: int) -> str:
    """The text with spaces behind it up to ``width`` cells."""
    return text.ljust(width) if text.isascii() else text + " " * (width - cell_width(text))


def _char_width(char: str) -> int:
    if char.isascii():
        return 1
    if unicodedata.category(char) in _ZERO_WIDTH:
        return 0
    # An emoji younger than this Python's Unicode tables is unassigned there and wide on the screen.
    return 2 if unicodedata.east_asian_width(char) in "WF" or "\U0001f300" <= char <= "\U0001faff" else 1
