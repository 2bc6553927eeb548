"""What does a message's content say, block by block, in the grammar that Qoder and Claude Code share?

A message holds a string, one block, or an array of blocks: ``thinking``, ``text``, ``output_text`` (readable),
``tool_use`` and ``tool_result`` (the tool lifecycle), pictures, and types nobody has described yet. The projector
takes only string leaves as text and never serialises a structure: an item it cannot read is named, not shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from etl.events import ToolResult
from etl.grammars.tools import tool_request
from etl.shape import as_dict, as_list, as_str, canonical, decode_text, is_transport, is_transport_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from etl.events import ToolRequest

TEXT_TYPES: Final = frozenset({"text", "output_text"})
REQUEST_TYPES: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
RESULT_TYPES: Final = frozenset({"tool_result", "web_search_tool_result", "mcp_tool_result"})
#: Known items without readable text: pictures and documents (counted as attachments), encrypted thinking.
MEDIA_TYPES: Final = frozenset({"image", "document"})
SILENT_TYPES: Final = frozenset({"redacted_thinking"})
_KINDS: Final[dict[str, str]] = {
    **dict.fromkeys(REQUEST_TYPES, "request"),
    **dict.fromkeys(RESULT_TYPES, "result"),
    **dict.fromkeys(MEDIA_TYPES, "media"),
    **dict.fromkeys(SILENT_TYPES, "empty"),
}


@dataclass(slots=True)
class Part:
    """One content item, projected. ``kind``: text, thinking, request, result, media, empty, unknown, rejected.

    ``text`` and ``pointer`` (below the record) belong to the first two; ``item`` is the item itself where it is an
    object; ``item_type`` names an unread one.
    """

    kind: str
    block: int
    text: str = ""
    pointer: str = ""
    item: dict[str, Any] | None = None
    item_type: str = ""


@dataclass(slots=True)
class Content:
    """Where the content of a message stands: the value, the pointer to it, and whether it came out of a string."""

    value: Any
    pointer: str
    decoded: bool
    message: dict[str, Any]


def locate(record: Mapping[str, Any], role: str) -> Content | None:
    """Finds the content of a message record; None when the record holds no message.

    ``message`` is an object, or a plain string in legacy rows; cache rows hold ``content`` themselves. A string at a
    transport position that parses to a transport object is decoded, once (an older build wrote whole messages as
    JSON text). A message's content is such a position beside a type or role, its own or the record's (cache rows).
    For a user only a ``message`` string of role user is transport: a pasted envelope is what was typed.
    """
    message = record.get("message")
    if isinstance(message, str):
        opened = _open_string(message, "/message", role, strict=role == "user")
        return opened or Content(message, "/message", decoded=False, message={})
    if isinstance(message, dict):
        content = message.get("content")
        if isinstance(content, str) and role == "assistant" and (_is_typed(message) or _is_typed(record)):
            opened = _open_string(content, "/message/content", role, strict=False)
            if opened is not None:
                opened.message = message
                return opened
        return Content(content, "/message/content", decoded=False, message=message)
    if "content" in record and message is None:
        content = record["content"]
        if isinstance(content, str) and role == "assistant":
            opened = _open_string(content, "/content", role, strict=False)
            if opened is not None:
                return opened
        return Content(content, "/content", decoded=False, message={})
    return None


def _is_typed(value: Mapping[str, Any]) -> bool:
    return "type" in value or "role" in value


def _open_string(text: str, pointer: str, role: str, *, strict: bool) -> Content | None:
    value = decode_text(text)
    if (
        not strict and isinstance(value, str) and is_transport_text(value)
    ):  # a string in a string: opened once, and still an envelope
        return Content(value, f"{pointer}#", decoded=True, message={})
    if not is_transport(value):
        return None
    if strict and not (isinstance(value, dict) and value.get("role") == role):
        return None
    if isinstance(value, dict) and "content" in value and "tool_use_id" not in value:
        return Content(value["content"], f"{pointer}#/content", decoded=True, message=value)
    if isinstance(value, dict) and isinstance(value.get("message"), dict):
        inner = value["message"]
        return Content(inner.get("content"), f"{pointer}#/message/content", decoded=True, message=inner)
    return Content(value, f"{pointer}#", decoded=True, message={})


def project(content: Content) -> list[Part]:
    """The parts of a message's content, in textual order, one for every item."""
    value, pointer = content.value, content.pointer
    if isinstance(value, list):
        return [_part(item, block, f"{pointer}/{block}") for block, item in enumerate(value)]
    if isinstance(value, str):
        return [Part("text" if value else "empty", 0, value, pointer)]
    if isinstance(value, dict):
        return [_part(value, 0, pointer)]
    return [] if value is None else [Part("rejected", 0, item_type=_type_name(value))]


def _part(item: Any, block: int, pointer: str) -> Part:
    if not isinstance(item, dict):
        if isinstance(item, str):
            return Part("text" if item else "empty", block, item, pointer)
        return Part("rejected", block, item_type=_type_name(item))
    kind = item.get("type")
    if kind is None:
        return _untyped(item, block, pointer)
    if not isinstance(kind, str):
        return Part("rejected", block, item_type=f"type:{_type_name(kind)}")
    if kind == "thinking":
        return _readable("thinking", item, block, pointer, ("thinking", "text"))
    if kind in TEXT_TYPES:
        return _readable("text", item, block, pointer, ("text", "content"))
    if kind in _KINDS:
        return Part(_KINDS[kind], block, "", "", item)
    return Part("unknown", block, item_type=kind)


def _untyped(item: dict[str, Any], block: int, pointer: str) -> Part:
    """A block without a type counts by its fields: a tool item's text must never become prose."""
    if "tool_use_id" in item:
        return Part("result", block, item=item)
    if "name" in item and "input" in item:
        return Part("request", block, item=item)
    part = _readable("text", item, block, pointer, ("text", "content"))
    if part.kind == "empty" and not any(isinstance(item.get(key), str) for key in ("text", "content")):
        return Part("rejected", block, item_type="(no type)")
    return part


def _readable(kind: str, item: dict[str, Any], block: int, pointer: str, keys: tuple[str, ...]) -> Part:
    """A readable item: its leaf is the first string under ``keys``, or under text/value of an object found there.

    What stands there and is no text (a number, a list, an object without one) makes the item malformed, not empty.
    """
    odd: Any = None
    for key in keys:
        leaf = item.get(key)
        if isinstance(leaf, str) and leaf:
            return Part(kind, block, leaf, f"{pointer}/{key}", item)
        if isinstance(leaf, dict):
            for inner in ("text", "value"):
                if isinstance(leaf.get(inner), str) and leaf[inner]:
                    return Part(kind, block, leaf[inner], f"{pointer}/{key}/{inner}", item)
        if leaf is not None and not isinstance(leaf, str) and odd is None:
            odd = leaf
    if odd is not None:
        return Part("rejected", block, item_type=f"{item.get('type', '(no type)')} of type {_type_name(odd)}")
    return Part("empty", block, item=item)


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    return {bool: "boolean", int: "number", float: "number", str: "string", list: "array"}.get(type(value), "object")


def request(part: Part, vocabulary: Mapping[str, str], batch_key: str | None) -> ToolRequest:
    """The tool request that a request item states. Text that should hold JSON arguments is parsed once."""
    item = as_dict(part.item)
    name = as_str(item.get("name")) or "(unnamed)"
    args, ok = item.get("input"), True
    if isinstance(args, str):
        parsed = decode_text(args)
        args, ok = (parsed, True) if isinstance(parsed, dict) else (args, False)
    call_id = as_str(item.get("id")) or None
    return tool_request(part.block, call_id, name, args, vocabulary, args_parse_ok=ok, batch_key=batch_key)


def result(part: Part) -> ToolResult:
    """The tool result that a result item states; its text is the text of its items, pictures are only counted."""
    item = as_dict(part.item)
    text, images = result_text(item.get("content"))
    error = item.get("is_error")
    return ToolResult(
        block=part.block,
        call_id=as_str(item.get("tool_use_id")) or None,
        text=text,
        images=images,
        is_error=error if isinstance(error, bool) else None,
    )


def result_text(content: Any) -> tuple[str | None, int]:
    """The text of a tool result and the number of its pictures. Other structures stay JSON: results are data."""
    if content is None or isinstance(content, str):
        return content, 0
    texts: list[str] = []
    images = 0
    for item in as_list(content) if isinstance(content, list) else [content]:
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, dict) and as_str(item.get("type")) in MEDIA_TYPES:
            images += 1
        elif isinstance(item, dict) and isinstance(item.get("text"), str):
            texts.append(item["text"])
        else:
            texts.append(canonical(item))
    return ("\n".join(texts) if texts else None), images
