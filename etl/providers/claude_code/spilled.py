"""Which tool outputs stand in files of their own, and whose are they?

An output that is too long for the transcript goes to ``<session>/tool-results/<name>``; the result keeps its beginning
and says where the rest is (2.1.332: a ``persisted-output`` text, and ``persistedOutputPath`` in the twin). Only files
below the session's own folder are read, and none because a log names it: the name ties file and call together.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from etl.events import RecordOpened, SessionFact, ToolResult
from etl.shape import as_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event
    from etl.providers.base import RecordLike, Source

_SAVED: Final = re.compile(r"Full output saved to: (?P<path>[^\r\n]{1,4096})")
_TAIL: Final = re.compile(r"[/\\]tool-results[/\\](?P<name>[^/\\]+)\Z")
#: Where the text says it, it does so at once.
_HEAD_CHARS: Final = 8_192
#: The key of an output until SQL has found its call.
KEY: Final = "~spilled/"


def spilled_to(detail: dict[str, Any], text: str | None) -> str | None:
    """The name of the file that holds the whole output of a call, as its result says."""
    said = as_text(detail.get("persistedOutputPath"))
    if said is None and text is not None and (found := _SAVED.search(text[:_HEAD_CHARS])):
        said = found["path"].strip()
    named = None if said is None else _TAIL.search(said)
    return None if named is None else named["name"]


def adapt_spilled(source: Source, session: str, records: Iterator[RecordLike]) -> Iterator[Event]:
    """The output, as a result whose call the transcript names."""
    name = source.claim.agent or ""
    for record in records:
        yield RecordOpened(record.line_no, record.child, record.raw, record.value, session, "tool-result-file")
        yield SessionFact(f"spilled_file.{name}", name)
        yield ToolResult(None, f"{KEY}{name}", record.raw.replace(b"\0", b"").decode("utf-8", "replace"))
