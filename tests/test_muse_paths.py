"""Are Muse Code's logs looked for where it writes them, and are exactly those claimed?"""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from etl.discover import discover
from etl.providers import get
from etl.providers.base import Environment, Root
from tests.loading import HOST, load_home, rows

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MUSE: Final = get("muse")
DAY: Final = "2026/09/21"
TOP: Final = "01d00000-0000-7000-8000-000000000001"
MID: Final = "01d00000-0000-7000-8000-000000000002"
LOW: Final = "01d00000-0000-7000-8000-000000000003"
SUB: Final = f"{DAY}/{TOP}/subagent/{MID}"


def _line(session: str, text: str = "hello", **more: Any) -> bytes:
    payload = {"kind": "run", "run_id": "r", "event": {"kind": "started", "prompt": text}}
    record = {"schema_version": 1, "id": "i", "stream": {"kind": "session", "id": session}, "sequence": 1}
    record |= {"recorded_at": 1_790_000_000_000_000, "payload_type": "runtime.session", "payload": payload}
    return json.dumps(record | more).encode() + b"\n"


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
@pytest.mark.parametrize(
    ("variables", "path", "base"),
    [
        ({}, "/h/.local/share/muse/sessions", "/h"),
        ({"XDG_DATA_HOME": "/x"}, "/x/muse/sessions", "/x"),
        ({"MUSE_HOME": "/m"}, "/m/sessions", "/m"),
        ({"MUSE_DATA_DIR": "/d"}, "/d/sessions", "/d"),
        ({"MUSE_HOME": "/m", "MUSE_DATA_DIR": "/d", "XDG_DATA_HOME": "/x"}, "/m/sessions", "/m"),
        ({"MUSE_HOME": "", "XDG_DATA_HOME": ""}, "/h/.local/share/muse/sessions", "/h"),
        ({"APPDATA": "/a", "XDG_CONFIG_HOME": "/c"}, "/h/.local/share/muse/sessions", "/h"),
    ],
)
def test_the_data_folder_is_the_same_on_every_system(
    system: str, variables: Mapping[str, str], path: str, base: str
) -> None:
    [root] = MUSE.roots(Environment("/h", variables, system))
    assert (root.path, root.base, root.store_kind, root.realm) == (path, base, "muse_log", None)


@pytest.mark.parametrize(
    ("path", "native", "parent"),
    [
        (f"{DAY}/{TOP}/session.jsonl", TOP, None),
        (f"{SUB}/session.jsonl", MID, TOP),
        (f"{SUB}/subagent/{LOW}/session.jsonl", LOW, MID),
        (f"{DAY}/{TOP}/.session.lock", None, None),
        (f"{DAY}/{TOP}/.session.jsonl.permission-init", None, None),
        (f"{DAY}/{TOP}/session.jsonl.bak", None, None),
        (f"{DAY}/{TOP}/other.jsonl", None, None),
        (f"{DAY}/{TOP.upper()}/session.jsonl", None, None),
        (f"{DAY}/not-an-id/session.jsonl", None, None),
        (f"2026/9/21/{TOP}/session.jsonl", None, None),
        (f"{TOP}/session.jsonl", None, None),
        (f"x/{DAY}/{TOP}/session.jsonl", None, None),
        (f"{DAY}/{TOP}/subagent/{MID}/other/session.jsonl", None, None),
        (f".msp-view-v1/{DAY}/{TOP}/session.jsonl", None, None),
        (f"{DAY}/{TOP}/approval-review/{MID}.jsonl", None, None),
        (f"{DAY}/{TOP}/tool-outputs/t/c-stdout.txt", None, None),
        ("session-index.db", None, None),
    ],
)
def test_only_logs_below_days_are_claimed(path: str, native: str | None, parent: str | None) -> None:
    claim = MUSE.claim(Root("/h/.local/share/muse/sessions", "/h", "muse_log"), path)
    assert (claim and claim.native_id, claim and claim.parent) == (native, parent)
    assert claim is None or not claim.certain  # another product of the same name is told by its first record


@pytest.mark.parametrize(
    ("root", "path", "native", "parent", "sniffed"),
    [
        ("/copy/sessions", f"{SUB}/session.jsonl", MID, TOP, False),
        (f"/copy/sessions/{DAY}/{TOP}", f"subagent/{MID}/session.jsonl", MID, TOP, False),
        (f"/copy/sessions/{SUB}/session.jsonl", "", MID, TOP, False),
        ("/copy", "somewhere/log.jsonl", "log", None, True),
        ("/copy", f".msp-view-v1/{DAY}/{TOP}/session.jsonl", None, None, False),
        (f"/copy/{DAY}/{TOP}/approval-review", f"{MID}.jsonl", None, None, False),
        ("/copy", "notes.txt", None, None, False),
    ],
)
def test_below_a_named_folder_the_day_is_looked_for_in_the_whole_path(
    root: str, path: str, native: str | None, parent: str | None, *, sniffed: bool
) -> None:
    claim = MUSE.claim(Root(root, root, "any"), path)
    assert (claim and claim.native_id, claim and claim.parent) == (native, parent)
    assert (claim is not None and claim.sniffed) == sniffed


def test_a_file_is_its_streams_session_whatever_its_name(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_bytes(_line(TOP))
    (tmp_path / "review.jsonl").write_bytes(_line(LOW, stream={"kind": "approval.review.runtime", "id": LOW}))
    (tmp_path / "agent.jsonl").write_bytes(b'{"type":"session_header","id":"x"}\n')
    folder = tmp_path / DAY / MID
    folder.mkdir(parents=True)
    (folder / "session.jsonl.gz").write_bytes(gzip.compress(_line(MID)))
    db = tmp_path / "store.duckdb"
    report = load_home(tmp_path / "nobody", db, muse=tmp_path)
    assert report.not_recognised == 2
    assert rows(db, "select session_id from sessions order by all") == [(f"muse:{TOP}",), (f"muse:{MID}",)]


def test_a_folder_of_another_name_is_noted(tmp_path: Path) -> None:
    folder = tmp_path / ".local/share/muse/sessions" / DAY / MID
    folder.mkdir(parents=True)
    (folder / "session.jsonl").write_bytes(_line(TOP))
    db = tmp_path / "store.duckdb"
    load_home(tmp_path, db)
    assert rows(db, "select session_id from sessions") == [(f"muse:{TOP}",)]
    assert rows(db, "select kind, subtype, summary from events") == [("format", "id_mismatch", MID)]


def test_a_newer_schema_is_read_and_noted(tmp_path: Path) -> None:
    folder = tmp_path / ".local/share/muse/sessions" / DAY / TOP
    folder.mkdir(parents=True)
    (folder / "session.jsonl").write_bytes(_line(TOP, schema_version=2) + _line(TOP, "more", schema_version=2, id="j"))
    db = tmp_path / "store.duckdb"
    load_home(tmp_path, db)
    assert rows(db, "select kind, subtype, summary from events where kind = 'format'") == [
        ("format", "schema_version", "2")
    ]
    assert rows(db, "select text from dialogue order by seq") == [("hello",), ("more",)]


def test_a_log_may_end_in_anything(tmp_path: Path) -> None:
    """A byte order mark, CRLF, glued records, a frame in the middle of them, and a torn end."""
    folder = tmp_path / ".local/share/muse/sessions" / DAY / TOP
    folder.mkdir(parents=True)
    inside = [
        {"child_index": n, "record_json": _line(TOP, f"framed {n}", id=f"f{n}", sequence=4 + n).decode()}
        for n in (1, 0)
    ]
    frame = json.dumps({"retained_frame": "x", "children": inside}).encode()
    glued = frame + _line(TOP, "glued", id="g", sequence=6).strip()
    lines = [
        b"\xef\xbb\xbf" + _line(TOP).strip() + b"\r",
        _line(TOP, "second", id="b", sequence=2).strip() + b"\r",
        b"",
        glued,
    ]
    (folder / "session.jsonl").write_bytes(b"\n".join(lines) + b'\n{"schema_version":1,"payl')
    db = tmp_path / "store.duckdb"
    report = load_home(tmp_path, db)
    assert (report.quarantined, report.sources_failed) == ({}, 0)
    assert rows(db, "select text, line_no, child from dialogue order by seq") == [
        ("hello", 1, 0),
        ("second", 2, 0),
        ("framed 0", 4, 0),
        ("framed 1", 4, 1),
        ("glued", 4, 2),
    ]
    assert rows(db, "select sum(n)::bigint, count(*) from record_census where unit = 'line'")[0][0] == 5


def test_discovery_finds_the_logs_of_a_home(tmp_path: Path) -> None:
    base = tmp_path / ".local/share/muse/sessions"
    for path in (f"{DAY}/{TOP}", SUB, f".msp-view-v1/{TOP}"):
        (base / path).mkdir(parents=True)
        (base / path / "session.jsonl").write_bytes(_line(TOP))
    found = discover(MUSE, Environment(str(tmp_path)), HOST).found
    assert [item.source.rel_path for item in found] == [
        f".local/share/muse/sessions/{DAY}/{TOP}/session.jsonl",
        f".local/share/muse/sessions/{SUB}/session.jsonl",
    ]
