"""How does a generated Claude Code session stand on disk?

One content block per assistant record, all records of a message with its id and its full usage; a summary record first,
side chains in files of their own, progress and system records between.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import orjson

from tests.bench.calls import arguments, tool
from tests.bench.draw import File, iso, malformed, torn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.draw import Draw, Json, Mix

_MODELS: Final = ("claude-opus-4-1-20250805", "claude-sonnet-4-5-20250929")
_FIRST_SESSION_MS: Final = 1_760_000_000_000  # 9 October 2025


def sessions(draw: Draw, mix: Mix) -> Iterator[list[File]]:
    """Session after session without end: its file and those of its side chains."""
    start = _FIRST_SESSION_MS
    while True:
        start += 60_000 + draw.below(9_000_000)
        cwd = f"/home/dev/work/p{int(draw.random.paretovariate(1.1) % 97):03d}"
        base = f".claude/projects/{re.sub('[^A-Za-z0-9]', '-', cwd)}"
        session = _Session(draw, mix, draw.uuid(), cwd, start)
        session.summary()
        for _ in range(draw.turns()):
            session.turn()
        made = [File(f"{base}/{session.id}.jsonl", session.body(), session.now)]
        for agent, at in session.tasks:
            side = _Session(draw, mix, session.id, cwd, at, agent)
            side.turn()
            made.append(File(f"{base}/{session.id}/subagents/agent-{agent}.jsonl", side.body(), side.now))
        yield made


class _Session:
    """Writes one transcript: its clock (Unix milliseconds), its parent chain and its lines."""

    def __init__(self, draw: Draw, mix: Mix, session: str, cwd: str, start: int, agent: str = "") -> None:
        self.draw, self.mix, self.id, self.cwd, self.agent, self.now = draw, mix, session, cwd, agent, start
        self.lines: list[bytes] = []
        self.parent: str | None = None
        self.tasks: list[tuple[str, int]] = []
        self.common: Json = {"isSidechain": bool(agent)} | ({"agentId": agent} if agent else {})
        self.common |= {"userType": "external", "cwd": cwd, "sessionId": session}
        self.common |= {"version": f"2.1.{draw.below(40)}", "gitBranch": ("main", "feat/x", "fix/y")[draw.below(3)]}

    def row(self, kind: str, **fields: object) -> None:
        """A record of the chain; some are sent twice."""
        name = self.draw.uuid()
        head = {"parentUuid": self.parent, **self.common, "type": kind}
        line = orjson.dumps({**head, **fields, "uuid": name, "timestamp": iso(self.now)})
        self.lines.append(line)
        if kind == "assistant" and self.draw.chance(self.mix.resends):
            self.lines.append(line)
        self.parent = name

    def summary(self) -> None:
        self.lines.append(
            orjson.dumps({"type": "summary", "summary": self.draw.text(40), "leafUuid": self.draw.uuid()})
        )

    def turn(self) -> None:
        """A prompt and what follows."""
        draw = self.draw
        self.now += 2_000 + draw.below(400_000)
        self.row("user", message={"role": "user", "content": draw.prose(20, 4000, 5, 1)})
        for _ in range(draw.steps()):
            self.step()
        if draw.chance(0.3):
            self.snapshot()
        if draw.chance(self.mix.malformed):
            self.lines.append(malformed(draw))

    def step(self) -> None:
        """One response of the model and the results of its calls."""
        draw = self.draw
        calls = [self.request() for _ in range(1 if draw.chance(0.85) else 2 + draw.below(2))]
        self.respond(calls)
        for call in calls:
            self.now += draw.latency_ms()
            if call["name"] == "Task" and not self.agent:
                self.tasks.append((draw.hex(8), self.now))
            if not draw.chance(self.mix.lost_results):
                self.answer(call)
        if draw.chance(0.06):
            self.row("system", subtype="turn_duration", durationMs=draw.below(99_999), isMeta=False)
        if draw.chance(0.05):
            hook = {"type": "hook_progress", "hookEvent": "PostToolUse"}
            self.row("progress", data=hook, toolUseID=calls[0]["id"])

    def request(self) -> Json:
        name = tool(self.draw)
        given = arguments(self.draw, name, self.cwd)
        name = "Task" if name == "Agent" else name
        return {"type": "tool_use", "id": f"toolu_01{self.draw.hex(20)}", "name": name, "input": given}

    def respond(self, calls: list[Json]) -> None:
        draw = self.draw
        blocks: list[Json] = []
        if draw.chance(0.45):
            thought = draw.prose(80, 8000, 6, 1)
            blocks.append({"type": "thinking", "thinking": thought, "signature": draw.hex(400)})
        if draw.chance(0.5):
            blocks.append({"type": "text", "text": draw.prose(20, 6000, 5.2, 1)})
        blocks += calls
        message: Json = {"id": f"msg_01{draw.hex(20)}", "type": "message", "role": "assistant"}
        message |= {"model": _MODELS[0 if draw.chance(0.3) else 1], "stop_sequence": None, "usage": self.usage()}
        request = f"req_011{draw.hex(16)}"
        for block in blocks:
            self.now += 50 + draw.below(9_000)
            message |= {"content": [block], "stop_reason": "tool_use" if block is blocks[-1] else None}
            self.row("assistant", requestId=request, message=message)

    def usage(self) -> Json:
        below = self.draw.below
        usage: Json = {"input_tokens": 1 + below(299), "cache_creation_input_tokens": below(8_000)}
        usage |= {"cache_read_input_tokens": below(150_000), "output_tokens": 1 + below(1_999)}
        usage["cache_creation"] = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0}
        return usage | {"service_tier": "standard"}

    def answer(self, call: Json) -> None:
        draw = self.draw
        text, failed = draw.output(), draw.chance(self.mix.errors)
        told: Json | str = {"ok": True, "mode": "content", "content": text[:500]}
        if call["name"] == "Bash":
            told = {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
        elif call["name"] == "Read":
            lines = text.count("\n") + 1
            file = {"filePath": call["input"]["file_path"], "content": text, "numLines": lines}
            told = {"type": "text", "file": file | {"startLine": 1, "totalLines": lines}}
        elif failed:
            told = f"Error: {text[:200]}"
        content = text if draw.chance(0.7) else [{"type": "text", "text": text}]
        item = {"tool_use_id": call["id"], "type": "tool_result", "content": content}
        item |= {"is_error": True} if failed else {}
        self.row("user", message={"role": "user", "content": [item]}, toolUseResult=told)

    def snapshot(self) -> None:
        backups = {f"{self.cwd}/f{n}": {"version": n} for n in range(1 + self.draw.below(19))}
        kept = {"trackedFileBackups": backups, "timestamp": iso(self.now)}
        record = {"type": "file-history-snapshot", "messageId": self.draw.uuid(), "snapshot": kept}
        self.lines.append(orjson.dumps(record))

    def body(self) -> bytes:
        """The bytes of the transcript; some are torn in the last line."""
        if self.draw.chance(self.mix.torn):
            return torn(self.draw, self.lines)
        return b"\n".join(self.lines) + b"\n"
