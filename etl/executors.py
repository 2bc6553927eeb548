"""Where does extraction run?

The one seam for it: a ``concurrent.futures.Executor``. Extraction is pure, so its tasks may run here, in other
processes or on other machines, and may be tried again.
"""

from __future__ import annotations

from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


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
