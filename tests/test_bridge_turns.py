"""What does a turn of a Bridge count, and what of it is flagged, contradicted, or after its end?"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest

from etl.providers.qoder_bridge.masking import is_mask
from etl.providers.qoder_bridge.stream import DUPLICATE_FINAL, Stream
from etl.reports import report_rows
from tests.bridge_lines import Batch, delta, frames, queued, raw, reported, result, snapshot
from tests.loading import NOW, load_home, rows, table

if TYPE_CHECKING:
    from pathlib import Path

COUNTS = "select raw_chunk_count, text_delta_count, queue_event_count, result_count from bridge_turns order by run"


def test_the_first_result_ends_the_counts_and_what_follows_is_kept(tmp_path: Path) -> None:
    """Two deltas, a snapshot and the result are consumed; a delta, a heartbeat, a result and a snapshot come too late.
    The transport log has them all, and nobody states anything differently.
    """
    told = [delta("do", "d1"), delta("ne", "d2"), snapshot("done", stop="end_turn"), result("done")]
    late = [delta("late", "d3"), queued(), result("done", "r2"), snapshot("again", "a9", stop="end_turn", id="m9")]
    batch = Batch(tmp_path).turn(1, raw(*told, *late)).transport(1, frames(*told, *late))
    report = batch.load()

    assert report.findings == []
    assert rows(batch.db, COUNTS) == [(4, 2, 0, 1)]
    assert rows(batch.db, "select disposition, count(*) from facts.sdk_messages group by all order by 1") == [
        ("after_terminal", 4),
        ("kept", 4),
    ]
    assert rows(batch.db, "select status, disposition from facts.queue_events") == [("queued", "after_terminal")]
    assert rows(batch.db, "select queue_events, unavailable_events, answered from provider_availability") == [(0, 0, 1)]
    (turn,) = table(
        batch.db,
        "select p.delta_text, p.own_text, t.last_message_ms, i.last_queue_ms, i.heartbeats_after_deadline "
        "from facts.provider_turns p join bridge_turns t using (batch_id, run, turn) "
        "join bridge_turn_timing i using (batch_id, run, turn) where p.raw_chunk_count is not null",
    )
    assert turn == {
        "delta_text": "done",
        "own_text": "done",
        "last_message_ms": 400.0,
        "last_queue_ms": None,
        "heartbeats_after_deadline": None,
    }
    assert rows(batch.db, "from bridge_disagreements") == []
    assert rows(batch.db, "select origin from boundary_compare") == [("NONE",)]


def test_a_broken_rule_does_not_end_the_counts(tmp_path: Path) -> None:
    """A Bridge that knows the rule asks for no further message. One that does not consumes the heartbeat and the first
    result, as its log shows; our reading takes nothing of them.
    """
    told = [snapshot("one", "u"), snapshot("two", "u"), queued("q"), result("two"), result("two", "r2")]
    batch = Batch(tmp_path).turn(1, raw(*told))
    report = batch.load()

    assert report.findings == []
    assert rows(batch.db, COUNTS) == [(4, 0, 1, 1)]
    assert rows(batch.db, "select disposition from facts.sdk_messages order by line_no") == [
        ("kept",),
        ("conflict",),
        ("after_error",),
        ("after_error",),
        ("after_terminal",),
    ]
    assert rows(batch.db, "select own_code, own_timeout from bridge_turns") == [("DUPLICATE_UUID", None)]


def test_a_message_that_is_no_object_was_received(tmp_path: Path) -> None:
    """Null, a text, nothing at all, a list for the whole payload; and another null when the turn is over."""
    lines = raw(None, "x FAKE", result("echo"), None)
    lines[2:2] = [("sdk_raw_message", {"boundary": "A", "type": "system"}), ("sdk_raw_message", [1])]
    batch = Batch(tmp_path).turn(1, lines)
    report = batch.load()

    assert report.findings == []
    assert rows(batch.db, COUNTS) == [(5, 0, 0, 1)]
    found = "select line_no, type, disposition, payload from facts.sdk_messages where type is null order by line_no"
    assert rows(batch.db, found) == [
        (1, None, "malformed", "null"),
        (2, None, "malformed", '"x FAKE"'),
        (3, None, "malformed", "null"),
        (4, None, "malformed", "[1]"),
        (6, None, "after_terminal", "null"),
    ]
    assert rows(batch.db, "select reason, head, recovered, count(*) from rejects group by all") == [
        ("invalid_shape", "sdk:(no object)", True, 5)
    ]
    assert rows(batch.db, "select first_message_ms, last_message_ms, first_token_ms from bridge_turns") == [
        (100.0, 500.0, 500.0)
    ]
    assert rows(batch.db, "select text from dialogue") == [("echo",)]


def test_so_was_one_of_a_debug_log(tmp_path: Path) -> None:
    lines: list[tuple[str, Any]] = [
        ("provider_request", {"prompt": {"PI_CONVERSATION_JSON": []}}),
        ("provider_response", None),
        ("provider_response", result("echo")),
    ]
    log = "".join(f"[qoder-bridge] {label} {json.dumps(payload)}\n" for label, payload in lines)
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "real-provider-debug.log").write_text(log)
    report = load_home(tmp_path, tmp_path / "store.duckdb", qoder_bridge=tmp_path / "tree")

    assert (report.findings, report.failed) == ([], {})
    assert rows(tmp_path / "store.duckdb", COUNTS) == [(2, 0, 0, 1)]
    assert rows(
        tmp_path / "store.duckdb", "select disposition, payload is null from facts.sdk_messages order by 1"
    ) == [
        ("kept", False),
        ("malformed", False),
    ]


@pytest.mark.parametrize("mask", ["<redacted>", "[redacted:token]", "***", "[REDACTED_SECRET]", " (masked) ", "1***7"])
def test_a_mask_is_told_from_a_number_and_from_text(mask: str) -> None:
    assert is_mask(mask)


@pytest.mark.parametrize("value", [7, "7", None, "", "many", "*", "queued", "unhidden", ["***"]])
def test_what_is_no_mask(value: Any) -> None:
    assert not is_mask(value)


QUEUE = "select queue_count, queue_wait_us, wait_us, service_available, elapsed_us, is_masked from facts.queue_events"


def test_a_masked_number_of_the_queue_is_null_and_flagged(tmp_path: Path) -> None:
    """The first heartbeat has two masked numbers, the second none, the third a masked time of its line, the fourth a
    word that is no number and no mask.
    """
    beats = [
        queued("q1", queue_wait_elapsed_ms="[redacted:number]", wait_time_ms="***", queue_count=3),
        queued("q2", queue_wait_elapsed_ms=20, wait_time_ms=30, queue_count=2),
        queued("q3", service_available="***"),
        queued("q4", queue_count="many"),
    ]
    lines = raw(*beats)
    lines[2] = (*lines[2][:2], "<redacted>")
    batch = Batch(tmp_path).turn(1, lines).turn(2, raw(beats[1]))
    report = batch.load()

    assert report.findings == []
    assert rows(batch.db, f"{QUEUE} where run = 1 order by line_no") == [
        (3, None, None, False, 100_000, True),
        (2, 20_000, 30_000, False, 200_000, False),
        (None, None, None, None, None, True),
        (None, None, None, False, 400_000, False),
    ]
    assert rows(batch.db, "select is_masked from facts.sdk_messages where run = 1 order by line_no") == [
        (True,),
        (False,),
        (True,),
        (False,),
    ]
    assert rows(batch.db, "select elapsed_us, is_masked from facts.boundary_events where run = 1 order by line_no") == [
        (100_000, False),
        (200_000, False),
        (None, True),
        (400_000, False),
    ]
    assert rows(batch.db, "select run, masked_values from bridge_turns order by run") == [(1, True), (2, False)]


def test_masked_places_of_lines_are_flagged_and_no_gap(tmp_path: Path) -> None:
    """The number of the second line, the SDK's number in it, and the number of an envelope of the parser. What the
    parser was asked cannot be compared then: that is not false.
    """
    call = '<pi_tool_call>{"name":"read","arguments":{"path":"x"}}</pi_tool_call>'
    lines = [
        *raw(snapshot(call, stop="end_turn"), result(call)),
        ("assembled_text", {"boundary": "B", "text": call}),
        ("normalization_input", {"boundary": "C", "text": call}),
        ("parse_input", {"boundary": "D", "index": "***", "raw": call[14:-15]}),
    ]
    lines[1][1]["seq"] = "***"
    batch = Batch(tmp_path).turn(1, lines).transport(1, [("transport_frame", snapshot(call, stop="end_turn"), "***")])
    for path in batch.folder.glob("run-1-turn-1.jsonl"):
        path.write_text(path.read_text().replace('"sequence": 2,', '"sequence": "***",'))
    report = batch.load()

    assert report.findings == []
    places = "select sequence, sdk_seq, item_index, is_masked from facts.boundary_events order by line_no"
    assert rows(batch.db, places) == [
        (1, 1, None, False),
        (None, None, None, True),
        (3, None, None, False),
        (4, None, None, False),
        (5, None, None, True),
    ]
    assert rows(batch.db, "select sequence, is_masked from facts.sdk_messages order by line_no") == [
        (1, False),
        (None, True),
    ]
    assert rows(batch.db, "select elapsed_us, is_masked from facts.transport_frames") == [(None, True)]
    assert rows(batch.db, "select sequence_gaps, masked_values from bridge_turns") == [(0, True)]
    assert rows(batch.db, "select d_within_c, origin from boundary_compare") == [(None, "NONE")]


def test_masked_figures_of_a_report_are_null_and_flagged_and_contradict_nobody(tmp_path: Path) -> None:
    told = reported(1, ("stop", None), toolCount="***", protocolErrors="<redacted>", toolErrors=2)
    told["turns"][0]["diagnosticCount"] = "[redacted]"
    batch = Batch(tmp_path).turn(1, raw(snapshot("hi", stop="end_turn"), result("hi")))
    batch.summary(told, reported(2, ("stop", None)))
    audit = [{"run": 1, "turns": [{"turn": 1, "audit": {"rawChunkCount": "***", "snapshotCount": 1}}]}]
    (batch.folder / "boundary-audit.json").write_text(json.dumps(audit))
    batch.load()

    figures = "select run, tool_count, protocol_errors, tool_errors, is_masked from facts.provider_runs order by run"
    assert rows(batch.db, figures) == [(1, None, None, 2, True), (2, 0, 0, None, False)]
    assert rows(batch.db, "select claim, value, is_masked from facts.bridge_claims order by claim") == [
        ("diag_count", None, True),
        ("raw_chunk_count", None, True),
        ("snapshot_count", "1", False),
    ]
    assert rows(batch.db, "select masked_values from bridge_turns where run = 1") == [(True,)]
    assert rows(batch.db, "from bridge_disagreements") == []


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 2}, (12, 7, 2, "reported", False)),
        ({"input_tokens": 5, "cache_read_input_tokens": "***", "output_tokens": 2}, (None, None, 2, "reported", True)),
        ({"input_tokens": "***", "cache_read_input_tokens": 7, "output_tokens": 0}, (None, 7, 0, "reported", True)),
        ({"input_tokens": 0, "output_tokens": "<redacted>"}, (0, None, None, "reported", True)),
        ({"input_tokens": "***", "output_tokens": "***"}, (None, None, None, "absent", True)),
    ],
)
def test_a_sum_with_a_masked_part_is_not_known(
    tmp_path: Path, usage: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    """Input is what was fresh and what came from the cache together: one of the two alone is no number of it."""
    batch = Batch(tmp_path).turn(1, raw(snapshot("hi", stop="end_turn"), result("hi", usage=usage)))
    batch.load()

    tokens = "select input_tokens, cache_read_tokens, output_tokens, usage_status from model_calls"
    assert rows(batch.db, tokens) == [expected[:4]]
    assert rows(batch.db, "select masked_values from bridge_turns") == [expected[4:]]


def test_a_text_that_nobody_put_together_is_compared_with_nothing(tmp_path: Path) -> None:
    """Boundary B is absent and C is there: B = C is not known, so that no defect is one of the Bridge."""
    lines = [*raw(snapshot("hi"), result("hi")), ("normalization_input", {"boundary": "C", "text": "hi"})]
    batch = Batch(tmp_path).turn(1, lines)
    batch.turn(2, [*lines, ("assembled_text", {"boundary": "B", "text": "ho"})]).load()

    assert rows(batch.db, "select b_equals_c, c_equals_e, a_equals_b from boundary_compare order by run") == [
        (None, None, None),
        (False, None, False),
    ]
    assert rows(batch.db, "select origin from boundary_compare where run = 1") == [("NONE",)]


def _digest(told: dict[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(told, sort_keys=True, separators=(",", ":")).encode(), digest_size=8).hexdigest()


def test_a_contradiction_stands_among_the_conflicts(tmp_path: Path) -> None:
    """A uuid with two contents in run 1, a message with two final snapshots in run 2, a resend in run 3."""
    one, two = snapshot("one", "u"), snapshot("two", "u")
    first, then = snapshot("one", "a", stop="end_turn"), snapshot("two", "b", stop="end_turn")
    batch = Batch(tmp_path).turn(1, raw(queued(), one, two)).turn(2, raw(first, then, result("two")))
    batch.turn(3, raw(one, one, result("one"))).load()

    said = [{"blocks": told["message"]["content"], "stop": "end_turn"} for told in (first, then)]
    found = (
        "select parse_filename(s.rel_path), line_no, other_line_no, id_kind, id, digest, other_digest, rule, "
        "resolution from conflicts join sources s using (source_id) order by 1"
    )
    assert rows(batch.db, found) == [
        ("run-1-turn-1.jsonl", 3, 2, "record", "u", _digest(two), _digest(one), "DUPLICATE_UUID", "other"),
        ("run-2-turn-1.jsonl", 2, 1, "message", "m1", *map(_digest, reversed(said)), DUPLICATE_FINAL, "other"),
    ]
    assert rows(batch.db, "select sum(conflicts)::int from mart.loads") == [(2,)]


def test_what_a_very_long_turn_said_first_is_remembered_and_then_no_more() -> None:
    """Four million characters of a turn: both sides of a contradiction are known up to there, one of them behind."""
    stream, long = Stream(), "x" * (1 << 20)
    for number in range(4):
        stream.take({"type": "system", "uuid": f"u{number}", "text": long}, (number, 0))
    clash = stream.take({"type": "system", "uuid": "u3", "text": ""}, (5, 0)).clash

    assert clash is not None
    assert (clash.before_line, clash.before, clash.content) == (3, None, '{"text":"","type":"system","uuid":"u3"}')


@pytest.mark.parametrize("error", ["Qoder stream aborted", "PROVIDER_UNAVAILABLE: no provider message for 60000ms"])
def test_a_turn_that_was_cancelled_is_no_missing_provider(tmp_path: Path, error: str) -> None:
    """Run 1 was cancelled while it was queued, and the Bridge classified the silence all the same; run 2 was not. Every
    view counts the two alike.
    """
    timed_out = ("timeout_classification", {"kind": "PROVIDER_UNAVAILABLE", "continuation": False})
    batch = Batch(tmp_path).turn(1, [*raw(queued()), timed_out]).turn(2, [*raw(queued()), timed_out])
    batch.summary(
        reported(1, ("aborted", error)), reported(2, ("error", "PROVIDER_UNAVAILABLE: no provider message for 60000ms"))
    ).load()

    runs = "select provider_unavailable, unavailable_strict, continuation_timeout from bridge_runs order by run"
    assert rows(batch.db, runs) == [(0, 0, 0), (1, 1, 0)]
    assert rows(batch.db, "select turns, unavailable, aborted from provider_availability") == [(2, 1, 1)]
    assert rows(batch.db, "select outcome from bridge_turn_timing order by run") == [
        ("aborted",),
        ("PROVIDER_UNAVAILABLE",),
    ]
    told = report_rows(str(batch.db), "bridge", NOW).to_pylist()
    turns = [(row["outcome"], row["provider_unavailable"]) for row in told if row["row_kind"] == "turn"]
    assert turns == [("aborted", 0), ("PROVIDER_UNAVAILABLE", 1)]
    kinds = "select error_class, error_kind from bridge_turns order by run"
    assert rows(batch.db, kinds) == [("aborted", "PROVIDER_UNAVAILABLE"), ("availability", "PROVIDER_UNAVAILABLE")]


@pytest.mark.parametrize(
    ("error", "beat", "end", "expected"),
    [
        # a stated total deadline counts, above the harness's 100 s and below
        ("total deadline 120000ms", 110_000, 124_000, (120_000.0, False, 0)),
        ("total deadline 120000ms", 121_000, 126_000, (120_000.0, True, 1)),
        ("total deadline 60000ms", 50_000, 66_000, (60_000.0, True, 0)),
        # 60 s of silence after a heartbeat at 30 s end at 90 s; after one at 110 s they would end at 170 s
        ("no provider message for 60000ms", 30_000, 92_000, (90_000.0, False, 0)),
        ("no provider message for 60000ms", 110_000, 171_000, (100_000.0, True, 1)),
        # the Bridge waits for no longer than is left: 120 s of silence are not of a turn of 100 s
        ("no provider message for 120000ms", 3_000, 124_000, (123_000.0, False, 0)),
        ("silence", 30_000, 104_000, (100_000.0, False, 0)),
    ],
)
def test_a_stated_deadline_is_the_one_that_is_checked(
    tmp_path: Path, error: str, beat: int, end: int, expected: tuple[float, bool, int]
) -> None:
    (line,) = raw(queued())
    timed_out = ("timeout_classification", {"kind": "PROVIDER_UNAVAILABLE"}, end)
    batch = Batch(tmp_path).turn(1, [(*line[:2], beat), timed_out])
    report = batch.summary(reported(1, ("error", f"PROVIDER_UNAVAILABLE: {error}"))).load()

    timing = "select deadline_ms, is_late, heartbeats_after_deadline from bridge_turn_timing"
    assert rows(batch.db, timing) == [expected]
    assert [found.check for found in report.findings] == ["bridge_deadline"] * (expected[1] or expected[2] > 0)
