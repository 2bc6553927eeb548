"""Does a result of DuckDB come out exact for programs, and readable and harmless for people?"""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etl.errors import UsageError
from etl.render import FORMATS, render

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(name="berlin", scope="module")
def _berlin() -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection whose session is not in UTC: what is printed must be UTC all the same."""
    with duckdb.connect() as connection:
        connection.execute("SET timezone = 'Europe/Berlin'")
        yield connection


@pytest.fixture(name="lossless", scope="module")
def _lossless() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET arrow_lossless_conversion = true")
        yield connection


def text_of(table: pa.Table, fmt: str, *, width: int | None = None, color: bool = False) -> str:
    pieces = list(render(table, fmt, width=width, color=color))
    assert all(piece.endswith("\n") for piece in pieces)
    return "".join(pieces)


def literal(connection: duckdb.DuckDBPyConnection, expression: str) -> str:
    """The JSON literal of one expression, as printed."""
    line = text_of(connection.sql(f"SELECT {expression} AS v").to_arrow_table(), "jsonl")
    json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert line.startswith('{"v":')
    assert line.endswith("}\n")
    return line[len('{"v":') : -2]


def strict_loads(text: str) -> Any:
    return json.loads(text, parse_float=Decimal, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))


# --- Machine formats: one value -------------------------------------------------------------------------------------

PLAIN = [
    ("NULL", "null"),
    ("true", "true"),
    ("(-128)::TINYINT", "-128"),
    ("9223372036854775807", "9223372036854775807"),
    ("18446744073709551615::UBIGINT", "18446744073709551615"),
    ("170141183460469231731687303715884105727::HUGEINT", "170141183460469231731687303715884105727"),
    ("(-170141183460469231731687303715884105728)::HUGEINT", "-170141183460469231731687303715884105728"),
    ("(SELECT sum(x) FROM range(4) t(x))", "6"),
    ("1.5::DOUBLE", "1.5"),
    ("0.1::DOUBLE + 0.2::DOUBLE", "0.30000000000000004"),
    ("1.1::FLOAT", "1.1"),
    ("12.345678901::DECIMAL(18, 9)", "12.345678901"),
    ("9007199254740993.1::DECIMAL(38, 1)", "9007199254740993.1"),
    ("0.00000000012::DECIMAL(38, 11)", "0.00000000012"),
    ("(-0.05)::DECIMAL(4, 2)", "-0.05"),
    ("0::DECIMAL(38, 20)", "0.00000000000000000000"),
    ("'nan'::DOUBLE", "null"),
    ("'infinity'::DOUBLE", "null"),
    ("'-infinity'::FLOAT", "null"),
    ("'null'", '"null"'),
    ("''", '""'),
    ("'a\"b' || chr(10) || 'ü\u2028'", '"a\\"b\\nü\u2028"'),
    ("""'{"a": 1}'::JSON""", '"{\\"a\\": 1}"'),
    ("'b'::ENUM('a', 'b')", '"b"'),
    (r"'\xAA\x00z'::BLOB", '"aa007a"'),
    ("UUID '00000000-0000-4000-8000-0000000000ff'", '"00000000-0000-4000-8000-0000000000ff"'),
]

TIMES = [
    # Berlin is two hours ahead in August and one in January.
    ("TIMESTAMPTZ '2026-08-02 07:00:01.3+02'", '"2026-08-02T05:00:01.300000Z"'),
    ("TIMESTAMPTZ '2026-01-02 00:30:00'", '"2026-01-01T23:30:00.000000Z"'),
    ("TIMESTAMPTZ '1969-12-31 23:59:59.999999+00'", '"1969-12-31T23:59:59.999999Z"'),
    ("TIMESTAMPTZ '10000-01-01 00:00:00.000001+00'", '"+10000-01-01T00:00:00.000001Z"'),
    ("TIMESTAMPTZ 'infinity'", '"infinity"'),
    ("TIMESTAMP '2026-08-02 05:00:01.3'", '"2026-08-02T05:00:01.300000"'),
    ("TIMESTAMP '0001-01-01 00:00:00'", '"0001-01-01T00:00:00.000000"'),
    ("TIMESTAMP '9999-12-31 23:59:59.999999'", '"9999-12-31T23:59:59.999999"'),
    ("TIMESTAMP '290000-02-28 13:14:15'", '"+290000-02-28T13:14:15.000000"'),
    ("TIMESTAMP '-infinity'", '"-infinity"'),
    ("TIMESTAMP_S '2026-08-02 05:00:01'", '"2026-08-02T05:00:01.000000"'),
    ("TIMESTAMP_MS '1900-03-01 05:00:01.007'", '"1900-03-01T05:00:01.007000"'),
    ("TIMESTAMP_NS '2026-08-02 05:00:01.000000007'", '"2026-08-02T05:00:01.000000007"'),
    ("DATE '1969-12-31'", '"1969-12-31"'),
    ("DATE '0001-01-01'", '"0001-01-01"'),
    ("DATE '10000-01-01'", '"+10000-01-01"'),
    ("DATE '2000-02-29'", '"2000-02-29"'),
    ("DATE '0044-03-15 (BC)'", '"-0043-03-15"'),  # year 0 is 1 BC
    ("DATE '5000000-01-01'", '"+5000000-01-01"'),
    ("DATE 'infinity'", '"infinity"'),
    ("TIME '01:02:03.5'", '"01:02:03.500000"'),
    ("TIME '24:00:00'", '"24:00:00.000000"'),
    ("INTERVAL '1 year 2 months 3 days 4 hours 5 minutes 6.5 seconds'", '"P1Y2M3DT4H5M6.5S"'),
    ("INTERVAL '-1 month 2 days -0.25 seconds'", '"P-1M2DT-0.25S"'),
    ("INTERVAL '90 minutes'", '"PT1H30M"'),
    ("INTERVAL '0 days'", '"PT0S"'),
]

NESTED = [
    ("[1, NULL, 3]", "[1,null,3]"),
    ("[]::INT[]", "[]"),
    ("[[1.25], NULL, []]::DECIMAL(4, 2)[][]", "[[1.25],null,[]]"),
    ("[1, 2]::INT[2]", "[1,2]"),
    ("{'a%s': 1, 'b': [TIMESTAMPTZ '2026-08-02 07:00:00+02']}", '{"a%s":1,"b":["2026-08-02T05:00:00.000000Z"]}'),
    ("NULL::STRUCT(a INT)", "null"),
    ("{'n': 'nan'::DOUBLE, 's': NULL::VARCHAR}", '{"n":null,"s":null}'),
    ("MAP {'k\"': 1, 'l': NULL}", '{"k\\"":1,"l":null}'),
    ("MAP {1: ['x']}", '{"1":["x"]}'),
    ("MAP {DATE '2026-08-02': true}", '{"2026-08-02":true}'),
    ("MAP {}::MAP(VARCHAR, INT)", "{}"),
    ("union_value(num := 2)", "2"),
    ("'x'::UNION(num BIGINT, word VARCHAR)", '"x"'),
    ("{'e': 'b'::ENUM('a', 'b'), 'h': 7::HUGEINT}", '{"e":"b","h":7}'),
]


@pytest.mark.parametrize(("expression", "expected"), PLAIN + TIMES + NESTED)
def test_json_literal(berlin: duckdb.DuckDBPyConnection, expression: str, expected: str) -> None:
    assert literal(berlin, expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("340282366920938463463374607431768211455::UHUGEINT", "340282366920938463463374607431768211455"),
        ("(-1)::HUGEINT", "-1"),
        ("(SELECT sum(x) FROM range(4) t(x))", "6"),
        ("NULL::HUGEINT", "null"),
        ("(-300)::BIGNUM", "-300"),
        ("0::BIGNUM", "0"),
        ("TIMETZ '01:02:03.5+02:30'", '"01:02:03.500000+02:30"'),
        ("TIMETZ '01:02:03-11'", '"01:02:03.000000-11:00"'),
        ("'101'::BIT", '"101"'),
        ("UUID '00000000-0000-4000-8000-0000000000ff'", '"00000000-0000-4000-8000-0000000000ff"'),
        ("[true, NULL, false]", "[true,null,false]"),
        ("""{'j': '[1]'::JSON}""", '{"j":"[1]"}'),
    ],
)
def test_json_literal_of_extension_types(lossless: duckdb.DuckDBPyConnection, expression: str, expected: str) -> None:
    assert literal(lossless, expression) == expected


def test_an_integer_of_five_thousand_digits_is_printed(berlin: duckdb.DuckDBPyConnection) -> None:
    # Python's own int-to-text conversion stops at 4300 digits.
    table = berlin.sql(f"SELECT '{'7' * 5000}'::BIGNUM AS v").to_arrow_table()
    assert text_of(table, "jsonl") == '{"v":' + "7" * 5000 + "}\n"


def test_one_far_value_does_not_change_its_neighbours(berlin: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT unnest([TIMESTAMP '2026-08-02 05:00:01', NULL, TIMESTAMP 'infinity', TIMESTAMP '1969-07-20']) AS v"
    assert text_of(berlin.sql(query).to_arrow_table(), "csv").split("\n")[1:] == [
        "2026-08-02T05:00:01.000000",
        '""',
        "infinity",
        "1969-07-20T00:00:00.000000",
        "",
    ]


@pytest.mark.parametrize(
    "setting",
    ["SET produce_arrow_string_view = true", "SET arrow_output_list_view = true", "SET arrow_large_buffer_size = true"],
)
def test_other_arrow_layouts_of_the_same_values(setting: str) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET arrow_output_version = '1.4'")
        connection.execute(setting)
        value = literal(connection, r"{'s': 'x', 'b': '\x01'::BLOB, 'l': [[1], NULL], 'm': MAP {'k': [2]}}")
    assert value == '{"s":"x","b":"01","l":[[1],null],"m":{"k":[2]}}'


# --- Machine formats: the whole text --------------------------------------------------------------------------------


def test_json_is_one_array_with_a_row_per_line(berlin: duckdb.DuckDBPyConnection) -> None:
    table = berlin.sql("SELECT i AS n, 'x' || i AS s FROM range(2) t(i)").to_arrow_table()
    assert text_of(table, "json") == '[\n{"n":0,"s":"x0"},\n{"n":1,"s":"x1"}\n]\n'


def test_no_rows(berlin: duckdb.DuckDBPyConnection) -> None:
    table = berlin.sql("SELECT 1 AS n, [{'a': 'x'}] AS s WHERE false").to_arrow_table()
    assert {fmt: text_of(table, fmt, width=80) for fmt in FORMATS} == {
        "json": "[]\n",
        "jsonl": "",
        "csv": "n,s\n",
        "table": "n  s\n─  ─\n(no rows)\n",
        "markdown": "| n | s |\n| ---: | --- |\n\n(no rows)\n",
    }


def test_no_columns() -> None:
    texts = {fmt: text_of(pa.table({}), fmt, width=80) for fmt in FORMATS}
    assert texts == {"json": "[]\n", "jsonl": "", "csv": "", "table": "(no rows)\n", "markdown": "\n(no rows)\n"}


def test_many_batches_keep_every_row_in_order(berlin: duckdb.DuckDBPyConnection) -> None:
    # 20,000 rows are three slices or more: nested children must be cut at the same place as their rows.
    query = """
        SELECT i AS n, CASE WHEN i % 3 <> 0 THEN [i, i + 1] END AS l, MAP {i: {'v': i::VARCHAR}} AS m,
               CASE WHEN i % 2 = 0 THEN [i, i]::BIGINT[2] END AS f,
               CASE WHEN i % 2 = 0 THEN i::UNION(num BIGINT, word VARCHAR)
                    ELSE 'w'::UNION(num BIGINT, word VARCHAR) END AS u
        FROM range(20000) t(i) ORDER BY i"""
    table = berlin.sql(query).to_arrow_table()
    expected = [
        {
            "n": i,
            "l": [i, i + 1] if i % 3 else None,
            "m": {str(i): {"v": str(i)}},
            "f": None if i % 2 else [i, i],
            "u": "w" if i % 2 else i,
        }
        for i in range(20000)
    ]
    assert strict_loads(text_of(table, "json")) == expected
    assert [strict_loads(line) for line in text_of(table, "jsonl").splitlines()] == expected


def test_large_rows_come_in_several_pieces(berlin: duckdb.DuckDBPyConnection) -> None:
    table = berlin.sql("SELECT repeat('x', 1_000_000) AS s FROM range(20)").to_arrow_table()
    pieces = list(render(table, "jsonl"))
    assert len(pieces) >= 5
    assert sum(piece.count("\n") for piece in pieces) == 20


def test_repeated_names_lose_no_value(berlin: duckdb.DuckDBPyConnection) -> None:
    table = (
        berlin.sql("SELECT 1 AS a, 2 AS a_1, 3 AS a, 4 AS a").to_arrow_table().rename_columns(["a", "a_1", "a", "a"])
    )
    assert text_of(table, "jsonl") == '{"a":1,"a_1":2,"a_2":3,"a_3":4}\n'
    assert text_of(table, "csv").startswith("a,a_1,a_2,a_3\n")


def test_a_column_name_is_data_too(berlin: duckdb.DuckDBPyConnection) -> None:
    table = berlin.sql("""SELECT 1 AS "100 %s, ""x\"\"" """).to_arrow_table()
    assert text_of(table, "jsonl") == '{"100 %s, \\"x\\"":1}\n'
    assert text_of(table, "csv") == '"100 %s, ""x"""\n1\n'


def test_csv_quotes_what_needs_it(berlin: duckdb.DuckDBPyConnection) -> None:
    query = """SELECT 'a,b' AS comma, 'say "hi"' AS quote, 'x' || chr(10) || 'y' AS line, '' AS empty,
                      NULL AS missing, 12.50::DECIMAL(4, 2) AS money, 'nan'::DOUBLE AS odd,
                      true AS flag, [1, 2] AS list, ' s ' AS blanks"""
    assert text_of(berlin.sql(query).to_arrow_table(), "csv") == (
        "comma,quote,line,empty,missing,money,odd,flag,list,blanks\n"
        '"a,b","say ""hi""","x\ny","",,12.50,,true,"[1,2]", s \n'
    )


def test_an_unknown_format_is_refused_before_any_output() -> None:
    with pytest.raises(UsageError, match=r"xml.*table, json, jsonl, csv, markdown"):
        render(pa.table({"a": [1]}), "xml")


def test_naming_the_formats_loads_no_engine() -> None:
    code = "import sys, etl.render; print(sorted({'pyarrow', 'duckdb', 'polars'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


# --- Properties -----------------------------------------------------------------------------------------------------

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
@given(ROWS)
def test_machine_formats_round_trip(rows: list[tuple[str | None, str, int | None]]) -> None:
    table = as_table(rows)
    expected = table.to_pylist()
    assert strict_loads(text_of(table, "json")) == expected
    assert [strict_loads(line) for line in text_of(table, "jsonl").split("\n")[:-1]] == expected
    header, *lines = csv.reader(io.StringIO(text_of(table, "csv"), newline=""), strict=True)
    assert header == table.column_names
    assert lines == [["" if value is None else str(value) for value in row] for row in rows]
