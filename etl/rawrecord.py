"""Where on this machine is the file of a source, and what does its record at a place say?

The store keeps relative paths only and the ledger none: files are found again as a load finds them, by source id. What
is given is masked: a raw record may hold what the store must not.
"""

from __future__ import annotations

import tempfile
from itertools import islice
from typing import TYPE_CHECKING, Final

from etl import providers
from etl.decode import decode_line
from etl.discover import discover
from etl.filebytes import open_regular, readable, take
from etl.jsonl import LINE_CAP
from etl.mask import mask_text
from etl.reading import messages_of
from etl.shape import canonical
from etl.sqlitedb import SqliteReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from etl.discover import Found
    from etl.providers.base import Environment

#: A longer record is cut, once masked.
_SHOWN: Final = 4_000


def find_sources(
    wanted: Iterable[tuple[str, str, str]], environment: Environment, named: Mapping[str, Sequence[str]]
) -> dict[str, Found]:
    """The files of sources, by source id. ``wanted`` are (source id, provider, host): a copied home has another host's
    name. What is not there any more is not in the result.
    """
    found: dict[str, Found] = {}
    asked = {(provider, host) for _, provider, host in wanted}
    ids = {source_id for source_id, _, _ in wanted}
    for provider, host in sorted(asked):
        listed = discover(providers.get(provider), environment, host, named.get(provider, ()))
        found |= {item.source.source_id: item for item in listed.found if item.source.source_id in ids}
    return found


def raw_record(item: Found, line_no: int, child: int, key: bytes) -> str | None:
    """The record of a source at a line (for databases the rank of the row), masked; None when it is not there."""
    if item.problem is not None or item.source.claim.container == "opaque":
        return None
    try:
        text = _row(item, line_no) if item.source.claim.container == "sqlite" else _text(item, line_no, child)
    except OSError:
        return None
    if text is None:
        return None
    masked = mask_text(text, key)
    return masked if len(masked) <= _SHOWN else masked[: _SHOWN - 1] + "…"


def _row(item: Found, rank: int) -> str | None:
    with tempfile.TemporaryDirectory() as scratch:
        reader = SqliteReader(item.path, providers.get(item.source.provider).tables, scratch)
        return next((canonical(record.value) for record in reader if record.line_no == rank), None)


def _text(item: Found, line_no: int, child: int) -> str | None:
    with open_regular(item.path) as stream:
        if item.source.claim.container in ("json", "messages", "text"):
            raw = take(stream, LINE_CAP)[0]
            document = decode_line(raw)[0] if child else None
            if child and document is not None:
                return next((canonical(r.value) for r in messages_of(document) if r.child == child), None)
            return readable(raw)
        line: bytes | None = next(islice(stream, line_no - 1, line_no), None)
    return None if line is None else readable(line.rstrip(b"\r\n"))
