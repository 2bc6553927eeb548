"""Where are Claude Code's session files, and which of its files is a path?

One tree of projects per configuration folder: ``<slug>/<session>.jsonl`` is a session, ``<slug>/<session>/subagents/``
holds its sub-agents (those of a workflow one folder deeper) with a meta document each, ``<slug>/agent-<id>.jsonl`` is a
sub-agent of older versions. The slug is a folder's name with every other sign replaced: it is never decoded.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from etl.providers.base import Claim, Root

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.providers.base import Environment

STORE: Final = "claude_projects"
#: Outputs of tools that were too long for the transcript, a file each.
SPILLED: Final = "claude_tool_results"
#: What was typed, of all sessions, outside the tree of projects.
HISTORY: Final = "claude_history"

_SID: Final = r"[A-Za-z0-9._-]+"
_SUBAGENT: Final = re.compile(
    rf"(?:\A|/)(?P<parent>{_SID})/subagents/(?:[^/]+/)*agent-(?P<agent>{_SID}?)(?P<end>\.jsonl|\.meta\.json)\Z"
)
#: The transcript holds the beginning of such an output, and the path of the file.
_SPILLED: Final = re.compile(rf"(?:\A|/)(?P<sid>{_SID})/tool-results/(?P<name>[^/]+)\Z")
_OLD_AGENT: Final = re.compile(rf"(?:\A|/)agent-(?P<agent>{_SID})\.jsonl\Z")
_MAIN: Final = re.compile(rf"(?:\A|/)(?P<sid>{_SID})\.jsonl\Z")
_IN_PROJECTS: Final = re.compile(r"/projects/(?P<rest>[^/]+/.*)\Z")


def roots(environment: Environment) -> tuple[Root, ...]:
    """The default folders: the two places a home has, those of ``CLAUDE_CONFIG_DIR`` (a list, separated by commas)
    instead, and the desktop application's.
    """
    return tuple(_roots(environment))


def _roots(environment: Environment) -> Iterator[Root]:
    home, variables = environment.home, environment.variables
    config_home = variables.get("XDG_CONFIG_HOME") or f"{home}/.config"
    named = [folder.strip() for folder in (variables.get("CLAUDE_CONFIG_DIR") or "").split(",")]
    configs = [folder for folder in named if folder] or [f"{home}/.claude", f"{config_home}/claude"]
    for config in configs:
        whole = f"{home}/{config[2:]}" if config.startswith("~/") else config
        base = home if whole.startswith(f"{home}/") else whole
        yield Root(f"{whole.rstrip('/')}/projects", base, STORE)
    for desktop in _desktop(environment, config_home):
        yield Root(f"{desktop}/local-agent-mode-sessions", desktop, "claude_desktop")


def _desktop(environment: Environment, config_home: str) -> Iterator[str]:
    home, variables = environment.home, environment.variables
    if environment.system == "darwin":
        yield f"{home}/Library/Application Support/Claude"
    elif environment.system == "win32":
        yield f"{variables.get('APPDATA') or f'{home}/AppData/Roaming'}/Claude"
    else:
        yield f"{config_home}/Claude"


def claim(root: Root, path: str) -> Claim | None:
    """The claim on a path below a root (forward slashes); None for what is no session file.

    The desktop application keeps a tree of projects in a folder of each of its sessions. Below a folder that the user
    named the grammar is tried on the whole path; where it says nothing the records must confirm a file's claim.
    """
    if root.store_kind == STORE:
        return _in_projects(path)
    if root.store_kind == "claude_desktop":
        found = _IN_PROJECTS.search(f"/{path}")
        return None if found is None else _in_projects(found["rest"])
    whole = f"{root.path}/{path}" if path else root.path
    if whole.endswith("/history.jsonl") and "/projects/" not in whole:
        return Claim(HISTORY, "jsonl", "history", certain=False, holds="many")
    if found := _IN_PROJECTS.search(whole):
        marked = _in_projects(found["rest"])
        return None if marked is None else replace(marked, certain="/.claude/" in whole and marked.certain)
    tail = _in_projects(whole)
    if tail is None or tail.container == "text":
        return None
    return replace(tail, certain=False, sniffed=tail.parent is None)


def _in_projects(path: str) -> Claim | None:
    """The grammar below a folder of projects; the first form that fits wins."""
    if found := _SUBAGENT.search(path):
        container = "jsonl" if found["end"] == ".jsonl" else "json"
        return Claim(STORE, container, f"agent-{found['agent']}", parent=found["parent"], agent=found["agent"])
    if found := _SPILLED.search(path):
        return Claim(SPILLED, "text", found["sid"], agent=found["name"], holds="many")
    if found := _OLD_AGENT.search(path):
        return Claim(STORE, "jsonl", f"agent-{found['agent']}", agent=found["agent"], certain=False)
    found = _MAIN.search(path)
    if found is None or found["sid"] in (".", "..") or "/subagents/" in f"/{path}":
        return None
    return Claim(STORE, "jsonl", found["sid"])
