"""Is what logs and the audit trail tell of counted once, however often and in whatever order they tell it?"""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pytest

from etl.providers.qoder import timeorder
from tests.authored import write
from tests.loading import load_home, rows

if TYPE_CHECKING:
    from pathlib import Path

    from etl.request import Report

_DAY: Final = datetime(2026, 7, 1, 10, 0)  # noqa: DTZ001 - written with a Z
RUN: Final = "2026-07-01T10-00-00-000Z-aaaaaa-p1"
CALLS: Final = "select session_id, call_key, status, latency_ms, latency_source, wait_ms from tool_calls order by 1, 2"


def at(seconds: float) -> str:
    """The instant so many seconds after the beginning of the test's day."""
    return (_DAY + timedelta(seconds=seconds)).isoformat(timespec="milliseconds") + "Z"


def said(kind: str, uuid: str, parent: str | None, seconds: float, content: Any, **more: Any) -> dict[str, Any]:
    """A message of a transcript; ``id`` and ``stop_reason`` go into the message."""
    inner = {name: more.pop(name) for name in ("id", "stop_reason", "usage") if name in more}
    chain = {"uuid": uuid, "parentUuid": parent, "timestamp": at(seconds), "sessionId": "s1"}
    return {"type": kind, **chain, "message": {"role": kind, "content": content, **inner}, **more}


def call(call_id: str, name: str = "Bash") -> dict[str, Any]:
    """A block that asks for a tool."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": {"command": "x"}}


def done(call_id: str) -> dict[str, Any]:
    """A block with the result of a call."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": "ok"}


def one_call(call_id: str = "c1") -> list[dict[str, Any]]:
    """A transcript with one call from second 1 to 3."""
    return [
        said("user", "u1", None, 0, "Hi"),
        said("assistant", "a1", "u1", 1, [call(call_id)], id="m1", stop_reason="tool_use"),
        said("user", "r1", "a1", 3, [done(call_id)]),
        said("assistant", "a2", "r1", 4, "Done.", id="m2", stop_reason="end_turn"),
    ]


def transcript(home: Path, records: list[dict[str, Any]], path: str = "s1.jsonl", slug: str = "-a") -> Path:
    """A transcript below a project's folder."""
    return write(home / ".qoder/projects" / slug / path, records)


def logged(*rows: tuple[str, float, dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a run log (type, second, what else stands in them), numbered in this order; ``data`` is its own."""
    return [
        {"ts": at(seconds), "seq": n, "level": "info", "type": kind, **more}
        for n, (kind, seconds, more) in enumerate(rows, 1)
    ]


def log(home: Path, rows: list[dict[str, Any]], run: str = RUN, slug: str = "-a", session: str = "s1") -> Path:
    """A run log of a session."""
    return write(home / ".qoder/logs/sessions" / slug / session / "segments" / f"{run}.jsonl", rows)


def audited(event: str, seconds: float, call_id: str | None = None, **more: Any) -> dict[str, Any]:
    """A row of the audit trail."""
    row = {"_event": event, "_timestamp": at(seconds), "session_id": "s1", "tool_name": "Bash", **more}
    return row if call_id is None else {**row, "tool_use_id": call_id}


def audit(home: Path, *records: dict[str, Any]) -> Path:
    """The audit trail."""
    return write(home / ".qoder/audit/audit.jsonl", records)


def loaded(tmp_path: Path) -> tuple[Path, Report]:
    """The store of the home in a test's folder, without findings."""
    db = tmp_path / "s.duckdb"
    report = load_home(tmp_path / "home", db)
    assert report.findings == []
    return db, report


# -- calls of sub-agents


def _with_agent(home: Path) -> None:
    side = {"isSidechain": True, "agentId": "x"}
    transcript(home, one_call("spawn"))
    write(home / ".qoder/projects/-a/s1/subagents/agent-x.meta.json", [{"toolUseId": "spawn"}])
    inner = [
        said("user", "su", None, 1.1, "Do it", **side),
        said("assistant", "sa", "su", 1.3, [call("c9")], id="sm", stop_reason="tool_use", **side),
        said("user", "sr", "sa", 1.8, [done("c9")], **side),
    ]
    transcript(home, inner, "s1/subagents/agent-x.jsonl")


def test_the_audit_trail_tells_of_a_sub_agents_call_under_its_parent(tmp_path: Path) -> None:
    """A sub-agent's rows carry the parent's session id: the trail is evidence for its call, not a second one."""
    home = tmp_path / "home"
    _with_agent(home)
    audit(home, audited("PreToolUse", 1.35, "c9"), audited("PostToolUse", 1.75, "c9"))
    db, _ = loaded(tmp_path)
    assert rows(db, CALLS) == [
        ("qoder:s1", "spawn", "ok", 2000.0, "pair", None),
        ("qoder:s1/agent-x", "c9", "ok", 500.0, "pair", None),
    ]
    assert rows(db, "select session_id, tool_calls from sessions order by 1") == [
        ("qoder:s1", 1),
        ("qoder:s1/agent-x", 1),
    ]


def test_the_audit_trail_times_a_sub_agents_call_that_nothing_else_times(tmp_path: Path) -> None:
    """Without the transcript's result the trail's own pair is what there is: 1.35 to 1.75."""
    home = tmp_path / "home"
    _with_agent(home)
    path = home / ".qoder/projects/-a/s1/subagents/agent-x.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:2]))
    audit(home, audited("PreToolUse", 1.35, "c9"), audited("PostToolUse", 1.75, "c9"))
    db, _ = loaded(tmp_path)
    assert rows(db, CALLS)[1] == ("qoder:s1/agent-x", "c9", "ok", 400.0, "pair", None)


def test_a_key_that_names_a_line_is_no_call_of_a_sub_agent(tmp_path: Path) -> None:
    """Rows without a call id say nothing of the sub-agent's call without one that stands on the same line."""
    home = tmp_path / "home"
    _with_agent(home)
    side = {"isSidechain": True, "agentId": "x"}
    nameless = {"type": "tool_use", "name": "Bash", "input": {"command": "y"}}
    inner = [said("assistant", "sa", None, 1.3, [nameless], id="sm", stop_reason="tool_use", **side)]
    transcript(home, inner, "s1/subagents/agent-x.jsonl")
    audit(home, audited("PreToolUse", 1.35), audited("PostToolUse", 1.75))
    db, _ = loaded(tmp_path)
    assert rows(db, "select session_id, call_key, status from tool_calls order by 1, 2") == [
        ("qoder:s1", "spawn", "ok"),
        ("qoder:s1/agent-x", "~1.0", "missing_result"),
    ]


# -- rows that come again


def _shell(call_id: str = "c1") -> list[tuple[str, float, dict[str, Any]]]:
    """A turn with a shell call that runs from second 1.2 to 1.7."""
    return [
        ("turn.started", 0.5, {"turn_id": "t1"}),
        (
            "model.response.completed",
            0.9,
            {"request_id": "q1", "data": {"model": "byok", "input_tokens": 10, "output_tokens": 2}},
        ),
        ("tool.requested", 1.0, {"tool_call_id": call_id, "data": {"tool_name": "Bash", "args": {}}}),
        ("tool.shell.started", 1.2, {"tool_call_id": call_id}),
        ("tool.shell.finished", 1.7, {"tool_call_id": call_id, "data": {"exit_code": 0}}),
        ("tool.execution.finished", 2.9, {"tool_call_id": call_id, "data": {"status": "success"}}),
    ]


@pytest.mark.parametrize("again", ["whole", "lines"])
@pytest.mark.parametrize("beside", ["transcript", "nothing"])
def test_the_rows_of_a_log_that_stand_in_it_twice_are_told_once(tmp_path: Path, again: str, beside: str) -> None:
    """A collector appended a log to itself, or wrote each line twice: the number of a row is unique in its run."""
    home, told = tmp_path / "home", logged(*_shell())
    log(home, told + told if again == "whole" else [row for row in told for _ in range(2)])
    if beside == "transcript":
        transcript(home, one_call())
    db, _ = loaded(tmp_path)
    assert rows(db, CALLS) == [("qoder:s1", "c1", "ok", 500.0, "execution", None)]
    assert rows(db, "select tool_calls, input_tokens from sessions") == [(1, 10)]
    assert rows(db, "select count(*) from turns") == [(1,)]
    assert rows(
        db,
        "select kind, n from record_census join sources using (source_id) "
        "where store_kind = 'qoder_logs' and unit = 'line' and kind like 'tool.%' order by 1",
    ) == [
        (f"{kind}{end}", 1)
        for kind in ("tool.execution.finished", "tool.requested", "tool.shell.finished", "tool.shell.started")
        for end in ("", ":resend")
    ]


def test_rows_of_one_number_that_say_different_things_are_all_read(tmp_path: Path) -> None:
    """A log whose rows all have one number: nothing is lost for that."""
    log(tmp_path / "home", [{**row, "seq": 1} for row in logged(*_shell("c1"), *_shell("c2"))])
    db, _ = loaded(tmp_path)
    assert rows(db, "select call_key, latency_ms from tool_calls order by 1") == [("c1", 500.0), ("c2", 500.0)]


@pytest.mark.parametrize("second_pre", [1, 1.004])
def test_what_the_audit_trail_tells_twice_of_a_call_is_one_call(tmp_path: Path, second_pre: float) -> None:
    """The row before the call is written twice: as it is, or by a second hook, or once asked and once allowed."""
    home = tmp_path / "home"
    transcript(home, one_call())
    audit(
        home,
        audited("PreToolUse", 1, "c1", _action="ASKED"),
        audited("PreToolUse", second_pre, "c1", _action="ASKED"),
        audited("PostToolUse", 3, "c1"),
        audited("PostToolUse", 3, "c1"),
    )
    db, _ = loaded(tmp_path)
    assert rows(db, "select call_key, status, anomaly from tool_calls") == [("c1", "ok", None)]


def test_calls_of_one_id_that_ended_in_between_stay_two_calls_of_the_audit_trail(tmp_path: Path) -> None:
    """An id used again is another call (``#2``), in the trail as in transcripts."""
    home = tmp_path / "home"
    again = [
        said("assistant", "a3", "a2", 5, [call("c1")], id="m3", stop_reason="tool_use"),
        said("user", "r3", "a3", 7, [done("c1")]),
    ]
    transcript(home, one_call() + again)
    audit(
        home,
        *(
            audited(f"{which}ToolUse", second, "c1")
            for which, second in (("Pre", 1), ("Post", 3), ("Pre", 5), ("Post", 7))
        ),
    )
    db, _ = loaded(tmp_path)
    assert rows(db, "select call_key, latency_ms from tool_calls order by 1") == [("c1", 2000.0), ("c1#2", 2000.0)]


# -- rows out of order

#: Two calls of one loop: the second waits for a person (5 s), for the end of the first (from 8 to 9 s), runs and fails.
_QUEUED: Final[list[tuple[str, float, dict[str, Any]]]] = [
    ("turn.started", 0.5, {"turn_id": "t1"}),
    ("tool.requested", 1.0, {"tool_call_id": "c1", "loop_id": "l", "data": {"tool_name": "Bash", "args": {}}}),
    ("tool.requested", 1.0, {"tool_call_id": "c2", "loop_id": "l", "data": {"tool_name": "Bash", "args": {}}}),
    ("hook.started", 1.1, {"tool_call_id": "c1", "data": {"hook_name": "h"}}),
    ("hook.finished", 1.3, {"tool_call_id": "c1", "data": {"hook_name": "h"}}),
    ("tool.shell.started", 1.5, {"tool_call_id": "c1"}),
    ("permission.requested", 3.0, {"tool_call_id": "c2"}),
    ("permission.resolved", 8.0, {"tool_call_id": "c2", "data": {"source": "user", "allowed": True}}),
    ("tool.shell.finished", 9.0, {"tool_call_id": "c1", "data": {"exit_code": 0}}),
    ("tool.shell.started", 9.0, {"tool_call_id": "c2"}),
    ("tool.shell.finished", 9.0, {"tool_call_id": "c2", "data": {"exit_code": 3}}),
    ("tool.execution.finished", 9.5, {"tool_call_id": "c1", "data": {"status": "success"}}),
    ("tool.execution.finished", 9.5, {"tool_call_id": "c2", "data": {"status": "success"}}),
]


def _shuffled(seed: int) -> list[dict[str, Any]]:
    told = logged(*_QUEUED)
    if seed < 0:
        return told[::-1]
    random.Random(seed).shuffle(told)
    return told


@pytest.mark.parametrize("seed", [-1, 1, 2, 3])
def test_a_log_times_calls_by_its_times_not_by_its_lines(tmp_path: Path, seed: int) -> None:
    """c1: hook 0.2 s, shell 7.5 s. c2: 5 s for the person, 1 s for c1, a shell that took no whole millisecond."""
    log(tmp_path / "home", _shuffled(seed))
    db, _ = loaded(tmp_path)
    assert rows(
        db,
        "select call_key, status, exit_code, latency_ms, latency_source, latency_quality, wait_ms "
        "from tool_calls order by 1",
    ) == [
        ("c1", "ok", 0, 7500.0, "execution", "exact", 200.0),
        ("c2", "error", 3, 0.0, "execution", "exact", 6000.0),
    ]


def test_a_clock_that_steps_back_times_nothing(tmp_path: Path) -> None:
    """Times out of order on lines in order: an end before its start is no duration, and no call waits for itself."""
    told = [(kind, seconds - (60 if n > 3 else 0), more) for n, (kind, seconds, more) in enumerate(_shell())]
    log(tmp_path / "home", logged(*told))
    db, _ = loaded(tmp_path)
    assert rows(db, "select call_key, status, latency_ms, wait_ms from tool_calls") == [("c1", "ok", None, None)]


def test_rows_that_stand_further_apart_than_the_window_are_taken_as_they_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory does not follow the log: what is out of reach is paired no more, and nothing is lost for it."""
    monkeypatch.setattr(timeorder, "WINDOW_ROWS", 2)
    log(tmp_path / "home", logged(*_shell())[::-1])
    db, _ = loaded(tmp_path)
    assert rows(db, "select call_key, status, latency_ms from tool_calls") == [("c1", "ok", 1900.0)]
    assert rows(db, "select count(*) from turns") == [(1,)]


def test_rows_of_the_audit_trail_pair_by_their_times(tmp_path: Path) -> None:
    """First in, first out: from 1 to 3 and from 1.5 to 4, in whatever order the lines stand."""
    home = tmp_path / "home"
    records = [
        said("user", "u1", None, 0, "Hi"),
        said("assistant", "a1", "u1", 1, [call("c1"), call("c2")], id="m1", stop_reason="tool_use"),
    ]
    transcript(home, records)
    trail = [("PreToolUse", 1), ("PreToolUse", 1.5), ("PostToolUse", 3), ("PostToolUse", 4)]
    audit(home, *(audited(event, second, request_set_id="R") for event, second in reversed(trail)))
    db, _ = loaded(tmp_path)
    pairs = "select call_key, us // 1000 from (select call_key, epoch_us(r.ts) - epoch_us(q.ts) as us from "
    pairs += "facts.tool_requests q join facts.tool_results r using (source_id, call_key)) order by 1"
    assert rows(db, pairs) == [("~3.0", 2500), ("~4.0", 2000)]
