"""How is a tree of generated sessions of a given size made, the same one for the same seed?

    python -m tests.bench.gen_corpus OUT --mb 100 [--seed 7] [--style claude|muse|qoder] [--malformed]

``sessionmart load --home OUT`` finds the tree. Sizes, the share of resends, of calls without a result, of errors and
of torn files are those of ``tests.bench.draw``.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.bench import claude, muse, qoder
from tests.bench.draw import Draw, Mix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.bench.draw import File

STYLES: Final[dict[str, Callable[[Draw, Mix], Iterator[list[File]]]]] = {
    "claude": claude.sessions,
    "muse": muse.sessions,
    "qoder": qoder.sessions,
}
#: Share of turns that are followed by a line that is no record, with --malformed.
_MALFORMED: Final = 0.01


def write(out: Path, size: int, seed: int, style: str, mix: Mix) -> tuple[int, int]:
    """Writes sessions of one style below ``out`` until there are ``size`` bytes; the bytes and files written.

    The last session makes it more. File times are those of the last record. Raises OSError.
    """
    written = number = 0
    for session in STYLES[style](Draw(seed, size), mix):
        for file in session:
            path = out / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.body)
            os.utime(path, (file.mtime_ms / 1000, file.mtime_ms / 1000))
            written += len(file.body)
            number += 1
        if written >= size:
            break
    return written, number


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the tree that the command line asks for."""
    parser = argparse.ArgumentParser(prog="gen_corpus", description="Writes a tree of generated sessions.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--mb", type=float, default=100, help="size in 10^6 bytes (default 100)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--style", choices=sorted(STYLES), default="qoder")
    parser.add_argument("--malformed", action="store_true", help="add lines that are no records")
    chosen = parser.parse_args(arguments)
    mix = Mix(malformed=_MALFORMED if chosen.malformed else 0.0)
    size, number = write(chosen.out, int(chosen.mb * 1e6), chosen.seed, chosen.style, mix)
    sys.stdout.write(f"{size / 1e6:.1f} MB in {number} files\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
