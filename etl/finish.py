"""How do gathered rows become Arrow tables that may be written to disk?

The order on every text: it is masked, then clipped, then digested (clipping first would cut a secret in half and leave
its head readable). Everything before this point, comparing included, worked on unmasked text in memory.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl
import pyarrow as pa

from etl.columns import array, is_empty, places, strings
from etl.keys import digest64
from etl.mask import Hit, mask_series, replaced
from etl.schema import RESULT_CAP_BYTES, TABLES, arrow_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.tables import Buffers, Taken

#: Columns that rows are joined by or told apart by: a masked secret keeps a digest.
_KEYS: Final = frozenset(
    [
        "rel_path",
        "session_id",
        "call_key",
        "parent_call_key",
        "message_key",
        "native_uuid",
        "parent_uuid",
        "logical_parent_uuid",
        "origin_session_id",
        "origin_uuid",
        "native_turn_id",
        "request_key",
        "batch_key",
        "batch_id",
        "native_session_id",
        "file_native_id",
        "item_id",
        "id",
        "uuid",
        "message_id",
        "request_id",
        "key",
    ]
)
#: Session facts whose value is such an id too, besides those named ``spawned.<agent>`` and ``spilled.<file>``.
_STATEMENT: Final = ("session_facts", "key")
_NAMED_IDS: Final = ("spawned.", "spilled.")
_STATED_IDS: Final = frozenset(
    {"parent", "spawner", "parent_agent", "spawn_call", "forked_from", "continues", "leaf", "run"}
)
#: Columns of few different values: masked once per value.
_REPEATED: Final = frozenset({"name", "name_raw", "model", "kind", "record_kind", "agent", "mcp_server", "stop_reason"})

_CLIPPED: Final[dict[tuple[str, str], int]] = {
    ("events", "summary"): 200,
    ("tool_requests", "command_head"): 200,
    ("tool_requests", "target_path"): 4_096,
    ("rejects", "head"): 200,
    ("record_census", "kind"): 100,
    ("content_blocks", "block_type"): 100,
}
#: digest column -> the column it digests, after masking and clipping
_DIGESTED: Final[dict[str, str]] = {"dialogue": "text", "tool_requests": "args", "tool_results": "result_text"}
#: columns that hold a whole text up to here, of which only the digest is stored
_DIGEST_ONLY: Final[dict[str, tuple[str, ...]]] = {
    "conflicts": ("digest", "other_digest"),
    "sources": ("head_digest",),
}

#: What a torn line ends in may be the first half of a secret, which no rule can know: its last word is not kept.
_TORN: Final = frozenset({"partial_tail", "io", "malformed"})
#: What a value that is more than one piece has in it (see ``_joint``).
_JOINED: Final = "/agent-|^mcp__"
_SLUG: Final = re.compile(r"[A-Za-z0-9]*-[A-Za-z0-9-]{20,}")
_GAP: Final = re.compile(r'[\s"]')
_REDACTED: Final = re.compile(r"\[redacted:[^\]]*\]")

Columns = dict[str, list[Any]]
#: Columns of texts, by table and column, as they are masked and written; a list that differs is not in it.
Texts = dict[tuple[str, str], pl.Series]
Redactions = Counter[tuple[str, str, str, str]]


def finish(buffers: Buffers, key: bytes) -> Iterator[tuple[str, pa.Table]]:
    """The Arrow tables of all gathered rows, and the redactions counted on the way; the buffers are empty after it.

    One after the other, by name: each is let go of before the next is made, so that memory holds the texts twice at
    most.
    ``key`` is the user's fingerprint key (``facts.redactions``); it changes nothing else.
    """
    taken = {name: buffers[name].take() for name in TABLES if name != "redactions" and len(buffers[name])}
    redactions: Redactions = Counter()
    sources = {name: _source_ids(rows) for name, rows in taken.items()}
    texts: Texts = {
        (name, column): strings(values)
        for name, rows in taken.items()
        for column in (*TABLES[name].masked, *_DIGEST_ONLY.get(name, ()))
        if not is_empty(values := rows.columns[column])
    }
    _mask_repeated(taken, texts, sources, key, redactions)
    _mask_texts(taken, texts, sources, key, redactions)
    for name in list(taken):
        rows = taken.pop(name)
        for column in _DIGEST_ONLY.get(name, ()):
            rows.columns[column] = _digests(rows.columns[column])
            texts.pop((name, column), None)
        _clip(name, rows.columns, texts)
        yield name, _arrow(name, rows, texts)
    if redactions:
        places = [[*place, number] for place, number in redactions.items()]
        source, column_name, rule, fingerprint, n = (list(values) for values in zip(*places, strict=True))
        columns = {"source_id": source, "column_name": column_name, "rule": rule, "n": n, "fingerprint": fingerprint}
        yield "redactions", pa.table(columns, schema=arrow_schema("redactions"))


def _source_ids(rows: Taken) -> list[str]:
    """The source of each row."""
    if "source_id" in rows.columns:
        return rows.columns["source_id"]
    ids: list[str] = []
    for source_id, number in rows.segments:
        ids += [source_id] * number
    return ids


class _Place(NamedTuple):
    """A column to mask, and which rows of it (None: all)."""

    table: str
    column: str
    rows: list[int] | None = None


def _places_of(texts: Texts, columns: frozenset[str] | None) -> list[_Place]:
    """The columns to mask of these names; None: those that are neither ids nor of few different values."""
    return [
        _Place(name, column)
        for name, column in texts
        if (column not in _KEYS | _REPEATED if columns is None else column in columns)
    ]


def _mask_repeated(
    taken: dict[str, Taken], texts: Texts, sources: dict[str, list[str]], key: bytes, redactions: Redactions
) -> None:
    """Ids and columns of few different values: each value is masked once. Masked ids stay different from each other."""
    table, column = _STATEMENT
    stated = taken[table].columns[column] if table in taken else []
    ids = [n for n, what in enumerate(stated) if what in _STATED_IDS or what.startswith(_NAMED_IDS)]
    places = [*_places_of(texts, _KEYS), *([_Place(table, "value", ids)] if ids else [])]
    _mask_distinct(taken, texts, sources, places, key, redactions, told_apart=True)
    _mask_distinct(taken, texts, sources, _places_of(texts, _REPEATED), key, redactions, told_apart=False)


def _joint(column: str, value: str) -> tuple[str, int]:
    """What the pieces of a value of this column are joined by, and in how many places (-1: all).

    They are masked one by one: of two secrets side by side, the first would take the head of the second with it, which
    then is none that a rule knows.
    """
    if column == "rel_path":
        return "/", -1
    return ("__", 2) if column == "name_raw" and value.startswith("mcp__") else ("/agent-", -1)


def _mask_pieces(pieces: pl.Series, key: bytes, *, told_apart: bool) -> tuple[dict[str, str], dict[str, list[Hit]]]:
    """Of those that hold a secret: the masked piece, and what was found."""
    masked, hits = mask_series(pieces, key, told_apart=told_apart)
    found: dict[str, list[Hit]] = {}
    for hit in hits:
        found.setdefault(pieces[hit.row], []).append(hit)
    return {piece: masked[told[0].row] for piece, told in found.items()}, found


def _mask_slugs(pieces: set[str], key: bytes) -> tuple[dict[str, str], dict[str, list[Hit]]]:
    """The same for names of folders that are made of a working folder, in which each sign is a dash: it may have been
    another one that makes a token.
    """
    slugs = sorted(piece for piece in pieces if _SLUG.fullmatch(piece))
    new: dict[str, str] = {}
    found: dict[str, list[Hit]] = {}
    for sign in "_.":
        masked, hits = _mask_pieces(strings([slug.replace("-", sign) for slug in slugs]), key, told_apart=True)
        for slug in slugs:
            told = slug.replace("-", sign)
            if told in masked:  # no mark holds one of the signs
                new[slug], found[slug] = masked[told].replace(sign, "-"), hits[told]
    return new, found


def _values_of(texts: Texts, place: _Place) -> pl.Series:
    """The different values of a column, or of some rows of it."""
    column = texts[place.table, place.column]
    return (column if place.rows is None else column.gather(place.rows)).unique().drop_nulls()


def _pieces_of(texts: Texts, places: list[_Place]) -> tuple[pl.Series, set[str]]:
    """The different pieces of all values, and those of paths. Each call of polars costs 0.2 ms: few on all columns."""
    paths = [place for place in places if place.column == "rel_path"]
    names = {piece for place in paths for path in _values_of(texts, place) for piece in path.split("/")}
    others = [place for place in places if place.column != "rel_path"]
    columns = [
        texts[table, column] if rows is None else texts[table, column].gather(rows) for table, column, rows in others
    ]
    values = pl.concat([*columns, strings([])]).unique().drop_nulls()
    is_joined = values.str.contains(_JOINED)
    joined = values.filter(is_joined)
    parts = {piece for value in joined for column in ("name_raw", "") for piece in value.split(*_joint(column, value))}
    return pl.concat([values.filter(~is_joined), strings(list(parts | names))]).unique(), names


def _mask_distinct(
    taken: dict[str, Taken],
    texts: Texts,
    sources: dict[str, list[str]],
    places: list[_Place],
    key: bytes,
    redactions: Redactions,
    *,
    told_apart: bool,
) -> None:
    pieces, names = _pieces_of(texts, places)
    new, found = _mask_pieces(pieces, key, told_apart=told_apart)
    slugs, found_in_slugs = _mask_slugs(names - new.keys(), key)
    new, found = new | slugs, found | found_in_slugs
    if not new:
        return
    for place in places:
        table, column, rows = place
        parted = {value: value.split(*_joint(column, value)) for value in _values_of(texts, place)}
        changed = {value: parts for value, parts in parted.items() if not found.keys().isdisjoint(parts)}
        stored = taken[table].columns[column]
        altered: dict[int, str] = {}
        for row in range(len(stored)) if rows is None and changed else rows or ():
            if told_parts := changed.get(stored[row]):
                altered[row] = _joint(column, stored[row])[0].join(new.get(piece, piece) for piece in told_parts)
                for hit in (hit for piece in told_parts for hit in found.get(piece, ())):
                    redactions[sources[table][row], f"{table}.{column}", hit.rule, hit.fingerprint] += 1
        _alter(taken[table].columns, texts, (table, column), altered)


def _alter(columns: Columns, texts: Texts, place: tuple[str, str], altered: dict[int, str]) -> None:
    """Puts other texts into rows of a column, in both of its forms."""
    if altered:
        for row, text in altered.items():
            columns[place[1]][row] = text
        texts[place] = replaced(texts[place], altered)


def _mask_texts(
    taken: dict[str, Taken], texts: Texts, sources: dict[str, list[str]], key: bytes, redactions: Redactions
) -> None:
    """Texts: all columns of all tables in one pass."""
    places = _places_of(texts, None)
    if not places:
        return
    masked, hits = mask_series(pl.concat([texts[name, column] for name, column, _ in places]), key)
    number = start = 0
    for hit in hits:  # in the order of rows
        while hit.row >= start + len(texts[places[number][:2]]):
            start += len(texts[places[number][:2]])
            number += 1
        name, column, _ = places[number]
        taken[name].columns[column][hit.row - start] = masked[hit.row]
        redactions[sources[name][hit.row - start], f"{name}.{column}", hit.rule, hit.fingerprint] += 1
    start = 0
    for name, column, _ in places if hits else ():
        length = len(texts[name, column])
        texts[name, column] = masked.slice(start, length)
        start += length


def _digests(texts: list[str | None]) -> list[str | None]:
    return [None if text is None else digest64(text) for text in texts]


def _clip(table: str, columns: Columns, texts: Texts) -> None:
    if table == "tool_results":
        _alter(columns, texts, (table, "result_text"), _clipped_results(columns))
    if table == "rejects":
        heads, digests = columns["head"], columns["digest"]
        columns["digest"] = [
            digest if digest or head is None else digest64(head) for head, digest in zip(heads, digests, strict=True)
        ]
        columns["head"] = [
            head if head is None or line_no == 0 or reason not in _TORN else _without_last_word(head)
            for head, reason, line_no in zip(heads, columns["reason"], columns["line_no"], strict=True)
        ]
        if (table, "head") in texts:
            texts[table, "head"] = strings(columns["head"])
    for (owner, column), limit in _CLIPPED.items():
        if owner == table:
            long = {row: text for row, text in enumerate(columns[column]) if text is not None and len(text) > limit}
            clipped = {row: text[: limit - 1] + "…" for row, text in long.items()}
            _alter(columns, texts, (table, column), clipped)
    if table in _DIGESTED:
        columns["digest"] = _digests(columns[_DIGESTED[table]])


def _without_last_word(head: str) -> str:
    limit = _CLIPPED["rejects", "head"]
    if head.endswith(("}", "]")) or _GAP.search(head, limit):  # closed, or the last word will be clipped anyway
        return head
    start = max((gap.end() for gap in _GAP.finditer(head, 0, limit)), default=0)
    return head if start == len(head) else f"{head[:start]}{''.join(_REDACTED.findall(head, start))}…"


def _clipped_results(columns: Columns) -> dict[int, str]:
    """Results over the cap keep head and tail; the flag says so, ``result_bytes`` is the whole size."""
    clipped: dict[int, str] = {}
    for row, text in enumerate(columns["result_text"]):
        if text is not None and len(text) > RESULT_CAP_BYTES // 4:
            raw = text.encode()
            if len(raw) > RESULT_CAP_BYTES:
                half = RESULT_CAP_BYTES // 2
                head, tail = raw[:half].decode(errors="ignore"), raw[-half:].decode(errors="ignore")
                clipped[row] = f"{head}\n[… {len(raw) - 2 * half} bytes left out …]\n{tail}"
                columns["result_truncated"][row] = True
    return clipped


def _arrow(name: str, rows: Taken, texts: Texts) -> pa.Table:
    """The Arrow table of a table's rows, which are let go of on the way."""
    schema, columns = arrow_schema(name), rows.columns
    ready: dict[str, pa.Array] = places(name, rows) if "slot" in columns else {}
    for field in schema:
        if field.name not in ready:
            values = columns.pop(field.name)
            ready[field.name] = array(texts.pop((name, field.name), values), field.type)
    return pa.table({field.name: ready[field.name] for field in schema})
