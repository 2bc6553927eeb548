"""Which session does somebody mean who types a key, a native id, or the beginning of one?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from etl.errors import UsageError
from etl.sqlfiles import report_statement

if TYPE_CHECKING:
    import duckdb


def find_session(connection: duckdb.DuckDBPyConnection, wanted: str) -> str:
    """The key of the one session that is, or begins with, what was asked for. Raises UsageError when none or several
    fit.
    """
    found = [row[0] for row in connection.execute(report_statement("session.find"), {"wanted": wanted}).fetchall()]
    if not found:
        raise UsageError(f"no session key begins with {wanted!r}")
    exact = [name for name in found if name == wanted or name.partition(":")[2] == wanted]
    if len(exact) == 1:
        return str(exact[0])
    if len(found) > 1:
        raise UsageError(f"several sessions begin with {wanted!r}: {', '.join(found)}")
    return str(found[0])
