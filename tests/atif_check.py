"""Is a folder of trajectories what the format asks for, and does it say what the store says?

The package ``atif`` checks each document by itself; this looks at what no model of one document can see.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Any

from atif import Trajectory

from tests.loading import table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Metrics of steps, totals of the document, and columns of ``sessions`` (cached tokens have none).
TOTALS = {
    "prompt_tokens": ("total_prompt_tokens", "input_tokens"),
    "completion_tokens": ("total_completion_tokens", "output_tokens"),
    "cost_usd": ("total_cost_usd", "cost_usd"),
    "cached_tokens": ("total_cached_tokens", None),
}


def documents(folder: Path) -> dict[Path, dict[str, Any]]:
    """Every trajectory of an export by its file."""
    return {path: json.loads(path.read_bytes()) for path in sorted(folder.glob("*/*.json"))}


def faults(folder: Path, db: Path) -> list[str]:
    """What is wrong with an export of a whole store."""
    found = documents(folder)
    store = _Store(db)
    said = []
    for path, document in found.items():
        own = document["trajectory_id"]
        Trajectory.model_validate(document)
        wrong = (
            *_shape(document),
            *_order(document, store),
            *_totals(document, store.sessions[own]),
            *_complete(document, store),
            *_references(path, document, found),
        )
        said += [f"{path.relative_to(folder)}: {fault}" for fault in wrong]
    return said


class _Store:
    """What the store says, by session."""

    def __init__(self, db: Path) -> None:
        self.sessions = {row["session_id"]: row for row in table(db, "from sessions")}
        self.texts = _grouped(table(db, "select session_id, text, raw_envelope from dialogue"))
        self.calls = _grouped(table(db, "select session_id, call_key from tool_calls where branch = 'live'"))
        self.times: dict[str, list[tuple[int, datetime]]] = {}
        for row in table(
            db,
            """select distinct source_id, line_no, ts from (
                select source_id, line_no, ts from facts.dialogue union all
                select source_id, line_no, ts from facts.tool_requests union all
                select source_id, line_no, ts from facts.records union all
                select source_id, line_no, ts from facts.model_calls
            ) where ts is not null order by all""",
        ):
            self.times.setdefault(row["source_id"], []).append((row["line_no"], row["ts"]))

    def stepped_back(self, source_id: str, line_no: int, ts: datetime) -> bool:
        """Does the file itself state this time at this line, and a later one before it?"""
        lines = self.times.get(source_id, [])
        return (line_no, ts) in lines and any(when > ts for line, when in lines if line < line_no)


def _grouped(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["session_id"], []).append(row)
    return found


def _nulls(value: object, place: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if place.endswith("/arguments"):
                return  # what a call was asked for may hold anything
            yield from _nulls(inner, f"{place}/{key}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _nulls(inner, f"{place}/{number}")
    elif value is None:
        yield place


def _shape(document: dict[str, Any]) -> Iterator[str]:
    steps = document["steps"]
    if [step["step_id"] for step in steps] != list(range(1, len(steps) + 1)) or not steps:
        yield "the ids of steps are not 1, 2, 3, …"
    if document["final_metrics"]["total_steps"] != len(steps):
        yield "total_steps is not their number"
    yield from (f"null at {place}" for place in _nulls(document))
    asked = Counter(call["tool_call_id"] for step in steps for call in step.get("tool_calls", ()))
    yield from (f"call {key} stands {n} times" for key, n in asked.items() if n > 1)
    for step in steps:
        own = {call["tool_call_id"] for call in step.get("tool_calls", ())}
        given = Counter(result["source_call_id"] for result in step.get("observation", {}).get("results", ()))
        yield from (f"step {step['step_id']}: a result of {key}, not called there" for key in given if key not in own)
        yield from (f"step {step['step_id']}: {n} results of {key}" for key, n in given.items() if n > 1)


def _order(document: dict[str, Any], store: _Store) -> Iterator[str]:
    last = None
    for step in document["steps"]:
        if "timestamp" not in step:
            continue
        ts = datetime.fromisoformat(step["timestamp"])
        if (
            last is not None
            and ts < last
            and not store.stepped_back(step["extra"]["source_id"], step["extra"]["line_no"], ts)
        ):
            yield f"step {step['step_id']} is before the one before it"
        last = ts


def _totals(document: dict[str, Any], session: dict[str, Any]) -> Iterator[str]:
    final = document["final_metrics"]
    parts = [step["metrics"] for step in document["steps"] if "metrics" in step]
    parts += final["extra"].get("not_in_steps", {}).values()
    for metric, (total, column) in TOTALS.items():
        values = [part[metric] for part in parts if metric in part]
        stated = final.get(total)
        if column is not None and stated != (None if session[column] is None else type(stated or 0)(session[column])):
            yield f"{total} is {stated}, the session says {session[column]}"
        if (stated is None) != (not values) or abs((stated or 0) - sum(values)) > 1e-9:
            yield f"{total} is {stated}, the steps say {values}"
    for name in ("model_calls", "tool_calls"):
        if final["extra"][name] != session[name]:
            yield f"{name} is {final['extra'][name]}, the session says {session[name]}"


def _complete(document: dict[str, Any], store: _Store) -> Iterator[str]:
    own = document["trajectory_id"]
    fresh = [step for step in document["steps"] if not step.get("is_copied_context")]
    told = Counter(
        piece for step in fresh for piece in (step["message"], step.get("reasoning_content", "")) if piece != ""
    )
    everything = "\n\n".join(told)
    for row in store.texts.get(own, ()):
        if row["raw_envelope"] and row["text"] in told:
            yield f"a raw envelope is a message: {row['text'][:60]}"
        elif not row["raw_envelope"] and row["text"] not in everything:
            yield f"nobody says: {row['text'][:60]}"
    stored = sum(len(row["text"]) for row in store.texts.get(own, ()) if not row["raw_envelope"])
    longest = sum(len(piece) * n for piece, n in told.items())
    if not stored <= longest <= stored + 2 * len(store.texts.get(own, ())):
        yield f"{longest} characters are said, {stored} are stored"
    called = sorted(call["tool_call_id"] for step in fresh for call in step.get("tool_calls", ()))
    if called != sorted(row["call_key"] for row in store.calls.get(own, ())):
        yield "the calls are not those of the session"


def _references(path: Path, document: dict[str, Any], found: dict[Path, dict[str, Any]]) -> Iterator[str]:
    for step in document["steps"]:
        for result in step.get("observation", {}).get("results", ()):
            for reference in result.get("subagent_trajectory_ref", ()):
                target = found.get((path.parent / reference["trajectory_path"]).resolve())
                if target is None or target["trajectory_id"] != reference["extra"]["trajectory_id"]:
                    yield f"step {step['step_id']}: {reference['trajectory_path']} is not the trajectory it names"
                elif document["trajectory_id"] not in {
                    link.get("from") for link in target["extra"]["related"] if link["relation"] == "subagent"
                }:
                    yield f"step {step['step_id']}: {reference['trajectory_path']} does not know who spawned it"
