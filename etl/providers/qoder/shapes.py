"""Of which of Qoder's stores are records, and of which session, when only they can tell?"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from etl.providers.qoder.states import SKIPPED, STATES
from etl.shape import as_dict, as_str, as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from etl.providers.base import Claim, RecordLike, Source

_TYPES: Final = frozenset({"user", "assistant", "system", "attachment", *STATES, *SKIPPED})
_STREAM_TYPES: Final = frozenset({"system", "assistant", "user", "result", "stream_event"})
#: What a file of each kind is to a session; transcripts are the others.
_HOLDS: Final[dict[str, str]] = {"qoder_logs": "log", "qoder_audit": "many"}


def store_of(value: dict[str, Any]) -> str | None:
    """The kind of store a record is of: a run log has dotted types and a sequence number, an audit row ``_event``, a
    captured stream ``session_id`` where a transcript has ``sessionId`` and a time.
    """
    kind = as_str(value.get("type", value.get("role")))
    if kind is None:
        return "qoder_audit" if "_event" in value and "_timestamp" in value else None
    if "." in kind and "seq" in value and "ts" in value:
        return "qoder_logs"
    if kind in _STREAM_TYPES and "session_id" in value and "sessionId" not in value and "timestamp" not in value:
        return "qoder_stream"
    if kind in _TYPES and ("sessionId" in value or "message" in value):
        return "qoder_cli"
    return "qoder_ide_db" if value.get("table") in ("chat_message", "chat_session") else None


def recognise(records: Iterable[RecordLike]) -> bool | None:
    """Do first records look like those of one of Qoder's stores?"""
    seen = None
    for record in records:
        if store_of(record.value) is not None:
            return True
        seen = False
    return seen


def settle(claim: Claim, records: Sequence[RecordLike]) -> Claim:
    """An uncertain claim as its records settle it; without records it stays a transcript's."""
    if claim.container != "jsonl":
        return claim
    told = Counter(found for record in records if (found := store_of(record.value)))
    kind = told.most_common(1)[0][0] if told else "qoder_cli"
    if kind == "qoder_cli" and claim.store_kind not in ("any", "qoder_logs"):
        return claim
    return replace(claim, store_kind=kind, holds=_HOLDS.get(kind, "session"))


def native_session(source: Source, head: Sequence[RecordLike]) -> str:
    """The native id of a file's session: for a sub-agent its path, else what most of the first records say, else the
    file's stem (records of a sub-agent carry the id of the parent; ids of the cache are unique per project only).
    """
    claim = source.claim
    if claim.parent is not None:
        return f"{claim.parent}/agent-{claim.agent}"
    if claim.store_kind == "qoder_cache":
        return claim.native_id
    if claim.store_kind == "qoder_logs":
        return _logged_session(head) or claim.native_id
    keys = ("id", "sessionId", "session_id") if claim.container in ("json", "messages") else ("sessionId",)
    if claim.store_kind == "qoder_stream":
        keys = ("session_id",)
    if claim.container in ("json", "messages"):
        first = head[0].value if head else {}
        return next((found for key in keys if (found := as_text(first.get(key)))), claim.native_id)
    said = Counter(found for record in head if (found := as_text(record.value.get(keys[0]))))
    return said.most_common(1)[0][0] if said else claim.native_id


def _logged_session(head: Sequence[RecordLike]) -> str | None:
    """The session whose transcript a run log says it writes. Its folder's name is the same id as a rule, but a copied
    or collected log keeps the statement and loses the folder. None where it names none, or several.
    """
    named = set()
    for record in head:
        if record.value.get("type") == "session.phase.finished":
            data = as_dict(record.value.get("data"))
            path = as_str(data.get("path"))
            if data.get("phase") == "transcript.writer.initialized" and path and path.endswith(".jsonl"):
                named.add(path.replace("\\", "/").rpartition("/")[2].removesuffix(".jsonl"))
    told = named.pop() if len(named) == 1 else None
    return None if not told or told.startswith("agent-") else told
