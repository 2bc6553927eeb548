"""If a turn falls silent now, was it the queue, the provider, or the wait after a tool result?

The last word of the queue counts until the model brings output or the queue says ``ready``: what was unavailable then
is no longer. Availability wins over the wait after a tool result, since a provider that is not there cannot continue.
"""

from __future__ import annotations

from typing import Any, Final

from etl.providers.qoder_bridge.messages import is_model_content
from etl.shape import as_bool, as_str

UNAVAILABLE: Final = "PROVIDER_UNAVAILABLE"
QUEUE_TIMEOUT: Final = "PROVIDER_QUEUE_TIMEOUT"
RESPONSE_TIMEOUT: Final = "PROVIDER_RESPONSE_TIMEOUT"
CONTINUATION_TIMEOUT: Final = "POST_TOOL_CONTINUATION_TIMEOUT"
_MODEL_EVENTS: Final = frozenset({"assistant", "stream_event", "result"})


class QueueEvidence:
    """What the messages of one turn said about queue and model, in order."""

    def __init__(self) -> None:
        self.status: str | None = None
        self.is_available: bool | None = None
        self.saw_model_event = False

    def queue(self, message: dict[str, Any]) -> None:
        """A queue status, resent or not: the Bridge takes it before it looks for resends."""
        self.status = as_str(message.get("status"))
        told = as_bool(message.get("service_available"))
        if told is not None or self.status == "ready":
            self.is_available = told

    def model(self, message: dict[str, Any]) -> None:
        """Any other message that is no resend."""
        if as_str(message.get("type")) in _MODEL_EVENTS:
            self.saw_model_event = True
        if is_model_content(message):
            self.status = self.is_available = None

    def silence(self, *, continuation: bool) -> str:
        """The class of a silence that begins now."""
        if self.is_available is False:
            return UNAVAILABLE
        if self.status == "queued" and not self.saw_model_event:
            return QUEUE_TIMEOUT
        return CONTINUATION_TIMEOUT if continuation else RESPONSE_TIMEOUT


def is_queue_status(message: dict[str, Any]) -> bool:
    """Is it a heartbeat of the queue?"""
    return message.get("type") == "system" and message.get("subtype") == "model_queue_status"
