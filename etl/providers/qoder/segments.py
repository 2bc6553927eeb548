"""What do the run logs of Qoder say: when did each tool call run, and what did it wait for?

``logs/sessions/<slug>/<session>/segments/<run>.jsonl``: one file per session and process run. Rows have no session id;
ids stand at the top, in older builds in ``data``; ``false`` and empty values are left out. The clock of a call:

- ``tool.shell.started`` to ``tool.shell.finished`` times a shell call, in 1.1.52 nothing else times any call:
  ``tool.execution.started`` is gone and ``tool.execution.finished`` of a parallel batch comes when the last has ended.
- ``tool.execution.started`` to ``tool.execution.finished`` times a call in older builds.
- Otherwise ``tool.requested`` to ``tool.execution.finished`` is all there is: this log's own request and result, which
  SQL reads as such (it knows whether the call was alone).

What a call waited for stands apart: permission, the end of another call, hooks. Rows are read in the order of time;
``seq`` is unique in a run, so that the same row with the same number is the same row again (a collected log).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from etl.events import RecordOpened, SessionEvent, SessionFact, ToolResult, ToolSpan, TurnMark, Unread
from etl.grammars.tools import tool_request
from etl.providers.qoder.manifests import run_key
from etl.providers.qoder.timeorder import in_time_order
from etl.providers.qoder.usage import usage_of
from etl.shape import as_count, as_dict, as_float, as_int, as_str, as_text, canonical, instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from etl.events import Event
    from etl.providers.base import RecordLike, Source

#: Known row types that give no facts, and why.
SKIPPED_ROWS: Final[dict[str, str]] = {
    "input.prompt.received": "a preview of the prompt that stands in the transcript",
    "input.prompt.submitted": "a preview of the prompt that stands in the transcript",
    "session.config.loaded": "settings; also all that a process writes for the id it drops at its start",
    "session.phase.started": "start-up phases; the path of the transcript in one of them names the session",
    "session.phase.finished": "start-up phases; the path of the transcript in one of them names the session",
    "attachment.generator.finished": "how long the gathering of injected context took",
    "loop.iteration.started": "a loop is a model request and its calls, which are read",
    "loop.iteration.finished": "a loop is a model request and its calls, which are read",
    "cli.route.entered": "which front end was started",
    "fork.agent.started": "a sub-agent: its own transcript is read",
    "fork.agent.finished": "a sub-agent: its own transcript is read",
    "fork.agent.failed": "a sub-agent: its own transcript is read",
}
#: Row types that are read, and the method of the adapter that reads each.
READ_ROWS: Final[dict[str, str]] = {
    "turn.started": "_turn_started",
    "turn.finished": "_turn_finished",
    "model.request.started": "_model_started",
    "model.response.completed": "_model_completed",
    "model.request.failed": "_model_failed",
    "model.request.attempt_failed": "_model_failed",
    "model.retry_scheduled": "_retry",
    "tool.requested": "_requested",
    "tool.execution.started": "_started",
    "tool.execution.finished": "_finished",
    "tool.shell.started": "_shell_started",
    "tool.shell.finished": "_shell_finished",
    "tool.shell.failed": "_shell_finished",
    "tool.shell.backgrounded": "_backgrounded",
    "permission.requested": "_permission_requested",
    "permission.resolved": "_permission_resolved",
    "permission.failed": "_permission_resolved",
    "hook.started": "_hook_started",
    "hook.finished": "_hook_finished",
    "compression.progress": "_compression",
}
#: The word of ``tool.execution.finished.status`` for what is no error, by what it is.
_DENIALS: Final[dict[str, str]] = {
    "denied": "denied",
    "cancelled": "cancelled",
    "canceled": "cancelled",
    "aborted": "interrupted",
    "interrupted": "interrupted",
}


@dataclass(slots=True)
class _Call:
    """What is known of a call that has not ended: instants in microseconds, None where the log is silent."""

    requested: int | None = None
    asked: int | None = None
    ready: int | None = None
    running: int | None = None
    shell: int | None = None
    exit_code: int | None = None
    backgrounded: bool = False
    hooks: dict[str, int | None] = field(default_factory=dict)


class _Segment:
    """The adapter's locals: open calls, whose permissions were asked for and when, the end of the last call, open
    requests.
    """

    def __init__(self, source: Source, session: str) -> None:
        self.source, self.session = source, session
        self.calls: dict[str, _Call] = {}
        self.permissions: dict[str, str] = {}
        self.asked: dict[str, int | None] = {}
        self.background: dict[str, int | None] = {}
        self.last_end: int | None = None
        self.requests: dict[str, int | None] = {}
        self.is_first = True
        self.told: set[int] = set()
        self.say: Final[dict[str, Callable[[_Row], Iterator[Event]]]] = {
            kind: getattr(self, method) for kind, method in READ_ROWS.items()
        }

    def read(self, record: RecordLike) -> Iterator[Event]:
        value = record.value
        kind = value.get("type")
        say = self.say.get(kind) if isinstance(kind, str) else None
        if say is None:
            name = kind if isinstance(kind, str) else "(no type)"
            yield Unread(record.line_no, record.child, name, "skipped" if name in SKIPPED_ROWS else "unknown")
            return
        if self._is_resent(value):
            yield Unread(record.line_no, record.child, f"{kind}:resend", "skipped")
            return
        row = _Row(record, value, as_dict(value.get("data")))
        self._tie(row)
        row.opened = RecordOpened(
            record.line_no, record.child, record.raw, value, self.session, row.kind, instant(value.get("ts")), "record"
        )
        yield from say(row)

    def _is_resent(self, value: dict[str, Any]) -> bool:
        """Was this row read before? One without a number may have happened twice."""
        if as_int(value.get("seq")) is None:
            return False
        before = len(self.told)
        self.told.add(hash(canonical(value)))
        return len(self.told) == before

    def _tie(self, row: _Row) -> None:
        """A row may name its permission alone: it is of the call that another row of that permission names."""
        if row.permission_id is None:
            return
        if row.call_id is None:
            row.call_id = self.permissions.get(row.permission_id)
        else:
            self.permissions[row.permission_id] = row.call_id

    def _open(self, row: _Row, *, chained: bool = False) -> Iterator[Event]:
        opened = row.opened
        opened.chained = chained
        yield opened
        if self.is_first:  # whatever the log tells, its session is concluded anew
            self.is_first = False
            name = self.source.rel_path.rpartition("/")[2]
            yield SessionFact("run", run_key(self.source, name.partition(".jsonl")[0]))

    def _call(self, row: _Row) -> _Call:
        return self.calls.setdefault(row.call_id or "", _Call())

    # -- turns and models

    def _turn_started(self, row: _Row) -> Iterator[Event]:
        is_subagent = row.data.get("is_subagent") is True
        row.opened.role, row.opened.counted = "user", "user" if is_subagent else "direct_user"
        row.opened.is_sidechain = is_subagent
        yield from self._open(row, chained=True)
        if not is_subagent:  # a sub-agent's turn is none of the session
            yield TurnMark("start", row.id("turn_id"), "person")

    def _turn_finished(self, row: _Row) -> Iterator[Event]:
        yield from self._open(row, chained=True)
        ms = as_count(row.data.get("duration_ms"))
        yield TurnMark(
            "end",
            row.id("turn_id"),
            status_raw=as_str(row.data.get("reason")),
            reported_us=None if ms is None else ms * 1_000,
        )

    def _model_started(self, row: _Row) -> Iterator[Event]:
        yield from self._open(row)
        request = row.id("request_id")
        if request is not None:
            self.requests[request] = row.opened.ts

    def _model_completed(self, row: _Row) -> Iterator[Event]:
        request = row.id("request_id")
        key = request or f"~{row.opened.line_no}.{row.opened.child}"
        model = as_text(row.data.get("model"))
        opened = row.opened
        opened.role, opened.counted, opened.message_key, opened.model = "assistant", "assistant", key, model
        yield from self._open(row, chained=True)
        call = usage_of(key, model, row.data, as_text(row.data.get("stop_reason")))
        call.request_id = request
        started = self.requests.pop(request, None) if request else None
        if started is not None and opened.ts is not None and opened.ts >= started:
            call.duration_us = opened.ts - started
        yield call

    def _model_failed(self, row: _Row) -> Iterator[Event]:
        yield from self._open(row)
        status, body = as_int(row.data.get("status")), as_str(row.data.get("body_preview"))
        yield SessionEvent("error", row.kind, body or as_str(row.data.get("error")), {"status": status})

    def _retry(self, row: _Row) -> Iterator[Event]:
        yield from self._open(row)
        attrs = {key: as_count(row.data.get(key)) for key in ("attempt", "max_attempts", "delay_ms")}
        yield SessionEvent("retry", "model", as_str(row.data.get("error")), attrs)

    # -- calls

    def _requested(self, row: _Row) -> Iterator[Event]:
        yield from self._open(row, chained=True)
        name, args = as_str(row.data.get("tool_name")) or "(unnamed)", row.data.get("args")
        if as_dict(args).get("truncated") is True:  # only a preview of the arguments
            args = None
        if row.call_id is not None:
            self.calls[row.call_id] = _Call(requested=row.opened.ts, ready=row.opened.ts)
        yield tool_request(None, row.call_id, name, args, {}, batch_key=row.id("loop_id"))

    def _started(self, row: _Row) -> Iterator[Event]:
        yield from self._open(row)
        if row.call_id is not None:
            call = self._call(row)
            yield from self._queued(row, call)
            call.running = row.opened.ts

    def _shell_started(self, row: _Row) -> Iterator[Event]:
        yield from self._open(row)
        if row.call_id is not None:
            call = self._call(row)
            if call.running is None and call.shell is None:
                yield from self._queued(row, call)
            call.shell = row.opened.ts

    def _queued(self, row: _Row, call: _Call) -> Iterator[Event]:
        """A call that was ready while another one ran, and began after that one's end, waited for it."""
        begun = row.opened.ts
        if call.ready is not None and self.last_end is not None and self.last_end >= call.ready:
            yield from _span(row, "wait_queue", call.ready, begun)

    def _shell_finished(self, row: _Row) -> Iterator[Event]:
        yield from self._open(row)
        if row.call_id is None:
            return
        code = as_int(row.data.get("exit_code"))
        if row.call_id in self.background:
            began = self.background.pop(row.call_id)
            lasted = None if began is None or row.opened.ts is None else (row.opened.ts - began) // 1_000
            yield SessionEvent("shell", "background_end", attrs={"exit_code": code, "duration_ms": lasted})
            return
        call = self._call(row)
        outcome = "failed" if row.kind.endswith("failed") else "finished"
        if row.data.get("aborted") is True:
            outcome = "aborted"
        elif as_text(row.data.get("signal")) is not None:  # a crash, or a kill from outside
            outcome = "killed"
        yield from _span(row, "shell", call.shell, row.opened.ts, outcome)
        call.exit_code = code
        self._ended(row)

    def _backgrounded(self, row: _Row) -> Iterator[Event]:
        """The call returns here; what runs on is no latency of it."""
        yield from self._open(row)
        if row.call_id is not None:
            call = self._call(row)
            call.backgrounded = True
            self.background[row.call_id] = call.shell
            yield from _span(row, "shell", call.shell, row.opened.ts, "backgrounded")

    def _ended(self, row: _Row) -> None:
        if row.opened.ts is not None:
            self.last_end = max(self.last_end or 0, row.opened.ts)

    def _finished(self, row: _Row) -> Iterator[Event]:
        yield from self._open(row, chained=True)
        call = self.calls.pop(row.call_id or "", None) or _Call()
        status = as_str(row.data.get("status"))
        yield from _span(row, "execution", call.running, row.opened.ts, status)
        if call.running is not None:
            self._ended(row)
        denied = row.data.get("denied_by_permission") is True
        yield ToolResult(
            None,
            row.call_id,
            None,
            is_error=row.data.get("is_error") is True or status == "error",
            exit_code=call.exit_code,
            status_raw="backgrounded" if call.backgrounded else status,
            denial="denied" if denied else _DENIALS.get(status or ""),
        )

    # -- what a call waits for

    def _permission_requested(self, row: _Row) -> Iterator[Event]:
        yield from self._open(row)
        if row.call_id is not None:
            self._call(row).asked = row.opened.ts
        elif row.permission_id is not None:
            self.asked[row.permission_id] = row.opened.ts

    def _permission_resolved(self, row: _Row) -> Iterator[Event]:
        """``duration_ms`` is the wait as the log states it; without it, from the question to the answer."""
        yield from self._open(row)
        data = row.data
        allowed = data.get("allowed")
        by = as_text(data.get("source"))
        if row.call_id is None:
            word = "denied" if allowed is False else "allowed"
            yield SessionEvent("permission", word, as_str(data.get("reason")), {"source": by})
            return
        call = self._call(row)
        end, ms = row.opened.ts, as_float(data.get("duration_ms"))
        start = asked = call.asked if call.asked is not None else self.asked.get(row.permission_id or "")
        if ms is not None and 0 <= ms < 1e12 and end is not None:
            start = end - round(ms * 1_000)
        who = by or ("user" if asked is not None else "policy")
        answer = "denied" if allowed is False else "failed" if row.kind.endswith("failed") else "allowed"
        yield from _span(row, "wait_permission", start, end, f"{who}:{answer}")
        call.ready = end if end is not None else call.ready

    def _hook_started(self, row: _Row) -> Iterator[Event]:
        yield from self._open(row)
        if row.call_id is not None:
            self._call(row).hooks[row.hook] = row.opened.ts

    def _hook_finished(self, row: _Row) -> Iterator[Event]:
        yield from self._open(row)
        ms, end = as_float(row.data.get("duration_ms")), row.opened.ts
        if row.call_id is None:
            attrs = {"duration_ms": ms, "success": row.data.get("success") is not False}
            yield SessionEvent("hook", as_str(row.data.get("hook_event_name")), row.hook, attrs)
            return
        call = self.calls.get(row.call_id)
        start = None if call is None else call.hooks.pop(row.hook, None)
        if ms is not None and 0 <= ms < 1e12 and end is not None:
            start = end - round(ms * 1_000)
        yield from _span(row, "hook", start, end, row.hook)
        if call is not None and call.running is None and call.shell is None and end is not None:
            call.ready = max(call.ready or 0, end)

    def _compression(self, row: _Row) -> Iterator[Event]:
        yield from self._open(row)
        attrs = {"tokens_before": as_count(row.data.get("tokens_before_compact")) or None}
        yield SessionEvent("compaction_progress", as_str(row.data.get("stage")), as_str(row.data.get("trigger")), attrs)


class _Row:
    """One row: its type, its ids (at the top, else in ``data``), and the record that is opened for it."""

    __slots__ = ("call_id", "data", "kind", "opened", "permission_id", "value")

    opened: RecordOpened

    def __init__(self, record: RecordLike, value: dict[str, Any], data: dict[str, Any]) -> None:
        self.value, self.data = value, data
        self.kind: str = record.value["type"]
        self.call_id = self.id("tool_call_id")
        self.permission_id = self.id("permission_id")

    def id(self, name: str) -> str | None:
        return as_text(self.value.get(name)) or as_text(self.data.get(name))

    @property
    def hook(self) -> str:
        data = self.data
        return as_str(data.get("hook_name")) or as_str(data.get("hookEventName")) or "(unnamed)"


def _span(row: _Row, span: str, started: int | None, ended: int | None, outcome: str | None = None) -> Iterator[Event]:
    """A span of a call where both ends are known and in order; a clock that stepped back times nothing."""
    if row.call_id is not None and started is not None and ended is not None and ended >= started:
        yield ToolSpan(row.call_id, span, started, ended, ended - started, outcome)


def adapt_segment(source: Source, session: str, records: Iterator[RecordLike]) -> Iterator[Event]:
    """Events of one run log."""
    segment = _Segment(source, session)
    yield from in_time_order(segment.read(record) for record in records)
