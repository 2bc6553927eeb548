"""Does the benchmark measure a load of a tree that is real in shape, the same every time, and loaded right?

The generated tree is counted here with the standard library's json alone and compared with what the store says.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.bench import gen_corpus, watched
from tests.bench.draw import Mix
from tests.bench.table import table
from tests.loading import load_home, rows

ROOT = Path(__file__).parent.parent
#: Far more of what is rare than a large tree has, so that a small one holds each of it.
ROUGH = Mix(resends=0.05, lost_results=0.05, errors=0.08, refusals=0.04, torn=0.3)

Row = dict[str, Any]


def contents(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def objects(body: bytes) -> list[Row]:
    """The lines of a transcript that are JSON objects."""
    found = []
    for line in body.split(b"\n"):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def items(records: list[Row], kind: str) -> list[tuple[Row, Row]]:
    """Record and content item, of each item of one type."""
    lists = [(record, record["message"]["content"]) for record in records if "message" in record]
    return [(record, item) for record, content in lists if isinstance(content, list) for item in content
            if item["type"] == kind]  # fmt: skip


@pytest.mark.parametrize("style", sorted(gen_corpus.STYLES))
def test_one_seed_gives_one_tree(tmp_path: Path, style: str) -> None:
    for folder, seed in (("a", 7), ("b", 7), ("c", 8)):
        size, number = gen_corpus.write(tmp_path / folder, 1_000_000, seed, style, Mix())
        assert size >= 1_000_000
        assert number == len(contents(tmp_path / folder))
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert contents(tmp_path / "a") != contents(tmp_path / "c")
    times = [sorted(path.stat().st_mtime for path in (tmp_path / folder).rglob("*.jsonl")) for folder in "ab"]
    assert times[0] == times[1]


def test_qoder_records_have_the_shape_of_the_cli(tmp_path: Path) -> None:
    gen_corpus.write(tmp_path, 1_000_000, 11, "qoder", Mix(resends=0.0))
    found = contents(tmp_path)
    messages: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for path, body in found.items():
        if not path.endswith(".jsonl"):
            continue
        records = objects(body)
        if "/subagents/" not in path:
            assert [record["type"] for record in records[:2]] == ["workspace-directories", "runtime-config"]
        if body.endswith(b"\n"):
            assert records[-1]["type"] == "active-leaf"
        for record in records:
            if record["type"] == "assistant":
                messages[path, record["message"]["id"]].append(record["message"])
    assert messages
    for parts in messages.values():
        assert all(len(part["content"]) == 1 for part in parts)
        assert all("usage" not in part and part["stop_reason"] is None for part in parts[:-1])
        assert parts[-1]["usage"]["output_tokens"] == 0 < parts[-1]["usage"]["credits"]
        assert parts[-1]["stop_reason"] in ("tool_use", "end_turn")


def counted(home: Path) -> Counter[str]:
    """What a tree of Qoder transcripts holds; records sent again count once, calls and results by their id."""
    total: Counter[str] = Counter()
    for path, body in contents(home).items():
        if not path.endswith(".jsonl"):
            continue
        records = objects(body)
        total["sessions"] += 1
        total["sub-agents"] += "/subagents/" in path
        total["torn"] += not body.endswith(b"\n")
        total["prompts"] += len({r["uuid"] for r in records if r.get("origin", {}).get("kind") == "human"})
        total["messages"] += len({r["message"]["id"] for r in records if r["type"] == "assistant"})
        total["resends"] += sum(n - 1 for n in Counter(r["uuid"] for r in records if "uuid" in r).values())
        asked = {item["id"] for _, item in items(records, "tool_use")}
        answered = {item["tool_use_id"]: (record, item) for record, item in items(records, "tool_result")}
        assert answered.keys() <= asked
        total["calls"] += len(asked)
        total["results"] += len(answered)
        total["denied"] += sum("toolDenialKind" in record for record, _ in answered.values())
        total["error"] += sum(
            "toolDenialKind" not in r and item.get("is_error", False) for r, item in answered.values()
        )
    return total


def test_a_generated_qoder_tree_is_loaded_as_json_counts_it(tmp_path: Path) -> None:
    home, db = tmp_path / "home", tmp_path / "store.duckdb"
    gen_corpus.write(home, 3_000_000, 3, "qoder", ROUGH)
    wanted = counted(home)
    assert min(wanted.values()) > 0  # the tree holds each of what is counted
    report = load_home(home, db)
    assert (report.findings, report.quarantined, report.sources_failed) == ([], {}, 0)
    assert rows(db, "from record_census where disposition = 'unknown'") == []
    got = dict(zip(("sessions", "sub-agents", "prompts", "calls"), rows(db, """
        select count(*), count(*) filter (kind = 'subagent'), sum(prompts)::bigint, sum(tool_calls)::bigint
        from sessions""")[0], strict=True))  # fmt: skip
    got |= dict(rows(db, "select status, count(*) from tool_calls where status in ('denied', 'error') group by all"))
    [(got["results"],)] = rows(db, "select sum(tool_results)::bigint from source_summary")
    [(got["messages"],)] = rows(db, "select sum(assistant_messages)::bigint from source_summary")
    [(got["torn"],)] = rows(db, "select count(*) from rejects where reason = 'partial_tail'")
    [(got["resends"],)] = rows(
        db, "select sum(n)::bigint from record_census where unit = 'record' and kind like '%:resend'"
    )
    assert got == wanted
    unanswered = "select count(*) from tool_calls where status in ('missing_result', 'interrupted')"
    assert rows(db, unanswered) == [(wanted["calls"] - wanted["results"],)]
    linked = "select count(*) from session_links where relation = 'subagent' and confidence = 'explicit'"
    assert rows(db, linked) == [(wanted["sub-agents"],)]


def envelopes(body: bytes) -> list[Row]:
    """The records of a Muse log, once each: those of frames too."""
    found = []
    for value in objects(body):
        inside = [json.loads(child["record_json"]) for child in value.get("children", [])]
        found += inside or [value]
    return list({record["id"]: record for record in found}.values())


def counted_muse(home: Path) -> Counter[str]:
    """What a generated Muse tree holds."""
    found: Counter[str] = Counter()
    for path, body in contents(home).items():
        is_child = "/subagent/" in path
        found["children" if is_child else "sessions"] += 1
        found["torn"] += not body.endswith(b"\n")
        for record in envelopes(body):
            payload = record["payload"]
            event = payload.get("event", {}) if payload.get("kind") == "run" else {}
            kind = event.get("kind")
            found["turns"] += kind == "started"
            found["prompts"] += kind == "started" and not is_child and bool(event["prompt"])
            found["scheduled"] += kind == "started" and not event["prompt"]
            found["failed"] += kind == "terminal" and event["terminal"] == "failed"
            found["texts"] += kind == "assistant_message_committed"
            found["thoughts"] += kind == "reasoning_summary_committed"
            found["calls"] += len(event.get("tool_calls", ()))
            found["spawns"] += sum(call["name"] == "subagent_spawn" for call in event.get("tool_calls", ()))
            found["results"] += len(event.get("results", ()))
            found["effects"] += record["payload_type"] == "tool_batch.effect.terminal"
            found["output_tokens"] += event["usage"]["output_tokens"] if kind == "model_completed" else 0
    return found


def test_a_generated_muse_tree_is_loaded_as_json_counts_it(tmp_path: Path) -> None:
    home, db = tmp_path / "home", tmp_path / "store.duckdb"
    gen_corpus.write(home, 6_000_000, 4, "muse", ROUGH)
    wanted = counted_muse(home)
    assert min(wanted.values()) > 0
    report = load_home(home, db)
    assert (report.quarantined, report.sources_failed, report.findings) == ({}, 0, [])
    names = ("sessions", "children", "prompts", "texts", "thoughts", "calls", "output_tokens")
    got = Counter(dict(zip(names, rows(db, """
        select count(*) filter (kind = 'root'), count(*) filter (kind = 'subagent'), sum(prompts)::bigint,
            sum(text_rows)::bigint, sum(thinking_rows)::bigint, sum(tool_calls)::bigint, sum(output_tokens)::bigint
        from sessions""")[0], strict=True)))  # fmt: skip
    states = ("turns", "scheduled", "failed")
    got |= Counter(dict(zip(states, rows(db, """
        select count(*), count(*) filter (trigger = 'scheduled'), count(*) filter (status = 'failed') from muse_turns
        """)[0], strict=True)))  # fmt: skip
    [(got["results"],)] = rows(db, "select sum(tool_results)::bigint from source_summary")
    [(got["torn"],)] = rows(db, "select count(*) from rejects where reason = 'partial_tail'")
    [(got["effects"],)] = rows(db, "select count(*) from facts.tool_spans where span = 'execution'")
    [(got["spawns"],)] = rows(db, "select count(*) from muse_subagents")
    assert got == wanted
    timed = "select count(*) from tool_calls where latency_source = 'start_end' and latency_quality = 'exact'"
    assert rows(db, timed) == [(wanted["effects"],)]
    linked = "select count(*) from muse_subagents where has_log and child_session_id is not null"
    assert rows(db, linked) == [(wanted["children"],)]


def test_lines_that_are_no_records_are_rejected_one_by_one(tmp_path: Path) -> None:
    home, db = tmp_path / "home", tmp_path / "store.duckdb"
    gen_corpus.write(home, 1_000_000, 5, "qoder", Mix(torn=0.0, malformed=0.5))
    lines = [line for path, body in contents(home).items() if path.endswith(".jsonl") for line in body.split(b"\n")]
    wanted = sum(1 for line in lines if line and not objects(line))
    assert wanted > 0
    report = load_home(home, db)
    assert (report.quarantined, report.sources_failed) == ({}, 0)
    assert rows(db, "select sum(rejected_lines)::bigint from source_summary") == [(wanted,)]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is sampled from /proc")
def test_memory_of_workers_is_told_from_that_of_the_command() -> None:
    worker = "import time; held = bytearray(80_000_000); time.sleep(0.5)"
    command = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {worker!r}]); sys.exit(4)"
    cost = watched.run([sys.executable, "-c", command], ROOT, os.environ)
    assert (cost.code, cost.processes) == (4, 2)
    assert cost.main_rss < 80_000_000 <= cost.workers_rss <= cost.tree_rss


@pytest.mark.slow
def test_the_benchmark_runs_and_says_what_it_measured(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.bench.run", "--mb", "1", "--rounds", "1", "--json"]
    ran = subprocess.run(
        [*command, "--cache", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False, timeout=600
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found.keys() == {"machine", "tree", "command", "rounds", "summary"}
    [only] = found["rounds"]
    assert only.keys() == {"bare", "load", "unchanged"}
    [tree] = tmp_path.iterdir()  # the tree is kept, stores are not
    transcripts = [body for path, body in contents(tree).items() if path.endswith(".jsonl")]
    assert only["bare"]["bytes"] == found["tree"]["bytes"] == sum(map(len, transcripts))
    assert only["bare"]["lines"] == sum(len(body.splitlines()) for body in transcripts)
    for load in (only["load"], only["unchanged"]):
        assert load["ratio"] == pytest.approx(load["seconds"] / only["bare"]["seconds"])
        assert load["store_bytes"] > 0 < load["main_rss"]
    assert only["load"]["bytes_read"] >= only["bare"]["bytes"]  # meta documents beside the transcripts
    assert found["summary"]["load"]["seconds"]["median"] == only["load"]["seconds"]
    shown = table(found)
    assert f"{only['bare']['seconds']:.2f}" in shown
    assert "load, fresh store" in shown
