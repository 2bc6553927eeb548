"""What does the meta document beside a sub-agent's transcript say?

``agent-<id>.meta.json``: of which type the agent is and, in current versions, which call of the parent spawned it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from etl.events import RecordOpened, SessionFact, Unread
from etl.shape import as_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event
    from etl.providers.base import RecordLike, Source

_KEYS: Final = (
    ("toolUseId", "spawn_call"),
    ("agentType", "agent_type"),
    ("description", "agent_description"),
    ("parentAgentId", "parent_agent"),
    ("worktreePath", "worktree"),
)


def adapt_meta(source: Source, session: str, records: Iterator[RecordLike]) -> Iterator[Event]:
    """Session facts of one document."""
    for record in records:
        told = [(key, found) for name, key in _KEYS if (found := as_text(record.value.get(name)))]
        if not told:
            yield Unread(record.line_no, record.child, "subagent-meta", "unknown")
            continue
        yield RecordOpened(record.line_no, record.child, record.raw, record.value, session, "subagent-meta")
        if source.claim.parent is not None:
            yield SessionFact("kind", "subagent")
            yield SessionFact("parent", source.session_id(source.claim.parent))
        yield from (SessionFact(key, found) for key, found in told)
