"""What did one model call of Codex use, out of counters that only grow?

``token_count`` repeats the thread's total after every request and every tool call, with the last request beside it;
since 0.171 ``token_usage_record`` states each response once, before a ``token_count`` says the same. ``input_tokens``
include cached ones, ``output_tokens`` include reasoning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from etl.events import ModelCall
from etl.shape import as_count, as_dict, as_text

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAMES: Final = (
    "input_tokens",
    "output_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "reasoning_output_tokens",
    "total_tokens",
)
_PARTS: Final = _NAMES[:-1]

Counts = dict[str, int | None]


class Counter:
    """The running total of one file."""

    def __init__(self) -> None:
        self._total: Counts | None = None
        self._has_records = False

    def record(self, payload: Mapping[str, Any], model: str | None) -> ModelCall | None:
        """The response that a ``token_usage_record`` states."""
        key, used = as_text(payload.get("response_id")), _counts(payload.get("usage"))
        if key is None or used is None:
            return None
        self._has_records = True
        return _call(key, used, model, None)

    def count(self, payload: Mapping[str, Any], model: str | None, line_no: int) -> ModelCall | None:
        """The request that a ``token_count`` states; None where the total is the one before, or is no usage.

        The difference of the totals, and the last request where that is no difference: where a total fell or is the
        last request itself (the counter began anew), and in the first of a file (a fork goes on with its parent's).
        """
        info = as_dict(payload.get("info"))
        total, last = _counts(info.get("total_token_usage")), _counts(info.get("last_token_usage"))
        before, self._total = self._total, total or self._total
        if total is None or total == before or self._has_records:
            return None
        used = _difference(total, before)
        if last is not None and (used is None or total == last):
            used = last
        used = used or total
        if not any(used[name] for name in _PARTS):  # an overflow sets the total to the whole window: no usage
            return None
        return _call(f"line:{line_no}", used, model, as_count(info.get("model_context_window")))


def _counts(stated: Any) -> Counts | None:
    counts: Counts = {name: as_count(as_dict(stated).get(name)) for name in _NAMES}
    return counts if any(counts[name] is not None for name in _PARTS) else None


def _difference(total: Counts, before: Counts | None) -> Counts | None:
    if before is None:
        return None
    used: Counts = {}
    for name in _NAMES:
        now, then = total[name], before[name]
        if now is None:
            used[name] = None
        elif now < (then or 0):
            return None
        else:
            used[name] = now - (then or 0)
    return used


def _call(key: str, used: Counts, model: str | None, window: int | None) -> ModelCall:
    return ModelCall(
        key,
        model,
        input_tokens=used["input_tokens"],
        output_tokens=used["output_tokens"],
        cache_read_tokens=used["cached_input_tokens"],
        cache_creation_5m_tokens=used["cache_write_input_tokens"],
        reasoning_tokens=used["reasoning_output_tokens"],
        total_tokens=used["total_tokens"],
        context_window=window,
    )
