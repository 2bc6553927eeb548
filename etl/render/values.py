"""How is each value of an Arrow column written as text, exactly?

Columns are converted as a whole: the type is looked at once per column and batch, never per cell.
"""

from __future__ import annotations

import uuid
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import orjson

from etl.render import temporal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

Texts = list[str | None]

_BATCH_ROWS = 8192
_BATCH_BYTES = 4_000_000


def batches(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """The table in slices of about 4 MB: rows with whole tool results do not become text all at once."""
    rows = _BATCH_BYTES * table.num_rows // max(table.nbytes, 1)
    for batch in table.to_batches(max_chunksize=max(1, min(_BATCH_ROWS, rows))):
        if batch.num_rows:
            yield batch


def column_names(table: pa.Table) -> list[str]:
    """The columns' names, a repeated one with the first free suffix (``a, a_1``): an object would lose a value."""
    given: list[str] = table.schema.names
    taken, names = set(given), list[str]()
    seen: set[str] = set()
    for name in given:
        unique, count = name, 0
        while unique in seen or (count and unique in taken):
            count += 1
            unique = f"{name}_{count}"
        seen.add(unique)
        names.append(unique)
    return names


def is_number(kind: pa.DataType) -> bool:
    """Is a value of this type one number?"""
    from pyarrow import types

    if opaque_name(kind) in _OPAQUE_INTEGERS:
        return True
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def texts(array: pa.Array) -> Texts:
    """Every value as plain text: strings as they are, nested ones as JSON, ``None`` for NULL and non-finite numbers."""
    array = stored(array)
    bare = _bare_writer(array.type)
    if bare is None:
        return _text_writer(array.type)(array)
    return [None if literal == "null" else literal for literal in bare(array)]


def literals(array: pa.Array) -> list[str]:
    """Every value as one JSON literal, ``null`` for NULL and non-finite numbers.

    No decimal and no wide integer passes through a float.
    """
    array = stored(array)
    bare = _bare_writer(array.type)
    return dumped(_text_writer(array.type)(array)) if bare is None else bare(array)


def dumped(values: Sequence[object]) -> list[str]:
    """JSON of each scalar by one call: indented, every element has its own line, and no JSON string holds a newline."""
    if not values:
        return []
    return orjson.dumps(values, option=orjson.OPT_INDENT_2).decode()[4:-2].split(",\n  ")


def stored(array: pa.Array) -> pa.Array:
    """The array without wrappings that say nothing about its text: ENUM's dictionary, extensions of a plain storage."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        return stored(array.dictionary_decode())
    extension = getattr(array.type, "extension_name", "")
    if extension == "arrow.bool8":
        return array.storage.cast(pa.bool_())
    return array if extension in ("", "arrow.uuid", "arrow.opaque") else stored(array.storage)


def opaque_name(kind: pa.DataType) -> str:
    """DuckDB's name of a type that Arrow does not have (``SET arrow_lossless_conversion = true``), else nothing."""
    return str(kind.type_name) if getattr(kind, "extension_name", "") == "arrow.opaque" else ""


def _bare_writer(kind: pa.DataType) -> Callable[[pa.Array], list[str]] | None:
    """What writes a type whose JSON is not a string: numbers, booleans, NULL and nested values."""
    from pyarrow import types

    if types.is_null(kind) or types.is_boolean(kind) or types.is_integer(kind) or types.is_float64(kind):
        return lambda array: dumped(array.to_pylist())
    if types.is_floating(kind):
        return _short_floats
    if types.is_decimal(kind):
        return _decimals
    if opaque_name(kind) in _OPAQUE_INTEGERS:
        write = _OPAQUE[opaque_name(kind)]
        return lambda array: ["null" if raw is None else write(raw) for raw in array.storage.to_pylist()]
    return _nested_writer(kind)


def _nested_writer(kind: pa.DataType) -> Callable[[pa.Array], list[str]] | None:
    from pyarrow import types

    if types.is_struct(kind):
        return _structs
    if types.is_map(kind):
        return _maps
    if types.is_fixed_size_list(kind):
        return _fixed_size_lists
    if any(
        is_list(kind) for is_list in (types.is_list, types.is_large_list, types.is_list_view, types.is_large_list_view)
    ):
        return _lists
    return _unions if types.is_union(kind) and kind.mode == "sparse" else None


def _text_writer(kind: pa.DataType) -> Callable[[pa.Array], Texts]:
    """What writes a type whose JSON is a string."""
    from pyarrow import types

    if types.is_temporal(kind):
        return _temporal_writer(kind)
    if getattr(kind, "extension_name", "") == "arrow.uuid":
        return lambda array: _each(array.storage, lambda raw: str(uuid.UUID(bytes=raw)))
    if name := opaque_name(kind):
        return lambda array: _each(array.storage, _OPAQUE.get(name, bytes.hex))
    if any(is_bytes(kind) for is_bytes in _bytes_predicates()):
        return lambda array: _each(array, bytes.hex)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return _strings
    return lambda array: _each(array, str)


def _bytes_predicates() -> Sequence[Callable[[pa.DataType], bool]]:
    from pyarrow import types

    return types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary


def _temporal_writer(kind: pa.DataType) -> Callable[[pa.Array], Texts]:
    from pyarrow import types

    if types.is_timestamp(kind):
        return temporal.timestamps
    if types.is_date(kind):
        return temporal.dates
    if types.is_time(kind):
        return temporal.times
    return lambda array: _each(array, temporal.interval if types.is_interval(kind) else str)


def _each(array: pa.Array, write: Callable[[Any], str]) -> Texts:
    return [None if value is None else write(value) for value in array.to_pylist()]


def _strings(array: pa.Array) -> Texts:
    values: Texts = array.to_pylist()
    return values


def _short_floats(array: pa.Array) -> list[str]:
    # Widened to a double, 1.1 would become 1.100000023841858; Arrow writes the shortest text of the same float.
    return dumped([None if text is None else float(text) for text in array.cast("float").cast("string").to_pylist()])


def _decimals(array: pa.Array) -> list[str]:
    # Arrow turns to exponents below 1e-6, which some readers of decimals do not take.
    written = array.cast("string").to_pylist()
    return ["null" if text is None else format(Decimal(text), "f") if "E" in text else text for text in written]


def _structs(array: pa.Array) -> list[str]:
    template = object_template([field.name for field in array.type])
    rows = zip(*map(literals, array.flatten()), strict=True)
    return ["null" if null else template % row for row, null in zip(rows, array.is_null().to_pylist(), strict=True)]


def object_template(names: Sequence[str]) -> str:
    """A ``%`` template of one JSON object with these keys, to be filled with literals."""
    return "{" + ",".join(f"{key.replace('%', '%%')}:%s" for key in dumped(names)) + "}"


def _lists(array: pa.Array) -> list[str]:
    spans = _spans(array)
    return _bracketed(spans, literals(_used(spans, array.values)), "[]")


def _fixed_size_lists(array: pa.Array) -> list[str]:
    import pyarrow as pa

    return _lists(array.cast(pa.large_list(array.type.value_field)))


def _maps(array: pa.Array) -> list[str]:
    # DuckDB refuses a repeated or NULL key, and equal texts mean equal keys.
    spans = _spans(array)
    keys = dumped(texts(_used(spans, array.keys)))
    items = literals(_used(spans, array.items))
    return _bracketed(spans, [f"{key}:{item}" for key, item in zip(keys, items, strict=True)], "{}")


def _spans(array: pa.Array) -> list[tuple[int, int] | None]:
    """Where each row's elements stand in the child, which is the whole column's even when the array is a slice."""
    offsets = array.offsets.to_pylist()
    if hasattr(array, "sizes"):  # a list view; Arrow's cast to a list loses rows of what DuckDB hands over
        pairs = [(start, start + size) for start, size in zip(offsets, array.sizes.to_pylist(), strict=True)]
    else:
        pairs = list(pairwise(offsets))
    return [None if null else pair for pair, null in zip(pairs, array.is_null().to_pylist(), strict=True)]


def _used(spans: list[tuple[int, int] | None], child: pa.Array) -> pa.Array:
    """The part of the child that some row uses."""
    first = _first(spans)
    return child.slice(first, max((span[1] for span in spans if span), default=first) - first)


def _first(spans: list[tuple[int, int] | None]) -> int:
    return min((span[0] for span in spans if span), default=0)


def _bracketed(spans: list[tuple[int, int] | None], elements: list[str], brackets: str) -> list[str]:
    first, left, right = _first(spans), brackets[0], brackets[1]
    return [left + ",".join(elements[span[0] - first : span[1] - first]) + right if span else "null" for span in spans]


def _unions(array: pa.Array) -> list[str]:
    members = {code: literals(array.field(place)) for place, code in enumerate(array.type.type_codes)}
    return [members[code][row] for row, code in enumerate(array.type_codes.to_pylist())]


def _bignum(raw: bytes) -> str:
    """DuckDB's BIGNUM: three bytes of header, top bit set unless negative, then the magnitude; inverted if negative."""
    negative = not raw[0] & 0x80
    magnitude = int.from_bytes(bytes(byte ^ 0xFF for byte in raw[3:]) if negative else raw[3:], "big")
    # Through Decimal, because str() of an int refuses more than 4300 digits.
    return format(Decimal(-magnitude if negative else magnitude), "f")


def _bits(raw: bytes) -> str:
    """DuckDB's BIT: one byte that counts the padding bits, then padding and bits."""
    return "".join(f"{byte:08b}" for byte in raw[1:])[raw[0] :]


_OPAQUE: dict[str, Callable[[bytes], str]] = {
    "hugeint": lambda raw: str(int.from_bytes(raw, "little", signed=True)),
    "uhugeint": lambda raw: str(int.from_bytes(raw, "little")),
    "bignum": _bignum,
    "time_tz": temporal.time_tz,
    "bit": _bits,
}
_OPAQUE_INTEGERS = frozenset({"hugeint", "uhugeint", "bignum"})
