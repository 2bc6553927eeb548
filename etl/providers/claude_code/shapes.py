"""Are records those of Claude Code, and of which session is a file, when only they can tell?"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from etl.providers.claude_code.paths import HISTORY, STORE
from etl.providers.claude_code.states import SKIPPED, STATES
from etl.shape import as_str, as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from etl.providers.base import Claim, RecordLike, Source

_MESSAGES: Final = frozenset({"user", "assistant"})
_CHAINED: Final = frozenset({"user", "assistant", "system", "attachment", "progress"})
_ALONE: Final = frozenset({"summary", *STATES, *SKIPPED})
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")


def is_own(value: dict[str, Any]) -> bool:
    """Does a record look like one of Claude Code's? Chain records have ``uuid``, ``parentUuid`` or ``sessionId``, and
    messages an object under ``message`` (those of Gemini and its forks have ``parts``); state rows are known by type.
    """
    kind = as_str(value.get("type"))
    if kind in _MESSAGES:
        message = value.get("message")
        is_chained = any(name in value for name in ("uuid", "parentUuid", "sessionId"))
        return is_chained and isinstance(message, dict) and "parts" not in message
    if kind in _CHAINED:
        return "uuid" in value and ("sessionId" in value or "parentUuid" in value)
    return kind in _ALONE and ("sessionId" in value or "leafUuid" in value or "messageId" in value)


def is_history(value: dict[str, Any]) -> bool:
    """Is a record a row of the prompt history?"""
    return "display" in value and "project" in value and "timestamp" in value


def recognise(records: Iterable[RecordLike]) -> bool | None:
    """Do first records look like Claude Code's?"""
    seen = None
    for record in records:
        if is_own(record.value) or is_history(record.value):
            return True
        seen = False
    return seen


def settle(claim: Claim, records: Sequence[RecordLike]) -> Claim:
    """An uncertain claim as its records settle it: the prompt history is told by its rows, and the session that an old
    sub-agent's file belongs to by the id that its rows carry.
    """
    if claim.container != "jsonl":
        return claim
    if claim.store_kind == HISTORY and not any(is_history(record.value) for record in records):
        return replace(claim, store_kind=STORE, holds="session")
    if claim.agent is not None and claim.parent is None:
        parent = _said(records)
        return claim if parent is None else replace(claim, parent=parent)
    return claim


def native_session(source: Source, head: Sequence[RecordLike]) -> str:
    """The native id of a file's session: for a sub-agent its path; for a session the file's name, which a resumed or
    forked one has of its own while its first rows may carry another's id; where the name is no id, what most of the
    first records say.
    """
    claim = source.claim
    if claim.store_kind == HISTORY:
        return ""
    if claim.parent is not None:
        return f"{claim.parent}/agent-{claim.agent}"
    if _UUID.match(claim.native_id):
        return claim.native_id
    return _said(head) or claim.native_id


def _said(records: Sequence[RecordLike]) -> str | None:
    said = Counter(found for record in records if (found := as_text(record.value.get("sessionId"))))
    return said.most_common(1)[0][0] if said else None
