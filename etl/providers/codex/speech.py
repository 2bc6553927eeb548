"""What was said in a turn, once, though a rollout may tell it in two layers?

A response item is what the model saw, an event (``user_message``, ``agent_message``, ``agent_reasoning``, or the item
of ``item_completed``) what the person saw; every version writes another choice of them, in either order. A text stands
in the row of its response item; the event that repeats it is merged into that row, and is a row of its own where no
item of the turn says the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from etl.events import Dialogue, Merged, RecordOpened, UnreadItem
from etl.shape import as_dict, as_list, as_str

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event

_TEXTS: Final = frozenset({"input_text", "output_text", "text", "Text"})
_PICTURES: Final = frozenset({"input_image", "image", "local_image", "input_audio"})
_SHELL: Final = re.compile(r"\s*<user_shell_command>\s*<command>\n?(?P<command>.*?)\n?</command>", re.DOTALL)
_ABORTED: Final = "<turn_aborted>"
#: What the CLI puts into user items beside what was typed (seen in 0.108 to 0.171).
_INJECTED: Final = (
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "<permissions instructions>",
    "<subagent_notification>",
    "<skill>",
)
#: A text that is one element from end to end.
_ELEMENT: Final = re.compile(r"\s*<(?P<tag>[a-z][\w-]*)(?: [^<>]*)?>.*</(?P=tag)>\s*\Z", re.DOTALL)
#: IDE extensions write what is open in the editor before what was typed.
_REQUEST: Final = "## My request for Codex:"

Text = tuple[int, str, str]
"""Block, text and pointer of a readable leaf."""


@dataclass(slots=True)
class _Held:
    """A user item whose kind is known only when the next records have told what was typed."""

    opened: RecordOpened
    texts: list[Text]
    pictures: int


@dataclass(slots=True)
class Speech:
    """The adapter's memory of one turn. ``is_agent``: the first words are the task that a parent set."""

    is_agent: bool = False
    has_layer: bool = False
    has_objective: bool = False
    held: list[_Held] = field(default_factory=list)
    said: dict[tuple[str, int], list[tuple[int, int, int]]] = field(default_factory=dict)
    waiting: list[tuple[RecordOpened, str, str, str]] = field(default_factory=list)

    def user(self, opened: RecordOpened, payload: dict[str, Any], pointer: str) -> Iterator[Event]:
        """A user item: its texts are held back."""
        texts, pictures, unread = items(payload.get("content"), f"{pointer}/content")
        self.held.append(_Held(opened, texts, pictures))
        yield from unread

    def typed(self, text: str, pointer: str, pictures: int) -> Iterator[Event]:
        """What a person typed, as the event says: the held text that equals it is the prompt."""
        self.has_layer = True
        wanted = _words(text)
        for held in self.held:
            found = next((leaf for leaf in held.texts if _words(leaf[1]) == wanted), None)
            if found is not None:
                yield Merged(0, found[0], "resend", (held.opened.line_no, held.opened.child))
                self.held.remove(held)
                held.pictures = max(held.pictures, pictures)
                yield from self._release(held, found[0])
                return
        if wanted:
            yield Dialogue("user", self._asked(), wanted, pointer, attachments=pictures)

    def release(self) -> Iterator[Event]:
        """Something else follows: what nobody is said to have typed is context, or a prompt where no event says so."""
        held, self.held = self.held, []
        for item in held:
            yield from self._release(item, None)

    def _release(self, held: _Held, typed: int | None) -> Iterator[Event]:
        yield replace(held.opened, again=True)
        for block, text, pointer in held.texts:
            if not text:
                continue
            if block == typed:
                row = (self._asked(), _words(text))
            else:
                row = _look(text)
                if row[0] == "prompt":
                    row = ("context", text) if self.has_layer else (self._asked(), _words(text))
            kind, words = row
            yield Dialogue("user", kind, words, pointer, block, attachments=held.pictures if block == typed else 0)

    def _asked(self) -> str:
        if self.is_agent and not self.has_objective:
            self.has_objective = True
            return "objective"
        return "prompt"

    def item(self, opened: RecordOpened, kind: str, texts: list[Text]) -> Iterator[Event]:
        """Texts of an assistant's item; events of the turn that said them before are merged into their rows."""
        repeated: list[tuple[RecordOpened, Merged]] = []
        for block, text, pointer in texts:
            if not text:
                continue
            yield Dialogue("assistant", kind, text, pointer, block)
            place = (opened.line_no, opened.child, block)
            early = next((told for told in self.waiting if told[1] == kind and told[2] == text), None)
            if early is None:
                self.said.setdefault((kind, hash(text)), []).append(place)
            else:
                self.waiting.remove(early)
                repeated.append((early[0], Merged(0, block, "resend", place[:2])))
        for early_record, merged in repeated:
            yield replace(early_record, again=True)
            yield merged

    def echo(self, opened: RecordOpened, kind: str, text: str, pointer: str) -> Iterator[Event]:
        """A text as an event says it: merged into the row that has it, else held until the turn ends."""
        places = self.said.get((kind, hash(text)))
        if places:
            line_no, child, block = places.pop(0)
            yield Merged(0, block, "resend", (line_no, child))
        elif text:
            self.waiting.append((opened, kind, text, pointer))

    def settle(self) -> Iterator[Event]:
        """The turn is over: what only events said becomes rows of theirs."""
        yield from self.release()
        waiting, self.waiting = self.waiting, []
        self.said.clear()
        for opened, kind, text, pointer in waiting:
            yield replace(opened, again=True)
            yield Dialogue("assistant", kind, text, pointer)


def items(content: Any, pointer: str) -> tuple[list[Text], int, list[UnreadItem]]:
    """The texts of a list of content items, the number of its pictures, and the items that give neither."""
    texts: list[Text] = []
    unread: list[UnreadItem] = []
    pictures = 0
    is_list = isinstance(content, list)
    for block, item in enumerate(content if is_list else [] if content is None else [content]):
        place = f"{pointer}/{block}" if is_list else pointer
        if isinstance(item, str):
            texts.append((block, item, place))
            continue
        kind = as_str(item.get("type")) if isinstance(item, dict) else None
        name = "refusal" if kind == "refusal" else "text"
        if kind in _TEXTS or kind == "refusal":
            leaf = item.get(name)
            if isinstance(leaf, str):
                texts.append((block, leaf, f"{place}/{name}"))
            elif leaf is not None:
                unread.append(UnreadItem(block, f"{kind} without text", "rejected"))
        elif kind in _PICTURES:
            pictures += 1
        elif kind is not None:
            unread.append(UnreadItem(block, kind, "unknown"))
        else:
            unread.append(UnreadItem(block, "(no type)", "rejected"))
    return texts, pictures, unread


def thoughts(payload: dict[str, Any], pointer: str) -> tuple[list[Text], list[UnreadItem]]:
    """The readable leaves of a reasoning item: its summary, then its content."""
    texts: list[Text] = []
    unread: list[UnreadItem] = []
    block = 0
    for name in ("summary", "content"):
        for n, item in enumerate(as_list(payload.get(name))):
            leaf = item.get("text") if isinstance(item, dict) else item
            place = f"{pointer}/{name}/{n}"
            if isinstance(leaf, str):
                texts.append((block, leaf, f"{place}/text" if isinstance(item, dict) else place))
            elif leaf is not None:
                unread.append(UnreadItem(block, "reasoning without text", "rejected"))
            block += 1
    return texts, unread


def shown(item: dict[str, Any], pointer: str) -> list[tuple[str, str]]:
    """The texts of a message, plan or reasoning item of ``item_completed``, each with its pointer."""
    found: list[tuple[str, str]] = []
    for name in ("content", "summary_text", "summary", "raw_content"):
        for n, part in enumerate(as_list(item.get(name))):
            text = as_str(part) or as_str(as_dict(part).get("text"))
            if text:
                found.append((text, f"{pointer}/{name}/{n}" + ("" if isinstance(part, str) else "/text")))
    text = as_str(item.get("text"))
    return found or ([(text, f"{pointer}/text")] if text else [])


def _look(text: str) -> tuple[str, str]:
    """Kind and words of a user text by itself."""
    bare = text.lstrip()
    if found := _SHELL.match(text):
        return "shell", f"! {found['command'].strip()}"
    if bare.startswith(_ABORTED):
        return "notice", text
    if bare.startswith(_INJECTED) or _ELEMENT.match(text):
        return "context", text
    return "prompt", text


def _words(text: str) -> str:
    return text.rpartition(_REQUEST)[2].strip() if _REQUEST in text else text.strip()
