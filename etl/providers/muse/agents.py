"""Which sub-agents did a Muse session spawn, and which of them did it wait for?

A spawn's arguments do not name the child: its result does (``{"status":"accepted","subagent_id":…}``), and the control
records tie that id to the child's session. A spawn may be refused. ``subagent_wait`` that answers ``ready`` is how the
parent learns that a child is done; children it never waits for are common. Whose child a session is, the parent says in
the child's name (``spawner``): the child may have no log below its parent's, or records that stand before that word.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from etl.events import SessionEvent, SessionFact
from etl.shape import as_dict, as_list, as_str, as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from etl.events import Event, RecordOpened
    from etl.providers.muse.lines import Entry
    from etl.providers.muse.turns import Handler

_KEPT: Final = ("subagent_id", "parent_run_id", "role", "description", "task_id", "status", "reason")
_CONTROL: Final = (
    *("spawn_accepted", "child_session_bound", "start_attested", "status_updated", "runtime_observed", "result_ready"),
    *("closed", "attempt_admitted", "resume_context_recorded", "wait_parked"),
)


class Agents:
    """The sub-agents of one session. ``session_key`` gives the key of a session of a native id."""

    def __init__(self, session_key: Callable[[str], str]) -> None:
        self.session_key = session_key
        self._children: set[str] = set()
        self._calls: dict[str, str] = {}
        self._sessions: dict[str, str] = {}
        self._linked: set[str] = set()

    def handlers(self) -> dict[str, Handler]:
        """What is done with which record."""
        return {
            **{f"subagent.control.{kind}": self._control for kind in _CONTROL},
            "runtime.session/run/memory_reminder_child_session_linked": self._reminder,
        }

    def is_refused(self, name: str, result: dict[str, Any]) -> bool:
        """Is this the result of a spawn that was turned down?"""
        return name == "Task" and result.get("status") == "rejected"

    def answered(self, name: str, key: str, about: str | None, result: dict[str, Any]) -> Iterator[Event]:
        """What the result of a spawn or a wait tells."""
        status = as_str(result.get("status"))
        if name == "Task" and status is not None:
            agent = as_text(result.get("subagent_id"))
            yield SessionEvent("subagent", status, as_text(result.get("reason")), _attrs(agent, call_key=key))
            if status == "accepted" and agent is not None:
                self._calls[agent] = key
                yield from self._link(agent, None, None)
        elif name == "TaskWait":
            for item in (result, *map(as_dict, as_list(result.get("results")))):
                told = as_str(item.get("status"))
                if told is not None:
                    agent = as_text(item.get("subagent_id")) or about
                    yield SessionEvent("subagent", f"wait_{told}", attrs=_attrs(agent, call_key=key))

    def _control(self, entry: Entry) -> Iterator[Event]:
        body = entry.body
        agent = as_text(body.get("subagent_id"))
        child = as_text(body.get("child_session_id")) or as_text(body.get("subagent_session_id"))
        call = as_text(body.get("dispatched_via_tool_call_id"))
        attrs = {name: value for name in _KEPT if isinstance(value := body.get(name), str)}
        if child is not None:
            attrs["child_session_id"] = self.session_key(child)
        if call is not None:
            attrs["call_key"] = call
        opened = entry.opened(chained=False)
        yield opened
        yield SessionEvent("subagent", entry.name.rpartition(".")[2], attrs=attrs)
        if agent is not None:
            yield from self._link(agent, child, call)
        yield from self._own(child, opened)

    def _own(self, child: str | None, opened: RecordOpened) -> Iterator[Event]:
        """A session is a child of this one: said once, of that session."""
        if child is not None and child not in self._children:
            self._children.add(child)
            yield replace(opened, again=True, session_id=self.session_key(child))
            yield SessionFact("spawner", opened.session_id)

    def _link(self, agent: str, child: str | None, call: str | None) -> Iterator[Event]:
        """The spawning call of a child's session, as soon as both are known."""
        if child is not None:
            self._sessions[agent] = child
        if call is not None:
            self._calls.setdefault(agent, call)
        known, via = self._sessions.get(agent), self._calls.get(agent)
        if known is not None and via is not None and known not in self._linked:
            self._linked.add(known)
            yield SessionFact(f"spawned.{self.session_key(known)}", via)

    def _reminder(self, entry: Entry) -> Iterator[Event]:
        child = as_text(entry.body.get("child_session_id"))
        opened = entry.opened(chained=False)
        yield opened
        yield SessionEvent("reminder", "session_linked", as_text(entry.body.get("reminder_agent_id")))
        if child is not None:
            yield SessionFact(f"internal.{self.session_key(child)}", "reminder")
        yield from self._own(child, opened)


def _attrs(agent: str | None, *, call_key: str) -> dict[str, str | None]:
    return {"subagent_id": agent, "call_key": call_key}
