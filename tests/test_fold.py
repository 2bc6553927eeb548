"""What does the fold make of records that say something again?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from etl.assemble import Fold
from etl.assemble.envelope import is_raw_envelope
from etl.finish import finish
from etl.jsonl import Record
from etl.keys import fact_id, slot, table_salt
from etl.providers import get
from etl.providers.base import Claim, Source
from etl.tables import Buffers

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Source("qoder", "host", "a/s1.jsonl", Claim("qoder_cli", "jsonl", "s1"))


def rows(*records: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The rows of facts of some records of one transcript, by table."""
    buffers, provider = Buffers(), get("qoder")
    fold = Fold(SOURCE, buffers, provider.inventory, lambda _offset, _length: None)

    def feed() -> Iterator[Record]:
        for n, value in enumerate(records, 1):
            raw = orjson.dumps(value)
            record = Record(n, 0, 0, len(raw), raw, value)
            fold.begin(record)
            yield record

    for event in provider.adapt(SOURCE, "qoder:s1", feed()):
        fold.take(event)
    fold.end()
    return {name: table.to_pylist() for name, table in finish(buffers, b"key")}


def answer(uuid: str, *content: dict[str, Any], stop: str | None = None, mid: str = "m1") -> dict[str, Any]:
    message = {"id": mid, "type": "message", "role": "assistant", "content": list(content), "stop_reason": stop}
    return {"type": "assistant", "uuid": uuid, "timestamp": "2026-06-01T10:00:00.000Z", "message": message}


def result(uuid: str, call: str, text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "tool_result", "tool_use_id": call, "content": text, **more}]
    return {"type": "user", "uuid": uuid, "timestamp": "2026-06-01T10:00:01.000Z", "message": {"content": content}}


CALL = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}}


def test_a_call_without_an_id_that_a_snapshot_lists_again_is_one_call() -> None:
    nameless = {"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}
    found = rows(answer("a1", nameless), answer("a2", nameless, {"type": "text", "text": "done"}, stop="end_turn"))
    assert [row["call_key"] for row in found["tool_requests"]] == ["~1.0"]
    assert [(row["line_no"], row["into_line_no"], row["reason"]) for row in found["merges"]] == [(2, 1, "resend")]


def test_two_equal_calls_without_an_id_in_one_record_are_two_calls() -> None:
    nameless = {"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}
    found = rows(answer("a1", nameless, nameless, stop="tool_use"))
    assert [row["call_key"] for row in found["tool_requests"]] == ["~1.0", "~1.1"]


def test_results_that_differ_only_in_their_error_flag_contradict_each_other() -> None:
    found = rows(answer("a1", CALL), result("r1", "c1", "out"), result("r2", "c1", "out", is_error=True))
    assert [(row["id_kind"], row["line_no"], row["other_line_no"]) for row in found["conflicts"]] == [
        ("tool_result", 3, 2)
    ]
    same = rows(answer("a1", CALL), result("r1", "c1", "out"), result("r2", "c1", "out"))
    assert "conflicts" not in same


def test_a_text_that_goes_on_after_a_call_is_a_text_of_its_own() -> None:
    text = {"type": "text", "text": "Let me look"}
    more = {"type": "text", "text": "Let me look at the other file"}
    found = rows(answer("a1", text), answer("a2", CALL), answer("a3", more, stop="end_turn"))
    assert [row["text"] for row in found["dialogue"]] == ["Let me look", "Let me look at the other file"]
    assert "merges" not in found


def test_a_snapshot_that_lists_the_message_again_grows_its_texts() -> None:
    first, grown = {"type": "text", "text": "The cause"}, {"type": "text", "text": "The cause is a string."}
    last = {"type": "text", "text": "Cast it."}
    found = rows(answer("a1", first), answer("a2", first, CALL), answer("a3", grown, CALL, last, stop="end_turn"))
    assert [(row["line_no"], row["text"]) for row in found["dialogue"]] == [
        (1, "The cause"),  # left out by its merge when it is stored
        (3, "The cause is a string."),
        (3, "Cast it."),
    ]
    merged = [(row["line_no"], row["block"], row["into_line_no"], row["reason"]) for row in found["merges"]]
    assert merged == [(2, 0, 1, "resend"), (1, 0, 3, "snapshot"), (3, 1, 2, "resend")]


def test_only_a_message_with_a_type_or_role_makes_its_content_a_transport_position() -> None:
    text = '{"role":"assistant","content":[]}'
    assert is_raw_envelope(
        {"message": {"role": "assistant", "content": text}}, "assistant", "text", text, "/message/content"
    )
    assert not is_raw_envelope({"message": {"content": text}}, "assistant", "text", text, "/message/content")


def test_fact_ids_of_columns_are_those_of_the_definition() -> None:
    found = rows(answer("a1", {"type": "text", "text": "one"}, {"type": "text", "text": "two"}, CALL))
    salt = table_salt(SOURCE.source_id, "dialogue")
    assert [row["fact_id"] for row in found["dialogue"]] == [fact_id(salt, 1, slot(0, block)) for block in (0, 1)]
    salt = table_salt(SOURCE.source_id, "records")
    assert [row["fact_id"] for row in found["records"]] == [fact_id(salt, 1, slot(0))]


def test_a_string_in_a_string_is_opened_once_and_is_still_an_envelope() -> None:
    envelope = {"role": "assistant", "content": [{"type": "text", "text": "hidden"}]}
    for raw in (orjson.dumps(orjson.dumps(envelope).decode()).decode(), "\ufeff" + orjson.dumps(envelope).decode()):
        record = {"type": "assistant", "uuid": "a1", "timestamp": "2026-06-01T10:00:00.000Z", "message": raw}
        found = rows(record)["dialogue"]
        if raw.startswith("\ufeff"):  # a byte order mark hides nothing: it is opened like any other
            assert [(row["text"], row["raw_envelope"]) for row in found] == [("hidden", False)]
        else:
            shown = [(row["text"], row["raw_envelope"], row["decoded_from_string"]) for row in found]
            assert shown == [(orjson.dumps(envelope).decode(), True, True)]


def test_texts_that_are_no_texts_are_counted_and_not_shown() -> None:
    odd: list[dict[str, Any]] = [
        {"type": "text", "text": 5},
        {"type": "text", "text": ["lost"]},
        {"type": "thinking", "thinking": {"x": "y"}},
    ]
    found = rows(answer("a1", *odd, stop="end_turn"))
    assert "dialogue" not in found
    assert [row["disposition"] for row in found["content_blocks"]] == ["rejected", "rejected", "rejected"]
    assert [(row["block"], row["head"], row["recovered"]) for row in found["rejects"]] == [
        (0, "text of type number", True),
        (1, "text of type array", True),
        (2, "thinking of type object", True),
    ]


def test_a_time_that_no_clock_can_show_is_not_reported() -> None:
    late = answer("a1", {"type": "text", "text": "hi"}) | {"timestamp": "9999-12-31T23:59:59.999Z"}
    assert [row["ts"] for row in rows(late)["records"]] == [None]
