"""Which files are evidence of a Bridge, and of which batch, run and turn?

There is no default location: the investigation writes into the repository it runs in
(``test-artifacts/boundary-investigation``), so a root is always named. The name of a batch is its time stamp.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from etl.providers.base import Claim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from etl.providers.base import Environment, Root

STAMP: Final = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z"
_BATCH: Final = re.compile(rf"(?:^|/)(?P<stamp>{STAMP})/(?P<name>[^/]+)\Z")
_TURN: Final = re.compile(r"run-(?P<run>\d{1,9})-turn-(?P<turn>\d{1,9})(?P<transport>-transport)?\.jsonl\Z")
_REPLAY: Final = re.compile(r"(?P<stem>previous-run(?P<run>\d{0,9})-replay)(?P<end>\.jsonl|-summary\.json)\Z")
_NATIVE: Final = re.compile(rf"(?P<stamp>{STAMP})/run-(?P<run>\d+)-turn-(?P<turn>\d+)\Z")

#: Store kinds, and how each is read.
DIAGNOSTICS, TRANSPORT, REPLAY, ANY = "bridge_diagnostics", "bridge_transport", "bridge_replay", "bridge_any"
SUMMARY, AUDIT, AUDIT_TOTALS = "bridge_summary", "bridge_audit", "bridge_audit_totals"
REPLAY_SUMMARY, PROVENANCE, LOG = "bridge_replay_summary", "bridge_provenance", "bridge_log"
_DOCUMENTS: Final = {
    "summary.json": (SUMMARY, "json_array"),
    "boundary-audit.json": (AUDIT, "json_array"),
    "boundary-summary.json": (AUDIT_TOTALS, "json"),
}
_LOOSE: Final = {
    "previous-run-provenance.json": (PROVENANCE, "json"),
    "real-provider-summary.json": (SUMMARY, "json_array"),
    "real-provider-debug.log": (LOG, "lines"),
}


class Place(NamedTuple):
    """The batch, run and turn that a file's name states; None where it states none."""

    batch_id: str
    run: int | None = None
    turn: int | None = None


def roots(_environment: Environment) -> Sequence[Root]:
    """None: nobody can say where a Bridge's repository stands (``--root qoder_bridge=PATH``)."""
    return ()


def claim(root: Root, path: str) -> Claim | None:
    """The claim on a path below a root (forward slashes). Logs and JSONL files of other names must show by their
    records that they are evidence; every other name is left alone (``latest-live-directory.txt`` is a pointer).
    """
    whole = f"{root.path}/{path}" if path else root.path
    name = whole.rpartition("/")[2]
    in_batch = _BATCH.search(whole)
    if in_batch is not None and (found := _of_batch(in_batch["stamp"], name)) is not None:
        return found
    if replay := _REPLAY.match(name):
        is_run = replay["end"] == ".jsonl"
        return Claim(REPLAY if is_run else REPLAY_SUMMARY, "jsonl" if is_run else "json", replay["stem"])
    if name in _LOOSE:
        kind, container = _LOOSE[name]
        return Claim(kind, container, name.rpartition(".")[0])
    if name.endswith((".jsonl", ".log")):
        stem, _, ending = name.rpartition(".")
        kind, container = (ANY, "jsonl") if ending == "jsonl" else (LOG, "lines")
        return Claim(kind, container, stem, certain=False, sniffed=True)
    return None


def _of_batch(stamp: str, name: str) -> Claim | None:
    if turn := _TURN.match(name):
        kind = TRANSPORT if turn["transport"] else DIAGNOSTICS
        return Claim(kind, "jsonl", f"{stamp}/run-{int(turn['run'])}-turn-{int(turn['turn'])}")
    if name in _DOCUMENTS:
        kind, container = _DOCUMENTS[name]
        return Claim(kind, container, stamp)
    return None


def place_of(claimed: Claim) -> Place:
    """What the name of a claimed file says of its place."""
    found = _NATIVE.match(claimed.native_id)
    if found is not None:
        return Place(found["stamp"], int(found["run"]), int(found["turn"]))
    replay = _REPLAY.match(f"{claimed.native_id}.jsonl")
    if replay is not None:
        return Place(claimed.native_id, int(replay["run"]) if replay["run"] else 1, 1)
    return Place(claimed.native_id)
