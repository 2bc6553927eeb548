"""What does the output of a Codex tool call say: its text, its exit code, how long it took, how it ended?

An output is a text that begins with a small header (``Exit code: 0``, ``Wall time: 0.1 seconds``), a list of content
items, an object ``{content, success}``, or (up to 0.7x) a text that holds the JSON object ``{output, metadata}``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from etl.events import ToolResult
from etl.shape import as_bool, as_dict, as_float, as_int, as_str, canonical, decode_text

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The header stands at the beginning: a command's own output may hold such lines too.
_HEADER: Final = re.compile(r"(?:(?!Output:|Total output lines:)[A-Z][^\n]{0,120}\n){0,8}")
_EXIT: Final = re.compile(r"^(?:Exit code|Process exited with code):? (?P<code>-?\d{1,9})$", re.MULTILINE)
_WALL: Final = re.compile(r"^Wall time: (?P<seconds>\d{1,8}(?:\.\d{1,9})?) seconds?$", re.MULTILINE)
_RUNNING: Final = re.compile(r"^Process running with session ID ", re.MULTILINE)
_REFUSED: Final = re.compile(r"\A(?:exec command |patch |command )?rejected by user", re.IGNORECASE)
_ABORTED: Final = re.compile(r"\A(?:aborted by user|command aborted)", re.IGNORECASE)
_PICTURES: Final = frozenset({"input_image", "image"})
_SPOKEN: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s|m)")
_UNITS: Final = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000}


def output(call_id: str | None, value: Any) -> ToolResult:
    """The result that an output states. ``provider_us`` is the wall time of its header, if it has one."""
    told = ToolResult(None, call_id, None)
    if isinstance(value, dict) and "content" in value:
        success = as_bool(value.get("success"))
        told.is_error = None if success is None else not success
        value = value["content"]
    told.text, told.images = _text(value)
    if isinstance(value, str):
        _old(told, value)
    header = _HEADER.match(told.text or "")
    head = header[0] if header else ""
    if found := _EXIT.search(head):
        told.exit_code = int(found["code"])
    if told.provider_us is None and (found := _WALL.search(head)):
        told.provider_us = round(float(found["seconds"]) * 1_000_000)
    if told.exit_code is not None:
        told.is_error = told.exit_code != 0
    elif _RUNNING.search(head):
        told.status_raw = "backgrounded"
    if _REFUSED.match(told.text or ""):
        told.denial = "user-rejected"
    elif _ABORTED.match(told.text or ""):
        told.status_raw = "interrupted"
    return told


def _old(told: ToolResult, text: str) -> None:
    """The form of older versions: a JSON text with the output and its metadata."""
    if '"metadata"' not in text or '"output"' not in text:
        return
    value = as_dict(decode_text(text))
    inner, metadata = as_str(value.get("output")), as_dict(value.get("metadata"))
    if inner is None or not metadata:
        return
    told.text, told.exit_code = inner, as_int(metadata.get("exit_code"))
    told.provider_us = seconds_us(metadata.get("duration_seconds"))


def _text(value: Any) -> tuple[str | None, int]:
    if value is None or isinstance(value, str):
        return value, 0
    texts: list[str] = []
    pictures = 0
    for item in value if isinstance(value, list) else [value]:
        kind = as_str(as_dict(item).get("type"))
        if isinstance(item, str):
            texts.append(item)
        elif kind in _PICTURES:
            pictures += 1
        elif isinstance(item, dict) and isinstance(item.get("text"), str):
            texts.append(item["text"])
        else:
            texts.append(canonical(item))
    return ("\n".join(texts) if texts else None), pictures


def duration_us(value: Any) -> int | None:
    """A duration as events state it: ``{secs, nanos}``, or a text such as ``1.23s``; microseconds."""
    if isinstance(value, str):
        found = _SPOKEN.fullmatch(value.strip())
        return round(float(found["number"]) * _UNITS[found["unit"]]) if found and len(value) < 20 else None
    stated: Mapping[str, Any] = as_dict(value)
    secs, nanos = as_int(stated.get("secs")), as_int(stated.get("nanos"))
    if secs is None or nanos is None or not (0 <= secs < 10**9 and 0 <= nanos < 10**9):
        return None
    return secs * 1_000_000 + nanos // 1_000


def seconds_us(value: Any) -> int | None:
    """A number of seconds, in microseconds."""
    stated = as_float(value)
    return round(stated * 1_000_000) if stated is not None and 0 <= stated < 1e9 else None
