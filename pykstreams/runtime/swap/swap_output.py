"""The way out for swaps of state: a transactional producer beside that of the worker, made when it is first needed.

The state updater writes with it, and when everything is written the worker commits; never both at a time.

Invariant: between ``begin`` and ``commit`` nobody who reads only what is committed sees anything of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TaskId
from pykstreams.runtime.clients.consumers.messages import RecordMessage
from pykstreams.runtime.clients.errors import ClientError
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.clients.producer import DeliveryFailures
from pykstreams.state.interfaces.store import ChangelogWriter

log = logging.getLogger(__name__)

_START_S = 30.0
_SETTLE_S = 3.0
"""How long is waited until another producer has ended a transaction; nobody's stores are opened meanwhile."""


class SwapProducer(Protocol):
    """The methods of a transactional producer that swaps call."""

    @property
    def failures(self) -> DeliveryFailures: ...

    def start_transactions(self, timeout_s: float) -> None: ...

    def begin(self) -> None: ...

    def commit(self, offsets: Offsets, group_metadata: bytes) -> None: ...

    def abort(self) -> bool: ...

    def discard(self) -> None: ...


class SwapCollector(Protocol):
    """The methods of a collector that swaps call."""

    def delivery_failed(self, error: ClientError | None, message: RecordMessage) -> None: ...

    def changelog_writer(self, task_id: TaskId, store: str, topic: str, partition: int) -> ChangelogWriter: ...

    def poll(self) -> None: ...

    def flush(self) -> None: ...


class SwapOutput:
    """One for each worker.

    :param make: makes a transactional producer and a collector over it.
    """

    def __init__(self, make: Callable[[], tuple[SwapProducer, SwapCollector]]) -> None:
        self._make = make
        self._made: tuple[SwapProducer, SwapCollector] | None = None

    def begin(self) -> None:
        """Begins a transaction."""
        (self._made or self._started(_START_S))[0].begin()

    def writer(self, task_id: TaskId, store: str, topic: str) -> ChangelogWriter:
        """Returns the callable that writes to the changelog of a store."""
        return self._open[1].changelog_writer(task_id, store, topic, task_id.partition)

    def poll(self) -> None:
        """Runs the callbacks of deliveries."""
        self._open[1].poll()

    def flush(self) -> None:
        """Waits until everything is delivered; raises the error for what was not.

        ``ClusterUnavailableError`` when some of it is still on its way: call it again.
        """
        self._open[1].flush()

    def commit(self, offsets: Offsets, group_metadata: bytes) -> None:
        """Commits what was written together with offsets.

        Whatever error is raised, nobody knows whether it was committed: ask the group.
        """
        self._open[0].commit(offsets, group_metadata)

    def abort(self) -> None:
        """Aborts the transaction; what is made next does not wait for it.

        Where its producer cannot, another one of the same id does. Until then the offsets in it are not known, and so
        nobody opens the task.
        """
        is_over = True
        try:
            if self._made is not None:
                is_over = self._made[0].abort()
        finally:
            self.close()
        if not is_over:
            try:
                self._started(_SETTLE_S)
            except StreamsError as error:
                log.info("the transaction of a swap was not ended; brokers end it when its time is over: %s", error)

    def close(self) -> None:
        """Lets go of the producer; waits for nothing."""
        made, self._made = self._made, None
        if made is not None:
            made[0].discard()

    def _started(self, timeout_s: float) -> tuple[SwapProducer, SwapCollector]:
        """Makes what the next transaction begins with; transactions of the producer before are over then."""
        producer, collector = self._make()
        producer.failures.handler = collector.delivery_failed
        try:
            producer.start_transactions(timeout_s)
        except StreamsError:
            producer.discard()
            raise
        self._made = producer, collector
        return self._made

    @property
    def _open(self) -> tuple[SwapProducer, SwapCollector]:
        if self._made is None:
            raise StreamsError("no transaction was begun for a swap of state")
        return self._made
