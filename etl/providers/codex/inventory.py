"""Which readable leaves does a response item hold, counted without the adapter?

The second witness of the dialogue: it knows the shape of messages and reasoning items only, and shares no code with
``speech``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from etl.events import ContentBlock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def content_inventory(record: Mapping[str, Any]) -> Iterator[ContentBlock]:
    """The items of a user's or an assistant's message, or of reasoning; nothing for other records."""
    payload = record.get("payload", record)
    if not isinstance(payload, dict) or record.get("type") == "event_msg":
        return
    if payload.get("type") == "reasoning":
        yield from _reasoning(payload)
        return
    role = payload.get("role")
    if role not in ("user", "assistant"):
        return
    content = payload.get("content")
    for block, item in enumerate(content if isinstance(content, list) else [] if content is None else [content]):
        yield _item(str(role), block, item)


def _reasoning(payload: Mapping[str, Any]) -> Iterator[ContentBlock]:
    lists = [payload[name] for name in ("summary", "content") if isinstance(payload.get(name), list)]
    block = 0
    for block, item in enumerate((item for items in lists for item in items), 1):
        leaf = item.get("text") if isinstance(item, dict) else item
        yield _text("assistant", block - 1, "thinking", leaf)
    if not block:
        yield ContentBlock("assistant", 0, "redacted_thinking", None, None, None, "skipped")


def _item(role: str, block: int, item: Any) -> ContentBlock:
    if isinstance(item, str):
        return _text(role, block, "text", item)
    if not isinstance(item, dict):
        return ContentBlock(role, block, None, None, None, None, "rejected")
    kind = item.get("type")
    if kind in ("input_text", "output_text", "text", "Text", "refusal"):
        return _text(role, block, "text", item.get("refusal" if kind == "refusal" else "text"))
    if kind in ("input_image", "image", "local_image", "input_audio"):
        return ContentBlock(role, block, kind, None, None, None, "skipped")
    if isinstance(kind, str):
        return ContentBlock(role, block, kind, None, None, None, "unknown")
    return ContentBlock(role, block, None, None, None, None, "rejected")


def _text(role: str, block: int, block_type: str, leaf: Any) -> ContentBlock:
    if isinstance(leaf, str):
        disposition = "used" if leaf else "skipped"
        return ContentBlock(role, block, block_type, "VARCHAR", len(leaf), None, disposition)
    return ContentBlock(role, block, block_type, None, None, None, "skipped" if leaf is None else "rejected")
