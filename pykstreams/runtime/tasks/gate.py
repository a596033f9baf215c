"""A lock over the stores of a task, for its worker or one reader at a time.

The worker goes through for a whole batch, and a reader for one look-up or for a chunk of an iterator, so that a reader
sees what is there between two batches, and a record costs no lock. Neither can starve the other: readers that wait
when the worker leaves go before it, and those that come while it waits go after it. Short reads for which no thread
waits (``soon``) are done by the worker itself when it leaves, so that many of them cost no change of threads.

Invariant: at most one thread is inside; it may enter again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Final, TypeVar

from pykstreams.core.errors import InvalidStateStoreError

if TYPE_CHECKING:
    from pykstreams.core.ids import TaskId

T = TypeVar("T")

PATIENCE_S: Final = 10.0
"""How long a reader waits at most: a batch takes milliseconds, and one second when records are slow."""

MOST_SOON: Final = 1024
"""How many short reads may wait for a worker: more than clients that wait for them, unless it hangs and they go."""


class Gate:
    """The gate of one task, as a context manager for its worker; readers use ``read`` or ``soon``.

    :param what: names the task in the error for a reader that waits too long.
    """

    def __init__(self, what: str, *, patience_s: float = PATIENCE_S) -> None:
        self._what = what
        self._patience_s = patience_s
        self._lock = threading.RLock()  # also for an iterator that is collected as garbage while it is held
        self._changed = threading.Condition(self._lock)
        self._inside: int | None = None
        self._depth = 0
        self._workers = 0
        self._readers = 0
        self._first = 0
        self._waited = False
        self._hangs = False
        """Whether a reader has waited in vain since somebody left: others need not."""
        self._soon: list[tuple[Callable[[], None], Callable[[], None]]] = []
        self._soon_reads = 0

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._lock:
            if self._inside != me:
                if not self._worker_may():
                    self._workers += 1
                    try:
                        self._changed.wait_for(self._worker_may)
                    finally:
                        self._workers -= 1
                self._inside = me
            self._depth += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leave(readers_first=True)

    def was_waited_for(self) -> bool:
        """Whether a reader had to wait since the last call: the worker makes its next batch shorter then."""
        waited, self._waited = self._waited, False
        return waited

    def read(self, action: Callable[[], T]) -> T:
        """Runs a read while nobody else is inside; ``InvalidStateStoreError`` when that takes too long.

        Once a reader has waited in vain, others are refused at once until somebody leaves: a task that hangs costs the
        few threads that read stores their time once, and not with each question.
        """
        me = threading.get_ident()
        if self._inside == me:
            return action()
        with self._lock:
            if not self._reader_may():
                self._wait()
            self._first = max(0, self._first - 1)
            self._inside, self._depth = me, 1
        try:
            return action()
        finally:
            self._leave(readers_first=False)

    def soon(self, action: Callable[[], None], then: Callable[[], None], reads: int) -> bool:
        """Runs short reads while nobody else is inside: at once, or in the thread that is inside, when it leaves.

        The caller does not wait. Neither may raise. Returns false, and runs none, where ``MOST_SOON`` would wait.

        :param then: called after reads that were done later, once for those that have the same one and were done
            together; not after reads that were done at once.
        :param reads: how many reads ``action`` is.
        """
        with self._lock:
            if self._inside is not None:
                if self._soon_reads + reads > MOST_SOON:
                    return False
                self._soon.append((action, then))
                self._soon_reads += reads
                self._waited = True
                return True
            self._inside, self._depth = threading.get_ident(), 1
        try:
            action()
        finally:
            self._leave(readers_first=False)
        return True

    def _leave(self, *, readers_first: bool) -> None:
        while True:
            with self._lock:
                soon = self._soon
                if self._depth > 1 or not soon:
                    self._depth -= 1
                    if not self._depth:
                        self._inside = None
                        self._hangs = False
                        if readers_first:
                            self._first = self._readers
                        if self._readers or self._workers:
                            self._changed.notify_all()
                    return
                self._soon, self._soon_reads = [], 0
            for action, _ in soon:
                action()
            for then in dict.fromkeys(then for _, then in soon):
                then()

    def _wait(self) -> None:
        came = False
        self._readers += 1
        self._waited = True
        try:
            came = self._changed.wait_for(self._reader_may, 0 if self._hangs else self._patience_s)
            self._hangs = not came
        finally:
            self._readers -= 1
            if not came:  # it may also have been interrupted; the worker must not wait for it
                self._first = min(self._first, self._readers)
                self._changed.notify_all()
        if not came:
            raise InvalidStateStoreError(
                f"{self._what} could not be read within {self._patience_s:g} s: its worker is busy with one batch of "
                "records; ask again, and look for a processor that waits, for instance for this very read"
            )

    def _worker_may(self) -> bool:
        return self._inside is None and not self._first

    def _reader_may(self) -> bool:
        return self._inside is None and (self._first > 0 or not self._workers)


class Gates:
    """The gates of one process, by task: whoever has its stores, a worker or the standby tasks, uses the same one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._gates: dict[TaskId, Gate] = {}

    def of(self, task_id: TaskId) -> Gate:
        """The gate of a task; may be called from any thread."""
        with self._lock:
            found = self._gates.get(task_id)
            if found is None:
                found = self._gates[task_id] = Gate(f"task {task_id}")
            return found
