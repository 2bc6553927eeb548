"""What do the small JSON documents beside Qoder's transcripts say?

``<sid>-session.json`` (older CLI and IDE): title, folder, parent and fork of a session.
``agent-<id>.meta.json``: which call of the parent spawned a sub-agent, and of which type it is.
``sessions/**/<sid>.json`` (older builds): a document that holds the messages of a session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from etl.events import RecordOpened, SessionFact, Unread
from etl.providers.qoder.transcript import Transcript
from etl.shape import as_str, instant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event
    from etl.providers.base import RecordLike, Source

_SESSION_KEYS: Final = (("title", "title.sidecar"), ("working_dir", "cwd.sidecar"), ("cwd", "cwd.sidecar"))
_META_KEYS: Final = (("toolUseId", "spawn_call"), ("agentType", "agent_type"), ("parentAgentId", "parent_agent"))


def adapt_sidecar(source: Source, session: str, records: Iterator[RecordLike]) -> Iterator[Event]:
    """Session facts of one document."""
    kind = "subagent-meta" if source.claim.agent else "session-sidecar"
    for record in records:
        facts = list(_meta(source, record.value) if source.claim.agent else _session(source, session, record.value))
        if not facts:
            yield Unread(record.line_no, record.child, kind, "unknown")
            continue
        yield RecordOpened(record.line_no, record.child, record.raw, record.value, session, kind)
        yield from facts


def adapt_document(source: Source, session: str, records: Iterator[RecordLike]) -> Iterator[Event]:
    """A document that holds messages: what it says of the session, then its messages as those of a transcript."""
    transcript = Transcript(source, session)
    for record in records:
        if record.child:
            yield from transcript.read(record)
            continue
        facts = list(_session(source, session, record.value))
        if not facts and not any(isinstance(held, list) for held in record.value.values()):
            yield Unread(record.line_no, record.child, "session-document", "unknown")
            continue
        yield RecordOpened(record.line_no, record.child, record.raw, record.value, session, "session-document")
        yield from facts


def _meta(source: Source, value: dict[str, Any]) -> Iterator[SessionFact]:
    if source.claim.parent is not None:
        yield SessionFact("kind", "subagent")
        yield SessionFact("parent", source.session_id(source.claim.parent))
    for name, key in _META_KEYS:
        if found := as_str(value.get(name)):
            yield SessionFact(key, found)


def _session(source: Source, session: str, value: dict[str, Any]) -> Iterator[SessionFact]:
    stated = instant(value.get("updated_at"))
    for name, key in _SESSION_KEYS:
        if found := as_str(value.get(name)):
            yield SessionFact(key, found, stated)
    for name, key in (("parent_session_id", "continues"), ("fork_from", "forked_from")):
        other = as_str(value.get(name))
        if other and source.session_id(other) != session:  # a session that names itself comes from nowhere
            yield SessionFact(key, source.session_id(other), stated)
