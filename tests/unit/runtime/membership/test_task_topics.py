"""Membership by task topics: their partitions are tasks, and nothing is committed after a loss."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import Any

import pytest

from pykstreams.core.errors import TaskMigratedError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.membership.membership import Assignment, Lost
from pykstreams.runtime.membership.task_topics import TaskTopicMembership, TaskTopics

ORDERS = TopicPartition("orders", 1)
TOPICS = TaskTopics("shop")
TASKS = [TaskId(subtopology, number) for subtopology in (0, 1) for number in (0, 1)]


class FakeGroup:
    """A consumer whose next poll brings what a test put there."""

    def __init__(self) -> None:
        self.topics: list[str] = []
        self.events: list[tuple[str, list[TopicPartition]]] = []
        self.commits: list[Offsets] = []
        self.left: bool | None = None
        self.callbacks: dict[str, Callable[[list[TopicPartition]], None]] = {}

    def subscribe(
        self,
        topics: Collection[str],
        *,
        on_assign: Callable[[list[TopicPartition]], None],
        on_revoke: Callable[[list[TopicPartition]], None],
        on_lost: Callable[[list[TopicPartition]], None],
    ) -> None:
        self.topics = list(topics)
        self.callbacks = {"assign": on_assign, "revoke": on_revoke, "lose": on_lost}

    def poll(self, timeout: float) -> None:
        events, self.events = self.events, []
        for name, partitions in events:
            self.callbacks[name](partitions)

    def commit(self, offsets: Offsets) -> bool:
        self.commits.append(offsets)
        return True

    def committed(self, partitions: Collection[TopicPartition], timeout: float) -> Offsets | None:
        return dict.fromkeys(partitions, (5, "m"))

    def group_metadata(self) -> Any:
        return b"metadata"

    def close(self, leave: bool) -> None:
        self.left = leave


@pytest.fixture
def group() -> FakeGroup:
    return FakeGroup()


@pytest.fixture
def revoked() -> list[frozenset[TaskId]]:
    return []


@pytest.fixture
def membership(group: FakeGroup, revoked: list[frozenset[TaskId]]) -> TaskTopicMembership:
    member = TaskTopicMembership(group, TOPICS)
    member.start(TASKS, revoked.append)
    return member


def test_subscribes_to_the_topics_of_all_tasks_and_again_when_there_are_more(
    membership: TaskTopicMembership, group: FakeGroup
) -> None:
    assert group.topics == ["shop-tasks-a-0", "shop-tasks-b-1", "shop-tasks-i-1", "shop-tasks-j-0"]

    membership.follow([*TASKS, TaskId(0, 2)])

    assert group.topics == ["shop-tasks-a-0", "shop-tasks-b-1", "shop-tasks-f-0", "shop-tasks-i-1", "shop-tasks-j-0"]


def test_does_not_subscribe_again_where_the_topics_stay_the_same(
    membership: TaskTopicMembership, group: FakeGroup
) -> None:
    group.topics = []

    membership.follow([*TASKS, TaskId(0, 8)])  # the second partition of the first topic

    assert group.topics == []


def test_joins_before_there_is_a_task(group: FakeGroup) -> None:
    TaskTopicMembership(group, TOPICS).start([], lambda _: None)

    assert group.topics == ["shop-tasks-a-0"]


@pytest.mark.parametrize("spread", [True, False])
def test_each_task_has_a_place_of_its_own(spread: bool) -> None:
    topics = TaskTopics("shop", spread=spread)
    tasks = [TaskId(subtopology, number) for subtopology in range(12) for number in range(40)]
    places = [topics.place(task) for task in tasks]

    assert len(set(places)) == len(tasks)
    assert [topics.task(place) for place in places] == tasks
    assert topics.task(TopicPartition("shop-tasks-1", 0)) is None
    assert sum(topics.topics(tasks).values()) == len(tasks)


def test_neighbours_in_the_order_of_partitions_are_tasks_of_different_subtopologies() -> None:
    tasks = [TaskId(subtopology, number) for subtopology in (0, 1) for number in range(4)]

    assert ["0_0", "1_0", "1_2", "0_2", "1_1", "0_1", "0_3", "1_3"] == [
        str(task) for task in sorted(tasks, key=TOPICS.place)
    ]


def test_assigned_partitions_are_tasks_and_add_up(membership: TaskTopicMembership, group: FakeGroup) -> None:
    group.events = [("assign", [TOPICS.place(TaskId(0, 2))])]
    first = membership.poll()
    group.events = [("assign", [TOPICS.place(TaskId(1, 0))])]
    second = membership.poll()

    assert first == Assignment(1, frozenset({TaskId(0, 2)}))
    assert second == Assignment(2, frozenset({TaskId(0, 2), TaskId(1, 0)}))
    assert membership.poll() is None


def test_revoked_tasks_may_be_committed_inside_the_callback(group: FakeGroup) -> None:
    member = TaskTopicMembership(group, TOPICS)
    seen: list[frozenset[TaskId]] = []

    def suspend(tasks: frozenset[TaskId]) -> None:
        seen.append(tasks)
        member.commit({ORDERS: (9, "")})

    member.start(TASKS, suspend)
    group.events = [("assign", [TOPICS.place(TaskId(0, 0)), TOPICS.place(TaskId(0, 1))])]
    member.poll()
    group.events = [("revoke", [TOPICS.place(TaskId(0, 1))])]

    change = member.poll()

    assert seen == [frozenset({TaskId(0, 1)})]
    assert group.commits == [{ORDERS: (9, "")}]
    assert change == Assignment(1, frozenset({TaskId(0, 0)}))


def test_nothing_is_committed_between_a_loss_and_its_acknowledgement(
    membership: TaskTopicMembership, group: FakeGroup
) -> None:
    group.events = [("assign", [TOPICS.place(TaskId(0, 0))])]
    membership.poll()
    group.events = [("lose", [TOPICS.place(TaskId(0, 0))])]

    lost = membership.poll()

    assert isinstance(lost, Lost)
    with pytest.raises(TaskMigratedError, match="this worker lost its tasks"):
        membership.commit({ORDERS: (9, "")})
    with pytest.raises(TaskMigratedError, match="this worker lost its tasks"):
        membership.transaction_metadata()
    assert group.commits == []


def test_group_is_not_polled_before_a_loss_is_acknowledged(membership: TaskTopicMembership, group: FakeGroup) -> None:
    """Polling would let the member join again with a fresh generation."""
    group.events = [("lose", [])]
    lost = membership.poll()
    group.events = [("assign", [TOPICS.place(TaskId(0, 0))])]

    again = membership.poll()
    assert isinstance(lost, Lost)
    assert again == lost

    membership.ack(lost)
    assert membership.poll() == Assignment(1, frozenset({TaskId(0, 0)}))


def test_loss_is_warned_of_with_the_tasks(
    membership: TaskTopicMembership, group: FakeGroup, caplog: pytest.LogCaptureFixture
) -> None:
    group.events = [("lose", [TOPICS.place(TaskId(1, 3)), TOPICS.place(TaskId(0, 2))])]

    with caplog.at_level(logging.WARNING):
        membership.poll()

    assert "tasks 0_2, 1_3 were lost without notice" in caplog.text


def test_empty_commit_asks_nobody(membership: TaskTopicMembership, group: FakeGroup) -> None:
    assert membership.commit({}) is True
    assert group.commits == []


def test_committed_offsets_come_with_their_metadata(membership: TaskTopicMembership) -> None:
    assert membership.committed([ORDERS]) == {ORDERS: (5, "m")}


@pytest.mark.parametrize("leave", [True, False])
def test_close_leaves_the_group_or_stays(membership: TaskTopicMembership, group: FakeGroup, leave: bool) -> None:
    membership.close(leave)

    assert group.left is leave


def test_note_of_a_task_lies_at_its_own_partition_of_the_task_topics(membership: TaskTopicMembership) -> None:
    assert membership.note_of(TaskId(1, 2)) == TOPICS.place(TaskId(1, 2))


def test_member_is_confirmed_by_committing_a_note_once_more_as_it_is(
    group: FakeGroup, membership: TaskTopicMembership
) -> None:
    task = TASKS[1]
    group.events = [("assign", [TOPICS.place(task)])]
    membership.poll()
    note = {membership.note_of(task): (0, "at work")}
    membership.commit({ORDERS: (7, "m"), **note})

    assert membership.confirm()
    assert group.commits[1:] == [note]


def test_member_that_has_noted_nothing_asks_nobody(group: FakeGroup, membership: TaskTopicMembership) -> None:
    group.events = [("assign", [TOPICS.place(TASKS[0])])]
    membership.poll()
    membership.commit({ORDERS: (7, "m")})

    assert membership.confirm()
    assert group.commits == [{ORDERS: (7, "m")}]


def test_note_of_a_task_that_has_gone_is_left_alone(group: FakeGroup, membership: TaskTopicMembership) -> None:
    task = TASKS[1]
    group.events = [("assign", [TOPICS.place(task)])]
    membership.poll()
    membership.commit({membership.note_of(task): (0, "at work")})
    group.events = [("revoke", [TOPICS.place(task)])]
    membership.poll()

    assert membership.confirm()
    assert len(group.commits) == 1


def test_member_that_lost_its_tasks_is_not_confirmed(group: FakeGroup, membership: TaskTopicMembership) -> None:
    group.events = [("assign", [TOPICS.place(TASKS[0])])]
    membership.poll()
    group.events = [("lose", [TOPICS.place(TASKS[0])])]
    membership.poll()

    with pytest.raises(TaskMigratedError):
        membership.confirm()
