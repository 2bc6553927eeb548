"""Which reports are there, which parameters do they take, and what do they say of a store?

A report is the parts of one name in ``sql/reports``, in the order of their file: ``NAME.heading`` is its first line,
parts with a title are its tables for people (``-``: a table without one), ``NAME.rows`` is its one table for machines
(else its first table). What stands there without a heading is no report, but what another command asks. Parameters are
typed in the headers; a report takes those that its parts take.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from etl.errors import UsageError
from etl.sqlfiles import load_sql
from etl.store import connect
from etl.when import instant_of, written

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    import duckdb
    import pyarrow as pa

    from etl.sqlfiles import SqlObject

_HEADING: Final = "heading"
_ROWS: Final = "rows"
_UNTITLED: Final = "-"
_CLOCK: Final = "tz"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a report: its SQL type (text, integer or timestamptz) and its default, None for none."""

    name: str
    kind: str
    default: str | None


@dataclass(frozen=True, slots=True)
class Definition:
    """A report as its file has it: name, what it is about, parameters by name, and its parts by name."""

    name: str
    about: str
    parameters: dict[str, Parameter]
    parts: dict[str, SqlObject]

    @property
    def titled(self) -> dict[str, str]:
        """The parts that people read, by name, with their titles (empty: none)."""
        stated = {name: part.options.get("title") for name, part in self.parts.items()}
        return {name: "" if title == _UNTITLED else title for name, title in stated.items() if title is not None}

    @property
    def machine_part(self) -> str:
        """The part that is the report for machines."""
        return _ROWS if _ROWS in self.parts else next(iter(self.titled))


@dataclass(frozen=True, slots=True)
class Part:
    """One table of a report: its name, its title (empty: none), its rows, the columns that may be drawn as bars, and
    the sentence about it.
    """

    name: str
    title: str
    table: pa.Table
    bars: tuple[str, ...] = ()
    about: str = ""


@dataclass(frozen=True, slots=True)
class Filter:
    """A parameter that a report was made with, as a person reads it: None where it leaves nothing out."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Report:
    """What a report says: its heading and its tables in order. ``about`` is the sentence that describes it, ``filters``
    what it was made with.
    """

    name: str
    about: str
    heading: str
    parts: tuple[Part, ...]
    filters: tuple[Filter, ...] = ()


def definitions() -> dict[str, Definition]:
    """Every report, by name."""
    grouped: dict[str, dict[str, SqlObject]] = {}
    for item in load_sql("reports"):
        name, _, part = item.name.partition(".")
        grouped.setdefault(name, {})[part] = item
    return {
        name: Definition(name, parts[_HEADING].about, _parameters(parts), parts)
        for name, parts in sorted(grouped.items())
        if _HEADING in parts
    }


def definition(name: str) -> Definition:
    """The report of a name. Raises UsageError, with the nearest name."""
    known = definitions()
    if name not in known:
        raise UsageError(_unknown("report", name, known))
    return known[name]


def run_report(db: str, name: str, now: datetime, part: str | None = None, **stated: str | int | None) -> Report:
    """What a report says of a store: all that people read, or one part. Parameters are given as a person writes them;
    ``now`` is what ``7d`` counts from.

    Raises UsageError for an unknown report, part, parameter, time zone or Bridge batch, StoreMissing and its kin.
    """
    found = definition(name)
    shown = list(found.titled) if part is None else [_known_part(found, part)]
    with connect(db) as connection:
        values = _values(connection, found, stated, now)
        (heading,) = _table(connection, found.parts[_HEADING], values).to_pylist()
        parts = tuple(
            Part(each, found.titled.get(each, ""), _table(connection, item, values), _bars(item), item.about)
            for each, item in ((each, found.parts[each]) for each in shown)
        )
    return Report(name, found.about, heading["heading"], parts, _filters(found, stated, values))


def report_rows(db: str, name: str, now: datetime, part: str | None = None, **stated: str | int | None) -> pa.Table:
    """One part of a report as a table, without one the whole report as its table for machines. Raises as
    :func:`run_report` does.
    """
    found = definition(name)
    chosen = found.machine_part if part is None else _known_part(found, part)
    with connect(db) as connection:
        return _table(connection, found.parts[chosen], _values(connection, found, stated, now))


def _known_part(found: Definition, part: str) -> str:
    if part not in found.parts:
        raise UsageError(_unknown(f"part of the report {found.name}", part, [*found.titled, _ROWS]))
    return part


def _filters(
    found: Definition, stated: Mapping[str, str | int | None], values: Mapping[str, Any]
) -> tuple[Filter, ...]:
    """Every parameter with its value in words; beside a span's ends as they were written, the instants they were."""
    zone = str(stated.get(_CLOCK) or "UTC")
    told = []
    for name, taken in found.parameters.items():
        value = values[name]
        if taken.kind == "timestamptz" and stated.get(name) is not None:
            value = f"{stated[name]} ({written(value, zone)})"
        told.append(Filter(name, None if value is None else str(value)))
    return tuple(told)


def _parameters(parts: Mapping[str, SqlObject]) -> dict[str, Parameter]:
    return {taken.name: taken for part in parts.values() for taken in taken_by(part)}


def taken_by(part: SqlObject) -> list[Parameter]:
    """The parameters of one statement, as its header types them: ``name type [default]``, separated by commas."""
    stated = [words.split() for words in part.options.get("params", "").split(",") if words.strip()]
    return [Parameter(words[0], words[1], words[2] if len(words) > 2 else None) for words in stated]


def _values(
    connection: duckdb.DuckDBPyConnection, found: Definition, stated: Mapping[str, str | int | None], now: datetime
) -> dict[str, Any]:
    """The parameters' values: what was stated, else the defaults. Raises UsageError for what makes no sense."""
    for name in stated:
        if name not in found.parameters and name != _CLOCK:  # where no time is shown the clock changes nothing
            raise UsageError(_unknown(f"parameter of the report {found.name}", name, found.parameters))
    zone = _zone(connection, stated.get(_CLOCK))
    values: dict[str, Any] = {}
    for name, taken in found.parameters.items():
        given = stated.get(name)
        values[name] = taken.default if given is None else given
        if taken.kind == "integer" and values[name] is not None:
            values[name] = _count(name, values[name])
        elif taken.kind == "timestamptz" and given is not None:
            values[name] = instant_of(str(given), now, zone, is_end=name == "until")
    if values.get("batch") is not None:
        _known_batch(connection, values["batch"])
    return values | ({_CLOCK: zone} if _CLOCK in values else {})


def _count(name: str, given: Any) -> int:
    try:
        number = int(given)
    except ValueError:
        number = 0
    if not 1 <= number <= 1 << 31:
        raise UsageError(f"{name} is a number from 1, not {given!r}")
    return number


def _zone(connection: duckdb.DuckDBPyConnection, stated: str | int | None) -> str:
    if stated is None:
        return "UTC"
    known = [row[0] for row in connection.execute("select name from pg_timezone_names()").fetchall()]
    if stated not in known:
        raise UsageError(_unknown("time zone", str(stated), known))
    return str(stated)


def _known_batch(connection: duckdb.DuckDBPyConnection, batch: str) -> None:
    known = connection.execute("select batch_id from main.bridge_batches order by batch_id").fetchall()
    if (batch,) not in known:
        there = ", ".join(name for (name,) in known) or "none"
        raise UsageError(f"there is no Bridge batch {batch!r}; there are: {there}")


def _table(connection: duckdb.DuckDBPyConnection, part: SqlObject, values: Mapping[str, Any]) -> pa.Table:
    taken = {parameter.name: values[parameter.name] for parameter in taken_by(part)}
    return connection.sql(part.sql.strip().rstrip(";"), params=taken or None).to_arrow_table()


def _bars(part: SqlObject) -> tuple[str, ...]:
    return tuple(name.strip() for name in part.options.get("bars", "").split(",") if name.strip())


def _unknown(what: str, name: str, known: Any) -> str:
    near = get_close_matches(name, list(known), 1)
    listed = list(known)
    there = f"there are: {', '.join(listed)}" if len(listed) <= 20 else "none is like it"
    return f"there is no {what} {name!r}; " + (f"did you mean {near[0]}?" if near else there)
