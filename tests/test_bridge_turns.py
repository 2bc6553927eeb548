"""What does a turn of a Bridge count, and what of it is flagged, contradicted, or after its end?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.bridge_lines import Batch, delta, frames, queued, raw, result, snapshot
from tests.loading import load_home, rows, table

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


def test_a_broken_rule_ends_them_too(tmp_path: Path) -> None:
    """The Bridge throws at the contradiction, which is its third message; it asks for no fourth one."""
    told = [queued("q"), snapshot("one", "u"), snapshot("two", "u"), result("two")]
    batch = Batch(tmp_path).turn(1, raw(*told))
    batch.load()

    assert rows(batch.db, COUNTS) == [(3, 0, 1, 0)]
    assert rows(batch.db, "select disposition from facts.sdk_messages order by line_no") == [
        ("kept",),
        ("kept",),
        ("conflict",),
        ("after_terminal",),
    ]


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
