"""Can the raw-envelope gate fail, and is each dialogue text the leaf of its record, looked up by another route?"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq
import pytest

from etl.assemble.envelope import is_raw_envelope
from etl.extract import extract
from etl.grammars import blocks
from etl.grammars.blocks import Content, Part
from etl.mask import mask_text
from etl.providers.qoder import transcript
from etl.shape import canonical, is_transport_text
from tests.loading import FIXTURES, KEY, build, conclude, find, join_trees, load_home, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from etl.builder import Builder
    from etl.discover import Found

    Project = Callable[[Content], Iterable[Part]]

SMALL: Final = sorted(path.name for path in (FIXTURES / "qoder").iterdir() if path.name not in {"example", "forty"})
TOOL_USE: Final = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {}}
ENVELOPE: Final = json.dumps({"role": "assistant", "content": [{"type": "text", "text": "hidden"}]})


# -- the shapes of transport


@pytest.mark.parametrize(
    "value",
    [
        TOOL_USE,
        {"type": "tool_result", "tool_use_id": "c1"},
        {"type": "thinking", "thinking": ""},
        {"type": "redacted_thinking", "data": "RkFLRQ=="},
        {"type": "text", "text": "a"},
        {"type": "output_text", "content": "a"},
        {"type": "message", "content": []},
        {"type": "assistant", "message": {}},
        {"type": "user", "message": "a"},
        {"role": "assistant", "content": []},
        {"role": "user", "content": "a"},
        {"role": "system", "content": None},
        {"role": "tool", "content": "a"},
        [TOOL_USE],
        ["a", 1, {"type": "text", "text": "a"}],
    ],
    ids=canonical,
)
def test_a_type_with_its_companion_is_transport(value: Any) -> None:
    assert is_transport_text(json.dumps(value))
    assert is_transport_text(f" \n{json.dumps(value, indent=1)}\t")


@pytest.mark.parametrize(
    "text",
    [
        '{"cause":"retries is a string"}',
        '{"type":"tool_use","id":"c1","name":"Bash"}',
        '{"type":"tool_result","content":"a"}',
        '{"type":"thinking","text":"a"}',
        '{"type":"text"}',
        '{"type":"text","data":"a"}',
        '{"type":"message","id":"m1"}',
        '{"type":"image","source":{}}',
        '{"type":["text"],"text":"a"}',
        '{"role":"assistant"}',
        '{"role":"manager","content":"a"}',
        '{"role":["assistant"],"content":"a"}',
        '[{"a":1}]',
        '["text"]',
        "[]",
        "[[" + json.dumps(TOOL_USE) + "]]",
        "{}",
        "null",
        "17",
        json.dumps(ENVELOPE),
        ENVELOPE[:-1],
        f"The row holds {ENVELOPE}",
        f"{ENVELOPE} and no more",
        "[" * 100_000,
        "",
    ],
    ids=lambda text: text[:40],
)
def test_other_text_is_no_transport(text: str) -> None:
    assert not is_transport_text(text)


RECORD: Final[dict[str, Any]] = {
    "type": "assistant",
    "message": {"content": [{"type": "text", "text": ENVELOPE}, TOOL_USE, {"type": "text", "text": "plain"}]},
    "content": ENVELOPE,
    "data": {"message": ENVELOPE, "content": "plain"},
}
AT_TEXT: Final = "/message/content/0/text"
AT_PLAIN: Final = "/message/content/2/text"


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        pytest.param("plain", "", id="A: from no leaf"),
        pytest.param(canonical(TOOL_USE), "/message/content/1", id="A: from an object"),
        pytest.param("plain", "/message/content", id="A: from an array"),
        pytest.param("plain", "/message/content/9/text", id="A: from nowhere"),
        pytest.param("plain", "/message/content/2/text/deeper", id="A: from below a string"),
        pytest.param(ENVELOPE, AT_PLAIN, id="B: another text than its leaf, shaped as a message"),
        pytest.param(f"[{canonical(TOOL_USE)}]", AT_PLAIN, id="B: an array of items"),
        pytest.param("Look: [object Object]", AT_PLAIN, id="C: coerced from an object"),
        pytest.param(ENVELOPE, "/content", id="D: the content of a row"),
        pytest.param(ENVELOPE, "/data/message", id="D: a message below data"),
    ],
)
def test_it_is_a_raw_envelope(text: str, pointer: str) -> None:
    assert is_raw_envelope(RECORD, "assistant", "text", text, pointer)
    assert is_raw_envelope(RECORD, "assistant", "thinking", text, pointer)
    assert not is_raw_envelope(RECORD, "user", "prompt", text, pointer)


@pytest.mark.parametrize("pointer", ["/message", "/message/content"])
def test_d_a_message_written_as_one_string(pointer: str) -> None:
    record = {"message": ENVELOPE if pointer == "/message" else {"role": "assistant", "content": ENVELOPE}}
    assert is_raw_envelope(record, "assistant", "text", ENVELOPE, pointer)


@pytest.mark.parametrize("row", [{"type": "assistant"}, {"role": "assistant"}])
def test_d_a_content_whose_row_says_what_it_is(row: dict[str, Any]) -> None:
    assert is_raw_envelope({**row, "message": {"content": ENVELOPE}}, "assistant", "text", ENVELOPE, "/message/content")
    assert not is_raw_envelope({"message": {"content": ENVELOPE}}, "assistant", "text", ENVELOPE, "/message/content")


def test_d_what_is_still_transport_after_decoding_once() -> None:
    record = {"message": json.dumps({"role": "assistant", "content": ENVELOPE})}
    assert is_raw_envelope(record, "assistant", "text", ENVELOPE, "/message#/content")
    assert not is_raw_envelope({"message": ENVELOPE}, "assistant", "text", "hidden", "/message#/content/0/text")


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        pytest.param(ENVELOPE, AT_TEXT, id="a model asked for JSON"),
        pytest.param("plain", AT_PLAIN, id="its leaf"),
        pytest.param("pla", AT_PLAIN, id="another text, no transport"),
        pytest.param("plain", "/data/content", id="plain at a transport position"),
    ],
)
def test_it_is_no_raw_envelope(text: str, pointer: str) -> None:
    assert not is_raw_envelope(RECORD, "assistant", "text", text, pointer)


def test_a_coercion_that_the_leaf_holds_is_quoted() -> None:
    record = {"message": {"content": "It printed [object Object]."}}
    assert not is_raw_envelope(record, "assistant", "text", "It printed [object Object].", "/message/content")


def test_a_content_written_as_one_string_is_opened_where_only_its_row_says_whose_it_is(tmp_path: Path) -> None:
    sent = json.dumps({"role": "assistant", "content": [{"type": "text", "text": "Opened."}, TOOL_USE]})
    cached = tmp_path / ".qoder/cache/projects/p/conversation-history/t1/t1.jsonl"
    plain = tmp_path / ".qoder/projects/-a/s1.jsonl"
    for path, key in ((cached, "role"), (plain, "type")):
        path.parent.mkdir(parents=True)
        lines = [json.dumps({key: role, "message": {"content": sent}}) for role in ("user", "assistant")]
        path.write_text("\n".join(lines) + "\n")
    report = load_home(tmp_path, tmp_path / "s.duckdb", qoder=[cached.parents[3], plain.parent])
    assert report.findings == []
    said = rows(tmp_path / "s.duckdb", "select session_id, kind, text from dialogue order by session_id, seq")
    for session in ("qoder:p/t1", "qoder:s1"):  # what a person pasted is what was typed
        assert [row[1:] for row in said if row[0] == session] == [("prompt", sent), ("text", "Opened.")]
    assert rows(tmp_path / "s.duckdb", "select session_id, call_key from tool_calls order by all") == [
        ("qoder:p/t1", "c1"),
        ("qoder:s1", "c1"),
    ]


# -- a projector that is wrong


def _serialise(part: Part, item: Any, pointer: str, *kinds: str) -> Part:
    return replace(part, kind="text", text=canonical(item), pointer=pointer) if part.kind in kinds else part


def _with_items(right: Project, change: Callable[[Part, Any, str], Part]) -> Project:
    """A projector that changes each part, given the item and its pointer."""

    def project(content: Content) -> Iterator[Part]:
        items = content.value if isinstance(content.value, list) else [content.value]
        for part in right(content):
            below = f"{content.pointer}/{part.block}" if isinstance(content.value, list) else content.pointer
            yield change(part, items[part.block], below)

    return project


def _whole_message(right: Project, pointer: str) -> Project:
    """The fault that was reported: no string at the top, so the whole message is serialised."""

    def project(content: Content) -> Iterator[Part]:
        if content.message.get("role") != "assistant" or isinstance(content.value, str):
            yield from right(content)
        else:
            yield Part("text", 0, canonical(content.message), pointer)

    return project


def _without(right: Project, kind: str) -> Project:
    return lambda content: (part for part in right(content) if part.kind != kind)


def _swapped(right: Project) -> Project:
    """The blocks of a message are numbered from the end."""

    def project(content: Content) -> Iterator[Part]:
        parts = list(right(content))
        for part in reversed(parts):
            yield replace(part, block=len(parts) - 1 - part.block)

    return project


def _and_prose(right: Project, kind: str, key: str) -> Project:
    """Tool items stand in the lifecycle, and their input or result in the prose too."""

    def project(content: Content) -> Iterator[Part]:
        for part in right(content):
            yield part
            if part.kind == kind and part.item is not None:
                value = part.item.get(key)
                text = value if isinstance(value, str) else canonical(value)
                yield Part("text", part.block, text, f"{content.pointer}/{part.block}/{key}", part.item)

    return project


MUTANTS: Final[dict[str, tuple[Callable[[Project], Project], set[str]]]] = {
    "unknown items are serialised": (
        lambda right: _with_items(right, lambda part, item, at: _serialise(part, item, at, "unknown")),
        {"raw_envelopes", "ac5_unread_items_are_counted", "ac6_rows_have_an_item"},
    ),
    "malformed items are serialised": (
        lambda right: _with_items(right, lambda part, item, at: _serialise(part, item, at, "rejected")),
        {"raw_envelopes", "ac5_unread_items_are_counted", "ac6_rows_have_an_item"},
    ),
    "tool items are serialised": (
        lambda right: _with_items(right, lambda part, item, at: _serialise(part, item, at, "request", "result")),
        {"raw_envelopes", "ac3_tool_items_are_calls", "ac4_textual_order", "ac6_rows_have_an_item"},
    ),
    "tool items are serialised under a string's pointer": (
        lambda right: _with_items(right, lambda part, item, at: _serialise(part, item, f"{at}/name", "request")),
        {"raw_envelopes", "ac3_tool_items_are_calls", "ac4_textual_order", "ac6_rows_have_an_item"},
    ),
    "messages are serialised": (
        lambda right: _whole_message(right, "/message"),
        {"raw_envelopes", "ac1_thinking_is_dialogue", "ac2_text_is_dialogue", "ac3_tool_items_are_calls"},
    ),
    "messages are serialised under a string's pointer": (
        lambda right: _whole_message(right, "/message/id"),
        {"raw_envelopes", "ac1_thinking_is_dialogue", "ac2_text_is_dialogue", "ac3_tool_items_are_calls"},
    ),
    "thinking is dropped": (lambda right: _without(right, "thinking"), {"ac1_thinking_is_dialogue"}),
    "text is dropped": (lambda right: _without(right, "text"), {"ac2_text_is_dialogue", "ac6_prompts_are_kept"}),
    "requests are dropped": (lambda right: _without(right, "request"), {"ac3_tool_items_are_calls"}),
    "results are dropped": (lambda right: _without(right, "result"), {"ac3_tool_items_are_calls"}),
    "unknown items are not counted": (
        lambda right: _without(right, "unknown"),
        {"ac5_unread_items_are_counted"},
    ),
    "blocks are swapped": (
        _swapped,
        {"ac1_thinking_is_dialogue", "ac2_text_is_dialogue", "ac3_tool_items_are_calls", "ac4_textual_order"},
    ),
    "tool input is prose too": (
        lambda right: _and_prose(right, "request", "input"),
        {"raw_envelopes", "ac3_tool_items_are_calls", "ac4_textual_order", "ac6_rows_have_an_item"},
    ),
    "tool results are prose too": (
        lambda right: _and_prose(right, "result", "content"),
        {"ac3_tool_items_are_calls", "ac4_textual_order"},
    ),
}


GATED: Final = ("tools_and_text", "odd_items", "fragments")


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return join_trees(tmp_path_factory.mktemp("gated"), "qoder", GATED)


def _copy(home: Path, folder: Path, prefix: str) -> Path:
    """The same tree with other session ids and folders, so that it can stand beside the first in one store."""
    for path in home.rglob("*.jsonl"):
        target = folder / path.relative_to(home).parent.parent / f"{prefix}{path.parent.name}" / f"{prefix}{path.name}"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text().replace('"sessionId":"', f'"sessionId":"{prefix}'))
    return folder


@pytest.fixture(scope="module")
def red(gated: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The checks that are red, by mutant (``right``: none): each reads a copy of its own, all stand in one store."""
    right = blocks.project
    projectors = {"right": right, **{name: mutate(right) for name, (mutate, _) in MUTANTS.items()}}
    owners: dict[str, str] = {}
    parts: list[tuple[str, str]] = []
    folder = tmp_path_factory.mktemp("red")
    for n, (name, projector) in enumerate(projectors.items()):
        sources = find(_copy(gated, folder / f"home{n}", f"m{n}-"))
        owners |= {found.source.source_id: name for found in sources}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(transcript, "project", projector)
            parts += [(part.table, part.path) for part in extract(sources, str(folder), f"m{n}", KEY).parts]
    with conclude(parts, folder) as builder:
        findings = builder.check()
    assert len(owners) == len(GATED) * len(projectors)
    return {name: {f.check for f in findings if owners.get(f.source_id or "") == name} for name in projectors}


def test_the_right_projector_is_green(red: dict[str, set[str]]) -> None:
    assert red["right"] == set()


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_projector_turns_the_checks_red(name: str, red: dict[str, set[str]]) -> None:
    assert MUTANTS[name][1] - red[name] == set()


def test_a_load_with_a_wrong_projector_publishes_none_of_it(
    gated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate, _ = MUTANTS["unknown items are serialised"]
    monkeypatch.setattr(transcript, "project", mutate(blocks.project))
    report = load_home(gated, tmp_path / "store.duckdb")
    with_unknown = {found.source.source_id for found in find(gated) if "fragments" not in found.source.rel_path}
    assert set(report.quarantined) == with_unknown
    assert not report.clean


# -- each text, looked up by another route


def _look_up(line: str, child: int, pointer: str) -> Any:
    """The leaf a pointer names in the child-th JSON value of a line."""
    value: Any = None
    rest = line
    for _ in range(child + 1):
        value, end = json.JSONDecoder().raw_decode(rest.lstrip())
        rest = rest.lstrip()[end:]
    for n, steps in enumerate(pointer.split("#")):
        value = json.loads(value) if n else value
        for step in steps.split("/")[1:]:
            value = value[int(step)] if isinstance(value, list) else value[step.replace("~1", "/").replace("~0", "~")]
    return value


def _extracted(home: Path, folder: Path, table: str) -> list[dict[str, Any]]:
    folder.mkdir()
    parts = extract(find(home), str(folder), "part", KEY).parts
    return [row for part in parts if part.table == table for row in pq.read_table(part.path).to_pylist()]


@pytest.mark.parametrize("tree", ["demo", *(f"qoder/{name}/tree" for name in ["example", "forty", *SMALL])])
def test_each_dialogue_text_is_the_leaf_of_its_record(tree: str, tmp_path: Path) -> None:
    home = FIXTURES / tree
    sources = {found.source.source_id: home / found.source.rel_path for found in find(home)}
    lines = {source: path.read_bytes().split(b"\n") for source, path in sources.items()}
    dialogue = _extracted(home, tmp_path / "parts", "dialogue")
    assert dialogue or tree == "qoder/empty/tree"
    for row in dialogue:
        where = f"{sources[row['source_id']]}:{row['line_no']}"
        if row["src_pointer"] is None:
            assert (row["kind"], row["text"]) == ("prompt", ""), where
            assert row["attachments"] > 0, where
            continue
        line = lines[row["source_id"]][row["line_no"] - 1].decode()
        if row["child"] and sources[row["source_id"]].suffix == ".json":  # a document: its children are its messages
            line = json.dumps(json.loads(line)["messages"][row["child"] - 1])
            row["child"] = 0
        leaf = _look_up(line, row["child"], row["src_pointer"])
        assert isinstance(leaf, str), where
        if row["kind"] in ("command", "shell") and row["text"] != leaf:  # unfolded from their wrapper
            assert all(word in leaf for word in row["text"].removeprefix("! ").split()), where
        else:
            assert row["text"] == mask_text(leaf, KEY), where


# -- the order of files


def _contents(builder: Builder) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of facts and mart, sorted; which load read a source stands outside every equality."""
    run = builder.connection.execute
    tables = run(
        "select table_schema || '.' || table_name from information_schema.tables "
        "where table_schema in ('facts', 'mart') and table_catalog = 'store' and table_type = 'BASE TABLE' order by all"
    ).fetchall()
    contents = {}
    for (table,) in tables:
        columns = "* exclude (first_load_id, last_load_id)" if table == "facts.sources" else "*"
        contents[table] = run(f"select {columns} from {table} order by all").fetchall()  # noqa: S608 - own names
    return contents


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return join_trees(tmp_path_factory.mktemp("together"), "qoder", SMALL)


def _same(sources: list[Found], batches: list[list[Found]], folder: Path, flush_bytes: int) -> None:
    with build([sources], folder / "plain") as plain, build(batches, folder / "other", flush_bytes) as other:
        expected, found = _contents(plain), _contents(other)
    assert sum(map(len, expected.values())) > 100
    assert found.keys() == expected.keys()
    for table, content in expected.items():
        assert found[table] == content, table


def _shuffled(sources: list[Found], seed: int) -> list[Found]:
    return random.Random(seed).sample(sources, len(sources))


def test_files_in_any_order_give_the_same_rows(home: Path, tmp_path: Path) -> None:
    sources = find(home)
    first, second = _shuffled(sources, 1), _shuffled(sources, 2)
    _same(first, [second[::2], second[1::2]], tmp_path, 20_000)


def test_a_task_per_file_and_a_part_per_record_give_the_same_rows(home: Path, tmp_path: Path) -> None:
    chosen = ("snapshots", "conflicts", "fork", "subagents")
    sources = [found for found in find(home) if any(f"-work-{name}/" in found.source.rel_path for name in chosen)]
    _same(sources, [[found] for found in _shuffled(sources, 3)], tmp_path, 1)
