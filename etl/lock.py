"""Who may load into a store right now?

One load at a time: an advisory lock on ``<store>.lock``, held by the kernel and gone with the process that held it,
however that ended. The file names the process for people, and goes with a load that ends well.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from etl.errors import StoreBusy, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def store_lock(db: str) -> Iterator[None]:
    """Holds the lock of a store. Raises StoreBusy, naming the process that has it, or StoreError."""
    path = f"{db}.lock"
    descriptor = _locked(path, db)
    while not _is_current(descriptor, path):  # the load before removed the file between opening and locking it
        os.close(descriptor)
        descriptor = _locked(path, db)
    try:
        _sign(descriptor, path)
        yield
    finally:
        with suppress(OSError):  # somebody tidied it away, or the disk was taken away: the kernel's lock goes below
            os.unlink(path)
        os.close(descriptor)


def _sign(descriptor: int, path: str) -> None:
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except OSError as error:
        raise StoreError(f"the folder of the store cannot be written: {path}: {error.strerror}") from error


def _locked(path: str, db: str) -> int:
    import fcntl  # noqa: PLC0415 - POSIX only: importing this module must not fail elsewhere

    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    except OSError as error:
        raise StoreError(f"the folder of the store cannot be written: {path}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(descriptor)
        raise StoreBusy(f"another load is running on {db} (process {holder})") from error
    except OSError as error:
        os.close(descriptor)
        raise StoreError(f"the folder of the store does not take a lock: {path}: {error.strerror}") from error
    return descriptor


def _is_current(descriptor: int, path: str) -> bool:
    try:
        return os.stat(path).st_ino == os.fstat(descriptor).st_ino
    except OSError:
        return False
