"""How are the bytes of one file opened, taken, taken again, and made readable?

Nothing here raises for what a file holds: a damaged stream ends where its damage begins.
"""

from __future__ import annotations

import os
import stat
import zlib
from typing import Any, Final

from etl.decode import decode_line
from etl.jsonl import open_stream

#: What reading a file can raise: the system's errors, and those of compressed streams that are cut off or damaged.
_DAMAGED: Final = (OSError, EOFError, zlib.error)


def open_regular(path: str) -> Any:
    """The file as a stream; an OSError when it is no regular file (a FIFO would block for ever)."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "not a regular file")
    finally:
        os.close(descriptor)
    return open_stream(path)


def take(stream: Any, number: int) -> tuple[bytes, bool]:
    """The next bytes of a stream, fewer only where it ends (one read may give less than asked); False if it broke."""
    pieces: list[bytes] = []
    try:
        while number > 0 and (piece := stream.read(min(number, 1 << 20))):
            pieces.append(piece)
            number -= len(piece)
    except _DAMAGED:
        return b"".join(pieces), False
    return b"".join(pieces), True


def _skip(stream: Any, number: int) -> None:
    while number > 0 and (piece := stream.read(min(number, 1 << 20))):
        number -= len(piece)


def take_again(path: str, offset: int, length: int) -> dict[str, Any] | None:
    """An earlier line of the source once more."""
    try:
        with open_stream(path) as stream:
            if stream.seekable():
                stream.seek(offset)
            else:
                _skip(stream, offset)
            return decode_line(take(stream, length)[0])[0]
    except _DAMAGED:
        return None


def head(path: str) -> str | None:
    """The first 4 KiB; only its digest is stored, once masked: it tells two versions of a file apart and no secret."""
    try:
        with open_stream(path) as stream:
            return take(stream, 4096)[0].decode("utf-8", "replace")
    except OSError:
        return None


def readable(raw: bytes) -> str:
    """Damaged bytes as text. NULs go, as in the decoder: between the letters of a secret they would hide it from every
    rule (a line in UTF-16 has one after each letter).
    """
    return raw.replace(b"\0", b"").decode("utf-8", "replace")
