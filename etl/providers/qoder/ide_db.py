"""What do the rows of the Qoder IDE's ``local.db`` say?

``chat_message`` is the one store of Qoder with real token counts; a row of any role may hold them. ``content`` was
NULL in every row seen: where there is text it is dialogue, for sessions that no transcript tells of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from etl.events import Dialogue, RecordOpened, SessionFact, TurnMark, Unread, UnreadItem
from etl.grammars.blocks import locate, project, request, result
from etl.providers.qoder.usage import ide_usage
from etl.shape import as_dict, as_str, as_text, decode_text, instant
from etl.sqlitedb import DbTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.events import Event
    from etl.providers.base import RecordLike, Source

TABLES: Final = (
    DbTable("chat_session", "session_id", ("session_title", "project_uri", "gmt_create", "gmt_modified")),
    DbTable(
        "chat_message",
        "id",
        ("session_id", "request_id", "role", "content", "token_info", "model_info", "gmt_create"),
        ("gmt_create",),
    ),
)
_ROLES: Final = frozenset({"user", "assistant"})


def adapt_database(source: Source, records: Iterator[RecordLike]) -> Iterator[Event]:
    """Facts of sessions, dialogue and model calls, row by row."""
    for record in records:
        value = record.value
        table, native = str(value.get("table")), as_text(value.get("session_id"))
        key = as_str(getattr(record, "row_key", None))
        if native is None:
            yield Unread(record.line_no, record.child, table, "rejected", key)
            continue
        opened = RecordOpened(
            record.line_no, record.child, record.raw, value, source.session_id(native), table, row_key=key
        )
        yield from _session(opened) if table == "chat_session" else _message(opened)


def _session(opened: RecordOpened) -> Iterator[Event]:
    value = opened.value
    yield opened
    stated = instant(value.get("gmt_modified"))
    if title := as_text(value.get("session_title")):
        yield SessionFact("title.sidecar", title, stated)
    if folder := _folder(value.get("project_uri")):
        yield SessionFact("cwd.sidecar", folder, stated)


def _folder(uri: Any) -> str | None:
    text = as_text(uri)
    if text is None or "://" not in text:
        return text
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    return unquote(parts.path) or None if parts.scheme == "file" else None


def _message(opened: RecordOpened) -> Iterator[Event]:
    value = opened.value
    role = as_str(value.get("role")) or ""
    opened.ts, opened.ts_source = instant(value.get("gmt_create")), "record"
    opened.role = role if role in _ROLES else None
    opened.message_key = as_text(value.get("id"))
    opened.chained = True
    opened.counted = {"user": "direct_user", "assistant": "assistant"}.get(role)
    model = as_text(as_dict(_json(value.get("model_info"))).get("model_key"))
    opened.model = model if role == "assistant" else None
    yield opened
    if opened.role is not None:
        yield from _said(value, role, opened.message_key)
    tokens = _json(value.get("token_info"))
    if isinstance(tokens, dict) and opened.message_key:
        call = ide_usage(opened.message_key, model, tokens)
        call.request_id = as_text(value.get("request_id"))
        yield call


def _json(text: Any) -> Any:
    return decode_text(text) if isinstance(text, str) else None


def _said(value: dict[str, Any], role: str, message_key: str | None) -> Iterator[Event]:
    located = locate(value, role)
    parts = [] if located is None else list(project(located))
    if role == "user" and any(part.kind == "text" for part in parts):
        yield TurnMark("start", trigger="person")
    for part in parts:
        if part.kind in ("text", "thinking"):
            kind = "prompt" if role == "user" else part.kind
            decoded = located is not None and located.decoded
            yield Dialogue(role, kind, part.text, part.pointer, part.block, decoded=decoded)
        elif part.kind == "request":
            yield request(part, {}, message_key)
        elif part.kind == "result":
            yield result(part)
        elif part.kind in ("unknown", "rejected"):
            yield UnreadItem(part.block, part.item_type, part.kind)
