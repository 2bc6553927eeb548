"""What is a provider made of?

Data (name, roots, path grammar, tool vocabulary) and one generator ``records -> events``. A provider is one module
with one :class:`Provider`; third parties register theirs under the entry point ``etl.providers``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from etl.sources import Claim, RecordLike, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from etl.events import ContentBlock, Event
    from etl.sqlitedb import DbTable

__all__ = ["Claim", "Environment", "Provider", "RecordLike", "Root", "Source"]


@dataclass(frozen=True, slots=True)
class Environment:
    """Where to look for session trees: the home folder, environment variables, and the system.

    ``variables`` is empty when a home is given explicitly (another machine's copy, a test tree): overrides of this
    machine say nothing about it. ``system`` is ``linux``, ``darwin`` or ``win32``.
    """

    home: str
    variables: Mapping[str, str] = field(default_factory=dict)
    system: str = "linux"


@dataclass(frozen=True, slots=True)
class Root:
    """A folder that may hold session files. ``base`` is the folder that stored paths are relative to."""

    path: str
    base: str
    store_kind: str
    realm: str | None = None


@dataclass(frozen=True, slots=True)
class Provider:
    """One agent's session files: where they are, which paths are its, and what its records say.

    - ``roots(environment)``: its default folders, existing or not.
    - ``claim(root, path)``: the claim on a path below a root, else None. A root of store kind ``any`` is a folder the
      user named: the path may then begin anywhere above the grammar.
    - ``recognise(records)``: do these first records look like this provider's? None: they do not tell.
    - ``native_session(source, head)``: the native id of the session a file belongs to, from its first records; empty
      where it belongs to none.
    - ``adapt(source, session, records)``: the adapter; ``session`` is the session key of the file.
    - ``inventory(record)``: the content items of a message record, walked without the projector; None if the
      provider's messages are not made of blocks.
    - ``settle(claim, records)``: a claim that is not certain, as the first records settle it (which of the provider's
      stores they are of); None if there is one kind of store.
    - ``numbered(record)``: the stream that a record is of and its number in it, for logs whose order is that of their
      numbers; None where it states none. Records then come to ``adapt`` in that order, whatever lines they stand on.
    - ``tables``: what is read of its SQLite files, an allow-list.
    """

    name: str
    title: str
    roots: Callable[[Environment], Sequence[Root]]
    claim: Callable[[Root, str], Claim | None]
    recognise: Callable[[Iterable[RecordLike]], bool | None]
    native_session: Callable[[Source, Sequence[RecordLike]], str]
    adapt: Callable[[Source, str, Iterator[RecordLike]], Iterator[Event]]
    inventory: Callable[[Mapping[str, Any]], Iterable[ContentBlock]] | None = None
    settle: Callable[[Claim, Sequence[RecordLike]], Claim] | None = None
    numbered: Callable[[Mapping[str, Any]], tuple[str, int] | None] | None = None
    tables: tuple[DbTable, ...] = ()
