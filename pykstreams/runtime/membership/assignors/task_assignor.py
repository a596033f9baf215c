"""``TaskAssignor``: a user's way to share out tasks among the instances of an application (KIP-924)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from pykstreams.core.config import StreamsConfig
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.membership.assignors.application_state import ApplicationState
from pykstreams.runtime.membership.assignors.assignments import TaskAssignment


class AssignmentError(Enum):
    """Mistakes of an assignment (``TaskAssignor.AssignmentError``)."""

    NONE = "none"
    ACTIVE_TASK_ASSIGNED_MULTIPLE_TIMES = "an active task is on several instances"
    INVALID_STANDBY_TASK = "a task without stores has a standby task"
    MISSING_PROCESS_ID = "an instance is left out"
    UNKNOWN_PROCESS_ID = "an instance is not in the group"
    UNKNOWN_TASK_ID = "a task is none of the application"


@dataclass(frozen=True, slots=True)
class Subscription:
    """The word of a member of the group when it joins (``ConsumerPartitionAssignor.Subscription``).

    :param owned_partitions: what it works on, in the generation that it names.
    :param user_data: the bytes of Kafka Streams, with its tasks and their offsets.
    """

    topics: frozenset[str]
    user_data: bytes
    owned_partitions: frozenset[TopicPartition]
    generation_id: int
    rack_id: str | None


@dataclass(frozen=True, slots=True)
class Assignment:
    """The assignment of a member of the group (``ConsumerPartitionAssignor.Assignment``).

    :param user_data: the bytes of Kafka Streams, with its active and standby tasks.
    """

    partitions: tuple[TopicPartition, ...]
    user_data: bytes


GroupSubscription: TypeAlias = Mapping[str, Subscription]
"""The subscriptions of all members that can be read, by member id."""

GroupAssignment: TypeAlias = Mapping[str, Assignment]
"""The assignments of all members, by member id."""


class TaskAssignor(ABC):
    """Shares out tasks among instances (``TaskAssignor``); named by ``task.assignor.class``.

    The leader of the group asks its own assignor at each rebalance, from the thread that also says that its worker is
    alive: an assignor that takes longer than the session timeout loses the group. It is one object for as long as its
    ``StreamsConfig`` lives.
    """

    @abstractmethod
    def assign(self, application_state: ApplicationState) -> TaskAssignment:
        """Returns the tasks of each instance.

        ``TaskAssignmentError`` leaves active tasks where they are, and another rebalance asks again after
        ``probing.rebalance.interval.ms``. Any other exception ends the leading worker with a ``StreamsError``.
        """

    # B027: may be left as it is
    def on_assignment_computed(  # noqa: B027
        self, assignment: GroupAssignment, subscription: GroupSubscription, error: AssignmentError
    ) -> None:
        """Is told what the members are about to be told, and what is wrong with it.

        After any error but ``NONE`` nothing is sent, and the leading worker ends with a ``StreamsError``.

        :param assignment: empty after ``UNKNOWN_PROCESS_ID`` and ``UNKNOWN_TASK_ID``.
        """

    def configure(self, configs: StreamsConfig) -> None:  # noqa: B027
        """Is called once with the settings of the application, before anything else."""
