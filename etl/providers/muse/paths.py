"""Where are Muse Code's logs, and which paths are sessions?

Sessions stand in folders by day, named by nothing but their id: ``sessions/2026/10/01/<id>/session.jsonl``, sub-agents
below their parent. The data folder is that of XDG on every system, macOS and Windows included.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from etl.providers.base import Claim, Root

if TYPE_CHECKING:
    from collections.abc import Sequence

    from etl.providers.base import Environment

_ID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_DAY: Final = r"\d{4}/\d{2}/\d{2}"
_SESSION: Final = re.compile(
    rf"{_DAY}/(?P<top>{_ID})(?P<above>(?:/subagent/{_ID})*?)(?:/subagent/(?P<child>{_ID}))?/session\.jsonl\Z"
)
#: The materialised view of all sessions, which repeats them, and the approval reviewer's logs, whose clock is made up.
_LEFT_OUT: Final = re.compile(r"(?:^|/)(?:\.msp-view-v1|approval-review)/")


def roots(environment: Environment) -> Sequence[Root]:
    """The default root. ``MUSE_HOME`` and ``MUSE_DATA_DIR`` name Muse's own data folder, ``XDG_DATA_HOME`` that of all
    programs; an empty one is none.
    """
    variables = environment.variables
    own = variables.get("MUSE_HOME") or variables.get("MUSE_DATA_DIR")
    if own:
        return [Root(f"{own}/sessions", own, "muse_log")]
    shared = variables.get("XDG_DATA_HOME")
    if shared:
        return [Root(f"{shared}/muse/sessions", shared, "muse_log")]
    return [Root(f"{environment.home}/.local/share/muse/sessions", environment.home, "muse_log")]


def claim(root: Root, path: str) -> Claim | None:
    """The claim on a path below a root; None for what is no session's log. No claim is certain: another product of the
    same name writes other records, so the first record has its say.

    Below a folder that the user named, the day folders are looked for in the whole path; a file that stands below none
    is one if its records say so.
    """
    if root.store_kind != "any":
        return None if _LEFT_OUT.search(path) else _dated(_SESSION.match(path))
    whole = f"{root.path}/{path}" if path else root.path
    if _LEFT_OUT.search(whole):
        return None
    if found := _dated(_SESSION.search(whole)):
        return found
    if whole.endswith(".jsonl"):
        name = whole.rpartition("/")[2].removesuffix(".jsonl")
        return Claim("muse_log", "jsonl", name, certain=False, sniffed=True)
    return None


def _dated(found: re.Match[str] | None) -> Claim | None:
    if found is None:
        return None
    child = found["child"]
    if child is None:
        return Claim("muse_log", "jsonl", found["top"], certain=False)
    parent = found["above"][-36:] or found["top"]
    return Claim("muse_log", "jsonl", child, parent=parent, agent=child, certain=False)
