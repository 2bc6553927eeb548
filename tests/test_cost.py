"""What does a model call cost: by which price, from which day, in which tier, and when is that not known?"""

from __future__ import annotations

import shutil
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from etl import pipeline, prices
from etl.builder import Builder
from etl.providers.base import Environment
from etl.request import Request
from etl.verify import verify
from tests.loading import FIXTURES, HOST, KEY, NOW, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

#: model, time, (input, output, cache read, written for 5 minutes, for 1 hour), cost
Case = tuple[str, str | None, tuple[int | None, int | None, int | None, int | None, int | None], str | None]

CASES: dict[str, Case] = {
    # 10,000 in = 2,000 uncached + 6,000 read + 1,500 + 500 written:
    # 2,000 x 5 + 6,000 x 0.5 + 1,500 x 6.25 + 500 x 10 + 400 out x 25 = 37,375 millionths
    "cache_split": ("claude-opus-4-7", "2026-05-01T10:00Z", (10_000, 400, 6_000, 1_500, 500), "0.037375"),
    # 200,000 x 3 + 1,000 x 15 = 615,000 millionths: exactly 200,000 is not above
    "tier_edge": ("claude-sonnet-4-5", "2026-05-01T10:00Z", (200_000, 1_000, 0, 0, 0), "0.615"),
    # 200,001 x 6 + 1,000 x 22.5 = 1,222,506 millionths: all tokens pay the tier, output too
    "tier_above": ("claude-sonnet-4-5-20250929", "2026-05-01T10:00Z", (200_001, 1_000, 0, 0, 0), "1.222506"),
    # cached input counts for the tier: 300,000 in, 290,000 of them read: 10,000 x 6 + 290,000 x 0.6 + 10 x 22.5
    "tier_cached": ("claude-sonnet-4-5", "2026-05-01T10:00Z", (300_000, 10, 290_000, 0, 0), "0.234225"),
    # 300,000 x 10 + 1,000 x 37.5 until 2026-03-13 (UTC), 300,000 x 5 + 1,000 x 25 from then on
    "day_before": ("claude-opus-4-6", "2026-03-12T23:59:59Z", (300_000, 1_000, 0, 0, 0), "3.0375"),
    "day_after": ("claude-opus-4-6", "2026-03-13T00:00Z", (300_000, 1_000, 0, 0, 0), "1.525"),
    "other_zone": ("claude-opus-4-6", "2026-03-13T00:30+02:00", (300_000, 1_000, 0, 0, 0), "3.0375"),
    # o3: 1,000,000 x 10 + 1,000,000 x 40, then 2 and 8
    "cut_before": ("o3", "2025-06-09T12:00Z", (1_000_000, 1_000_000, None, None, None), "50"),
    "cut_after": ("o3-2025-04-16", "2025-06-10T12:00Z", (1_000_000, 1_000_000, None, None, None), "10"),
    # deepseek-chat by the time of day: 0.27 and 1.1 from 00:30 to 16:30, else 0.135 and 0.55
    "by_day": ("deepseek-chat", "2026-01-05T16:29:59Z", (1_000_000, 1_000_000, 0, 0, 0), "1.37"),
    "by_night": ("deepseek-chat", "2026-01-05T16:30Z", (1_000_000, 1_000_000, 0, 0, 0), "0.685"),
    # claude-2 has no cache prices: a cached token is an input token: 100 x 8 + 900 x 8 + 10 x 24
    "no_cache_price": ("claude-2", "2026-01-05T10:00Z", (1_000, 10, 900, 0, 0), "0.00824"),
    "prefix": ("anthropic/claude-opus-4-7", "2026-05-01T10:00Z", (1_000, 0, 0, 0, 0), "0.005"),
    "capitals": ("Claude-Opus-4-7", "2026-05-01T10:00Z", (1_000, 0, 0, 0, 0), "0.005"),
    # regional Bedrock prices are 10 % above: 1,000 x 5.5
    "bedrock": ("us.anthropic.claude-opus-4-7-v1:0", "2026-05-01T10:00Z", (1_000, 0, 0, 0, 0), "0.0055"),
    "without_time": ("claude-opus-4-7", None, (1_000, 0, 0, 0, 0), "0.005"),
    "without_time_which_day": ("claude-opus-4-6", None, (1_000, 0, 0, 0, 0), None),
    "zero": ("claude-opus-4-7", "2026-05-01T10:00Z", (0, 0, 0, 0, 0), "0"),
    # 1,200 read of 1,000: nothing is left uncached, 1,200 x 0.5
    "split_exceeds": ("claude-opus-4-7", "2026-05-01T10:00Z", (1_000, 0, 1_200, 0, 0), "0.0006"),
    "unknown_model": ("claude-nobody-knows", "2026-05-01T10:00Z", (1_000, 10, 0, 0, 0), None),
    "unknown_vendor": ("coder-model", "2026-05-01T10:00Z", (2_000, 20, 0, 0, 0), None),
    "no_input": ("claude-opus-4-7", "2026-05-01T10:00Z", (None, 10, 0, 0, 0), None),
    "no_output": ("claude-opus-4-7", "2026-05-01T10:00Z", (1_000, None, 0, 0, 0), None),
    "negative": ("claude-opus-4-7", "2026-05-01T10:00Z", (-1_000, 10, 0, 0, 0), None),
    "beyond_reason": ("claude-opus-4-7", "2026-05-01T10:00Z", (2**63 - 1, 2**63 - 1, 2**63 - 1, 0, 0), None),
}


def resolved(folder: Path, calls: Sequence[dict[str, Any]]) -> Builder:
    """A store of one session that has these calls, a source line each."""
    builder = Builder(str(folder / "built.duckdb"), str(folder / "spill"), None, afresh=True)
    run = builder.connection.execute
    run(
        "insert into facts.sources by name select 's' as source_id, 'claude_code' as provider, 'claude_code:s' as "
        "session_id, 'transcript' as store_kind, 'a.jsonl' as rel_path, 'h' as host, 'present' as source_state"
    )
    for number, call in enumerate(calls, 1):
        row = {
            "source_id": "s",
            "line_no": number,
            "child": 0,
            "fact_id": number,
            "session_id": "claude_code:s",
            "owner": "session",
            "grain": "request",
            "usage_status": "reported",
            **call,
        }
        marks = ", ".join(f"? as {name}" for name in row)
        run(f"insert into facts.model_calls by name select {marks}", list(row.values()))
    builder.resolve()
    return builder


def call(key: str, case: Case, **more: Any) -> dict[str, Any]:
    model, ts, tokens, _ = case
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_5m_tokens")
    counted = dict(zip((*names, "cache_creation_1h_tokens"), tokens, strict=True))
    return {"request_key": key, "model": model, "ts": ts, **counted, **more}


@pytest.fixture(scope="module")
def costs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Decimal | None, str, str | None]]:
    folder = tmp_path_factory.mktemp("cost")
    with resolved(folder, [call(key, case) for key, case in CASES.items()]) as builder:
        found = builder.connection.execute(
            "select request_key, cost_usd, cost_basis, price_id from main.model_calls"
        ).fetchall()
        unpriced = builder.connection.execute("from main.unpriced_models").fetchall()
    assert unpriced == [  # most calls first; a sum that no column holds is NULL
        ("claude_code", "claude-opus-4-7", 2, 2**63 - 1 - 1_000, None),
        ("claude_code", "claude-nobody-knows", 1, 1_000, 10),
        ("claude_code", "claude-opus-4-6", 1, 1_000, 0),
        ("claude_code", "coder-model", 1, 2_000, 20),
    ]
    return {key: (cost, basis, price) for key, cost, basis, price in found}


@pytest.mark.parametrize("key", CASES)
def test_a_call_costs_what_was_computed_by_hand(
    key: str, costs: dict[str, tuple[Decimal | None, str, str | None]]
) -> None:
    expected = CASES[key][3]
    cost, basis, price = costs[key]
    assert cost == (None if expected is None else Decimal(expected))
    assert basis == ("unknown" if expected is None else "listed")
    assert (price is None) == (expected is None)


def test_price_ids_name_model_day_and_tier(costs: dict[str, tuple[Decimal | None, str, str | None]]) -> None:
    assert costs["day_before"][2] == "anthropic/claude-opus-4-6>200000"
    assert costs["day_after"][2] == "anthropic/claude-opus-4-6@2026-03-13"
    assert costs["by_day"][2] == "deepseek/deepseek-chatT00:30"


def test_what_the_log_states_comes_first(tmp_path: Path) -> None:
    case = CASES["cache_split"]
    calls = [
        call("stated", case, cost_usd_reported=Decimal("0.5"), credits=Decimal(3)),
        call("credits", case, credits=Decimal(3)),
        call("placeholder", case, usage_status="placeholder"),
        call("alias", case, model_is_alias=True),
        call("listed", case),
    ]
    with resolved(tmp_path, calls) as builder:
        found = builder.connection.execute(
            "select request_key, cost_usd, cost_basis, price_id from mart.model_calls order by all"
        ).fetchall()
        total = builder.connection.execute("select cost_usd from main.sessions").fetchone()
        unpriced = builder.connection.execute("select model, calls from main.unpriced_models").fetchall()
    assert found == [
        ("alias", None, "unknown", None),
        ("credits", None, "credits", None),
        ("listed", Decimal("0.037375"), "listed", "anthropic/claude-opus-4-7"),
        ("placeholder", None, "unknown", None),
        ("stated", Decimal("0.5"), "reported", None),
    ]
    assert total == (Decimal("0.537375"),)
    assert unpriced == [("claude-opus-4-7", 1)]


def test_a_total_over_a_session_chooses_no_tier(tmp_path: Path) -> None:
    """Below the tier every call was below it; above, nobody knows which were."""
    for tokens, expected in ((200_000, Decimal("0.6")), (200_001, None)):
        case = ("claude-sonnet-4-5", "2026-05-01T10:00Z", (tokens, 0, 0, 0, 0), None)
        folder = tmp_path / str(tokens)
        folder.mkdir()
        with resolved(folder, [call("total", case, grain="session")]) as builder:
            assert builder.connection.execute("select cost_usd from mart.model_calls").fetchone() == (expected,)


def test_another_price_table_costs_every_session_anew(tmp_path: Path) -> None:
    home, db = FIXTURES / "claude_code" / "example" / "tree", tmp_path / "s.duckdb"
    request = Request(str(db), HOST, Environment(str(home)), KEY, "0.0.0", state=str(tmp_path / "state"))
    query = "select session_id, request_key, cost_usd, cost_basis, price_id from mart.model_calls order by all"
    assert pipeline.load(request, lambda: NOW).state == "published"
    first = rows(db, query)
    assert any(basis == "listed" for *_, basis, _ in first)
    assert pipeline.load(request, lambda: NOW).state == "unchanged"

    folder = tmp_path / "prices"
    shipped = Path(prices.shipped_prices())
    contents = {name: (shipped / name).read_bytes() for name in ("prices.csv", "rules.csv")}
    head, *lines = contents["prices.csv"].decode().splitlines()
    dear = [",".join([*line.split(",")[:9], "1000", "1000", "1000", "1000", "1000", ""]) for line in lines]
    contents["prices.csv"] = "\n".join([head, *dear, ""]).encode()
    prices.write_price_list(str(folder), contents, "test", "1", "none")
    other = replace(request, prices=str(folder))
    told: list[str] = []
    assert pipeline.load(other, lambda: NOW, told.append).sources_read == 0
    assert any("every cost is computed anew" in line for line in told)
    again = rows(db, query)
    assert [row[:2] for row in again] == [row[:2] for row in first]
    assert [row[2] for row in again if row[3] == "listed"] != [row[2] for row in first if row[3] == "listed"]
    assert verify(other).is_equal
    assert pipeline.load(other, lambda: NOW).state == "unchanged"

    afresh = tmp_path / "full.duckdb"
    pipeline.load(replace(other, db=str(afresh)), lambda: NOW)
    assert rows(afresh, query) == again


def test_a_store_without_prices_gets_them(tmp_path: Path) -> None:
    """As one that an earlier version wrote: it has no price table."""
    import duckdb  # noqa: PLC0415 - only here

    home, db = FIXTURES / "claude_code" / "example" / "tree", tmp_path / "s.duckdb"
    request = Request(str(db), HOST, Environment(str(home)), KEY, "0.0.0", state=str(tmp_path / "state"))
    pipeline.load(request, lambda: NOW)
    shutil.copyfile(db, tmp_path / "new.duckdb")
    with duckdb.connect(str(db)) as connection:
        for statement in ("drop view prices", "drop table mart.prices", "drop table mart.price_list"):
            connection.execute(statement)
    assert pipeline.load(request, lambda: NOW).state == "published"
    query = "select * exclude (snapshots_merged) from mart.model_calls order by all"
    assert rows(db, query) == rows(tmp_path / "new.duckdb", query)
