"""Is a session file that lies in another agent's tree told as what it is, or left alone?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.authored import SESSION, Claude, codex, text, write
from tests.loading import load_home, rows

if TYPE_CHECKING:
    from pathlib import Path

    from etl.request import Report

#: A session of Gemini CLI as it writes it, a header and messages (0.61).
GEMINI: Final[list[dict[str, Any]]] = [
    {"sessionId": "g1", "projectHash": "abc", "startTime": "2026-05-04T10:00:00.000Z", "kind": "main"},
    {"id": "m1", "timestamp": "2026-05-04T10:00:01.000Z", "type": "user", "content": [{"text": "Not for Claude"}]},
    {"id": "m2", "timestamp": "2026-05-04T10:00:02.000Z", "type": "gemini", "content": "Not from Claude", "tokens": {}},
]


def gemini_tree(folder: Path) -> Path:
    """A tree of Gemini CLI, into which somebody copied a transcript of Claude Code and a rollout of Codex."""
    chats = folder / ".gemini" / "tmp" / "abc" / "chats"
    write(chats / "session-2026-05-04T10-00-g1.jsonl", GEMINI)
    one = Claude(1).user(0, "For Claude").assistant(1, "msg_1", text("From Claude"))
    write(chats / "copied.jsonl", one.lines)
    codex(folder, 1, [("response_item", {"type": "message", "role": "user", "content": []})])
    return folder


def load(folder: Path, provider: str, root: Path) -> tuple[Report, Path]:
    db = folder / f"{provider}.duckdb"
    return load_home(folder / "nobody", db, **{provider: root}), db


@pytest.mark.parametrize(("provider", "found"), [("claude_code", 1), ("codex", 1), ("muse", 0)])
def test_each_reads_what_is_its_own_and_counts_the_rest(tmp_path: Path, provider: str, found: int) -> None:
    report, db = load(tmp_path, provider, gemini_tree(tmp_path / "tree"))
    assert rows(db, "select count(*) from sessions") == [(found,)]
    assert (report.sources_failed, report.quarantined, report.findings) == (0, {}, [])
    assert report.not_recognised == 3 - found


def test_a_claude_file_in_a_gemini_tree_is_read_whole(tmp_path: Path) -> None:
    _, db = load(tmp_path, "claude_code", gemini_tree(tmp_path / "tree"))
    assert rows(db, "select session_id from sessions") == [(f"claude_code:{SESSION.format(1)}",)]
    assert rows(db, "select text from dialogue order by seq") == [("For Claude",), ("From Claude",)]


def test_a_gemini_file_in_claudes_own_tree_is_counted_line_by_line(tmp_path: Path) -> None:
    """The place says that it is Claude's: what its records say is told, and that nobody knows their types."""
    write(tmp_path / "home" / ".claude" / "projects" / "-home-dev-app" / f"{SESSION.format(2)}.jsonl", GEMINI)
    report = load_home(tmp_path / "home", tmp_path / "s.duckdb")
    assert report.sources_failed == 0
    assert rows(tmp_path / "s.duckdb", "select text from dialogue") == [("Not for Claude",)]
    asked = "select kind, disposition, n from record_census where unit = 'record' order by all"
    assert rows(tmp_path / "s.duckdb", asked) == [
        *(("(no type)", "unknown", 1), ("gemini", "unknown", 1), ("user", "used", 1))
    ]
