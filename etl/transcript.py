"""How does one session read as text?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from etl.errors import UsageError
from etl.sqlfiles import load_sql
from etl.store import connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb


def read_session(db: str, wanted: str) -> Iterator[str]:
    """The lines of one session: what it is, then dialogue and calls in order. ``wanted`` is a session key, a native id,
    or the beginning of one. Raises UsageError when none or several fit.
    """
    connection = connect(db)
    try:
        session = _find(connection, wanted)
        yield from _head(connection, session)
        yield from _body(connection, session)
    finally:
        connection.close()


def _statement(name: str) -> str:
    return next(item.sql for item in load_sql("reports") if item.name == f"session.{name}")


def _find(connection: duckdb.DuckDBPyConnection, wanted: str) -> str:
    found = [row[0] for row in connection.execute(_statement("find"), {"wanted": wanted}).fetchall()]
    if not found:
        raise UsageError(f"no session key begins with {wanted!r}")
    exact = [name for name in found if name == wanted or name.partition(":")[2] == wanted]
    if len(exact) == 1:
        return str(exact[0])
    if len(found) > 1:
        raise UsageError(f"several sessions begin with {wanted!r}: {', '.join(found)}")
    return str(found[0])


def _head(connection: duckdb.DuckDBPyConnection, session: str) -> Iterator[str]:
    cursor = connection.execute(_statement("head"), {"session": session})
    names = [column[0] for column in cursor.description or ()]
    row: tuple[Any, ...] = cursor.fetchone() or ()
    for name, value in zip(names, row, strict=True):
        if value is not None:
            yield f"{name.replace('_', ' '):<18} {_one_line(value)}\n"


def _body(connection: duckdb.DuckDBPyConnection, session: str) -> Iterator[str]:
    turn = None
    for _, turn_no, ts, what, label, body in connection.execute(_statement("lines"), {"session": session}).fetchall():
        if turn_no != turn:
            turn = turn_no
            yield f"\n--- turn {turn_no}\n"
        at = f"{ts:%H:%M:%S}" if ts is not None else "--:--:--"
        if what == "call":
            yield f"\n{at} [{_one_line(label)}] {_one_line(body)}\n"
        else:
            yield f"\n{at} {label}\n{_printable(body)}\n"


def _one_line(value: Any) -> str:
    return " ".join(_printable(str(value)).split())


def _printable(text: str) -> str:
    """Text without control characters: a terminal must not be driven by what a session says."""
    return "".join(char if char in "\n\t" or char.isprintable() else "\ufffd" for char in text)
