"""What do Qoder's records beside the messages say: state rows, system notices and attachments?

State rows (titles, folders, the active leaf) are appended again at every close and resume; they are idempotent and
SQL takes the last. What is known and gives no facts stands in ``SKIPPED`` with its reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from etl.events import Dialogue, SessionEvent, SessionFact, TurnMark
from etl.shape import as_count, as_dict, as_list, as_str, as_text, canonical, instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from etl.events import Event

#: Known record types that give no facts, and why.
SKIPPED: Final[dict[str, str]] = {
    "file-history-snapshot": "bookkeeping of the undo feature: names of backups, no session content",
    "content-replacement": "says which tool outputs were spilled to files; the result row itself is read",
    "agent-setting": "which agent profile is chosen, a preference",
    "agent_metadata": "repeats the sub-agent's meta document",
    "progress": "live progress of a running call, superseded by its result",
    "queue-operation": "queued prompts appear again as attachments or user rows when they are sent",
    "mode": "normal or coordinator, a preference",
}


#: System records that a compaction leaves in the chain.
BOUNDARIES: Final = ("compact_boundary", "microcompact_boundary")


def _fact(key: str, name: str) -> Callable[[dict[str, Any]], Iterable[Event]]:
    def read(value: dict[str, Any]) -> Iterable[Event]:
        stated = as_str(value.get(name))
        return () if stated is None else (SessionFact(key, stated),)

    return read


def _directories(value: dict[str, Any]) -> Iterator[Event]:
    first = next((found for found in as_list(value.get("directories")) if as_text(found)), None)
    if first is not None:
        yield SessionFact("cwd.workspace", first)


def _leaf(value: dict[str, Any]) -> Iterable[Event]:
    # a null leaf says that the branch was emptied: it is stated, not absent
    leaf = "" if value.get("leafUuid", "absent") is None else as_text(value.get("leafUuid"))
    return () if leaf is None else (SessionFact("leaf", leaf, instant(value.get("timestamp"))),)


def _worktree(value: dict[str, Any]) -> Iterator[Event]:
    session = as_dict(value.get("worktreeSession"))
    for name, key in (("worktreePath", "worktree"), ("originalCwd", "worktree.origin")):
        if found := as_text(session.get(name)):
            yield SessionFact(key, found)


def _token_stats(value: dict[str, Any]) -> Iterator[Event]:
    count = as_count(value.get("promptTokenCount"))
    yield SessionEvent("context_size", attrs={"prompt_tokens": count})


#: State rows: record type to the facts it states, at the time of the record.
STATES: Final[dict[str, Callable[[dict[str, Any]], Iterable[Event]]]] = {
    "summary": _fact("title.summary", "summary"),
    "custom-title": _fact("title.custom", "customTitle"),
    "ai-title": _fact("title.ai", "aiTitle"),
    "last-prompt": _fact("title.last_prompt", "lastPrompt"),
    "tag": _fact("tag", "tag"),
    "runtime-config": _fact("model.config", "model"),
    "relocated": _fact("cwd.relocated", "relocatedCwd"),
    "workspace-directories": _directories,
    "worktree-state": _worktree,
    "active-leaf": _leaf,
    "token-stats": _token_stats,
}


def system(value: dict[str, Any]) -> Iterator[Event]:
    """A system record: a compaction boundary, or a notice of some subtype."""
    subtype, content = as_str(value.get("subtype")), as_str(value.get("content"))
    if subtype in BOUNDARIES:
        meta = as_dict(value.get("compactMetadata"))
        numbers = {
            key: as_count(meta.get(key)) for key in ("preTokens", "postTokens", "messagesSummarized", "durationMs")
        }
        attrs = {key: number for key, number in numbers.items() if number is not None}
        yield SessionEvent("compaction", as_str(meta.get("trigger")), content, attrs)
    else:
        yield SessionEvent("system", subtype, content, {"level": as_str(value.get("level"))})


def attachment(value: dict[str, Any]) -> Iterator[Event]:
    """An attachment: injected context is an event; a queued command is what a person asked meanwhile."""
    body = as_dict(value.get("attachment"))
    kind = as_str(body.get("type")) or "(no type)"
    if kind == "queued_command" and body.get("commandMode") != "task-notification":
        yield from _queued(body)
        return
    content = body.get("content")
    text = content if isinstance(content, str) else canonical(body)
    yield SessionEvent("attachment", kind, text, {"chars": len(text)})


def _queued(body: dict[str, Any]) -> Iterator[Event]:
    prompt = body.get("prompt")
    if isinstance(prompt, str) and prompt:
        yield TurnMark("start", trigger="person")
        yield Dialogue("user", "prompt", prompt, "/attachment/prompt", None)
        return
    texts = [(n, as_dict(item).get("text")) for n, item in enumerate(as_list(prompt))]
    readable = [(n, text) for n, text in texts if isinstance(text, str) and text]
    if readable:
        yield TurnMark("start", trigger="person")
    for n, text in readable:
        yield Dialogue("user", "prompt", text, f"/attachment/prompt/{n}/text", None)
