"""Which rows of which view leave a store, in which order and by which folders?

The public views (``DEFAULT``) have a statement each in ``sql/exports``; any other view of the store leaves as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Self

import duckdb

from etl.errors import QueryError, StoreError, UsageError
from etl.lookup import find_session
from etl.sqlfiles import load_sql
from etl.store import connect, quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import date
    from types import TracebackType

    import pyarrow as pa

    from etl.sqlfiles import SqlObject

#: The views that are exported unless others are named. Their columns and types are a promise (docs/exports.md).
DEFAULT: Final = (
    *("sessions", "turns", "dialogue", "tool_calls", "tool_latency", "model_calls", "files_touched", "events"),
    *("session_links", "copies", "sources", "rejects", "record_census"),
)
#: The column that only folders need: the month of a session's start.
MONTH: Final = "month"
#: Rows that are taken out of the engine at a time, and those of views that hold whole texts: a result may be 256 KiB.
_ROWS: Final = 8192
_WIDE_ROWS: Final = 512
_WIDE: Final = frozenset({"dialogue", "tool_calls", "last_turn", "orphan_results"})
#: What the engine keeps in memory, beyond which it sorts on disk, and the text of the sessions that it sorts at a time.
_MEMORY: Final = "512MB"
#: The same for a view that is taken out whole: it may hold rows of no session.
_MORE_MEMORY: Final = "2GB"
_CHUNK_BYTES: Final = 32_000_000


@dataclass(frozen=True, slots=True)
class Selection:
    """The sessions that are exported: of which providers (none: all), begun from ``since`` to ``until``, both included,
    in UTC. Days say nothing of files: sources, rejects and record_census are chosen by provider alone. ``sessions`` are
    keys, native ids or beginnings of one: only these and their sub-agents.
    """

    providers: tuple[str, ...] = ()
    since: date | None = None
    until: date | None = None
    sessions: tuple[str, ...] = ()

    @property
    def is_dated(self) -> bool:
        """Are days asked for?"""
        return self.since is not None or self.until is not None

    def as_dict(self) -> dict[str, Any]:
        """The selection as plain values, for JSON."""
        days = {"since": self.since, "until": self.until}
        return {
            "providers": sorted(set(self.providers)),
            "sessions": sorted(set(self.sessions)),
            **{name: None if day is None else day.isoformat() for name, day in days.items()},
        }


@cache
def _statements() -> dict[str, SqlObject]:
    return {item.name.removeprefix("export."): item for item in load_sql("exports")}


class Views:
    """The views of a store, over a selection. Use as a context manager. ``spill`` is a folder for what does not fit in
    memory. Raises UsageError for a provider that neither the store nor sessionmart knows, StoreMissing and its kin,
    QueryError where the engine fails (memory, disk).
    """

    def __init__(self, db: str, selection: Selection, spill: str) -> None:
        self.connection = connect(db)
        self.selection = selection
        try:
            self._ready(spill)
        except BaseException as error:
            self._end(error)
            raise

    def _ready(self, spill: str) -> None:
        run = self.connection.execute
        run(f"set memory_limit = '{_MEMORY}'")
        run(f"set temp_directory = {quoted(spill)}")
        asked = self.selection
        chosen = list(asked.providers)
        _refuse_unknown("provider", chosen, [*_known_providers(), *self._column("providers")])
        family = [find_session(self.connection, word) for word in asked.sessions]
        run(_text("asked"), {"providers": chosen, "sessions": family})
        run(_text("chosen"), {"since": asked.since, "until": asked.until, "chunk_bytes": _CHUNK_BYTES})
        run(_text("read"), {"providers": chosen})
        self.names: tuple[str, ...] = tuple(self._column("views"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(error)

    def _end(self, error: BaseException | None) -> None:
        self.connection.close()
        if isinstance(error, (duckdb.OutOfMemoryException, duckdb.IOException)):
            raise QueryError(f"the engine could not give the rows: {error}") from error

    def _column(self, name: str) -> list[Any]:
        return [row[0] for row in self.connection.execute(_text(name)).fetchall()]

    def named(self, wanted: Sequence[str]) -> tuple[str, ...]:
        """The views of these names in this order, once each; ``DEFAULT`` for none. Raises UsageError for one that is
        not there, StoreError where an older store lacks one of the default.
        """
        if not wanted:
            missing = [name for name in DEFAULT if name not in self.names]
            if missing:
                raise StoreError(
                    f"the store has no view {missing[0]}: it is older; `sessionmart load` brings it up to date"
                )
            return DEFAULT
        _refuse_unknown("view", wanted, self.names)
        return tuple(dict.fromkeys(wanted))

    def sessions(self) -> int:
        """How many sessions are chosen."""
        return int(self._column("chosen_sessions")[0])

    def undated(self) -> int:
        """How many sessions are left out only because nobody knows when they began."""
        return int(self._column("undated")[0]) if self.selection.is_dated else 0

    def partition(self, view: str) -> tuple[str, ...]:
        """The columns of a view that become folders, outermost first."""
        own = _statements().get(view) if view in DEFAULT else None
        listed = own.options.get("partition", "") if own else ""
        return tuple(word.strip() for word in listed.split(",") if word.strip())

    def rows(self, view: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The columns and rows of a view, some sessions at a time in the order of provider, month and session, in each
        by the view's key. The column ``month`` is at the end where that is a folder.
        """
        size = _WIDE_ROWS if view in _WIDE else _ROWS
        asked = list(self._asked(view))
        name, params = asked[0]
        schema = self.connection.sql(_text(name), params=params).limit(0).to_arrow_reader().schema
        return schema, (
            batch
            for name, params in asked
            for batch in self.connection.sql(_text(name), params=params).to_arrow_reader(size)
            if batch.num_rows
        )

    def _asked(self, view: str) -> Iterator[tuple[str, dict[str, Any] | None]]:
        """The statements, with their parameters, whose rows are those of a view."""
        if view in DEFAULT:
            statement, params, is_of_sessions = view, {}, "$chunk" in _text(view)
        else:
            statement, params = self._any(view), {"view": f"main.{view}"}
            is_of_sessions = statement == "any_of_sessions"
        if not is_of_sessions:
            yield statement, params or None
            return
        for chunk in self.chunks() or [{"chunk": 0, "low": "", "high": ""}]:
            yield statement, {**params, **chunk}

    def chunks(self) -> list[dict[str, Any]]:
        """The parameters by which a statement gives some sessions at a time."""
        return self.fetch("chunks", {})

    def make(self, statement: str) -> None:
        """Runs a statement that makes a temporary table."""
        self.connection.execute(_text(statement))

    def fetch(self, statement: str, params: dict[str, Any]) -> list[dict[str, Any]]:
        """The rows of a statement, all at once."""
        return list(self.stream(statement, params))

    def stream(self, statement: str, params: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The rows of a statement, with whole texts among them."""
        for batch in self.connection.sql(_text(statement), params=params or None).to_arrow_reader(_WIDE_ROWS):
            yield from batch.to_pylist()

    def _any(self, view: str) -> str:
        if not self.selection.providers and not self.selection.is_dated:
            self.connection.execute(f"set memory_limit = '{_MORE_MEMORY}'")
            return "any"
        columns = self.connection.sql(_text("any"), params={"view": f"main.{view}"}).columns
        if "session_id" in columns:
            return "any_of_sessions"
        if "source_id" in columns:
            return "any_of_sources"
        raise UsageError(f"the view {view} tells of no session and no file: it can only be exported whole")


def exported_rows(views: Views, view: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The rows of a view with the columns it has, for one stream."""
    views.connection.execute("set arrow_lossless_conversion = true")
    schema, batches = views.rows(view)
    if MONTH in views.partition(view):
        schema = schema.remove(schema.get_field_index(MONTH))
    return schema, (batch.select(schema.names) for batch in batches)


def _text(name: str) -> str:
    return _statements()[name].sql.rstrip().rstrip(";")


def _known_providers() -> tuple[str, ...]:
    from etl import providers  # noqa: PLC0415 - the list of adapters, which a store may hold more than

    return tuple(providers.names())


def _refuse_unknown(what: str, wanted: Sequence[str], known: Sequence[str]) -> None:
    for name in wanted:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(sorted(set(known)))}"
            raise UsageError(f"there is no {what} {name!r}; {hint}")
