"""The metadata of a worker: the client ids under which brokers know it, and its standby tasks."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.worker.thread_metadata import TaskMetadata, ThreadMetadata, metadata_of
from tests.unit.runtime.cluster_fakes import FakeTask

PLACE = TopicPartition("orders", 1)


@dataclass
class Described:
    name: str = "shop-StreamThread-2"
    thread_state: str = "RUNNING"

    def active_tasks(self) -> frozenset[TaskMetadata]:
        return frozenset()


def test_client_ids_are_those_of_kafka_streams_and_standby_tasks_have_no_offsets() -> None:
    standby = FakeTask(TaskId(0, 1), [PLACE], {})

    assert metadata_of(Described(), [standby], "shop-admin") == ThreadMetadata(
        "RUNNING",
        "shop-StreamThread-2",
        frozenset(),
        frozenset({TaskMetadata(TaskId(0, 1), frozenset({PLACE}), {}, {}, None)}),
        "shop-StreamThread-2-consumer",
        "shop-StreamThread-2-restore-consumer",
        frozenset({"shop-StreamThread-2-producer"}),
        "shop-admin",
    )
