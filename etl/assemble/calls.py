"""Under which key does a tool call stand, and to which call does a result belong?

The key is the provider's id; an id used again inside a session gets ``#2``, ``#3``; a call without one gets
``~LINE.BLOCK``. Results pair by id and order of use; a result without an id goes to the oldest open call.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class _Session:
    requested: dict[str, int] = field(default_factory=dict)
    answered: dict[str, int] = field(default_factory=dict)
    open_keys: dict[str, None] = field(default_factory=dict)
    first_result: dict[str, tuple[int, int]] = field(default_factory=dict)


class CallKeys:
    """The call keys of one source, by session. Ids and numbers are all it keeps."""

    def __init__(self) -> None:
        self._sessions: dict[str, _Session] = {}
        self.requests: set[tuple[str, str]] = set()
        self.results: set[tuple[str, str]] = set()

    def _of(self, session: str) -> _Session:
        return self._sessions.setdefault(session, _Session())

    def requested(self, session: str, call_id: str | None, synthetic: str) -> str:
        """The key of a new call."""
        state = self._of(session)
        if call_id is None:
            key = synthetic
        else:
            count = state.requested[call_id] = state.requested.get(call_id, 0) + 1
            key = _numbered(call_id, count)
        self.requests.add((session, key))
        if key not in state.first_result:
            state.open_keys[key] = None
        return key

    def withdrawn(self, session: str, call_id: str | None, key: str) -> None:
        """A call whose record was replaced by another: its id is free again."""
        state = self._of(session)
        if call_id is not None and state.requested.get(call_id, 0) > 0:
            state.requested[call_id] -= 1
        self.requests.discard((session, key))
        state.open_keys.pop(key, None)

    def answered(self, session: str, call_id: str | None, synthetic: str) -> str:
        """The key of the call a result belongs to: by id and order of use, else the oldest open call."""
        state = self._of(session)
        if call_id is None:
            key = next(iter(state.open_keys), synthetic)
        else:
            requested, answered = state.requested.get(call_id, 0), state.answered.get(call_id, 0)
            state.answered[call_id] = answered + 1
            key = _numbered(call_id, min(answered + 1, max(requested, 1)))
        state.open_keys.pop(key, None)
        self.results.add((session, key))
        return key

    def first_result(self, session: str, key: str, text_hash: int, line_no: int) -> tuple[int, int] | None:
        """Hash and line of the first result of a call when this is a further one, else None."""
        known = self._of(session).first_result
        if key in known:
            return known[key]
        known[key] = (text_hash, line_no)
        return None


def _numbered(call_id: str, count: int) -> str:
    return call_id if count <= 1 else f"{call_id}#{count}"
