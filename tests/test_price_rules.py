"""Does SQL find the model and the price that genai-prices finds, for every name, day and tier?"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import TYPE_CHECKING, Any

import pytest
from genai_prices import types
from genai_prices.data import providers

from etl.builder import Builder
from etl.errors import UsageError
from etl.genaiprices import COVERED, alternatives, price_rows
from tests.test_cost import CASES, call, resolved

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb

#: 300,000 in: above every tier in the data but those of the largest contexts.
USAGE = {"input_tokens": 300_000, "output_tokens": 1_000, "cache_read_tokens": 50_000, "cache_write_tokens": 7_000}
MOMENTS = (
    datetime(2025, 6, 9, 12, tzinfo=UTC),
    datetime(2026, 3, 12, 3, tzinfo=UTC),
    datetime(2026, 11, 1, 20, tzinfo=UTC),
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    folder = tmp_path_factory.mktemp("store")
    with Builder(str(folder / "store.duckdb"), str(folder / "spill"), None, afresh=True) as builder:
        yield builder.connection


@pytest.mark.parametrize(
    "provider", ["anthropic", "openai", "google", "deepseek", "moonshotai", "mistral", "x-ai", "zai"]
)
def test_every_maker_has_prices(provider: str, store: duckdb.DuckDBPyConnection) -> None:
    found = store.execute(
        "select count(*), count(*) filter (input_usd > 0) from mart.prices where provider = ?", [provider]
    ).fetchone()
    assert found is not None
    assert min(found) > 5


def test_no_two_rows_hold_at_once(store: duckdb.DuckDBPyConnection) -> None:
    assert (
        store.execute(
            "select a.price_id, b.price_id from mart.prices a "
            "join mart.prices b on a.model = b.model and a.price_id < b.price_id "
            "where coalesce(a.effective_from, '1900-01-01') < coalesce(b.effective_until, '2900-01-01') "
            "and coalesce(b.effective_from, '1900-01-01') < coalesce(a.effective_until, '2900-01-01') "
            "and coalesce(a.time_from, time '00:00') < coalesce(b.time_until, time '24:00') "
            "and coalesce(b.time_from, time '00:00') < coalesce(a.time_until, time '24:00') "
            "and coalesce(a.input_above, -1) < coalesce(b.input_up_to, 1e18::bigint) "
            "and coalesce(b.input_above, -1) < coalesce(a.input_up_to, 1e18::bigint)"
        ).fetchall()
        == []
    )


def test_names_and_prices_of_the_store_are_unique(store: duckdb.DuckDBPyConnection) -> None:
    assert store.execute("select price_id from mart.prices group by all having count(*) > 1").fetchall() == []
    assert (
        store.execute(
            "select price_id from mart.prices where least(input_usd, output_usd, cache_read_usd, cache_write_5m_usd, "
            "cache_write_1h_usd) < 0"
        ).fetchall()
        == []
    )


def _names(provider: types.Provider) -> Iterator[str]:
    """Names that the rules of a provider know literally."""
    for model in provider.models:
        for conditions in alternatives(model.match):
            if len(conditions) == 1 and conditions[0][0] in ("equals", "starts_with"):
                yield conditions[0][2]


def _expected(provider: types.Provider, name: str, moment: datetime) -> Decimal | None:
    """What genai-prices itself computes; None for a model that is not paid by tokens of text."""
    model = provider.find_model(name, all_providers=providers)
    assert model is not None
    if not list(price_rows(provider.id, model)):
        return None
    standard = model.get_prices(moment)
    if standard.input_mtok is None or standard.output_mtok is None:  # a count without a price: no cost for us
        return None
    only = {key: value for key, value in vars(standard).items() if key in TEXT}
    found = types.ModelPrice(**only).calc_price(types.Usage(**USAGE))["total_price"]
    return found.quantize(Decimal("0.00000001"), ROUND_HALF_UP)


TEXT = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok")


def test_names_dates_and_tiers_cost_what_genai_prices_says(tmp_path: Path) -> None:
    """Thousands of names, by prefix: found by the same rule, and paid at the same price."""
    asked: list[dict[str, Any]] = []
    expected: dict[str, Decimal | None] = {}
    for provider in providers:
        if provider.id not in {*COVERED} - {"openrouter"}:
            continue
        for name in sorted(set(_names(provider))):
            for number, moment in enumerate(MOMENTS):
                key = f"{provider.id}/{name}#{number}"
                expected[key] = _expected(provider, name, moment)
                tokens = (300_000, 1_000, 50_000, 7_000, 0)
                asked.append(call(key, (f"{provider.id}/{name}", moment.isoformat(), tokens, None)))
    found = _costs(tmp_path, asked)
    assert len(expected) > 1_000
    assert {key: (found[key], expected[key]) for key in expected if found[key] != expected[key]} == {}


def test_names_without_a_prefix_are_found_as_genai_prices_finds_them(tmp_path: Path) -> None:
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - only here

    names = [
        *("claude-haiku-4-5-20251001", "claude-opus-4-6", "claude-sonnet-4-5[1m]", "claude-opus-4.5", "gpt-5.5"),
        *("claude-sonnet-4@20250514", "claude-fable-5", "gemini-2.5-pro", "gpt-5-2025-08-07", "gpt-5-20250807"),
        *("muse-spark-1.2-contributor", "glm-4.7", "kimi-k2.7-code", "gpt-5.3-codex", "grok-4-fast", "o3"),
        *("deepseek-v4-pro", "gemini-3-flash-preview", "composer-2.5", "codestral-latest", "gpt-5.4-mini"),
    ]
    asked, expected = [], {}
    for name in names:
        provider, _ = get_snapshot().find_provider_model(name, None, None, None)
        expected[name] = _expected(provider, name, MOMENTS[2])
        asked.append(call(name, (name, MOMENTS[2].isoformat(), (300_000, 1_000, 50_000, 7_000, 0), None)))
    assert _costs(tmp_path, asked) == expected


def _costs(folder: Path, asked: list[dict[str, Any]]) -> dict[str, Decimal | None]:
    with resolved(folder, asked) as builder:
        rows = builder.connection.execute(
            "select request_key, cost_usd::decimal(18, 8) from mart.model_calls"
        ).fetchall()
    return dict(rows)


def test_another_vendors_name_is_openrouters(tmp_path: Path) -> None:
    case = ("qwen/qwen3-coder", "2026-11-01T10:00Z", (1_000_000, 0, 0, 0, 0), None)
    with resolved(tmp_path, [call("qwen", case), call("known", CASES["cache_split"])]) as builder:
        found = builder.connection.execute(
            "select price_id from mart.model_calls where request_key = 'qwen'"
        ).fetchone()
    assert found is not None
    assert found[0].startswith("openrouter/qwen/qwen3-coder")


def test_an_hour_of_cache_is_twice_the_input_for_claude_alone() -> None:
    stated = types.ModelPrice(input_mtok=Decimal(3), output_mtok=Decimal(15), cache_write_mtok=Decimal("3.75"))
    for name, expected in (("claude-x", "6"), ("gpt-x", "3.75")):
        model = types.ModelInfo(id=name, match=types.ClauseEquals(name), prices=stated)
        (row,) = price_rows("p", model)
        assert row[-6:] == ("3", "15", "3", "3.75", expected, "cache_read cache_write_1h")


def test_a_rule_that_cannot_be_applied_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot apply"):
        alternatives(types.ClauseRegex("^a(?=b)"))
