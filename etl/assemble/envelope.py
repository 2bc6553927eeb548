"""Does a dialogue row show transport JSON as if it were prose?

Decided on unmasked text against the record itself, so that it does not depend on what the projector believes. A model
that was asked for JSON, or quotes an envelope inside a text block, is not a raw envelope: its text is its leaf.
"""

from __future__ import annotations

from typing import Any, Final

from etl.shape import as_dict, is_transport_text, pointer_get

#: Positions that carry a message's transport: a whole message or content written as one string.
_TRANSPORT_POSITIONS: Final = frozenset(
    {
        "/message",
        "/content",
        "/data/message",
        "/data/content",
        "#",
        "#/content",
        "#/message/content",
    }
)
_COERCED: Final = "[object Object]"


def is_raw_envelope(record: dict[str, Any], role: str, kind: str, text: str, pointer: str) -> bool:
    """A: not projected from a string leaf; B: another text than its leaf and shaped like transport; C: coerced from an
    object; D: the leaf stands at a transport position and is transport.
    """
    if role != "assistant" or kind not in ("text", "thinking"):
        return False
    leaf = pointer_get(record, pointer) if pointer else None
    if not isinstance(leaf, str):
        return True
    if leaf != text and is_transport_text(text):
        return True
    if _COERCED in text and _COERCED not in leaf:
        return True
    return _is_transport_position(record, pointer) and is_transport_text(text)


def _is_transport_position(record: dict[str, Any], pointer: str) -> bool:
    """A whole message or content as one string; a message's content only beside a type or role, also the row's."""
    if pointer == "/message/content":
        message = as_dict(record.get("message"))
        return any(key in value for key in ("type", "role") for value in (message, record))
    return (pointer[pointer.rfind("#") :] if "#" in pointer else pointer) in _TRANSPORT_POSITIONS
