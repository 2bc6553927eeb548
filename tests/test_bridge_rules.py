"""Do the Bridge's rules hold when they are applied from boundary A: resends, fragments, ends and silence?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from etl.providers.qoder_bridge.availability import QueueEvidence, is_queue_status
from etl.providers.qoder_bridge.conversation import read_history, read_prompt
from etl.providers.qoder_bridge.failures import CODES, failure_of
from etl.providers.qoder_bridge.masking import comparable, masked_text
from etl.providers.qoder_bridge.stream import DUP_UUID, Stream
from tests.loading import FIXTURES, load_home, table

if TYPE_CHECKING:
    from pathlib import Path

RULES = FIXTURES / "qoder_bridge" / "rules"
EXPECTED: dict[str, dict[str, Any]] = json.loads((RULES / "expected.json").read_text())["rules"]


def messages(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RULES / "tree" / f"{name}.jsonl").read_text().splitlines()]


def test_there_are_nineteen_rules() -> None:
    assert sorted(EXPECTED) == sorted(path.stem for path in (RULES / "tree").iterdir())
    assert len(EXPECTED) == 19


@pytest.mark.parametrize("name", EXPECTED)
def test_the_rule_holds(name: str) -> None:
    stream, queue = Stream(), QueueEvidence()
    expected = dict(EXPECTED[name])
    continuation = expected.pop("continuation", False)
    for number, message in enumerate(messages(name), 1):
        taken = stream.take(message, (number, 0))
        if is_queue_status(message):
            queue.queue(message)
        elif taken.disposition != DUP_UUID:
            queue.model(message)
    verdict = stream.verdict()
    if "timeout" in expected:
        assert queue.silence(continuation=continuation) == expected.pop("timeout")
    found = {
        "calls": len(verdict.answer.calls) if verdict.code is None else 0,
        "code": verdict.code,
        "text": verdict.text,
        "dup_uuid": stream.dispositions.get("dup_uuid", 0),
        "dup_final": stream.dispositions.get("dup_final", 0),
    }
    assert {key: found[key] for key in expected} == expected


def test_the_rules_hold_in_a_store(tmp_path: Path) -> None:
    """The nineteen streams as the turns of a batch: what SQL says of each is the same. A turn that timed out says so,
    and whether it went on after a tool result.
    """
    folder = tmp_path / "tree" / "2026-10-03T08-00-00.000Z"
    folder.mkdir(parents=True)
    for run, (name, expected) in enumerate(EXPECTED.items(), 1):
        lines = [
            ("sdk_raw_message", {"boundary": "A", "seq": n, "message": m}) for n, m in enumerate(messages(name), 1)
        ]
        if "timeout" in expected:
            told = {"kind": expected["timeout"], "continuation": expected.get("continuation", False)}
            lines.append(("timeout_classification", told))
        text = "".join(
            json.dumps({"label": label, "requestId": name, "sequence": n, "elapsedMs": n, "payload": payload}) + "\n"
            for n, (label, payload) in enumerate(lines, 1)
        )
        (folder / f"run-{run}-turn-1.jsonl").write_text(text)
    report = load_home(tmp_path, tmp_path / "store.duckdb", qoder_bridge=tmp_path / "tree")

    assert (report.findings, report.quarantined, report.failed) == ([], {}, {})
    found = {
        row["request_id"]: row
        for row in table(
            tmp_path / "store.duckdb",
            "select t.request_id, t.own_calls as calls, t.own_code as code, t.own_timeout as timeout, t.error_kind, "
            "t.continuation, t.duplicate_uuids as dup_uuid, t.duplicate_finals as dup_final, p.own_text as text "
            "from bridge_turns t join facts.provider_turns p using (batch_id, run, turn)",
        )
    }
    assert sorted(found) == sorted(EXPECTED)
    for name, expected in EXPECTED.items():
        row = found[name]
        assert row["error_kind"] == row["timeout"] or row["error_kind"] is None, name
        if expected.get("code") == "MISSING_RESULT":  # diagnostics that just stop may have been cut
            assert row["code"] is None
            continue
        assert {key: row[key] for key in expected} == expected, name
    assert table(tmp_path / "store.duckdb", "from bridge_disagreements where what = 'timeout class'") == []


def _assistant(blocks: Any, stop: str | None = None, **more: Any) -> dict[str, Any]:
    body = {"id": "m", "type": "message", "role": "assistant", "content": blocks, "stop_reason": stop}
    return {"type": "assistant", "message": body | more}


TEXT, CALL = {"type": "text", "text": "Hi"}, {"type": "tool_use", "id": "c", "name": "read", "input": {}}
RESULT: dict[str, Any] = {"type": "result", "subtype": "success", "is_error": False, "result": "", "stop_reason": None}


@pytest.mark.parametrize(
    ("told", "code"),
    [
        ([_assistant([CALL]), RESULT], None),
        ([_assistant([TEXT, CALL]), RESULT], "MIXED_CONTENT"),
        ([_assistant([TEXT]), _assistant([CALL]), RESULT], "MIXED_CONTENT"),
        ([_assistant([CALL]), _assistant([TEXT]), RESULT], "MIXED_CONTENT"),
        ([_assistant([CALL]), _assistant([CALL]), RESULT], "MIXED_CONTENT"),
        ([_assistant([{"type": "text", "text": " \n"}, CALL]), RESULT], None),
        ([_assistant([{"type": "image"}]), RESULT], "INVALID_ASSISTANT_CONTENT"),
        ([_assistant(["Hi"]), RESULT], "INVALID_ASSISTANT_CONTENT"),
        ([_assistant("Hi"), RESULT], "INVALID_ASSISTANT_MESSAGE"),
        ([_assistant([TEXT], role="user"), RESULT], "INVALID_ASSISTANT_MESSAGE"),
        ([_assistant([TEXT], "tool_use"), RESULT], "STOP_REASON_CONTRADICTION"),
        ([_assistant([CALL]), RESULT | {"stop_reason": "max_tokens"}], "STOP_REASON_CONTRADICTION"),
        ([_assistant([TEXT]), RESULT | {"stop_reason": "tool_use"}], "STOP_REASON_CONTRADICTION"),
        ([], "MISSING_RESULT"),
    ],
)
def test_other_rules_of_boundary_a(told: list[dict[str, Any]], code: str | None) -> None:
    stream = Stream()
    for number, message in enumerate(told, 1):
        stream.take(message, (number, 0))
    assert stream.verdict().code == code


def test_digests_are_compared_with_digests_only() -> None:
    """A log masks messages after it took their digest: equal digests are equal messages, whatever is left of them."""
    stream = Stream()
    stream.take({"type": "system", "uuid": "u", "x": 1}, (1, 0), "d1")

    assert stream.take({"type": "system", "uuid": "u", "x": "<redacted>"}, (2, 0), "d1").disposition == "dup_uuid"
    assert stream.take({"type": "system", "uuid": "u", "x": 1}, (3, 0), "d2").disposition == "conflict"


INIT = {"type": "system", "uuid": "u", "apiKey": "FAKE-1", "note": "token=FAKE-2", "n": 1}
HIDDEN = {"type": "system", "uuid": "u", "apiKey": "<redacted>", "note": "token=<redacted>", "n": 1}


@pytest.mark.parametrize(
    ("first", "then", "disposition"),
    [
        ((INIT, "d1"), (INIT, None), "dup_uuid"),
        ((INIT, None), (INIT, "d1"), "dup_uuid"),
        ((INIT, "d1"), (INIT | {"n": 2}, None), "conflict"),
        ((INIT, None), (INIT | {"n": 2}, "d1"), "conflict"),
        ((HIDDEN, "d1"), (INIT, None), "dup_uuid"),
        ((INIT, None), (HIDDEN, None), "dup_uuid"),
        ((HIDDEN, "d1"), (INIT | {"n": 2}, None), "conflict"),
        ((INIT, None), (INIT | {"apiKey": "FAKE-3"}, None), "conflict"),  # nothing is masked: it is seen to differ
    ],
)
def test_where_one_of_two_has_no_digest_their_contents_decide(
    first: tuple[dict[str, Any], str | None], then: tuple[dict[str, Any], str | None], disposition: str
) -> None:
    """A digest says nothing of a content: it was taken of the message before the log masked it."""
    stream = Stream()
    stream.take(first[0], (1, 0), first[1])

    taken = stream.take(then[0], (2, 0), then[1])
    assert (taken.disposition, taken.other_line) == (disposition, 1)


def test_a_digest_learnt_of_a_resend_counts() -> None:
    """The second message is the first one, so that its digest is the first one's too: the third differs from both."""
    stream = Stream()
    stream.take(INIT, (1, 0), None)
    stream.take(INIT, (2, 0), "d1")

    assert stream.take(INIT, (3, 0), "d2").disposition == "conflict"


def test_a_final_snapshot_that_is_masked_is_the_one_before() -> None:
    said, hidden = ({"type": "text", "text": f"password={word}"} for word in ("FAKE-1", "<redacted>"))
    stream = Stream()
    stream.take(_assistant([said], "end_turn"), (1, 0))

    assert stream.take(_assistant([hidden], "end_turn"), (2, 0)).disposition == "dup_final"
    assert stream.take(_assistant([{**said, "text": "other"}], "end_turn"), (3, 0)).disposition == "conflict"


def test_an_echo_fills_in_only_where_no_snapshot_brought_text() -> None:
    alone, beside = Stream(), Stream()
    alone.take(RESULT | {"result": "Echo\ud800"}, (1, 0))
    beside.take(_assistant([TEXT]), (1, 0))
    beside.take(RESULT | {"result": "Echo"}, (2, 0))

    assert (alone.verdict().text, beside.verdict().text) == ("Echo\ufffd", "Hi")


def test_a_failure_of_the_provider_is_no_broken_rule() -> None:
    stream = Stream()
    stream.take(RESULT | {"subtype": "error_during_execution", "is_error": True, "errors": ["overloaded"]}, (1, 0))
    verdict = stream.verdict()

    assert (verdict.code, verdict.failure, verdict.is_delivered) == (None, "overloaded", False)


ASKED = {"role": "assistant", "content": [{"type": "tool_call", "id": "a", "name": "read", "arguments": {}}]}
ANSWER = {"role": "tool_result", "toolCallId": "a", "toolName": "read", "isError": False, "content": "x"}


@pytest.mark.parametrize(
    ("history", "code"),
    [
        ([ASKED, ANSWER], None),
        ([ANSWER], "CONTINUATION_ORPHAN_RESULT"),
        ([ASKED, ANSWER, ANSWER], "CONTINUATION_ORPHAN_RESULT"),
        ([ASKED, ANSWER | {"toolCallId": "b"}], "CONTINUATION_ORDER"),
        ([ASKED, ANSWER | {"toolName": "ls"}], "CONTINUATION_RESULTS_MISMATCH"),
        ([ASKED], "CONTINUATION_RESULTS_MISMATCH"),
        ([ASKED, {"role": "user", "content": "and?"}], "CONTINUATION_RESULTS_MISMATCH"),
        ([ASKED, ANSWER | {"isError": "no"}], "INVALID_TOOL_RESULT"),
        ([ASKED, ANSWER, ASKED, ANSWER], "DUPLICATE_ID"),
        (["odd", 3, None], None),
    ],
)
def test_a_history_is_sound_or_has_a_code(history: list[Any], code: str | None) -> None:
    assert read_history(history).code == code


def test_what_is_new_in_a_request() -> None:
    first = read_prompt('PI_CONVERSATION_JSON=[{"role":"system","content":"Be brief"},{"role":"user","content":"Go"}]')
    then = read_history([{"role": "user", "content": "Go"}, ASKED, ANSWER])

    assert first is not None
    assert [(said.kind, said.text) for said in first.said] == [("context", "Be brief"), ("prompt", "Go")]
    assert [(told.call_id, told.position, told.text) for told in then.answered] == [("a", 1, "x")]
    assert (then.said, then.is_continuation, first.is_continuation) == ([], True, False)
    assert read_prompt("PI_CONVERSATION_JSON=[") is None


@pytest.mark.parametrize(
    ("message", "stop", "expected"),
    [
        (
            "PROVIDER_UNAVAILABLE: no provider message for 9500ms",
            "error",
            ("PROVIDER_UNAVAILABLE", None, "availability"),
        ),
        ("PROVIDER_TIMEOUT: x", "error", ("PROVIDER_TIMEOUT", None, "availability")),
        ("PROVIDER_UNAVAILABLE", None, ("PROVIDER_UNAVAILABLE", None, "availability")),
        (
            "POST_TOOL_CONTINUATION_TIMEOUT: x",
            "error",
            ("POST_TOOL_CONTINUATION_TIMEOUT", None, "continuation_timeout"),
        ),
        ("Qoder stream aborted", "aborted", (None, None, "aborted")),
        ("Qoder model error: overloaded", "error", (None, None, "provider_error")),
        ("Qoder stream ended without a terminal result message", "error", (None, "MISSING_RESULT", "protocol")),
        ('pi_tool_call #2 has unknown field "x"', "error", (None, "INVALID_ENVELOPE", "protocol")),
        ("COMPLETED -> FAILED", "error", (None, "INVALID_STATE_TRANSITION", "protocol")),
        ("spawn qodercli ENOENT", "error", (None, None, None)),
        (None, "stop", (None, None, None)),
    ],
)
def test_an_error_has_its_class(message: str | None, stop: str | None, expected: tuple[str | None, ...]) -> None:
    assert failure_of(message, stop) == expected


def test_every_code_is_known_by_its_name() -> None:
    assert len(CODES) == 21
    assert {failure_of(f"ProviderProtocolError: {code}").code for code in CODES} == CODES


def test_both_sides_are_masked_alike() -> None:
    pieces = "Authorization: Bearer FAKE0000 and token=FAKE1111, done"
    whole = masked_text(pieces)

    assert whole == "Authorization: <redacted> <redacted> and token=<redacted>, done"
    assert masked_text(whole) == whole
    bridge = comparable({"usage": {"input_tokens": 12, "n": 1}, "apiKeySource": "env"})
    transport = comparable({"usage": {"input_tokens": "<redacted>", "n": 1}, "apiKeySource": "<redacted>"})
    assert bridge == transport
