"""Measures a store at its outermost layer; which of it is decided when the store is opened.

At ``INFO`` nothing is done per access. At ``DEBUG`` the methods of the store are wrapped: a call reads the clock twice
and appends a number to a list, which is summed up when the worker flushes its metrics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from time import perf_counter_ns
from typing import Final, TypeVar

from pykstreams.core.clock import SystemClock
from pykstreams.core.metrics import RecordingLevel, Sensor
from pykstreams.core.metrics.built_in import stores as built_in
from pykstreams.core.metrics.stats import Amounts
from pykstreams.state.interfaces.engine import Engine
from pykstreams.state.interfaces.store import KeyValueIterator, StoreContext
from pykstreams.state.metrics.open_iterators import OpenIterators
from pykstreams.state.metrics.rocksdb_statistics import RocksDbStatistics

T = TypeVar("T")

_COMPOUND: Final = frozenset(("put-if-absent", "put-all"))
"""Operations that call others, which do not count then."""


class StoreMetrics:
    """The metrics of one open store; those that it lists go with its task.

    :param scope: the kind of store, part of the name of its tag.
    :param name: the name of the store.
    """

    def __init__(self, context: StoreContext, scope: str, name: str) -> None:
        self._metrics = context.metrics
        self._current = context.current
        self._tags = {"task_id": str(context.task_id), f"{scope or 'user'}-state-id": name}
        self._noted: list[tuple[Sensor, list[int]]] = []
        self._ages: tuple[Sensor, list[int]] | None = None
        self._hits: tuple[Sensor, list[bool]] | None = None
        self._entries: Container[bytes] = ()
        self._name = name
        self._in_compound = [False]
        self._iterators: OpenIterators | None = None
        self.measures_calls = self._metrics.records(RecordingLevel.DEBUG)
        """Whether calls of the store are measured."""

    def describe(self, engine: Engine, rows: Callable[[], int]) -> None:
        """Adds what is read from the lowest layer when it is asked for."""
        read = engine.property_value
        if read("rocksdb.estimate-num-keys") is None:
            self._metrics.add_gauge(built_in.NUM_KEYS, rows, **self._tags)
            return
        for spec in built_in.ROCKSDB:
            self._metrics.add_gauge(spec, _gauge_of(read, f"rocksdb.{spec.name}"), **self._tags)
        if self.measures_calls:
            statistics = RocksDbStatistics(engine.statistics, SystemClock())
            for spec in built_in.STATISTICS:
                self._metrics.add_gauge(spec, partial(statistics.value, spec.name), **self._tags)

    def measure(self, store: object, operations: Mapping[str, str]) -> None:
        """Puts measuring methods into the object, in place of those of its class and of its closures.

        :param operations: by the name of the method, under which name it is measured.
        """
        self._iterators = OpenIterators(self._metrics, self._tags, SystemClock())
        lists: dict[str, list[int]] = {}
        if self._metrics.records(RecordingLevel.TRACE):
            self._ages = self._metrics.sensor(built_in.E2E, **self._tags), []
        for method, operation in operations.items():
            if operation not in lists:
                lists[operation] = []
                sensor = self._metrics.sensor(built_in.OPERATIONS[operation], **self._tags)
                self._noted.append((sensor, lists[operation]))
            setattr(store, method, self._measured(getattr(store, method), operation, lists[operation]))

    def count_hits(self, entries: Container[bytes]) -> None:
        """Gets ready to count which reads a record cache can answer.

        :param entries: those of the cache.
        """
        tags = {"task_id": self._tags["task_id"], "record_cache_id": self._name}
        self._hits = self._metrics.sensor(built_in.HIT_RATIO, **tags), []
        self._entries = entries

    def counted(self, find: Callable[[bytes], T]) -> Callable[[bytes], T]:
        """Wraps a read of the record cache; call ``count_hits`` before."""
        if self._hits is None:
            return find
        note, entries = self._hits[1].append, self._entries

        def find_and_count(key: bytes) -> T:
            note(key in entries)
            return find(key)

        return find_and_count

    def flush(self, now_ms: int) -> None:
        """Hands what was noted to the sensors."""
        amounts = Amounts()
        for sensor, noted in self._noted:
            taken = _taken(noted)
            amounts.add_all(taken)
            sensor.take(amounts, now_ms)
        if self._ages is not None:
            sensor, times = self._ages
            amounts.add_all([now_ms - time for time in _taken(times)])
            sensor.take(amounts, now_ms)
        if self._hits is not None:
            sensor, hits = self._hits
            if seen := _taken(hits):
                sensor.record(sum(seen) / len(seen), now_ms)

    def _measured(self, method: Callable[..., object], operation: str, noted: list[int]) -> Callable[..., object]:
        note, clock, inside, iterators = noted.append, perf_counter_ns, self._in_compound, self._iterators

        def measured(*arguments: object, **named: object) -> object:
            if inside[0]:
                return method(*arguments, **named)
            began = clock()
            found = method(*arguments, **named)
            note(clock() - began)
            if iterators is not None and isinstance(found, KeyValueIterator):
                iterators.watch(found)
            return found

        def compound(*arguments: object, **named: object) -> object:
            began = clock()
            inside[0] = True
            try:
                return method(*arguments, **named)
            finally:
                inside[0] = False
                note(clock() - began)

        if operation in _COMPOUND:
            return compound
        return self._with_age(measured) if operation == "put" else measured

    def _with_age(self, measured: Callable[..., object]) -> Callable[..., object]:
        """Notes the timestamp of the record that is put, at ``TRACE``."""
        if self._ages is None:
            return measured
        current, note = self._current, self._ages[1].append

        def put(*arguments: object, **named: object) -> object:
            if current.raw is not None:
                note(current.raw[1])
            return measured(*arguments, **named)

        return put


def _gauge_of(read: Callable[[str], int | None], name: str) -> Callable[[], float]:
    def gauge() -> float:
        value = read(name)
        return math.nan if value is None else value

    return gauge


def _taken(noted: list[T]) -> Sequence[T]:
    """Returns what was noted, and forgets it; others may go on noting meanwhile."""
    count = len(noted)
    taken = noted[:count]
    del noted[:count]
    return taken
