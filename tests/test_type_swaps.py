"""Does any field of another type than its log gives it make an adapter throw, or lose the record?

Each field of each kind of record in ``fixtures/<provider>/*/tree`` is given one value of every JSON type in turn, and
the adapter reads all those records in one go, the true record after its variants.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson
import pytest

from etl.assemble.fold import Fold
from etl.discover import discover
from etl.finish import finish
from etl.jsonl import Record
from etl.providers import get
from etl.providers.base import Environment
from etl.tables import Buffers
from tests.loading import FIXTURES, HOST, KEY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from etl.discover import Found

#: One of each JSON type. A list and an object are no members of a set of names: looking them up there raises.
ODD: Final[tuple[Any, ...]] = ([["x"]], {"x": {}}, None, True, -7, 1e300, "x")
#: Fields whose texts name kinds of records and of what they hold.
NAMING: Final = frozenset({"type", "label", "kind", "subtype", "event", "status"})
PROVIDERS: Final = ("claude_code", "codex", "muse", "qoder", "qoder_bridge")


def _places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for key in value:
            yield from _places(value[key], (*path, key))
    elif isinstance(value, list):
        for n in range(min(len(value), 2)):
            yield from _places(value[n], (*path, n))


def _swapped(value: dict[str, Any], path: tuple[str | int, ...], odd: Any) -> dict[str, Any]:
    changed: Any = copy.deepcopy(value)
    at = changed
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = odd
    return changed  # type: ignore[no-any-return]


def _shape(value: Any) -> Any:
    """What makes two records the same kind: their fields, and the texts that name types."""
    if isinstance(value, dict):
        return tuple(
            (key, inner if key in NAMING and isinstance(inner, str) else _shape(inner))
            for key, inner in sorted(value.items())
        )
    if isinstance(value, list):
        return tuple(_shape(inner) for inner in value[:2])
    return type(value).__name__


def _variants(path: str, seen: set[Any]) -> Iterator[dict[str, Any]]:
    """The records of a file, each after its variants; of every kind of record only the first has any."""
    for line in Path(path).read_bytes().split(b"\n"):
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if not isinstance(value, dict):
            continue
        shape = _shape(value)
        if shape not in seen and len(line) < 20_000:
            seen.add(shape)
            yield from (_swapped(value, place, odd) for place in _places(value) for odd in ODD)
        yield value


def _read(found: Found, values: list[dict[str, Any]]) -> int:
    """How many lines an adapter and the fold account for (a line that is a frame holds several records)."""
    provider, buffers = get(found.source.provider), Buffers()
    buffers.begin(found.source.source_id)
    fold = Fold(found.source, buffers, provider.inventory, lambda _offset, _length: None)

    def feed() -> Iterator[Record]:
        for number, value in enumerate(values, 1):
            raw = orjson.dumps(value)
            record = Record(number, 0, 0, len(raw), raw, value)
            fold.begin(record)
            yield record

    native = provider.native_session(found.source, [])
    for event in provider.adapt(found.source, found.source.session_id(native) if native else "", feed()):
        fold.take(event)
    fold.end()
    fold.census.write(buffers, found.source.source_id)
    census = dict(finish(buffers, KEY))["record_census"].to_pylist()
    return sum(row["n"] for row in census if row["unit"] == "line")


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_field_of_another_type_is_a_row_and_no_exception(name: str) -> None:
    seen: set[Any] = set()
    read = 0
    for case in sorted((FIXTURES / name).iterdir()):
        roots = {name: (str(case / "tree"),)} if name == "qoder_bridge" else {}
        for found in discover(get(name), Environment(str(case / "tree")), HOST, *roots.values()).found:
            if found.source.claim.container != "jsonl":
                continue
            values = list(_variants(found.path, seen))
            if not values:
                continue
            assert _read(found, values) == len(values), found.source.rel_path
            read += len(values)
    assert read > 1_000
