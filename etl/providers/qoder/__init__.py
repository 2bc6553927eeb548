"""What are Qoder's session files, and what do they say?

``paths`` and ``stores``: roots and path grammar; ``shapes``: what only records can tell. One adapter for each store:
``transcript`` (projects, home sessions, the cache), ``sidecars`` (the small documents beside transcripts), ``segments``
and ``manifests`` (run logs), ``audit``, ``ide_db`` and ``stream``. Facts and their evidence: docs/providers.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from etl.grammars.inventory import content_inventory
from etl.providers.base import Provider
from etl.providers.qoder.audit import adapt_audit
from etl.providers.qoder.ide_db import TABLES, adapt_database
from etl.providers.qoder.manifests import adapt_manifest
from etl.providers.qoder.paths import claim, roots
from etl.providers.qoder.segments import adapt_segment
from etl.providers.qoder.shapes import native_session, recognise, settle
from etl.providers.qoder.sidecars import adapt_document, adapt_sidecar
from etl.providers.qoder.stream import adapt_stream
from etl.providers.qoder.transcript import adapt_transcript

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event
    from etl.providers.base import RecordLike, Source


def adapt(source: Source, session: str, records: Iterator[RecordLike]) -> Iterator[Event]:
    """The adapter of a source's store."""
    kind, container = source.claim.store_kind, source.claim.container
    if kind == "qoder_logs":
        return adapt_manifest(source, records) if container == "json" else adapt_segment(source, session, records)
    if kind == "qoder_audit":
        return adapt_audit(source, records)
    if kind == "qoder_ide_db":
        return adapt_database(source, records)
    if kind == "qoder_stream":
        return adapt_stream(source, session, records)
    if container == "json":
        return adapt_sidecar(source, session, records)
    if container == "messages":
        return adapt_document(source, session, records)
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
    settle=settle,
    tables=TABLES,
)
