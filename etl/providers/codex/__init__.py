"""What are Codex's session files, and what do they say?

``paths``: roots and path grammar; ``shapes``: lines of all versions; ``rollout``: the adapter of threads, with
``speech``, ``calls``, ``outputs`` and ``usage``; ``index``: titles. Facts and their evidence: docs/providers.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from etl.providers.base import Provider
from etl.providers.codex.index import adapt_history, adapt_index
from etl.providers.codex.inventory import content_inventory
from etl.providers.codex.paths import HISTORY, INDEX, claim, roots
from etl.providers.codex.rollout import adapt_rollout
from etl.providers.codex.shapes import native_session, recognise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event
    from etl.providers.base import RecordLike, Source


def adapt(source: Source, session: str, records: Iterator[RecordLike]) -> Iterator[Event]:
    """The adapter of a source."""
    if source.claim.store_kind == INDEX:
        return adapt_index(source, records)
    if source.claim.store_kind == HISTORY:
        return adapt_history(records)
    return adapt_rollout(source, session, records)


PROVIDER: Final = Provider(
    name="codex",
    title="Codex",
    roots=roots,
    claim=claim,
    recognise=recognise,
    native_session=native_session,
    adapt=adapt,
    inventory=content_inventory,
)
