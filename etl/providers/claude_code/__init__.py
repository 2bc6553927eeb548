"""What are Claude Code's session files, and what do they say?

``paths``: roots and path grammar; ``shapes``: what only records can tell; ``transcript``: the adapter of sessions and
sub-agents, with ``prompts``, ``results``, ``states``, ``pictures`` and ``usage``; ``sidecars``: the
meta documents of sub-agents; ``spilled``: outputs in files of their own.
Facts and their evidence: docs/providers.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from etl.events import Unread
from etl.grammars.inventory import content_inventory
from etl.providers.base import Provider
from etl.providers.claude_code.paths import HISTORY, SPILLED, claim, roots
from etl.providers.claude_code.shapes import is_history, native_session, recognise, settle
from etl.providers.claude_code.sidecars import adapt_meta
from etl.providers.claude_code.spilled import adapt_spilled
from etl.providers.claude_code.transcript import adapt_transcript

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event
    from etl.providers.base import RecordLike, Source


def adapt(source: Source, session: str, records: Iterator[RecordLike]) -> Iterator[Event]:
    """The adapter of a source."""
    if source.claim.store_kind == HISTORY:
        return _adapt_history(records)
    if source.claim.store_kind == SPILLED:
        return adapt_spilled(source, session, records)
    if source.claim.container == "json":
        return adapt_meta(source, session, records)
    return adapt_transcript(source, session, records)


def _adapt_history(records: Iterator[RecordLike]) -> Iterator[Event]:
    """The prompt history repeats what the transcripts hold, cut and without a session: it gives no facts."""
    for record in records:
        disposition = "skipped" if is_history(record.value) else "unknown"
        yield Unread(record.line_no, record.child, "history", disposition)


PROVIDER: Final = Provider(
    name="claude_code",
    title="Claude Code",
    roots=roots,
    claim=claim,
    recognise=recognise,
    native_session=native_session,
    adapt=adapt,
    inventory=content_inventory,
    settle=settle,
)
