"""What may a user set, what does it change in a store, and which project does a session belong to?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from etl import pipeline
from etl.errors import UsageError
from etl.providers.base import Environment
from etl.request import Request
from etl.settings import Settings, read_settings
from etl.verify import verify
from tests.authored import Claude, call, codex, text
from tests.loading import FIXTURES, HOST, KEY, NOW, load_home, rows
from tests.test_cli import run

if TYPE_CHECKING:
    from pathlib import Path

    from etl.request import Report

PROJECTS = "select regexp_extract(session_id, '.$'), project from sessions order by all"


def stated(folder: Path, toml: str) -> Settings:
    path = folder / "config.toml"
    path.write_text(toml)
    return read_settings(str(path), "/home/dev")


def load(home: Path, db: Path, settings: Settings) -> Report:
    request = Request(
        str(db), HOST, Environment(str(home)), KEY, "0.0.0", state=str(db.parent / "state"), settings=settings
    )
    return pipeline.load(request, lambda: NOW)


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    assert read_settings(str(tmp_path / "none.toml"), "/home/dev") == Settings(600_000_000, ())


def test_a_file_says_after_how_long_a_person_is_suspected_and_whose_folders_are(tmp_path: Path) -> None:
    found = stated(
        tmp_path,
        'human_wait_minutes = 2.5\n[projects]\n"~/old/" = "shop"\n"C:\\\\work" = "w"\n"github.com/acme/x" = "x"\n',
    )
    assert found.human_wait_us == 150_000_000
    assert found.projects == (
        ("folder", "/home/dev/old", "shop"),
        ("folder", "C:\\work", "w"),
        ("remote", "github.com/acme/x", "x"),
    )


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("human_wait_minute = 3", "did you mean human_wait_minutes?"),
        ("colour = 'red'", "there are: human_wait_minutes, projects"),
        ("human_wait_minutes = '10'", "a number from 1 to 60"),
        ("human_wait_minutes = true", "a number from 1 to 60"),
        ("human_wait_minutes = 61", "a number from 1 to 60"),
        ("human_wait_minutes = nan", "a number from 1 to 60"),
        ("projects = 'shop'", "[projects] is a table"),
        ("[projects]\n'/a' = 3", "'/a' is to be a name, not 3"),
        ("[projects]\n'/a' = ' '", "'/a' is to be a name"),
        ("[projects]\n'/' = 'all'", "'/' is to be a name"),
        ("[projects", "cannot be read"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(tmp_path: Path, toml: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        stated(tmp_path, toml)
    assert said in str(raised.value)
    assert "config.toml" in str(raised.value)


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no configuration at"):
        read_settings(str(tmp_path / "none.toml"), "/home/dev", is_named=True)
    with pytest.raises(UsageError, match="cannot be read"):
        read_settings(str(tmp_path), "/home/dev")


def test_the_command_line_refuses_a_setting_nobody_knows(tmp_path: Path) -> None:
    path, db = tmp_path / "own.toml", tmp_path / "s.duckdb"
    path.write_text("project = 1\n")
    (tmp_path / "tree").mkdir()
    args = ("load", "--home", str(tmp_path / "tree"), "--db", str(db))
    named = run(*args, "--config", str(path), home=tmp_path)
    told = run(*args, home=tmp_path, SESSIONMART_CONFIG=str(path))
    assert (named.returncode, told.returncode, db.exists()) == (2, 2, False)
    assert "did you mean projects?" in named.stderr
    assert named.stderr == told.stderr


def worktrees(home: Path) -> None:
    """One repository in a folder, two worktrees, a clone elsewhere, and sessions whose folder's name says nothing."""
    repo = "/home/dev/app"
    Claude(1, repo).user(0, "one").write(home, slug="-some-other-name")
    Claude(2, f"{repo}/.claude/worktrees/fix/src").user(0, "two").write(home)
    moved = {"originalCwd": repo, "worktreePath": "/var/wt/fix-9"}
    Claude(3, "/var/wt/fix-9").user(0, "three").state("worktree-state", worktreeSession=moved).write(home)
    Claude(4, None).user(0, "four").write(home)
    codex(home, 5, [], cwd="/srv/build/17", git={"repository_url": "git@github.com:acme/app.git"})
    codex(home, 6, [], cwd="C:\\work\\tool\\")
    codex(home, 7, [], cwd="/")


def test_worktrees_and_clones_of_one_repository_are_one_project(tmp_path: Path) -> None:
    worktrees(tmp_path / "home")
    load_home(tmp_path / "home", tmp_path / "s.duckdb")
    assert rows(tmp_path / "s.duckdb", PROJECTS) == [
        *(("1", "app"), ("2", "app"), ("3", "app"), ("4", None), ("5", "app"), ("6", "tool"), ("7", None))
    ]


def test_the_users_table_goes_before_what_logs_say_and_a_longer_folder_before_a_shorter(tmp_path: Path) -> None:
    worktrees(tmp_path / "home")
    named = (
        ("folder", "/home", "everything"),
        ("folder", "/home/dev/app", "shop"),
        ("folder", "/home/dev/ap", "no"),
        ("folder", "C:\\work", "tools"),
        ("remote", "https://x@GitHub.com/acme/app", "shop"),
    )
    load(tmp_path / "home", tmp_path / "s.duckdb", Settings(projects=named))
    assert rows(tmp_path / "s.duckdb", PROJECTS) == [
        *(("1", "shop"), ("2", "shop"), ("3", "shop"), ("4", None), ("5", "shop"), ("6", "tools"), ("7", None))
    ]


def waits(home: Path) -> None:
    """Calls that only their records time: four minutes, twenty, two hours; a sub-agent of three hours; one that its
    tool timed itself.
    """
    said: list[Any] = [call("four"), call("twenty"), call("hours"), call("agent", "Task", prompt="x"), call("timed")]
    one = Claude(1).user(0, "go")
    for number, (asked, end) in enumerate(zip(said, (240, 1_200, 7_200, 10_800, 9_000), strict=True)):
        start = number * 20_000
        extra: dict[str, Any] = {"toolUseResult": {"durationMs": 4_000_000}} if asked["id"] == "timed" else {}
        one.assistant(start, f"m{number}", asked).result(start + end, asked["id"], **extra)
    one.assistant(200_000, "m9", text("done")).write(home)


def test_a_long_latency_says_why(tmp_path: Path) -> None:
    waits(tmp_path / "home")
    load_home(tmp_path / "home", tmp_path / "s.duckdb")
    asked = "select call_key, latency_ms, human_gate_suspected, long_because from tool_latency order by started_at"
    assert rows(tmp_path / "s.duckdb", asked) == [
        ("four", 240_000.0, False, None),
        ("twenty", 1_200_000.0, True, None),
        ("hours", 7_200_000.0, True, "human_wait"),
        ("agent", 10_800_000.0, False, "sub_agent"),
        ("timed", 4_000_000.0, True, "human_wait"),  # its records stand 5,000 s further apart
    ]


def test_other_settings_conclude_the_store_anew_and_the_same_ones_nothing(tmp_path: Path) -> None:
    waits(tmp_path / "home")
    db = tmp_path / "s.duckdb"
    suspected = "select list(call_key order by call_key) from tool_latency where human_gate_suspected"
    load(tmp_path / "home", db, Settings())
    assert rows(db, suspected) == [(["hours", "timed", "twenty"],)]
    tuned = Settings(human_wait_us=180_000_000)
    report = load(tmp_path / "home", db, tuned)
    assert (report.state, report.sources_read) == ("published", 0)
    assert rows(db, suspected) == [(["four", "hours", "timed", "twenty"],)]
    assert load(tmp_path / "home", db, tuned).state == "unchanged"
    assert load(tmp_path / "home", db, replace(tuned, projects=(("folder", "/home", "h"),))).state == "published"
    assert rows(db, "select distinct project from sessions") == [("h",)]


def test_a_store_is_verified_by_the_settings_it_was_made_with(tmp_path: Path) -> None:
    waits(tmp_path / "home")
    db = tmp_path / "s.duckdb"
    load(tmp_path / "home", db, Settings(human_wait_us=180_000_000))
    request = Request(str(db), HOST, Environment(str(tmp_path / "home")), KEY, "0.0.0", str(tmp_path / "state"))
    found = verify(request)
    assert (found.is_equal, found.verified) == (True, 1)


def test_the_example_of_the_page_is_read(tmp_path: Path) -> None:
    page = (FIXTURES.parent / "docs" / "settings.md").read_text()
    found = stated(tmp_path, page.partition("```toml\n")[2].partition("```")[0])
    assert found == Settings(
        600_000_000, (("folder", "/home/dev/work/old-shop", "shop"), ("remote", "github.com/acme/shop", "shop"))
    )
