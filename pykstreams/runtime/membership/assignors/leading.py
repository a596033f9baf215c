"""Leading a group by the assignor of the user: what it answers is validated, and told to the members."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from pykstreams.core.errors import StreamsError, TaskAssignmentError
from pykstreams.core.user_code.functions import describe_function
from pykstreams.runtime.membership.assignment.check import MemberAssignment
from pykstreams.runtime.membership.assignment.joined_group import JoinedGroup
from pykstreams.runtime.membership.assignment.leader import lead
from pykstreams.runtime.membership.assignment.sticky import assign_previous
from pykstreams.runtime.membership.assignors.application_state import ApplicationState
from pykstreams.runtime.membership.assignors.assignments import TaskAssignment, TaskType
from pykstreams.runtime.membership.assignors.groups import application_state_of, client_tasks
from pykstreams.runtime.membership.assignors.task_assignor import (
    Assignment,
    AssignmentError,
    GroupAssignment,
    Subscription,
    TaskAssignor,
)
from pykstreams.runtime.membership.assignors.validation import validate_task_assignment
from pykstreams.runtime.membership.process_id import ProcessId

log = logging.getLogger(__name__)

T = TypeVar("T")

_CANNOT_BE_SENT: Final = (AssignmentError.UNKNOWN_PROCESS_ID, AssignmentError.UNKNOWN_TASK_ID)


class UserLead:
    """The leader's work with an assignor of the user (``StreamsPartitionAssignor.assignTasksToClients``, 4.3.1).

    Invariant: what the assignor does wrong ends this worker, with a ``StreamsError`` that names its class. The other
    members are told nothing, and join again under another leader, which has an assignor of its own.

    :param process_id: the instance of the leader.
    """

    def __init__(self, assignor: TaskAssignor, process_id: ProcessId) -> None:
        self._assignor = assignor
        self._name = describe_function(type(assignor))
        self._process_id = process_id

    def lead(
        self, joined: JoinedGroup, subscription: Mapping[str, Subscription], *, now_ms: int
    ) -> dict[str, MemberAssignment]:
        """Returns the assignment of each member; ``WrongAssignmentError``: it may not be sent."""
        if not joined.group.clients:
            return dict(joined.refused)
        state = application_state_of(joined)
        try:
            answer = self._ask("assign", lambda: self._assignor.assign(state))
        except TaskAssignmentError as error:
            log.warning("tasks stay where they were, as the task assignor %s could not decide: %s", self._name, error)
            return lead(joined, process_id=self._process_id, now_ms=now_ms, assign=assign_previous)
        if not isinstance(answer, TaskAssignment):
            raise StreamsError(f"the task assignor {self._name} returned {answer!r}; assign returns a TaskAssignment")
        mistake = validate_task_assignment(state, answer)
        told = {} if mistake in _CANNOT_BE_SENT else {**self._given(joined, answer), **joined.refused}
        if mistake is AssignmentError.NONE:
            _warn_of_unassigned(state, answer)
            joined.check(told)
        self._ask("on_assignment_computed", lambda: self._tell(told, subscription, mistake))
        if mistake is not AssignmentError.NONE:
            raise StreamsError(
                f"the task assignor {self._name} made a mistake, {mistake.name}: {mistake.value}; the log says which. "
                "validate_task_assignment finds it before assign returns"
            )
        return told

    def _given(self, joined: JoinedGroup, answer: TaskAssignment) -> dict[str, MemberAssignment]:
        follow_ups = {
            one.process_id: one.followup_rebalance_deadline
            for one in answer.assignment
            if one.followup_rebalance_deadline is not None
        }
        return joined.assignments(client_tasks(answer.assignment, joined.group.clients), follow_ups)

    def _tell(
        self, told: Mapping[str, MemberAssignment], subscription: Mapping[str, Subscription], error: AssignmentError
    ) -> None:
        assignment: GroupAssignment = {
            name: Assignment(one.partitions, one.info.encode()) for name, one in told.items()
        }
        self._assignor.on_assignment_computed(assignment, subscription, error)

    def _ask(self, method: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except TaskAssignmentError:
            raise
        except Exception as error:
            raise StreamsError(
                f"{method} of the task assignor {self._name} raised {error!r} while this worker led the group; "
                "correct the assignor (task.assignor.class)"
            ) from error


def _warn_of_unassigned(state: ApplicationState, answer: TaskAssignment) -> None:
    active = {task for one in answer.assignment for task in one.of_type(TaskType.ACTIVE)}
    missing = [str(task) for task in state.all_tasks if task not in active]
    if missing:
        log.warning(
            "the task assignor gives nobody the active tasks %s: their records wait until a rebalance",
            ", ".join(missing),
        )
