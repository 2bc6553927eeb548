"""How are the rounds of a benchmark summed up and printed for people?"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_MB: Final = 1e6
#: What is summed up: measurement, number, label, divisor and unit.
_LINES: Final = (
    ("bare", "seconds", "bare orjson.loads", 1, "s"),
    ("load", "seconds", "load, fresh store", 1, "s"),
    ("load", "ratio", "  wall / bare", 1, "x"),
    ("load", "cpu_seconds", "  processor time", 1, "s"),
    ("load", "cpu_ratio", "  processor time / bare", 1, "x"),
    ("load", "main_rss", "  peak memory, main", _MB, "MB"),
    ("load", "workers_rss", "  peak memory, largest worker", _MB, "MB"),
    ("load", "tree_rss", "  peak memory, all together", _MB, "MB"),
    ("load", "bytes_read", "  read", _MB, "MB"),
    ("load", "store_bytes", "  store", _MB, "MB"),
    ("unchanged", "seconds", "load again, nothing changed", 1, "s"),
    ("unchanged", "ratio", "  wall / bare", 1, "x"),
    ("unchanged", "main_rss", "  peak memory, main", _MB, "MB"),
    ("unchanged", "bytes_read", "  read", _MB, "MB"),
)


def summary(rounds: Sequence[dict[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """Median, least and most of each number, in the units of the rounds; what no round has is left out."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for part, name, *_ in _LINES:
        values = [one[part][name] for one in rounds if one[part].get(name) is not None]
        if values:
            spread = {"median": median(values), "min": min(values), "max": max(values)}
            found.setdefault(part, {})[name] = spread
    return found


def table(found: dict[str, Any]) -> str:
    """The summary as a table, with what it was measured on and where the time of a load went."""
    tree, numbers = found["tree"], found["summary"]
    lines = [f"{found['command']}  ({len(found['rounds'])} rounds)"]
    if numbers:
        size = f"{tree['bytes'] / _MB:.1f} MB in {tree['files']:,} files, {tree['lines']:,} lines"
        lines.append(f"tree: {size}, style {tree['style']}, seed {tree['seed']}")
    lines += [f"{name}: {value}" for name, value in found["machine"].items()]
    lines += ["", f"{'':<32}{'median':>10}{'min':>10}{'max':>10}"]
    for part, name, label, divisor, unit in _LINES:
        if spread := numbers.get(part, {}).get(name):
            cells = "".join(f"{spread[key] / divisor:>10.2f}" for key in ("median", "min", "max"))
            lines.append(f"{label:<32}{cells} {unit}")
    return "\n".join([*lines, *_remarks(found)]) + "\n"


def _remarks(found: dict[str, Any]) -> list[str]:
    rounds = found["rounds"]
    if not rounds:
        return []
    stages = {name: median(one["load"]["stages"][name] for one in rounds) for name in rounds[0]["load"]["stages"] or ()}
    share = median(one["load"]["store_bytes"] / one["bare"]["bytes"] for one in rounds)
    kept = all(one["unchanged"]["same_store"] for one in rounds)
    return [
        "",
        f"store: {share:.1%} of the source",
        f"stages of a load (median): {', '.join(f'{name} {seconds:.2f} s' for name, seconds in stages.items())}",
        f"load again: the store file is {'the same one' if kept else 'written anew'}",
    ]
