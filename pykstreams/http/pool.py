"""A bounded pool of threads for what must not block the event loop: reads of stores, and calls of other instances."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from pykstreams.http.problems import ProblemError

T = TypeVar("T")


class Pool:
    """Runs work in so many threads; more than ``threads + waiting`` at a time is refused with a ``ProblemError``.

    Work that nobody waits for any more counts until it has ended.
    """

    def __init__(self, name: str, threads: int, waiting: int) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._name = name
        self._most = threads + waiting
        self._lock = threading.Lock()
        self._busy = 0
        self._closed = False

    async def run(self, work: Callable[[], T]) -> T:
        """Runs ``work`` in a thread."""
        with self._lock:
            if self._busy >= self._most:
                raise ProblemError(
                    "overloaded",
                    f"{self._busy} requests are at the {self._name} of this instance already; ask again a little later",
                )
            self._busy += 1
        try:
            future = self._executor.submit(work)
        except BaseException as error:
            self._ended(None)
            if self._closed:
                raise self._refused() from error
            raise
        future.add_done_callback(self._ended)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if self._closed and future.cancelled() and task is not None and not task.cancelling():
                raise self._refused() from error
            raise

    def close(self) -> None:
        """Lets no more in, and refuses what waits; what runs goes on to its end."""
        self._closed = True
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _refused(self) -> ProblemError:
        return ProblemError("unavailable", f"the {self._name} of this instance have ended; ask another instance")

    def _ended(self, future: Future[T] | None) -> None:
        with self._lock:
            self._busy -= 1
