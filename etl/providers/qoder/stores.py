"""Which file of which of Qoder's stores is a path, below the folder of its store?

``projects`` holds transcripts, ``logs`` the run logs (segments, one per session and process run) and run manifests,
``audit`` one trail for all sessions, ``sessions`` dialogue of older builds, ``cache`` copies of dialogue without times,
and the IDE one SQLite file. Seen: all but ``audit``, ``sessions`` and ``cache``, which other readers of Qoder describe.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from etl.providers.base import Claim

if TYPE_CHECKING:
    from collections.abc import Callable

#: A session id in a file name: dots are allowed (task-10f8….session.execution), separators and spaces are not.
_SID: Final = r"[A-Za-z0-9._-]+"
_FLAT: Final = re.compile(rf"^(?P<sid>{_SID})\.jsonl\Z")
_MAIN: Final = re.compile(rf"^(?P<slug>[^/]+)/(?P<sid>{_SID})\.jsonl\Z")
_TRANSCRIPT: Final = re.compile(rf"^(?P<slug>[^/]+)/transcript/(?P<sid>{_SID})\.jsonl\Z")
_SUBAGENT: Final = re.compile(
    rf"^(?P<slug>[^/]+)/(?P<parent>{_SID})/subagents/(?:[^/]+/)*agent-(?P<agent>{_SID})(?P<end>\.jsonl|\.meta\.json)\Z"
)
_SIDECAR: Final = re.compile(rf"^(?:[^/]+/)?(?P<sid>{_SID})-session\.json\Z")
#: Beside a transcript; its values are encrypted in current versions, the whole file may be.
_STATE: Final = re.compile(rf"^[^/]+/(?P<sid>{_SID})/(?:compression-v2/)?state\.json\Z")
_IGNORED: Final = ("ai-stats/",)
_SEGMENT: Final = re.compile(rf"^(?:sessions/)?(?:[^/]+/)*(?P<sid>{_SID})/segments/[^/]+\.jsonl\Z")
_MANIFEST: Final = re.compile(r"^(?:[^/]+/)*runs/(?P<run>[^/]+)/manifest\.json\Z")
_HOME: Final = re.compile(rf"^(?:[^/]+/){{0,5}}(?P<sid>{_SID})\.(?P<end>jsonl|json)\Z")
_CACHE: Final = re.compile(
    rf"^(?:projects/)?(?P<project>[^/]+)/conversation-history/(?:(?P<task>{_SID})/)?(?P<sid>{_SID})\.jsonl\Z"
)

CACHE: Final = "qoder_cache"
#: The folders of a realm's configuration beside ``projects``, and the store kind of each.
STORES: Final[dict[str, str]] = {
    "logs": "qoder_logs",
    "audit": "qoder_audit",
    "sessions": "qoder_home_sessions",
    "cache": CACHE,
}


def claim_in_store(store_kind: str, path: str) -> Claim | None:
    """The claim on a path below the folder of a store; the realm is not known here."""
    grammar = _GRAMMARS.get(store_kind)
    return claim_in_projects(path, store_kind) if grammar is None else grammar(path)


def claim_in_projects(path: str, store_kind: str) -> Claim | None:
    """The grammar below a projects folder; the first form that fits wins."""
    if path.startswith(_IGNORED):
        return None
    if found := _SUBAGENT.match(path):
        kind = "jsonl" if found["end"] == ".jsonl" else "json"
        return Claim(store_kind, kind, f"agent-{found['agent']}", parent=found["parent"], agent=found["agent"])
    if found := _SIDECAR.match(path):
        return Claim(store_kind, "json", found["sid"])
    if found := _STATE.match(path):
        return Claim("qoder_state", "opaque", found["sid"], holds="many")
    found = _MAIN.match(path) or _FLAT.match(path) or _TRANSCRIPT.match(path)
    if found is None or found["sid"].startswith("agent-") or found["sid"] in (".", ".."):
        return None
    if found.re is _MAIN and found["slug"] == "transcript":
        return None
    return Claim("qoder_transcript" if found.re is _TRANSCRIPT else store_kind, "jsonl", found["sid"])


def _in_logs(path: str) -> Claim | None:
    if found := _SEGMENT.match(path):
        return Claim("qoder_logs", "jsonl", found["sid"], holds="log")
    if found := _MANIFEST.match(path):
        return Claim("qoder_logs", "json", found["run"], holds="many")
    return None


def _in_audit(path: str) -> Claim | None:
    return Claim("qoder_audit", "jsonl", "audit", holds="many") if path == "audit.jsonl" else None


def _in_sessions(path: str) -> Claim | None:
    found = _HOME.match(path)
    if found is None:
        return None
    if found["sid"].endswith("-session") and found["end"] == "json":
        return Claim("qoder_home_sessions", "json", found["sid"].removesuffix("-session"))
    return Claim("qoder_home_sessions", "jsonl" if found["end"] == "jsonl" else "messages", found["sid"])


def _in_cache(path: str) -> Claim | None:
    """A cache's ids are unique per project only: ``<project>/<task>`` is the id."""
    found = _CACHE.match(path)
    return None if found is None else Claim(CACHE, "jsonl", f"{found['project']}/{found['task'] or found['sid']}")


def _in_db(path: str) -> Claim | None:
    return Claim("qoder_ide_db", "sqlite", "local", holds="many") if path == "local.db" else None


_GRAMMARS: Final[dict[str, Callable[[str], Claim | None]]] = {
    "qoder_logs": _in_logs,
    "qoder_audit": _in_audit,
    "qoder_home_sessions": _in_sessions,
    CACHE: _in_cache,
    "qoder_ide_db": _in_db,
}
