"""What does a text of a user record show, when the wrappers of commands are taken off it?

Claude Code and Qoder write a slash command and a shell escape as tags around the words that were typed, and put what
the CLI adds (outputs of commands, reminders, notifications) into texts of the same role.
"""

from __future__ import annotations

import re
from typing import Final

INTERRUPTED: Final = "[Request interrupted"
#: Texts that the CLI injects, in both agents.
INJECTED: Final = (
    "<local-command-",
    "<bash-stdout>",
    "<bash-stderr>",
    "<system-reminder>",
    "<task-notification>",
)
_COMMAND: Final = re.compile(r"<command-name>\s*(?P<name>[^<]*?)\s*</command-name>", re.DOTALL)
_COMMAND_ARGS: Final = re.compile(r"<command-args>\s*(?P<args>.*?)\s*</command-args>", re.DOTALL)
_SHELL: Final = re.compile(r"^\s*<bash-input>(?P<command>.*?)</bash-input>\s*$", re.DOTALL)
_BY_PERSON: Final = ("prompt", "command", "shell")


def text_row(text: str, kind: str, injected: tuple[str, ...] = INJECTED) -> tuple[str, str]:
    """Kind and readable text of one text of a user record of a kind; ``injected`` are the beginnings of injections."""
    if text.startswith(INTERRUPTED):
        return "notice", text
    if kind not in _BY_PERSON:
        return kind, text
    if text.lstrip().startswith(injected):
        return "context", text
    if shell := _SHELL.match(text):
        return "shell", f"! {shell['command']}"
    if command := _COMMAND.search(text) if text.lstrip().startswith("<command-") else None:
        args = _COMMAND_ARGS.search(text)
        return "command", f"{command['name']} {args['args'] if args else ''}".strip()
    return ("prompt" if kind == "command" else kind), text
