"""What does the manifest of a process run of Qoder say about the sessions of that run?

``logs/runs/<run>/manifest.json``. A run serves several sessions, and names none: its statements stand under a key of
the run, to which the run logs of the sessions lead (fact ``run``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from etl.events import RecordOpened, SessionFact, Unread
from etl.shape import as_text, instant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event
    from etl.providers.base import RecordLike, Source

_KEYS: Final = (("cwd", "cwd.manifest"), ("cli_version", "version.manifest"))


def run_key(source: Source, run: str) -> str:
    """The key that statements about a run stand under: no session has it."""
    return source.session_id(f"run/{run}")


def adapt_manifest(source: Source, records: Iterator[RecordLike]) -> Iterator[Event]:
    """Facts of a run: its working folder and the version of the CLI."""
    for record in records:
        value = record.value
        stated = [(key, found) for name, key in _KEYS if (found := as_text(value.get(name)))]
        if not stated:
            yield Unread(record.line_no, record.child, "run-manifest", "unknown")
            continue
        run = as_text(value.get("run_id")) or source.claim.native_id
        started = instant(value.get("started_at"))
        yield RecordOpened(
            record.line_no, record.child, record.raw, value, run_key(source, run), "run-manifest", started
        )
        for key, found in stated:
            yield SessionFact(key, found, started)
