"""Which tools did a Muse session call, what came back, and how long did each run and wait?

Calls are committed in batches, results too, and all results of a batch carry one time: a batch's pair only bounds its
calls. ``tool_batch.effect`` times each call by itself; where a build does not write it, the task of the call does.
Approvals before or inside a call are waits: those of an automated review apart from those of a person. A result names
its call by id, else by its place in the batch of calls; one that names none is nobody's, whichever calls are open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from etl.events import SessionEvent, ToolRequest, ToolResult, ToolSpan, Unread, UnreadItem
from etl.grammars.tools import tool_request
from etl.providers.muse.speech import todos
from etl.providers.muse.usage import review
from etl.providers.muse.vocabulary import TOOLS
from etl.shape import as_bool, as_dict, as_int, as_list, as_str, as_text, canonical, decode_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event
    from etl.providers.muse.agents import Agents
    from etl.providers.muse.lines import Entry
    from etl.providers.muse.turns import Handler, Run, Turns

_FAILED: Final = "tool failed:"
#: Tools whose result is JSON in a string.
_STRUCTURED: Final = frozenset({"Bash", "BashInput", "Task", "TaskWait"})
_TOOL_TASK: Final = "tool:"


@dataclass(slots=True)
class _Call:
    """One call: its key and name, and what was told of it before its result. ``about`` is the sub-agent it names,
    ``asked`` the tool and arguments of a call without an id.
    """

    key: str
    name: str = ""
    about: str | None = None
    asked: tuple[str, str] | None = None
    started_at: int | None = None
    is_timed: bool = False
    outcome: str | None = None
    is_background: bool = False
    is_answered: bool = False
    denial: str | None = None
    task_start: int | None = None
    task: tuple[int, int, str] | None = None


@dataclass(slots=True)
class _Approval:
    """An approval that is asked for: its call, since when, and when its automated review was done."""

    call: _Call
    asked_at: int | None
    reviewed_at: int | None = None
    verdict: str | None = None


class Calls:
    """The tool calls of one session. Ids may come again in another run (parallel children), so calls are known by run
    and id.
    """

    def __init__(self, turns: Turns, agents: Agents) -> None:
        self.turns, self.agents = turns, agents
        self._names: dict[str, str] = dict(TOOLS)
        self._uses: dict[str, int] = {}
        self._by_run: dict[tuple[str, str], list[_Call]] = {}
        self._latest: dict[str, _Call] = {}
        self._batches: dict[str, list[_Call | None]] = {}
        self._tasks: dict[str, _Call] = {}
        self._approvals: dict[str, _Approval] = {}

    def handlers(self) -> dict[str, Handler]:
        """What is done with which record."""
        run, task, approval = "runtime.session/run/", "runtime.session/task/", "runtime.session/approval/"
        results = ("tool_result_batch_committed", "tool_results_committed", "tool_result_committed", "tool_result")
        ends = ("completed", "failed", "cancelled", "timed_out")
        return {
            f"{run}assistant_tool_calls_committed": self._requests,
            **{f"{run}{kind}": self._results for kind in results},
            f"{run}tool_result_model_visible_content": self._pictures,
            "tool_batch.effect.started": self._effect_start,
            "tool_batch.effect.terminal": self._effect_end,
            f"{task}scheduled": self._task_scheduled,
            f"{task}started": self._task_started,
            **{f"{task}{kind}": self._task_ended for kind in ends},
            f"{approval}requested": self._approval_asked,
            f"{approval}automated_review_started": self._review_started,
            f"{approval}automated_review_completed": self._reviewed,
            f"{approval}decision_applied": self._decided,
        }

    def key_of(self, native: str, run: str | None = None) -> str:
        """The key of the call of an id."""
        return self._call(native, run).key

    def _call(self, native: str, run: str | None) -> _Call:
        """The call of an id: of its run the oldest without a result, else the last one of that id, else one that the
        log does not show (its request was cut off, or stands in another file).
        """
        listed = self._by_run.get((run, native)) if run is not None else None
        if listed:
            return next((call for call in listed if not call.is_answered), listed[-1])
        call = self._latest.get(native)
        if call is None:
            call = self._latest[native] = _Call(native)
        return call

    # -- requests and results

    def _requests(self, entry: Entry) -> Iterator[Event]:
        run, body = self.turns.of(entry), entry.body
        listed = body.get("tool_calls")
        if not isinstance(listed, list):
            yield Unread(entry.line_no, entry.child, entry.name, "rejected")
            return
        batch = as_text(body.get("message_id"))
        run.response = as_text(body.get("response_id")) or run.response
        key = run.response or batch or entry.id
        yield entry.opened(role="assistant", message_key=key, group_key=batch, model=self.turns.model_of(run))
        yield from self.turns.begun(run)
        calls: list[_Call | None] = []
        for block, item in enumerate(listed):
            if not isinstance(item, dict):
                yield UnreadItem(block, "tool_call", "rejected")
                calls.append(None)
                continue
            request, call = self._request(item, (entry, block), run, batch)
            calls.append(call)
            yield request
            if call.name == "TodoWrite" and isinstance(request.args, dict):
                yield todos("requested", request.args.get("todos"))
        if batch is not None:
            self._batches[batch] = calls

    def _request(
        self, item: dict[str, Any], at: tuple[Entry, int], run: Run, batch: str | None
    ) -> tuple[ToolRequest, _Call]:
        native = as_text(item.get("call_id")) or as_text(item.get("id"))
        raw = as_str(item.get("name")) or "Tool"
        args, parsed = _arguments(item.get("args"))
        if raw not in self._names:
            self._names[raw] = raw[:1].upper() + raw[1:]
        call = self._nameless(at, batch, (raw, canonical(args))) if native is None else self._new(native, run)
        request = tool_request(at[1], call.key, raw, args, self._names, args_parse_ok=parsed, batch_key=batch)
        call.name = request.name if request.mcp_server is None else ""
        call.about = as_text(args.get("subagent_id")) if isinstance(args, dict) else None
        return request, call

    def _nameless(self, at: tuple[Entry, int], batch: str | None, asked: tuple[str, str]) -> _Call:
        """A call without an id is known by its place; the same one when its batch is committed again."""
        before = _nth(self._batches.get(batch or "", []), at[1])
        return before if before is not None and before.asked == asked else _Call(_placed(*at), asked=asked)

    def _new(self, native: str, run: Run) -> _Call:
        number = self._uses[native] = self._uses.get(native, 0) + 1
        call = self._latest.get(native) if number == 1 else None
        if call is None:
            call = _Call(native if number == 1 else f"{native}#{number}")
        self._latest[native] = call
        self._by_run.setdefault((run.id, native), []).append(call)
        return call

    def _results(self, entry: Entry) -> Iterator[Event]:
        run, body = self.turns.of(entry), entry.body
        listed = body.get("results", [body])
        if not isinstance(listed, list):
            yield Unread(entry.line_no, entry.child, entry.name, "rejected")
            return
        batch = as_text(body.get("batch_id")) or as_text(body.get("message_id"))
        run.response = None  # what comes next is another response
        yield entry.opened(role="user", message_key=batch or entry.id, group_key=entry.id)
        yield from self.turns.begun(run)
        for block, item in enumerate(listed):
            if isinstance(item, dict):
                yield from self._result(item, (entry, block), run, batch)
            else:
                yield UnreadItem(block, "tool_result", "rejected")

    def _result(self, item: dict[str, Any], at: tuple[Entry, int], run: Run, batch: str | None) -> Iterator[Event]:
        call = self._answered(item, run, batch)
        key = f"{_placed(*at)}:result" if call is None else call.key
        said = item.get("text")
        text = said if isinstance(said, str) else None if said is None else canonical(said)
        told = ToolResult(at[1], key, text, is_error=as_bool(item.get("is_error")))
        if call is None:
            yield told
            return
        call.is_answered = True
        found = decode_text(text) if text and call.name in _STRUCTURED else None
        inside = as_dict(found)
        told.exit_code, told.status_raw = as_int(inside.get("exit_code")), as_text(inside.get("terminal_status"))
        if call.is_background or told.status_raw == "running":
            told.status_raw = "backgrounded"
        if call.outcome == "failed" or (text or "").startswith(_FAILED) or self.agents.is_refused(call.name, inside):
            told.is_error = True
        told.denial = "cancelled" if call.outcome == "cancelled" else call.denial
        yield told
        yield from self.agents.answered(call.name, call.key, call.about, inside)
        if call.task is not None and not call.is_timed:
            start, end, outcome = call.task
            yield ToolSpan(call.key, "execution", start, end, end - start, f"task {outcome}")

    def _answered(self, item: dict[str, Any], run: Run, batch: str | None) -> _Call | None:
        """The call of a result: by its id, else by its place in the batch."""
        native = next((found for name in ("tool_call_id", "call_id") if (found := as_text(item.get(name)))), None)
        if native is not None:
            return self._call(native, run.id)
        return _nth(self._batches.get(batch or "", []), as_int(item.get("tool_call_index")))

    def _pictures(self, entry: Entry) -> Iterator[Event]:
        kinds = [as_str(as_dict(item).get("kind")) for item in as_list(entry.body.get("content"))]
        call = as_text(entry.body.get("call_id"))
        yield entry.opened(chained=False)
        attrs = {"call_key": self.key_of(call, entry.run_id) if call else None, "items": len(kinds)}
        yield SessionEvent("attachment", kinds[0] if kinds else None, attrs=attrs)

    # -- times

    def _effect_start(self, entry: Entry) -> Iterator[Event]:
        native = as_text(entry.body.get("call_id"))
        yield entry.opened(chained=False)
        if native is not None:
            call = self._call(native, entry.run_id)
            call.started_at = entry.ts
            self._note_task(entry, call)

    def _effect_end(self, entry: Entry) -> Iterator[Event]:
        native, outcome = as_text(entry.body.get("call_id")), as_dict(entry.body.get("outcome"))
        yield entry.opened(chained=False)
        if native is None:
            return
        call = self._call(native, entry.run_id)
        call.outcome = as_text(outcome.get("kind"))
        call.is_background = as_dict(outcome.get("task_completion")).get("kind") == "pending"
        self._note_task(entry, call)
        duration = _between(call.started_at, entry.ts)
        call.is_timed = duration is not None
        if not call.is_background:
            self._tasks.pop(as_text(entry.body.get("task_id")) or "", None)
        yield ToolSpan(call.key, "execution", call.started_at, entry.ts, duration, call.outcome)

    def _note_task(self, entry: Entry, call: _Call) -> None:
        if task := as_text(entry.body.get("task_id")):
            self._tasks[task] = call

    def background_end(self, source: dict[str, Any], entry: Entry) -> Iterator[Event]:
        """What went on behind a call has ended: it is told long after the call returned."""
        task = as_text(source.get("task_id"))
        call, outcome = self._tasks.pop(task or "", None), as_str(source.get("terminal_kind"))
        key = None if call is None else call.key
        yield SessionEvent("background", "ended", outcome, {"task_id": task, "call_key": key})
        if call is not None:
            duration = _between(call.started_at, entry.ts)
            yield ToolSpan(call.key, "background", call.started_at, entry.ts, duration, outcome)

    def _task_scheduled(self, entry: Entry) -> Iterator[Event]:
        key, task = as_str(entry.body.get("idempotency_key")) or "", _task_of(entry)
        if task is not None and key.startswith(_TOOL_TASK):
            self._tasks[task] = self._call(key.removeprefix(_TOOL_TASK), entry.run_id)
        yield _passed(entry)

    def _task_started(self, entry: Entry) -> Iterator[Event]:
        call = self._tasks.get(_task_of(entry) or "")
        if call is not None:
            call.task_start = entry.ts
        yield _passed(entry)

    def _task_ended(self, entry: Entry) -> Iterator[Event]:
        call = self._tasks.get(_task_of(entry) or "")
        kind = entry.name.rpartition("/")[2]
        if kind == "timed_out" and entry.run_id is not None:
            self.turns.of(entry).timed_out = True
        if call is not None and call.task_start is not None and entry.ts is not None and entry.ts >= call.task_start:
            call.task = (call.task_start, entry.ts, kind)
        yield _passed(entry)

    # -- approvals

    def _approval_asked(self, entry: Entry) -> Iterator[Event]:
        action, native = as_text(entry.body.get("pending_action_id")), as_text(entry.body.get("tool_call_id"))
        yield entry.opened(chained=False)
        if action is not None and native is not None:
            self._approvals[action] = _Approval(self._call(native, entry.run_id), entry.ts)

    def _review_started(self, entry: Entry) -> Iterator[Event]:
        yield entry.opened(chained=False)

    def _reviewed(self, entry: Entry) -> Iterator[Event]:
        body = entry.body
        approval = self._approvals.get(as_text(body.get("pending_action_id")) or "")
        yield entry.opened()
        if approval is not None:
            approval.reviewed_at, approval.verdict = entry.ts, as_text(body.get("status"))
        call = review(as_text(body.get("review_id")) or entry.id or f"~{entry.line_no}.{entry.child}", body)
        if call is not None:
            yield call

    def _decided(self, entry: Entry) -> Iterator[Event]:
        body = entry.body
        decision, by = as_text(body.get("decision")), as_str(as_dict(body.get("decision_source")).get("kind"))
        approval = self._approvals.pop(as_text(body.get("pending_action_id")) or "", None)
        yield entry.opened(chained=False)
        attrs = {"by": by, "call_key": None, "review": None}
        if approval is not None:
            attrs |= {"call_key": approval.call.key, "review": approval.verdict}
            if decision is not None and not decision.startswith(("approve", "allow", "accept")):
                approval.call.denial = decision
        yield SessionEvent("permission", decision, attrs=attrs)
        if approval is not None:
            yield from _waits(approval, entry.ts, by_person=by is not None and by.startswith("human"))


def _nth(calls: list[_Call | None], place: int | None) -> _Call | None:
    return calls[place] if place is not None and 0 <= place < len(calls) else None


def _placed(entry: Entry, block: int) -> str:
    """A key by place."""
    return f"~{entry.line_no}.{block}" if entry.child == 0 else f"~{entry.line_no}.{entry.child}.{block}"


def _waits(approval: _Approval, decided_at: int | None, *, by_person: bool) -> Iterator[Event]:
    """The wait for a decision: up to the end of the automated review, and from there on for a person."""
    key, asked_at, reviewed_at = approval.call.key, approval.asked_at, approval.reviewed_at
    parts = [("wait_human" if by_person else "wait_permission", asked_at, decided_at)]
    if by_person and reviewed_at is not None:
        parts = [("wait_permission", asked_at, reviewed_at), ("wait_human", reviewed_at, decided_at)]
    for span, start, end in parts:
        duration = _between(start, end)
        if duration is not None:
            yield ToolSpan(key, span, start, end, duration, approval.verdict)


def _between(start: int | None, end: int | None) -> int | None:
    return None if start is None or end is None or end < start else end - start


def _task_of(entry: Entry) -> str | None:
    return as_text(entry.payload.get("task_id")) or as_text(entry.body.get("task_id"))


def _passed(entry: Entry) -> Unread:
    """The record is remembered for the result of its call, and says nothing at its own place."""
    return Unread(entry.line_no, entry.child, entry.name, "skipped")


def _arguments(value: Any) -> tuple[Any, bool]:
    """Arguments are JSON in a string; what does not parse is kept as it is. Some builds write the object itself."""
    if not isinstance(value, str):
        return value, True
    if not value.strip():
        return value, False
    found = decode_text(value)
    return (value, False) if found is None else (found, True)
