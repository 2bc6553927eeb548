"""How do tests write a few records of Claude Code or Codex to disk, as the agents would?"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: Ids of sessions, by number.
SESSION: Final = "{0:08d}-0000-4000-8000-{0:012d}"
_DAY: Final = datetime(2026, 5, 4, 10, 0)  # noqa: DTZ001 - written with a Z


def at(seconds: float) -> str:
    """The instant so many seconds after the beginning of the test's day, as agents write it."""
    return (_DAY + timedelta(seconds=seconds)).isoformat(timespec="milliseconds") + "Z"


class Claude:
    """One transcript of Claude Code; each record is the child of the one before unless it says otherwise."""

    def __init__(self, number: int = 1, cwd: str | None = "/home/dev/app", **always: Any) -> None:
        self.session = SESSION.format(number)
        self.always = {"sessionId": self.session, "version": "2.1.300", "cwd": cwd, "isSidechain": False} | always
        self.lines: list[dict[str, Any]] = []
        self.parent: str | None = None

    def add(self, kind: str, seconds: float, **fields: Any) -> Claude:
        """A record of the chain at an instant."""
        uuid = f"{self.session[:8]}-{len(self.lines) + 1:04d}"
        record = {"type": kind, "uuid": uuid, "parentUuid": self.parent, "timestamp": at(seconds), **self.always}
        self.lines.append({name: value for name, value in (record | fields).items() if value is not None})
        self.parent = self.lines[-1].get("uuid", self.parent)
        return self

    def user(self, seconds: float, content: Any, **fields: Any) -> Claude:
        """What a person, or a tool's result, says."""
        return self.add("user", seconds, message={"role": "user", "content": content}, **fields)

    def result(self, seconds: float, call: str | None, text: str = "done", **fields: Any) -> Claude:
        """The result of a call."""
        item = {"type": "tool_result", "tool_use_id": call, "content": text}
        return self.user(seconds, [{name: value for name, value in item.items() if value is not None}], **fields)

    def assistant(self, seconds: float, message: str | None, *items: dict[str, Any], **fields: Any) -> Claude:
        """One record of a model's response; ``usage``, ``model`` and ``stop_reason`` go into the message."""
        inner = {"role": "assistant", "model": "claude-opus-4-7", "id": message, "content": list(items)}
        inner |= {name: fields.pop(name) for name in ("usage", "model", "stop_reason") if name in fields}
        kept = {name: value for name, value in inner.items() if value is not None}
        return self.add("assistant", seconds, message=kept, **fields)

    def state(self, kind: str, **fields: Any) -> Claude:
        """A record outside the chain."""
        self.lines.append({"type": kind, "sessionId": self.session, **fields})
        return self

    def write(self, home: Path, name: str | None = None, slug: str = "-home-dev-app") -> Path:
        """The transcript below a home folder."""
        return write(home / ".claude" / "projects" / slug / (name or f"{self.session}.jsonl"), self.lines)


def text(said: str) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": said}


def call(call_id: str | None, name: str = "Bash", **args: Any) -> dict[str, Any]:
    """A block that asks for a tool."""
    block = {"type": "tool_use", "id": call_id, "name": name, "input": args or {"command": "make"}}
    return {key: value for key, value in block.items() if value is not None}


def usage(fresh: int, output: int, **more: int) -> dict[str, Any]:
    """The counts of one response."""
    return {"input_tokens": fresh, "output_tokens": output} | more


def codex(home: Path, number: int, records: Iterable[tuple[str, dict[str, Any]]], **meta: Any) -> Path:
    """A rollout of Codex: its header, then records (type, payload) a second apart."""
    native = f"019f0000-0000-7000-8000-00000000000{number}"
    header = {"id": native, "timestamp": at(0), "cwd": "/home/dev/app", "cli_version": "0.150.0", **meta}
    lines = [{"timestamp": at(0), "type": "session_meta", "payload": header}]
    lines += [
        {"timestamp": at(second), "type": kind, "payload": payload} for second, (kind, payload) in enumerate(records, 1)
    ]
    day = home / ".codex" / "sessions" / "2026" / "05" / "04"
    return write(day / f"rollout-2026-05-04T10-00-00-{native}.jsonl", lines)


def write(path: Path, records: Iterable[dict[str, Any]]) -> Path:
    """Records as lines of a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records))
    return path
