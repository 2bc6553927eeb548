"""What do Claude Code's records beside the messages say: state rows, system notices, attachments and progress?

State rows have no place in the chain and often no time; SQL takes the last statement. What is known and gives no facts
stands in ``SKIPPED`` with its reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from etl.events import Dialogue, SessionEvent, SessionFact
from etl.grammars.wrappers import INJECTED
from etl.shape import as_count, as_dict, as_float, as_int, as_list, as_str, as_text, canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from etl.events import Event

#: Known record types that give no facts, and why.
SKIPPED: Final[dict[str, str]] = {
    "file-history-snapshot": "bookkeeping of the undo feature: names of backups, no session content",
    "file-history-delta": "bookkeeping of the undo feature",
    "attribution-snapshot": "bookkeeping of which lines the agent wrote",
    "content-replacement": "says which tool outputs were spilled to files; the result row itself is read",
    "queue-operation": "queued prompts appear again as attachments or user rows when they are sent",
    "last-prompt": "repeats a prompt of the transcript (in a fork, one of its origin)",
    "permission-mode": "how much was allowed without asking, a preference",
    "mode": "normal or coordinator, a preference",
    "agent-name": "how a session is called in lists of agents, a preference",
    "agent-color": "how an agent is drawn, a preference",
    "agent-setting": "which agent profile is chosen, a preference",
    "task-summary": "a line of live progress, superseded by the answer",
    "frame-link": "where a preview is shown",
    "bridge-session": "the id of the session in a remote viewer",
    "atis-latch": "an internal switch",
    "tools-used": "names of tools that the calls themselves give",
    "started": "a workflow's journal: a step began; the step has a transcript of its own",
    "result": "a workflow's journal: a step ended; the step has a transcript of its own",
    "api-request": "one row per HTTP try; what came of it stands in the assistant rows",
    "api-request-shape": "the system prompt and the tools of a request, the same for all",
    "api-request-blob": "repeats prompts and results as they were sent: a message, but none of the conversation",
    "speculation-accept": "a suggestion was accepted; what follows from it has rows of its own",
    "marble-origami-commit": "bookkeeping of a collapsed context",
    "marble-origami-snapshot": "bookkeeping of a collapsed context",
}
#: System records that a compaction leaves in the chain.
BOUNDARIES: Final = ("compact_boundary", "microcompact_boundary")
_ROUND_US: Final = 1_000


def _fact(key: str, name: str) -> Callable[[dict[str, Any]], Iterable[Event]]:
    def read(value: dict[str, Any]) -> Iterable[Event]:
        stated = as_str(value.get(name))
        return () if stated is None else (SessionFact(key, stated),)

    return read


def _worktree(value: dict[str, Any]) -> Iterator[Event]:
    session = as_dict(value.get("worktreeSession"))
    for name, key in (("worktreePath", "worktree"), ("originalCwd", "worktree.origin")):
        if found := as_text(session.get(name)):
            yield SessionFact(key, found)


def _cost(value: dict[str, Any]) -> Iterator[Event]:
    # the process's own totals, up to here: a check on what the rows add up to, never a sum of its own
    names = ("totalCostUSD", "totalAPIDuration", "totalToolDuration")
    told = {name: as_float(value.get(name)) for name in names}
    yield SessionEvent("cost_state", attrs={name: number for name, number in told.items() if number is not None})


#: State rows: record type to the facts it states.
STATES: Final[dict[str, Callable[[dict[str, Any]], Iterable[Event]]]] = {
    "custom-title": _fact("title.custom", "customTitle"),
    "ai-title": _fact("title.ai", "aiTitle"),
    "tag": _fact("tag", "tag"),
    "pr-link": _fact("pull_request", "prUrl"),
    "relocated": _fact("cwd.relocated", "relocatedCwd"),
    "worktree-state": _worktree,
    "cost-state": _cost,
}


def system(value: dict[str, Any]) -> Iterator[Event]:
    """A system record: a compaction boundary, a failed try, hooks, or a notice of some other subtype."""
    subtype, content = as_str(value.get("subtype")), as_str(value.get("content"))
    if subtype in BOUNDARIES:
        meta = as_dict(value.get("compactMetadata") or value.get("microcompactMetadata"))
        names = ("preTokens", "postTokens", "tokensSaved", "durationMs")
        numbers = {name: as_count(meta.get(name)) for name in names}
        attrs = {name: number for name, number in numbers.items() if number is not None}
        yield SessionEvent("compaction", as_str(meta.get("trigger")), content, attrs)
    elif subtype == "api_error":
        error = as_dict(value.get("error"))
        tries: dict[str, int | None] = {
            "status": as_int(error.get("status")),
            "attempt": as_int(value.get("retryAttempt")),
            "max": as_int(value.get("maxRetries")),
        }
        yield SessionEvent("retry", as_str(error.get("type")), as_str(error.get("message")), tries)
    elif subtype == "stop_hook_summary":
        hooks = {"hooks": as_count(value.get("hookCount")), "errors": len(as_list(value.get("hookErrors")))}
        yield SessionEvent("hook", "Stop", as_str(value.get("stopReason")), hooks)
    else:
        yield SessionEvent("system", subtype, content, {"level": as_str(value.get("level"))})


def turn_us(value: dict[str, Any]) -> int | None:
    """How long the turn took, as a ``turn_duration`` record says, microseconds."""
    ms = as_float(value.get("durationMs"))
    return round(ms * _ROUND_US) if ms is not None and 0 <= ms < 1e12 else None


def attachment(value: dict[str, Any]) -> Iterator[Event]:
    """An attachment: injected context is an event; a queued command is what a person asked meanwhile, in the turn."""
    body = as_dict(value.get("attachment"))
    kind = as_str(body.get("type")) or "(no type)"
    if kind == "queued_command":
        rows = list(_queued(body))
        if rows:
            yield from rows
            return
    content = body.get("content")
    text = content if isinstance(content, str) else canonical(body)
    is_hook = kind.startswith("hook_")
    subtype = as_str(body.get("hookEvent")) or kind if is_hook else kind
    attrs = {"chars": len(text), "outcome": kind} if is_hook else {"chars": len(text)}
    yield SessionEvent("hook" if is_hook else "attachment", subtype, text, attrs)


def _queued(body: dict[str, Any]) -> Iterator[Event]:
    prompt = body.get("prompt")
    if body.get("commandMode") == "task-notification":
        return
    if isinstance(prompt, str):
        leaves = [("/attachment/prompt", prompt)]
    else:
        items = [(n, as_dict(item).get("text")) for n, item in enumerate(as_list(prompt))]
        leaves = [(f"/attachment/prompt/{n}/text", text) for n, text in items if isinstance(text, str)]
    for pointer, text in leaves:
        if text and not text.lstrip().startswith(INJECTED):
            yield Dialogue("user", "prompt", text, pointer, None)


def spawned(value: dict[str, Any]) -> tuple[str, str] | None:
    """The sub-agent that a progress record tells of, and the call that spawned it."""
    agent, call = as_text(as_dict(value.get("data")).get("agentId")), as_text(value.get("parentToolUseID"))
    return (agent, call) if agent and call else None
