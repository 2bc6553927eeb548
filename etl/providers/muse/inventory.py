"""Which readable leaves and tool items does a Muse record hold, counted without the adapter?

The second witness of dialogue and calls: it knows only the shape of events, and shares no code with ``speech`` and
``calls``. Parts of a summary are no items: they are fragments of the one that is committed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from etl.events import ContentBlock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TEXTS: Final[dict[str, tuple[str, str, str]]] = {
    "started": ("user", "text", "prompt"),
    "assistant_message_committed": ("assistant", "text", "text"),
    "reasoning_summary_committed": ("assistant", "thinking", "text"),
    "reasoning_committed": ("assistant", "thinking", "text"),
}
_LISTS: Final[dict[str, tuple[str, str, str, tuple[str, ...]]]] = {
    "assistant_tool_calls_committed": ("assistant", "tool_use", "tool_calls", ("call_id", "id")),
    "tool_result_batch_committed": ("user", "tool_result", "results", ("tool_call_id", "call_id")),
    "tool_results_committed": ("user", "tool_result", "results", ("tool_call_id", "call_id")),
    "tool_result_committed": ("user", "tool_result", "results", ("tool_call_id", "call_id")),
    "tool_result": ("user", "tool_result", "results", ("tool_call_id", "call_id")),
}
_CARDS: Final[dict[str, tuple[str, str, tuple[str, ...]]]] = {
    "user_input_prompt_requested": ("assistant", "questions", ("question",)),
    "user_input_prompt_settled": ("user", "answers", ("selected_label", "label", "text")),
}


def content_inventory(record: Mapping[str, Any]) -> Iterator[ContentBlock]:
    """The items of an event of a run, in order; nothing for other records."""
    payload = record.get("payload")
    event = payload.get("event") if isinstance(payload, dict) and payload.get("kind") == "run" else None
    kind = event.get("kind") if isinstance(event, dict) else None
    if not isinstance(event, dict) or not isinstance(kind, str):
        return
    if kind in _TEXTS:
        role, block_type, key = _TEXTS[kind]
        leaf, is_prompt = event.get(key), kind == "started"
        if is_prompt and not isinstance(leaf, str):
            yield ContentBlock(role, 0, block_type, None, None, None, "rejected")
        else:
            yield _text(role, 0, block_type, leaf, blank_is_none=is_prompt)
    elif kind in _LISTS:
        role, block_type, key, ids = _LISTS[kind]
        items = event.get(key, [event])
        for block, item in enumerate(items if isinstance(items, list) else ()):
            yield _tool(role, block, block_type, item, ids)
    elif kind in _CARDS:
        role, key, names = _CARDS[kind]
        listed = event.get(key)
        for block, item in enumerate(listed if isinstance(listed, list) else ()):
            found = [item[name] for name in names if item.get(name)] if isinstance(item, dict) else []
            yield _text(role, block, "text", next((leaf for leaf in found if isinstance(leaf, str)), None))
    elif kind == "inbox_item_queued":
        yield from _steer(event)


def _steer(event: Mapping[str, Any]) -> Iterator[ContentBlock]:
    source = event.get("source")
    named = (source.get("source"), source.get("kind")) if isinstance(source, dict) else (source,)
    if "user_steer" in named:
        inner = event.get("payload")
        prompt = inner.get("prompt") if isinstance(inner, dict) else None
        yield _text("user", 0, "text", prompt if isinstance(prompt, str) and prompt else event.get("body"))


def _text(role: str, block: int, block_type: str, leaf: Any, *, blank_is_none: bool = False) -> ContentBlock:
    if not isinstance(leaf, str) or not leaf or (blank_is_none and leaf.isspace()):
        return ContentBlock(role, block, block_type, None, None, None, "skipped")
    return ContentBlock(role, block, block_type, "VARCHAR", len(leaf), None, "used")


def _tool(role: str, block: int, block_type: str, item: Any, ids: tuple[str, ...]) -> ContentBlock:
    if not isinstance(item, dict):
        return ContentBlock(role, block, block_type, None, None, None, "rejected")
    identity = next((item[name] for name in ids if isinstance(item.get(name), str) and item[name]), None)
    return ContentBlock(role, block, block_type, None, None, identity, "used")
