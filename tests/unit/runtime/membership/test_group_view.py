"""The group as its standby tasks see it: tasks by instance, from the task topics and client ids of members."""

from __future__ import annotations

from collections.abc import Collection

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.membership.group_view import TaskTopicGroup
from pykstreams.runtime.membership.task_topics import TaskTopics

ONE, TWO = "0d1c9ea6-0f3b-4b7e-8f53-52d4a6d3a6b1", "7c1c9ea6-0f3b-4b7e-8f53-52d4a6d3a6b2"
ORDERS = TopicPartition("orders", 0)


class Brokers:
    def __init__(self) -> None:
        self.members: list[tuple[str, list[TopicPartition]]] | None = None
        self.history: list[object] = []

    def group_members(self, group: str) -> list[tuple[str, list[TopicPartition]]] | None:
        self.history.append(group)
        return self.members

    def committed(self, partitions: Collection[TopicPartition], timeout: float) -> Offsets | None:
        return dict.fromkeys(partitions, (7, ""))

    def close(self, leave: bool) -> None:
        self.history.append("closed")


def group(brokers: Brokers) -> TaskTopicGroup:
    def open_client() -> Brokers:
        brokers.history.append("opened")
        return brokers

    return TaskTopicGroup("shop", TaskTopics("shop"), brokers, open_client)


def test_workers_of_one_process_are_one_instance_and_other_topics_are_not_tasks() -> None:
    brokers = Brokers()
    brokers.members = [
        (
            f"shop-{ONE}-StreamThread-1-membership",
            [TopicPartition("shop-tasks-a-0", 0), TopicPartition("shop-tasks-b-1", 0)],
        ),
        (f"shop-{ONE}-StreamThread-2-membership", [TopicPartition("shop-tasks-j-0", 0)]),
        (f"mine-StreamThread-1-membership-{TWO}", [TopicPartition("shop-tasks-7", 0), ORDERS]),
    ]

    assert group(brokers).members() == {ONE: {TaskId(0, 0), TaskId(1, 0), TaskId(0, 1)}, TWO: frozenset()}
    assert brokers.history == ["shop"]


def test_nothing_is_known_while_tasks_are_shared_out() -> None:
    assert group(Brokers()).members() is None


def test_client_for_offsets_is_made_when_it_is_needed_and_closed() -> None:
    brokers = Brokers()
    found = group(brokers)
    found.close()

    assert found.committed([]) == {}
    assert brokers.history == []
    assert found.committed([ORDERS]) == found.committed([ORDERS]) == {ORDERS: (7, "")}
    found.close()
    assert brokers.history == ["opened", "closed"]
