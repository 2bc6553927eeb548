"""Which failures does sessionmart name, and which exit code does each mean?

The whole tree::

    SessionmartError            exit 1   a fault of ours, nothing was published
    |-- UsageError              exit 2   a wrong word on the command line or in the configuration
    |-- StoreError              exit 3   the store cannot be used
    |   |-- StoreMissing        exit 3   there is no store at that path
    |   |-- StoreBusy           exit 3   another load holds the lock
    |   |-- StoreTooNew         exit 3   written by a newer sessionmart
    |   `-- NotAStore           exit 3   the file is not a sessionmart store
    |-- QueryError              exit 2   a query the engine refused
    `-- BrokenPromise           exit 1   a check of severity ``broken`` that names no source

Data never raises: a bad line is a row of ``facts.rejects``, a bad file a row of ``facts.sources``.
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_BUG = 1
EXIT_USAGE = 2
EXIT_STORE = 3
EXIT_FINDINGS = 4
EXIT_INTERRUPTED = 130


class SessionmartError(Exception):
    """Base of every error that sessionmart raises on purpose. ``exit_code`` is what the command returns."""

    exit_code = EXIT_BUG


class UsageError(SessionmartError):
    """The command line or the configuration asks for something that does not exist."""

    exit_code = EXIT_USAGE


class QueryError(SessionmartError):
    """A query of the user was refused by the engine (syntax, unknown name, limits)."""

    exit_code = EXIT_USAGE


class StoreError(SessionmartError):
    """The store cannot be used as asked."""

    exit_code = EXIT_STORE


class StoreMissing(StoreError):
    """There is no store at the given path."""


class StoreBusy(StoreError):
    """Another load holds the lock of the store."""


class StoreTooNew(StoreError):
    """The store was written by a newer version."""


class NotAStore(StoreError):
    """The file exists and is not a sessionmart store."""


class BrokenPromise(SessionmartError):
    """A check found a fault of ours that names no source: nothing is published."""
