"""Help for assignors: the tasks as they were, and standby tasks (``TaskAssignmentUtils``, 4.3.1)."""

from __future__ import annotations

from pykstreams.runtime.membership.assignment.group import ClientTasks
from pykstreams.runtime.membership.assignment.standbys import standby_placement
from pykstreams.runtime.membership.assignors.application_state import ApplicationState
from pykstreams.runtime.membership.assignors.assignments import KafkaStreamsAssignment
from pykstreams.runtime.membership.assignors.groups import (
    Assignments,
    assigned_tasks,
    group_of,
    logged_tasks,
    shares_of,
    write_shares,
)
from pykstreams.runtime.membership.process_id import ProcessId


def identity_assignment(application_state: ApplicationState) -> dict[ProcessId, KafkaStreamsAssignment]:
    """Returns the tasks that each instance had before.

    Tasks that are new are on no instance, and tasks that there are no more may be on some.
    """
    return {
        client.process_id: KafkaStreamsAssignment(
            client.process_id, assigned_tasks(ClientTasks(client.previous_active, client.previous_standby))
        )
        for client in group_of(application_state).clients
    }


def default_standby_task_assignment(application_state: ApplicationState, assignments: Assignments) -> None:
    """Adds ``num.standby.replicas`` standby tasks of each task with changelogs to the assignments.

    They go to the instances with least to do, and to such with other tags than those that have the task already where
    ``rack.aware.assignment.tags`` is set. Instances without assignment get one. ``ValueError``: an assignment is of an
    instance that is not in the application state.
    """
    group = group_of(application_state)
    shares = shares_of(group, assignments)
    if group.configs.num_standby_replicas:
        standby_placement(group.configs).place(shares, logged_tasks(group), group.configs.num_standby_replicas)
    write_shares(shares, assignments)
