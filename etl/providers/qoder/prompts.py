"""Who is speaking in a Qoder user record: a person, a command, a parent agent, or the machinery?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from etl.events import Merged
from etl.grammars.wrappers import INJECTED, INTERRUPTED, text_row
from etl.shape import as_dict, as_str

if TYPE_CHECKING:
    from etl.grammars.blocks import Part

#: ``PI_CONVERSATION_JSON=`` is the context of a bridge.
_INJECTED: Final = (*INJECTED, "PI_CONVERSATION_JSON=")
_HUMAN_ORIGINS: Final = frozenset({"human", "bridge"})


@dataclass(slots=True)
class Prompt:
    """What a user record is. ``typed`` is the person's own text where the record states it apart from the content;
    ``interrupt`` the notice of an interruption.
    """

    kind: str
    typed: str | None = None
    interrupt: str | None = None

    def row(self, part: Part) -> tuple[str, str]:
        """Kind and text of the row of one text block."""
        return text_row(part.text, self.kind, _INJECTED)

    def merged(self, part: Part) -> Merged:
        """The content's leaf stands in the row of what the person typed."""
        return Merged(part.block, None, "human_input")


def classify(value: dict[str, Any], parts: list[Part], *, is_agent: bool) -> Prompt:
    """The kind of a user record. A person's record has ``origin.kind`` human or ``humanInput``; older builds mark
    neither, then a record that is not meta, no summary and without tool results counts as the person's.
    """
    texts = [part.text for part in parts if part.kind == "text"]
    if any(text.startswith(INTERRUPTED) for text in texts):
        return Prompt("notice", interrupt=next(text for text in texts if text.startswith(INTERRUPTED)))
    if value.get("isCompactSummary") is True:
        return Prompt("summary")
    human = as_dict(value.get("humanInput"))
    origin = as_str(as_dict(value.get("origin")).get("kind"))
    typed = as_str(human.get("text")) or None
    if typed is not None or origin in _HUMAN_ORIGINS:
        return _by_person(texts, typed, human.get("mode"))
    if value.get("isMeta") is True or origin is not None or any(part.kind == "result" for part in parts):
        return Prompt("context")
    if is_agent:
        return Prompt("objective")
    return _by_person(texts, None, None)


def _by_person(texts: list[str], typed: str | None, mode: Any) -> Prompt:
    if mode == "bash":
        return Prompt("shell", typed)
    content = text_row(texts[0], "prompt", _INJECTED) if texts else ("prompt", "")
    if typed is None:
        return Prompt(content[0])
    kind, text = text_row(typed, "prompt", _INJECTED)
    if text != typed:
        return Prompt(kind)
    return Prompt("command" if content[0] == "command" and kind == "prompt" else kind, typed)
