"""How does one session read as text?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from etl.lookup import find_session
from etl.sqlfiles import report_statement
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
        session = find_session(connection, wanted)
        yield from _head(connection, session)
        yield from _body(connection, session)
    finally:
        connection.close()


def _head(connection: duckdb.DuckDBPyConnection, session: str) -> Iterator[str]:
    cursor = connection.execute(report_statement("session.head"), {"session": session})
    names = [column[0] for column in cursor.description or ()]
    row: tuple[Any, ...] = cursor.fetchone() or ()
    for name, value in zip(names, row, strict=True):
        if value is not None:
            yield f"{name.replace('_', ' '):<18} {_one_line(value)}\n"


def _body(connection: duckdb.DuckDBPyConnection, session: str) -> Iterator[str]:
    turn = None
    for _, turn_no, ts, what, label, body in connection.execute(
        report_statement("session.lines"), {"session": session}
    ).fetchall():
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
