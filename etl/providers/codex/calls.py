"""What happens to the tool calls of a rollout: requests, outputs, and events that say more of them?

A call is one ``call_id``: a response item asks for it, another brings its output, and an event (``*_end``, or the item
of ``item_completed``) may have timed it. Commands that only an event tells of ran inside the code of an ``exec`` call.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from etl.events import SessionFact, ToolRequest, ToolResult, ToolSpan
from etl.grammars.tools import tool_request
from etl.providers.codex.outputs import duration_us, output
from etl.shape import as_bool, as_dict, as_int, as_list, as_str, as_text, decode_text, instant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event
    from etl.providers.base import Source

#: Tools that are someone else's in the shared vocabulary; every other keeps its name.
TOOLS: Final = {"request_user_input": "AskUserQuestion", "spawn_agent": "Agent", "wait_agent": "TaskWait"}
#: Their own clock starts only after a grace (0.171: 0.14 s late on every command, 7 us for one that fails at once): the
#: pair of request and output is nearer to the truth than the wall time in the output, or the stamps of the item.
_UNIFIED: Final = frozenset({"exec_command", "write_stdin"})
_CODE: Final = "exec"
_PATCHED: Final = re.compile(r"^\*\*\* (?P<what>Add|Update|Delete) File: (?P<path>\S[^\n]{0,4000}?)\s*$", re.MULTILINE)
_OPS: Final = {"Add": "write", "Update": "edit", "Delete": "delete"}
_DECLINED: Final = ("declined", "denied")
#: Items of ``item_completed`` that are calls, and the name of the tool where no request says it.
ITEMS: Final = {
    "commandexecution": "exec_command",
    "filechange": "apply_patch",
    "mcptoolcall": "mcp",
    "dynamictoolcall": "dynamic_tool",
    "collabagenttoolcall": "collab",
}


class _End(NamedTuple):
    """What an event said of a call before its output came."""

    us: int | None
    exit_code: int | None
    is_error: bool | None
    denial: str | None


class Calls:
    """The calls of one file: which are known, which code is running, and what events said ahead of an output."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.names: dict[str, str] = {}
        self.completed: set[str] = set()
        self.codes: list[str] = []
        self.ends: dict[str, _End] = {}
        self.batch = 0
        self.has_output = False

    def request(self, kind: str, payload: dict[str, Any]) -> Iterator[Event]:
        """A response item that asks for a call."""
        if self.has_output:  # what the model asks for after an output is another response
            self.batch, self.has_output = self.batch + 1, False
        call_id = as_text(payload.get("call_id")) or as_text(payload.get("id"))
        if kind == "web_search_call":
            yield from self._searched(payload)
            return
        if kind == "image_generation_call":
            yield from self._pictured(payload)
            return
        name, args, ok = _asked(kind, payload)
        told = tool_request(None, call_id, name, args, TOOLS, args_parse_ok=ok, batch_key=f"response {self.batch}")
        if name == "apply_patch":
            _name_files(told, args)
        if call_id is not None:
            self.names[call_id] = name
            if as_str(payload.get("status")) == "completed":
                self.completed.add(call_id)
            if name == _CODE:
                self.codes.append(call_id)
        yield told

    def _searched(self, payload: dict[str, Any]) -> Iterator[Event]:
        """A web search is made on the side of the model: one item states request and end, and no time between."""
        call_id, status = as_text(payload.get("id")), as_str(payload.get("status"))
        yield tool_request(None, call_id, "web_search", payload.get("action"), TOOLS)
        if status is not None and status != "in_progress":
            yield ToolResult(None, call_id, None, is_error=status != "completed", status_raw=status)

    def _pictured(self, payload: dict[str, Any]) -> Iterator[Event]:
        call_id, status = as_text(payload.get("id")), as_str(payload.get("status"))
        prompt = as_str(payload.get("revised_prompt"))
        args = None if prompt is None else {"revised_prompt": prompt}
        yield tool_request(None, call_id, "image_generation", args, TOOLS)
        images = int(isinstance(payload.get("result"), str))
        yield ToolResult(None, call_id, None, images=images, is_error=status == "failed", status_raw=status)

    def result(self, payload: dict[str, Any]) -> Iterator[Event]:
        """A response item that brings an output."""
        self.has_output = True
        call_id = as_text(payload.get("call_id")) or as_text(payload.get("id"))
        told = output(call_id, payload.get("output", payload.get("tools")))
        name = self.names.get(call_id or "")
        if name in _UNIFIED:
            told.provider_us = None
        if call_id is not None:
            self._complete(told, call_id)
            if call_id in self.codes:
                self.codes.remove(call_id)
        yield told
        if name == "spawn_agent" and call_id is not None:
            yield from self._spawned(as_dict(decode_text(told.text or "")).get("agent_id"), call_id)

    def _complete(self, told: ToolResult, call_id: str) -> None:
        """Adds what an event, and the request, said of how the call ended."""
        end = self.ends.pop(call_id, None)
        if end is not None:
            told.provider_us = told.provider_us if end.us is None else end.us
            told.exit_code = told.exit_code if told.exit_code is not None else end.exit_code
            told.is_error = told.is_error if told.is_error is not None else end.is_error
            told.denial = told.denial or end.denial
        if told.is_error is None and call_id in self.completed:
            told.is_error = False

    def _spawned(self, agent: Any, call_id: str) -> Iterator[Event]:
        thread = as_text(agent)
        if thread is not None:
            yield SessionFact(f"spawned.{self.source.session_id(thread)}", call_id)

    def ended(self, kind: str, payload: dict[str, Any], ts: int | None) -> Iterator[Event]:
        """An event ``*_end``."""
        call_id = as_text(payload.get("call_id"))
        if call_id is None:
            return
        if kind == "collab_agent_spawn_end":
            yield from self._spawned(payload.get("new_thread_id"), call_id)
            return
        us = duration_us(payload.get("duration"))
        if kind == "exec_command_end" and call_id not in self.names:
            if as_str(payload.get("source")) not in ("user_shell", "userShell"):  # a person's: a text of theirs says so
                yield from self._child(
                    call_id, "exec_command", payload, (None if ts is None or us is None else ts - us, ts, us)
                )
            return
        self.ends[call_id] = _End(us, as_int(payload.get("exit_code")), _failed(payload), _denied(payload))

    def item(self, kind: str, item: dict[str, Any], wrapper: dict[str, Any]) -> Iterator[Event]:
        """An item of ``item_completed`` that is a call. Its stamps stand on it or on what it is wrapped in."""
        call_id = as_text(item.get("id"))
        if call_id is None:
            return
        started, ended = (instant(item.get(name, wrapper.get(name))) for name in ("started_at_ms", "completed_at_ms"))
        us = duration_us(item.get("duration"))
        if us is None and started is not None and ended is not None and ended >= started:
            us = ended - started
        if kind == "collabagenttoolcall":
            for thread in [item.get("new_thread_id"), *as_list(item.get("receiver_thread_ids"))]:
                yield from self._spawned(thread, call_id)
        name = self.names.get(call_id)
        if name is None:
            if kind not in ("collabagenttoolcall", "dynamictoolcall"):
                yield from self._child(call_id, _item_name(kind, item), item, (started, ended, us))
            return
        known = _End(None, as_int(item.get("exit_code")), _failed(item), _denied(item))
        self.ends.setdefault(call_id, known)
        if name not in _UNIFIED and us is not None:
            yield ToolSpan(call_id, "execution", started, ended, us)

    def _child(
        self, call_id: str, name: str, stated: dict[str, Any], times: tuple[int | None, int | None, int | None]
    ) -> Iterator[Event]:
        """A call that only an event tells of: the code that is running made it."""
        self.names[call_id] = name
        args: dict[str, Any] = {}
        for key in ("command", "cwd", "arguments", "changes"):
            if stated.get(key) is not None:
                args[key] = stated[key]
        told = tool_request(None, call_id, name, args, TOOLS)
        told.parent_call_id = self.codes[-1] if self.codes else None
        if told.command_head is None:
            told.command_head = _command(stated.get("command"))
        yield told
        text = as_str(stated.get("aggregated_output"))
        exit_code = as_int(stated.get("exit_code"))
        result = ToolResult(None, call_id, text, is_error=_failed(stated), exit_code=exit_code, denial=_denied(stated))
        result.status_raw = as_str(stated.get("status"))
        if result.status_raw in ("in_progress", "inProgress"):
            return
        yield result
        started, ended, us = times
        if us is not None:
            yield ToolSpan(call_id, "execution", started, ended, us)


def _asked(kind: str, payload: dict[str, Any]) -> tuple[str, Any, bool]:
    """Name and arguments of a call; the arguments of a function are a text that should hold JSON."""
    name = as_text(payload.get("name"))
    if kind == "local_shell_call":
        return name or "local_shell", payload.get("action"), True
    if kind == "tool_search_call":
        return name or "tool_search", payload.get("arguments"), True
    if kind == "custom_tool_call":
        return name or "(unnamed)", payload.get("input"), True
    space = as_text(payload.get("namespace"))
    if name is not None and space is not None and space.startswith("mcp__") and not name.startswith("mcp__"):
        name = f"{space.rstrip('_')}__{name}"
    args = payload.get("arguments")
    parsed = decode_text(args) if isinstance(args, str) else args
    ok = isinstance(parsed, dict) or args in (None, "")
    return name or "(unnamed)", parsed if ok else args, ok


def _name_files(told: ToolRequest, patch: Any) -> None:
    """The files that a patch names, and the first of them as the target."""
    text = patch if isinstance(patch, str) else as_str(as_dict(patch).get("input")) or ""
    found = [(match["path"], _OPS[match["what"]]) for match in _PATCHED.finditer(text)]
    told.files = tuple(dict.fromkeys(found))
    told.target_path = told.target_path or (found[0][0] if found else None)


def _item_name(kind: str, item: dict[str, Any]) -> str:
    server, tool = as_text(item.get("server")), as_text(item.get("tool"))
    return f"mcp__{server}__{tool}" if kind == "mcptoolcall" and server and tool else ITEMS[kind]


def _command(command: Any) -> str | None:
    if isinstance(command, str):
        return command or None
    words = [word for word in as_list(command) if isinstance(word, str)]
    if len(words) == 3 and words[1] in ("-lc", "-c"):  # a shell around the command
        return words[2]
    return " ".join(words) or None


def _failed(stated: dict[str, Any]) -> bool | None:
    """Did a call fail, as its end says? A refusal is no failure."""
    exit_code, status, success = (
        as_int(stated.get("exit_code")),
        as_str(stated.get("status")),
        as_bool(stated.get("success")),
    )
    if exit_code is not None:
        return exit_code != 0
    if success is not None:
        return not success
    if "Err" in as_dict(stated.get("result")):
        return True
    if status in _DECLINED or status is None:
        return None
    return status == "failed" if status in ("failed", "completed") else None


def _denied(stated: dict[str, Any]) -> str | None:
    return "declined" if as_str(stated.get("status")) in _DECLINED else None
