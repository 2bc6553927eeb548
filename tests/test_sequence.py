"""Do the records of a log come in the order of its own numbers, each on its line, with all that could not be read?"""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

from etl import sequence
from etl.jsonl import Defect, JsonlReader, Record
from etl.sequence import in_sequence

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pytest


def _numbered(value: Mapping[str, Any]) -> tuple[str, int] | None:
    return (value["s"], value["n"]) if "n" in value else None


def _line(stream: str, number: int, **more: Any) -> bytes:
    return json.dumps({"s": stream, "n": number, **more}).encode()


def _read(path: Path, body: bytes) -> tuple[list[tuple[Any, ...]], list[tuple[int, str]], JsonlReader]:
    """The records in the order in which they come, the defects, and the reader when it is done."""
    path.write_bytes(body)
    with path.open("rb") as stream:
        reader = JsonlReader(stream)
        items = list(in_sequence(iter(reader), _numbered, str(path), str(path.parent)))
    records = [item for item in items if isinstance(item, Record)]
    for item in records:
        line = body.split(b"\n")[item.line_no - 1]
        assert body[item.offset : item.offset + item.length] == line
        assert item.raw in line
        assert json.loads(item.raw.decode("utf-8-sig")) == item.value
    placed = [(item.line_no, item.child, item.value.get("n")) for item in records]
    return placed, [(item.line_no, item.reason) for item in items if isinstance(item, Defect)], reader


def test_each_stream_keeps_its_lines_and_takes_the_order_of_its_numbers(tmp_path: Path) -> None:
    """Lines 1, 3, 5 are of stream a, 2 and 6 of b; line 4 has no number. Of equal numbers the earlier line is first."""
    lines = [_line("a", 9), _line("b", 2), _line("a", 3), b'{"s":"a"}', _line("a", 3), _line("b", 1)]
    placed, defects, reader = _read(tmp_path / "log", b"\n".join(lines) + b"\n")
    assert placed == [(3, 0, 3), (6, 0, 1), (5, 0, 3), (4, 0, None), (1, 0, 9), (2, 0, 2)]
    assert (defects, reader.lines, reader.tail_state) == ([], 6, "complete")


def test_what_cannot_be_read_is_told_and_glued_records_stay_together(tmp_path: Path) -> None:
    """Line 1 has a byte order mark, 2 is no JSON, 3 holds two records, 4 is blank, 6 is torn."""
    glued = _line("a", 5) + _line("a", 1)
    lines = [b"\xef\xbb\xbf" + _line("a", 7), b"{no", glued, b"", _line("a", 2), b'{"s":']
    placed, defects, reader = _read(tmp_path / "log", b"\n".join(lines))
    assert placed == [(5, 0, 2), (3, 0, 5), (3, 1, 1), (1, 0, 7)]
    assert defects == [(2, "malformed"), (3, "glued"), (6, "partial_tail")]
    assert (reader.lines, reader.blank_lines, reader.tail_state) == (6, 1, "partial")


def test_lines_in_order_come_straight_from_their_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence, "_reordered", None)  # nothing is put aside
    placed, _, _ = _read(tmp_path / "log", b"\n".join([_line("a", 1), _line("b", 1), _line("a", 1), _line("a", 4)]))
    assert placed == [(1, 0, 1), (2, 0, 1), (3, 0, 1), (4, 0, 4)]


def test_a_file_that_goes_away_meanwhile_is_read_as_it_stands(tmp_path: Path) -> None:
    reader = JsonlReader(io.BytesIO(_line("a", 2) + b"\n" + _line("a", 1)))
    items = in_sequence(iter(reader), _numbered, str(tmp_path / "gone"), str(tmp_path))
    assert [item.line_no for item in items] == [1, 2]
