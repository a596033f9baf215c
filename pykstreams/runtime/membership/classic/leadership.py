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
from pykstreams.runtime.membership.assignment.joined_group import Member, Topics, asks_for_shutdown, join, refuse_all
from pykstreams.runtime.membership.assignment.leader import lead
from pykstreams.runtime.membership.assignors.leading import UserLead
from pykstreams.runtime.membership.assignors.task_assignor import Subscription, TaskAssignor
from pykstreams.runtime.membership.process_id import ProcessId
from pykstreams.runtime.membership.protocol.assignor_error import AssignorError
from pykstreams.runtime.membership.protocol.consumer_protocol import (
    ConsumerAssignment,
    ConsumerSubscription,
    decode_consumer_subscription,
)
from pykstreams.runtime.membership.protocol.subscription_info import SubscriptionInfo, decode_subscription
from pykstreams.runtime.membership.protocol.user_data import MalformedUserDataError
from pykstreams.runtime.membership.task_names import task_names
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.topology.plan import TopologyPlan

log = logging.getLogger(__name__)


class ClusterView(Protocol):
    """The methods of an administrative client that a leader calls."""

    def end_offsets(
        self, partitions: Collection[TopicPartition], *, timeout_s: float | None = None
    ) -> Mapping[TopicPartition, int]: ...

    def racks(self, partitions: Collection[TopicPartition]) -> Racks:
        """The racks of the replicas of partitions; one whose racks are not all known is left out."""
        ...


class Leadership:
    """The work of a member that is chosen to lead; for the thread of its session.

    :param prepare: checks the topics, and creates those that may be missing.
    :param ends_s: how long the ends of changelogs are asked for at most: nobody hears of the leader meanwhile, and the
        coordinator puts out a member of which it does not hear for its session.
    :param committed: reads what the group has committed, or raises ``GroupError``.
    :param assignor: the user's, ``task.assignor.class``.
    """

    def __init__(
        self,
        plan: TopologyPlan,
        *,
        prepare: Callable[[], TopicLayout],
        cluster: ClusterView,
        committed: Callable[[Collection[TopicPartition]], Offsets],
        ends_s: float,
        configs: AssignmentConfigs,
        process_id: ProcessId,
        clock: Clock,
        assignor: TaskAssignor | None = None,
    ) -> None:
        self._plan = plan
        self._prepare = prepare
        self._cluster = cluster
        self._committed = committed
        self._ends_s = ends_s
        self._configs = configs
        self._process_id = process_id
        self._clock = clock
        self._user_lead = None if assignor is None else UserLead(assignor, process_id)

    def assign(self, subscriptions: Mapping[str, bytes]) -> dict[str, bytes]:
        """Returns the assignment of each member; ``ClusterUnavailableError``: the topics cannot be seen now.

        Where a source topic is missing, or the tasks cannot be shared out, all members are told so, and end.
        ``StreamsError``: the user's assignor made a mistake.
        """
        said = {name: _said(name, subscription) for name, subscription in subscriptions.items()}
        given = self._assigned(said)
        for name, one in sorted(given.items()):
            log.info(
                "as the leader, gives %s (member %s) the tasks %s; standby %s",
                self._shown(said[name]),
                name,
                task_names(set(one.info.active)),
                task_names(one.info.standby),
            )
        return {
            name: ConsumerAssignment(frozenset(one.partitions), one.info.encode()).encode()
            for name, one in given.items()
        }

    def _assigned(self, said: Mapping[str, ConsumerSubscription | None]) -> Mapping[str, MemberAssignment]:
        members = _members(said)
        if asks_for_shutdown(members):  # whatever the topics are, which may be why
            return refuse_all(members, AssignorError.SHUTDOWN_REQUESTED)
        try:
            layout = self._prepare()
        except MissingSourceTopicError as error:
            log.error("this worker leads the group, and gives nobody a task: %s", error)
            return refuse_all(members, AssignorError.INCOMPLETE_SOURCE_TOPIC_METADATA)
        return self._given(members, said, layout)

    def _shown(self, said: ConsumerSubscription | None) -> str:
        """Who a member is, for the log: its id is of the broker's making, and may tell a reader nothing."""
        try:
            info = None if said is None else decode_subscription(said.user_data)
        except MalformedUserDataError:
            info = None
        if not isinstance(info, SubscriptionInfo):
            return "a worker that cannot be read"
        if info.process_id == self._process_id:
            return "a worker of this process"
        return f"a worker of process {info.process_id}" + (f" at {info.endpoint}" if info.endpoint else "")

    def _given(
        self, members: Mapping[str, Member], said: Mapping[str, ConsumerSubscription | None], layout: TopicLayout
    ) -> dict[str, MemberAssignment]:
        topics, now_ms = self._topics(layout), self._clock.now_ms()
        try:
            joined = join(members, topics, self._configs)
            if self._user_lead is not None:
                return self._user_lead.lead(joined, _subscriptions(said), now_ms=now_ms)
            return lead(joined, process_id=self._process_id, now_ms=now_ms)
        except TaskAssignmentError as error:
            log.error("this worker leads the group, and could not share out the tasks: %s", error)
            return refuse_all(members, AssignorError.ASSIGNMENT_ERROR)

    def _topics(self, layout: TopicLayout) -> Topics:
        changelogs = {part.id: frozenset(part.changelogs.values()) for part in self._plan.subtopologies}
        stores = {part.id: frozenset(part.stores) for part in self._plan.subtopologies}
        tasks = tuple(
            Task(
                task_id,
                inputs,
                frozenset(TopicPartition(topic, task_id.partition) for topic in changelogs[task_id.subtopology]),
                stores[task_id.subtopology],
            )
            for task_id, inputs in sorted(layout.inputs.items())
        )
        return Topics(tasks, self._end_sums(tasks), self._racks(tasks))

    def _racks(self, tasks: Collection[Task]) -> Racks:
        places = {place for task in tasks for place in task.inputs | task.changelogs}
        if self._configs.rack_aware_assignment_strategy != STRATEGY_NONE:
            return self._cluster.racks(places)
        if self._user_lead is None:
            return {}
        try:
            return self._cluster.racks(places)
        except ClusterError as error:
            log.warning("the racks of partitions are unknown to the task assignor: %s", error)
            return {}

    def _end_sums(self, tasks: Collection[Task]) -> Mapping[TaskId, int] | None:
        """How far the state of each task could be; ``None``: unknown, so nobody moves a task for its lag.

        A source topic that serves as changelog counts up to what the group has committed of it.
        """
        stateful = [task for task in tasks if task.stateful]
        own = {place for task in stateful for place in task.changelogs - task.inputs}
        reused = {place for task in stateful for place in task.changelogs & task.inputs}
        try:
            ends = self._cluster.end_offsets(own, timeout_s=self._ends_s) if own else {}
            committed = self._committed(reused) if reused else {}
        except (ClusterError, GroupError) as error:
            log.warning("the ends of changelogs are unknown, so tasks stay where they were: %s", error)
            return None
        reached = {**ends, **{place: committed[place][0] for place in reused if place in committed}}
        return {task.id: sum(reached.get(place, 0) for place in task.changelogs) for task in stateful}


def _said(name: str, subscription: bytes) -> ConsumerSubscription | None:
    try:
        return decode_consumer_subscription(subscription)
    except MalformedUserDataError as error:
        log.error("the subscription of member %s cannot be read: %s", name, error)
        return None


def _members(said: Mapping[str, ConsumerSubscription | None]) -> dict[str, Member]:
    return {
        name: Member(b"") if one is None else Member(one.user_data, one.owned, one.rack) for name, one in said.items()
    }


def _subscriptions(said: Mapping[str, ConsumerSubscription | None]) -> dict[str, Subscription]:
    return {
        name: Subscription(one.topics, one.user_data, one.owned, one.generation, one.rack)
        for name, one in said.items()
        if one is not None
    }
