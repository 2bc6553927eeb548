"""How does a record of a ``parentUuid`` chain open, in the grammar that Qoder and Claude Code share?

Message-like records carry ``uuid``, ``parentUuid`` and the state of the session (folder, version, branch, entry point);
a copy made by a fork may name its origin (``forkedFrom``). Tool results stand in user records, with a structured twin
beside the message (``toolUseResult``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from etl.events import RecordOpened, SessionFact, UnreadItem
from etl.shape import as_dict, as_text, instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from etl.events import Event
    from etl.grammars.blocks import Part
    from etl.sources import RecordLike, Source

#: What each record states about the session, and the key of the fact.
_RUNNING: Final = (("cwd", "cwd"), ("version", "version"), ("gitBranch", "branch"), ("entrypoint", "entrypoint"))
#: What makes a user record no direct word of a person.
_INDIRECT: Final = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly", "isSidechain")


def open_record(source: Source, session: str, record: RecordLike, kind: str, **more: Any) -> RecordOpened:
    """A record outside the chain: a state row. Its time is its own ``timestamp``, if it has one."""
    value = record.value
    ts = instant(value.get("timestamp"))
    named = None if ts is None else "record"
    agent = source.claim.agent
    return RecordOpened(record.line_no, record.child, record.raw, value, session, kind, ts, named, agent=agent, **more)


def open_chained(
    source: Source, session: str, record: RecordLike, kind: str, role: str | None, **more: Any
) -> RecordOpened:
    """A record of the chain, with its parents and, for a copy that names it, its origin."""
    opened = open_record(source, session, record, kind, **more)
    value = record.value
    opened.role, opened.chained = role, True
    opened.uuid, opened.parent_uuid = as_text(value.get("uuid")), as_text(value.get("parentUuid"))
    opened.logical_parent_uuid = as_text(value.get("logicalParentUuid"))
    opened.is_sidechain, opened.is_meta = value.get("isSidechain") is True, value.get("isMeta") is True
    if "forkedFrom" in value:
        origin = as_dict(value["forkedFrom"])
        named = as_text(origin.get("sessionId"))
        opened.origin_session_id = None if named is None else source.session_id(named)
        opened.origin_uuid = as_text(origin.get("messageUuid"))
    return opened


class Running:
    """What records state about the session again and again: a fact is written where it changes."""

    def __init__(self) -> None:
        self._facts: dict[str, str] = {}
        self._stated: tuple[Any, ...] = ()

    def changed(self, value: dict[str, Any]) -> list[Event]:
        """The facts that a record states for the first time, or otherwise than the one before."""
        stated_now = (value.get("cwd"), value.get("version"), value.get("gitBranch"), value.get("entrypoint"))
        if stated_now == self._stated:  # the usual case: nothing moved
            return []
        self._stated = stated_now
        changed: list[Event] = []
        for name, key in _RUNNING:
            stated = value.get(name)
            if isinstance(stated, str) and stated and self._facts.get(key) != stated:
                self._facts[key] = stated
                changed.append(SessionFact(key, stated))
        return changed


def is_direct(value: dict[str, Any]) -> bool:
    """Is a user record without results a direct word: neither injected, a summary nor of a side chain?"""
    return not any(value.get(flag) is True for flag in _INDIRECT)


def unread_items(parts: Iterable[Part]) -> Iterator[Event]:
    """The items of a message that give no text and are no known silent ones."""
    for part in parts:
        if part.kind in ("unknown", "rejected"):
            yield UnreadItem(part.block, part.item_type, part.kind)
