"""Which texts, sizes, names and times do generated sessions hold, and how often does something go wrong?

Everything is drawn from one seeded generator: the same seed gives the same bytes on the same Python. Texts are slices
of one pool of code-like lines with some non-ASCII, escapes and ANSI colours; sizes are lognormal.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

Json = dict[str, Any]

_WORDS: Final = (
    "return self import def class for in if else None True False async await const let function export type "
    "interface error failed passed warning test fixture session dialogue tool call latency token usage cache "
    "duckdb arrow polars parquet schema column row table view query index path file line read write edit patch "
    "the a of to and is that with as on at by this from be are was not it we should can will have has"
)
_ODD_WORDS: Final = ("修正", "検証", "café", "naïve", "→", "✓", "😀", "日本語", "Größe", "—")
#: Characters of the pool of a large tree. Smaller trees take less, so that a small one is made at once.
_FULL_POOL: Final = 6_500_000
_LEAST_POOL: Final = 400_000


@dataclass(frozen=True, slots=True)
class Mix:
    """Shares (0..1) of what goes wrong: of rows sent again byte for byte, of calls without a result, with an error or
    refused by the person, of files whose last line is torn, and of turns followed by a line that is no record.
    """

    resends: float = 0.02
    lost_results: float = 0.015
    errors: float = 0.04
    refusals: float = 0.006
    torn: float = 0.01
    malformed: float = 0.0


@dataclass(frozen=True, slots=True)
class File:
    """One file of a tree: path below the home with forward slashes, its bytes, and its time in Unix milliseconds."""

    path: str
    body: bytes
    mtime_ms: int


class Draw:
    """The one source of chance. ``size_hint`` is the bytes the tree will have: it bounds the pool of texts."""

    def __init__(self, seed: int, size_hint: int = 10**9) -> None:
        self.random = random.Random(seed)
        self.pool = _pool(self.random, min(_FULL_POOL, max(_LEAST_POOL, 2 * size_hint)))

    def chance(self, share: float) -> bool:
        """True for that share of the draws."""
        return self.random.random() < share

    def below(self, limit: int) -> int:
        """A whole number from 0 to ``limit`` - 1; faster than randrange, as even as a benchmark needs."""
        return int(self.random.random() * limit)

    def text(self, chars: int) -> str:
        """So many characters of the pool (at most half of it), without white space at its ends."""
        chars = min(chars, len(self.pool) // 2)
        start = self.below(len(self.pool) - chars)
        return self.pool[start : start + chars].strip() or "ok"

    def size(self, least: int, most: int, mu: float, sigma: float) -> int:
        """A lognormal size: ``mu`` and ``sigma`` of its logarithm, kept between ``least`` and ``most``."""
        return max(least, min(most, int(self.random.lognormvariate(mu, sigma))))

    def prose(self, least: int, most: int, mu: float, sigma: float) -> str:
        """A text of lognormal size, characters."""
        return self.text(self.size(least, most, mu, sigma))

    def output(self) -> str:
        """What a tool prints: 0.2 to 50 kB, with a heavy tail to 5 MB."""
        if self.chance(0.0006):
            return self.prose(500_000, 5_000_000, 14.0, 0.6)
        return self.prose(200, 50_000, 7.5, 1.2)

    def turns(self) -> int:
        """Prompts of a session: most have a few, some have dozens."""
        return self.size(1, 60, 1.7, 1.1)

    def steps(self) -> int:
        """Model responses of a turn."""
        return self.size(1, 60, 1.9, 0.8)

    def latency_ms(self) -> int:
        """Milliseconds a tool takes: half a second in the middle, minutes at the end."""
        return self.size(5, 600_000, 6.2, 1.6)

    def hex(self, digits: int) -> str:
        """So many hexadecimal digits."""
        return f"{self.random.getrandbits(4 * digits):0{digits}x}"

    def uuid(self) -> str:
        """A random UUID (version 4)."""
        digits = self.hex(32)
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def iso(ms: int) -> str:
    """ISO 8601 with milliseconds and ``Z``, of Unix milliseconds."""
    seconds = datetime.fromtimestamp(ms // 1000, UTC).isoformat()  # several times as fast as strftime
    return f"{seconds[:19]}.{ms % 1000:03d}Z"


def torn(draw: Draw, lines: list[bytes]) -> bytes:
    """The lines as a process leaves them that was killed while it wrote the last: at least its end is missing."""
    keep = 1 + draw.below(len(lines[-1]) - 1)
    return b"\n".join([*lines[:-1], lines[-1][:keep]])


def malformed(draw: Draw) -> bytes:
    """A line that is no record: broken JSON, no JSON, no object, or nothing."""
    lines = (
        b'{"type":"assistant","message":{"content":[}}',
        b'\xff\xfe{"broken',
        b"[1,2,3]",
        b"null",
        b'<pi_tool_call>{"name":"read","arguments":{"path":"README.md"}}}</pi_tool_call>',
        b"",
    )
    return lines[draw.below(len(lines))]


def _pool(source: random.Random, chars: int) -> str:
    words = _WORDS.split()
    lines: list[str] = []
    made = 0
    while made < chars:
        line = _line(source, words)
        lines.append(line)
        made += len(line)
    return "".join(lines)


def _line(source: random.Random, vocabulary: list[str]) -> str:
    kind = source.random()
    words = source.choices(vocabulary, k=3 + int(source.random() * 11))
    if kind < 0.03:
        words.append(source.choice(_ODD_WORDS))
    elif 0.3 < kind < 0.5:
        words.append(f"{source.getrandbits(48):x}")
    elif 0.5 < kind < 0.55:
        words.append("\\d+\\.\\w*\t")
    elif 0.78 < kind < 0.8:
        words.insert(0, "\x1b[32m✓\x1b[0m")
    elif kind > 0.8:
        words.insert(0, f'"{words[0]}":')
    return "    " * int(source.random() * 4) + " ".join(words) + "\n"
