"""Does one line decode to what stands in it, and is every repair named?"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from etl.decode import RESYNC_ATTEMPTS, decode_line, decode_nested, is_nul_padding, split_glued

BOM = b"\xef\xbb\xbf"
REPLACED = "\ufffd"


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"a":1}', {"a": 1}),
        (b'{"a":1}\r', {"a": 1}),
        (b' \t{"a" : 1} ', {"a": 1}),
        (BOM + b'{"a":1}\r', {"a": 1}),
        (b'{"a":"\xe2\x80\xa8"}', {"a": "\u2028"}),
        (b'{"a":9223372036854775807}', {"a": 9223372036854775807}),
        (b'{"a":18446744073709551615}', {"a": 18446744073709551615}),
        # 2**64 is a power of two, so the double is exact; that it is a float is the documented rule
        (b'{"a":18446744073709551616}', {"a": 1.8446744073709552e19}),
        (b'{"a":1e400,"b":"1e400 \\" 2","c":-1e400}', {"a": "1e400", "b": '1e400 " 2', "c": "-1e400"}),
        (b'{"a":' + b"9" * 5000 + b"}", {"a": "9" * 5000}),
    ],
)
def test_a_whole_object_is_no_defect(raw: bytes, value: dict[str, Any]) -> None:
    assert decode_line(raw) == (value, None)


@pytest.mark.parametrize("raw", [b"", b"   ", b"\t\r", b"\x0c", BOM, BOM + b" \r"])
def test_white_space_is_blank(raw: bytes) -> None:
    assert decode_line(raw) == (None, None)


@pytest.mark.parametrize("raw", [b"[]", b"12", b"null", b"true", b'"text"', b'[{"a":1}]', b"\0[1]", b'["\xff"]'])
def test_any_other_value_is_not_an_object(raw: bytes) -> None:
    assert decode_line(raw) == (None, "not_object")


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":-Infinity}',
        b'{"a":01}',
        b'{"a":1',
        b'{"a":"\t"}',
        b"{'a':1}",
        b'{"a":1,}',
        b'\x0c{"a":1}',
        b'{"a":"\\ud83d"',
        b'{"a":1e400',
        BOM + BOM + b'{"a":1}',
        b"plain text",
    ],
)
def test_what_is_not_json_is_malformed(raw: bytes) -> None:
    assert decode_line(raw) == (None, "malformed")


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (rb'{"a":"\ud83d"}', {"a": REPLACED}),
        (rb'{"a":"\uDE00."}', {"a": REPLACED + "."}),
        (rb'{"\ud83d":{"b":["\udfff",1]}}', {REPLACED: {"b": [REPLACED, 1]}}),
        # a lone high one, then a pair: only the first is replaced
        (rb'{"a":"\ud83d\ud83d\ude00"}', {"a": REPLACED + "\U0001f600"}),
        # the wrong way round: both are alone
        (rb'{"a":"\ude00\ud83d"}', {"a": REPLACED * 2}),
        # two backslashes are one backslash, and the text ud83d follows
        (rb'{"a":"\\ud83d","b":"\ud83d"}', {"a": "\\ud83d", "b": REPLACED}),
        (rb'{"a":"\\\ud83d"}', {"a": "\\" + REPLACED}),
        # the first is text, so the low one behind it is alone
        (rb'{"a":"\\ud83d\ude00"}', {"a": "\\ud83d" + REPLACED}),
        (rb'{"a":"\n\t\u00e9\ud83d"}', {"a": "\n\té" + REPLACED}),
        (rb'{"a":"\ud83d","n":1e400}', {"a": REPLACED, "n": "1e400"}),
    ],
)
def test_a_lone_surrogate_becomes_the_replacement_character(raw: bytes, value: dict[str, Any]) -> None:
    assert decode_line(raw) == (value, "surrogate")


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"a":"\xff"}', {"a": REPLACED}),
        (b'{"a\xe2\x82":1}', {"a" + REPLACED: 1}),
        # a surrogate as three raw bytes: none of them is UTF-8
        (b'{"a":"\xed\xa0\xbd"}', {"a": REPLACED * 3}),
        (b'{"a":"\xff","b":"\\ud83d"}', {"a": REPLACED, "b": REPLACED}),
    ],
)
def test_bytes_that_are_not_utf8_are_replaced(raw: bytes, value: dict[str, Any]) -> None:
    assert decode_line(raw) == (value, "encoding")


def test_bytes_that_are_not_utf8_and_not_json_keep_the_reason() -> None:
    assert decode_line(b'\xff\xfe{"a":1') == (None, "encoding")


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'\0\0\0{"a":1}', {"a": 1}),
        (b'{"a":1}\0\0\r', {"a": 1}),
        (b'\0 {"a":1} \0', {"a": 1}),
        (b"\0" + BOM + b'{"a":1}', {"a": 1}),
        (b'{"a":\0"x\0y"}', {"a": "xy"}),
        (b'\0{"a":"\xff"}', {"a": REPLACED}),
        (b"\0\0", None),
        (b" \0\r", None),
        (b"\0garbage", None),
        (b'{"a\0', None),
    ],
)
def test_nul_bytes_are_taken_out_and_named(raw: bytes, value: dict[str, Any] | None) -> None:
    assert decode_line(raw) == (value, "nul")


@pytest.mark.parametrize(
    ("raw", "padding"), [(b"\0", True), (b" \0\0\r", True), (b"", False), (b" ", False), (b"\0{}", False)]
)
def test_padding_is_nul_and_white_space_only(raw: bytes, padding: bool) -> None:  # noqa: FBT001 - a table of answers
    assert is_nul_padding(raw) is padding


def test_depth_is_taken_up_to_1024_levels() -> None:
    inner = 1023
    value, reason = decode_line(b'{"a":' + b"[" * inner + b"]" * inner + b"}")
    assert reason is None
    assert value is not None
    assert decode_line(b'{"a":' + b"[" * 1024 + b"]" * 1024 + b"}") == (None, "depth")


@pytest.mark.parametrize(
    "raw",
    [b"[" * 10_000_000, b'{"a":' * 2_000_000, b'{"s":"\\ud83d","a":' + b"[" * 5000 + b"]" * 5000 + b"}"],
    ids=["open-arrays", "open-objects", "behind-a-surrogate"],
)
def test_deeper_nesting_is_a_reason_and_no_exception(raw: bytes) -> None:
    assert decode_line(raw) == (None, "depth")


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        (b'{"a":1}{"b":2}', [b'{"a":1}', b'{"b":2}']),
        (b'{"a":1} \t{"b":2}\r', [b'{"a":1}', b'{"b":2}']),
        (b'{"a":1}' + BOM + b'{"b":2}', [b'{"a":1}', b'{"b":2}']),
        (BOM + b'{"a":1}{}', [b'{"a":1}', b"{}"]),
        (b'{"a":"}{"}{"b":"\xc3\xa9"}{"c":3}', [b'{"a":"}{"}', b'{"b":"\xc3\xa9"}', b'{"c":3}']),
        # the second is cut off, the first is whole
        (b'{"a":1}{"b', [b'{"a":1}']),
        (b'{"a":1}garbage', [b'{"a":1}']),
        # the first is cut off: behind it stands a key that begins records
        (b'{"a":1{"timestamp":"t","n":{}}', [b'{"timestamp":"t","n":{}}']),
        (b'{"type":"user","text":"hel{"type":"user","id":2}', [b'{"type":"user","id":2}']),
        (b'{"a":{"b":1}{"c":2}{"d":3}', [b'{"c":2}', b'{"d":3}']),
        # one in the middle is broken
        (b'{"a":1}{"b":,}{"c":3}', [b'{"a":1}', b'{"c":3}']),
        # an object that NaN breaks is not passed on
        (b'{"a":NaN}{"b":2}', [b'{"b":2}']),
        # a child is repaired as any line is
        (b'{"a":"\\ud83d"}{"b":"\xff"}', [b'{"a":"\\ud83d"}', b'{"b":"\xff"}']),
        (b'{"a":1}\0\0{"b":2}', [b'{"a":1}', b'{"b":2}']),
    ],
)
def test_glued_objects_come_out_one_by_one(raw: bytes, parts: list[bytes]) -> None:
    found = list(split_glued(raw))
    assert [part for part, _ in found] == parts
    assert [value for _, value in found] == [decode_line(part)[0] for part in parts]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"garbage",
        # one record cut off: the objects inside it are not records
        b'{"type":"user","message":{"role":"user"}',
        b'{"type":"user","message":{"id":"m1"}',
        b'{"type":"user","message": {"type":"text"}',
        b'{"type":"user","content":[{"type":"text","text":"x"}',
        b'{"type":"user","content":[{"type":"text"},{"type":"text"}',
        b'{"type":"user","content":[{"type":"text"} , {"type":"text"}',
        # cut off at the front
        b'"role":"user"},"type":"x"}',
        # at a seam, but the line does not end behind the object
        b'[{"a":1}{"b":2}]',
        b'{"a":1,{"type":"x"}}',
        b'12 {"a":1}',
        b"{" * 5000,
    ],
)
def test_inner_objects_are_not_taken_for_records(raw: bytes) -> None:
    assert list(split_glued(raw)) == []


def test_an_object_behind_another_resynced_one_must_not_be_followed_by_rubbish() -> None:
    # the seam's object is followed by a bracket, so only the last one, which ends the line, is a record
    assert [part for part, _ in split_glued(b'x{"id":1}]{"id":2}')] == [b'{"id":2}']


def test_the_search_for_objects_is_bounded() -> None:
    broken = b'x{"id":]'
    whole = b'x{"id":1}'
    assert [part for part, _ in split_glued(broken * (RESYNC_ATTEMPTS - 1) + whole)] == [whole[1:]]
    assert list(split_glued(broken * RESYNC_ATTEMPTS + whole)) == []


@pytest.mark.parametrize(
    "raw",
    [
        b'x{"id":' * 500_000,
        b'x{"id":1,' * 64 + b'"a":1,' * 500_000,
        b'x}{"' * 1_000_000,
        b'"\\"' * 1_000_000,
        b"\\" * 5_000_000,
        b'{"a":1e400,"b":"' + b'\\"' * 1_000_000,
        b"x" + b"} " * 1_000_000,
        b"x" + b" " * 5_000_000 + b'{"id":1}',
    ],
    ids=["nested", "long-tail", "seams", "quotes", "backslashes", "open-string", "braces", "spaces"],
)
def test_megabytes_of_rubbish_end(raw: bytes) -> None:
    # quadratic work would take hours here
    assert decode_line(raw) == (None, "malformed")
    assert list(split_glued(raw)) == []


_PIECES = st.sampled_from(
    [
        b'{"a":1}',
        b"{",
        b"}",
        b'"',
        b"\\",
        b"\\ud83d",
        b"\\ude00",
        b"\0",
        b"\xff",
        b" ",
        b"1e400",
        b",",
        b":",
        b'{"id":',
        BOM,
    ]
)


@given(st.one_of(st.binary(max_size=60), st.lists(_PIECES, max_size=12).map(b"".join)))
@example(b'{"a":"\\')
@example(b'{"a":"\\u')
def test_no_bytes_raise(raw: bytes) -> None:
    value, reason = decode_line(raw)
    assert value is not None or reason is not None or not raw.replace(BOM, b"", 1).strip()
    end = 0
    for part, found in split_glued(raw):
        assert decode_line(part)[0] == found
        end = raw.index(part, end) + len(part)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a":1}', {"a": 1}),
        ("[1,2]", [1, 2]),
        ('"text"', "text"),
        (r'{"a":"\ud83d"}', {"a": REPLACED}),
        (r'[{"a":"\ude00"}]', [{"a": REPLACED}]),
        ('{"a":NaN,"b":[Infinity,-Infinity]}', {"a": "NaN", "b": ["Infinity", "-Infinity"]}),
        # inside a string the same letters are text
        (r'{"a":NaN,"b":"NaN \" -Infinity"}', {"a": "NaN", "b": 'NaN " -Infinity'}),
        (r'{"a":NaN,"b":"\ud83d","c":1e400}', {"a": "NaN", "b": REPLACED, "c": "1e400"}),
        ('{"a":' + "9" * 5000 + "}", {"a": "9" * 5000}),
        ('{"a":123456789012345678901234567890}', {"a": 1.2345678901234568e29}),
        ('{"a":"\ud83d"}', {"a": REPLACED * 3}),  # half a pair as a character: three bytes, none of them UTF-8
        ('{"a":"x\0y"}', {"a": "xy"}),
        ("[NaN](https://example.org)", None),
        ('{"a":NaN', None),
        ("[" * 5000, None),
    ],
)
def test_a_text_inside_a_record_is_decoded_with_the_repairs_of_a_line(text: str, value: Any) -> None:
    assert decode_nested(text) == value


@given(st.text())
def test_no_text_is_too_odd_to_be_decoded(text: str) -> None:
    decode_nested(text)
    decode_nested('{"a":NaN,"b":"' + text)
