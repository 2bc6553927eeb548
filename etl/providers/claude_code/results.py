"""How did a tool call of Claude Code end, as its result item and ``toolUseResult`` say?

``toolUseResult`` is the structured twin of the one result of a user record: an object, a list of content items (of an
MCP server), or a text for an error. Durations stand there in milliseconds, or seconds for a web search.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from etl.events import SessionFact
from etl.grammars.blocks import result
from etl.providers.claude_code.spilled import spilled_to
from etl.shape import as_bool, as_dict, as_float, as_str, as_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event, ToolResult
    from etl.grammars.blocks import Part

_EXIT: Final = re.compile(r"Exit code (?P<code>\d{1,5})(?:\n|\Z)")
#: How a refusal by the person is written, in the result and in its twin (seen in 2.1.86 and 2.1.141).
_REFUSED: Final = ("The user doesn't want to proceed with this tool use", "User rejected tool use")
_INTERRUPTED: Final = "[Request interrupted by user"
#: A refusal that no person gave: by a hook, or by the rules of the settings.
_FORBIDDEN: Final = re.compile(
    r"(?:Error: )?(?:Permission to use \S+(?: with command .*)? has been denied|PreToolUse:\S+ hook (?:error|blocking))"
)
_TIMES: Final = (("totalDurationMs", 1_000), ("durationMs", 1_000), ("durationSeconds", 1_000_000))


def results(value: dict[str, Any], parts: list[Part]) -> Iterator[Event]:
    """The results of a user record. The twin belongs to the only one; with several nothing says to which."""
    found = [part for part in parts if part.kind == "result"]
    extra = value.get("toolUseResult") if len(found) == 1 else None
    for part in found:
        told = result(part)
        if "is_error" not in as_dict(part.item):  # false is the API's default; 2.1.332 always writes it
            told.is_error = False
        detail = as_dict(extra)
        _judge(told, detail, as_str(extra))
        told.provider_us = _duration(detail)
        yield told
        if told.call_id and (name := spilled_to(detail, told.text)):
            yield SessionFact(f"spilled.{name}", told.call_id)
        agent = as_text(detail.get("agentId"))
        if agent and told.call_id:
            yield SessionFact(f"spawned.{agent}", told.call_id)


def _judge(told: ToolResult, detail: dict[str, Any], notice: str | None) -> None:
    said = told.text or ""
    if said.startswith(_REFUSED) or (notice is not None and notice.startswith(_REFUSED)):
        told.denial = "user-rejected"
    elif told.is_error and _FORBIDDEN.match(said):
        told.denial = "rule"
    if as_bool(detail.get("interrupted")) or said.startswith(_INTERRUPTED):
        told.status_raw = "interrupted"
    elif as_text(detail.get("backgroundTaskId")):
        told.status_raw = "backgrounded"
    else:
        told.status_raw = as_str(detail.get("status"))
    exited = _EXIT.match(said) if told.is_error else None
    told.exit_code = int(exited["code"]) if exited else None


def _duration(detail: dict[str, Any]) -> int | None:
    for name, factor in _TIMES:
        stated = as_float(detail.get(name))
        if stated is not None and 0 <= stated * factor < 1e15:
            return round(stated * factor)
    return None
