"""What is one file to read, and how is a record of it given?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from etl.keys import session_id, source_id


class RecordLike(Protocol):
    """One decoded record with its place, as the container readers give it."""

    @property
    def line_no(self) -> int:
        """The physical line, from 1."""

    @property
    def child(self) -> int:
        """Index inside a glued line."""

    @property
    def raw(self) -> bytes:
        """The bytes of the record."""

    @property
    def value(self) -> dict[str, Any]:
        """The decoded record."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A path that the provider's grammar recognises as one of its files.

    ``native_id`` is the id in the file's name; ``parent`` and ``agent`` are set for a sub-agent's file. ``container``
    is ``jsonl``, ``json`` (one document), ``json_array`` (a document whose elements are the records), ``messages`` (a
    document that holds a list of messages: a record each, as children of the document), ``lines`` (a text log whose
    lines are the records: ``raw`` is the line, ``value`` empty), ``text`` (the whole file is one record, in the same
    way), ``sqlite`` or ``opaque`` (never read: it may be encrypted). ``certain`` is False where only the shape of the
    name speaks for it: records that tell of something else deny it. ``sniffed`` is True where not even the name does:
    the records must confirm it. ``holds`` says what the file is to a session: ``session`` (it is one, even when empty),
    ``log`` (it belongs to one, if its records tell of it) or ``many`` (its records name theirs).
    """

    store_kind: str
    container: str
    native_id: str
    realm: str | None = None
    parent: str | None = None
    agent: str | None = None
    certain: bool = True
    sniffed: bool = False
    holds: str = "session"


@dataclass(frozen=True, slots=True)
class Source:
    """One file to extract: who owns it and how it is named. Real paths are never stored."""

    provider: str
    host: str
    rel_path: str
    claim: Claim

    @property
    def source_id(self) -> str:
        """The key of the source (``etl.keys.source_id``)."""
        return source_id(self.host, self.provider, self.claim.realm, self.rel_path)

    def session_id(self, native: str) -> str:
        """The key of a session of this source's provider and realm."""
        return session_id(self.provider, self.claim.realm, native)
