"""Which records does a JSONL stream hold, on which line and at which byte, and what in it could not be read?

Lines end at the LF byte and nowhere else (U+2028, VT, NEL and a lone CR stand inside the text of real files). The
common line costs one ``orjson.loads``; everything else goes through `etl.decode`. Memory is bounded by the line cap and
the chunk, not by the size of the file.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

import orjson

from etl.decode import decode_line, is_nul_padding, split_glued

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from typing_extensions import Buffer

LINE_CAP = 64 * 1024 * 1024
"""Bytes of one physical line without its newline. A 100 MB line with one emoji costs 286 MB as a Python string."""

CHUNK = 1 << 18
"""Bytes asked of one read: with 1 MB the copies made by the split no longer fit the cache (10 to 20 % slower)."""

HEAD = 4096
"""Bytes kept of a line above the cap."""

_ZSTD_PIECE = 1 << 16
_MAY_BE_GLUED = frozenset({"malformed", "nul", "encoding"})


class Record(NamedTuple):
    """One decoded JSON object.

    ``line_no`` is the 1-based physical line, ``offset`` the byte offset of that line in the (decompressed) stream,
    ``length`` its bytes without the LF (CR, byte order mark and NULs included). ``raw`` is those bytes; for an
    object of a glued line it is the object's own slice and ``child`` its index in the line (0 otherwise).
    """

    line_no: int
    child: int
    offset: int
    length: int
    raw: bytes
    value: dict[str, Any]


class Defect(NamedTuple):
    """A line that could not be read as it stands, at most one per line, after the line's records.

    ``reason`` is one of malformed, partial_tail, glued, oversize, nul, surrogate, depth, not_object, encoding, io.
    ``recovered`` says that a `Record` of the same line was yielded. ``raw`` is the line; of an oversize line only the
    first `HEAD` bytes, and ``digest`` is then the blake2b-64 of the whole line in hex ('' otherwise). A line with NULs
    keeps the reason ``nul`` even when several objects came out of it. An ``io`` defect stands on the line that was
    being read: its ``raw`` is what had arrived of it (above the cap: as for oversize). If nothing had, its ``line_no``
    is ``lines + 1`` and its length 0.
    """

    line_no: int
    child: int
    offset: int
    length: int
    reason: str
    recovered: bool
    raw: bytes
    digest: str


class _LongLine:
    """A line above the cap: its length, digest and first bytes, fed piece by piece."""

    def __init__(self) -> None:
        self.length = 0
        self.head = b""
        self.nul_only = True
        self._hash = hashlib.blake2b(digest_size=8)

    def feed(self, piece: bytes) -> _LongLine:
        if self.length < HEAD:
            self.head += piece[: HEAD - self.length]
        self.nul_only = self.nul_only and not piece.strip(b"\0")
        self.length += len(piece)
        self._hash.update(piece)
        return self

    def digest(self) -> str:
        return self._hash.hexdigest()

    def defect(self, line_no: int, offset: int) -> Defect:
        return Defect(line_no, 0, offset, self.length, "oversize", recovered=False, raw=self.head, digest=self.digest())


class JsonlReader:
    """Iterate once over a binary stream: yields `Record` and `Defect` in file order.

    Neither bad data nor a failing read raises.

    After the iteration: ``lines`` (newlines, plus 1 for a non-empty rest without one), ``blank_lines`` (white space
    only), ``size`` (bytes of the decompressed stream) and ``tail_state``: ``complete``, ``partial`` (the rest without
    newline is not an object, or is above the cap), ``nul_padded`` (the last line is NULs) or ``truncated`` (the read
    failed, or the compressed stream ended early).
    """

    def __init__(self, stream: BinaryIO, *, line_cap: int = LINE_CAP, chunk: int = CHUNK) -> None:
        # read1 hands over what one read brought; a read(n) whose second inner read fails drops the first one's bytes.
        self._read = getattr(stream, "read1", stream.read)
        self._cap = line_cap
        self._chunk = chunk
        self._tail: bytes | _LongLine = b""
        self._padding_line = 0
        self._failed = False
        self.lines = 0
        self.blank_lines = 0
        self.tail_state = "complete"
        self.size = 0

    def __iter__(self) -> Iterator[Record | Defect]:
        loads, refused, cap = orjson.loads, orjson.JSONDecodeError, self._cap
        new = tuple.__new__  # what Record(...) calls, without its Python frame: 10 % on lines of 500 bytes
        offset = 0
        for block in self._blocks():
            if isinstance(block, _LongLine):
                self.lines += 1
                yield block.defect(self.lines, offset)
                offset += block.length + 1
                continue
            line_no = self.lines
            for raw in block:
                line_no += 1
                length = len(raw)
                try:
                    value = loads(raw) if 0 < length <= cap else None
                except refused:
                    value = None
                if type(value) is dict:
                    yield new(Record, (line_no, 0, offset, length, raw, value))
                else:
                    yield from self._odd(raw, line_no, offset)
                offset += length + 1
            self.lines = line_no
        yield from self._end(offset)

    def _chunks(self) -> Iterator[bytes]:
        """Pieces of the stream until it ends or fails."""
        while True:
            try:
                chunk: bytes = self._read(self._chunk)
            except EOFError:
                self.tail_state = "truncated"
                return
            except (OSError, zlib.error):
                self.tail_state = "truncated"
                self._failed = True
                return
            if not chunk:
                return
            self.size += len(chunk)
            yield chunk

    def _blocks(self) -> Iterator[list[bytes] | _LongLine]:
        """The lines that end in LF: those of a chunk together, a line above the cap alone."""
        held: list[bytes] = []
        size = 0
        long: _LongLine | None = None
        for chunk in self._chunks():
            lines = chunk.split(b"\n")
            rest = lines.pop()
            if lines and long is not None:
                yield long.feed(lines.pop(0))
                long = None
            elif lines and held:
                lines[0] = b"".join([*held, lines[0]])
                held, size = [], 0
            if lines:
                yield lines
            if long is not None:
                long.feed(rest)
            elif rest:
                held.append(rest)
                size += len(rest)
                if size > self._cap:
                    long = _LongLine()
                    for piece in held:
                        long.feed(piece)
                    held, size = [], 0
        self._tail = b"".join(held) if long is None else long

    def _odd(self, raw: bytes, line_no: int, offset: int) -> Iterator[Record | Defect]:
        """One whole line that is not simply an object."""
        length = len(raw)
        if length > self._cap:
            yield _LongLine().feed(raw).defect(line_no, offset)
            return
        if not raw.strip():  # before the decoder: a refused line costs it 3 us
            self.blank_lines += 1
            return
        value, reason = decode_line(raw)
        recovered = value is not None
        if value is not None:
            yield Record(line_no, 0, offset, length, raw, value)
        elif reason is None:
            self.blank_lines += 1
        elif is_nul_padding(raw):
            self._padding_line = line_no
        elif reason in _MAY_BE_GLUED:
            for child, (part, found) in enumerate(split_glued(raw)):
                recovered = True
                yield Record(line_no, child, offset, length, part, found)
            reason = "glued" if recovered and reason != "nul" else reason
        if reason is not None:
            yield Defect(line_no, 0, offset, length, reason, recovered, raw, "")

    def _end(self, offset: int) -> Iterator[Record | Defect]:
        """The rest without a newline, the state of the tail, and the failure of the read if there was one."""
        tail = self._tail
        state = "nul_padded" if self._padding_line and self._padding_line == self.lines else "complete"
        if isinstance(tail, _LongLine):
            self.lines += 1
            state = "nul_padded" if tail.nul_only else "partial"
            defect = tail.defect(self.lines, offset)
            yield defect._replace(reason="io") if self._failed else defect
        elif tail:
            self.lines += 1
            state = yield from self._unfinished(tail, offset)
        elif self._failed:
            yield Defect(self.lines + 1, 0, offset, 0, "io", recovered=False, raw=b"", digest="")
        if self.tail_state == "complete":
            self.tail_state = state

    def _unfinished(self, raw: bytes, offset: int) -> Generator[Record | Defect, None, str]:
        """The last line, without newline: an object, or pending. Nothing is cut out of it: its writer may go on."""
        line_no, length = self.lines, len(raw)
        value, reason = decode_line(raw)
        state = "complete"
        if value is not None:
            yield Record(line_no, 0, offset, length, raw, value)
        elif reason is None and not self._failed:
            self.blank_lines += 1
        elif is_nul_padding(raw):
            state = "nul_padded"
        else:
            reason, state = "partial_tail", "partial"
        if self._failed:
            reason = "io"
        if reason is not None:
            yield Defect(line_no, 0, offset, length, reason, value is not None, raw, "")
        return state


def open_stream(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file as a stream of its decompressed bytes; ``.gz`` and ``.zst`` are known by the ending of the name.

    All members of a gzip file and all frames of a zstd file are read. A compressed stream that ends early raises
    `EOFError` from the read after its last decodable byte, a corrupt one `OSError` or `zlib.error`; `JsonlReader` takes
    them as the end of the stream.

    Raises: `OSError` if the file cannot be opened.
    """
    name = os.fspath(path).lower()
    if name.endswith(".gz"):
        return cast("BinaryIO", gzip.open(path, "rb"))
    if name.endswith(".zst"):
        return cast("BinaryIO", _ZstdStream(os.fspath(path)))
    return Path(path).open("rb")


class _ZstdStream(io.RawIOBase):
    """The frames of a zstd file through pyarrow, which loses what it had decoded of a piece when the piece fails.

    After a failure the file is therefore opened anew and the failing piece is read byte by byte up to the fault.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._frames = self._open()
        self._position = 0
        self._fault: Exception | None = None

    def _open(self) -> BinaryIO:
        import pyarrow as pa  # noqa: PLC0415 - 0.1 s of import that only a .zst file needs

        return cast("BinaryIO", pa.input_stream(self._path, compression="zstd"))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        room = memoryview(buffer)
        if self._fault is not None:
            raise self._fault
        try:
            piece = self._frames.read(min(len(room), _ZSTD_PIECE))
        except OSError as error:
            self._fault = EOFError(str(error)) if "Truncated" in str(error) else error
            piece = self._last_piece()
            if not piece:
                raise self._fault from error
        room[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)

    def _last_piece(self) -> bytes:
        """What decodes between the last good piece and the fault."""
        self._frames.close()
        self._frames = self._open()
        found: list[bytes] = []
        ahead = self._position
        try:
            while ahead:
                ahead -= len(self._frames.read(min(_ZSTD_PIECE, ahead)))
            while byte := self._frames.read(1):
                found.append(byte)
        except OSError:
            pass
        return b"".join(found)

    def close(self) -> None:
        if not self.closed:
            self._frames.close()
        super().close()
