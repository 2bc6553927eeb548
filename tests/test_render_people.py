"""Is what people see aligned, no wider than the terminal, and harmless to it?"""

from __future__ import annotations

import unicodedata
from decimal import Decimal
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etl.render import render
from etl.render.terminal import cell_width, clean, cut

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(name="berlin", scope="module")
def _berlin() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection whose session is not in UTC: what is printed must be UTC all the same."""
    with duckdb.connect() as connection:
        connection.execute("SET timezone = 'Europe/Berlin'")
        yield connection


def text_of(table: pa.Table, fmt: str, *, width: int | None = None, color: bool = False) -> str:
    pieces = list(render(table, fmt, width=width, color=color))
    assert all(piece.endswith("\n") for piece in pieces)
    return "".join(pieces)


CALLS = """
    SELECT * FROM (VALUES
        ('Read', 12, 1234.567::DOUBLE, 0.5::DECIMAL(6, 3), TIMESTAMPTZ '2026-08-02 05:00:01.3+00', true),
        ('日本語', NULL, NULL, 12::DECIMAL(6, 3), NULL, NULL)
    ) t(tool, calls, p95_ms, cost, last_at, ok)"""


def test_table_aligns_numbers_right_and_text_left(berlin: duckdb.DuckDBPyConnection) -> None:
    # Each CJK character fills two cells, so '日本語' is six wide.
    assert text_of(berlin.sql(CALLS).to_arrow_table(), "table", width=80) == (
        "tool    calls    p95_ms  cost  last_at               ok\n"
        "──────  ─────  ────────  ────  ────────────────────  ────\n"
        "Read       12  1234.567   0.5  2026-08-02 05:00:01Z  true\n"
        "日本語      -         -    12  -                     -\n"
    )


def test_color_makes_only_the_header_bold(berlin: duckdb.DuckDBPyConnection) -> None:
    table = berlin.sql(CALLS).to_arrow_table()
    plain, bold = text_of(table, "table", width=80), text_of(table, "table", width=80, color=True)
    first, rest = plain.split("\n", 1)
    assert bold == f"\x1b[1m{first}\x1b[0m\n{rest}"


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1234.5678::DOUBLE", "1234.568"),
        ("1234::DOUBLE", "1234"),
        ("100::DOUBLE", "100"),
        ("-2.50::DECIMAL(4, 2)", "-2.5"),
        ("0.00012345::DOUBLE", "0.000123"),
        ("0.00012345::DECIMAL(10, 8)", "0.000123"),
        ("0.1::DOUBLE + 0.2::DOUBLE", "0.3"),
        ("0.99999::DOUBLE", "1"),
        ("0.00000012::DOUBLE", "1.2e-07"),
        ("0::DOUBLE", "0"),
        ("-0.0::DOUBLE", "0"),
        ("0.0::DECIMAL(4, 1)", "0"),
        ("1e300::DOUBLE", "1e+300"),
        ("'nan'::DOUBLE", "nan"),
        ("'-infinity'::DOUBLE", "-inf"),
        ("12345678901234567890123456789012345.678::DECIMAL(38, 3)", "12345678901234567890123456789012345.678"),
        ("1000000::BIGINT", "1000000"),
        ("TIMESTAMP '2026-08-02 05:00:01.9'", "2026-08-02 05:00:01"),
        ("TIMESTAMPTZ 'infinity'", "infinity"),
        ("DATE '2026-08-02'", "2026-08-02"),
        ("NULL::VARCHAR", "-"),
        ("{'a': [1, NULL]}", '{"a":[1,null]}'),
    ],
)
def test_value_in_a_table(berlin: duckdb.DuckDBPyConnection, expression: str, expected: str) -> None:
    lines = text_of(berlin.sql(f"SELECT {expression} AS v").to_arrow_table(), "table").splitlines()
    assert lines[2].strip() == expected


def test_long_texts_are_cut_to_one_width_and_numbers_stay_whole() -> None:
    table = pa.table({"a": ["x" * 100], "b": ["y" * 50], "id": ["abc"], "tokens": [123456789]})
    # 40 cells - 3 gaps of 2 - 9 digits - 3 of 'abc' leaves 22: eleven each.
    assert text_of(table, "table", width=40).splitlines()[2] == "xxxxxxxxxx…  yyyyyyyyyy…  abc  123456789"


def test_a_header_is_cut_before_a_number() -> None:
    table = pa.table({"cache_creation_input_tokens": [12345678], "t": ["y" * 50]})
    # 20 cells - 1 gap of 2 leaves 18: nine each; the number needs eight.
    assert text_of(table, "table", width=20).splitlines() == [
        "cache_cr…  t",
        "─────────  ─────────",
        " 12345678  yyyyyyyy…",
    ]


def test_columns_that_cannot_fit_become_blocks() -> None:
    row = {"session_id": "s-1", "title": "t" * 60, "input": 1234567890123, "output": 1234567890123, "cost": None}
    assert text_of(pa.Table.from_pylist([row, row]), "table", width=40).splitlines()[:7] == [
        "── 1 ──",
        "session_id: s-1",
        "title:      " + "t" * 27 + "…",
        "input:      1234567890123",
        "output:     1234567890123",
        "cost:       -",
        "── 2 ──",
    ]


def test_a_number_wider_than_the_terminal_is_wrapped_not_cut() -> None:
    table = pa.table({"n": pa.array([Decimal(12345678901234567890123456789)]), "m": [1]})
    assert text_of(table, "table", width=20).splitlines()[1:4] == ["n:", "12345678901234567890", "123456789"]


def test_no_rows_in_columns_that_cannot_fit() -> None:
    table = pa.table({f"column_{i}": pa.array([], pa.string()) for i in range(3)})
    assert text_of(table, "table", width=20) == "column_0:\ncolumn_1:\ncolumn_2:\n(no rows)\n"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a\r\n\tb", "a b"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;http://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jx", "x"),
        ("\x1bPq#0\x1b\\x", "x"),
        ("\x1b[31", "31"),  # torn: what is left has no escape in front of it
        ("end\x1b", "end "),
        ("\x1b\x1b[31m[31mx", " [31mx"),  # taking one away must not build another
        ("pay\u202egnp.exe", "paygnp.exe"),
        ("\u2066a\u2069\u200b\ufeff", "a"),
        ("a\u2028b\x85c\x00d", "a b c d"),
        ("❤\ufe0f", "❤"),
        ("nb\u00a0sp", "nb\u00a0sp"),
    ],
)
def test_text_cannot_reach_the_terminal(raw: str, shown: str) -> None:
    assert clean(raw) == shown


def test_cells_of_a_text() -> None:
    texts = ["abc", "日本", "e\u0301", "😀", "\U0001fae9", "ｆ", "…"]  # U+1FAE9 is of Unicode 16
    assert [cell_width(text) for text in texts] == [3, 4, 1, 2, 2, 2, 1]


def test_a_wide_character_is_not_halved() -> None:
    assert [cut("日本語", width) for width in (6, 5, 4, 2, 1)] == ["日本語", "日本…", "日…", "…", "…"]


def test_markdown_escapes_what_would_be_markup() -> None:
    table = pa.table(
        {"input_tokens": [1], "s": ["a|b\\\r\nc <b> & ![x](y) __init__ snake_case\x1b[31m"], "n": pa.nulls(1)}
    )
    assert text_of(table, "markdown") == (
        "| input_tokens | s | n |\n"
        "| ---: | --- | --- |\n"
        r"| 1 | a\|b\\<br>c \<b\> &amp; !\[x\](y) \_\_init\_\_ snake_case | - |"
        "\n"
    )


# A busy machine is no failure.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

# What Arrow can hold is what UTF-8 can hold: no lone surrogates.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
NASTY = TEXTS | st.text(st.sampled_from("\x1b[]0;31mK\x07\\\x9b日e\u0301\u202e\u200d😀\n\t|`"), max_size=60)
ROWS = st.lists(st.tuples(NASTY | st.none(), TEXTS, st.integers(-(2**63), 2**63 - 1) | st.none()), min_size=1)


def as_table(rows: list[tuple[str | None, str, int | None]]) -> pa.Table:
    a, b, n = zip(*rows, strict=True)
    return pa.table(
        {"a": pa.array(a, pa.string()), "long name 日本": pa.array(b, pa.string()), "n": pa.array(n, pa.int64())}
    )


@UNTIMED
@given(ROWS, st.sampled_from([20, 40, 80, 200]))
def test_no_line_is_wider_than_the_terminal(rows: list[tuple[str | None, str, int | None]], width: int) -> None:
    text = text_of(as_table(rows), "table", width=width)
    assert max(cell_width(line) for line in text.split("\n")) <= width
    assert all(str(n) in text.replace("\n", "") for *_, n in rows if n is not None)


@UNTIMED
@given(st.lists(NASTY, min_size=1, max_size=12), st.sampled_from([20, 40, 80]))
def test_many_columns_are_never_wider_than_the_terminal(values: list[str], width: int) -> None:
    table = pa.table([[value] for value in values], names=[f"column {value}" for value in values])
    assert max(cell_width(line) for line in text_of(table, "table", width=width).split("\n")) <= width


@UNTIMED
@given(ROWS, st.sampled_from([None, 40]))
def test_output_for_people_holds_no_control_characters(
    rows: list[tuple[str | None, str, int | None]], width: int | None
) -> None:
    table = as_table(rows)
    for text in (text_of(table, "table", width=width), text_of(table, "markdown")):
        found = {unicodedata.category(char) for char in text if char != "\n"}
        assert not found & {"Cc", "Cf", "Zl", "Zp", "Cs"}


@UNTIMED
@given(ROWS)
def test_every_row_of_a_table_is_one_line(rows: list[tuple[str | None, str, int | None]]) -> None:
    assert text_of(as_table(rows), "table", width=200).count("\n") == 2 + len(rows)
    assert text_of(as_table(rows), "markdown").count("\n") == 2 + len(rows)
