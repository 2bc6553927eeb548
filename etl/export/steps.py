"""How do a session's dialogue, calls and usage become the steps of a trajectory?

An agent step is one message of the model: its text, its reasoning, the calls it asked for with what they gave, and what
it used. Everything else that was said is a step of the user or of the system. Only what the store knows is written.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    Row = Mapping[str, Any]
    #: The references of a call to the trajectories of its sub-agents.
    Spawned = Callable[[str], list[dict[str, Any]]]

#: What a person said, by kind of dialogue; a sub-agent's task is said to it as a prompt is.
_OF_USER: Final = frozenset({"prompt", "steer", "command", "shell", "answer", "objective"})
_OF_AGENT: Final = frozenset({"text", "thinking", "question", "call"})
#: Names of metrics and of the columns they are from.
METRICS: Final = {
    "prompt_tokens": "input_tokens",
    "completion_tokens": "output_tokens",
    "cached_tokens": "cache_read_tokens",
    "cost_usd": "cost_usd",
}
_MORE_METRICS: Final = ("reasoning_tokens", "cache_creation_5m_tokens", "cache_creation_1h_tokens", "credits")
_STATED: Final = ("usage_status", "cost_basis", "stop_reason", "duration_ms", "first_token_ms")
_OF_RESULT: Final = (
    *("status", "is_error", "exit_code", "latency_us", "latency_source", "latency_quality", "result_truncated"),
    "result_bytes",
)
_BETWEEN: Final = "\n\n"


@dataclass(slots=True)
class Step:
    """A step in the making."""

    seq: int
    source: str
    first: Row
    is_copy: bool = False
    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[Row] = field(default_factory=list)
    usage: list[Row] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    ts: datetime | None = None
    model: str | None = None

    def add(self, entry: Row) -> None:
        """One more row of the message."""
        self.ts = self.ts or entry["ts"]
        self.model = self.model or entry["model"]
        if entry["kind"] == "call":
            self.calls.append(entry)
            return
        if entry["attachments"]:
            self.extra["attachments"] = max(self.extra.get("attachments", 0), entry["attachments"])
        if entry["raw_envelope"]:  # transport JSON is no message: that it stands there is all that is said of it
            self.extra["raw_envelopes"] = self.extra.get("raw_envelopes", 0) + 1
        elif entry["kind"] == "thinking":
            self.thoughts.append(entry["text"])
        else:
            self.texts.append(entry["text"])

    def use(self, call: Row) -> None:
        """A call of the model that made the message."""
        self.usage.append(call)
        self.model = self.model or call["model"]

    def can_use(self, call: Row) -> bool:
        """May a call of the model that names no message have made this one?"""
        is_free = self.source == "agent" and not self.is_copy and not self.usage
        return is_free and self.first["turn_no"] == call["turn_no"]

    def as_dict(self, step_id: int, spawned: Spawned) -> dict[str, Any]:
        """The step as the format has it."""
        said: dict[str, Any] = {"step_id": step_id}
        if self.ts is not None:
            said["timestamp"] = instant(self.ts)
        said |= {"source": self.source, "message": _BETWEEN.join(self.texts)}
        if self.source == "agent":
            said |= _filled({"model_name": self.model, "reasoning_content": _BETWEEN.join(self.thoughts) or None})
        if self.calls:
            said["tool_calls"] = [_call(call) for call in self.calls]
            results = [result for call in self.calls if (result := _result(call, spawned)) is not None]
            if results:
                said["observation"] = {"results": results}
        if self.usage:
            said |= _filled({"llm_call_count": len(self.usage), "metrics": metrics(self.usage)})
        if self.is_copy:
            said["is_copied_context"] = True
        place = {name: self.first[name] for name in ("turn_no", "source_id", "line_no")}
        return said | {"extra": _filled({"kind": self._kind(), **place, **self.extra})}

    def _kind(self) -> str | None:
        return None if self.source == "agent" else str(self.first["kind"])


def steps_of(entries: Sequence[Row], usage: Sequence[Row]) -> list[Step]:
    """The steps of a session in order. ``usage`` are the model calls that belong to steps."""
    made: dict[tuple[Any, ...], Step] = {}
    for entry in entries:
        source = _source(entry["kind"])
        message = entry["message_key"] or f"~{entry['seq']}"
        key = (source, None if source == "agent" else entry["kind"], message, entry["is_copy"])
        step = made.get(key)
        if step is None:
            step = made[key] = Step(entry["seq"], source, entry, entry["is_copy"])
            if entry["kind"] == "summary":  # what was said before it is gone from the model's context
                step.extra["context_management"] = {"type": "compaction", "boundary": "replace"}
        step.add(entry)
    steps, places = list(made.values()), _Places(entries)
    alone = []
    for call in usage:
        own = made.get(("agent", None, call["message_key"], False)) if call["message_key"] else None
        if own is not None:
            own.use(call)
        elif _says_something(call):
            alone += _placed(call, steps, places.before(call))
    return sorted([*steps, *alone], key=lambda step: step.seq)


def _source(kind: str) -> str:
    return "agent" if kind in _OF_AGENT else "user" if kind in _OF_USER else "system"


def _says_something(call: Row) -> bool:
    return any(call[name] is not None for name in (*METRICS.values(), "credits"))


def _placed(call: Row, steps: Sequence[Step], seq: int) -> list[Step]:
    """A call of the model whose message the log does not name, made after the place ``seq``. What stands there is what
    it gave, if that is a message of the agent in the same turn, without usage of its own; the step says so. Else the
    call is a step of its own, without a message.
    """
    index = bisect_right(steps, seq, key=lambda step: step.seq) - 1
    last = steps[index] if index >= 0 else None
    if last is not None and last.can_use(call):
        last.use(call)
        last.extra["usage_placed_by"] = "order"
        return []
    step = Step(seq, "agent", call, ts=call["ts"], extra={"usage_placed_by": "order"})
    step.use(call)
    return [step]


class _Places:
    """Where a model call stands among what a session says."""

    def __init__(self, entries: Sequence[Row]) -> None:
        lines: dict[str, list[tuple[int, int]]] = {}
        for entry in entries:
            lines.setdefault(entry["source_id"], []).append((entry["line_no"], entry["seq"]))
        self._lines = {source: _running(found) for source, found in lines.items()}
        self._times = _running([(entry["ts"], entry["seq"]) for entry in entries if entry["ts"] is not None])
        self._turns = _running([(entry["turn_no"], entry["seq"]) for entry in entries])

    def before(self, call: Row) -> int:
        """The last place before a model call: by the lines of its own file, else by time, else by its turn; 0: none."""
        if call["source_id"] in self._lines:
            return _last(self._lines[call["source_id"]], call["line_no"])
        if call["ts"] is not None:
            return _last(self._times, call["ts"])
        return _last(self._turns, call["turn_no"] or 0)


def _running(found: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """Keys in order, each with the largest number so far."""
    found.sort()
    return list(zip((key for key, _ in found), accumulate((number for _, number in found), max), strict=True))


def _last(found: Sequence[tuple[Any, int]], key: Any) -> int:
    index = bisect_right(found, key, key=lambda place: place[0])
    return found[index - 1][1] if index else 0


def metrics(usage: Sequence[Row]) -> dict[str, Any] | None:
    """What calls of the model used together; None where nothing is known."""
    said = {name: added(usage, column) for name, column in METRICS.items()}
    more: dict[str, Any] = {name: added(usage, name) for name in _MORE_METRICS}
    if len(usage) == 1:
        more |= {name: usage[0][name] for name in _STATED}
    found = _filled(said) | ({"extra": _filled(more)} if _filled(more) else {})
    return (
        found if any(value is not None for value in (*said.values(), *(more[name] for name in _MORE_METRICS))) else None
    )


def added(usage: Iterable[Row], column: str) -> int | float | None:
    """The sum of a column over calls that report it, None where none does. Money is added exactly."""
    values = [row[column] for row in usage if row[column] is not None]
    return plain(sum(values[1:], values[0])) if values else None


def plain(value: Any) -> Any:
    """A value that JSON has: money as a number."""
    return float(value) if isinstance(value, Decimal) else value


def instant(ts: datetime) -> str:
    """ISO 8601 with Z."""
    return ts.isoformat().replace("+00:00", "Z")


def _call(call: Row) -> dict[str, Any]:
    arguments = _arguments(call["args"])
    extra: dict[str, Any] = {"mcp_server": call["mcp_server"]}
    if arguments is None:  # the format wants an object: an empty one, and the text beside it
        extra["arguments_text"] = call["args"]
    if not call["has_result"]:
        extra["status"] = call["status"]
    said = {"tool_call_id": call["call_key"], "function_name": call["name"] or "unknown", "arguments": arguments or {}}
    return said | ({"extra": _filled(extra)} if _filled(extra) else {})


def _arguments(text: str | None) -> dict[str, Any] | None:
    """The arguments as an object; None where they are none, or hold what JSON cannot (a number beyond its range)."""
    try:
        value = json.loads(text or "null")
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _result(call: Row, spawned: Spawned) -> dict[str, Any] | None:
    references = spawned(call["call_key"])
    if not call["has_result"] and not references:
        return None
    said = {"source_call_id": call["call_key"], "content": call["result_text"]}
    if references:
        said["subagent_trajectory_ref"] = references
    extra = _filled({name: call[name] for name in _OF_RESULT}) if call["has_result"] else {}
    if "latency_us" in extra:
        extra["latency_ms"] = extra.pop("latency_us") / 1000
    if not extra.get("result_truncated"):
        extra.pop("result_truncated", None)
    if call["ended_at"] is not None:
        extra["ended_at"] = instant(call["ended_at"])
    return _filled(said) | ({"extra": extra} if extra else {})


def _filled(said: Mapping[str, Any]) -> dict[str, Any]:
    """Without what is not known."""
    return {name: plain(value) for name, value in said.items() if value is not None}
