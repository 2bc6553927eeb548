"""How does a generated Muse session stand on disk?

Record shapes are those that Muse Code 1.1 to 1.4 writes: a frame first, then one envelope per line with a running
``sequence``, most of them bookkeeping of tasks; arguments are JSON in a string, results come in batches that name their
call by index and id, effects time each call by itself, usage is stated twice, and a sub-agent's id stands in the result
of the call that spawned it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import orjson

from tests.bench.draw import File, malformed, torn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.bench.draw import Draw, Json, Mix

_TOOLS: Final = ("read_file", "bash", "grep", "edit_file", "write_todos", "list_dir", "write_file")
_MODELS: Final = ("muse-spark-1.2-contributor", "muse-spark-1.3-contributor")
_FIRST_SESSION_US: Final = 1_788_300_000_000_000  # 2 September 2026


def sessions(draw: Draw, mix: Mix) -> Iterator[list[File]]:
    """Session after session without end: its file and those of its sub-agents."""
    start = _FIRST_SESSION_US
    while True:
        start += 60_000_000 + draw.below(9_000_000_000)
        session, cwd = draw.uuid(), f"/srv/work/p{draw.below(40)}"
        day = datetime.fromtimestamp(start // 1_000_000, UTC)
        log = _Log(draw, mix, f".local/share/muse/sessions/{day:%Y/%m/%d}/{session}", session, cwd, start)
        for _ in range(draw.turns()):
            log.turn()
        yield list(log.files())


class _Log:
    """Writes one log: its clock (Unix microseconds), its sequence, its lines, its sub-agents."""

    def __init__(self, draw: Draw, mix: Mix, base: str, session: str, cwd: str, start: int, depth: int = 0) -> None:
        self.draw, self.mix, self.base, self.cwd, self.depth = draw, mix, base, cwd, depth
        self.now, self.number, self.run_id = start, 0, ""
        self.lines: list[bytes] = []
        self.children: list[_Log] = []
        self.stream: Json = {"kind": "session", "id": session}
        self.model = _MODELS[draw.below(2)]
        permissions = ("permission_format_declared", "permission_profile_committed")
        inside = [self.record(f"runtime.session.{kind}", {"schema_version": 1}) for kind in permissions]
        listed = [{"child_index": n, "record_json": record.decode()} for n, record in enumerate(inside)]
        frame = {"retained_frame": "session_permission_transaction", "frame_schema_version": 1, "children": listed}
        self.lines.append(orjson.dumps(frame))
        build = {"provider_id": "meta", "build": {"semver": "1.4.2", "sha": draw.hex(10)}}
        self.put("runtime.session.metadata", record=build | ({} if depth else {"workspace_root": cwd}))

    def record(self, payload_type: str, payload: Json) -> bytes:
        """One envelope, with the next number."""
        self.now += 200 + self.draw.below(20_000)
        self.number += 1
        record: Json = {"schema_version": 1, "id": self.draw.uuid(), "stream": self.stream, "sequence": self.number}
        record |= {"recorded_at": self.now, "record_type": "event", "durability": "durable", "causation_id": None}
        return orjson.dumps(record | {"payload_type": payload_type, "payload_schema_version": 1, "payload": payload})

    def put(self, payload_type: str, **payload: Any) -> None:
        line = self.record(payload_type, {"kind": payload_type.rpartition(".")[2], **payload})
        self.lines.append(line)
        if self.draw.chance(self.mix.resends):
            self.lines.append(line)

    def run(self, kind: str, **fields: Any) -> None:
        self.put("runtime.session", kind="run", run_id=self.run_id, event={"kind": kind, **fields})

    def task(self, task: str, kind: str, **fields: Any) -> None:
        self.put("runtime.session", kind="task", run_id=self.run_id, task_id=task, event={"kind": kind, **fields})

    def turn(self, prompt: str | None = None) -> None:
        """A run: what is asked, and what follows."""
        draw = self.draw
        self.now += 2_000_000 + draw.below(400_000_000)
        self.run_id = draw.uuid()
        if prompt is None:
            prompt = draw.prose(20, 4000, 5, 1) if draw.chance(0.95) else ""
        self.run("started", prompt=prompt)
        for _ in range(draw.steps()):
            self.step()
        self.run("assistant_message_committed", message_id=draw.uuid(), text=draw.prose(20, 6000, 5.2, 1))
        failed = draw.chance(self.mix.errors)
        reason = "API error 503 Service Unavailable" if failed else None
        self.run("terminal", terminal="failed" if failed else "completed", reason=reason, turn_duration_ms=9000)

    def step(self) -> None:
        """One response of the model, its calls and their results."""
        draw, response, task = self.draw, f"resp_{self.draw.hex(24)}", self.draw.uuid()
        for kind in ("proposed", "accepted", "scheduled", "started"):
            self.task(task, kind)
        self.run("model_request_configured", model=self.model)
        self.run("model_response_created", response_id=response)
        if draw.chance(0.4):
            message, text = draw.uuid(), draw.prose(80, 8000, 6, 1)
            for index, part in enumerate(text.split("\n\n")):
                self.run("reasoning_summary_delta", message_id=message, summary_index=index, text=part)
            self.run("reasoning_summary_committed", message_id=message, response_id=response, text=text)
        self.run("reasoning_committed", message_id=draw.uuid(), response_id=response, text="", encrypted_content="Q-AA")
        self.now += draw.latency_ms() * 1_000
        usage: Json = {"input_tokens": 1_000 + draw.below(90_000), "output_tokens": 1 + draw.below(2_000)}
        usage |= {"cache_read_tokens": 500, "cached_tokens": 500, "cache_write_tokens": 0, "reasoning_tokens": 0}
        told = {"usage_id": draw.uuid(), "usage_family": "provider", "quantity": {"reported": True, **usage}}
        self.run("goal_usage_attribution", record=told)
        self.run("model_completed", model=self.model, finish_reason="tool_calls", duration_ms=900, usage=usage)
        self.batch(response)

    def batch(self, response: str) -> None:
        """One or two calls, each timed by its effect, and the results that the log has of them."""
        draw, batch = self.draw, self.draw.uuid()
        calls = [self.call() for _ in range(1 + draw.below(2))]
        self.run("assistant_tool_calls_committed", message_id=batch, response_id=response, tool_calls=calls)
        results = []
        for index, call in enumerate(calls):
            if draw.chance(self.mix.lost_results):
                continue
            native, task = call["call_id"], draw.uuid()
            record = {"call_id": native, "task_id": task, "tool_name": call["name"]}
            self.put("tool_batch.effect.started", record={"kind": "started", **record})
            text = self.spawned(native) if call["name"] == "subagent_spawn" else self.output(call["name"])
            self.now += draw.latency_ms() * 1_000
            outcome = {"kind": "completed", "task_completion": {"kind": "complete"}}
            self.put("tool_batch.effect.terminal", record={"kind": "terminal", **record, "outcome": outcome})
            results.append({"tool_call_index": index, "tool_call_id": native, "text": text})
        self.run("tool_result_batch_committed", batch_id=batch, results=results)
        if draw.chance(self.mix.malformed):
            self.lines.append(malformed(draw))

    def call(self) -> Json:
        """A call of some tool; a session spawns now and then."""
        draw = self.draw
        name = "subagent_spawn" if not self.depth and draw.chance(0.01) else _TOOLS[draw.below(len(_TOOLS))]
        given: Json = {"path": f"{self.cwd}/x", "body": draw.prose(20, 4000, 5, 1)}
        if name == "bash":
            given = {"command": draw.text(60)}
        elif name == "write_todos":
            given = {"todos": [{"text": draw.text(40), "status": "pending"} for _ in range(3)]}
        elif name == "subagent_spawn":
            given = {"task_name": draw.text(30), "role": "executor"}
        native = f"call_{draw.hex(24)}"
        return {"id": f"fc_{native}", "call_id": native, "name": name, "args": orjson.dumps(given).decode()}

    def output(self, name: str) -> str:
        """What a tool answers; some fail."""
        draw, failed = self.draw, self.draw.chance(self.mix.errors)
        if name == "bash":
            answer = {"exit_code": int(failed), "terminal_status": "completed", "output": draw.output()}
            return orjson.dumps(answer).decode()
        return f"tool failed: {draw.text(60)}" if failed else draw.output()

    def spawned(self, call: str) -> str:
        """A sub-agent: its log, the record that ties it to its call, and the call's result."""
        agent, session = f"sa-{self.draw.hex(8)}", self.draw.uuid()
        child = _Log(self.draw, self.mix, f"{self.base}/subagent/{session}", session, self.cwd, self.now, 1)
        child.turn(f"Role: executor Objective: {self.draw.text(60)}")
        self.children.append(child)
        tied = {"kind": "start_attested", "subagent_id": agent, "subagent_session_id": session}
        self.put("subagent.control.start_attested", record=tied | {"dispatched_via_tool_call_id": call})
        return orjson.dumps({"status": "accepted", "subagent_id": agent}).decode()

    def files(self) -> Iterator[File]:
        """This log and those below it."""
        is_torn = self.draw.chance(self.mix.torn)
        body = torn(self.draw, self.lines) if is_torn else b"\n".join(self.lines) + b"\n"
        yield File(f"{self.base}/session.jsonl", body, self.now // 1_000)
        for child in self.children:
            yield from child.files()
