"""How does a session become a trajectory of the Agent Trajectory Interchange Format (ATIF v1.8)?

One JSON file per session, below a folder per provider; sub-agents are files of their own, and their parents refer to
them. What the steps are is told in :mod:`etl.export.steps`, what is left out in docs/exports.md.
"""

from __future__ import annotations

import json
import posixpath
import re
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from etl.export.place import private_file, replacing
from etl.export.steps import METRICS, added, metrics, plain, steps_of
from etl.export.views import Views
from etl.keys import digest64
from etl.store import inspect

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from etl.export.views import Selection

    Row = Mapping[str, Any]

KIND: Final = "atif"
SCHEMA_VERSION: Final = "ATIF-v1.8"
#: The format wants a version; a log need not state one.
_UNKNOWN: Final = "unknown"
#: What stands in a file's name as it is.
_UNSAFE: Final = re.compile(r"^\.|[^A-Za-z0-9._-]+")
_NAME_LENGTH: Final = 120
_OF_SESSION: Final = (
    *("realm", "native_id", "kind", "title", "status", "project", "cwd", "git_branch", "git_remote", "source_state"),
    "root_session_id",
)


class Written(NamedTuple):
    """Trajectories written, sessions that make none, and sessions left out only because they have no start."""

    trajectories: int
    untold: int
    undated: int


def export_atif(db: str, dest: str, selection: Selection) -> Written:
    """Writes the sessions of a store as trajectories below ``dest``; those without a step make none.

    Raises UsageError for a destination, a session or a provider that will not do, StoreMissing and its kin.
    """
    info = inspect(db)
    with replacing(dest, KIND) as building, Views(db, selection, str(building.spill)) as views:
        views.make("atif.told")
        paths = {row["session_id"]: path_of(row["session_id"]) for row in views.fetch("atif.written", {})}
        for session, trajectory in _trajectories(views, paths):
            with private_file(building.path(*paths[session].split("/"))) as file:
                file.write(json.dumps(trajectory, ensure_ascii=False, allow_nan=False).encode() + b"\n")
        written = Written(len(paths), views.sessions() - len(paths), views.undated())
        building.says = {
            "schema_version": SCHEMA_VERSION,
            "store_id": info.store_id,
            "load_id": info.last_load_id,
            "selection": {**selection.as_dict(), "without_start": written.undated},
            "without_steps": written.untold,
        }
    return written


def path_of(session_id: str) -> str:
    """Where a session's trajectory lies below the destination. A name that had to be changed, or that a file system
    might take for another one in lower case, ends in a digest.
    """
    world, _, native = session_id.partition(":")
    folder, name = (_UNSAFE.sub("_", part)[:_NAME_LENGTH] for part in (world, native))
    is_same = folder == world and name == native and native == native.lower()
    return f"{folder}/{name}.json" if is_same else f"{folder}/{name}-{digest64(session_id)}.json"


def _trajectories(views: Views, paths: Mapping[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for chunk in views.chunks():
        usage = _by_session(views.fetch("atif.usage", chunk), "session_id")
        links = _by_session(views.fetch("atif.links", chunk), "of")
        sessions = [row for row in views.fetch("atif.sessions", chunk) if row["session_id"] in paths]
        told = groupby(views.stream("atif.entries", chunk), key=lambda entry: entry["session_id"])
        name, entries = next(told, (None, iter(())))
        for session in sessions:
            own = session["session_id"]
            used, related = usage.get(own, []), Related(own, links.get(own, []), paths)
            if name == own:
                yield own, trajectory_of(session, list(entries), used, related)
                name, entries = next(told, (None, iter(())))
            else:
                yield own, trajectory_of(session, [], used, related)


def _by_session(rows: Sequence[Row], column: str) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[column], []).append(row)
    return found


class Related:
    """The sessions that one is related to, and where their trajectories lie."""

    def __init__(self, session: str, links: Sequence[Row], paths: Mapping[str, str]) -> None:
        self.links, self.paths = links, paths
        self.folder = posixpath.dirname(paths[session])

    def _path(self, session: str) -> str | None:
        there = self.paths.get(session)
        return None if there is None else posixpath.relpath(there, self.folder)

    def spawned(self, call_key: str) -> list[dict[str, Any]]:
        """References to the sub-agents of a call, as far as they are exported too."""
        return [
            {"trajectory_path": path, "extra": {"trajectory_id": link["other"]}}
            for link in self.links
            if link["is_origin"] and link["relation"] == "subagent" and link["via_call_key"] == call_key
            if (path := self._path(link["other"])) is not None
        ]

    def continuation(self) -> str | None:
        """The one trajectory that goes on with this one; None where there are several."""
        found = [
            path
            for link in self.links
            if link["is_origin"] and link["relation"] == "continuation" and (path := self._path(link["other"]))
        ]
        return found[0] if len(found) == 1 else None

    def as_list(self) -> list[dict[str, Any]]:
        """Every relation, for ``extra``."""
        names = {True: "to", False: "from"}
        listed = [
            {
                "relation": link["relation"],
                names[link["is_origin"]]: link["other"],
                "tool_call_id": link["via_call_key"],
                "trajectory_path": self._path(link["other"]),
            }
            for link in self.links
        ]
        return [{name: value for name, value in link.items() if value is not None} for link in listed]


def trajectory_of(session: Row, entries: Sequence[Row], usage: Sequence[Row], related: Related) -> dict[str, Any]:
    """The document of one session."""
    own = [call for call in usage if call["owner"] == "session"]
    apart = {
        "dead_branches": [call for call in own if call["branch"] != "live"],
        "whole_session": [call for call in own if call["branch"] == "live" and call["grain"] == "session"],
    }
    steps = steps_of(entries, [call for call in own if call["branch"] == "live" and call["grain"] != "session"])
    listed = [step.as_dict(number, related.spawned) for number, step in enumerate(steps, 1)]
    document = {
        "schema_version": SCHEMA_VERSION,
        "session_id": session["root_session_id"] or session["session_id"],
        "trajectory_id": session["session_id"],
        "agent": _agent(session),
        "steps": listed,
        "notes": _notes(apart, listed),
        "final_metrics": _final(session, apart, [call for call in usage if call["owner"] != "session"], len(listed)),
        "continued_trajectory_ref": related.continuation(),
        "extra": {
            **{name: session[name] for name in _OF_SESSION if session[name] is not None},
            **({"related": related.as_list()} if related.links else {}),
        },
    }
    return {name: value for name, value in document.items() if value is not None}


def _agent(session: Row) -> dict[str, Any]:
    said = {
        "name": session["provider"].replace("_", "-"),
        "version": session["tool_version"] or _UNKNOWN,
        "model_name": session["model"],
        "extra": {"entrypoint": session["entrypoint"]} if session["entrypoint"] else None,
    }
    return {name: value for name, value in said.items() if value is not None}


def _final(session: Row, apart: Mapping[str, Sequence[Row]], others: Sequence[Row], steps: int) -> dict[str, Any]:
    """The totals of the session, and of them what is in no step."""
    said = {
        "total_prompt_tokens": session["input_tokens"],
        "total_completion_tokens": session["output_tokens"],
        "total_cached_tokens": session["cached_tokens"],
        "total_cost_usd": plain(session["cost_usd"]),
        "total_steps": steps,
    }
    extra: dict[str, Any] = {
        "model_calls": session["model_calls"],
        "tool_calls": session["tool_calls"],
        "credits": plain(session["credits"]),
        "not_in_steps": {name: _sums(calls) for name, calls in apart.items() if calls} or None,
        "reviews_not_in_totals": _sums(others) if others else None,
    }
    return {name: value for name, value in said.items() if value is not None} | {
        "extra": {name: value for name, value in extra.items() if value is not None}
    }


def _sums(calls: Sequence[Row]) -> dict[str, Any]:
    sums = {name: added(calls, column) for name, column in {**METRICS, "credits": "credits"}.items()}
    return {"model_calls": len(calls), **{name: value for name, value in sums.items() if value is not None}}


def _notes(apart: Mapping[str, Sequence[Row]], steps: Sequence[Mapping[str, Any]]) -> str | None:
    """What a reader of the numbers should know."""
    said = []
    if metrics(apart["dead_branches"]):
        said.append("The totals include model calls of branches that were rewound, which are no steps.")
    if apart["whole_session"]:
        said.append("The log states usage for the session as a whole: it is in the totals and in no step.")
    if any(step.get("is_copied_context") for step in steps):
        said.append("Steps copied from another session carry no metrics: that session counts them.")
    if any("raw_envelopes" in step["extra"] for step in steps):
        said.append("Text that is transport JSON is left out; the steps say where.")
    return " ".join(said) or None
