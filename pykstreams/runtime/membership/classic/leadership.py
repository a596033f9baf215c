"""Leading a classic group: the subscriptions of all members become their assignments, by what the cluster says.

Invariant: the topics that tasks read and write are there before anybody is given a task.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from pykstreams.core.clock import Clock
from pykstreams.core.errors import ClusterError, MissingSourceTopicError, TaskAssignmentError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.errors import GroupError
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.membership.assignment.check import MemberAssignment
from pykstreams.runtime.membership.assignment.configs import STRATEGY_NONE, AssignmentConfigs
from pykstreams.runtime.membership.assignment.group import Racks, Task
from pykstreams.runtime.membership.assignment.leader import Member, Topics, lead, refuse_all
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.membership.protocol.assignor_error import AssignorError
from pykstreams.runtime.membership.protocol.consumer_protocol import ConsumerAssignment, decode_consumer_subscription
from pykstreams.runtime.membership.protocol.user_data import MalformedUserDataError
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.topology.plan import TopologyPlan

log = logging.getLogger(__name__)


class ClusterView(Protocol):
    """The methods of an administrative client that a leader calls."""

    def end_offsets(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]: ...

    def racks(self, partitions: Collection[TopicPartition]) -> Racks:
        """The racks of the replicas of partitions; one whose racks are not all known is left out."""
        ...


class Leadership:
    """The work of a member that is chosen to lead; for the thread of its session.

    :param prepare: checks the topics, and creates those that may be missing.
    :param committed: reads what the group has committed, or raises ``GroupError``.
    """

    def __init__(
        self,
        plan: TopologyPlan,
        *,
        prepare: Callable[[], TopicLayout],
        cluster: ClusterView,
        committed: Callable[[Collection[TopicPartition]], Offsets],
        configs: AssignmentConfigs,
        process_id: ProcessId,
        clock: Clock,
    ) -> None:
        self._plan = plan
        self._prepare = prepare
        self._cluster = cluster
        self._committed = committed
        self._configs = configs
        self._process_id = process_id
        self._clock = clock

    def assign(self, subscriptions: Mapping[str, bytes]) -> dict[str, bytes]:
        """Returns the assignment of each member; ``ClusterUnavailableError``: the topics cannot be seen now.

        Where a source topic is missing, or the tasks cannot be shared out, all members are told so, and end.
        """
        members = {name: _member(name, subscription) for name, subscription in subscriptions.items()}
        try:
            layout = self._prepare()
        except MissingSourceTopicError as error:
            log.error("this worker leads the group, and gives nobody a task: %s", error)
            given = refuse_all(members, AssignorError.INCOMPLETE_SOURCE_TOPIC_METADATA)
        else:
            given = self._given(members, layout)
        for name, one in sorted(given.items()):
            log.info(
                "as the leader, gives %s tasks %s; standby %s", name, _names(one.info.active), _names(one.info.standby)
            )
        return {
            name: ConsumerAssignment(frozenset(one.partitions), one.info.encode()).encode()
            for name, one in given.items()
        }

    def _given(self, members: Mapping[str, Member], layout: TopicLayout) -> dict[str, MemberAssignment]:
        topics, now_ms = self._topics(layout), self._clock.now_ms()
        try:
            return lead(members, topics, self._configs, process_id=self._process_id, now_ms=now_ms)
        except TaskAssignmentError as error:
            log.error("this worker leads the group, and could not share out the tasks: %s", error)
            return refuse_all(members, AssignorError.ASSIGNMENT_ERROR)

    def _topics(self, layout: TopicLayout) -> Topics:
        changelogs = {part.id: frozenset(part.changelogs.values()) for part in self._plan.subtopologies}
        tasks = tuple(
            Task(
                task_id,
                inputs,
                frozenset(TopicPartition(topic, task_id.partition) for topic in changelogs[task_id.subtopology]),
            )
            for task_id, inputs in sorted(layout.inputs.items())
        )
        racks: Racks = {}
        if self._configs.rack_aware_assignment_strategy != STRATEGY_NONE:
            racks = self._cluster.racks({place for task in tasks for place in task.inputs | task.changelogs})
        return Topics(tasks, self._end_sums(tasks), racks)

    def _end_sums(self, tasks: Collection[Task]) -> Mapping[TaskId, int] | None:
        """How far the state of each task could be; ``None``: unknown, so nobody moves a task for its lag.

        A source topic that serves as changelog counts up to what the group has committed of it.
        """
        stateful = [task for task in tasks if task.stateful]
        own = {place for task in stateful for place in task.changelogs - task.inputs}
        reused = {place for task in stateful for place in task.changelogs & task.inputs}
        try:
            ends = self._cluster.end_offsets(own) if own else {}
            committed = self._committed(reused) if reused else {}
        except (ClusterError, GroupError) as error:
            log.warning("the ends of changelogs are unknown, so tasks stay where they were: %s", error)
            return None
        reached = {**ends, **{place: committed[place][0] for place in reused if place in committed}}
        return {task.id: sum(reached.get(place, 0) for place in task.changelogs) for task in stateful}


def _member(name: str, subscription: bytes) -> Member:
    try:
        found = decode_consumer_subscription(subscription)
    except MalformedUserDataError as error:
        log.error("the subscription of member %s cannot be read: %s", name, error)
        return Member(b"")
    return Member(found.user_data, found.owned, found.rack)


def _names(tasks: Collection[TaskId]) -> str:
    return ", ".join(map(str, sorted(set(tasks)))) or "none"
