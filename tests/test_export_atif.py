"""Do sessions leave a store as trajectories that the format's own models accept and that say what the store says?"""

from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
from atif import Trajectory

from etl.cli import run
from etl.errors import UsageError
from etl.export import views
from etl.export.atif import export_atif, path_of
from etl.export.steps import steps_of
from etl.export.views import Selection
from tests.atif_check import documents, faults
from tests.export_files import every_case
from tests.loading import load_home, rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = "2026-03-02T09:00:0"


def user(session: str, uuid: str, parent: str | None, second: int, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": "user", "sessionId": session, "uuid": uuid, "parentUuid": parent, "timestamp": f"{T}{second}Z",
        "cwd": "/w", "version": "2.1.300", "message": {"role": "user", "content": content}, **more,
    }  # fmt: skip


def assistant(session: str, uuid: str, parent: str, second: int, message: str, *content: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 0, "output_tokens": 7}
    return {
        "type": "assistant", "sessionId": session, "uuid": uuid, "parentUuid": parent, "timestamp": f"{T}{second}Z",
        "version": "2.1.300", "cwd": "/w", "requestId": f"req_{message}",
        "message": {
            "id": message, "role": "assistant", "type": "message", "model": "model-of-nobody", "content": list(content),
            "usage": usage, "stop_reason": "end_turn",
        },
    }  # fmt: skip


def write(home: Path, name: str, *lines: dict[str, Any]) -> None:
    file = home / ".claude" / "projects" / "-w" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A session that thinks, speaks and calls two tools, one of which never answers."""
    home = tmp_path_factory.mktemp("home")
    ls = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls", "n": 2**70}}
    read = {"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {"file_path": "/w/a"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "a.txt"}
    write(
        home,
        "s1.jsonl",
        user("s1", "u1", None, 1, "List"),
        assistant("s1", "a1", "u1", 2, "m1", {"type": "thinking", "thinking": "Hm.", "signature": "x"}),
        assistant("s1", "a2", "a1", 3, "m1", {"type": "text", "text": "I look."}),
        assistant("s1", "a3", "a2", 4, "m1", ls),
        assistant("s1", "a4", "a3", 4, "m1", read),
        user("s1", "r1", "a4", 6, [result]),
    )
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
    folder = large.parent / "trajectories"
    export_atif(str(large), str(folder), Selection())
    return folder


def only(db: Path, folder: Path) -> dict[str, Any]:
    export_atif(str(db), str(folder), Selection())
    (document,) = documents(folder).values()
    return document


def bare(step: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in step.items() if name != "extra"}


# --- one session, by hand ---


def test_a_session_is_a_trajectory(small: Path, tmp_path: Path) -> None:
    document = only(small, tmp_path / "out")
    asked, answered = document["steps"]
    assert bare(asked) == {"step_id": 1, "timestamp": f"{T}1Z", "source": "user", "message": "List"}
    result = answered["observation"]["results"][0]
    assert bare(answered) == {
        "step_id": 2,
        "timestamp": f"{T}2Z",
        "source": "agent",
        "message": "I look.",
        "model_name": "model-of-nobody",
        "reasoning_content": "Hm.",
        "tool_calls": [
            {"tool_call_id": "toolu_1", "function_name": "Bash", "arguments": {"command": "ls", "n": 2**70}},
            {
                "tool_call_id": "toolu_2",
                "function_name": "Read",
                "arguments": {"file_path": "/w/a"},
                "extra": {"status": "missing_result"},
            },
        ],
        "observation": {"results": [{"source_call_id": "toolu_1", "content": "a.txt", "extra": result["extra"]}]},
        "llm_call_count": 1,
        "metrics": {
            "prompt_tokens": 100,  # 10 and the 90 that were cached
            "completion_tokens": 7,
            "cached_tokens": 90,
            "extra": answered["metrics"]["extra"],
        },
    }
    assert result["extra"]["latency_ms"] == 2000.0
    assert (answered["extra"]["line_no"], answered["extra"]["turn_no"]) == (2, 1)
    assert document["final_metrics"] == {
        "total_prompt_tokens": 100,
        "total_completion_tokens": 7,
        "total_cached_tokens": 90,
        "total_steps": 2,
        "extra": {"model_calls": 1, "tool_calls": 2},
    }
    assert document["agent"] == {"name": "claude-code", "version": "2.1.300", "model_name": "model-of-nobody"}
    assert (document["session_id"], document["trajectory_id"]) == ("claude_code:s1", "claude_code:s1")
    assert "notes" not in document
    Trajectory.model_validate(document)


def test_a_fork_flags_what_it_copied_and_does_not_count_it(tmp_path: Path) -> None:
    first = [
        user("s1", "u1", None, 1, "Begin"),
        assistant("s1", "a1", "u1", 2, "m1", {"type": "text", "text": "Begun."}),
    ]
    write(tmp_path, "s1.jsonl", *first)
    copied = [
        line | {"sessionId": "s2", "forkedFrom": {"sessionId": "s1", "messageUuid": line["uuid"]}} for line in first
    ]
    own = [
        user("s2", "u2", "a1", 5, "Go on"),
        assistant("s2", "a2", "u2", 6, "m2", {"type": "text", "text": "Gone on."}),
    ]
    write(tmp_path, "s2.jsonl", *copied, *own)
    load_home(tmp_path, tmp_path / "s.duckdb")
    export_atif(str(tmp_path / "s.duckdb"), str(tmp_path / "out"), Selection())
    fork = json.loads((tmp_path / "out" / "claude_code" / "s2.json").read_bytes())
    assert [(step["message"], step.get("is_copied_context"), "metrics" in step) for step in fork["steps"]] == [
        ("Begin", True, False),
        ("Begun.", True, False),
        ("Go on", None, False),
        ("Gone on.", None, True),
    ]
    assert fork["final_metrics"]["total_prompt_tokens"] == 100
    assert fork["notes"] == "Steps copied from another session carry no metrics: that session counts them."
    assert fork["extra"]["related"] == [{"relation": "fork", "from": "claude_code:s1", "trajectory_path": "s1.json"}]
    assert faults(tmp_path / "out", tmp_path / "s.duckdb") == []


def test_a_sub_agent_is_referred_to_where_it_is_exported_too(tmp_path: Path) -> None:
    task = {"type": "tool_use", "id": "toolu_t", "name": "Task", "input": {"prompt": "Dig"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_t", "content": "Dug"}
    write(
        tmp_path,
        "s1.jsonl",
        user("s1", "u1", None, 1, "Ask one"),
        assistant("s1", "a1", "u1", 2, "m1", task),
        user("s1", "r1", "a1", 6, [result], toolUseResult={"agentId": "abc", "status": "completed"}),
    )
    side = {"isSidechain": True, "agentId": "abc"}
    write(
        tmp_path,
        "s1/subagents/agent-abc.jsonl",
        user("s1", "u9", None, 3, "Dig", **side),
        assistant("s1", "a9", "u9", 4, "m9", {"type": "text", "text": "Dug"}) | side,
    )
    load_home(tmp_path, tmp_path / "s.duckdb")
    db = str(tmp_path / "s.duckdb")
    export_atif(db, str(tmp_path / "both"), Selection(sessions=("s1",)))
    child = path_of("claude_code:s1/agent-abc")
    assert sorted(path.name for path in documents(tmp_path / "both")) == ["s1.json", child.split("/")[1]]
    parent = json.loads((tmp_path / "both" / "claude_code" / "s1.json").read_bytes())
    (given,) = parent["steps"][1]["observation"]["results"]
    assert given["content"] == "Dug"
    assert given["subagent_trajectory_ref"] == [
        {"trajectory_path": child.split("/")[1], "extra": {"trajectory_id": "claude_code:s1/agent-abc"}}
    ]
    spawned = json.loads((tmp_path / "both" / child).read_bytes())
    assert (spawned["session_id"], spawned["trajectory_id"]) == ("claude_code:s1", "claude_code:s1/agent-abc")
    assert spawned["extra"]["related"] == [
        {
            "relation": "subagent",
            "from": "claude_code:s1",
            "tool_call_id": "toolu_t",
            "trajectory_path": "s1.json",
        }
    ]
    assert spawned["steps"][0]["extra"]["kind"] == "objective"
    assert faults(tmp_path / "both", tmp_path / "s.duckdb") == []
    # alone, it names its parent and no file
    export_atif(db, str(tmp_path / "child"), Selection(sessions=("s1/agent-abc",)))
    (alone,) = documents(tmp_path / "child").values()
    assert "trajectory_path" not in alone["extra"]["related"][0]


def test_the_totals_of_a_rewound_branch_are_told_apart(exported: Path) -> None:
    """fixtures/codex/taken_back: the one call of the session was made on the branch that was taken back."""
    document = json.loads((exported / "codex" / "019f1000-0000-7000-8000-000000000031.json").read_bytes())
    final = document["final_metrics"]
    assert (final["total_prompt_tokens"], final["total_completion_tokens"]) == (10, 1)
    assert final["extra"]["not_in_steps"]["dead_branches"]["prompt_tokens"] == 10
    assert not any("metrics" in step for step in document["steps"])
    assert document["notes"] == "The totals include model calls of branches that were rewound, which are no steps."


def test_a_compaction_is_a_step_of_the_system(large: Path, exported: Path) -> None:
    ((session, text),) = rows(
        large, "select session_id, text from dialogue where kind = 'summary' and provider = 'claude_code'"
    )
    document = json.loads((exported / path_of(session)).read_bytes())
    (step,) = [step for step in document["steps"] if step["message"] == text]
    assert step["source"] == "system"
    assert step["extra"]["context_management"] == {"type": "compaction", "boundary": "replace"}


def test_transport_json_is_no_message(large: Path, exported: Path) -> None:
    """fixtures/qoder/double_encoded_twice has two such blocks."""
    flagged = rows(large, "select session_id, count(*) from dialogue where raw_envelope group by all")
    assert dict(flagged)["qoder:twice-1"] == 2
    for session, number in flagged:
        document = json.loads((exported / path_of(session)).read_bytes())
        assert sum(step["extra"].get("raw_envelopes", 0) for step in document["steps"]) == number
        assert "transport JSON is left out" in document["notes"]


# --- steps, by rows ---


def entry(seq: int, kind: str, **more: Any) -> dict[str, Any]:
    row = {
        "seq": seq, "kind": kind, "text": f"text {seq}", "turn_no": 1, "ts": None, "model": None, "message_key": None,
        "is_copy": False, "source_id": "f", "line_no": seq, "raw_envelope": False, "attachments": None,
    }  # fmt: skip
    return row | more


def used(tokens: int | None, line: int | None = None, **more: Any) -> dict[str, Any]:
    row = {
        "message_key": None, "source_id": None if line is None else "f", "line_no": line, "ts": None, "turn_no": 1,
        "model": "m", "input_tokens": tokens, "output_tokens": None, "cache_read_tokens": None, "cost_usd": None,
        "credits": None, "reasoning_tokens": None, "cache_creation_5m_tokens": None, "cache_creation_1h_tokens": None,
        "usage_status": "reported", "cost_basis": None, "stop_reason": None, "duration_ms": None,
        "first_token_ms": None,
    }  # fmt: skip
    return row | more


def told(entries: list[dict[str, Any]], usage: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    steps = [step.as_dict(n, lambda _: []) for n, step in enumerate(steps_of(entries, usage), 1)]
    return [
        (step["source"], step["message"], step.get("metrics", {}).get("prompt_tokens"), step.get("llm_call_count"))
        for step in steps
    ]


def test_pieces_of_a_message_are_one_step_whatever_stands_between() -> None:
    entries = [
        entry(1, "prompt"),
        entry(2, "text", message_key="m"),
        entry(3, "context", message_key="c"),
        entry(4, "text", message_key="m"),
    ]
    assert told(entries, [used(5, message_key="m"), used(6, message_key="m")]) == [
        ("user", "text 1", None, None),
        ("agent", "text 2\n\ntext 4", 11, 2),
        ("system", "text 3", None, None),
    ]


def test_a_call_that_names_no_message_belongs_to_the_one_before_it() -> None:
    entries = [
        entry(1, "prompt"),
        entry(3, "text"),
        entry(5, "text"),
        entry(7, "prompt", turn_no=2),
        entry(9, "text", turn_no=2),
    ]
    placed = [used(10, 6), used(20, 10, turn_no=2), used(30, 8, turn_no=2), used(None, 11)]
    assert told(entries, placed) == [
        ("user", "text 1", None, None),
        ("agent", "text 3", None, None),
        ("agent", "text 5", 10, 1),
        ("user", "text 7", None, None),
        ("agent", "", 30, 1),  # between a prompt and an answer: a step of its own
        ("agent", "text 9", 20, 1),
    ]


@pytest.mark.parametrize(
    ("call", "after"),
    [
        (used(1, 4), "text 4"),
        (used(1, 1), ""),
        (used(1, turn_no=1), "text 2"),
        (used(1, turn_no=None), ""),
    ],
)
def test_a_call_stands_by_line_or_else_by_turn(call: dict[str, Any], after: str) -> None:
    entries = [entry(2, "text"), entry(4, "text", turn_no=1 if call["line_no"] else 2)]
    assert [message for _, message, tokens, _ in told(entries, [call]) if tokens] == [after]


def test_arguments_that_are_no_object_stand_beside_an_empty_one() -> None:
    call = {
        "call_key": "c", "name": "Bash", "mcp_server": None, "status": "ok", "has_result": False, "result_text": None,
        "ended_at": None,
    }  # fmt: skip
    for text, arguments, beside in (
        ('{"a": 1}', {"a": 1}, None),
        ("[1]", {}, "[1]"),
        ("{broken", {}, "{broken"),
        ('{"a": 1e400}', {}, '{"a": 1e400}'),
        (None, {}, None),
    ):
        (step,) = steps_of([entry(1, "call", args=text, **call)], [])
        (said,) = step.as_dict(1, lambda _: [])["tool_calls"]
        assert (said["arguments"], said["extra"].get("arguments_text")) == (arguments, beside)


# --- every session ---


def test_every_trajectory_is_valid_and_says_what_the_store_says(large: Path, exported: Path) -> None:
    assert faults(exported, large) == []


def test_every_session_that_says_something_makes_one(large: Path, exported: Path) -> None:
    made = {document["trajectory_id"] for document in documents(exported).values()}
    silent = dict(rows(large, "select session_id, text_rows + tool_calls + prompts from sessions"))
    assert made <= set(silent)
    assert {session: n for session, n in silent.items() if session not in made and n} == {}
    assert len(made) > 200


def test_the_cases_are_worth_something(exported: Path) -> None:
    steps = [step for document in documents(exported).values() for step in document["steps"]]
    assert {step["source"] for step in steps} == {"user", "agent", "system"}
    for name in ("tool_calls", "observation", "metrics", "is_copied_context", "reasoning_content"):
        assert sum(name in step for step in steps) > 5, name
    assert sum("subagent_trajectory_ref" in json.dumps(step) for step in steps) > 5


def change(document: dict[str, Any], how: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    changed = deepcopy(document)
    how(changed)
    return changed


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda d: d["steps"][1]["metrics"].update(prompt_tokens=99), "total_prompt_tokens is 100, the steps say [99]"),
        (lambda d: d["final_metrics"].update(total_completion_tokens=8), "the session says 7"),
        (lambda d: d["steps"][1].update(timestamp="2020-01-01T00:00:00Z"), "step 2 is before the one before it"),
        (lambda d: d["steps"][0].update(message="Lost"), "nobody says: List"),
        (lambda d: d["steps"][0].update(message='List {"role": "user"}'), "characters are said"),
        (lambda d: d["steps"][1]["tool_calls"].pop(), "the calls are not those of the session"),
        (lambda d: d["steps"][1]["tool_calls"][1].update(tool_call_id="toolu_1"), "call toolu_1 stands 2 times"),
        (lambda d: d.update(notes=None), "null at /notes"),
    ],
)
def test_the_stricter_check_can_fail(
    small: Path, tmp_path: Path, how: Callable[[dict[str, Any]], object], said: str
) -> None:
    document = only(small, tmp_path / "out")
    assert faults(tmp_path / "out", small) == []
    (path,) = documents(tmp_path / "out")
    path.write_text(json.dumps(change(document, how)), encoding="utf-8")
    assert said in " ".join(faults(tmp_path / "out", small))


def test_the_same_store_gives_the_same_bytes_however_many_sessions_are_taken_at_a_time(
    large: Path, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "_CHUNK_BYTES", 5_000)
    monkeypatch.setattr(views, "_WIDE_ROWS", 3)
    export_atif(str(large), str(tmp_path / "again"), Selection())
    read = {path.relative_to(exported): path.read_bytes() for path in exported.rglob("*.json")}
    assert read == {
        path.relative_to(tmp_path / "again"): path.read_bytes() for path in (tmp_path / "again").rglob("*.json")
    }


@pytest.mark.parametrize(
    ("session", "path"),
    [
        ("qoder:3915f6e3-a", "qoder/3915f6e3-a.json"),
        ("qoder.cn:x", "qoder.cn/x.json"),
        ("qoder:../../etc", None),
        ("qoder:.hidden", None),
        ("qoder:a/agent-b", None),
        ("qoder:ABC", None),
        ("qoder:" + "x" * 500, None),
        ("qoder:é", None),
    ],
)
def test_a_file_has_a_name_that_any_file_system_takes(session: str, path: str | None) -> None:
    made = path_of(session)
    folder, name = made.split("/")
    assert (folder, name[0] != ".", len(name) < 150) == (session.split(":", maxsplit=1)[0], True, True)
    assert name.isascii()
    if path is not None:
        assert made == path
    else:
        assert len(name.rpartition("-")[2]) == len("0123456789abcdef.json")


# --- the command ---


def test_the_command_says_what_it_wrote(large: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["export", "atif", str(tmp_path / "out"), "--db", str(large), "--session", "qoder:rewound-1"]
    assert run(words) == 0
    assert capsys.readouterr().err == f"1 trajectories -> {tmp_path / 'out'}\n"
    assert [path.name for path in documents(tmp_path / "out")] == ["rewound-1.json"]
    assert run([*words[:5], "--session", "no-such"]) == 2
    assert "no session key begins with 'no-such'" in capsys.readouterr().err
    assert [path.name for path in documents(tmp_path / "out")] == ["rewound-1.json"]


def test_a_parquet_export_is_not_replaced_by_trajectories(small: Path, tmp_path: Path) -> None:
    assert run(["export", "parquet", str(tmp_path / "out"), "--db", str(small), "-q"]) == 0
    with pytest.raises(UsageError, match="an export of another kind"):
        export_atif(str(small), str(tmp_path / "out"), Selection())
