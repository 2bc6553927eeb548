"""Where does extraction run, and what happens when a worker dies?

The one seam is a ``concurrent.futures.Executor``: extraction is pure, so its tasks may run here, in worker processes or
on other machines, and may be tried again. A worker that is killed takes only its own files with it: the tasks that were
under way are tried again alone and in halves, until the single file is found that takes its worker down.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from multiprocessing.connection import Connection

T = TypeVar("T")
Item = TypeVar("Item")


class Serial(Executor):
    """Runs each task at once, in this process."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """The finished future of a call; an exception of the task is in it."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - as an executor does: the caller gets it from the future
            future.set_exception(error)
        return future


def process_pool(workers: int) -> Executor:
    """A pool of worker processes that leave when the pool is abandoned or its process is gone."""
    return _ProcessPool(workers)


class _ProcessPool(Executor):
    """Worker processes, started by a fork server: the loader has an engine and threads that must not be forked.

    Workers hold one end of a pipe, this process alone has the other. When it is closed, by ``shutdown`` with
    ``cancel_futures`` or because this process is gone however that came, they end at once; a pool does not see to that
    by itself. Ctrl-C goes to every process of a terminal: this one takes it, workers do not.
    """

    def __init__(self, workers: int) -> None:
        from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - a serial load needs none of it
        from multiprocessing import get_context  # noqa: PLC0415

        context = get_context("forkserver")
        context.set_forkserver_preload(["etl.extract", "etl.providers.qoder"])
        _start_fork_server()
        watched, self._held = context.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(workers, context, initializer=watch_loader, initargs=(watched,))

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """The future of a call in a worker. Raises BrokenExecutor when a worker has died."""
        with _interrupts_later():  # it may start a worker, which fails with many words when it is told but half
            return self._pool.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - Executor's
        """Takes no more calls. With ``cancel_futures`` calls under way end, too."""
        if cancel_futures:
            self._held.close()
        self._pool.shutdown(wait, cancel_futures=cancel_futures)


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """A Ctrl-C that comes meanwhile takes effect at the end. (Only a main thread is ever interrupted.)"""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def _start_fork_server() -> None:
    """With SIGINT blocked: the fork server hands its signal mask down to every worker."""
    from multiprocessing import forkserver, resource_tracker  # noqa: PLC0415 - POSIX only

    resource_tracker.ensure_running()  # first, by itself: its start unblocks SIGINT, also where it was blocked
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def watch_loader(watched: Connection) -> None:
    """Ends this worker when the other end of a pipe, into which nobody writes, is closed."""

    def watch() -> None:
        watched.poll(None)
        os._exit(1)

    threading.Thread(target=watch, name="watch-loader", daemon=True).start()


def run_tasks(
    make: Callable[[], Executor],
    run: Callable[[int, Sequence[Item]], T],
    tasks: Sequence[Sequence[Item]],
    in_flight: int,
) -> Generator[tuple[Sequence[Item], T | None]]:
    """Runs ``run(number, items)`` for each task and yields (items, result) as they complete.

    The result is None for a single item whose worker died with it. ``make`` gives the executor, and a fresh one when it
    broke; at most ``in_flight`` tasks are handed out at a time. Exceptions of a task are raised here.
    """
    pending: deque[Sequence[Item]] = deque(tasks)
    suspects: deque[Sequence[Item]] = deque()
    running: dict[Future[T], Sequence[Item]] = {}
    executor, number, abandoned = make(), 0, True
    try:
        while pending or suspects or running:
            while _may_submit(pending, suspects, running, in_flight):
                items = suspects.popleft() if suspects else pending.popleft()
                try:
                    future = executor.submit(run, number, items)
                except BrokenExecutor:  # it broke before: these items were never tried, nothing is their doing
                    executor.shutdown(wait=False, cancel_futures=True)
                    executor = make()
                    future = executor.submit(run, number, items)
                running[future] = items
                number += 1
            broken: list[Sequence[Item]] = []
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                items = running.pop(future)
                if isinstance(future.exception(), BrokenExecutor):
                    broken.append(items)
                else:
                    yield items, future.result()
            if broken:
                broken += running.values()
                running.clear()
                executor.shutdown(wait=False, cancel_futures=True)
                executor = make()
                yield from _blame(broken, suspects)
        abandoned = False
    finally:  # tasks under way have to end before the folder they write into goes
        executor.shutdown(wait=True, cancel_futures=abandoned)


def _may_submit(
    pending: deque[Sequence[Item]],
    suspects: deque[Sequence[Item]],
    running: dict[Future[T], Sequence[Item]],
    limit: int,
) -> bool:
    """Suspects run alone, so that a broken pool is their doing."""
    if suspects:
        return not running
    return bool(pending) and len(running) < limit


def _blame(broken: list[Sequence[Item]], suspects: deque[Sequence[Item]]) -> Iterator[tuple[Sequence[Item], None]]:
    """What to do with the tasks that were under way when the pool broke."""
    if len(broken) > 1:
        suspects.extend(broken)
        return
    items = broken[0]
    if len(items) == 1:
        yield items, None
    else:
        half = len(items) // 2
        suspects.extendleft((items[half:], items[:half]))
