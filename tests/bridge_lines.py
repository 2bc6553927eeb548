"""How do tests write evidence of a Bridge: messages of the SDK, the lines of a turn, a batch?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.loading import load_home

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from etl.request import Report

STAMP = "2026-10-05T08-00-00.000Z"
#: A label with its payload, and the milliseconds since the turn began (default: 100 a line).
Line = tuple[str, Any] | tuple[str, Any, Any]


def snapshot(text: str, uuid: str = "a", *, stop: str | None = None, **more: Any) -> dict[str, Any]:
    body = {"id": "m1", "type": "message", "role": "assistant", "content": [{"type": "text", "text": text}]}
    return {"type": "assistant", "uuid": uuid, "message": {**body, "stop_reason": stop, **more}}


def delta(text: str, uuid: str) -> dict[str, Any]:
    event = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}
    return {"type": "stream_event", "uuid": uuid, "event": event}


def result(text: str, uuid: str = "r", **more: Any) -> dict[str, Any]:
    told = {"subtype": "success", "is_error": False, "result": text, "stop_reason": "end_turn", "usage": {}}
    return {"type": "result", "uuid": uuid, **told, **more}


def queued(uuid: str = "q", **more: Any) -> dict[str, Any]:
    told = {"subtype": "model_queue_status", "status": "queued", "service_available": False}
    return {"type": "system", "uuid": uuid, **told, **more}


def raw(*messages: Any) -> list[Line]:
    """The lines of boundary A that messages are."""
    return [("sdk_raw_message", {"boundary": "A", "seq": n, "message": told}) for n, told in enumerate(messages, 1)]


def frames(*messages: Any) -> list[Line]:
    return [("transport_frame", told) for told in messages]


class Batch:
    """A batch below ``home``, written file by file, then loaded."""

    def __init__(self, home: Path) -> None:
        self.tree, self.folder = home / "tree", home / "tree" / STAMP
        self.folder.mkdir(parents=True)
        self.home, self.db = home, home / "store.duckdb"

    def turn(self, run: int, lines: Iterable[Line], *, turn: int = 1, tail: str = "") -> Batch:
        """Diagnostics of a turn; ``tail`` is what the file ends in."""
        return self._write(f"run-{run}-turn-{turn}.jsonl", lines, 1, tail)

    def transport(self, run: int, lines: Iterable[Line], *, turn: int = 1) -> Batch:
        return self._write(f"run-{run}-turn-{turn}-transport.jsonl", lines, 0, "")

    def summary(self, *runs: dict[str, Any]) -> Batch:
        (self.folder / "summary.json").write_text(json.dumps(runs))
        return self

    def load(self) -> Report:
        report = load_home(self.home, self.db, qoder_bridge=self.tree)
        assert (report.failed, report.quarantined) == ({}, {})
        return report

    def _write(self, name: str, lines: Iterable[Line], first: int, tail: str) -> Batch:
        told = [
            {
                "label": line[0],
                "requestId": "11111111-1111-4111-8111-111111111111",
                "sequence": n,
                "elapsedMs": line[2] if len(line) > 2 else 100 * n,
                "payload": line[1],
            }
            for n, line in enumerate(lines, first)
        ]
        (self.folder / name).write_text("".join(json.dumps(line) + "\n" for line in told) + tail)
        return self


def reported(run: int, *turns: tuple[str, str | None], **more: Any) -> dict[str, Any]:
    """A run of a summary; its turns are (stop reason, error)."""
    told: Sequence[dict[str, Any]] = [
        {"turn": n, "stopReason": stop, "error": error} for n, (stop, error) in enumerate(turns, 1)
    ]
    return {"run": run, "toolCount": 0, "protocolErrors": 0, "states": ["FAILED"], "turns": told, **more}
