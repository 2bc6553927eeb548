"""What are Qoder's session files, and what do they say?

``paths``: roots and path grammar. ``transcript``: the records of project transcripts. ``sidecars``: the small JSON
documents beside them. Facts and their evidence: docs/providers.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from etl.grammars.inventory import content_inventory
from etl.providers.base import Provider
from etl.providers.qoder.paths import claim, roots
from etl.providers.qoder.sidecars import adapt_sidecar
from etl.providers.qoder.transcript import adapt_transcript, native_session, recognise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event
    from etl.providers.base import RecordLike, Source


def adapt(source: Source, session: str, records: Iterator[RecordLike]) -> Iterator[Event]:
    """The adapter: one grammar for transcripts, one for the documents beside them."""
    if source.claim.container == "json":
        return adapt_sidecar(source, session, records)
    return adapt_transcript(source, session, records)


PROVIDER: Final = Provider(
    name="qoder",
    title="Qoder CLI and IDE",
    roots=roots,
    claim=claim,
    recognise=recognise,
    native_session=native_session,
    adapt=adapt,
    inventory=content_inventory,
)
