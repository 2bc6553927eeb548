"""Where does extraction run, and what happens when a worker dies?

The one seam is a ``concurrent.futures.Executor``: extraction is pure, so its tasks may run here, in worker processes or
on other machines, and may be tried again. A worker that is killed takes only its own files with it: the tasks that were
under way are tried again alone and in halves, until the single file is found that takes its worker down.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")
Item = TypeVar("Item")
#: How often a worker looks whether its loader is still there, seconds.
_WATCH_SECONDS: Final = 0.5


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
    """A pool of worker processes, started by a fork server: the loader has an engine and threads that must not be
    forked. Workers leave when the loader is gone; a pool does not see to that by itself.
    """
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - a serial load needs none of it
    from multiprocessing import get_context  # noqa: PLC0415

    context = get_context("forkserver")
    context.set_forkserver_preload(["etl.extract", "etl.providers.qoder"])
    loader = os.getpid()
    return ProcessPoolExecutor(workers, context, initializer=watch_loader, initargs=(loader, process_start(loader)))


def watch_loader(pid: int, started: str) -> None:
    """Ends this worker when the process ``pid`` is gone, or is another one by now (its start time differs)."""

    def watch() -> None:
        pause = threading.Event()
        while not pause.wait(_WATCH_SECONDS):
            if not _is_alive(pid) or process_start(pid) != started:
                os._exit(1)

    threading.Thread(target=watch, name="watch-loader", daemon=True).start()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def process_start(pid: int) -> str:
    """When a process started, in the system's own words; empty where the system does not say (no /proc), and for one
    that has ended and waits for its parent to notice (a killed loader stays so for as long as its parent is busy).
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            told = file.read().rpartition(b")")[2].split()
        return "" if told[0] in (b"Z", b"X") else told[19].decode()
    except (OSError, IndexError):
        return ""


def run_tasks(
    make: Callable[[], Executor],
    run: Callable[[int, Sequence[Item]], T],
    tasks: Sequence[Sequence[Item]],
    in_flight: int,
) -> Iterator[tuple[Sequence[Item], T | None]]:
    """Runs ``run(number, items)`` for each task and yields (items, result) as they complete.

    The result is None for a single item whose worker died with it. ``make`` gives the executor, and a fresh one when it
    broke; at most ``in_flight`` tasks are handed out at a time. Exceptions of a task are raised here.
    """
    pending: deque[Sequence[Item]] = deque(tasks)
    suspects: deque[Sequence[Item]] = deque()
    running: dict[Future[T], Sequence[Item]] = {}
    executor, number = make(), 0
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
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


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
