"""Do the views leave a store as Parquet files that say the same, in one step, and the same again?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from etl.cli import run
from etl.errors import UsageError
from etl.export import parquet, place, views
from etl.export.parquet import export_parquet
from etl.export.views import DEFAULT, Selection
from tests.export_files import every_case, schema_of
from tests.loading import load_home, rows

if TYPE_CHECKING:
    from etl.export.views import Views

PROMISE = Path(__file__).parents[1] / "docs" / "export-schema.json"


def qoder_line(session: str, ts: str | None, text: str = "Hello") -> str:
    told: dict[str, Any] = {"type": "user", "sessionId": session, "uuid": f"u-{session}", "parentUuid": None}
    if ts is not None:
        told["timestamp"] = ts
    return json.dumps(told | {"message": {"role": "user", "content": text}}) + "\n"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Qoder sessions s1 of 31 January, s2 of 1 February and s3 of no day; a Claude Code session c1 of 1 February."""
    home = tmp_path_factory.mktemp("home")
    lines = {
        ".qoder/projects/-w/s1.jsonl": qoder_line("s1", "2026-01-31T23:59:59Z"),
        ".qoder/projects/-w/s2.jsonl": qoder_line("s2", "2026-02-01T00:00:00Z") + "no json\n",
        ".qoder/projects/-w/s3.jsonl": qoder_line("s3", None),
        ".claude/projects/-w/c1.jsonl": qoder_line("c1", "2026-02-01T12:00:00Z"),
    }
    for name, text in lines.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text, encoding="utf-8")
    db = home / "s.duckdb"
    load_home(home, db)
    return db


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of every case of every provider."""
    folder = tmp_path_factory.mktemp("large")
    load_home(every_case(folder / "home"), folder / "s.duckdb")
    return folder / "s.duckdb"


@pytest.fixture(scope="module")
def exported(large: Path) -> Path:
    folder = large.parent / "exported"
    export_parquet(str(large), str(folder), Selection())
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def sessions_of(folder: Path) -> list[str]:
    read = ds.dataset(folder / "sessions", partitioning="hive").to_table(columns=["session_id"])
    return sorted(read.column("session_id").to_pylist())


# --- what is written ---


def test_the_columns_and_types_are_the_promised_ones(exported: Path) -> None:
    """One that changes on purpose: `python -m tests.export_files > docs/export-schema.json`, and a CHANGELOG line."""
    assert schema_of(exported) == json.loads(PROMISE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("view", DEFAULT)
def test_every_row_of_a_view_is_in_its_files_and_no_other(large: Path, exported: Path, view: str) -> None:
    columns = ", ".join(f'"{row[0]}"' for row in rows(large, f"describe from {view}"))
    written = f"select {columns} from read_parquet('{exported}/{view}/**/*.parquet', hive_partitioning = true)"  # noqa: S608
    assert rows(large, f"select count(*) from {view}") == rows(large, f"select count(*) from ({written})")  # noqa: S608
    assert rows(large, f"from {view} except all ({written})") == []
    assert rows(large, f"({written}) except all from {view}") == []


def test_something_is_in_every_folder_of_every_kind(large: Path) -> None:
    counts = {view: rows(large, f"select count(*) from {view}")[0][0] for view in DEFAULT}  # noqa: S608
    assert min(counts.values()) > 0, counts


@pytest.mark.parametrize("view", DEFAULT)
def test_three_readers_read_the_same(exported: Path, view: str) -> None:
    engine = duckdb.sql(f"from read_parquet('{exported}/{view}/**/*.parquet', hive_partitioning = true)")
    arrow = ds.dataset(exported / view, partitioning="hive")
    frame = pl.scan_parquet(exported / view, hive_partitioning=True)
    assert engine is not None
    assert sorted(engine.columns) == sorted(arrow.schema.names) == sorted(frame.collect_schema().names())
    assert len(engine) == arrow.count_rows() == frame.select(pl.len()).collect().item()


def test_rows_lie_in_the_month_their_session_began_in(small: Path, tmp_path: Path) -> None:
    export_parquet(str(small), str(tmp_path / "out"), Selection())
    assert sorted(name for name in files(tmp_path / "out") if name.startswith(("dialogue", "sessions", "events"))) == [
        "dialogue/provider=claude_code/month=2026-02/part-0.parquet",
        "dialogue/provider=qoder/month=2026-01/part-0.parquet",
        "dialogue/provider=qoder/month=2026-02/part-0.parquet",
        "dialogue/provider=qoder/month=__HIVE_DEFAULT_PARTITION__/part-0.parquet",
        "events/part-0.parquet",  # no rows, and every column
        "sessions/provider=claude_code/part-0.parquet",
        "sessions/provider=qoder/part-0.parquet",
    ]
    said = (
        pl.scan_parquet(tmp_path / "out" / "dialogue", hive_partitioning=True).select("session_id", "month").collect()
    )
    assert sorted(said.rows(), key=str) == [
        ("claude_code:c1", "2026-02"),
        ("qoder:s1", "2026-01"),
        ("qoder:s2", "2026-02"),
        ("qoder:s3", None),
    ]
    for found in (
        ds.dataset(tmp_path / "out" / "events", partitioning="hive").schema.names,
        pl.scan_parquet(tmp_path / "out" / "events", hive_partitioning=True).collect_schema().names(),
    ):
        assert set(found) == {row[0] for row in rows(small, "describe from events")} | {"month"}


@pytest.mark.parametrize(
    ("selection", "chosen", "without_start"),
    [
        (Selection(), ["claude_code:c1", "qoder:s1", "qoder:s2", "qoder:s3"], 0),
        (Selection(("qoder",)), ["qoder:s1", "qoder:s2", "qoder:s3"], 0),
        (Selection(("qoder", "claude_code"), since=date(2026, 2, 1)), ["claude_code:c1", "qoder:s2"], 1),
        (Selection(until=date(2026, 1, 31)), ["qoder:s1"], 1),
        (Selection(until=date(2026, 2, 1)), ["claude_code:c1", "qoder:s1", "qoder:s2"], 1),
        (Selection(("claude_code",), date(2026, 1, 31), date(2026, 1, 31)), [], 0),
    ],
)
def test_sessions_are_chosen_by_provider_and_day(
    small: Path, tmp_path: Path, selection: Selection, chosen: list[str], without_start: int
) -> None:
    counted = export_parquet(str(small), str(tmp_path / "out"), selection).rows
    assert sessions_of(tmp_path / "out") == chosen
    assert counted["sessions"] == counted["dialogue"] == len(chosen)
    # files are chosen by provider alone
    assert counted["sources"] == {(): 4, ("qoder",): 3, ("claude_code",): 1}.get(selection.providers, 4)
    assert counted["rejects"] == (0 if selection.providers == ("claude_code",) else 1)
    said = json.loads((tmp_path / "out" / "_sessionmart.json").read_text(encoding="utf-8"))
    assert said["selection"]["without_start"] == without_start


def test_views_of_any_name_can_be_written_beside(small: Path, tmp_path: Path) -> None:
    written = export_parquet(
        str(small), str(tmp_path), Selection(("qoder",)), ["last_turn", "source_summary", "turns"]
    ).rows
    assert list(written) == ["last_turn", "source_summary", "turns"]
    assert pq.read_table(tmp_path / "last_turn" / "part-0.parquet").num_rows == written["last_turn"] == 3
    assert written["source_summary"] == 3
    with pytest.raises(UsageError, match="the view prices tells of no session and no file"):
        export_parquet(str(small), str(tmp_path), Selection(("qoder",)), ["prices"])
    assert export_parquet(str(small), str(tmp_path), Selection(), ["prices"]).rows["prices"] > 0


def test_only_its_owner_reads_an_export(small: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        export_parquet(str(small), str(tmp_path / "made" / "out"), Selection())
    finally:
        os.umask(before)
    found = [tmp_path / "made", *(tmp_path / "made").rglob("*")]
    assert {path.stat().st_mode & 0o777 for path in found if path.is_dir()} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in found if path.is_file()} == {0o600}


def test_the_same_store_gives_the_same_bytes(large: Path, exported: Path, tmp_path: Path) -> None:
    export_parquet(str(large), str(tmp_path / "again"), Selection())
    assert files(tmp_path / "again") == files(exported)


def test_how_many_sessions_are_taken_at_a_time_changes_no_row(
    large: Path, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "_CHUNK_BYTES", 5_000)
    monkeypatch.setattr(views, "_WIDE_ROWS", 3)
    monkeypatch.setattr(parquet, "_GROUP_ROWS", 7)
    with views.Views(str(large), Selection(), str(tmp_path)) as opened:
        assert len(list(opened._asked("dialogue"))) > 10
    export_parquet(str(large), str(tmp_path / "out"), Selection())
    for name in files(exported):
        if name.endswith(".parquet"):
            assert pq.read_table(tmp_path / "out" / name, partitioning=None).equals(
                pq.read_table(exported / name, partitioning=None)
            ), name


# --- where it is written ---


def test_an_earlier_export_is_replaced_whole(small: Path, tmp_path: Path) -> None:
    export_parquet(str(small), str(tmp_path / "out"), Selection())
    export_parquet(str(small), str(tmp_path / "out"), Selection(("claude_code",)), ["sessions"])
    assert sorted(files(tmp_path / "out")) == ["_sessionmart.json", "sessions/provider=claude_code/part-0.parquet"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_empty_folder_and_a_link_to_one_will_do(small: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    export_parquet(str(small), str(tmp_path / "link"), Selection(), ["sessions"])
    assert (tmp_path / "link").is_symlink()
    assert sessions_of(tmp_path / "empty") == ["claude_code:c1", "qoder:s1", "qoder:s2", "qoder:s3"]


@pytest.mark.parametrize(
    ("prepared", "said"),
    [
        ({"out/notes.txt": "mine"}, "is not empty and no earlier export"),
        ({"out/_sessionmart.json": '{"kind": "parquet"}'}, "is not empty and no earlier export"),
        ({"out/_sessionmart.json": '{"made_by": "sessionmart", "kind": "atif"}'}, "an export of another kind"),
        ({"out": "a file"}, "is no folder"),
    ],
)
def test_what_is_no_earlier_export_is_left_alone(
    small: Path, tmp_path: Path, prepared: dict[str, str], said: str
) -> None:
    for name, text in prepared.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    before = files(tmp_path)
    with pytest.raises(UsageError, match=said):
        export_parquet(str(small), str(tmp_path / "out"), Selection())
    assert files(tmp_path) == before


def test_a_file_that_somebody_put_into_an_export_is_not_deleted_with_it(small: Path, tmp_path: Path) -> None:
    export_parquet(str(small), str(tmp_path / "out"), Selection(), ["sessions"])
    (tmp_path / "out" / "sessions" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match=r"such as sessions/notes\.txt"):
        export_parquet(str(small), str(tmp_path / "out"), Selection(), ["sessions"])
    assert (tmp_path / "out" / "sessions" / "notes.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("can_exchange", [True, False])
def test_a_reader_sees_the_old_export_until_the_new_one_is_whole(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, can_exchange: bool
) -> None:
    out = tmp_path / "out"
    export_parquet(str(small), str(out), Selection(("claude_code",)))
    before, write = files(out), parquet._write_view
    if not can_exchange:
        monkeypatch.setattr(place, "_exchange", lambda _one, _other: False)

    def look(building: place.Building, opened: Views, view: str) -> int:
        written = write(building, opened, view)
        assert files(out) == before
        return written

    monkeypatch.setattr(parquet, "_write_view", look)
    export_parquet(str(small), str(out), Selection())
    assert len(sessions_of(out)) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_export_that_fails_leaves_the_earlier_one_and_nothing_else(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    export_parquet(str(small), str(out), Selection())
    before, write = files(out), parquet._write_view

    def stumble(building: place.Building, opened: Views, view: str) -> int:
        if view == "turns":
            raise OSError(28, "No space left on device")
        return write(building, opened, view)

    monkeypatch.setattr(parquet, "_write_view", stumble)
    with pytest.raises(UsageError, match=r"cannot write .*out: No space left on device"):
        export_parquet(str(small), str(out), Selection())
    assert files(out) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_a_killed_run_left_is_swept_and_a_running_one_is_not(small: Path, tmp_path: Path) -> None:
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    (tmp_path / f".out.export-{int(dead.stdout)}-x" / "new").mkdir(parents=True)
    (tmp_path / f".out.export-{os.getppid()}-x").mkdir()
    export_parquet(str(small), str(tmp_path / "out"), Selection(), ["sessions"])
    assert sorted(path.name for path in tmp_path.iterdir()) == [f".out.export-{os.getppid()}-x", "out"]


# --- the command ---


def test_the_command_says_what_it_wrote(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["export", "parquet", str(tmp_path / "out"), "--db", str(small), "--views", "sessions, turns"]
    assert run([*words, "--provider", "qoder", "--since", "2026-02-01", "--until", "2026-02-01"]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == (f"2 rows of 2 views -> {tmp_path / 'out'}\n1 session is left out: no log says when it began\n")
    assert sessions_of(tmp_path / "out") == ["qoder:s2"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--views", "sesions"], "there is no view 'sesions'; did you mean sessions?"),
        (["--provider", "qodr"], "there is no provider 'qodr'; did you mean qoder?"),
        (["--since", "yesterday"], "yesterday"),
        (["--since", "2026-02-02", "--until", "2026-02-01"], "--until is before --since"),
    ],
)
def test_a_wrong_word_is_exit_code_2_and_nothing_is_written(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    assert run(["export", "parquet", str(tmp_path / "out"), "--db", str(small), *more]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_missing_store_is_exit_code_3(tmp_path: Path) -> None:
    assert run(["export", "parquet", str(tmp_path / "out"), "--db", str(tmp_path / "none.duckdb")]) == 3
    assert list(tmp_path.iterdir()) == []
