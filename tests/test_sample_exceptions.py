"""Where does sessionmart say otherwise than an independent count of published session files, and is each case shown?

The files are not here: a small authored one shows the same thing, and says what sessionmart makes of it.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from etl.providers import names
from tests.authored import Claude, call, codex
from tests.loading import load_home, table

if TYPE_CHECKING:
    from collections.abc import Callable

LIST: Final[dict[str, Any]] = json.loads(
    Path(__file__).with_name("expected").joinpath("sample_exceptions.json").read_text()
)
#: At most this share of the figures of a provider may differ.
SHARE: Final = 0.01


def claude_ids_trimmed(home: Path) -> None:
    one = Claude(1).user(0, "List").assistant(2, "msg_1", call(None)).result(3, None, "ok").result(4, None, "again")
    one.assistant(20, "msg_2", call("toolu_1")).result(20, "toolu_1").write(home)


def codex_item_prompt(home: Path) -> None:
    item = {"type": "UserMessage", "id": "u1", "content": [{"type": "text", "text": "Say it"}]}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Say it"}]}
    codex(home, 1, [("response_item", said), ("event_msg", {"type": "item_completed", "turn_id": "t1", "item": item})])


def codex_untyped_messages(home: Path) -> None:
    asked = {"role": "user", "content": [{"type": "input_text", "text": "Look"}]}
    answered = {"role": "assistant", "content": [{"type": "output_text", "text": "Seen"}]}
    codex(home, 1, [("response_item", asked), ("response_item", answered)])


SHOWN: Final[dict[str, tuple[Callable[[Path], None], dict[str, int]]]] = {
    "claude_ids_trimmed": (claude_ids_trimmed, {"tool_calls": 2, "tool_results": 3, "paired_calls": 2}),
    "codex_item_prompt": (codex_item_prompt, {"user_records": 1, "direct_user_records": 1}),
    "codex_untyped_messages": (codex_untyped_messages, {"user_records": 1, "assistant_messages": 1}),
}


def test_at_most_one_figure_in_a_hundred_differs() -> None:
    differing = Counter(item["provider"] for item in LIST["exceptions"] for _ in item["differs"])
    assert set(LIST["figures"]) <= set(names())
    for provider, number in differing.items():
        assert 0 < number <= SHARE * LIST["figures"][provider], provider


def test_each_exception_has_a_file_a_reason_and_a_case() -> None:
    assert all(len(item["why"]) > 60 and item["file"] and item["differs"] for item in LIST["exceptions"])
    assert {item["shown_by"] for item in LIST["exceptions"]} == set(SHOWN)


@pytest.mark.parametrize("item", LIST["exceptions"], ids=lambda item: item["shown_by"])
def test_the_case_gives_what_the_list_says(item: dict[str, Any], tmp_path: Path) -> None:
    write, expected = SHOWN[item["shown_by"]]
    write(tmp_path / "home")
    load_home(tmp_path / "home", tmp_path / "s.duckdb")
    (found,) = table(tmp_path / "s.duckdb", "from source_summary")
    assert {name: found[name] for name in expected} == expected
    for name, (ours, _) in item["differs"].items():
        assert expected.get(name, ours) == ours, name


def test_the_call_without_an_id_has_the_time_of_its_own_result(tmp_path: Path) -> None:
    claude_ids_trimmed(tmp_path / "home")
    load_home(tmp_path / "home", tmp_path / "s.duckdb")
    found = table(tmp_path / "s.duckdb", "select call_key, latency_ms from tool_calls order by seq")
    assert [(row["call_key"], row["latency_ms"]) for row in found] == [("~2.0", 1000.0), ("toolu_1", 0.0)]
