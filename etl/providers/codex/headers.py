"""What does the header of a rollout say of its thread, and of the thread that it comes from?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from etl.events import SessionFact
from etl.shape import as_dict, as_str, as_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event
    from etl.providers.base import Source

#: Threads that the CLI runs for itself.
_INTERNAL: Final = frozenset({"review", "compact", "memory_consolidation"})


class Lineage(NamedTuple):
    """Where a thread comes from: the thread it forked off, or the one that spawned it.

    ``is_copying``: a fork's file begins with its parent's records (since 0.17x it says at which record it goes on
    instead).
    """

    is_agent: bool
    kind: str
    forked: str | None
    parent: str | None
    is_copying: bool


def lineage_of(payload: dict[str, Any]) -> Lineage:
    """The lineage that a header states."""
    told = as_dict(payload.get("source")).get("subagent")
    spawn = as_dict(as_dict(told).get("thread_spawn"))
    forked = as_text(payload.get("forked_from_id"))
    parent = as_text(spawn.get("parent_thread_id")) or as_text(payload.get("parent_thread_id")) or forked
    is_agent = told is not None or payload.get("thread_source") == "subagent"
    kind = "internal" if as_str(told) in _INTERNAL else "subagent"
    is_copying = not is_agent and "forked_from_ordinal_exclusive" not in payload
    return Lineage(is_agent, kind, forked, parent, is_copying)


def header_facts(source: Source, payload: dict[str, Any], lineage: Lineage) -> Iterator[Event]:
    """The facts of a thread: folder, repository, version, client and lineage."""
    git = as_dict(payload.get("git"))
    for key, value in (
        ("cwd", payload.get("cwd")),
        ("branch", git.get("branch")),
        ("remote", git.get("repository_url")),
        ("version", payload.get("cli_version")),
        ("entrypoint", payload.get("originator")),
    ):
        stated = as_text(value)
        if stated is not None:
            yield SessionFact(key, stated)
    if lineage.is_agent:
        yield SessionFact("kind", lineage.kind)
        if lineage.parent is not None:
            yield SessionFact("parent", source.session_id(lineage.parent))
    elif lineage.forked is not None:
        yield SessionFact("forked_from", source.session_id(lineage.forked))
