"""How is a price table made of an installed genai-prices?

Its data is a list of providers, each with an ordered list of models, each with a clause over names and with prices that
hold from a date on, at a time of day, or above so many input tokens. Here it becomes two flat tables that SQL can
apply: clauses as alternatives of conditions, prices as rows that do not overlap.

What the data does not price by itself it counts to the wider kind (a cached token is an input token), so:

- ``cache_read_usd`` and ``cache_write_5m_usd`` are the input price where there is no own one;
- ``cache_write_1h_usd`` is twice the input price for Claude models with a price for writing, as Anthropic charges; else
  what the other write costs.

``assumed`` names the prices of a row that were filled so.
"""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

from etl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: Providers whose prices are taken: makers of models, and those that sell models of others to agents. Not taken are
#: those that sell other things than tokens of text.
COVERED: Final = (
    *("anthropic", "aws", "azure", "cerebras", "cohere", "cursor", "deepseek", "fireworks", "github-copilot", "google"),
    *("groq", "meta", "minimax", "mistral", "moonshotai", "openai", "openrouter", "together", "x-ai", "zai", "zhipuai"),
)
PRICES: Final = (
    *("price_id", "provider", "model", "effective_from", "effective_until", "time_from", "time_until"),
    *("input_above", "input_up_to", "input_usd", "output_usd", "cache_read_usd", "cache_write_5m_usd"),
    *("cache_write_1h_usd", "assumed"),
)
RULES: Final = ("step", "provider", "rank", "alternative", "op", "is_not", "pattern", "model")
_OPS: Final = ("equals", "starts_with", "ends_with", "contains", "regex")
#: Prices that a count of tokens is not enough for: such a model has no row.
_OTHER_KINDS: Final = ("requests_kcount", "output_reasoning_mtok", "input_audio_hours", "audio_hours")
#: A look-ahead at the start, which the engine's regular expressions do not have: it becomes a condition of its own.
_NOT_AHEAD: Final = re.compile(r"\^\(\?!((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)(.*)", re.DOTALL)
#: Binary fractions in the data (0.049999999999999996) are meant as the decimals they stand for.
_PLACES: Final = Decimal("0.000000001")

Condition = tuple[str, bool, str]


def price_tables() -> tuple[dict[str, bytes], str]:
    """The files of a price table, and the version of genai-prices they are made of.

    Raises UsageError when it is not installed, or has a rule that cannot be applied.
    """
    try:
        from genai_prices.data import providers  # noqa: PLC0415 - only here, and not always installed
    except ImportError as error:
        raise UsageError("genai-prices is not installed: `pip install -U genai-prices`, then refresh again") from error
    known = {provider.id: provider for provider in providers}
    chosen = [known[name] for name in sorted(known) if name in COVERED]
    prices = [row for provider in chosen for model in provider.models for row in price_rows(provider.id, model)]
    rules = list(_rule_rows(chosen, [provider for provider in providers if provider.id in COVERED], known))
    files = {"prices.csv": _csv(PRICES, prices), "rules.csv": _csv(RULES, rules)}
    return files, metadata.version("genai-prices")


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(["" if value is None else value for value in row] for row in rows)
    return text.getvalue().encode()


def _rule_rows(chosen: Sequence[Any], ordered: Sequence[Any], known: dict[str, Any]) -> Iterator[Sequence[object]]:
    """Which provider a prefix names (its id before what merely resembles one), which one a bare name belongs to, and
    which model of a provider a name is; a provider that sells models of others knows their names after its own.
    """
    exact: list[tuple[str, Any]] = [(item.id, [[("equals", False, item.id)]]) for item in ordered]
    alike = [(item.id, alternatives(item.provider_match)) for item in ordered if item.provider_match is not None]
    for rank, (name, found) in enumerate([*exact, *alike]):
        yield from _conditions("prefix", name, rank, found, None)
    for rank, item in enumerate(item for item in ordered if item.model_match is not None):
        yield from _conditions("name", item.id, rank, alternatives(item.model_match), None)
    for item in chosen:
        others = [known[name] for name in item.fallback_model_providers or () if name in known]
        models = [(owner.id, model) for owner in (item, *others) for model in owner.models]
        for rank, (owner, model) in enumerate(models):
            yield from _conditions("model", item.id, rank, alternatives(model.match), f"{owner}/{model.id}")


def _conditions(
    step: str, provider: str, rank: int, found: Sequence[Sequence[Condition]], model: str | None
) -> Iterator[Sequence[object]]:
    for number, conditions in enumerate(found):
        for op, is_not, pattern in conditions:
            yield step, provider, rank, number, op, str(is_not).lower(), pattern, model


def alternatives(clause: Any) -> list[list[Condition]]:
    """A clause as alternatives, each a list of conditions that must all hold."""
    for op in _OPS:
        if (pattern := getattr(clause, op, None)) is not None:
            return [_plain(pattern) if op == "regex" else [(op, False, pattern.lower())]]
    if (either := getattr(clause, "or_", None)) is not None:
        return [conditions for part in either for conditions in alternatives(part)]
    if (parts := getattr(clause, "and_", None)) is not None:
        joined: list[list[Condition]] = [[]]
        for part in parts:
            joined = [[*one, *other] for one in joined for other in alternatives(part)]
        return joined
    raise UsageError(f"this genai-prices has a rule that sessionmart does not know: {type(clause).__name__}")


def _plain(pattern: str) -> list[Condition]:
    found = _NOT_AHEAD.fullmatch(pattern)
    conditions = [("regex", False, pattern)]
    if found:
        rest = [("regex", False, f"^{found[2]}")] if found[2] else []
        conditions = [("regex", True, f"^(?:{found[1]})"), *rest]
    if any(sign in text for _, _, text in conditions for sign in ("(?!", "(?=", "(?<")):
        raise UsageError(f"this genai-prices has a rule that sessionmart cannot apply: {pattern}")
    return conditions


def price_rows(provider: str, model: Any) -> Iterator[Sequence[object]]:
    """The rows of a model: for each span of days and each part of a day one row a tier."""
    listed = model.prices if isinstance(model.prices, list) else None
    constraints = [item.constraint for item in listed or () if item.constraint is not None]
    days = sorted({item.start_date for item in constraints if hasattr(item, "start_date")})
    spans = [*zip([None, *days], [*days, None], strict=True)]
    for day_from, day_until in spans:
        moment = day_from or (days[0] - timedelta(days=1) if days else date(2026, 1, 1))
        for time_from, time_until, price in _parts_of_day(model, listed, moment):
            key = f"{provider}/{model.id}" + (f"@{day_from}" if day_from else "")
            if time_from is not None:
                key += f"T{time_from:%H:%M}"
            place = (provider, f"{provider}/{model.id}", day_from, day_until, time_from, time_until)
            for above, up_to in _tiers(price):
                row = _row(f"{provider}/{model.id}", price, above)
                if row is not None:
                    yield (key + (f">{above}" if above is not None else ""), *place, above, up_to, *row)


def _parts_of_day(model: Any, listed: Any, day: date) -> list[tuple[time | None, time | None, Any]]:
    """What holds on a day, by time of day in UTC; one part without times where it is the same all day."""
    edges = {time(0)}
    for item in listed or ():
        if hasattr(item.constraint, "start_time"):
            for edge in (item.constraint.start_time, item.constraint.end_time):
                edges.add(datetime.combine(day, edge, edge.tzinfo or UTC).astimezone(UTC).time())
    parts: list[tuple[time, Any]] = []
    for edge in sorted(edges):
        price = model.get_prices(datetime.combine(day, edge, UTC))
        if not parts or parts[-1][1] != price:
            parts.append((edge, price))
    if len(parts) == 1:
        return [(None, None, parts[0][1])]
    ends = [start for start, _ in parts[1:]]
    return [(start, end, price) for (start, price), end in zip(parts, [*ends, None], strict=True)]


def _tiers(price: Any) -> list[tuple[int | None, int | None]]:
    """Above and up to how many input tokens other prices hold; all tokens of a call are paid at those of its tier."""
    starts = sorted({tier.start for value in vars(price).values() for tier in getattr(value, "tiers", ())})
    return list(zip([None, *starts], [*starts, None], strict=True))


def _row(model: str, price: Any, above: int | None) -> Sequence[object] | None:
    """The five prices of a tier and which of them were filled; None for what is not priced by tokens of text."""
    plain = {key: _of_tier(value, above) for key, value in vars(price).items() if value is not None}
    paid, given = plain.get("input_mtok"), plain.get("output_mtok")
    if (paid is None and given is None) or any(key in plain for key in _OTHER_KINDS):
        return None
    read, write = plain.get("cache_read_mtok"), plain.get("cache_write_5m_mtok", plain.get("cache_write_mtok"))
    long = plain.get("cache_write_1h_mtok")
    names = ("cache_read", "cache_write_5m", "cache_write_1h")
    assumed = [name for name, value in zip(names, (read, write, long), strict=True) if value is None]
    if long is None:
        long = 2 * paid if "claude" in model.lower() and write is not None and paid is not None else write
    read, write, long = (paid if value is None else value for value in (read, write, long))
    return (*(_text(value) for value in (paid, given, read, write, long)), " ".join(assumed) or None)


def _of_tier(value: Any, above: int | None) -> Decimal:
    """The price of a tier: of several that begin below it the last."""
    if not hasattr(value, "tiers"):
        return Decimal(value)
    begun = [tier.price for tier in value.tiers if above is not None and tier.start <= above]
    return Decimal(begun[-1] if begun else value.base)


def _text(value: Decimal | None) -> str | None:
    if value is None:
        return None
    text = format(value.quantize(_PLACES), "f")
    return text.rstrip("0").rstrip(".")
