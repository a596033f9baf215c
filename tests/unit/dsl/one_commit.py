"""Runs a topology of one sub-topology over some records with one commit at the end, as a worker may.

The test driver commits after each record, so that a cache never holds more than what one record has changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pykstreams import StreamsConfig, Topology
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.raw_message import RawMessage
from pykstreams.runtime.tasks.stores.initial_state import InitialState
from pykstreams.runtime.tasks.task import Task, TaskParts
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.testing.capture import CapturingProducer
from pykstreams.testing.clock import MockClock


def run_in_one_commit(
    topology: Topology, config: StreamsConfig, records: Iterable[tuple[str, bytes, bytes]]
) -> list[Any]:
    """What is produced when the records (topic, key, value) come, one a millisecond."""
    (part,) = topology.plan(config).subtopologies
    producer = CapturingProducer()
    task = Task(
        TaskId(0, 0),
        part,
        tuple(TopicPartition(topic, 0) for topic in part.source_topics),
        TaskParts(
            config=config,
            clock=MockClock(0),
            collector=RecordCollector(producer, config=config, partition_count=lambda topic: 1),
            cache=RecordCache(config.statestore_cache_max_bytes),
            metrics=StreamsMetrics(),
        ),
        InitialState(Path("unused")),
    )
    for store in task.open_stores().values():
        store.end_restore()
    task.start({})
    total = 0
    for time, (topic, key, value) in enumerate(records):
        task.add(TopicPartition(topic, 0), [RawMessage(topic, 0, time, time, key, value, ())])
        total += 1
    while task.process(total):
        pass
    task.prepare_commit()
    task.post_commit({})
    task.close()
    return producer.take()
