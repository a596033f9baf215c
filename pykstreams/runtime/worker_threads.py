"""The workers of one application, each on a thread of its own."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeAlias

from pykstreams.core.errors import StreamsError
from pykstreams.runtime.worker.worker import Worker

Build: TypeAlias = Callable[[int, Callable[[bool], None]], Worker]
"""Makes the worker of a number; the worker calls the function when it has, or has not, all of its tasks running."""


class WorkerThreads:
    """Starts workers, and replaces those that fail and are to be replaced.

    :param build: makes a worker.
    :param replaces: asked with a worker that failed; true when another one is to take its place.
    :param on_running: called when a worker changes, with whether all of them run.
    :param on_end: called on the thread of the last worker, when it has ended.
    """

    def __init__(
        self,
        build: Build,
        *,
        replaces: Callable[[Worker, BaseException], bool],
        on_running: Callable[[bool], None],
        on_end: Callable[[], None],
    ) -> None:
        self._build = build
        self._replaces = replaces
        self._on_running = on_running
        self._on_end = on_end
        self._lock = threading.Lock()
        self._workers: dict[int, Worker] = {}
        self._threads: dict[int, threading.Thread] = {}
        self._running: dict[int, bool] = {}

    @property
    def workers(self) -> list[Worker]:
        """The workers that have not ended."""
        return list(self._workers.copy().values())

    @property
    def has_ended(self) -> bool:
        """Whether no thread is left, or was ever started."""
        return not self._threads

    @property
    def is_current(self) -> bool:
        """Whether the caller is on the thread of a worker."""
        return threading.current_thread() in self._threads.copy().values()

    def launch(self, number: int, before_start: Callable[[Worker], None]) -> None:
        """Makes the worker of a number, and starts it.

        :param before_start: called with the worker, which others can see already; again for one that takes its place.
        """
        worker = self._build(number, lambda running: self._has_changed(number, running))
        thread = threading.Thread(target=self._work, args=(number, worker, before_start), name=worker.name, daemon=True)
        with self._lock:
            self._workers[number] = worker
            self._threads[number] = thread
            self._running[number] = False
        before_start(worker)
        thread.start()

    def stop(self, *, leave: bool) -> None:
        """Asks all workers to commit, close their tasks, and leave the group or not."""
        for worker in self.workers:
            worker.stop(leave=leave)

    def _work(self, number: int, worker: Worker, before_start: Callable[[Worker], None]) -> None:
        failure: BaseException | None = None
        try:
            worker.run()
        except BaseException as error:
            failure = error
        except:  # noqa: E722  # a foreign extension may raise what is no exception; the worker has ended all the same
            failure = StreamsError(f"{worker.name} was ended by {sys.exc_info()[1]!r}")
        with self._lock:
            del self._workers[number], self._running[number]
        if failure is not None and self._replaces(worker, failure):
            self.launch(number, before_start)
            return
        with self._lock:
            del self._threads[number]
            last = not self._threads
        if last:
            self._on_end()

    def _has_changed(self, number: int, running: bool) -> None:
        with self._lock:
            self._running[number] = running
            everything = all(self._running.values())
        self._on_running(everything)
