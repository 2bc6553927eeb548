"""What does one message of the SDK hold?

The SDK hands the Bridge one JSON object per line of its worker: ``system`` (with a subtype), ``assistant``, ``user``,
``stream_event``, ``result``, ``command_lifecycle`` and some more. Every accessor takes any JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from etl.providers.qoder_bridge.strict import storable
from etl.shape import as_dict, as_list, as_str, as_text

#: Types and subtypes that SDK 1.0.39 declares; others are kept and counted as unknown.
TYPES: Final = frozenset(
    {
        "assistant",
        "user",
        "stream_event",
        "result",
        "system",
        "command_lifecycle",
        "prompt_suggestion",
        "cloud_agent_event",
    }
)
SUBTYPES: Final = frozenset(
    {
        "init",
        "model_queue_status",
        "api_retry",
        "compact_boundary",
        "status",
        "session_state_changed",
        "session_title_changed",
        "permission_denied",
        "available_models_update",
        "commands_changed",
        "artifacts_update",
        "background_tasks_changed",
        "files_persisted",
        "plan_mode_changed",
        "skill_evolution",
        "elicitation_complete",
        "control_request_progress",
        "mirror_error",
    }
)
#: Families of subtypes (hook_started, task_updated, …).
_FAMILIES: Final = ("hook_", "task_", "goal_", "memory_")
_DELTA_LEAF: Final = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "input_json_delta": "partial_json",
    "signature_delta": "signature",
}


@dataclass(frozen=True, slots=True)
class Delta:
    """The delta of a stream event: its type, the name of its leaf, and the leaf's text ('' where it has none)."""

    kind: str
    leaf: str
    text: str


def content_of(message: dict[str, Any]) -> Any:
    """The content of an assistant or user message as it stands."""
    return as_dict(message.get("message")).get("content")


def text_of(message: dict[str, Any]) -> str:
    """The text of an assistant message (its text blocks joined) or of a result (its echo)."""
    if message.get("type") == "assistant":
        blocks = (as_dict(block) for block in as_list(content_of(message)))
        return "".join(storable(as_str(b.get("text")) or "") for b in blocks if b.get("type") == "text")
    if message.get("type") == "result":
        return storable(as_str(message.get("result")) or "")
    return ""


def delta_of(message: dict[str, Any]) -> Delta | None:
    """The delta of a stream event."""
    if message.get("type") != "stream_event":
        return None
    delta = as_dict(as_dict(message.get("event")).get("delta"))
    kind = as_str(delta.get("type"))
    if kind is None:
        return None
    leaf = _DELTA_LEAF.get(kind, "")
    return Delta(kind, leaf, as_str(delta.get(leaf)) or "")


def is_thinking(message: dict[str, Any]) -> bool:
    """Does it bring thinking?"""
    delta = delta_of(message)
    if delta is not None:
        return delta.kind == "thinking_delta" and bool(delta.text)
    return message.get("type") == "assistant" and _has_block(message, "thinking")


def is_token(message: dict[str, Any]) -> bool:
    """Does it bring text of the answer: a delta, a snapshot, or a result that echoes it?"""
    delta = delta_of(message)
    if delta is not None:
        return delta.kind == "text_delta" and bool(delta.text)
    return bool(text_of(message))


def is_model_content(message: dict[str, Any]) -> bool:
    """Does it hold output of the model (text, thinking or a call)? That supersedes what the queue said before. A
    result is an echo and no output.
    """
    if message.get("type") == "result":
        return False
    return is_token(message) or is_thinking(message) or _has_block(message, "tool_use")


def _has_block(message: dict[str, Any], kind: str) -> bool:
    if message.get("type") != "assistant":
        return False
    for block in map(as_dict, as_list(content_of(message))):
        if block.get("type") == kind and (kind == "tool_use" or as_str(block.get(kind))):
            return True
    return False


def unknown_type(message: dict[str, Any]) -> str | None:
    """The name of a type or subtype that nobody has described, None for known ones."""
    kind, subtype = as_text(message.get("type")), as_text(message.get("subtype"))
    if kind is None:
        return "sdk:(no type)"
    if kind not in TYPES:
        return f"sdk:{kind}"
    if kind == "system" and (subtype is None or (subtype not in SUBTYPES and not subtype.startswith(_FAMILIES))):
        return f"sdk:system/{subtype or '(no subtype)'}"
    return None
