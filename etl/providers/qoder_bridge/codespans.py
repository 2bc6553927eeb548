"""Which parts of an answer are Markdown code, so that a tag in them is only spoken about?

A run of backticks opens, and the next place where as many stand at the end of a run closes; an opener that nothing
closes tries again with fewer. The time follows the length of the text, however many backticks it holds.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_RUN: Final = re.compile("`+")


class Span(NamedTuple):
    """A piece of code: ``start`` and ``end`` with its backticks, ``inner`` the text between them."""

    start: int
    end: int
    inner: str


def code_spans(text: str) -> list[Span]:
    """The code of a text, in order; spans do not overlap."""
    runs = [match.span() for match in _RUN.finditer(text)]
    longest = _longest_from(runs)
    spans: list[Span] = []
    number = position = 0
    while number < len(runs):
        start, stop = runs[number]
        start = max(start, position)
        found = _closing(runs, longest, number, start, stop) if start < stop else None
        if found is None:
            number += 1
            continue
        length, closing = found
        end = runs[closing][1]
        spans.append(Span(start, end, text[start + length : end - length]))
        number, position = closing + 1, end
    return spans


def _longest_from(runs: list[tuple[int, int]]) -> list[int]:
    """For each run the length of the longest one from it on; 0 behind the last."""
    longest = [0] * (len(runs) + 1)
    for number in range(len(runs) - 1, -1, -1):
        start, stop = runs[number]
        longest[number] = max(longest[number + 1], stop - start)
    return longest


def _closing(
    runs: list[tuple[int, int]], longest: list[int], number: int, start: int, stop: int
) -> tuple[int, int] | None:
    """How many backticks of the run open, and the number of the run that closes them."""
    for length in range(stop - start, 0, -1):
        if stop - start >= 2 * length:  # the rest of the run itself closes it
            return length, number
        if longest[number + 1] >= length:
            return length, next(n for n in range(number + 1, len(runs)) if runs[n][1] - runs[n][0] >= length)
    return None
