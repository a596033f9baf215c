"""Sharing out the tasks of a client among its consumers, each of which has a thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from pykstreams.core.errors import TaskAssignmentError
from pykstreams.core.ids import TaskId
from pykstreams.runtime.membership.assignment.group import Client, ClientTasks
from pykstreams.runtime.membership.assignment.java_queue import JavaQueue
from pykstreams.runtime.membership.assignment.java_sets import in_hash_order


@dataclass(frozen=True, slots=True)
class ConsumerTasks:
    """The tasks of one consumer, in the order in which they were given to it."""

    active: tuple[TaskId, ...] = ()
    standby: tuple[TaskId, ...] = ()


def consumer_tasks(client: Client, tasks: ClientTasks) -> dict[str, ConsumerTasks]:
    """Returns the tasks of each consumer as ``StreamsPartitionAssignor`` of Kafka Streams 4.3.1 gives them.

    First the active tasks with state, then the standby tasks, then the tasks without state: all are spread evenly, and
    those with state stay on the consumer that has them as far as that leaves it even.
    """
    rounds = _Rounds(client)
    stateful = {task for task in tasks.active if task in client.lags}
    active = rounds.deal(in_hash_order(stateful), sticky=True)
    standby = rounds.deal(tuple(sorted(tasks.standby)), sticky=True)
    stateless = rounds.deal(in_hash_order(tasks.active - stateful), sticky=False)
    return {
        consumer: ConsumerTasks((*active[consumer], *stateless[consumer]), tuple(standby[consumer]))
        for consumer in sorted(client.consumers)
    }


@dataclass(slots=True)
class _Rounds:
    """Deals out one kind of tasks after the other, to the consumers that have the least so far."""

    client: Client
    loads: dict[str, int] = field(default_factory=dict)

    def deal(self, tasks: tuple[TaskId, ...], *, sticky: bool) -> dict[str, list[TaskId]]:
        consumers = sorted(self.client.consumers)
        given: dict[str, list[TaskId]] = {consumer: [] for consumer in consumers}
        least = (sum(self.loads.values()) + len(tasks)) // len(consumers)
        if tasks:
            left = JavaQueue(lambda task: task, tasks)
            skipped = self._deal_to_owners(given, left, least) if sticky else {}
            self._fill_up(given, left, least)
            self._deal_the_rest(given, left, least, skipped)
        for consumer, dealt in given.items():
            self.loads[consumer] = self._load(consumer) + len(dealt)
        return given

    def _deal_to_owners(
        self, given: Mapping[str, list[TaskId]], left: JavaQueue[TaskId], least: int
    ) -> dict[TaskId, str]:
        """Assigns consumers the tasks that they have, until they have their part; returns those that are too many."""
        skipped: dict[TaskId, str] = {}
        lags = self.client.lags
        for consumer, dealt in given.items():
            wanted = least - self._load(consumer)
            known = [task for task in self.client.consumers[consumer] if task in lags]
            for task in sorted(known, key=lambda task: (lags[task], task)):
                if task not in left:
                    continue
                if len(dealt) < wanted:
                    dealt.append(task)
                    left.remove(task)
                else:
                    skipped[task] = consumer
        return skipped

    def _fill_up(self, given: Mapping[str, list[TaskId]], left: JavaQueue[TaskId], least: int) -> None:
        """Assigns tasks in turn to the consumers that do not have their part."""
        lacking = deque(consumer for consumer, dealt in given.items() if self._load(consumer) + len(dealt) < least)
        while lacking:
            if not len(left):
                raise TaskAssignmentError("the tasks were used up before all consumers had their part")
            consumer = lacking.popleft()
            given[consumer].append(left.pop())
            if self._load(consumer) + len(given[consumer]) < least:
                lacking.append(consumer)

    def _deal_the_rest(
        self, given: Mapping[str, list[TaskId]], left: JavaQueue[TaskId], least: int, skipped: Mapping[TaskId, str]
    ) -> None:
        """Assigns each consumer that has no more than its part one of the tasks that are left, its own first."""
        free = deque(consumer for consumer, dealt in given.items() if self._load(consumer) + len(dealt) == least)
        for task, consumer in sorted(skipped.items()):
            if consumer in free and task in left:
                given[consumer].append(task)
                left.remove(task)
                free.remove(consumer)
        for task in left:
            given[free.popleft()].append(task)

    def _load(self, consumer: str) -> int:
        return self.loads.get(consumer, 0)
