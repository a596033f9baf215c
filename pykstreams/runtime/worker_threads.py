"""The workers of one application, each on a thread of its own."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from typing import TypeAlias

from pykstreams.core.errors import StreamsError
from pykstreams.runtime.worker.worker import Worker

log = logging.getLogger(__name__)

Build: TypeAlias = Callable[[int, Callable[[bool], None]], Worker]
"""Makes the worker of a number; the worker calls the function when it has, or has not, all of its tasks running."""


class WorkerThreads:
    """Starts workers, replaces those that fail and are to be replaced, and lets some go while the others work.

    Workers have the numbers of Kafka Streams: a new one gets the lowest that no thread has (``getNextThreadIndex``,
    4.3.1). A worker that is replaced hands its number on.

    :param build: makes a worker.
    :param before_start: called with a worker that others can see already, and that has not started.
    :param replaces: asked with a worker that failed; true when another one is to take its place.
    :param on_failure: called with the error of a worker whose place nobody takes.
    :param on_running: called when a worker changes, comes or goes, with whether all of them run.
    :param on_count: called with how many workers there are, without those that are about to go.
    :param on_end: called on the thread of the last worker, when it has ended.
    """

    def __init__(
        self,
        build: Build,
        *,
        before_start: Callable[[Worker], None],
        replaces: Callable[[Worker, BaseException], bool],
        on_failure: Callable[[BaseException], None],
        on_running: Callable[[bool], None],
        on_count: Callable[[int], None],
        on_end: Callable[[], None],
    ) -> None:
        self._build = build
        self._before_start = before_start
        self._replaces = replaces
        self._on_failure = on_failure
        self._on_running = on_running
        self._on_count = on_count
        self._on_end = on_end
        self._adding = threading.Lock()
        self._reporting = threading.RLock()
        self._changed = threading.Condition()
        self._workers: dict[int, Worker] = {}
        self._threads: dict[int, threading.Thread] = {}
        self._running: dict[int, bool] = {}
        self._going: set[int] = set()

    @property
    def workers(self) -> list[Worker]:
        """The workers that have not ended."""
        return list(self._workers.copy().values())

    @property
    def is_one_ending(self) -> bool:
        """Whether a worker has ended whose thread has not: its failure is being handled, for instance."""
        return len(self._threads) > len(self._workers)

    @property
    def has_ended(self) -> bool:
        """Whether no thread is left, or was ever started."""
        return not self._threads

    @property
    def is_current(self) -> bool:
        """Whether the caller is on the thread of a worker."""
        return self._current is not None

    def add(self) -> str:
        """Makes one more worker, and starts it; returns its name."""
        with self._adding:
            number = next(number for number in range(1, len(self._threads) + 2) if number not in self._threads)
            return self._launch(number)

    def remove(self, timeout_s: float | None) -> str | None:
        """Ends one worker: it commits, gives its tasks up and leaves the group. Returns its name.

        It is the worker that has worked longest; a worker that calls this itself comes last. ``None``: all workers are
        ending already. Waits until it has ended, unless the caller is that worker, or a worker that is ending itself.
        ``TimeoutError``: it did not end in time, and goes on ending.
        """
        with self._changed:
            asking = self._current
            staying = [number for number in self._workers if number not in self._going]
            number = next((one for one in staying if one != asking), asking if asking in staying else None)
            if number is None:  # a worker that has failed, and asks while it ends, is its own last one
                return self._threads[asking].name if asking is not None and asking not in self._going else None
            self._going.add(number)
            worker, thread = self._workers[number], self._threads[number]
        log.info("%s is removed: it commits, and leaves the group", worker.name)
        worker.stop(leave=True)
        self._count()
        if number == asking or asking in self._going:
            return worker.name
        with self._changed:
            if not self._changed.wait_for(lambda: self._threads.get(number) is not thread, timeout_s):
                raise TimeoutError(
                    f"{worker.name} did not end within {timeout_s:g} s; it is asked to, and ends when it has committed "
                    "and its tasks are closed"
                )
        return worker.name

    def fail(self, name: str | None, failure: Exception) -> None:
        """Ends the worker of a name with an error that is none of its own; nothing is done where there is none."""
        for worker in self.workers:
            if worker.name == name:
                worker.fail(failure)

    def stop(self, *, leave: bool) -> None:
        """Asks all workers to commit, close their tasks, and leave the group or not."""
        for worker in self.workers:
            worker.stop(leave=leave)

    @property
    def _current(self) -> int | None:
        """The number of the worker on whose thread the caller is."""
        me = threading.current_thread()
        return next((number for number, thread in self._threads.copy().items() if thread is me), None)

    def _launch(self, number: int) -> str:
        worker = self._build(number, lambda running: self._has_changed(number, running))
        thread = threading.Thread(target=self._work, args=(number, worker), name=worker.name, daemon=True)
        with self._changed:
            self._workers[number] = worker
            before, self._threads[number] = self._threads.get(number), thread
            self._changed.notify_all()  # who waits for the one before, which is to be removed, waits no more
        self._count()
        self._has_changed(number, False)
        try:
            self._before_start(worker)
            thread.start()
        except BaseException:
            self._forget(number)
            with self._changed:
                if before is None:
                    del self._threads[number]
                else:
                    self._threads[number] = before
            self._count()
            self._report()
            raise
        return worker.name

    def _work(self, number: int, worker: Worker) -> None:
        failure: BaseException | None = None
        try:
            worker.run()
        except BaseException as error:
            failure = error
        except:  # noqa: E722  # a foreign extension may raise what is no exception; the worker has ended all the same
            failure = StreamsError(f"{worker.name} was ended by {sys.exc_info()[1]!r}")
        self._forget(number)
        if failure is not None:
            try:
                if self._is_replaced(number, worker, failure):
                    return
            except Exception as error:
                log.exception("no other worker could take the place of %s", worker.name)
                failure = error
        try:
            if failure is not None:
                self._on_failure(failure)
        finally:
            self._end(number)

    def _is_replaced(self, number: int, worker: Worker, failure: BaseException) -> bool:
        """Starts another worker in the place of one that failed, if it is to have one."""
        if not self._replaces(worker, failure):
            return False
        self._going.discard(number)
        self._launch(number)
        return True

    def _end(self, number: int) -> None:
        """Frees the number of the calling thread."""
        with self._changed:
            del self._threads[number]
            self._going.discard(number)
            last = not self._threads
            self._changed.notify_all()
        if last:
            self._on_end()
        else:
            self._count()
            self._report()

    def _forget(self, number: int) -> None:
        """Forgets a worker that does not work any more, or not yet; its thread keeps the number."""
        with self._changed:
            del self._workers[number]
        with self._reporting:
            del self._running[number]

    def _count(self) -> None:
        with self._changed:
            self._on_count(sum(number not in self._going for number in self._workers))

    def _has_changed(self, number: int, running: bool) -> None:
        with self._reporting:
            self._running[number] = running
            self._report()

    def _report(self) -> None:
        with self._reporting:  # reports come in the order of the changes that they tell of
            if self._running:
                self._on_running(all(self._running.values()))
