"""Who contradicts whom about a turn of a Bridge, and who says nothing?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.bridge_lines import Batch, Line, frames, queued, raw, reported, result, snapshot
from tests.loading import rows

if TYPE_CHECKING:
    from pathlib import Path

GONE = "PROVIDER_UNAVAILABLE"
ERROR = f"{GONE}: no provider message for 9500ms"
BROKEN = "pi_tool_call #1 contains invalid JSON: Unexpected end of JSON input"
INIT = {"type": "system", "subtype": "init", "uuid": "i"}
ACK = {"type": "command_lifecycle", "state": "started", "uuid": "c"}
TWICE = (snapshot("one", "u"), snapshot("two", "u"))
CALL = '<pi_tool_call>{"name":"read","arguments":{"path":"x"}}</pi_tool_call>'
ASKED = (snapshot(CALL, stop="end_turn"), result(CALL))


def _kind(name: str) -> Line:
    return ("timeout_classification", {"kind": name, "continuation": False})


Row = tuple[str, str | None, str | None, str]


def _found(batch: Batch) -> list[Row]:
    """[what, own, reported, by whom]."""
    batch.load()
    return rows(batch.db, "select what, own, reported, reported_by from bridge_disagreements order by all")


@pytest.mark.parametrize("tail", ["", '{"label":"sdk_raw_message","requ'])
@pytest.mark.parametrize(("error", "more"), [(ERROR, {}), (BROKEN, {"protocolErrors": 1}), (ERROR, {"toolCount": 1})])
def test_a_file_without_a_line_says_nothing(tmp_path: Path, tail: str, error: str, more: dict[str, Any]) -> None:
    """The harness makes the file before it asks: only the summary knows how the turn ended."""
    assert _found(Batch(tmp_path).turn(1, [], tail=tail).summary(reported(1, ("error", error), **more))) == []


@pytest.mark.parametrize(("error", "more"), [(ERROR, {}), (BROKEN, {"protocolErrors": 1}), (ERROR, {"toolCount": 1})])
def test_a_file_that_was_cut_says_nothing_of_its_end(tmp_path: Path, error: str, more: dict[str, Any]) -> None:
    """What stood behind the cut is not known: a heartbeat, an answer, a call."""
    batch = Batch(tmp_path).turn(1, raw(INIT), tail='{"label":"sdk_raw_message","requ')
    assert _found(batch.summary(reported(1, ("error", error), **more))) == []


@pytest.mark.parametrize(
    ("lines", "error", "expected"),
    [
        # the messages were seen, and the queue said nothing
        (raw(INIT), ERROR, [("timeout class", "PROVIDER_RESPONSE_TIMEOUT", GONE, "summary")]),
        (raw(queued()), ERROR, []),
        # the Bridge itself says another class than its messages; the summary repeats it, which is no second witness
        (
            [*raw(queued()), _kind("PROVIDER_QUEUE_TIMEOUT")],
            "PROVIDER_QUEUE_TIMEOUT: x",
            [("timeout class", GONE, "PROVIDER_QUEUE_TIMEOUT", "diagnostics")],
        ),
        # the summary alone says another class
        (
            [*raw(queued()), _kind(GONE)],
            "PROVIDER_QUEUE_TIMEOUT: x",
            [("timeout class", GONE, "PROVIDER_QUEUE_TIMEOUT", "summary")],
        ),
        # a label without any message is a line: the silence before it was total
        ([_kind(GONE)], ERROR, [("timeout class", "PROVIDER_RESPONSE_TIMEOUT", GONE, "diagnostics")]),
        # an answer is read without fault, and the summary tells of a broken rule
        (
            raw(snapshot("hi", stop="end_turn"), result("hi")),
            BROKEN,
            [("protocol code", None, "MALFORMED_ENVELOPE_JSON", "summary")],
        ),
        (raw(*TWICE), "SDK message uuid u repeated with different content", []),
        (raw(*TWICE), "spawn qodercli ENOENT", [("protocol code", "DUPLICATE_UUID", None, "summary")]),
    ],
)
def test_a_contradiction_names_who_states_it(
    tmp_path: Path, lines: list[Line], error: str, expected: list[Row]
) -> None:
    assert _found(Batch(tmp_path).turn(1, lines).summary(reported(1, ("error", error)))) == expected


def test_a_broken_rule_that_nobody_reports_contradicts_who_went_on(tmp_path: Path) -> None:
    """In run 1 nobody says how the turn ended; in run 2 the Bridge handed an answer on."""
    batch = Batch(tmp_path).turn(1, raw(*TWICE)).turn(2, [*raw(*TWICE), ("handoff", {"stopReason": "stop"})])
    assert _found(batch) == [("protocol code", "DUPLICATE_UUID", None, "diagnostics")]


@pytest.mark.parametrize(
    ("calls", "second", "expected"),
    [
        (1, [], []),
        (2, [], []),  # the second turn may have asked for it
        (2, raw(INIT), [("tool_count", "1", "2", "summary")]),
        (0, [], [("tool_count", "1", "0", "summary")]),  # one call is seen, whatever the second turn did
    ],
)
def test_calls_of_a_turn_without_a_line_are_not_known(
    tmp_path: Path, calls: int, second: list[Line], expected: list[Row]
) -> None:
    batch = Batch(tmp_path).turn(1, raw(*ASKED)).turn(1, second, turn=2)
    told = reported(1, ("toolUse", None), ("error", "spawn qodercli ENOENT"), toolCount=calls)
    assert _found(batch.summary(told)) == expected


@pytest.mark.parametrize(
    ("transport", "expected"),
    [([], []), (frames(INIT), [("queue_events", "1", "0", "transport")]), (frames(INIT, queued()), [])],
)
def test_a_transport_log_without_a_line_says_nothing(
    tmp_path: Path, transport: list[Line], expected: list[Row]
) -> None:
    assert _found(Batch(tmp_path).turn(1, raw(INIT, queued())).transport(1, transport)) == expected


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([], []),
        ([("queue_status", {"status": "queued"}), ("handoff_ack", {"state": "started"}, 200)], []),
        (
            [("queue_status", {}), ("queue_status", {}), ("handoff_ack", {"state": "started"}, 250)],
            [("queue_events", "1", "2", "diagnostics"), ("runtime_ack_ms", "200.0", "250.0", "diagnostics")],
        ),
    ],
)
def test_a_label_that_is_not_there_says_nothing(tmp_path: Path, labels: list[Line], expected: list[Row]) -> None:
    assert _found(Batch(tmp_path).turn(1, [*raw(queued(), ACK), *labels])) == expected
