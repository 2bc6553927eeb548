"""Do Qoder's stores tell of one session together, in any order of files and with any number of workers?"""

from __future__ import annotations

import json
import os
import random
import shutil
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etl import pipeline
from etl.events import RecordOpened, Unread
from etl.jsonl import Record
from etl.providers import get
from etl.providers.base import Claim, Source
from tests.loading import FIXTURES, join_trees, load_home, rows, table
from tests.test_incremental import assert_same, copy, files_of, load
from tests.test_sqlitedb import MESSAGES
from tests.test_sqlitedb import PLACE as DATABASE
from tests.test_sqlitedb import made as made_database

if TYPE_CHECKING:
    from pathlib import Path

LATENCY: Final = FIXTURES / "qoder" / "stores_latency" / "tree"
STORES: Final = ("stores_latency", "stores_subagent", "stores_dialogue", "stores_audit")
#: The stores of one home, a transcript's log before or behind it in the order of names.
KINDS: Final = ("qoder_cli", "qoder_logs", "qoder_audit", "qoder_stream", "qoder_ide_db", "qoder_home_sessions")


def _write(path: Path, *values: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")


def _message(kind: str, n: int, session: str, at: str, **message: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "uuid": f"{session}-{n}",
        "sessionId": session,
        "timestamp": f"2026-07-01T10:{at}Z",
        "message": {"role": kind, **message},
    }


def _row(kind: str, at: str, **more: Any) -> dict[str, Any]:
    return {"ts": f"2026-07-01T10:{at}Z", "seq": 1, "level": "info", "type": kind, **more}


# -- any order, any number of workers


@pytest.mark.parametrize(("seed", "jobs"), [(1, 1), (2, 2), (3, 5)])
def test_stores_that_come_in_any_order_give_the_store_of_a_full_load(
    tmp_path: Path, seed: int, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "COPY_ROWS", 0)
    monkeypatch.setattr(pipeline, "POOL_BYTES", 0)
    source = join_trees(tmp_path / "all", "qoder", STORES)
    made_database(source / DATABASE, *MESSAGES).close()
    files = files_of(source)
    random.Random(seed).shuffle(files)
    home, db = tmp_path / "home", tmp_path / "step" / "s.duckdb"
    for n in range(0, len(files), 5):
        copy(source, home, files[n : n + 5])
        load(home, db, jobs=jobs if n else 1, task_bytes=1)
    load(home, tmp_path / "full" / "s.duckdb")
    assert_same(db, tmp_path / "full" / "s.duckdb")


@pytest.mark.parametrize("first", ["logs/sessions", "projects", "logs/runs", "audit"])
def test_a_log_before_its_transcript_or_after_it_is_the_same(
    tmp_path: Path, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "COPY_ROWS", 0)
    source = FIXTURES / "qoder" / "example" / "tree"
    files = files_of(source)
    home, db = tmp_path / "home", tmp_path / "step" / "s.duckdb"
    copy(source, home, [file for file in files if f".qoder/{first}" in file.as_posix()])
    load(home, db)
    copy(source, home, files)
    load(home, db)
    load(home, tmp_path / "full" / "s.duckdb")
    assert_same(db, tmp_path / "full" / "s.duckdb")
    assert rows(db, "select latency_ms, latency_source from tool_calls where call_key = 'call_r1'") == [
        (80.0, "execution")
    ]


def test_a_log_that_grows_from_its_first_row_gives_what_it_gives_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that so far says only what a call waited for is no session yet, and still changes one."""
    monkeypatch.setattr(pipeline, "COPY_ROWS", 0)
    home, db = tmp_path / "home", tmp_path / "step" / "s.duckdb"
    shutil.copytree(LATENCY / ".qoder/projects", home / ".qoder/projects")
    load(home, db)
    (log,) = (path for path in files_of(LATENCY) if "lat-1/segments" in path.as_posix())
    lines = (LATENCY / log).read_bytes().splitlines(keepends=True)
    waits = [line for line in lines if b'"permission.resolved"' in line or b'"hook.finished"' in line]
    (home / log).parent.mkdir(parents=True)
    for part in (waits, lines[:9], lines):
        (home / log).write_bytes(b"".join(part))
        load(home, db)
        full = tmp_path / f"full-{len(part)}" / "s.duckdb"
        load(home, full)
        assert_same(db, full)
    assert rows(db, "select latency_ms, wait_ms from tool_calls where call_key = 'call_e1'") == [(400.0, 5000.0)]


def test_a_log_that_goes_away_keeps_what_it_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "COPY_ROWS", 0)
    home, db = tmp_path / "home", tmp_path / "s.duckdb"
    copy(LATENCY, home, files_of(LATENCY))
    load(home, db)
    shutil.rmtree(home / ".qoder/logs/sessions/-srv-work-stores/lat-1")
    load(home, db)
    assert rows(db, "select latency_ms from tool_calls where call_key = 'call_s1'") == [(550.0,)]


# -- one without the other


def test_a_transcript_without_its_log_is_timed_by_its_pairs(tmp_path: Path) -> None:
    shutil.copytree(LATENCY / ".qoder/projects", tmp_path / "home/.qoder/projects")
    load_home(tmp_path / "home", tmp_path / "s.duckdb")
    found = dict(rows(tmp_path / "s.duckdb", "select call_key, latency_source from tool_calls"))
    assert found == {
        **dict.fromkeys(("call_s1", "call_s2", "call_q1", "call_q2", "call_r1", "call_r2"), "batch"),
        **dict.fromkeys(("call_w1", "call_q3", "call_e1", "call_bg", "call_no"), "pair"),
        "call_ab": "none",
    }


def test_a_log_without_its_transcript_is_a_session_with_its_calls(tmp_path: Path) -> None:
    shutil.copytree(LATENCY / ".qoder/logs", tmp_path / "home/.qoder/logs")
    report = load_home(tmp_path / "home", tmp_path / "s.duckdb")
    assert report.findings == []
    assert rows(
        tmp_path / "s.duckdb",
        "select session_id, prompts, tool_calls, tool_errors from sessions order by session_id",
    ) == [("qoder:lat-1", 0, 12, 1), ("qoder:lat-2", 0, 2, 0)]
    found = table(tmp_path / "s.duckdb", "from tool_calls where call_key in ('call_w1', 'call_no', 'call_bg')")
    stated = {row["call_key"]: (row["status"], row["latency_ms"], row["pair_ms"]) for row in found}
    assert stated == {
        "call_w1": ("ok", 275.0, 275.0),
        "call_no": ("denied", 2060.0, 2060.0),
        "call_bg": ("background", 200.0, 220.0),
    }
    assert rows(tmp_path / "s.duckdb", "select reported_ms from turns where session_id = 'qoder:lat-1'") == [
        (110290.0,)
    ]


# -- ids that disagree


def test_a_log_in_a_folder_of_another_name_is_of_the_transcript_it_says_it_writes(tmp_path: Path) -> None:
    home = tmp_path / "home"
    initialised = {"phase": "transcript.writer.initialized", "path": "/home/x/.qoder/projects/-a/right.jsonl"}
    _write(
        home / ".qoder/logs/sessions/collected/segments/run.jsonl",
        _row("session.phase.finished", "00:00.000", data=initialised),
        _row("tool.requested", "00:01.000", tool_call_id="call_1", data={"tool_name": "Write", "args": {}}),
        _row("tool.execution.finished", "00:01.275", tool_call_id="call_1", data={"status": "success"}),
    )
    used = {"type": "tool_use", "id": "call_1", "name": "Write", "input": {}}
    done = {"type": "tool_result", "tool_use_id": "call_1", "content": "ok"}
    _write(
        home / ".qoder/projects/-a/right.jsonl",
        _message("assistant", 1, "right", "00:01.156", id="m", content=[used]),
        _message("user", 2, "right", "00:01.275", content=[done]),
    )
    load_home(home, tmp_path / "s.duckdb")
    (call,) = table(tmp_path / "s.duckdb", "from tool_calls")
    assert (call["session_id"], call["latency_ms"], call["pair_ms"]) == ("qoder:right", 275.0, 119.0)
    assert (call["latency_source"], call["latency_quality"]) == ("execution", "good")
    assert rows(
        tmp_path / "s.duckdb",
        "select file_native_id, native_session_id from facts.sources where store_kind = 'qoder_logs'",
    ) == [("collected", "right")]


def test_a_log_that_names_several_transcripts_is_of_its_folder(tmp_path: Path) -> None:
    told = [
        _row(
            "session.phase.finished",
            "00:00.000",
            data={"phase": "transcript.writer.initialized", "path": f"/x/{name}.jsonl"},
        )
        for name in ("one", "two")
    ]
    _write(
        tmp_path / "home/.qoder/logs/sessions/-a/folder/segments/run.jsonl",
        *told,
        _row("turn.started", "00:01.000", turn_id="t"),
    )
    load_home(tmp_path / "home", tmp_path / "s.duckdb")
    assert rows(tmp_path / "s.duckdb", "select session_id from sessions") == [("qoder:folder",)]


def test_a_file_rewritten_in_place_with_its_size_and_time_is_read_again(tmp_path: Path) -> None:
    home, db = tmp_path / "home", tmp_path / "s.duckdb"
    path = home / ".qoder/logs/sessions/-a/s1/segments/run.jsonl"
    for ended in ("00:01.500", "00:01.700"):
        before = path.stat() if path.exists() else None
        text = "".join(
            json.dumps(value) + "\n"
            for value in (
                _row("tool.requested", "00:01.000", tool_call_id="c", data={"tool_name": "Bash", "args": {}}),
                _row("tool.execution.finished", ended, tool_call_id="c", data={"status": "success"}),
            )
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("r+" if before else "w", encoding="utf-8") as file:
            file.write(text)
        if before is not None:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
            after = path.stat()
            assert (after.st_size, after.st_mtime_ns, after.st_ino) == (
                before.st_size,
                before.st_mtime_ns,
                before.st_ino,
            )
        load(home, db)
    assert rows(db, "select latency_ms from tool_calls") == [(700.0,)]


# -- usage


def _usage(**counts: Any) -> dict[str, Any]:
    zeros = dict.fromkeys(
        ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"), 0
    )
    return {**zeros, **counts}


def test_a_call_in_transcript_and_log_counts_once_with_what_each_knows(tmp_path: Path) -> None:
    home = tmp_path / "home"
    usage = _usage(credits=1.5, original_credits=2, request_id="rq-1", context_usage_ratio=0.25)
    _write(
        home / ".qoder/projects/-a/s1.jsonl",
        _message("user", 1, "s1", "00:00.000", content="Hi"),
        _message("assistant", 2, "s1", "00:04.000", id="m-1", stop_reason="tool_use", content="a", usage=usage),
        _message("assistant", 3, "s1", "00:09.100", id="m-2", stop_reason="end_turn", content="b", usage=_usage()),
    )
    _write(
        home / ".qoder/logs/sessions/-a/s1/segments/run.jsonl",
        _row("model.request.started", "00:01.000", request_id="rq-1"),
        _row(  # the same id: whatever the clocks say
            "model.response.completed",
            "00:08.000",
            request_id="rq-1",
            data={"model": "byok/m", "provider": "custom", **_usage(input_tokens=100, output_tokens=7)},
        ),
        _row(  # no common id: the row of the transcript follows at once
            "model.response.completed", "00:09.000", request_id="rq-2", data={"model": "auto", **_usage()}
        ),
        _row(  # a request that no transcript shows, without counts: not a call of the session's record
            "model.response.completed", "00:30.000", request_id="rq-3", data={"model": "auto", **_usage()}
        ),
        _row(  # the same with counts: it was used
            "model.response.completed",
            "00:40.000",
            request_id="rq-4",
            data={"model": "byok/m", "provider": "custom", **_usage(input_tokens=10, output_tokens=3)},
        ),
    )
    load_home(home, tmp_path / "s.duckdb")
    found = table(tmp_path / "s.duckdb", "from model_calls order by ts")
    columns = ("request_key", "input_tokens", "output_tokens", "usage_status", "context_ratio", "duration_ms")
    assert [tuple(row[name] for name in columns) for row in found] == [
        ("m-1", 100, 7, "reported", 0.25, 7000.0),
        ("m-2", None, None, "suppressed", None, None),
        ("rq-4", 10, 3, "reported", None, None),
    ]
    assert (float(found[0]["credits"]), float(found[0]["original_credits"])) == (1.5, 2.0)
    (session,) = table(tmp_path / "s.duckdb", "from sessions")
    assert (session["model_calls"], session["input_tokens"], session["output_tokens"]) == (3, 110, 10)
    assert float(session["credits"]) == 1.5


def test_a_captured_stream_is_told_by_its_records_and_its_total_is_not_summed(tmp_path: Path) -> None:
    def said(n: int, text: str, **more: Any) -> dict[str, Any]:
        content = [{"type": "text", "text": text}]
        message = {"id": f"m{n}", "role": "assistant", "model": "auto", "content": content, "stop_reason": "end_turn"}
        return {"type": "assistant", "uuid": f"u{n}", "session_id": "st-1", "message": message, **more}

    capture = tmp_path / "captures" / "out.jsonl"
    _write(
        capture,
        {"type": "system", "subtype": "init", "session_id": "st-1", "cwd": "/srv/x", "model": "auto"},
        {"type": "stream_event", "session_id": "st-1", "event": {}},
        said(1, "First."),
        said(2, "From a helper.", parent_tool_use_id="call_9"),
        {"type": "result", "subtype": "success", "session_id": "st-1", "duration_ms": 900, "total_credits": 0.5},
        said(3, "Second."),
        {"type": "result", "subtype": "success", "session_id": "st-1", "duration_ms": 800, "total_credits": 1.25},
    )
    load_home(tmp_path / "none", tmp_path / "s.duckdb", qoder=capture)
    assert rows(tmp_path / "s.duckdb", "select store_kind, session_id from facts.sources") == [
        ("qoder_stream", "qoder:st-1")
    ]
    assert [row[0] for row in rows(tmp_path / "s.duckdb", "select text from dialogue order by seq")] == [
        "First.",
        "Second.",
    ]
    (session,) = table(tmp_path / "s.duckdb", "from sessions")
    assert (float(session["credits"]), session["model_calls"], session["cwd"]) == (1.25, 2, "/srv/x")


def test_the_cache_gives_dialogue_to_who_names_it_and_only_where_nothing_better_does(tmp_path: Path) -> None:
    home, text = tmp_path / "home", {"content": [{"type": "text", "text": "Cached."}]}
    cached = home / ".qoder/cache/projects/p/conversation-history/t1/t1.jsonl"
    _write(cached, {"role": "user", "message": text}, {"role": "assistant", "message": text})
    load_home(home, tmp_path / "default.duckdb")
    assert rows(tmp_path / "default.duckdb", "select count(*) from sessions") == [(0,)]
    load_home(home, tmp_path / "named.duckdb", qoder=home / ".qoder/cache")
    assert rows(tmp_path / "named.duckdb", "select session_id, prompts, text_rows from sessions") == [
        ("qoder:p/t1", 1, 1)
    ]


# -- whatever stands in a record

_JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
_NAMES: Final = (
    *("turn.started", "turn.finished", "model.request.started", "model.response.completed", "model.request.failed"),
    *("model.retry_scheduled", "tool.requested", "tool.execution.started", "tool.execution.finished"),
    *("tool.shell.started", "tool.shell.finished", "tool.shell.backgrounded", "permission.requested"),
    *("permission.resolved", "hook.started", "hook.finished", "compression.progress", "PreToolUse", "PostToolUse"),
    *("system", "assistant", "user", "result", "chat_message", "chat_session"),
)
_KEYS: Final = (
    *("ts", "turn_id", "loop_id", "request_id", "tool_call_id", "data", "args", "duration_ms", "exit_code", "status"),
    *("source", "hook_name", "tool_name", "is_error", "_timestamp", "session_id", "tool_use_id", "tool_input", "id"),
    *("tool_response", "request_set_id", "total_credits", "message", "role", "content", "token_info", "model_info"),
    *("gmt_create", "project_uri", "session_title", "cwd", "cli_version", "run_id", "started_at", "messages"),
)
_RECORD: Final = st.builds(
    lambda name, told, ids: {**told, **ids, "type": name, "_event": name, "table": name},
    st.sampled_from(_NAMES),
    st.dictionaries(st.sampled_from(_KEYS), _JSON, max_size=8),
    st.fixed_dictionaries({}, optional={"tool_call_id": st.just("c"), "session_id": st.just("s")}),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(_RECORD, max_size=6), st.sampled_from(KINDS), st.sampled_from(["jsonl", "json", "messages"]))
def test_no_record_is_too_odd_for_an_adapter(values: list[dict[str, Any]], kind: str, container: str) -> None:
    source = Source("qoder", "host", "a/b.jsonl", Claim(kind, container, "s"))
    provider = get("qoder")
    records = [Record(n + 1, n, 0, 0, b"", value) for n, value in enumerate(values)]
    session = source.session_id(provider.native_session(source, records))
    events = list(provider.adapt(source, session, iter(records)))
    answered = [event for event in events if isinstance(event, RecordOpened | Unread)]
    assert {(event.line_no, event.child) for event in answered} == {
        (record.line_no, record.child) for record in records
    }
