"""Does a tree that grows, file by file and line by line, give the store of one loaded whole, whatever the provider?"""

from __future__ import annotations

import itertools
import random
import shutil
from typing import TYPE_CHECKING, Any, Final

import pytest

from etl import pipeline
from etl.providers.base import Environment
from etl.request import Request
from tests.authored import Claude, call, text, usage
from tests.loading import FIXTURES, HOST, KEY, NOW, join_trees, rows
from tests.test_incremental import assert_same, copy, files_of

if TYPE_CHECKING:
    from pathlib import Path

    from etl.request import Report

PROVIDERS: Final = ("claude_code", "codex", "muse")


def load(home: Path, db: Path, **roots: tuple[str, ...]) -> Report:
    state = str(db.parent / "state")
    request = Request(str(db), HOST, Environment(str(home)), KEY, "0.0.0", state, roots=roots)
    return pipeline.load(request, lambda: NOW)


@pytest.fixture(scope="module", params=PROVIDERS)
def grown(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The tree of all cases of a provider, and the store of a full load of it."""
    cases = FIXTURES / request.param
    names = sorted(case.name for case in cases.iterdir() if (case / "tree").is_dir() and case.name != "example")
    home = join_trees(tmp_path_factory.mktemp("whole"), request.param, names)
    db = tmp_path_factory.mktemp("full") / "s.duckdb"
    load(home, db)
    return home, db


@pytest.mark.parametrize("seed", range(2))
def test_files_that_come_in_any_order_and_grow_line_by_line(
    grown: tuple[Path, Path], tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "COPY_ROWS", 0)  # on a copy of the store wherever that is allowed
    monkeypatch.setattr(pipeline, "_AFRESH_SHARE", 1.0)
    whole, full = grown
    chance = random.Random(seed)
    files = files_of(whole)
    chance.shuffle(files)
    home, db = tmp_path / "home", tmp_path / "step" / "s.duckdb"
    home.mkdir()
    cuts = sorted(chance.sample(range(1, len(files)), 3))
    for start, end in itertools.pairwise([0, *cuts, len(files)]):
        for file in files[start:end]:
            (home / file).parent.mkdir(parents=True, exist_ok=True)
            data = (whole / file).read_bytes()
            (home / file).write_bytes(data[: chance.randint(0, len(data))] if file.suffix == ".jsonl" else data)
        load(home, db)
    copy(whole, home, files)
    load(home, db)
    assert_same(db, full)


def steps() -> list[list[dict[str, Any]]]:
    """One transcript as it stood on four evenings: it grew by fragments of a message that was open, then was rewritten
    by a compaction that left most of it out and repeated what it kept, then grew again.
    """
    one = Claude(1).user(0, "Long work")
    one.assistant(1, "msg_a", call("toolu_1"), usage=usage(10, 1))
    first = list(one.lines)
    one.assistant(2, "msg_a", call("toolu_2"), usage=usage(10, 50), stop_reason="tool_use")
    one.result(3, "toolu_1").result(4, "toolu_2")
    one.assistant(5, "msg_b", text("Half of it."), usage=usage(20, 60), stop_reason="end_turn")
    second = list(one.lines)
    kept = second[-1]
    two = Claude(1)
    two.add("system", 6, subtype="compact_boundary", uuid="b0", compactMetadata={"trigger": "manual", "preTokens": 9})
    two.user(7, "This session is being continued from a previous conversation.", isCompactSummary=True, uuid="b1")
    third = [kept, *two.lines, kept]
    two.user(8, "Go on", uuid="b2").assistant(9, "msg_c", text("Done."), usage=usage(30, 70), stop_reason="end_turn")
    return [first, second, third, [kept, *two.lines[:2], kept, *two.lines[2:]]]


def test_a_transcript_that_was_rewritten_on_the_way_is_what_its_last_step_says(tmp_path: Path) -> None:
    home, db = tmp_path / "home", tmp_path / "step" / "s.duckdb"
    for lines in steps():
        one = Claude(1)
        one.lines = lines
        one.write(home)
        load(home, db)
    load(home, tmp_path / "alone" / "s.duckdb")
    assert_same(db, tmp_path / "alone" / "s.duckdb")
    asked = "select prompts, tool_calls, model_calls, input_tokens, output_tokens from sessions"
    assert rows(db, asked) == [(1, 0, 2, 50, 130)]


def test_a_copy_that_goes_on_counts_what_is_its_own_whichever_file_comes_first(tmp_path: Path) -> None:
    """A resume that copies its origin, and a fork of the resume: loaded in each order, and at once."""
    one = Claude(1).user(0, "Start", uuid="c1a0de00-0000-4000-8000-0000000000a1")
    one.assistant(1, "msg_a", call("toolu_1"), usage=usage(1, 2), uuid="c1a0de00-0000-4000-8000-0000000000a2")
    two, three = Claude(2), Claude(3)
    two.lines = [line | {"sessionId": two.session} for line in one.lines]
    two.result(60, "toolu_1", "late", uuid="c1a0de00-0000-4000-8000-0000000000a3")
    two.assistant(61, "msg_b", text("On."), usage=usage(3, 4), uuid="c1a0de00-0000-4000-8000-0000000000a4")
    three.lines = [line | {"sessionId": three.session} for line in two.lines]
    three.assistant(62, "msg_c", text("Off."), usage=usage(5, 6), uuid="c1a0de00-0000-4000-8000-0000000000a5")
    whole, full = tmp_path / "whole", tmp_path / "full" / "s.duckdb"
    for transcript in (one, two, three):
        transcript.write(whole)
    load(whole, full)
    asked = "select tool_calls, input_tokens, output_tokens from sessions order by session_id"
    assert rows(full, asked) == [(1, 1, 2), (0, 3, 4), (0, 5, 6)]
    assert rows(full, "select status, result_text, latency_ms from tool_calls") == [("ok", "late", None)]
    for number, order in enumerate(itertools.permutations(files_of(whole))):
        home, db = tmp_path / f"home{number}", tmp_path / f"step{number}" / "s.duckdb"
        for file in order:
            (home / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(whole / file, home / file)
            load(home, db)
        assert_same(db, full)
