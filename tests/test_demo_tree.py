"""Is the shipped demo home what its generator writes and its answer says, in the shapes Qoder CLI leaves on disk?"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from datetime import datetime
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests import demo_tree, demo_truth

ROOT = Path(__file__).parent.parent
DEMO = ROOT / "fixtures/demo"
PROJECTS = DEMO / ".qoder/projects"
EXPECTED = json.loads((ROOT / "tests/expected/demo.json").read_text(encoding="utf-8"))
TOKEN = "glpat-" + "FAKEfakeFAKEfake1234"
ZEROS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")

Row = dict[str, Any]


def parsed(path: Path) -> list[Row]:
    """Every line that is JSON, resends included."""
    rows: list[Row] = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return rows


ROOTS = {path.stem: parsed(path) for path in sorted(PROJECTS.glob("*/*.jsonl"))}
CHILDREN = {path: parsed(path) for path in sorted(PROJECTS.glob("*/*/subagents/*.jsonl"))}
FILES = [*ROOTS.values(), *CHILDREN.values()]
ROWS = [row for rows in FILES for row in rows]


def blocks(rows: list[Row], kind: str) -> list[tuple[Row, Row]]:
    """Record and content item of each item of one type."""
    lists = [(row, row["message"]["content"]) for row in rows if "message" in row]
    return [
        (row, item) for row, content in lists if isinstance(content, list) for item in content if item["type"] == kind
    ]


def at(row: Row) -> float:
    """Seconds since 1970."""
    return datetime.fromisoformat(row["timestamp"]).timestamp()


def results(rows: list[Row]) -> dict[str, tuple[Row, Row]]:
    return {item["tool_use_id"]: (row, item) for row, item in blocks(rows, "tool_result")}


def pairs(rows: list[Row]) -> dict[str, tuple[str, float, Row]]:
    """Tool, seconds to the result and the result's record, by call."""
    ends = results(rows)
    uses = [(row, item) for row, item in blocks(rows, "tool_use") if item["id"] in ends]
    return {item["id"]: (item["name"], at(ends[item["id"]][0]) - at(row), ends[item["id"]][0]) for row, item in uses}


ALL_PAIRS = [pair for rows in FILES for pair in pairs(rows).values()]


def test_the_committed_tree_is_what_the_generator_writes(tmp_path: Path) -> None:
    demo_tree.write(tmp_path)

    def tree(top: Path) -> dict[str, bytes]:
        return {path.relative_to(top).as_posix(): path.read_bytes() for path in top.rglob("*") if path.is_file()}

    assert tree(DEMO) == tree(tmp_path)
    assert [path.name for path in DEMO.iterdir()] == [".qoder"]  # the wheel ships every file below fixtures/demo
    assert sum(len(data) for data in tree(DEMO).values()) < 700_000


def test_the_answer_is_what_the_second_count_says() -> None:
    assert demo_truth.truth(DEMO) == EXPECTED


def test_the_answer_is_what_the_stories_hold() -> None:
    """Counted in the text of `demo_tree.STORIES` by their first signs, without the four sessions left out."""
    report = EXPECTED["report"]

    assert report["sessions"] == 40
    assert report["prompts"] == 61  # lines with >
    assert report["text_rows"] == 71  # lines with -, o and g; neither the API error nor the torn answer
    assert report["thinking_rows"] == 40  # lines with ?
    assert report["readable_rows"] == 111
    assert report["tool_calls"] == 172
    assert report["tool_errors"] == 10  # tools with !
    assert report["denied_calls"] == 2  # tools with x
    assert report["paired_calls"] == 171  # one is interrupted
    assert report["timed_calls"] == 169  # and two are refused
    assert report["unknown_items"] == 1
    assert report["rejected_lines"] == 2  # the writer's warning and the torn tail
    assert report["raw_envelopes"] == 0


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([10, 20], "1/2", 15.0), ([1, 2, 3], "1/2", 2.0), ([7], "19/20", 7.0), ([0, 10, 20, 30, 40], "19/20", 38.0)],
)
def test_the_second_count_interpolates_between_ranks(values: list[int], share: str, expected: float) -> None:
    assert demo_truth.quantile([Fraction(v) for v in values], Fraction(share)) == expected


def test_44_root_sessions_of_4_projects_end_at_44_moments() -> None:
    ends = [answer["ended_at"] for answer in EXPECTED["sessions"]]

    assert len(ROOTS) == len(set(ends)) == 44
    assert ends == sorted(ends, reverse=True)
    assert {path.name: len(list(path.glob("*.jsonl"))) for path in PROJECTS.iterdir()} == {
        "-srv-work-edge-proxy": 11,
        "-srv-work-field-notes": 11,
        "-srv-work-ledger-core": 11,
        "-srv-work-shop-api": 11,
    }
    assert {row["cwd"] for row in ROWS if "cwd" in row} == {
        "/srv/work/edge-proxy",
        "/srv/work/field_notes",
        "/srv/work/ledger.core",
        "/srv/work/shop_api",
    }
    assert {row["timestamp"][:7] for row in ROWS if "uuid" in row} == {"2026-09", "2026-10", "2026-11"}


def test_start_times_or_unix_times_would_choose_another_forty() -> None:
    firsts = {name: min(at(row) for row in rows if "uuid" in row) for name, rows in ROOTS.items()}
    numbers = {
        name: max(float(row["timestamp"]) for row in rows if isinstance(row.get("timestamp"), int))
        for name, rows in ROOTS.items()
    }

    def oldest(by: dict[str, float]) -> set[str]:
        return set(sorted(by, key=lambda name: by[name])[:4])

    assert len(set(EXPECTED["left_out"]) - oldest(firsts)) == 1  # one early session was resumed in November
    assert len(set(EXPECTED["left_out"]) - oldest(numbers)) == 1  # one was opened in November and nothing asked


@pytest.mark.parametrize("rows", FILES)
def test_the_parent_chain_is_whole(rows: list[Row]) -> None:
    known: set[str] = set()
    uses = {item["id"]: row["uuid"] for row, item in blocks(rows, "tool_use")}
    orphans = []
    for row in rows:
        if row["type"] == "active-leaf":
            assert row["leafUuid"] in known
        elif "uuid" in row:
            if row["parentUuid"] is None:
                orphans.append(row.get("subtype", row["type"]))
            else:
                assert row["parentUuid"] in known
            known.add(row["uuid"])
    for row, item in blocks(rows, "tool_result"):
        assert row["parentUuid"] == row["sourceToolAssistantUUID"] == uses[item["tool_use_id"]]
    assert orphans in (["user"], ["user", "compact_boundary"])


@pytest.mark.parametrize("rows", FILES)
def test_an_answer_is_one_record_a_block_and_the_last_holds_the_meter(rows: list[Row]) -> None:
    messages: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        if row["type"] == "assistant" and not row.get("isApiErrorMessage"):
            messages[row["message"]["id"]][row["uuid"]] = row["message"]
    assert messages
    for records in messages.values():
        *early, last = records.values()
        assert all(len(record["content"]) == 1 for record in records.values())
        assert all(record["stop_reason"] is None and "usage" not in record for record in early)
        assert last["stop_reason"] in {"end_turn", "tool_use"}
        assert [last["usage"][name] for name in ZEROS] == [0, 0, 0, 0]
        assert last["usage"]["credits"] > 0


@pytest.mark.parametrize("name", ROOTS)
def test_a_session_has_the_frame_of_its_version(name: str) -> None:
    rows = ROOTS[name]
    types = Counter(row["type"] for row in rows)
    (version,) = {row["version"] for row in rows if "version" in row}
    prompts = [row for row in rows if "origin" in row]

    assert 1 <= len(prompts) <= 4
    assert all(row["promptId"] for row in prompts)
    assert types["runtime-config"] >= 1
    if version == "1.0.40":
        assert types["active-leaf"] == types["workspace-directories"] == types["attachment"] == 0
        assert not any("humanInput" in row for row in rows)
        assert all("is_error" in item for _, item in blocks(rows, "tool_result"))
    else:
        assert version in {"1.1.28", "1.1.52", "1.1.76"}
        assert rows[0]["type"] == "workspace-directories"
        assert all(row["humanInput"]["text"] for row in prompts)
        assert types["ai-title"] == 1
        assert types["active-leaf"] > len(results(rows))
        assert [row["attachment"]["type"] for row in rows if row["type"] == "attachment"] == [
            "skill_listing",
            "date_change",
        ]
        assert all(item.get("is_error") is not False for _, item in blocks(rows, "tool_result"))
    if EXPECTED["sessions"][0]["session_id"] == name:  # its machine went down
        assert types["last-prompt"] == 0
    else:
        assert rows[-1]["type"] == ("last-prompt" if version == "1.0.40" else "active-leaf")
        asked = demo_truth.items(prompts[-1])[0]["text"]
        assert [row["lastPrompt"] for row in rows if row["type"] == "last-prompt"][-1] == asked


def test_the_tools_are_those_of_the_cli() -> None:
    assert {item["name"] for _, item in blocks(ROWS, "tool_use")} == {
        *("Agent", "AskUserQuestion", "Bash", "Edit", "Glob", "Grep", "Read", "TodoWrite", "WebFetch", "Write"),
        "mcp__browser__navigate",
    }
    done = [row["toolUseResult"] for tool, _, row in ALL_PAIRS if tool == "Bash" and "toolDenialKind" not in row]
    assert {(outcome["kind"], outcome["exitCode"]) for outcome in done} == {("completed", 0), ("completed", 1)}


def test_every_write_is_preceded_by_a_file_history_snapshot() -> None:
    for rows in FILES:
        kept = {
            path
            for row in rows
            if row["type"] == "file-history-snapshot"
            for path in row["snapshot"]["trackedFileBackups"]
        }
        written = {
            item["input"]["file_path"] for _, item in blocks(rows, "tool_use") if item["name"] in {"Edit", "Write"}
        }
        cwd = next(row["cwd"] for row in rows if "cwd" in row)
        assert {f"{cwd}/{path}" for path in kept} == written


def test_latencies_are_uneven_with_a_heavy_tail() -> None:
    reads = [seconds for tool, seconds, _ in ALL_PAIRS if tool == "Read"]
    shells = [seconds for tool, seconds, _ in ALL_PAIRS if tool == "Bash"]

    assert sum(0.010 <= s <= 0.080 for s in reads) > len(reads) / 2
    assert sum(0.2 <= s <= 5 for s in shells) > len(shells) / 2
    assert sum(30 <= s <= 120 for s in shells) >= 8
    assert sum(412 <= s < 413 for s in shells) == 1
    assert len({round(s, 3) for s in shells}) > len(shells) * 0.9


def test_results_of_parallel_calls_stand_apart_or_are_flushed_together() -> None:
    gaps: list[set[bool]] = []
    for rows in FILES:
        ends = results(rows)
        groups: dict[str, list[float]] = defaultdict(list)
        for row, item in blocks(rows, "tool_use"):
            if item["id"] in ends:
                groups[row["message"]["id"]].append(at(ends[item["id"]][0]))
        for times in groups.values():
            ordered = sorted(times)
            if len(ordered) > 1:
                gaps.append({b - a <= 0.250 for a, b in pairwise(ordered)})
    assert gaps.count({True}) >= 5
    assert gaps.count({False}) >= 5
    assert gaps.count({True, False}) == 0


def test_a_result_may_stand_between_the_calls_of_one_message() -> None:
    between = 0
    for rows in FILES:
        stream = [row for row in rows if row["type"] in {"assistant", "user"}]
        for before, row, after in zip(stream, stream[1:], stream[2:], strict=False):
            if row["type"] == "user" and before["type"] == after["type"] == "assistant":
                between += before["message"]["id"] == after["message"]["id"] and after["parentUuid"] == before["uuid"]
    assert between >= 1


def test_errors_refusals_and_waits_for_a_person() -> None:
    refused = [(tool, row) for tool, _, row in ALL_PAIRS if "toolDenialKind" in row]
    waits = sorted((tool, round(seconds / 60)) for tool, seconds, _ in ALL_PAIRS if seconds > 600)

    assert [(tool, row["toolDenialKind"]) for tool, row in refused] == [("Bash", "user-rejected")] * 2
    assert all(row["userFeedback"] and row["message"]["content"][0]["is_error"] for _, row in refused)
    assert waits == [("AskUserQuestion", 11), ("Bash", 25)]
    assert sum(row["toolUseResult"].get("errorType") == "file_not_found" for _, _, row in ALL_PAIRS) == 1


def test_one_call_is_interrupted() -> None:
    (row,) = [row for row, item in blocks(ROWS, "text") if item["text"] == "[Request interrupted by user for tool use]"]
    rows = ROOTS[row["sessionId"]]
    (call,) = [item["id"] for use, item in blocks(rows, "tool_use") if use["uuid"] == row["parentUuid"]]

    assert call not in results(rows)
    assert "origin" not in row
    assert len(blocks(ROWS, "tool_use")) == len(ALL_PAIRS) + 1


def test_two_sub_agents_hang_on_the_call_that_started_them() -> None:
    assert len(CHILDREN) == len(EXPECTED["subagents"]) == 2
    for path, rows in CHILDREN.items():
        meta = json.loads(path.with_suffix(".meta.json").read_text(encoding="utf-8"))
        parent = path.parent.parent.name
        tool, _, answer = pairs(ROOTS[parent])[meta["toolUseId"]]
        messages = [row for row in rows if "uuid" in row]

        assert set(meta) == {"agentType", "toolUseId"}
        assert tool == "Agent"
        assert path.name == f"agent-{answer['toolUseResult']['agentId']}.jsonl"
        assert {(row["isSidechain"], row["sessionId"]) for row in messages} == {(True, parent)}
        assert isinstance(messages[0]["message"]["content"], str)
        assert at(messages[-1]) < at(answer)


def test_one_session_is_compacted() -> None:
    (boundary,) = [row for row in ROWS if row.get("subtype") == "compact_boundary"]
    (summary,) = [row for row in ROWS if row.get("isCompactSummary")]

    assert (boundary["type"], boundary["parentUuid"]) == ("system", None)
    assert boundary["logicalParentUuid"] in {row.get("uuid") for row in ROOTS[boundary["sessionId"]]}
    assert (summary["type"], summary["parentUuid"]) == ("user", boundary["uuid"])


def test_one_request_fails() -> None:
    (row,) = [row for row in ROWS if row.get("isApiErrorMessage")]

    assert row["message"]["model"] == "<synthetic>"
    assert row["message"]["content"][0]["text"].startswith("API Error: 529")


def test_one_line_is_written_twice() -> None:
    lines = Counter(
        line
        for path in PROJECTS.rglob("*.jsonl")
        for line in path.read_text(encoding="utf-8").split("\n")
        if '"uuid"' in line
    )
    ids = Counter(row["uuid"] for row in ROWS if "uuid" in row)

    assert sorted(lines.values())[-2:] == [1, 2]
    assert sorted(ids.values())[-2:] == [1, 2]


def test_one_answer_of_the_older_build_grows() -> None:
    (short,) = [row for row, item in blocks(ROWS, "text") if item["text"] == "The cause"]
    (grown,) = [row for row, item in blocks(ROWS, "text") if item["text"].startswith("The cause is")]

    assert short["version"] == grown["version"] == "1.0.40"
    assert short["uuid"] != grown["uuid"]
    assert [short[key] for key in ("parentUuid", "sessionId")] == [grown[key] for key in ("parentUuid", "sessionId")]
    assert short["message"]["id"] == grown["message"]["id"]


def test_odd_items_and_records_occur_once_each() -> None:
    kinds = Counter(
        item["type"] for row in ROWS for item in row.get("message", {}).get("content", []) if isinstance(item, dict)
    )

    assert set(kinds) == {"text", "output_text", "thinking", "tool_use", "tool_result", "future_transport_item"}
    assert kinds["output_text"] == kinds["future_transport_item"] == 1
    assert sum(row["type"] == "workspace-insight" for row in ROWS) == 1
    assert sum(row["type"] == "custom-title" for row in ROWS) == 1
    assert sum(row.get("isMeta", False) for row in ROWS) == 2  # a reminder and the summary of the compaction


def test_one_line_is_no_json_and_one_tail_is_torn() -> None:
    texts = [path.read_text(encoding="utf-8") for path in PROJECTS.rglob("*.jsonl")]
    torn = [text for text in texts if not text.endswith("\n")]

    assert sum("\n[warn] transcript writer: slow flush, 812 ms\n" in text for text in texts) == 1
    assert len(torn) == 1
    with pytest.raises(json.JSONDecodeError):
        json.loads(torn[0].rpartition("\n")[2])


def test_envelopes_that_people_and_models_write_are_text() -> None:
    answers = [item["text"] for row, item in blocks(ROWS, "text") if row["type"] == "assistant"]
    envelopes = [json.loads(text) for text in answers if text.startswith("{")]
    pasted = [
        row["humanInput"]["text"] for row in ROWS if '{"role":"assistant"' in row.get("humanInput", {}).get("text", "")
    ]

    assert [sorted(envelope) for envelope in envelopes] == [["content", "role"]] * 2
    assert len(pasted) == 1
    assert not any("PI_CONVERSATION_JSON=" in path.read_text(encoding="utf-8") for path in PROJECTS.rglob("*.jsonl"))


def test_umlauts_and_emoji_stand_as_they_are() -> None:
    (prompt,) = [row["humanInput"]["text"] for row in ROWS if "🧀" in row.get("humanInput", {}).get("text", "")]

    assert prompt.startswith('Searching "Käse 🧀" finds nothing')
    assert "Käse 🧀".encode() in b"".join(path.read_bytes() for path in PROJECTS.rglob("*.jsonl"))


def test_the_only_secret_is_a_fake_in_a_prompt_and_in_a_result() -> None:
    source = Path(demo_tree.__file__).read_text(encoding="utf-8")
    prompts = [row["sessionId"] for row in ROWS if TOKEN in row.get("humanInput", {}).get("text", "")]
    printed = [row["sessionId"] for row, item in blocks(ROWS, "tool_result") if TOKEN in str(item["content"])]

    assert len(prompts) == 1
    assert printed == prompts
    assert TOKEN not in source  # the generator splits it
