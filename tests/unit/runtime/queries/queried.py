"""Tasks of a topology whose stores are read by interactive queries, without workers and brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pykstreams.core.config import StreamsConfig
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.dsl.builder import StreamsBuilder
from pykstreams.runtime.membership.group_hosts import GroupHosts
from pykstreams.runtime.queries.local import LocalQueries
from pykstreams.runtime.queries.local_store import LocalStore
from pykstreams.runtime.queries.store_types import QueryableStoreType
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.gate import Gates
from pykstreams.runtime.tasks.raw_message import RawMessage
from pykstreams.runtime.tasks.stores.initial_state import InitialState
from pykstreams.runtime.tasks.task import Task, TaskParts
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.serdes import Serdes
from pykstreams.state.interfaces.position import PositionBound
from pykstreams.state.interfaces.query import Query
from pykstreams.state.interfaces.query_results import StateQueryResult
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.testing.capture import CapturingProducer
from pykstreams.testing.clock import MockClock
from pykstreams.topology.topology import Topology

T = TypeVar("T")
TOPIC = "in"


class Application:
    """Tasks of the one sub-topology that reads ``in``, one a partition, in the role of a worker."""

    name = "worker-1"

    def __init__(
        self,
        builder: StreamsBuilder | Topology,
        directory: Path,
        *,
        partitions: int = 1,
        topic: str = TOPIC,
        settings: Mapping[str, object] | None = None,
        cache_bytes: int = 1 << 20,
        committed: Mapping[int, int] | None = None,
    ) -> None:
        self.config = StreamsConfig(
            {
                "application.id": "shop",
                "default.key.serde": Serdes.string(),
                "default.value.serde": Serdes.string(),
                **(settings or {}),
            }
        )
        topology = builder.build(self.config) if isinstance(builder, StreamsBuilder) else builder
        self.topology = topology
        self.plan = topology.plan(self.config)
        self.topic = topic
        self.all_running = True
        self.checks: list[Exception] = []
        self.global_stores: dict[str, LocalStore] = {}
        cache, metrics, clock = RecordCache(cache_bytes), StreamsMetrics(), MockClock(0)
        self.metrics = metrics
        collector = RecordCollector(CapturingProducer(), config=self.config, partition_count=lambda _: partitions)
        part = self.plan.subtopologies[0]
        self.offsets = dict.fromkeys(range(partitions), 0) | dict(committed or {})
        gates = Gates()

        def make_task(number: int) -> Task:
            return Task(
                TaskId(part.id, number),
                part,
                [TopicPartition(topic, number) for topic in part.source_topics],
                TaskParts(
                    config=self.config,
                    clock=clock,
                    collector=collector,
                    cache=cache,
                    metrics=metrics,
                ),
                InitialState(directory / str(number)),
                gate=gates.of(TaskId(part.id, number)),
            )

        self._make_task = make_task
        self.by_partition = {number: make_task(number) for number in range(partitions)}
        self.restored: dict[int, list[Any]] = {}
        self.started: dict[Task, bool] = {}
        self.standbys: list[Task] = []
        self.hosts = GroupHosts()
        for number in self.by_partition:
            self.restored[number] = list(self.by_partition[number].open_stores().values())
            self.started[self.by_partition[number]] = False
        self.layout: TopicLayout | None = TopicLayout(
            {topic: partitions},
            {task.id: frozenset(task.input_partitions) for task in self.by_partition.values()},
        )
        self.queries = LocalQueries(
            self.plan,
            self.config,
            clock,
            workers=lambda: [self],
            globals_=lambda: self,
            layout=lambda: self.layout,
            check=self._check,
            standbys=lambda: self.standbys,
            hosts=self.hosts.known,
        )

    def keep_copy(self, partition: int) -> Task:
        """Makes a task one of which only a copy is here."""
        task = self.by_partition[partition]
        self.started.pop(task, None)
        self.standbys.append(task)
        return task

    def hand_over(self, partition: int) -> Task:
        """Commits a task, and has another one of its id take up its stores as they lie open."""
        self.commit()
        left = self.by_partition[partition].hand_over()
        taken_up = self.by_partition[partition] = self._make_task(partition)
        self.restored[partition] = list(taken_up.open_stores(left).values())
        return taken_up

    def start(self) -> Application:
        for number, task in self.by_partition.items():
            for store in self.restored[number]:
                store.end_restore()
            offset = self.offsets[number]
            task.start({TopicPartition(self.topic, number): (offset, "")} if offset else {})
            self.started[task] = True
        return self

    def tasks(self) -> Mapping[Task, bool]:
        return self.started

    def running_task(self, task_id: TaskId) -> Task | None:
        return next((task for task, runs in self.started.items() if runs and task.id == task_id), None)

    def readable(self, name: str) -> LocalStore | None:
        return self.global_stores.get(name)

    def feed(self, *rows: tuple[str, str | None, int], partition: int = 0) -> None:
        """Processes rows (key, value, timestamp) of a partition; a reader may come in between, as anywhere."""
        raw = [(key.encode(), None if value is None else value.encode(), time) for key, value, time in rows]
        self.feed_raw(*raw, partition=partition)

    def feed_raw(self, *rows: tuple[bytes, bytes | None, int], partition: int = 0) -> None:
        """The same with serialized rows."""
        task, messages = self.by_partition[partition], []
        for key, value, timestamp in rows:
            offset = self.offsets[partition]
            messages.append(RawMessage(self.topic, partition, offset, timestamp, key, value, ()))
            self.offsets[partition] = offset + 1
        task.add(TopicPartition(self.topic, partition), messages)
        while task.is_ready():
            task.process(1000)

    def feed_whole(self, *rows: tuple[str, str | None, int]) -> None:
        """Processes rows of the first partition with no reader in between."""
        with self.by_partition[0].gate:
            self.feed(*rows)

    def commit(self) -> None:
        for task in self.by_partition.values():
            task.prepare_commit()
            task.post_commit({})

    def close(self) -> None:
        for task in self.by_partition.values():
            task.close()

    def store(
        self, name: str, store_type: QueryableStoreType[T], partition: int | None = None, stale: bool = False
    ) -> T:
        return self.queries.store(name, store_type, partition, stale)

    def query(
        self,
        name: str,
        query: Query[Any],
        *,
        partitions: Iterable[int] | None = None,
        bound: PositionBound = PositionBound.UNBOUNDED,
        require_active: bool = False,
        execution_info: bool = False,
    ) -> StateQueryResult[Any]:
        return self.queries.query(
            name,
            query,
            partitions=None if partitions is None else list(partitions),
            bound=bound,
            require_active=require_active,
            execution_info=execution_info,
        )

    def _check(self) -> None:
        for error in self.checks:
            raise error
