"""When was a store last looked after, also by runs that changed nothing?

One line per run in ``<state>/log-<store id>.jsonl``: a run that finds nothing new writes nowhere else.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import orjson

from etl.errors import StoreError

if TYPE_CHECKING:
    from datetime import datetime

    from etl.request import Report


def append(state: str, report: Report, finished: datetime) -> None:
    """Adds the line of a run (0600). Without a state folder none is kept. Raises StoreError where it cannot be written
    (the store is as the run left it).
    """
    if not state:
        return
    line = {
        "load_id": report.load_id,
        "state": report.state,
        "started_at": report.started.isoformat(),
        "finished_at": finished.isoformat(),
        "sources_seen": report.sources_seen,
        "sources_read": report.sources_read,
        "sources_failed": report.sources_failed + len(report.quarantined),
        "bytes_read": report.bytes_read,
        "clean": report.clean,
    }
    try:
        os.makedirs(state, mode=0o700, exist_ok=True)
        descriptor = os.open(_path(state, report.store_id), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(orjson.dumps(line) + b"\n")
    except OSError as error:
        raise StoreError(
            f"the store is {report.state}, but the log below {state} cannot be written: {error.strerror}"
        ) from error


def read(state: str, store_id: str) -> list[dict[str, Any]]:
    """The lines of a store's log, oldest first; a damaged line is left out."""
    try:
        with open(_path(state, store_id), "rb") as file:
            lines = file.read().split(b"\n")
    except OSError:
        return []
    runs: list[dict[str, Any]] = []
    for line in lines:
        try:
            told = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(told, dict):
            runs.append(told)
    return runs


def _path(state: str, store_id: str) -> str:
    return os.path.join(state, f"log-{store_id}.jsonl")
