"""A worker that is killed under at-least-once loses no record that waited in a store: the store is all that has it.

The worst that a producer can leave behind of what it was given since the last commit: all of the changelogs, and
nothing of the results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from pykstreams import (
    BufferConfig,
    Consumed,
    CountWindows,
    Joined,
    JoinWindows,
    KStream,
    KTable,
    Materialized,
    Serdes,
    Stores,
    StreamsBuilder,
    StreamsConfig,
    Suppressed,
)
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.settings.keys import EMIT_INTERVAL_OF_JOINS
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.raw_message import RawMessage
from pykstreams.runtime.tasks.stores.initial_state import InitialState
from pykstreams.runtime.tasks.task import Task, TaskParts
from pykstreams.serdes.carried import Carried, CarriedSerde
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.testing.capture import CapturingProducer
from pykstreams.testing.clock import MockClock
from pykstreams.testing.records import ProducedRecord

Define = Callable[[StreamsBuilder], KStream[str, Any] | KTable[str, Any]]
CARRIED = CarriedSerde(Serdes.string())


def outer_join(builder: StreamsBuilder) -> KStream[str, str]:
    left: KStream[str, str] = builder.stream("a")
    right: KStream[str, str] = builder.stream("b")
    return left.outer_join(right, lambda one, other: f"{one}", windows=JoinWindows(5, grace=5))


def join_after_grace(builder: StreamsBuilder) -> KStream[str, str]:
    history = Materialized[str, str](Stores.persistent_versioned_key_value_store("rates", 1000))
    stream: KStream[str, str] = builder.stream("a")
    joined: Joined[str, str, str] = Joined(name="later", grace_period=10)
    return stream.left_join(builder.table("b", materialized=history), lambda one, other: f"{one}", joined=joined)


def join_by_another_key_after_grace(builder: StreamsBuilder) -> KStream[str, str]:
    history = Materialized[str, str](Stores.persistent_versioned_key_value_store("rates", 1000))
    stream: KStream[str, str] = builder.stream("a")
    return stream.left_join(
        builder.table("b", materialized=history),
        lambda one, other: f"{one}",
        key_selector=lambda key, value: value,
        joined=Joined(name="later", grace_period=10),
    )


def window_of_two(builder: StreamsBuilder) -> KStream[str, str]:
    one_key: Any = Serdes.from_functions(str.encode, lambda key: "one")
    stream: KStream[str, str] = builder.stream("a", Consumed(key_serde=one_key, value_serde=Serdes.string()))
    return stream.group_by_key().windowed_by(CountWindows(2)).reduce(lambda first, second: first)


def suppressed(builder: StreamsBuilder) -> KTable[str, str]:
    return builder.table("a").suppress(Suppressed.until_time_limit(10, BufferConfig.UNBOUNDED))


def reordered(builder: StreamsBuilder) -> KTable[str, str]:
    return builder.table("a", reorder_grace=10)


class Application:
    """Input, changelogs and results, which outlive the task; of its sub-topologies, the one that has stores."""

    def __init__(self, define: Define, folder: Path) -> None:
        self._config = StreamsConfig(
            {
                "application.id": "app",
                "default.key.serde": Serdes.string(),
                "default.value.serde": Serdes.string(),
                EMIT_INTERVAL_OF_JOINS: 0,
            }
        )
        builder = StreamsBuilder()
        found = define(builder)
        (found.to_stream() if isinstance(found, KTable) else found).to("out")
        (self._part,) = (part for part in builder.build().plan(self._config).subtopologies if part.stores)
        (self._topic,) = (topic for topic in self._part.source_topics if topic != "b")
        self._folder = folder
        self._starts = 0
        self._inputs: dict[TopicPartition, list[RawMessage]] = {
            TopicPartition(topic, 0): [] for topic in self._part.source_topics
        }
        self._committed: dict[TopicPartition, tuple[int, str]] = {}
        self._changelogs: dict[str, list[Any]] = {name: [] for name in self._part.changelog_topics}
        self.results: list[bytes | None] = []

    def start(self) -> None:
        """Starts a worker without a folder of its own."""
        self._starts += 1
        self._producer = CapturingProducer()
        metrics = StreamsMetrics()
        self._collector = RecordCollector(
            self._producer, config=self._config, partition_count=lambda topic: 1, holds_changelogs=True
        )
        self._task = Task(
            TaskId(0, 0),
            self._part,
            tuple(self._inputs),
            TaskParts(
                config=self._config,
                clock=MockClock(0),
                collector=self._collector,
                cache=RecordCache(0),
                metrics=metrics,
            ),
            InitialState(self._folder / str(self._starts)),
        )
        for place, store in self._task.open_stores().items():
            store.restore(self._changelogs[place.topic])
            store.end_restore()
        self._task.start(self._committed)
        for place, messages in self._inputs.items():
            offset = self._committed[place][0] if place in self._committed else 0
            self._task.add(place, messages[offset:])

    def process(self, value: str, at: int) -> None:
        place = TopicPartition(self._topic, 0)
        queue, key = self._inputs[place], value.encode()
        raw = key if self._topic == "a" else CARRIED.serialize(self._topic, Carried(None, value))
        queue.append(RawMessage(self._topic, 0, len(queue), at, key, raw, ()))
        self._task.add(place, queue[-1:])
        self._task.process(10)

    def process_again(self) -> None:
        self._task.process(10)

    def commit(self) -> None:
        offsets = self._task.prepare_commit()
        self._collector.flush()
        self._keep(self._producer.take())
        self._committed.update(offsets)
        self._task.post_commit({})

    def kill(self, *, committing: bool) -> None:
        """Ends the worker; only what it gave the producer for changelogs has arrived.

        :param committing: whether it had begun a commit, and waited for the brokers.
        """
        if committing:
            self._task.prepare_commit()
        self._keep(record for record in self._producer.take() if record.topic in self._changelogs)
        self._task.close()

    def _keep(self, records: Iterable[ProducedRecord]) -> None:
        for record in records:
            if record.topic in self._changelogs:
                self._changelogs[record.topic].append((record.key, record.value, record.timestamp or 0, record.headers))
            else:
                self.results.append(record.value)


@pytest.mark.parametrize("committing", [False, True], ids=["between commits", "committing"])
@pytest.mark.parametrize(
    "define",
    [outer_join, join_after_grace, join_by_another_key_after_grace, window_of_two, suppressed, reordered],
)
def test_a_record_that_waited_comes_out_though_the_worker_that_gave_it_was_killed(
    define: Define, committing: bool, tmp_path: Path
) -> None:
    app = Application(define, tmp_path)
    app.start()
    app.process("waits", at=100)
    app.commit()
    assert app.results == []

    app.process("later", at=200)
    app.kill(committing=committing)
    app.start()
    app.process_again()
    app.commit()

    assert app.results == [b"waits"]
