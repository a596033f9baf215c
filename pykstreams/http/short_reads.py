"""Reads of single rows, many at a time, which wait for no batch of records.

Those of one message from the server's process that are for one task are one read at its gate: what is the same for all
of them, the open store, its position and where it is, is looked for once. A worker that is asked all the time pays for
each question with records (decision 0048).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from pykstreams.core.errors import SerializationError
from pykstreams.core.types import AnyPartitioner
from pykstreams.http.local_answers import Source, may_pass, offsets_of
from pykstreams.http.placing import placing_of
from pykstreams.http.problems import ProblemError
from pykstreams.http.questions import ShortQuestion, ShownRow
from pykstreams.runtime.queries.catalog import HeldPartition, StoreDescription
from pykstreams.runtime.queries.local import LocalQueries


class ShortRead(Protocol):
    """A question for one row, and what becomes of its answer; one of the three methods is called, once."""

    @property
    def question(self) -> ShortQuestion: ...

    def answered(self, row: ShownRow | None, source: Mapping[str, object]) -> None:
        """Takes the row, ``None`` where there is none; here or in the worker's thread.

        What it raises goes to ``failed``.

        :param source: where it is from, as answers have it.
        """
        ...

    def failed(self, error: Exception) -> None:
        """Takes an error of the question or of the store; here or in the worker's thread."""
        ...

    def otherwise(self) -> None:
        """Has the question answered in the other way, which waits; in any thread."""
        ...


class ShortReads:
    """Reads rows of stores whose tasks run in this process.

    :param host: this instance, as sources name it.
    :param partitioners: see ``placing_of``.
    """

    def __init__(self, queries: LocalQueries, host: str, partitioners: Mapping[str, AnyPartitioner]) -> None:
        self._queries = queries
        self._host = host
        self._partitioners = partitioners
        self._placers: dict[str, Callable[[object], int | None]] = {}

    def begin(self, store: StoreDescription, reads: Sequence[ShortRead], then: Callable[[], None]) -> None:
        """Reads the rows of some questions for one store, and does not wait.

        :param then: called after some that were answered in the worker's thread.
        """
        by_partition: dict[int | None, list[ShortRead]] = {}
        try:
            partition_of = self._placer(store)
        except Exception as error:
            _give_up(reads, error)
            return
        for one in reads:
            try:
                partition = partition_of(one.question.key)
            except SerializationError as error:
                one.failed(ProblemError("bad-key", str(error)))
            except Exception as error:
                one.failed(error)
            else:
                by_partition.setdefault(partition, []).append(one)
        for partition, some in by_partition.items():
            held = None
            if partition is not None:
                try:
                    held = self._queries.running(store.name, partition)
                except Exception as error:
                    _give_up(some, error)
                    continue
            if held is None or not held.store.soon(self._reading(held, some), then, len(some)):
                for one in some:
                    one.otherwise()

    def _reading(self, held: HeldPartition, reads: Sequence[ShortRead]) -> Callable[[], None]:
        def read() -> None:
            try:  # around all of it: an error in the worker's thread would end the worker
                view = held.store.view()
                source = Source(held.partition, self._host, held.role.value, offsets_of(view.position)).as_json()
            except Exception as error:
                _give_up(reads, error)
                return
            for one in reads:
                try:
                    one.answered(one.question.shown(view), source)
                except Exception as error:
                    _give_up((one,), error)

        return read

    def _placer(self, store: StoreDescription) -> Callable[[object], int | None]:
        """Returns what gives the partition of a key, ``None`` before the topics are known; made once a store."""
        found = self._placers.get(store.name)
        if found is None:
            placing = placing_of(store, self._partitioners)
            place = self._queries.placer(store.name, placing.serializer, placing.partitioner)
            key_of = placing.key_of
            found = self._placers[store.name] = lambda key: place(key_of(key))
        return found


def _give_up(reads: Sequence[ShortRead], error: Exception) -> None:
    """Leaves reads that failed to the other way, where the error may pass."""
    passes = may_pass(error)
    for one in reads:
        if passes:
            one.otherwise()
        else:
            one.failed(error)
