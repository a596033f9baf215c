"""The thread that writes the batches of one sink and task, so that a database never holds up the polling thread.

Invariant: at most one batch is being written, in the order in which the batches came, and what fails for good is not
passed over: nothing behind it is written before somebody has decided on it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import TypeVar

from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TopicPartition
from pykstreams.processors.backoff import Backoff
from pykstreams.processors.sinks.effects import Claim, DatabaseAwayError, Effect, Outcome, Transactions

log = logging.getLogger(__name__)

T = TypeVar("T")

_END_S = 5.0


class SqlWriter:
    """Writes batches on a thread of its own; ``write`` and ``close`` are for one other thread.

    :param open_database: makes the transactions, on the thread; its errors are those of the first batch.
    :param close_database: called at the end, on the thread.
    :param on_outcome: takes the end of each batch, on the thread.
    :param timeout_ms: for how long a database that is away is asked again.
    """

    def __init__(
        self,
        name: str,
        open_database: Callable[[], Transactions],
        close_database: Callable[[], None],
        on_outcome: Callable[[Outcome], None],
        *,
        now_ms: Callable[[], int],
        timeout_ms: int,
        backoff: Backoff,
    ) -> None:
        self._name = name
        self._open_database = open_database
        self._close_database = close_database
        self._on_outcome = on_outcome
        self._now_ms = now_ms
        self._timeout_ms = timeout_ms
        self._backoff = backoff
        self._batches: SimpleQueue[list[Effect] | None] = SimpleQueue()
        self._stopping = threading.Event()
        self._claims: dict[TopicPartition, Claim] = {}
        self._thread: threading.Thread | None = None
        self.asking_since_ms = 0
        """Since when the database has been asked for what it was asked last; whatever came before has been answered."""

    def write(self, batch: list[Effect]) -> None:
        """Hands a batch over; the one before it must have ended."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"sql-sink {self._name}", daemon=True)
            self._thread.start()
        self.asking_since_ms = self._now_ms()
        self._batches.put(batch)

    def close(self) -> None:
        """Ends the thread; a transaction that does not end soon is left behind, and its owner's claim with it."""
        self._stopping.set()
        self._batches.put(None)
        if self._thread is None:
            return
        self._thread.join(_END_S)
        if self._thread.is_alive():
            log.warning("%s: a transaction did not end within %g s; it is left behind", self._name, _END_S)

    def _run(self) -> None:
        batch = self._batches.get()
        transactions: Transactions | None = None
        try:
            while batch is not None:
                try:
                    if transactions is None:
                        transactions = self._open_database()
                    outcome = self._write(transactions, batch)
                except Exception as error:
                    outcome = Outcome(0, error)
                if self._stopping.is_set():
                    return
                self._on_outcome(outcome)
                batch = self._batches.get()
        finally:
            if transactions is not None:
                self._close_database()

    def _write(self, transactions: Transactions, batch: list[Effect]) -> Outcome:
        for partition in {effect.partition: None for effect in batch}:
            if partition not in self._claims:
                claim = partial(transactions.claim, partition)
                self._claims[partition] = self._patiently(claim)
        new = [effect for effect in batch if effect.offset >= self._claims[effect.partition].next_offset]
        if len(new) < len(batch):
            log.info("%s: %d records of %d are in the database already", self._name, len(batch) - len(new), len(batch))
        try:
            if new:
                self._commit(transactions, new)
            return Outcome(len(batch))
        except StreamsError as error:
            return Outcome(0, error)
        except Exception as error:
            if len(new) > 1:
                log.info("%s: %d records could not be written together: %r", self._name, len(new), error)
        return self._write_each(transactions, batch)

    def _write_each(self, transactions: Transactions, batch: list[Effect]) -> Outcome:
        """Writes the effects of a batch one by one, up to the one that is to blame for its failure."""
        for done, effect in enumerate(batch):
            if effect.offset < self._claims[effect.partition].next_offset:
                continue
            try:
                self._commit(transactions, [effect])
            except StreamsError as error:
                return Outcome(done, error)
            except Exception as error:
                return Outcome(done, error, blames_next=True)
        return Outcome(len(batch))

    def _commit(self, transactions: Transactions, effects: list[Effect]) -> None:
        """Writes effects in one transaction, and notes where their partitions stand now."""
        rows = [row for effect in effects for row in effect.rows]
        ends = {effect.partition: effect.offset + 1 for effect in effects}  # the last one of a partition counts
        self._patiently(lambda: transactions.write(rows, self._claims, ends))
        for partition, end in ends.items():
            self._claims[partition] = Claim(self._claims[partition].epoch, end)

    def _patiently(self, ask: Callable[[], T]) -> T:
        """Asks until the database answers; ``StreamsError`` when it was away for too long."""
        since, attempts = self._now_ms(), 0
        self.asking_since_ms = since
        while True:
            try:
                found = ask()
            except DatabaseAwayError as error:
                away_ms = self._now_ms() - since
                if away_ms >= self._timeout_ms or self._stopping.is_set():
                    raise StreamsError(
                        f"{self._name}: the database has not taken anything for {away_ms} ms; see that it is there, or "
                        f"give the sink a longer timeout: {error}"
                    ) from error
                if attempts == 0:
                    log.warning("%s: the database is away, and the task waits for it: %s", self._name, error)
                attempts += 1
                wait_ms = self._backoff.delay_ms(attempts, 0)
                self._stopping.wait(max(1, min(wait_ms, self._timeout_ms - away_ms)) / 1000)
            else:
                if attempts:
                    log.info("%s: the database is back after %d attempts", self._name, attempts + 1)
                return found
