"""What tests of global stores put in place of brokers and of a worker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pykstreams import Processor, Serdes, StreamsBuilder
from pykstreams.core.clock import Clock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ClusterError, StreamsError
from pykstreams.core.ids import TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.record import Record
from pykstreams.runtime.clients.consumers.restore_consumer import RestoreBatch
from pykstreams.runtime.global_stores.global_state import GlobalState
from pykstreams.runtime.global_stores.global_thread import GlobalThread
from pykstreams.runtime.restore.restore import StateRestoreListener
from pykstreams.runtime.tasks.raw_message import RawMessage
from pykstreams.state import Stores
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.testing.clock import MockClock

PATIENCE_S = 20.0
TEXT = Serdes.string()
SETTINGS: Mapping[str, object] = {
    "application.id": "shop",
    "bootstrap.servers": "broker:9092",
    "default.key.serde": TEXT,
    "default.value.serde": TEXT,
}


class FakeGlobalTopics:
    """Topics that can be read, and whose records can be added and taken away; also the offsets of them."""

    def __init__(self) -> None:
        self.logs: dict[TopicPartition, list[RawMessage]] = {}
        self.begins: dict[TopicPartition, int] = {}
        self.hidden: dict[TopicPartition, int] = {}
        """Offsets at the end of a partition that nobody may read yet, those of open transactions."""
        self.lacking: dict[TopicPartition, int] = {}
        """Records at the end of a partition that the broker has not which is read from: it leads it no more."""
        self.assigned: dict[TopicPartition, int] = {}
        self.lost: list[TopicPartition] = []
        self.silent = False
        self.refusals: list[Exception] = []
        """What the next questions for offsets are answered with."""
        self.closed = False
        self.when_read: Callable[[], None] = lambda: None
        self._positions: dict[TopicPartition, int] = {}
        self._at_end: set[TopicPartition] = set()
        self._idle = 0
        self._changed = threading.Condition()

    def add(self, topic: str, key: str | None, value: str | None, *, partition: int = 0, timestamp: int = 5) -> None:
        with self._changed:
            log = self.logs.setdefault(TopicPartition(topic, partition), [])
            raw = [None if text is None else text.encode() for text in (key, value)]
            log.append(RawMessage(topic, partition, len(log), timestamp, raw[0], raw[1], ()))
            self._changed.notify_all()

    def wait_until_read(self) -> None:
        """Waits until everything that is there was read, and taken by who read it."""
        with self._changed:
            seen = self._idle
            assert self._changed.wait_for(lambda: self._idle > seen + 1, PATIENCE_S)

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        if self.assigned.keys() & positions.keys():
            raise ClusterError("taking partitions up failed: they are assigned already (_CONFLICT)")
        self.assigned.update(positions)
        self._positions.update(positions)

    def unassign(self, partitions: Collection[TopicPartition]) -> None:
        for place in partitions:
            del self.assigned[place], self._positions[place]

    def fetch(self, timeout: float) -> RestoreBatch:
        with self._changed:
            batch = self._batch()
            if not batch.positions and not batch.out_of_range:
                self._idle += 1
                self._changed.notify_all()
                self._changed.wait(min(timeout, 0.01))
                batch = self._batch()
        self.when_read()
        return batch

    def close(self) -> None:
        self.closed = True
        self.unassign([*self.assigned])

    def end_offsets(
        self, partitions: Collection[TopicPartition], *, timeout_s: float | None = None, read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        hidden = {} if read_committed else self.hidden
        return {place: self._end(place) + hidden.get(place, 0) for place in partitions}

    def beginning_offsets(
        self, partitions: Collection[TopicPartition], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        if self.refusals:
            raise self.refusals.pop(0)
        return {place: self.begins.get(place, 0) for place in partitions}

    def _end(self, place: TopicPartition) -> int:
        return len(self.logs.get(place, ()))

    def _batch(self) -> RestoreBatch:
        batch = RestoreBatch()
        if self.silent:
            return batch
        batch.out_of_range, self.lost = self.lost, []
        for place, position in self._positions.items():
            if found := self.logs.get(place, [])[position : self._end(place) - self.lacking.get(place, 0)]:
                batch.runs[place] = list(found)
                batch.positions[place] = self._positions[place] = position + len(found)
                self._at_end.discard(place)
            elif place not in self._at_end:
                self._at_end.add(place)
                batch.positions[place] = position
                batch.at_end.append(place)
        return batch


class PutUpper(Processor[str, str, Any, Any]):
    """Puts each value in capitals into the store ``caps``, and fails at ``bad``."""

    seen: ClassVar[list[tuple[Any, Any]]] = []

    def process(self, record: Record[str, str]) -> None:
        self.seen.append((record.key, record.value))
        if record.value == "bad":
            raise RuntimeError("a bad value")
        self.context.get_state_store("caps").put(record.key, record.value.upper())


def table(materialized: Any = "rows") -> StreamsBuilder:
    builder = StreamsBuilder()
    builder.global_table("table", materialized=materialized)
    return builder


def user_store(supplier: Any = PutUpper, *, in_memory: bool = False) -> StreamsBuilder:
    store = Stores.in_memory_key_value_store("caps") if in_memory else Stores.persistent_key_value_store("caps")
    return StreamsBuilder().add_global_store(Stores.key_value_store_builder(store, TEXT, TEXT), "feed", supplier)


def global_state(
    builder: StreamsBuilder,
    folder: Path,
    *,
    clock: Clock | None = None,
    cache_bytes: int = 0,
    patience_s: float = PATIENCE_S,
    **settings: object,
) -> GlobalState:
    config = StreamsConfig({**SETTINGS, "statestore.cache.max.bytes": cache_bytes, **settings})
    return GlobalState(
        builder.build().plan(config).global_stores,
        config=config,
        clock=clock or MockClock(0),
        metrics=StreamsMetrics(),
        directory=folder,
        cache=RecordCache(cache_bytes),
        patience_s=patience_s,
    )


class Bench:
    """A thread over fake topics; failures that it tells are kept."""

    def __init__(
        self,
        builder: StreamsBuilder,
        topics: FakeGlobalTopics,
        folder: Path,
        *,
        clock: Clock | None = None,
        listener: StateRestoreListener | None = None,
        partitions: int = 1,
        **settings: Any,
    ) -> None:
        self.clock = clock or MockClock(0)
        self.failures: list[StreamsError] = []
        self.failed = threading.Event()
        self.state = global_state(builder, folder, clock=self.clock, **settings)
        self.thread = GlobalThread(
            "global",
            state=self.state,
            partitions=dict.fromkeys(self.state.topics, partitions),
            reader=lambda: topics,
            offsets=topics,
            listener=listener or StateRestoreListener(),
            config=StreamsConfig({**SETTINGS, **settings}),
            clock=self.clock,
            on_failure=self._failed,
        )

    def rows(self, store: str = "rows") -> dict[str, Any]:
        with self.thread.views[store].all() as rows:  # type: ignore[attr-defined]
            return {key: getattr(value, "value", value) for key, value in rows}

    def _failed(self, error: StreamsError) -> None:
        self.failures.append(error)
        self.failed.set()
