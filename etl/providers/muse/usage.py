"""What did a Muse session's model calls use?

``model_completed`` states each call once: its ``input_tokens`` include what was read from the cache, ``cached_tokens``
repeats ``cache_read_tokens``, ``output_tokens`` include reasoning. Attributions and workflow totals state the same
tokens again and are never added; only a call that has an attribution and no completion (1.1) counts by it. What the
automated approval review used has its own owner.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from etl.events import ModelCall, SessionEvent, Unread
from etl.providers.muse.turns import microseconds
from etl.shape import as_count, as_dict, as_list, as_str, as_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event
    from etl.providers.muse.lines import Entry
    from etl.providers.muse.turns import Handler, Run, Turns

#: A model chosen elsewhere: no name of one.
PLACEHOLDERS: Final = frozenset({"", "same-as-main"})
_RETRY: Final = ("attempt", "next_attempt", "max_attempts", "retry_delay_ms", "error_kind", "http_status", "operation")


class Usage:
    """The model calls of one session."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        turns.closers.append(self._unstated)

    def handlers(self) -> dict[str, Handler]:
        """What is done with which record."""
        return {
            "run.model.configured": self._configured,
            "runtime.session/run/model_response_created": self._response,
            "runtime.session/run/model_completed": self._completed,
            "runtime.session/run/goal_usage_attribution": self._attribution,
            "runtime.session/task/status": self._status,
        }

    def _configured(self, entry: Entry) -> Iterator[Event]:
        run = as_text(as_dict(entry.body.get("run_stream")).get("id")) or as_text(entry.body.get("command_id"))
        model = model_name(entry.body.get("model_id"))
        if run is not None and model is not None:
            self.turns.named(run).model = model
        yield entry.opened(chained=False)
        yield SessionEvent("model", as_str(entry.body.get("source")), model)

    def _response(self, entry: Entry) -> Iterator[Event]:
        self.turns.of(entry).response = as_text(entry.body.get("response_id"))
        yield entry.opened(chained=False)

    def _completed(self, entry: Entry) -> Iterator[Event]:
        run, body = self.turns.of(entry), entry.body
        key = as_text(entry.payload.get("source_run_record_id")) or entry.id or _place(entry)
        call = _usage(key, body.get("usage"))
        call.model = run.model or model_name(body.get("model")) or self.turns.model
        call.stop_reason = as_text(body.get("finish_reason"))
        call.duration_us = microseconds(body.get("duration_ms"))
        run.completed.append((call.input_tokens, call.output_tokens))
        yield entry.opened(message_key=run.response)
        yield from self.turns.begun(run)
        if not (_is_nothing(call) and model_name(body.get("model")) is None):  # an echo of the test provider
            yield call

    def _attribution(self, entry: Entry) -> Iterator[Event]:
        record = as_dict(entry.body.get("record")) or entry.body
        quantity = as_dict(record.get("quantity"))
        opened = entry.opened(message_key=as_text(record.get("usage_id")))
        yield opened
        if record.get("usage_family") != "provider" or quantity.get("reported") is not True:
            return
        owner = as_text(as_dict(record.get("owner")).get("session_id"))
        if owner is not None and not opened.session_id.endswith(f":{owner}"):
            return  # what a sub-agent used stands in its own log
        run = self.turns.of(entry)
        call = _usage(as_text(record.get("usage_id")) or entry.id or _place(entry), quantity)
        call.model = self.turns.model_of(run)
        run.attributed.append((opened, call))
        if run.is_ended:  # told late
            yield from self._unstated(run)

    def _unstated(self, run: Run) -> Iterator[Event]:
        """Calls that only an attribution tells of: those whose tokens no stated call has. Of these the first are other
        words for the stated calls that none was like.
        """
        unlike = []
        for opened, call in run.attributed:
            if (call.input_tokens, call.output_tokens) in run.completed:
                run.completed.remove((call.input_tokens, call.output_tokens))
            else:
                unlike.append((opened, call))
        skipped = min(len(run.completed), len(unlike))
        for opened, call in unlike[skipped:]:
            yield replace(opened, again=True)
            yield call
        del run.completed[:skipped]
        run.attributed.clear()

    def _status(self, entry: Entry) -> Iterator[Event]:
        """A task's progress: of interest when the request to the provider is to be tried again."""
        details = as_dict(entry.body.get("details"))
        if details.get("phase") != "retry_scheduled":
            yield Unread(entry.line_no, entry.child, entry.name, "skipped")
            return
        facets = map(as_dict, as_list(details.get("facets")))
        facet = next((facet for facet in facets if facet.get("kind") == "external_attempt"), {})
        yield entry.opened(chained=False)
        attrs = {name: value for name in _RETRY if isinstance(value := facet.get(name), (int, str))}
        yield SessionEvent("retry", as_str(facet.get("error_kind")), as_str(entry.body.get("message")), attrs)


def review(key: str, body: dict[str, Any]) -> ModelCall | None:
    """What an automated approval review used, by its own owner; None where it states nothing."""
    usage = body.get("usage")
    if not isinstance(usage, dict):
        return None
    call = _usage(key, {**usage, "cache_read_tokens": usage.get("cached_input_tokens")})
    call.owner, call.duration_us = "review", microseconds(body.get("duration_ms"))
    return call


def model_name(value: Any) -> str | None:
    """The name of a model; None for a placeholder."""
    name = as_text(value)
    return None if name in PLACEHOLDERS else name


def _usage(key: str, value: Any) -> ModelCall:
    usage, call = as_dict(value), ModelCall(key)
    if not usage:
        call.usage_status = "absent"
        return call
    read = as_count(usage.get("cache_read_tokens"))
    call.input_tokens = as_count(usage.get("input_tokens"))
    call.output_tokens = as_count(usage.get("output_tokens"))
    call.cache_read_tokens = as_count(usage.get("cached_tokens")) if read is None else read
    call.cache_creation_5m_tokens = as_count(usage.get("cache_write_tokens"))
    call.reasoning_tokens = as_count(usage.get("reasoning_tokens"))
    call.total_tokens = as_count(usage.get("total_tokens"))
    return call


def _is_nothing(call: ModelCall) -> bool:
    return not (call.input_tokens or call.output_tokens or call.cache_read_tokens or call.cache_creation_5m_tokens)


def _place(entry: Entry) -> str:
    return f"~{entry.line_no}.{entry.child}"
