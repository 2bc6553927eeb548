"""Is what a session of Qoder used stated once, whichever of its stores states it and in whatever order?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.loading import load_home, rows
from tests.test_incremental import assert_same
from tests.test_incremental import load as load_again

if TYPE_CHECKING:
    from pathlib import Path


def _write(path: Path, *values: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")


def _streamed(n: int, **message: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": f"Answer {n}."}]
    told = {
        "id": f"m{n}",
        "role": "assistant",
        "model": "auto",
        "content": content,
        "stop_reason": "end_turn",
        **message,
    }
    return {"type": "assistant", "uuid": f"u{n}", "session_id": "st-1", "message": told}


def _total(charged: float) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "session_id": "st-1", "total_credits": charged}


def _transcript(n: int, at: str = "00:01.000", session: str = "st-1", **more: Any) -> dict[str, Any]:
    stated = {key: value for key, value in _streamed(n).items() if key != "session_id"}
    stated["message"] |= more.pop("message", {})
    return stated | {"sessionId": session, "timestamp": f"2026-07-01T10:{at}Z", **more}


# -- the cumulative total of a captured stream


@pytest.mark.parametrize(
    ("of_transcript", "charged", "grains"),
    [
        # 1.1.52 writes no usage: the total that only the stream states is the session's
        ({}, 1.25, ["request", "session"]),
        # what calls state is finer, and the total is the same once more
        ({"usage": {"credits": 1.0}}, 1.0, ["request"]),
    ],
)
def test_a_total_counts_beside_a_transcript_that_states_no_credits(
    tmp_path: Path, of_transcript: dict[str, Any], charged: float, grains: list[str]
) -> None:
    _write(tmp_path / "home/.qoder/projects/-a/st-1.jsonl", _transcript(1, message=of_transcript))
    _write(tmp_path / "home/captures/out.jsonl", _streamed(1, usage={"credits": 1.0}), _total(1.25))
    load_home(tmp_path / "none", tmp_path / "s.duckdb", qoder=tmp_path / "home")
    assert rows(tmp_path / "s.duckdb", "select session_id, model_calls, credits::double from sessions") == [
        ("qoder:st-1", 1, charged)
    ]
    found = rows(tmp_path / "s.duckdb", "select grain from model_calls order by grain")
    assert [grain for (grain,) in found] == grains


def test_of_cumulative_totals_the_largest_counts_whatever_file_or_line_it_stands_on(tmp_path: Path) -> None:
    root, db = tmp_path / "root", tmp_path / "step" / "s.duckdb"
    _write(root / "captures/z-first.jsonl", _total(2.0), _streamed(1), _total(1.0))
    load_again(tmp_path / "none", db, roots={"qoder": (str(root),)})
    assert rows(db, "select credits::double from sessions") == [(2.0,)]
    _write(root / "captures/a-resumed.jsonl", _streamed(2), _total(5.0))
    load_again(tmp_path / "none", db, roots={"qoder": (str(root),)})
    assert rows(db, "select model_calls, credits::double from sessions") == [(2, 5.0)]
    load_again(tmp_path / "none", tmp_path / "full" / "s.duckdb", roots={"qoder": (str(root),)})
    assert_same(db, tmp_path / "full" / "s.duckdb")


# -- the id of a request


@pytest.mark.parametrize(
    "ids",
    [
        {"requestId": "rq-1"},
        {"request_id": "rq-1"},
        # the row's own id is of something else, that of its usage is the service's
        {"requestId": "row-1", "message": {"usage": {"request_id": "rq-1"}}},
    ],
)
def test_a_row_that_names_its_request_is_the_call_of_the_log_whatever_the_clocks_say(
    tmp_path: Path, ids: dict[str, Any]
) -> None:
    home = tmp_path / "home"
    used = {"input_tokens": 100, "output_tokens": 7, **ids.get("message", {}).get("usage", {})}
    row = _transcript(1, "00:10.000", "s1", **{**ids, "message": {"usage": used}})
    _write(home / ".qoder/projects/-a/s1.jsonl", row)
    completed = {
        "ts": "2026-07-01T10:00:05.000Z",
        "seq": 1,
        "type": "model.response.completed",
        "request_id": "rq-1",
        "data": {"model": "auto", "provider": "custom", "input_tokens": 100, "output_tokens": 7},
    }
    _write(home / ".qoder/logs/sessions/-a/s1/segments/run.jsonl", completed)
    load_home(home, tmp_path / "s.duckdb")
    assert rows(tmp_path / "s.duckdb", "select model_calls, input_tokens, output_tokens from sessions") == [(1, 100, 7)]


def test_fragments_that_name_different_ids_are_tied_by_any_of_them(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first = _transcript(1, "00:10.000", "s1", requestId="rq-1", message={"stop_reason": None})
    last = _transcript(1, "00:10.100", "s1", uuid="u1b", requestId="zz-2")
    _write(home / ".qoder/projects/-a/s1.jsonl", first, last)
    _write(
        home / ".qoder/logs/sessions/-a/s1/segments/run.jsonl",
        {
            "ts": "2026-07-01T10:00:05.000Z",
            "seq": 1,
            "type": "model.response.completed",
            "data": {"request_id": "rq-1", "model": "auto", "input_tokens": 100, "output_tokens": 7},
        },
    )
    load_home(home, tmp_path / "s.duckdb")
    assert rows(tmp_path / "s.duckdb", "select request_key, input_tokens from model_calls") == [("m1", 100)]
