"""Is what logs and the audit trail tell of counted once, however often and in whatever order they tell it?"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

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
