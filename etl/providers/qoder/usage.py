"""What did one model call of Qoder use, out of the counts that a record states?

Token fields of transcripts and run logs are zero by policy: an all-zero group is NULL and ``suppressed``. Calls of a
model that the user brought keep their real numbers. Credits are the meter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from etl.events import ModelCall
from etl.shape import as_count, as_dict, as_float, as_money, as_text

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Tiers that stand for a model chosen by the service.
_ALIASES: Final = frozenset({"auto", "efficient", "performance", "ultimate", "lite", "qmodel_latest"})
_TOKEN_KEYS: Final = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def usage_of(
    key: str, model: str | None, usage: Any, stop_reason: str | None, request_id: str | None = None
) -> ModelCall:
    """Usage of one response, from ``message.usage`` of a transcript or ``data`` of a run log. The id that its usage
    states is the service's; ``request_id`` is that of its row.
    """
    call = ModelCall(key, model, model in _ALIASES, stop_reason=stop_reason, request_id=request_id)
    if not isinstance(usage, dict):
        call.usage_status = "absent"
        return call
    call.credits, call.original_credits = as_money(usage.get("credits")), as_money(usage.get("original_credits"))
    call.context_ratio = as_float(usage.get("context_usage_ratio"))
    call.request_id = as_text(usage.get("request_id")) or request_id
    _count(call, usage)
    return call


def _count(call: ModelCall, usage: Mapping[str, Any]) -> None:
    """Anthropic buckets are disjoint: ``input_tokens`` of the store is fresh + cache reads + cache writes."""
    fresh, output, written, read = (as_count(usage.get(name)) for name in _TOKEN_KEYS)
    if fresh is None and output is None and written is None and read is None:
        call.usage_status = "absent"
    elif not (fresh or output or written or read):
        call.usage_status = "suppressed"
    else:
        call.input_tokens = (fresh or 0) + (read or 0) + (written or 0) if fresh is not None else None
        call.output_tokens, call.cache_read_tokens = output, read
        split = as_dict(usage.get("cache_creation"))
        hour = as_count(split.get("ephemeral_1h_input_tokens"))
        call.cache_creation_1h_tokens = hour
        call.cache_creation_5m_tokens = written if hour is None or written is None else max(0, written - hour)


def ide_usage(key: str, model: str | None, token_info: Mapping[str, Any]) -> ModelCall:
    """Usage of one call as the IDE's database states it. ``prompt_tokens`` includes ``cached_tokens`` (seen: 17,553
    with 0 cached), as the store's ``input_tokens`` does; ``max_input_tokens`` is the context window.
    """
    call = ModelCall(key, model, model in _ALIASES)
    told = (as_count(token_info.get(name)) for name in ("prompt_tokens", "completion_tokens", "cached_tokens"))
    prompt, output, cached = told
    call.context_window = as_count(token_info.get("max_input_tokens"))
    if prompt is None and output is None:
        call.usage_status = "absent"
    elif not (prompt or output or cached):
        call.usage_status = "suppressed"
    else:
        call.input_tokens, call.output_tokens, call.cache_read_tokens = prompt, output, cached
    return call
