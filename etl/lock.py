"""Who may load into a store right now?

One load at a time: an advisory lock on ``<store>.lock``, held by the kernel and gone with the process that held it,
however it ended. The file names the process for people.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from etl.errors import StoreBusy, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def store_lock(db: str) -> Iterator[None]:
    """Holds the lock of a store. Raises StoreBusy, naming the process that has it, or StoreError."""
    import fcntl  # noqa: PLC0415 - POSIX only: importing this module must not fail elsewhere

    path = f"{db}.lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreError(f"cannot make {path}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            raise StoreBusy(f"another load is running on {db} (process {holder})") from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
