"""Does evidence of a Bridge load the same in any order, twice, growing, damaged, and from anywhere?"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from etl.assemble import Fold
from etl.discover import discover
from etl.finish import finish
from etl.jsonl import Record
from etl.loglines import LineReader
from etl.providers import get
from etl.providers.base import Claim, Environment, Source
from etl.providers.qoder_bridge import paths
from etl.providers.qoder_bridge.debuglog import LABELS as LOG_LABELS
from etl.providers.qoder_bridge.diagnostics import LABELS
from etl.request import Request
from etl.tables import Buffers
from tests.loading import FIXTURES, HOST, KEY, NOW, load_home, rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TREE = FIXTURES / "qoder_bridge" / "five_runs" / "tree"
STAMP = "2026-09-30T05-12-53.712Z"
RUNS = "select run, sdk_raw_chunks, tool_count, provider_unavailable, terminal_state from bridge_runs order by run"
GOLDEN = [(1, 18, 0, 1, "FAILED"), (2, 18, 0, 1, "FAILED"), (3, 59, 1, 1, "FAILED"), (4, 57, 1, 1, "FAILED")]
GOLDEN.append((5, 18, 0, 1, "FAILED"))


def test_there_is_no_default_place() -> None:
    assert list(get("qoder_bridge").roots(Environment("/home/nobody"))) == []


@pytest.mark.parametrize("below", ["", "test-artifacts", f"test-artifacts/boundary-investigation/{STAMP}"])
def test_a_root_may_begin_anywhere(tmp_path: Path, below: str) -> None:
    load_home(tmp_path, tmp_path / "store.duckdb", qoder_bridge=TREE / below)
    assert rows(tmp_path / "store.duckdb", RUNS) == GOLDEN


def test_only_evidence_is_claimed(tmp_path: Path) -> None:
    """Other JSON and JSONL files, logs of other programs, and the pointer to the latest folder are left alone."""
    shutil.copytree(TREE, tmp_path / "tree")
    (tmp_path / "tree" / "package.json").write_text('{"name":"pi-bridge"}')
    (tmp_path / "tree" / "npm.log").write_text("npm warn nothing\n")
    (tmp_path / "tree" / "other.jsonl").write_text('{"type":"user","uuid":"u","sessionId":"s"}\n')
    shutil.copyfile(FIXTURES / "qoder_bridge/debug_log/tree/real-provider-debug.log", tmp_path / "tree" / "stderr.log")
    found = discover(get("qoder_bridge"), Environment(str(tmp_path)), HOST, [str(tmp_path / "tree")])
    report = load_home(tmp_path, tmp_path / "store.duckdb", qoder_bridge=tmp_path / "tree")

    assert dict(found.unclaimed) == {".txt": 1, ".json": 1}
    assert report.not_recognised == 2
    assert rows(tmp_path / "store.duckdb", "select rel_path from sources where store_kind = 'bridge_log'") == [
        ("stderr.log",)
    ]


def test_the_same_evidence_twice_counts_once(tmp_path: Path) -> None:
    """A second copy, cut short: the longer file speaks, sessions and calls are one, resent lines are copies."""
    for name in ("a", "b"):
        shutil.copytree(TREE, tmp_path / name)
    cut = next((tmp_path / "a").rglob("run-3-turn-1.jsonl"))
    lines = cut.read_bytes().splitlines(keepends=True)
    cut.write_bytes(b"".join(lines[:70]))
    db = tmp_path / "store.duckdb"
    report = load_home(tmp_path, db, qoder_bridge=(tmp_path / "a", tmp_path / "b"))

    assert report.clean
    assert rows(db, RUNS) == GOLDEN
    assert rows(db, "select count(*) from bridge_turns where source_kind = 'live'") == [(7,)]
    assert rows(db, "select name, status from tool_calls") == [("Read", "ok")] * 2
    assert rows(db, "select kind, count(*) from dialogue group by all order by all") == [
        ("error_notice", 5),
        ("prompt", 5),
        ("thinking", 2),
    ]
    assert rows(db, "select sum(queue_events)::int from provider_availability") == [(30,)]


def test_a_summary_is_rewritten_after_each_run(tmp_path: Path) -> None:
    """Five loads in mid-batch: the summary is a prefix each time, and each load says what the last one says."""
    tree, db = tmp_path / "tree", tmp_path / "store.duckdb"
    shutil.copytree(TREE, tree)
    summary = next(tree.rglob("summary.json"))
    told: list[Any] = json.loads(summary.read_text())
    request = Request(
        str(db),
        HOST,
        Environment(str(tmp_path)),
        KEY,
        "0",
        str(tmp_path / "state"),
        roots={"qoder_bridge": (str(tree),)},
    )
    from etl.pipeline import load  # noqa: PLC0415 - the one test that loads with a ledger

    for number in range(len(told) + 1):
        summary.write_text(json.dumps(told[:number], indent=2))
        report = load(request, lambda: NOW)
        assert report.clean
        assert report.sources_read == (18 if number == 0 else 1)
        reported = [row[4] for row in rows(db, RUNS)]
        assert reported == ["FAILED"] * number + [None] * (5 - number)
    assert rows(db, RUNS) == GOLDEN


def test_a_torn_summary_is_a_reject_and_hides_no_turn(tmp_path: Path) -> None:
    shutil.copytree(TREE, tmp_path / "tree")
    summary = next((tmp_path / "tree").rglob("summary.json"))
    summary.write_bytes(summary.read_bytes()[:-40])
    db = tmp_path / "store.duckdb"
    load_home(tmp_path, db, qoder_bridge=tmp_path / "tree")

    assert rows(db, "select reason from rejects") == [("malformed",)]
    assert rows(db, "select run, sdk_raw_chunks, tool_count, terminal_state from bridge_runs order by run") == [
        (run, chunks, None, None) for run, chunks, *_ in GOLDEN
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[{"run": 1, "turns": []}, 7, null, {"run": 2}]', [("not_object", 1), ("not_object", 2)]),
        ('{"run": 1}', [("not_object", 0)]),
        ("[]", []),
        ("", [("malformed", 0)]),
        ('\ufeff[{"run": 3}]', []),
    ],
)
def test_a_summary_s_elements_are_each_counted(tmp_path: Path, text: str, expected: list[tuple[str, int]]) -> None:
    folder = tmp_path / "tree" / STAMP
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(text)
    db = tmp_path / "store.duckdb"
    report = load_home(tmp_path, db, qoder_bridge=tmp_path / "tree")

    assert (report.failed, report.quarantined) == ({}, {})
    assert rows(db, "select reason, child from rejects order by all") == expected
    assert rows(db, "select count(*) from facts.provider_runs") == [(text.count('"run"') if text[:1] != "{" else 0,)]


@pytest.mark.parametrize("keep", [0.6, 0.0])
def test_a_transport_log_that_was_cut_accuses_nobody(tmp_path: Path, keep: float) -> None:
    """Frames behind the cut may have been there: the SDK is not said to have made their messages up."""
    home = tmp_path / "home"
    shutil.copytree(FIXTURES / "qoder_bridge" / "conversation" / "tree", home)
    asked = "select transport_equals_sdk, first_bad_stage, origin from boundary_compare where transport_mismatches >= 0"
    load_home(tmp_path, tmp_path / "whole.duckdb", qoder_bridge=home)
    assert (True, None, "NONE") in rows(tmp_path / "whole.duckdb", asked)
    for log in home.rglob("*transport*.jsonl"):
        log.write_bytes(log.read_bytes()[: int(log.stat().st_size * keep)])
    load_home(tmp_path, tmp_path / "cut.duckdb", qoder_bridge=home)
    told = rows(tmp_path / "cut.duckdb", "select transport_equals_sdk, origin from boundary_compare")
    assert told
    assert not [row for row in told if row[0] is False or row[1] == "TRANSPORT_OR_SDK_DEFECT"]


def test_no_secret_is_stored(tmp_path: Path) -> None:
    """A token in prompts, thinking, arguments, paths, results and texts of every boundary."""
    token = "ghp_FAKE0000EXAMPLE0000FAKE0000EXAMPLE00"  # noqa: S105 - it looks like one, and is none
    shutil.copytree(TREE, tmp_path / "tree")
    for path in (tmp_path / "tree").rglob("*.json*"):
        data = path.read_bytes()
        for word in (b"package.json", b"README.md", b"sequentially", b"tool on package", b"pi-bridge", b"9500ms"):
            data = data.replace(word, token.encode())
        path.write_bytes(data)
    db = tmp_path / "store.duckdb"
    report = load_home(tmp_path, db, qoder_bridge=tmp_path / "tree")

    assert (report.failed, report.quarantined) == ({}, {})
    columns = rows(
        db,
        "select schema_name, table_name, column_name from duckdb_columns() "
        "where schema_name in ('facts', 'mart') and data_type = 'VARCHAR'",
    )
    found = [
        (table, column)
        for schema, table, column in columns
        if rows(db, f"select 1 from {schema}.{table} where contains({column}, 'FAKE0000') limit 1")  # noqa: S608
    ]
    assert found == []
    assert rows(db, "select count(*) > 20 from redactions") == [(True,)]


# -- whatever stands in a file

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(sorted(LABELS)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "label",
                        "payload",
                        "message",
                        "type",
                        "subtype",
                        "uuid",
                        "content",
                        "text",
                        "event",
                        "delta",
                        "run",
                    ),
                    *(
                        "audit",
                        "usage",
                        "states",
                        "error",
                        "malformed",
                        "A",
                        "sequence",
                        "requestId",
                        "elapsedMs",
                        "index",
                    ),
                    *(
                        "frame",
                        "status",
                        "service_available",
                        "kind",
                        "code",
                        "model",
                        "seq",
                        "digest",
                        "id",
                        "role",
                        "raw",
                    ),
                    *(
                        "turns",
                        "turn",
                        "result",
                        "prompt",
                        "PI_CONVERSATION_JSON",
                        "options",
                        "systemPrompt",
                        "queueTurns",
                    ),
                ]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=25,
)
KINDS = [
    (paths.DIAGNOSTICS, "jsonl"),
    (paths.TRANSPORT, "jsonl"),
    (paths.REPLAY, "jsonl"),
    (paths.ANY, "jsonl"),
    (paths.SUMMARY, "json_array"),
    (paths.AUDIT, "json_array"),
    (paths.AUDIT_TOTALS, "json"),
    (paths.REPLAY_SUMMARY, "json"),
    (paths.PROVENANCE, "json"),
    (paths.LOG, "lines"),
]
KNOWN = st.fixed_dictionaries(
    {"label": st.sampled_from([*sorted(LABELS), "transport_write", "transport_frame"]), "payload": VALUES},
    optional={"sequence": VALUES, "elapsedMs": VALUES, "requestId": VALUES},
)
MESSAGES = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["assistant", "result", "stream_event", "system"]),
        "message": st.fixed_dictionaries(
            {
                "role": st.just("assistant"),
                "type": st.just("message"),
                "content": st.lists(
                    st.fixed_dictionaries(
                        {"type": st.sampled_from(["text", "thinking", "tool_use"])}, optional={"text": VALUES}
                    ),
                    max_size=3,
                ),
            }
        )
        | VALUES,
    },
    optional={"uuid": st.sampled_from(["u", "v"]), "result": VALUES, "event": VALUES, "errors": VALUES},
)
RAW = MESSAGES.map(lambda message: {"label": "sdk_raw_message", "payload": {"message": message}})


def _fold(source: Source, values: list[dict[str, Any]]) -> Buffers:
    provider, buffers = get("qoder_bridge"), Buffers()
    buffers.begin(source.source_id)
    fold = Fold(source, buffers, provider.inventory, lambda _offset, _length: None)

    def feed() -> Iterator[Record]:
        for number, value in enumerate(values, 1):
            raw = json.dumps(value).encode()
            if source.claim.container == "lines":
                label = sorted(LOG_LABELS)[number % len(LOG_LABELS)]
                raw = f"[qoder-bridge] {label} ".encode() + raw
            record = Record(number, 0, 0, len(raw), raw, {} if source.claim.container == "lines" else value)
            fold.begin(record)
            yield record

    native = provider.native_session(source, [])
    for event in provider.adapt(source, source.session_id(native) if native else "", feed()):
        fold.take(event)
    fold.end()
    fold.census.write(buffers, source.source_id)
    return buffers


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(KINDS),
    st.lists(st.one_of(st.dictionaries(st.text(max_size=4), VALUES), KNOWN, MESSAGES, RAW), max_size=6),
)
def test_no_json_raises_and_every_record_is_counted(kind: tuple[str, str], values: list[dict[str, Any]]) -> None:
    claim = Claim(kind[0], kind[1], f"{STAMP}/run-1-turn-1" if "_diag" in kind[0] or "_transport" in kind[0] else STAMP)
    buffers = _fold(Source("qoder_bridge", HOST, "x", claim), values)

    census = dict(finish(buffers, KEY))["record_census"].to_pylist() if values else []
    assert sum(row["n"] for row in census if row["unit"] == "record") == len(values)


@pytest.mark.parametrize(
    ("data", "lines", "blank", "raw"),
    [
        (b"", 0, 0, []),
        (b"one\n\n{}\n", 3, 1, [b"one", b"{}"]),
        (b'{"a":1}\r\n[1]\ntail', 3, 0, [b'{"a":1}\r', b"[1]", b"tail"]),
        (b"\xff\x00\n  \n", 2, 1, [b"\xff\x00"]),
    ],
)
def test_a_log_is_its_lines(data: bytes, lines: int, blank: int, raw: list[bytes]) -> None:
    from io import BytesIO  # noqa: PLC0415 - only here

    reader = LineReader(BytesIO(data))
    found = list(reader)

    assert [item.raw for item in found] == raw
    assert (reader.lines, reader.blank_lines, reader.tail_state) == (lines, blank, "complete")
    assert all(isinstance(item, Record) and item.value == {} for item in found)
