"""What does a turn of a Bridge count, and what of it is flagged, contradicted, or after its end?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.bridge_lines import Batch, delta, frames, queued, raw, result, snapshot
from tests.loading import rows, table

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
