"""A cluster in memory whose tasks go on in the order that a seeded scheduler draws.

Every sub-topology runs as its own ``Task`` for each of its partitions, over topics that are lists of messages. What a
worker promises is kept: a partition is read in order, and what one task sends to a partition arrives in order. All else
is drawn: which task goes on, how many messages it gets, when it commits and so flushes its caches. Some tasks of each
schedule are slow, so that messages of others overtake theirs by far.

Invariant: a schedule is a pure function of the topology, the input and the seed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from pykstreams import BuiltInDslStoreSuppliers, StreamsConfig
from pykstreams.core.hashing import partition_for_key
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.runtime.clients.admin import TopicSpec
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.raw_message import RawMessage
from pykstreams.runtime.tasks.stores.initial_state import InitialState
from pykstreams.runtime.tasks.task import Task, TaskParts
from pykstreams.runtime.topics.topic_admin import TopicAdmin
from pykstreams.serdes import StringSerde
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.testing.capture import CapturingProducer
from pykstreams.testing.clock import MockClock
from pykstreams.testing.records import ProducedRecord
from pykstreams.topology.plan import SubtopologyPlan, TopologyPlan

_MOST_AT_ONCE = 4
_SLOWEST = 0.02


@dataclass(frozen=True, slots=True)
class Sent:
    """An input record: a text or bytes as key, and the bytes of its value; ``None`` deletes."""

    topic: str
    key: Any
    value: Any
    timestamp: int = 0


class Topics:
    """What ``TopicAdmin`` asks of a cluster: the topics of the input are there, all others are created."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.counts = dict(counts)

    @property
    def bootstrap(self) -> str:
        return "memory"

    def partition_counts(self, expected: Collection[str] = ()) -> dict[str, int]:
        return dict(self.counts)

    def touch(self, topics: Iterable[str]) -> None:
        """Nobody asks for this where topics are created one by one."""

    def create_topics(self, topics: Iterable[TopicSpec]) -> None:
        self.counts.update({topic.name: topic.partitions for topic in topics})

    def topic_settings(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        return {}


def simulated(**settings: object) -> StreamsConfig:
    """The settings of a simulation: stores in memory, text as default serdes, no cache, and what is given."""
    return StreamsConfig(
        {
            "application.id": "app",
            "default.key.serde": StringSerde(),
            "default.value.serde": StringSerde(),
            "dsl.store.suppliers.class": BuiltInDslStoreSuppliers.IN_MEMORY,
            "statestore.cache.max.bytes": 0,
            **settings,
        }
    )


class Cluster:
    """One run of a topology; ``run`` goes on until nothing is left to do.

    :param plan: the plan of the topology for ``config``; any number of clusters may share it.
    :param partitions: partition counts of the topics that the application does not own, outputs included.
    """

    def __init__(self, plan: TopologyPlan, config: StreamsConfig, partitions: Mapping[str, int], seed: int) -> None:
        self.random = Random(seed)
        self.config = config
        topics = Topics(partitions)
        layout = TopicAdmin(topics, plan, replication=1, embedded=False).prepare()
        self.counts = {**topics.counts, **layout.partitions}
        self.clock = MockClock(0)
        self.metrics = StreamsMetrics()
        self.producer = CapturingProducer()
        self.collector = self.make_collector(self.producer)
        self.logs: defaultdict[TopicPartition, list[RawMessage]] = defaultdict(list)
        parts = {part.id: part for part in plan.subtopologies}
        inputs = sorted(layout.inputs.items(), key=lambda item: (item[0].subtopology, item[0].partition))
        self.runners = [self._runner(task, parts[task.subtopology], sorted(read)) for task, read in inputs]

    def send(self, records: Iterable[Sent]) -> None:
        """Writes input, in this order, to the partitions of the default partitioner."""
        for record in records:
            value = None if record.value is None else _bytes(record.value)
            self.append(ProducedRecord(record.topic, None, _bytes(record.key), value, record.timestamp, ()))

    def run(self) -> None:
        """Draws schedules until every message has been read and no task has anything left to flush."""
        speeds = {runner: self.random.choice((1.0, 1.0, 0.2, _SLOWEST)) for runner in self.runners}
        while busy := [runner for runner in self.runners if runner.busy]:
            (runner,) = self.random.choices(busy, [speeds[one] for one in busy])
            runner.go_on()
            for record in self.producer.take():
                self.append(record)

    def rows(self, store: str) -> dict[Any, Any]:
        """What a store holds in all tasks together; a key that two tasks have is an error."""
        found: dict[Any, Any] = {}
        for runner in self.runners:
            if store in runner.task.stores:
                for key, value in runner.task.stores[store].all():
                    assert key not in found, f"{key!r} is in two partitions of store {store!r}"
                    found[key] = value.value
        return found

    def table(self, topic: str) -> dict[bytes | None, bytes]:
        """What remains of a topic when only the last record of each key counts, and deletions are carried out."""
        found: dict[bytes | None, bytes] = {}
        for place in sorted(self.logs):
            if place.topic == topic:
                for message in self.logs[place]:
                    value = message.value()
                    if value is None:
                        found.pop(message.key(), None)
                    else:
                        found[message.key()] = value
        return found

    def close(self) -> None:
        """Closes all tasks."""
        for runner in self.runners:
            runner.task.close()

    def make_collector(self, producer: CapturingProducer) -> RecordCollector:
        """A way out, over a producer."""
        return RecordCollector(
            producer,
            config=self.config,
            partition_count=lambda topic: self.counts[topic],
            holds_changelogs=True,
        )

    def place_of(self, record: ProducedRecord) -> TopicPartition:
        """The partition that a record goes to."""
        count, chosen = self.counts.get(record.topic, 1), record.partition
        if chosen is None:
            chosen = self.random.randrange(count) if record.key is None else partition_for_key(record.key, count)
        assert 0 <= chosen < count, f"{record} is sent to a partition that is not there"
        return TopicPartition(record.topic, chosen)

    def append(self, record: ProducedRecord) -> None:
        """Puts a record at the end of the partition that it goes to."""
        self.append_to(self.place_of(record), record)

    def append_to(self, place: TopicPartition, record: ProducedRecord) -> None:
        """Puts a record at the end of a partition."""
        log, time = self.logs[place], record.timestamp or 0
        log.append(RawMessage(*place, len(log), time, record.key, record.value, record.headers))

    def _runner(self, task_id: TaskId, part: SubtopologyPlan, read: Sequence[TopicPartition]) -> Runner:
        return Runner(self, task_id, part, read)


class Runner:
    """A task, how far it has read each partition, and whether it may have something to flush."""

    def __init__(
        self, cluster: Cluster, task_id: TaskId, part: SubtopologyPlan, read: Sequence[TopicPartition]
    ) -> None:
        self._cluster = cluster
        self._id, self._part = task_id, part
        self._logs = {place: cluster.logs[place] for place in read}
        self._read = dict.fromkeys(read, 0)
        self.task = self._begin()

    def _begin(self) -> Task:
        task = self._make_task(self._cluster.collector)
        task.open_stores()
        task.start({})
        return task

    def _make_task(self, collector: RecordCollector, **more: Any) -> Task:
        cluster = self._cluster
        return Task(
            self._id,
            self._part,
            list(self._read),
            TaskParts(
                config=cluster.config,
                clock=cluster.clock,
                collector=collector,
                cache=RecordCache(cluster.config.statestore_cache_max_bytes),
                metrics=cluster.metrics,
            ),
            InitialState(Path("unused")),
            **more,
        )

    @property
    def busy(self) -> bool:
        return self.task.commit_needed or bool(self._unread()) or self.task.buffered > 0

    def go_on(self) -> None:
        """Takes some messages, or processes some that it has, or commits."""
        random, task = self._cluster.random, self.task
        unread = self._unread()
        choices = ["read"] * 2 * bool(unread) + ["process"] * 3 * (task.buffered > 0) + ["commit"] * task.commit_needed
        match random.choice(choices):
            case "read":
                place = random.choice(unread)
                start = self._read[place]
                taken = self._logs[place][start : start + random.randint(1, _MOST_AT_ONCE)]
                self._read[place] = start + len(taken)
                task.add(place, taken)
            case "process":
                task.process(random.randint(1, _MOST_AT_ONCE))
            case "commit":
                self._commit()

    def _commit(self) -> None:
        self.task.prepare_commit()
        self.task.post_commit({})
        self._cluster.collector.check()

    def _unread(self) -> list[TopicPartition]:
        return [place for place, log in self._logs.items() if self._read[place] < len(log)]


def _bytes(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data
