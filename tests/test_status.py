"""Does `status` tell how fresh a store is, what its runs did, and what no adapter knew?"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from etl import pipeline
from etl.cli import run
from etl.errors import EXIT_OK, EXIT_STORE, StoreMissing
from etl.providers import qoder
from etl.providers.base import Environment
from etl.request import Report, Request
from etl.status import headline, read_status
from tests.loading import FIXTURES, HOST, KEY, rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event
    from etl.providers.base import RecordLike, Source

DEMO = FIXTURES / "demo"
FIRST = datetime(2026, 12, 1, 3, 0, tzinfo=UTC)
SECOND = datetime(2026, 12, 2, 3, 0, tzinfo=UTC)
NOW = datetime(2026, 12, 2, 5, 0, tzinfo=UTC)


def load(home: Path, db: Path, when: datetime = FIRST) -> Report:
    """A load by a clock that stands still; its state lies beside the store."""
    state = str(db.parent / "state")
    request = Request(str(db), HOST, Environment(str(home)), KEY, "0.0.0", state, ("qoder",))
    return pipeline.load(request, lambda: when)


def record(kind: str, version: str, ts: str | None) -> str:
    """A line of a transcript."""
    told: dict[str, Any] = {"type": kind, "sessionId": "s", "version": version}
    if ts is not None:
        message = {"role": "user", "content": "Hello"}
        told |= {"uuid": f"u-{ts}", "parentUuid": None, "timestamp": ts, "message": message}
    return json.dumps(told) + "\n"


def write(home: Path, name: str, *lines: str) -> Path:
    file = home / ".qoder" / "projects" / "-work" / f"{name}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(lines), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo tree, loaded one night, and looked at the next."""
    db = tmp_path_factory.mktemp("twice") / "s.duckdb"
    assert load(DEMO, db, FIRST).state == "published"
    assert load(DEMO, db, SECOND).state == "unchanged"
    return db


def test_a_run_that_changes_nothing_makes_the_store_fresh(twice: Path) -> None:
    status = read_status(str(twice), str(twice.parent / "state"), NOW)
    size = sum(path.stat().st_size for path in DEMO.rglob("*") if path.is_file())

    assert (status.looked_at, status.changed_at, status.age_seconds) == (SECOND, FIRST, 7200.0)
    assert (status.is_logged, status.size, status.version) == (True, twice.stat().st_size, "0.0.0")
    columns = ("state", "started_at", "seconds", "sources_seen", "sources_read", "sources_failed", "bytes_read")
    assert [tuple(row[name] for name in columns) for row in status.runs.to_pylist()] == [
        ("unchanged", SECOND, 0.0, 48, 0, 0, 0),
        ("published", FIRST, 0.0, 48, 48, 0, size),
    ]
    lines = list(headline(status))
    assert lines[1:] == [
        "looked at  2026-12-02 03:00:00 UTC, 2 hours ago\n",
        "changed    2026-12-01 03:00:00 UTC, 1 day ago\n",
    ]


def test_as_many_runs_as_asked_for_the_latest_first(twice: Path) -> None:
    runs = read_status(str(twice), str(twice.parent / "state"), NOW, runs=1).runs.to_pylist()

    assert [run["state"] for run in runs] == ["unchanged"]


def test_without_a_log_the_store_alone_tells(twice: Path, tmp_path: Path) -> None:
    status = read_status(str(twice), str(tmp_path), NOW)

    assert (status.looked_at, status.changed_at, status.is_logged) == (FIRST, FIRST, False)
    assert [run["state"] for run in status.runs.to_pylist()] == ["published"]
    assert "no log" in list(headline(status))[-1]


def test_a_log_is_read_whatever_stands_in_it(twice: Path, tmp_path: Path) -> None:
    ((store_id,),) = rows(twice, "select store_id from mart.store")
    good = {
        "load_id": "good",
        "state": "published",
        "started_at": "2026-12-02T04:00:00+00:00",
        "finished_at": "2026-12-02T04:01:30+00:00",
        "sources_seen": 50,
        "sources_read": 3,
        "sources_failed": 1,
        "bytes_read": 1000,
    }
    odd: list[Any] = [
        {"load_id": 5},
        [1],
        {
            "load_id": "odd",
            "state": 7,
            "started_at": "never",
            "finished_at": 3,
            "sources_read": "x",
            "bytes_read": 1e99,
        },
        {"load_id": "late", "started_at": "9999-12-31T23:59:59-14:00", "sources_failed": True, "bytes_read": 1 << 63},
    ]
    lines = [json.dumps(line).encode() for line in [*odd, good]]
    (tmp_path / f"log-{store_id}.jsonl").write_bytes(b"\n".join([b"\xff\xfe", b'{"load_id', *lines]) + b"\n")
    status = read_status(str(twice), str(tmp_path), NOW)

    runs = {run.pop("load_id"): run for run in status.runs.to_pylist()}
    assert runs["good"] == {
        "state": "published",
        "started_at": datetime(2026, 12, 2, 4, 0, tzinfo=UTC),
        "seconds": 90.0,
        "sources_seen": 50,
        "sources_read": 3,
        "sources_failed": 1,
        "bytes_read": 1000,
    }
    assert set(runs["odd"].values()) == set(runs["late"].values()) == {None}
    assert status.looked_at == datetime(2026, 12, 2, 4, 1, 30, tzinfo=UTC)


def test_what_no_adapter_knew_in_the_demo(twice: Path) -> None:
    """Line 25 of 27ee04fe… is a `workspace-insight`, after a record of 09:10:14.558; line 21 of 9b64b63c… holds a
    `future_transport_item` and has a time of its own. Both files are of version 1.1.76.
    """
    drift = read_status(str(twice), "", NOW).drift.to_pylist()
    names = dict(rows(twice, "select source_id, rel_path from facts.sources"))
    files = [Path(names[row.pop("source_id")]).name for row in drift]

    assert files == ["27ee04fe-13f9-4b0f-84e8-28fd7bd75dad.jsonl", "9b64b63c-5636-45dc-a5dd-b6bdf5d586dd.jsonl"]
    assert [tuple(row.values()) for row in drift] == [
        ("qoder", "record", "workspace-insight", "1.1.76", 1, 1, datetime(2026, 11, 2, 9, 10, 14, 558000, UTC), 25),
        ("qoder", "item", "future_transport_item", "1.1.76", 1, 1, datetime(2026, 10, 7, 14, 10, 0, 531000, UTC), 21),
    ]


def test_drift_is_told_by_version_with_the_earliest_place(tmp_path: Path) -> None:
    home = tmp_path / "home"
    day = "2026-05-{:02}T08:00:00.000Z".format
    odd = record("brand-new", "2.0.0", None)
    write(home, "a", record("user", "2.0.0", day(9)), odd, odd)
    write(
        home,
        "b",
        record("user", "2.0.0", day(4)),
        record("user", "2.0.0", day(5)),
        odd,
        record("user", "2.0.0", day(6)),
    )
    write(home, "c", record("brand-new", "3.0.0", None), record("user", "3.0.0", day(7)))
    write(home, "d", record("other-new", "3.0.0", None))
    db = tmp_path / "s.duckdb"
    load(home, db)
    names = {source: Path(path).stem for source, path in rows(db, "select source_id, rel_path from facts.sources")}
    drift = read_status(str(db), "", NOW).drift.to_pylist()

    columns = ("kind", "tool_version", "n", "sources", "first_seen", "line_no")
    assert [(*(row[name] for name in columns), names[row["source_id"]]) for row in drift] == [
        ("brand-new", "2.0.0", 3, 2, datetime(2026, 5, 5, 8, tzinfo=UTC), 3, "b"),
        ("brand-new", "3.0.0", 1, 1, datetime(2026, 5, 7, 8, tzinfo=UTC), 1, "c"),  # nothing dated before it
        ("other-new", None, 1, 1, None, 1, "d"),  # nothing dated at all, and no known record states a version
    ]


def test_sources_by_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, db = tmp_path / "home", tmp_path / "s.duckdb"
    line = record("user", "2.0.0", "2026-05-01T08:00:00.000Z")
    for name in ("stays", "goes", "fails"):
        write(home, name, line)
    (home / ".qoder" / "projects" / "-work" / "folder.jsonl").mkdir()
    provider = qoder.PROVIDER

    def adapt(source: Source, session: str, records: Iterator[RecordLike]) -> Iterator[Event]:
        if source.claim.native_id == "fails":
            raise KeyError(source.rel_path)
        return provider.adapt(source, session, records)

    monkeypatch.setattr(qoder, "PROVIDER", replace(provider, adapt=adapt))
    load(home, db)
    (home / ".qoder" / "projects" / "-work" / "goes.jsonl").unlink()
    report = load(home, db, SECOND)
    status = read_status(str(db), str(tmp_path / "state"), NOW)
    assert report.sources_gone == 1
    assert {row["state"]: row["sources"] for row in status.sources.to_pylist()} == {
        "present": 1,
        "gone": 1,
        "failed": 1,
        "unread": 1,
    }
    assert [run["sources_failed"] for run in status.runs.to_pylist()] == [1, 1]

    shutil.rmtree(home / ".qoder")
    load(home, db, NOW)
    after = {row["state"]: row["sources"] for row in read_status(str(db), "", NOW).sources.to_pylist()}
    assert after == {"gone": 1, "suspicious": 3}  # what is no longer there has not failed


def test_findings_are_those_of_the_last_load(tmp_path: Path) -> None:
    """Two records of double_encoded_twice hold a message that is still transport JSON after one decoding."""
    db = tmp_path / "s.duckdb"
    load(FIXTURES / "qoder" / "double_encoded_twice" / "tree", db)

    assert read_status(str(db), "", NOW).findings.to_pylist() == [{"check_name": "raw_envelopes", "n": 2}]


def test_no_store_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing):
        read_status(str(tmp_path / "none.duckdb"), "", NOW)


def test_the_command(twice: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert run(["status", "--db", str(twice), "--format", "json"]) == EXIT_OK
    told = json.loads(capfd.readouterr().out)
    assert told["changed_at"] == "2026-12-01T03:00:00Z"
    assert (told["sources"], told["findings"]) == ([{"provider": "qoder", "state": "present", "sources": 48}], [])
    assert [row["kind"] for row in told["drift"]] == ["workspace-insight", "future_transport_item"]

    assert run(["status", "--db", str(twice)]) == EXIT_OK
    text = capfd.readouterr().out
    for part in ("changed    2026-12-01 03:00:00 UTC", "Last runs\n\nload_id", "workspace-insight", "checks: none\n"):
        assert part in text

    assert run(["status", "--db", str(tmp_path / "none.duckdb")]) == EXIT_STORE


def test_a_clock_that_went_back_gives_no_negative_age(twice: Path) -> None:
    assert read_status(str(twice), "", FIRST - timedelta(days=1)).age_seconds == 0.0
