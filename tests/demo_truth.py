"""What should the report say about the demo home, counted a second time and another way?

Plain `json` over the lines of the files; it shares no code with the loader and none with the generator. The rules are
those of the report: a resent record (same uuid) counts once, a text that a later record of the same message and parent
goes on with is superseded, a refused call is no error, percentiles take ok and error calls and interpolate linearly.
"""

from __future__ import annotations

import argparse
import json
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

LATEST: Final = 40
SUMMED: Final = (
    "prompts",
    "text_rows",
    "thinking_rows",
    "readable_rows",
    "tool_calls",
    "tool_errors",
    "denied_calls",
    "paired_calls",
    "unknown_items",
    "rejected_lines",
    "raw_envelopes",
)
MESSAGE_ROWS: Final = {"user", "assistant", "attachment", "system"}
KNOWN_ITEMS: Final = {
    "text",
    "output_text",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "tool_result",
    "image",
    "document",
}

Row = dict[str, Any]


def read_lines(path: Path) -> tuple[list[Row], int]:
    """Records without exact resends, in order, and the number of non-blank lines that are no JSON object."""
    rows: list[Row] = []
    seen: set[str] = set()
    rejected = 0
    for line in path.read_text(encoding="utf-8").split("\n"):
        if not line.strip():
            continue
        try:
            row = json.loads(line, parse_float=Decimal)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            rejected += 1
        elif row.get("uuid") not in seen:
            rows.append(row)
            if "uuid" in row:
                seen.add(row["uuid"])
    return rows, rejected


def items(row: Row) -> list[Row]:
    """Content items of a message record; a content that is a string is one text."""
    content = row.get("message", {}).get("content", [])
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def is_prompt(row: Row) -> bool:
    by_person = row.get("origin", {}).get("kind") == "human" or "humanInput" in row
    return row["type"] == "user" and by_person and not row.get("isMeta") and not row.get("isCompactSummary")


def answer_texts(rows: list[Row]) -> list[str]:
    """Texts of the model without the notices of a failed request and without superseded snapshots."""
    texts: list[tuple[tuple[str, str | None], str]] = []
    for row in rows:
        if row["type"] == "assistant" and not row.get("isApiErrorMessage"):
            place = (row["message"]["id"], row["parentUuid"])
            texts += [(place, item["text"]) for item in items(row) if item["type"] in {"text", "output_text"}]
    return [
        text
        for number, (place, text) in enumerate(texts)
        if text and not any(p == place and t.startswith(text) and t != text for p, t in texts[number + 1 :])
    ]


def moment(row: Row) -> datetime:
    return datetime.fromisoformat(row["timestamp"])


def calls(rows: list[Row]) -> list[tuple[str, Fraction | None]]:
    """Status (ok, error, denied, none) and latency in ms of every distinct call."""
    requests: dict[str, datetime] = {}
    answers: dict[str, tuple[datetime, str]] = {}
    for row in rows:
        for item in items(row) if row["type"] in {"user", "assistant"} else []:
            if item["type"] == "tool_use":
                requests.setdefault(item["id"], moment(row))
            elif item["type"] == "tool_result":
                status = "denied" if "toolDenialKind" in row else "error" if item.get("is_error") else "ok"
                answers.setdefault(item["tool_use_id"], (moment(row), status))
    found: list[tuple[str, Fraction | None]] = []
    for name, start in requests.items():
        if name in answers:
            end, status = answers[name]
            found.append((status, Fraction((end - start) // timedelta(microseconds=1), 1000)))
        else:
            found.append(("none", None))
    return found


def spent(rows: list[Row]) -> Decimal:
    """Credits: the last usage of each message."""
    meters: dict[str, Decimal] = {}
    for row in rows:
        message = row.get("message", {})
        if row["type"] == "assistant" and "usage" in message:
            meters[message["id"]] = Decimal(message["usage"].get("credits", 0))
    return sum(meters.values(), Decimal(0))


def count(path: Path) -> tuple[Row, list[Fraction]]:
    """The answer for one file, and the latencies (ms) of its ok and error calls."""
    rows, rejected = read_lines(path)
    messages = [row for row in rows if row["type"] in MESSAGE_ROWS]
    texts = answer_texts(rows)
    thoughts = [i for row in rows if row["type"] == "assistant" for i in items(row) if i["type"] == "thinking"]
    thinking = sum(1 for item in thoughts if item.get("thinking"))
    found = calls(rows)
    statuses = [status for status, _ in found]
    answer: Row = {
        "session_id": path.stem,
        "ended_at": max(row["timestamp"] for row in messages),
        "prompts": sum(1 for row in messages if is_prompt(row)),
        "text_rows": len(texts),
        "thinking_rows": thinking,
        "readable_rows": len(texts) + thinking,
        "tool_calls": len(found),
        "tool_errors": statuses.count("error"),
        "denied_calls": statuses.count("denied"),
        "paired_calls": len(found) - statuses.count("none"),
        "unknown_items": sum(1 for row in messages for item in items(row) if item["type"] not in KNOWN_ITEMS),
        "rejected_lines": rejected,
        "raw_envelopes": 0,  # every text of the tree stands in a string leaf of its own
        "credits": str(spent(rows)),
    }
    return answer, [latency for status, latency in found if latency is not None and status in {"ok", "error"}]


def quantile(values: list[Fraction], share: Fraction) -> float:
    """Linear interpolation between the two nearest ranks, as SQL's quantile_cont does it."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return float(ordered[low] + (ordered[high] - ordered[low]) * (place - low))


def truth(home: Path) -> Row:
    """The answer for a home directory: its root sessions, newest first, its sub-agents, and the report over forty."""
    projects = home / ".qoder" / "projects"
    counted = [count(path) for path in sorted(projects.glob("*/*.jsonl"))]
    counted.sort(key=lambda pair: pair[0]["session_id"])
    counted.sort(key=lambda pair: pair[0]["ended_at"], reverse=True)
    latest = counted[:LATEST]
    timed = [latency for _, latencies in latest for latency in latencies]
    report: Row = {"sessions": len(latest)}
    report |= {name: sum(answer[name] for answer, _ in latest) for name in SUMMED}
    report["credits"] = str(sum((Decimal(answer["credits"]) for answer, _ in latest), Decimal(0)))
    report["timed_calls"] = len(timed)
    report["p50_ms"] = quantile(timed, Fraction(1, 2))
    report["p95_ms"] = quantile(timed, Fraction(19, 20))
    children = [
        {"parent": path.parent.parent.name} | count(path)[0] for path in sorted(projects.glob("*/*/subagents/*.jsonl"))
    ]
    return {
        "report": report,
        "left_out": [answer["session_id"] for answer, _ in counted[LATEST:]],
        "sessions": [answer for answer, _ in counted],
        "subagents": children,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Count the demo home directory and write the answer.")
    parser.add_argument("home", type=Path, help="a home directory, such as fixtures/demo")
    parser.add_argument("answer", type=Path, help="the file to write, such as tests/expected/demo.json")
    args = parser.parse_args()
    text = json.dumps(truth(args.home), indent=1, ensure_ascii=False) + "\n"
    args.answer.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
