"""How does a generated Muse session stand on disk?

One event envelope per line with a running ``sequence``; tool arguments are JSON in a string, results come in batches
that name their call by index and id.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import orjson

from tests.bench.draw import File, torn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.draw import Draw, Json, Mix

_TOOLS: Final = ("read_file", "bash", "grep", "edit_file", "write_todos", "subagent_spawn", "subagent_wait")
_FIRST_SESSION_US: Final = 1_760_000_000_000_000  # 9 October 2025


def sessions(draw: Draw, mix: Mix) -> Iterator[list[File]]:
    """Session after session without end: its file and, for a third, that of a sub-agent."""
    start = _FIRST_SESSION_US
    while True:
        start += 60_000_000 + draw.below(9_000_000_000)
        session, cwd = draw.uuid(), f"/home/dev/p{draw.below(40)}"
        day = datetime.fromtimestamp(start // 1_000_000, UTC)
        base = f".local/share/muse/sessions/{day:%Y/%m/%d}/{session}"
        made = [_file(draw, mix, f"{base}/session.jsonl", session, cwd, start, draw.turns())]
        if draw.chance(0.3):
            child = draw.uuid()
            made.append(_file(draw, mix, f"{base}/subagent/{child}/session.jsonl", child, cwd, start, 1))
        yield made


def _file(draw: Draw, mix: Mix, path: str, session: str, cwd: str, start: int, turns: int) -> File:
    log = _Log(draw, session, start)
    log.put("session", record={"workspace_root": cwd, "muse_version": "0.1.0"})
    for _ in range(turns):
        _turn(draw, mix, log, cwd)
    body = torn(draw, log.lines) if draw.chance(mix.torn) else b"\n".join(log.lines) + b"\n"
    return File(path, body, log.now // 1_000)


class _Log:
    """Writes one log: its clock (Unix microseconds), its sequence and its lines."""

    def __init__(self, draw: Draw, session: str, start: int) -> None:
        self.draw, self.now, self.lines = draw, start, list[bytes]()
        self.stream = {"kind": "session", "id": session}

    def put(self, scope: str, event: Json | None = None, **more: Any) -> None:
        self.now += 20_000 + self.draw.below(3_000_000)
        payload = {"kind": scope} | ({"event": event} if event else {}) | more
        record: Json = {"schema_version": 1, "id": self.draw.uuid(), "stream": self.stream}
        record |= {"sequence": len(self.lines) + 1, "recorded_at": self.now, "record_type": "event"}
        self.lines.append(orjson.dumps(record | {"payload_type": "runtime.session", "payload": payload}))

    def run(self, kind: str, **fields: Any) -> None:
        self.put("run", {"kind": kind, **fields})


def _turn(draw: Draw, mix: Mix, log: _Log, cwd: str) -> None:
    log.run("started", prompt=draw.prose(20, 4000, 5, 1) if draw.chance(0.95) else "")
    log.put("task", {"kind": "started"})
    for _ in range(draw.steps()):
        if draw.chance(0.5):
            log.run("reasoning_committed", text=draw.prose(80, 8000, 6, 1))
        if draw.chance(0.5):
            text = draw.prose(20, 6000, 5.2, 1)
            log.run("assistant_message_committed", message_id=draw.uuid(), response_id=draw.uuid(), text=text)
        calls = [_call(draw, cwd) for _ in range(1 + draw.below(2))]
        log.run("assistant_tool_calls_committed", tool_calls=calls)
        for kind in ("tool_batch_started", "progress"):
            log.put("tool_batch_effect", {"kind": kind})
        results = [
            {"tool_call_index": n, "tool_call_id": call["call_id"], "text": draw.output()}
            for n, call in enumerate(calls)
            if not draw.chance(mix.lost_results)
        ]
        log.run("tool_result_batch_committed", batch_id=draw.uuid(), results=results)
    ended = "failed" if draw.chance(mix.errors) else "completed"
    log.run("terminal", terminal=ended, reason="", turn_duration_ms=draw.below(99_999))


def _call(draw: Draw, cwd: str) -> Json:
    given = orjson.dumps({"path": f"{cwd}/x", "body": draw.prose(20, 4000, 5, 1)}).decode()
    name = _TOOLS[draw.below(len(_TOOLS))]
    return {"id": draw.uuid(), "call_id": f"call_{draw.hex(16)}", "name": name, "args": given}
