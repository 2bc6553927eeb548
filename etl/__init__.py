"""What does ``import etl`` offer?

Nothing but the version until it is asked for more: the package root imports no engine, so that ``sessionmart --help``
and a worker that only parses start at once. What is offered here is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

__version__: str


def connect(db: str | None = None) -> duckdb.DuckDBPyConnection:
    """A read-only DuckDB connection to the store (``SESSIONMART_DB``, else the user's data folder).

    It sees the store as it is now, also when a load replaced the file while another connection is open. Raises
    ``etl.errors.StoreMissing`` and its kin.
    """
    import os
    from importlib import import_module

    path: str = import_module("etl.config").store_path(db, os.environ)
    connection: duckdb.DuckDBPyConnection = import_module("etl.store").connect(path)
    return connection


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("sessionmart")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
