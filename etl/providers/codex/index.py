"""What do Codex's files beside the rollouts say: the index of titles, and the history of prompts?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from etl.events import RecordOpened, SessionFact, Unread
from etl.providers.codex.shapes import is_history, is_index
from etl.shape import as_str, as_text, instant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event
    from etl.providers.base import RecordLike, Source


def adapt_index(source: Source, records: Iterator[RecordLike]) -> Iterator[Event]:
    """Titles: each line names a thread and the title it has from then on."""
    for record in records:
        value = record.value
        thread = as_text(value.get("id"))
        if thread is None or not is_index(value):
            yield Unread(record.line_no, record.child, "index", "unknown")
            continue
        ts = instant(value.get("updated_at"))
        session = source.session_id(thread)
        yield RecordOpened(record.line_no, record.child, record.raw, value, session, "index", ts, "record")
        title = as_str(value.get("thread_name"))
        if title is not None:
            yield SessionFact("title.sidecar", title, ts)


def adapt_history(records: Iterator[RecordLike]) -> Iterator[Event]:
    """The prompt history repeats what the rollouts hold: it gives no facts."""
    for record in records:
        yield Unread(record.line_no, record.child, "history", "skipped" if is_history(record.value) else "unknown")
