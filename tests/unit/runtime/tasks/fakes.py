"""What tests of the runtime put in place of a cluster, of user code and of the worker around a task."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from pykstreams.core.config import StreamsConfig
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.processor import OperatorContext
from pykstreams.core.types import Forward, Headers
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.raw_message import RawMessage
from pykstreams.runtime.tasks.stores.initial_state import InitialState
from pykstreams.runtime.tasks.task import Task, TaskParts
from pykstreams.serdes import Serdes
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.testing.capture import CapturingProducer
from pykstreams.testing.clock import MockClock
from pykstreams.testing.records import ProducedRecord
from pykstreams.topology.plan import Node, ProcessorNode, SinkNode, SourceNode
from tests.unit.runtime import plans

PATIENCE_S = 20.0


class FakeKafkaError:
    """An error of the client, as delivery reports carry it."""

    def __init__(self, name: str, *, retriable: bool = False, fatal: bool = False) -> None:
        self._name = name
        self._retriable = retriable
        self._fatal = fatal

    def name(self) -> str:
        return self._name

    def str(self) -> str:
        return f"text of {self._name}"

    def retriable(self) -> bool:
        return self._retriable

    def fatal(self) -> bool:
        return self._fatal


class Operator:
    """An operator from a function ``(context) -> callable``."""

    def __init__(self, build: Callable[[OperatorContext], Forward]) -> None:
        self.build = build


def each(function: Callable[[Any, Any], Any]) -> Operator:
    """An operator that gives each record the value that the function returns."""

    def build(context: OperatorContext) -> Forward:
        def run(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            try:
                result = function(key, value)
            except Exception as error:
                context.fail(error, key, value, timestamp, headers)
                return
            context.forward(key, result, timestamp, headers)

        return run

    return Operator(build)


class Gates:
    """A coroutine function whose calls end when a test says so: ``gates[value].set_result(...)``, before or after."""

    def __init__(self) -> None:
        self.called: list[Any] = []
        self.open: defaultdict[Any, Future[Any]] = defaultdict(Future)
        self._lock = threading.Lock()

    def __getitem__(self, value: Any) -> Future[Any]:
        with self._lock:
            return self.open[value]

    async def __call__(self, value: Any) -> Any:
        self.called.append(value)
        return await asyncio.wrap_future(self[value])


def source(name: str, *topics: str, children: Iterable[str] = (), **changes: Any) -> SourceNode:
    return dataclasses.replace(plans.source(name, *topics), children=tuple(children), **changes)


def node(name: str, operator: Any, *children: str, stores: tuple[str, ...] = ()) -> ProcessorNode:
    return ProcessorNode(name, operator, stores, children)


def sink(name: str, topic: Any, **changes: Any) -> SinkNode:
    return dataclasses.replace(plans.sink(name, topic), **changes)


def message(
    topic: str,
    offset: int,
    value: Any,
    timestamp: int,
    *,
    key: bytes | None = b"k",
    partition: int = 0,
    headers: Headers = (),
) -> RawMessage:
    raw = value.encode() if isinstance(value, str) else value
    return RawMessage(topic, partition, offset, timestamp, key, raw, headers)


class TaskBench:
    """A task with everything it needs, in the role of the worker."""

    def __init__(
        self,
        *nodes: Node,
        topics: Iterable[str] = ("in",),
        config: dict[str, Any] | None = None,
        directory: Path | None = None,
        committed: dict[TopicPartition, tuple[int, str]] | None = None,
        lag: Any = None,
        ends: dict[TopicPartition, int] | None = None,
        partition_count: int = 4,
        **parts: Any,
    ) -> None:
        self.config = StreamsConfig(
            {
                "application.id": "shop",
                "default.key.serde": Serdes.string(),
                "default.value.serde": Serdes.string(),
                **(config or {}),
            }
        )
        self.clock = MockClock(1000)
        self.producer = CapturingProducer()
        self.metrics = StreamsMetrics()
        self.collector = RecordCollector(
            self.producer,
            config=self.config,
            partition_count=lambda topic: partition_count,
        )
        self.woken = threading.Event()
        self.partitions = tuple(TopicPartition(topic, 0) for topic in topics)
        self.task = Task(
            TaskId(0, 0),
            plans.part(0, *nodes, **parts),
            self.partitions,
            TaskParts(
                config=self.config,
                clock=self.clock,
                collector=self.collector,
                cache=RecordCache(0),
                metrics=self.metrics,
                wake=self.woken.set,
            ),
            InitialState(directory or Path("unused")),
            lag=lag,
            end_offsets=None if ends is None else lambda places: {place: ends[place] for place in places},
        )
        self.changelogs = self.task.open_stores()
        self.task.start(committed or {})

    def feed(self, *messages: RawMessage, limit: int = 1000) -> int:
        for found in messages:
            self.task.add(TopicPartition(found.topic(), found.partition()), [found])
        return self.task.process(limit)

    def wait_for(self, running: int) -> None:
        """Waits until so many records in flight are still being worked on."""
        while True:
            self.woken.clear()
            if self.task.running == running:
                return
            assert self.woken.wait(PATIENCE_S), f"{self.task.running} records run, {running} were expected"

    def commit(self) -> dict[TopicPartition, tuple[int, str]]:
        """Commits as a worker does, when nothing is in flight any more."""
        assert self.task.settle()
        offsets = self.task.prepare_commit()
        self.task.post_commit({})
        return offsets

    def sent(self) -> list[ProducedRecord]:
        return self.producer.take()

    def values(self) -> list[str | None]:
        return [None if record.value is None else record.value.decode() for record in self.sent()]

    @property
    def dropped(self) -> int:
        return self.metrics.counter("dropped-records-total", "stream-task-metrics", task_id="0_0").total
