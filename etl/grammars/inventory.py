"""Which content items does a message record hold, counted without the projector?

The second witness of the raw-envelope gate: it walks the record by its own few rules and writes an inventory that SQL
checks compare with dialogue and calls. It shares no code with ``grammars.blocks`` but the definition of a transport
object: a fault of the projector's code is seen here, one of the rules that both follow is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from etl.events import ContentBlock
from etl.shape import decode_text, is_transport, is_transport_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_READABLE: Final[dict[str | None, tuple[str, ...]]] = {
    "thinking": ("thinking", "text"),
    "text": ("text", "content"),
    "output_text": ("text", "content"),
    None: ("text", "content"),
}
_TOOL_ID: Final[dict[str, str]] = {
    "tool_use": "id",
    "server_tool_use": "id",
    "mcp_tool_use": "id",
    "tool_result": "tool_use_id",
    "web_search_tool_result": "tool_use_id",
    "mcp_tool_result": "tool_use_id",
}
_SILENT: Final = frozenset({"image", "document", "redacted_thinking"})
_JSON_TYPES: Final[dict[type, str]] = {
    str: "VARCHAR",
    dict: "OBJECT",
    list: "ARRAY",
    bool: "BOOLEAN",
    int: "BIGINT",
    float: "DOUBLE",
    type(None): "NULL",
}


def content_inventory(record: Mapping[str, Any]) -> Iterable[ContentBlock]:
    """Every content item of a user or assistant record, in order; nothing for other records."""
    role = record.get("type", record.get("role"))
    if role not in ("user", "assistant"):
        return ()
    message = record.get("message")
    holder = record if message is None else message
    content = holder.get("content") if isinstance(holder, dict) else holder
    if holder is message and not isinstance(message, (str, dict)):
        return ()
    if isinstance(content, str):
        content = _opened(
            content, role, whole=isinstance(message, str), named=message is None or _named(message, record)
        )
    items = content if isinstance(content, list) else [] if content is None else [content]
    return [_item(role, block, item) for block, item in enumerate(items)]


def _named(message: Any, record: Mapping[str, Any]) -> bool:
    return isinstance(message, dict) and not {"type", "role"}.isdisjoint((*message, *record))


def _opened(text: str, role: str, *, whole: bool, named: bool) -> Any:
    """The content inside a transport string, or the string itself."""
    value = decode_text(text)
    is_opened = role == "assistant" and (whole or named)
    if isinstance(value, str) and is_opened and is_transport_text(value):
        return value
    if not is_transport(value):
        return text
    if role == "user":
        if not (whole and isinstance(value, dict) and value.get("role") == "user"):
            return text
    elif not (whole or named):
        return text
    if isinstance(value, dict):
        if "content" in value and "tool_use_id" not in value:
            return value["content"]
        if isinstance(value.get("message"), dict):
            return value["message"].get("content")
    return value


def _item(role: str, block: int, item: Any) -> ContentBlock:
    if not isinstance(item, dict):
        if isinstance(item, str):
            return ContentBlock(role, block, None, "VARCHAR", len(item), None, "used" if item else "skipped")
        return ContentBlock(role, block, None, _JSON_TYPES.get(type(item)), None, None, "rejected")
    kind = item.get("type")
    if kind is not None and not isinstance(kind, str):
        return ContentBlock(role, block, None, _JSON_TYPES.get(type(kind)), None, None, "rejected")
    if kind is None and "tool_use_id" in item:
        kind = "tool_result"
    elif kind is None and "name" in item and "input" in item:
        kind = "tool_use"
    if kind in _TOOL_ID:
        identity = item.get(_TOOL_ID[kind])
        return ContentBlock(role, block, kind, None, None, identity if isinstance(identity, str) else None, "used")
    if kind in _SILENT:
        return ContentBlock(role, block, kind, None, None, None, "skipped")
    if kind not in _READABLE:
        return ContentBlock(role, block, kind, None, None, None, "unknown")
    return _readable(role, block, kind, item)


def _readable(role: str, block: int, kind: str | None, item: Mapping[str, Any]) -> ContentBlock:
    first = item.get(_READABLE[kind][0])
    if isinstance(first, str) and first:
        return ContentBlock(role, block, kind, "VARCHAR", len(first), None, "used")
    candidates = [item.get(key) for key in _READABLE[kind]]
    found = [leaf for leaf in map(_leaf, candidates) if leaf]
    if found:
        return ContentBlock(role, block, kind, "VARCHAR", len(found[0]), None, "used")
    odd = [value for value in candidates if value is not None and not isinstance(value, str)]
    if odd:
        return ContentBlock(role, block, kind, _JSON_TYPES.get(type(odd[0])), None, None, "rejected")
    if kind is None and not any(isinstance(value, str) for value in candidates):
        return ContentBlock(role, block, None, "OBJECT", None, None, "rejected")
    return ContentBlock(role, block, kind, None, None, None, "skipped")


def _leaf(value: Any) -> str | None:
    if isinstance(value, dict):
        value = next((value[key] for key in ("text", "value") if isinstance(value.get(key), str) and value[key]), None)
    return value if isinstance(value, str) else None
