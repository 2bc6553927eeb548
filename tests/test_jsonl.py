"""Does the reader give every record its exact place, and every unreadable line its reason?"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etl.jsonl import HEAD, Defect, JsonlReader, Record, open_stream

if TYPE_CHECKING:
    from pathlib import Path

BOM = b"\xef\xbb\xbf"


def read(data: bytes, **options: int) -> tuple[list[Record | Defect], JsonlReader]:
    reader = JsonlReader(io.BytesIO(data), **options)
    return list(reader), reader


def records(items: list[Record | Defect]) -> list[Record]:
    return [item for item in items if isinstance(item, Record)]


def defects(items: list[Record | Defect]) -> list[Defect]:
    return [item for item in items if isinstance(item, Defect)]


def defect(line_no: int, offset: int, reason: str, raw: bytes, *, recovered: bool = False) -> Defect:
    return Defect(line_no, 0, offset, len(raw), reason, recovered, raw, "")


def totals(reader: JsonlReader) -> tuple[int, int, str, int]:
    return reader.lines, reader.blank_lines, reader.tail_state, reader.size


def test_lines_and_offsets_of_a_plain_file() -> None:
    items, reader = read(b'{"a":1}\n\n{"b":22}\n')
    assert items == [
        Record(1, 0, 0, 7, b'{"a":1}', {"a": 1}),
        Record(3, 0, 9, 8, b'{"b":22}', {"b": 22}),
    ]
    assert totals(reader) == (3, 1, "complete", 18)


def test_an_empty_file() -> None:
    items, reader = read(b"")
    assert items == []
    assert totals(reader) == (0, 0, "complete", 0)


def test_only_the_newline_byte_ends_a_line() -> None:
    text = {"t": "\u2028\u2029\x85\x0b\x0c\x1c\r"}
    line = json.dumps(text, ensure_ascii=False).encode()
    items, reader = read(line + b'\n{"r":1}\r\r\n' + b'{"a":1}\r{"b":2}\n')
    assert [(r.line_no, r.child, r.value) for r in records(items)] == [
        (1, 0, text),
        (2, 0, {"r": 1}),
        (3, 0, {"a": 1}),
        (3, 1, {"b": 2}),
    ]
    assert reader.lines == 3


def test_carriage_return_belongs_to_the_line_but_not_to_the_value() -> None:
    items, reader = read(b'{"a":1}\r\n \r\n{"b":2}\r\n')
    assert items == [
        Record(1, 0, 0, 8, b'{"a":1}\r', {"a": 1}),
        Record(3, 0, 12, 8, b'{"b":2}\r', {"b": 2}),
    ]
    assert totals(reader) == (3, 1, "complete", 21)


def test_a_byte_order_mark_is_tolerated_in_front_of_any_line() -> None:
    items, reader = read(BOM + b'{"a":1}\n' + BOM + b'{"b":2}\n')
    assert items == [
        Record(1, 0, 0, 10, BOM + b'{"a":1}', {"a": 1}),
        Record(2, 0, 11, 10, BOM + b'{"b":2}', {"b": 2}),
    ]
    assert totals(reader) == (2, 0, "complete", 22)


@pytest.mark.parametrize(
    ("line", "reason", "value"),
    [
        (rb'{"a":"\ud83d"}', "surrogate", {"a": "\ufffd"}),
        (b'{"a":"\xff"}', "encoding", {"a": "\ufffd"}),
        (b'\0\0{"a":1}', "nul", {"a": 1}),
        (b'{"a":"x\0"}', "nul", {"a": "x"}),
    ],
)
@pytest.mark.parametrize("newline", [b"\n", b""])
def test_a_repaired_line_is_a_record_and_a_defect(line: bytes, reason: str, value: Any, newline: bytes) -> None:
    items, reader = read(b"{}\n" + line + newline)
    assert items[1:] == [
        Record(2, 0, 3, len(line), line, value),
        defect(2, 3, reason, line, recovered=True),
    ]
    assert totals(reader) == (2, 0, "complete", 3 + len(line) + len(newline))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"garbage", "malformed"),
        (b'{"a":NaN}', "malformed"),
        (b'{"type":"user","message":{"role":"user"}', "malformed"),
        (b"[1]", "not_object"),
        (b"12", "not_object"),
        (b'{"a":"\xff', "encoding"),
        (b"\0\0\0", "nul"),
        (b"\0garbage", "nul"),
        (b'{"a":' + b"[" * 2000 + b"]" * 2000 + b"}", "depth"),
    ],
)
def test_an_unreadable_line_is_one_defect(line: bytes, reason: str) -> None:
    items, reader = read(b"{}\n" + line + b"\n{}\n")
    assert items == [
        Record(1, 0, 0, 2, b"{}", {}),
        defect(2, 3, reason, line),
        Record(3, 0, 4 + len(line), 2, b"{}", {}),
    ]
    assert totals(reader) == (3, 0, "complete", 7 + len(line))


def test_glued_objects_are_children_of_one_line() -> None:
    line = b'{"a":1} {"b":2}'
    items, reader = read(b"{}\n" + line + b"\n")
    assert items[1:] == [
        Record(2, 0, 3, 15, b'{"a":1}', {"a": 1}),
        Record(2, 1, 3, 15, b'{"b":2}', {"b": 2}),
        defect(2, 3, "glued", line, recovered=True),
    ]
    assert totals(reader) == (2, 0, "complete", 19)


def test_a_truncated_object_in_front_of_a_whole_one_is_glued() -> None:
    line = b'{"type":"user","te{"type":"user","id":2}'
    items, _ = read(line + b"\n")
    assert items == [
        Record(1, 0, 0, 40, b'{"type":"user","id":2}', {"type": "user", "id": 2}),
        defect(1, 0, "glued", line, recovered=True),
    ]


def test_objects_with_nuls_between_keep_the_reason_nul() -> None:
    line = b'{"a":1}\0\0{"b":2}'
    items, _ = read(line + b"\n")
    assert [(r.child, r.value) for r in records(items)] == [(0, {"a": 1}), (1, {"b": 2})]
    assert defects(items) == [defect(1, 0, "nul", line, recovered=True)]


@pytest.mark.parametrize("tail", [b'{"a":1}', b'{"a":1}\r', b' {"a":1}  ', b'{"a":1}\0'])
def test_a_last_line_without_newline_that_is_an_object_is_complete(tail: bytes) -> None:
    items, reader = read(b"{}\n" + tail)
    assert records(items)[1] == Record(2, 0, 3, len(tail), tail, {"a": 1})
    assert totals(reader) == (2, 0, "complete", 3 + len(tail))


@pytest.mark.parametrize(
    "tail", [b'{"a":', b"12", b"[1]", b'{"a":1}{"b":2}', b'{"a":1}{"b', b'{"a":"\xe2\x82', b'{"a\0', b"[" * 2000]
)
def test_a_torn_last_line_is_pending(tail: bytes) -> None:
    items, reader = read(b"{}\n" + tail)
    assert items[1:] == [defect(2, 3, "partial_tail", tail)]
    assert totals(reader) == (2, 0, "partial", 3 + len(tail))


def test_white_space_without_newline_is_a_blank_line() -> None:
    items, reader = read(b"{}\n  ")
    assert len(items) == 1
    assert totals(reader) == (2, 1, "complete", 5)


@pytest.mark.parametrize("tail", [b"\0" * 5, b"\0" * 5 + b"\n", b" \0\r\n"])
def test_a_tail_of_nuls_is_padding_and_not_blank(tail: bytes) -> None:
    items, reader = read(b"{}\n" + tail)
    line = tail.rstrip(b"\n")
    assert items[1:] == [defect(2, 3, "nul", line)]
    assert totals(reader) == (2, 0, "nul_padded", 3 + len(tail))


@pytest.mark.parametrize("after", [b"{}\n", b"{}", b"\n"])
def test_a_line_of_nuls_that_is_not_the_last_is_no_padding(after: bytes) -> None:
    _, reader = read(b"\0\0\n" + after)
    assert reader.tail_state == "complete"


def test_a_file_that_ends_in_nuls_behind_its_last_newline_and_a_torn_line_is_partial() -> None:
    _, reader = read(b'\0\n{"a')
    assert reader.tail_state == "partial"


def oversize(line_no: int, offset: int, line: bytes) -> Defect:
    digest = hashlib.blake2b(line, digest_size=8).hexdigest()
    return defect(line_no, offset, "oversize", line[:HEAD])._replace(length=len(line), digest=digest)


@pytest.mark.parametrize("chunk", [1, 7, 50, 1 << 20])
def test_a_line_above_the_cap_is_measured_and_the_next_is_read(chunk: int) -> None:
    long = b'{"x":"' + b"y" * 5000 + b'"}'
    at_cap = b'{"x":"' + b"y" * 92 + b'"}'
    data = b"{}\n" + long + b"\n" + at_cap + b"\n" + long
    items, reader = read(data, line_cap=100, chunk=chunk)
    assert items == [
        Record(1, 0, 0, 2, b"{}", {}),
        oversize(2, 3, long),
        Record(3, 0, 5012, 100, at_cap, {"x": "y" * 92}),
        oversize(4, 5113, long),
    ]
    assert totals(reader) == (4, 0, "partial", 10121)


def test_a_padding_above_the_cap_is_still_padding() -> None:
    items, reader = read(b"{}\n" + b"\0" * 500, line_cap=100)
    assert items[1:] == [oversize(2, 3, b"\0" * 500)]
    assert reader.tail_state == "nul_padded"


def test_a_line_of_65_megabytes_is_above_the_default_cap(tmp_path: Path) -> None:
    path = tmp_path / "big.jsonl"
    digest = hashlib.blake2b(digest_size=8)
    with path.open("wb") as file:
        file.write(b'{"a":1}\n')
        for piece in [b'{"x":"', *[b"z" * 1_000_000] * 68, b'"}']:
            file.write(piece)
            digest.update(piece)
        file.write(b'\n{"b":2}\n')
    with open_stream(path) as stream:
        reader = JsonlReader(stream)
        items = list(reader)
    length = 68_000_008
    assert items == [
        Record(1, 0, 0, 7, b'{"a":1}', {"a": 1}),
        defect(2, 8, "oversize", b'{"x":"' + b"z" * 4090)._replace(length=length, digest=digest.hexdigest()),
        Record(3, 0, 8 + length + 1, 7, b'{"b":2}', {"b": 2}),
    ]
    assert totals(reader) == (3, 0, "complete", 8 + length + 1 + 8)


# --- Reads that fail -------------------------------------------------------------------------------------------------


class _Failing(io.RawIOBase):
    """A disk that gives ``data`` and then an error (a real one cannot be had on demand)."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        count = self._data.readinto(buffer)
        if not count:
            raise OSError(5, "Input/output error")
        return count


@pytest.mark.parametrize(
    ("data", "end", "lines"),
    [
        (b"{}\n", [defect(2, 3, "io", b"")], 1),
        (b'{}\n{"a', [defect(2, 3, "io", b'{"a')], 2),
        (
            b'{}\n{"a":1}',
            [Record(2, 0, 3, 7, b'{"a":1}', {"a": 1}), defect(2, 3, "io", b'{"a":1}', recovered=True)],
            2,
        ),
        (b"{}\n  ", [defect(2, 3, "io", b"  ")], 2),
        (b"{}\n" + b"y" * 200, [oversize(2, 3, b"y" * 200)._replace(reason="io")], 2),
    ],
)
def test_a_read_that_fails_ends_the_iteration_with_a_defect(
    data: bytes, end: list[Record | Defect], lines: int
) -> None:
    reader = JsonlReader(cast("BinaryIO", _Failing(data)), line_cap=100)
    assert list(reader)[1:] == end
    assert totals(reader) == (lines, 0, "truncated", len(data))


# --- Compressed files ------------------------------------------------------------------------------------------------

LINES = [b'{"n":%d,"digest":"%s"}' % (n, hashlib.sha256(b"%d" % n).hexdigest().encode()) for n in range(20_000)]
TEXT = b"".join(line + b"\n" for line in LINES)


def zstd_frame(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as frame:
        frame.write(data)
    return cast("bytes", sink.getvalue().to_pybytes())


PACKERS = [pytest.param(".gz", gzip.compress, id="gz"), pytest.param(".zst", zstd_frame, id="zst")]


def read_file(path: Path, data: bytes) -> tuple[list[Record | Defect], JsonlReader]:
    path.write_bytes(data)
    with open_stream(path) as stream:
        reader = JsonlReader(stream)
        return list(reader), reader


@pytest.mark.parametrize(("ending", "pack"), PACKERS)
def test_members_and_frames_are_read_to_the_end(tmp_path: Path, ending: str, pack: Any) -> None:
    # the third piece begins in the middle of a line, an empty one stands between
    data = pack(TEXT) + pack(b'{"b":1}\n{"c') + pack(b"") + pack(b'":2}\n')
    items, reader = read_file(tmp_path / f"s.jsonl{ending}", data)
    assert [item.raw for item in items] == [*LINES, b'{"b":1}', b'{"c":2}']
    assert items[-1] == Record(20_002, 0, len(TEXT) + 8, 7, b'{"c":2}', {"c": 2})
    assert totals(reader) == (20_002, 0, "complete", len(TEXT) + 16)


@pytest.mark.parametrize(("ending", "pack"), PACKERS)
def test_an_empty_compressed_file_is_empty(tmp_path: Path, ending: str, pack: Any) -> None:
    for data in (b"", pack(b"")):
        items, reader = read_file(tmp_path / f"s.jsonl{ending}", data)
        assert items == []
        assert totals(reader) == (0, 0, "complete", 0)


@pytest.mark.parametrize(("ending", "pack"), PACKERS)
@pytest.mark.parametrize("share", [0.3, 0.5, 0.9])
def test_a_truncated_compressed_file_gives_what_can_be_decoded(
    tmp_path: Path, ending: str, pack: Any, share: float
) -> None:
    packed = pack(TEXT)
    items, reader = read_file(tmp_path / f"s.jsonl{ending}", packed[: int(len(packed) * share)])
    found = records(items)
    assert [record.raw for record in found] == LINES[: len(found)]
    # compressed evenly, so about this share of the text is there
    assert share - 0.2 < len(found) / len(LINES) < share + 0.1
    assert reader.tail_state == "truncated"
    tail = TEXT[sum(len(line) + 1 for line in LINES[: len(found)]) : reader.size]
    assert [(d.reason, d.line_no, d.raw) for d in defects(items)] == (
        [("partial_tail", len(found) + 1, tail)] if tail else []
    )


@pytest.mark.parametrize(("ending", "pack"), PACKERS)
@pytest.mark.parametrize("rest", [3, 12])
def test_whole_pieces_in_front_of_a_cut_one_are_all_read(tmp_path: Path, ending: str, pack: Any, rest: int) -> None:
    # a writer that appends one piece per line, killed in the header of the last
    items, reader = read_file(tmp_path / f"s.jsonl{ending}", pack(TEXT) + pack(b'{"a":1}\n') * 3000 + pack(TEXT)[:rest])
    assert [item.raw for item in items] == LINES + [b'{"a":1}'] * 3000
    assert totals(reader) == (23_000, 0, "truncated", len(TEXT) + 24_000)


@pytest.mark.parametrize(("ending", "pack"), PACKERS)
def test_a_line_that_spans_the_cut_is_pending(tmp_path: Path, ending: str, pack: Any) -> None:
    items, reader = read_file(tmp_path / f"s.jsonl{ending}", pack(b'{"a":1}\n{"b"') + pack(TEXT)[:9])
    assert items == [Record(1, 0, 0, 7, b'{"a":1}', {"a": 1}), defect(2, 8, "partial_tail", b'{"b"')]
    assert totals(reader) == (2, 0, "truncated", 12)


@pytest.mark.parametrize(("ending", "pack"), PACKERS)
def test_rubbish_behind_a_piece_is_an_io_defect(tmp_path: Path, ending: str, pack: Any) -> None:
    items, reader = read_file(tmp_path / f"s.jsonl{ending}", pack(b'{"a":1}\n{"b":2}\n') + b"not compressed at all")
    assert items == [
        Record(1, 0, 0, 7, b'{"a":1}', {"a": 1}),
        Record(2, 0, 8, 7, b'{"b":2}', {"b": 2}),
        defect(3, 16, "io", b""),
    ]
    assert totals(reader) == (2, 0, "truncated", 16)


def test_a_checksum_that_fails_is_an_io_defect_behind_the_lines(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(b'{"a":1}\n'))
    packed[-8] ^= 1  # the first byte of the CRC
    items, reader = read_file(tmp_path / "s.jsonl.gz", bytes(packed))
    assert items == [Record(1, 0, 0, 7, b'{"a":1}', {"a": 1}), defect(2, 8, "io", b"")]
    assert reader.tail_state == "truncated"


def test_a_damaged_deflate_block_is_an_io_defect(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(TEXT))
    packed[10] |= 0b110  # behind the header of 10 bytes: block type 3, which does not exist (RFC 1951, 3.2.3)
    items, reader = read_file(tmp_path / "s.jsonl.gz", gzip.compress(b'{"a":1}\n') + packed)
    assert items == [Record(1, 0, 0, 7, b'{"a":1}', {"a": 1}), defect(2, 8, "io", b"")]
    assert reader.tail_state == "truncated"


@pytest.mark.parametrize("name", ["s.jsonl.gz", "s.jsonl.zst"])
def test_a_file_that_is_not_what_its_name_says_is_an_io_defect(tmp_path: Path, name: str) -> None:
    items, reader = read_file(tmp_path / name, b'{"plain":"text"}\n')
    assert items == [defect(1, 0, "io", b"")]
    assert totals(reader) == (0, 0, "truncated", 0)


@pytest.mark.parametrize("name", ["none.jsonl", "none.jsonl.gz", "none.jsonl.zst"])
def test_a_file_that_cannot_be_opened_raises(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError):
        open_stream(tmp_path / name)


def test_the_reader_needs_no_engine() -> None:
    code = "import sys, etl.jsonl; print(sorted({'duckdb', 'polars', 'click', 'pyarrow'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


# --- Any bytes -------------------------------------------------------------------------------------------------------

_LINES = st.lists(
    st.one_of(
        st.binary(max_size=30),
        st.sampled_from(
            [b"", b" \r", b"{}", b'{"a":1}\r', b"\0\0", b'{"a":1}{"b":2}', rb'{"a":"\ud83d"}', b"[1]", BOM]
        ),
        st.lists(st.sampled_from([b'{"a":1}', b"{", b"}", b'"', b"\0", b"\xff", b" ", b'{"id":', BOM])).map(b"".join),
    ),
    max_size=8,
)


@given(_LINES)
def test_every_line_of_any_bytes_is_accounted_for(lines: list[bytes]) -> None:
    data = b"\n".join(lines)
    items, reader = read(data)
    pieces = data.split(b"\n")
    physical = pieces if pieces[-1] else pieces[:-1]
    assert (reader.lines, reader.size) == (len(physical), len(data))
    assert reader.lines == data.count(b"\n") + (not data.endswith(b"\n") and data != b"")
    blank = [n for n, line in enumerate(physical, 1) if not line.replace(BOM, b"", 1).strip()]
    assert {item.line_no for item in items} == set(range(1, len(physical) + 1)) - set(blank)
    assert reader.blank_lines == len(blank)
    assert [(i.line_no, isinstance(i, Defect), i.child) for i in items] == sorted(
        (i.line_no, isinstance(i, Defect), i.child) for i in items
    )
    glued = {d.line_no for d in defects(items) if d.reason in {"glued", "nul"}}
    for item in items:
        line = data[item.offset : item.offset + item.length]
        assert line == physical[item.line_no - 1]
        assert item.raw == line or (item.line_no in glued and item.raw in line)


@given(_LINES, st.integers(1, 40))
def test_the_chunk_size_changes_nothing(lines: list[bytes], cap: int) -> None:
    data = b"\n".join(lines)
    first, reader = read(data, chunk=1, line_cap=cap)
    for chunk in (7, 1 << 20):
        items, other = read(data, chunk=chunk, line_cap=cap)
        assert items == first
        assert totals(other) == totals(reader)
