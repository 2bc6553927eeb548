"""Which pictures and documents does a record of Claude Code hold, in its own content or in the results of calls?

They are told by type, size and hash of the file (so that the same one is found again); the bytes are never kept.
"""

from __future__ import annotations

import binascii
import hashlib
from typing import TYPE_CHECKING, Any

from etl.events import SessionEvent
from etl.shape import as_dict, as_list, as_str

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event
    from etl.grammars.blocks import Part


def pictures(parts: list[Part]) -> Iterator[Event]:
    """An event for each: ``sha256`` and ``bytes`` of the file, or, where the text is no base64, of the text."""
    for part in parts:
        if part.kind == "media":
            yield from _picture(as_dict(part.item))
        elif part.kind == "result":
            for item in as_list(as_dict(part.item).get("content")):
                yield from _picture(as_dict(item))


def _picture(item: dict[str, Any]) -> Iterator[Event]:
    source = as_dict(item.get("source"))
    data = as_str(source.get("data"))
    if data is None or item.get("type") not in ("image", "document"):
        return
    try:
        held = binascii.a2b_base64(data)
    except (binascii.Error, ValueError):
        held = data.encode("utf-8", "surrogatepass")
    attrs = {"sha256": hashlib.sha256(held).hexdigest(), "bytes": len(held)}
    yield SessionEvent("image", as_str(source.get("media_type")), attrs=attrs)
