"""Where are Codex's rollout files, and which of its files is a path?

A rollout is one thread: ``sessions/YYYY/MM/DD/rollout-<local time>-<thread id>.jsonl``, or the same name in
``archived_sessions``; idle ones are compressed (``.jsonl.zst``). ``session_index.jsonl`` holds titles of threads,
``history.jsonl`` what was typed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from etl.providers.base import Claim, Root

if TYPE_CHECKING:
    from etl.providers.base import Environment

SESSIONS: Final = "codex_sessions"
ARCHIVED: Final = "codex_archived"
INDEX: Final = "codex_index"
HISTORY: Final = "codex_history"

_ROLLOUT: Final = re.compile(r"(?:\A|/)rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-(?P<id>[A-Za-z0-9._-]+)\.jsonl\Z")
_ANY: Final = re.compile(r"(?:\A|/)(?P<id>[^/]+)\.jsonl\Z")


def roots(environment: Environment) -> tuple[Root, ...]:
    """The default places: two folders and the index of titles below ``CODEX_HOME``, else below ``~/.codex``."""
    home = environment.home
    codex = environment.variables.get("CODEX_HOME") or f"{home}/.codex"
    codex = (f"{home}/{codex[2:]}" if codex.startswith("~/") else codex).rstrip("/")
    base = home if codex.startswith(f"{home}/") else codex
    return (
        Root(f"{codex}/sessions", base, SESSIONS),
        Root(f"{codex}/archived_sessions", base, ARCHIVED),
        Root(f"{codex}/session_index.jsonl", base, INDEX),
    )


def claim(root: Root, path: str) -> Claim | None:
    """The claim on a path below a root (forward slashes); None for what is no session file.

    Below a folder that the user named, a rollout's name is claimed as it is; of any other the records must confirm it.
    """
    whole = f"{root.path}/{path}" if path else root.path
    name = whole.rpartition("/")[2]
    if name == "session_index.jsonl":
        return Claim(INDEX, "jsonl", "session_index", holds="many", certain=root.store_kind == INDEX)
    if name == "history.jsonl":
        is_history = root.store_kind == "any" and "/.codex/" in whole
        return Claim(HISTORY, "jsonl", "history", holds="many", certain=False) if is_history else None
    kind = ARCHIVED if "/archived_sessions/" in f"/{whole}" else SESSIONS
    if found := _ROLLOUT.search(whole):
        return Claim(kind, "jsonl", found["id"], certain=root.store_kind != "any")
    if root.store_kind == "any" and (found := _ANY.search(whole)):
        return Claim(kind, "jsonl", found["id"], certain=False, sniffed=True)
    return None
