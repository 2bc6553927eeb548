"""What code does a page of docs/ show, by language and by the heading it stands below?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parents[1] / "docs"
_PART = re.compile(r"^#+ (?P<title>[^\n]+)$|^```(?P<language>[a-z]+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block of a page: the heading above it, its language and its text."""

    heading: str
    language: str
    text: str


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[Block]:
    """The blocks of one language, in order."""
    heading, found = "", []
    for part in _PART.finditer(page(name)):
        if part["title"] is not None:
            heading = part["title"]
        elif part["language"] == language:
            found.append(Block(heading, language, part["text"]))
    return found
