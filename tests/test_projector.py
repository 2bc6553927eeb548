"""Does any JSON at all pass projector, adapter and fold, and does the independent walker agree with them?"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow.parquet as pq
from hypothesis import example, given, settings
from hypothesis import strategies as st

from etl.extract import extract
from etl.grammars.blocks import Part, locate, project
from etl.grammars.inventory import content_inventory
from etl.jsonl import Record
from etl.providers.base import Claim, Source
from etl.providers.qoder.shapes import native_session, recognise
from tests.loading import HOST, KEY, find

TYPES: Final = (
    *("text", "output_text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use"),
    *("tool_result", "web_search_tool_result", "mcp_tool_result", "image", "document", "message", "user", "assistant"),
    "future_transport_item",
)
RECORD_TYPES: Final = (
    *("user", "assistant", "system", "attachment", "summary", "custom-title", "ai-title", "last-prompt", "tag"),
    *("workspace-directories", "runtime-config", "relocated", "active-leaf", "worktree-state", "token-stats", "mode"),
    "brand-new-record",
)
KEYS: Final = (
    *("type", "role", "message", "content", "text", "thinking", "data", "value", "id", "name", "input", "tool_use_id"),
    *("is_error", "usage", "model", "stop_reason", "timestamp", "sessionId", "uuid", "parentUuid", "humanInput"),
    *("origin", "kind", "mode", "attachment", "prompt", "toolUseResult", "toolDenialKind", "forkedFrom", "isMeta"),
    *("exitCode", "durationMs", "input_tokens", "output_tokens", "credits", "isApiErrorMessage", "promptId"),
)
#: What the kind of a part is to the walker.
DISPOSITION: Final = {
    **dict.fromkeys(("text", "thinking", "request", "result"), "used"),
    **dict.fromkeys(("empty", "media"), "skipped"),
    "unknown": "unknown",
    "rejected": "rejected",
}
TOOLS: Final = frozenset(name for name in TYPES if name.endswith(("tool_use", "tool_result")))

ATOMS: Final = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=12),
    st.text(st.characters(codec=None), max_size=3),  # lone surrogates too
    st.sampled_from(
        [*TYPES, "", " ", "human", "2026-03-02T09:00:00Z", "[Request interrupted by user]", "<bash-input>a"]
    ),
)
VALUES: Final = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
        st.dictionaries(st.text(max_size=4), inner, max_size=3),
    ),
    max_leaves=12,
)
WORDS: Final = st.one_of(st.sampled_from(["", " ", "a"]), st.text(max_size=3))
LEAVES: Final = st.one_of(WORDS, st.fixed_dictionaries({}, optional={"text": WORDS, "value": WORDS}), VALUES)
ITEMS: Final = st.one_of(
    VALUES,
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.one_of(st.sampled_from(TYPES), st.sampled_from([None, 7, []])),
            "text": LEAVES,
            "thinking": LEAVES,
            "content": st.one_of(LEAVES, st.lists(st.fixed_dictionaries({"type": ATOMS | st.just([])}), max_size=2)),
            "id": st.one_of(st.sampled_from(["c1", "c2"]), VALUES),
            "tool_use_id": st.one_of(st.sampled_from(["c1", "c2"]), VALUES),
            "name": st.one_of(st.sampled_from(["Bash", "mcp__a__b"]), VALUES),
            "input": VALUES,
            "is_error": VALUES,
        },
    ),
)
CONTENTS: Final = st.one_of(st.lists(ITEMS, max_size=5), ITEMS, st.lists(ITEMS, max_size=3).map(json.dumps))
MESSAGES: Final = st.one_of(
    st.fixed_dictionaries(
        {"content": CONTENTS},
        optional={
            "id": st.sampled_from(["m1", "m2"]),
            "role": st.sampled_from(["user", "assistant", 7]),
            "type": st.sampled_from(["message", None]),
            "stop_reason": st.sampled_from([None, "end_turn"]),
            "model": VALUES,
            "usage": VALUES,
        },
    ),
    VALUES,
)
WHOLE: Final = st.one_of(MESSAGES, MESSAGES.map(json.dumps), st.builds(lambda m: json.dumps(json.dumps(m)), MESSAGES))
RECORDS: Final = st.one_of(
    st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["user", "assistant"]), "message": WHOLE},
        optional={
            "uuid": st.sampled_from(["u1", "u2", "u3"]),
            "timestamp": st.one_of(st.sampled_from(["2026-03-02T09:00:00Z", 1772442000000]), VALUES),
            "sessionId": st.just("s"),
            "humanInput": st.one_of(VALUES, st.just({"text": "typed", "mode": "prompt"})),
            "origin": st.one_of(VALUES, st.fixed_dictionaries({"kind": st.one_of(st.just("human"), VALUES)})),
            "isMeta": VALUES,
            "toolUseResult": VALUES,
            "toolDenialKind": VALUES,
        },
    ),
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant"])}, optional={"content": CONTENTS, "message": MESSAGES}
    ),
    st.builds(
        lambda kind, rest: {**rest, "type": kind},
        st.sampled_from(RECORD_TYPES),
        st.dictionaries(
            st.sampled_from([*KEYS, "customTitle", "summary", "directories", "leafUuid", "worktreeSession", "subtype"]),
            VALUES,
            max_size=5,
        ),
    ),
)


def _parts(record: dict[str, Any]) -> list[Part]:
    role = record.get("type", record.get("role"))
    content = locate(record, role) if role in ("user", "assistant") else None
    return [] if content is None else list(project(content))


@settings(max_examples=120, deadline=None)
@given(record=RECORDS)
@example(record={"type": "assistant", "message": {"content": "text"}})
@example(record={"type": "assistant", "message": {"content": [{"type": "output_text", "text": {"value": "a"}}]}})
@example(record={"type": "assistant", "message": {"content": [{"tool_use_id": "c", "content": "a"}, {"text": " "}]}})
@example(record={"type": "assistant", "message": {"content": '[{"type":"text","text":"a"}]'}})
@example(record={"type": "assistant", "message": {"role": "assistant", "content": '{"type":"text","text":"a"}'}})
@example(record={"type": "assistant", "message": '{"role":"assistant","content":"[1]"}'})
@example(record={"type": "assistant", "message": '{"type":"tool_result","tool_use_id":"c","content":"a"}'})
@example(record={"type": "user", "message": '{"role":"user","content":["a"]}'})
@example(record={"type": "user", "message": '{"role":"assistant","content":["a"]}'})
@example(record={"type": "assistant", "message": None, "content": "a"})
@example(record={"type": "assistant", "message": {"role": "assistant", "content": '{"type":"user","message":"a"}'}})
def test_the_walker_sees_what_the_projector_sees(record: dict[str, Any]) -> None:
    parts, items = _parts(record), list(content_inventory(record))
    assert [(part.block, DISPOSITION[part.kind]) for part in parts] == [(b.block, b.disposition) for b in items]
    for part, item in zip(parts, items, strict=True):
        readable = part.kind in ("text", "thinking")
        assert (item.disposition == "used" and bool(item.leaf_chars)) == readable
        assert (item.leaf_chars or 0) == len(part.text)
        assert (item.block_type == "thinking") >= (part.kind == "thinking")
        assert (part.kind in ("request", "result")) == (item.block_type in TOOLS)


def _facts(records: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The rows of facts that a transcript of these records gives, by table."""
    with TemporaryDirectory() as name:
        folder = Path(name) / ".qoder" / "projects" / "-work"
        folder.mkdir(parents=True)
        (folder / "s.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        facts: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for part in extract(find(Path(name)), name, "part", KEY).parts:
            facts[part.table] += pq.read_table(part.path).to_pylist()
        return facts


def _places(rows: list[dict[str, Any]]) -> set[tuple[int, int, int | None]]:
    return {(row["line_no"], row["child"], row["block"]) for row in rows}


@settings(max_examples=30, deadline=None)
@given(records=st.lists(RECORDS, min_size=1, max_size=12))
@example(
    records=[
        {"type": "assistant", "uuid": "u1", "message": {"id": "m1", "content": [{"type": "text", "text": t}]}}
        for t in "aba"
    ]
)
@example(records=[{"role": "user", "content": [{"type": "tool_use"}]}])
@example(records=[{"role": "user", "content": [{"type": "tool_result", "content": {"type": []}}]}])
@example(records=[{"type": "user", "origin": {"kind": []}, "message": {"content": "a"}}])
@example(
    records=[{"type": "assistant", "message": {"content": [{"type": "tool_result"}, {"type": "text", "text": "a"}]}}]
)
@example(records=[{"type": "user", "message": {"content": ["a"]}, "humanInput": {"text": "typed"}}])
@example(records=[{"type": "assistant", "message": {"usage": {"input_tokens": 10**30, "credits": 1e300}}}])
def test_any_records_pass_and_each_readable_item_has_its_row(records: list[dict[str, Any]]) -> None:
    facts = _facts(records)
    (source,) = facts["sources"]
    assert (source["tail_state"], source["note"]) == ("complete", None)
    assert sum(row["n"] for row in facts["record_census"] if row["unit"] == "line") == source["lines"] == len(records)

    dialogue, merged = _places(facts["dialogue"]), _places(facts["merges"])
    calls = _places(facts["tool_requests"]) | _places(facts["tool_results"])
    readable = set()
    for item in facts["content_blocks"]:
        place = (item["line_no"], item["child"], item["block"])
        stands_elsewhere = place in merged or (*place[:2], None) in merged
        if item["disposition"] == "used":
            assert place in (calls if item["block_type"] in TOOLS else dialogue) or stands_elsewhere
            readable |= set() if item["block_type"] in TOOLS else {place}
    assert {place for place in dialogue if place[2] is not None} <= readable
    assert all(row["role"] == "user" for row in facts["dialogue"] if row["block"] is None)
    assert len({row["fact_id"] for row in facts["dialogue"]}) == len(facts["dialogue"])


@settings(max_examples=30, deadline=None)
@example(head=[{"type": []}])
@given(head=st.lists(st.one_of(RECORDS, st.fixed_dictionaries({"type": VALUES, "sessionId": VALUES})), max_size=3))
def test_any_first_records_can_be_judged(head: list[dict[str, Any]]) -> None:
    records = [Record(n + 1, 0, 0, 0, b"", value) for n, value in enumerate(head)]
    assert recognise(records) in (True, False, None)
    source = Source("qoder", HOST, "s.jsonl", Claim("qoder_cli", "jsonl", "s"))
    assert native_session(source, records)
