"""Between the values that users see and those that assignments are computed with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.membership.assignment.group import Client, ClientTasks, Group, Task
from pykstreams.runtime.membership.assignment.java_sets import in_hash_order, in_map_order
from pykstreams.runtime.membership.assignment.joined_group import JoinedGroup
from pykstreams.runtime.membership.assignment.shares import Shares
from pykstreams.runtime.membership.assignors.application_state import ApplicationState, KafkaStreamsState
from pykstreams.runtime.membership.assignors.assignments import AssignedTask, KafkaStreamsAssignment, TaskType
from pykstreams.runtime.membership.assignors.task_info import TaskInfo, TaskTopicPartition
from pykstreams.runtime.membership.process_id import ProcessId

Assignments = MutableMapping[ProcessId, KafkaStreamsAssignment]


def application_state_of(joined: JoinedGroup) -> ApplicationState:
    """Returns what an assignor sees of a group."""
    group = joined.group
    return ApplicationState(
        (
            KafkaStreamsState(
                client.process_id,
                client.consumers,
                tuple(client.previous_active),
                tuple(client.previous_standby),
                client.lags if joined.lags_known else None,
                joined.hosts.get(client.process_id),
                client.tags,
                client.rack,
            )
            for client in group.clients
        ),
        (
            TaskInfo(
                task.id,
                frozenset(
                    TaskTopicPartition(place, place in task.inputs, place in task.changelogs, group.racks.get(place))
                    for place in task.inputs | task.changelogs
                ),
                task.stores,
            )
            for task in group.tasks
        ),
        group.configs,
    )


def group_of(state: ApplicationState) -> Group:
    """Returns the group of an application, without lags."""
    tasks = state.all_tasks.values()
    racks = {
        place.topic_partition: place.rack_ids
        for task in tasks
        for place in task.topic_partitions
        if place.rack_ids is not None
    }
    clients = (
        Client(
            process,
            {consumer: frozenset(known) for consumer, known in one.consumers.items()},
            {},
            frozenset(one.previous_active_tasks),
            frozenset(one.previous_standby_tasks),
            one.client_tags,
            one.rack_id,
        )
        for process, one in state.kafka_streams_states(compute_task_lags=False).items()
    )
    return Group(tuple(clients), tuple(map(_task, tasks)), state.assignment_configs, racks)


def shares_of(group: Group, assignments: Mapping[ProcessId, KafkaStreamsAssignment]) -> Shares:
    """Returns the shares that assignments say; ``ValueError``: one is of an instance that the group has not."""
    shares = Shares(group.clients)
    for process, assignment in assignments.items():
        if process not in shares:
            raise ValueError(f"instance {process} has an assignment, and is not in the application state")
        shares[process].active.update(assignment.of_type(TaskType.ACTIVE))
        shares[process].standby.update(assignment.of_type(TaskType.STANDBY))
    return shares


def write_shares(shares: Shares, assignments: Assignments) -> None:
    """Changes assignments to what the shares are; instances that have none yet get one."""
    for process, share in shares.items():
        one = assignments.setdefault(process, KafkaStreamsAssignment(process))
        for task in one.tasks.values():
            one.remove_task(task)
        for task in assigned_tasks(ClientTasks(frozenset(share.active), frozenset(share.standby))):
            one.assign_task(task)


def assigned_tasks(tasks: ClientTasks) -> list[AssignedTask]:
    """Returns the tasks of a client, in their order and the active ones first."""
    return [
        *(AssignedTask(task, TaskType.ACTIVE) for task in sorted(tasks.active)),
        *(AssignedTask(task, TaskType.STANDBY) for task in sorted(tasks.standby)),
    ]


def client_tasks(
    assignments: Iterable[KafkaStreamsAssignment], clients: Iterable[Client]
) -> dict[ProcessId, ClientTasks]:
    """Returns the tasks of all clients; one without assignment has none, and of two of one client the last counts."""
    found = {client.process_id: ClientTasks(frozenset(), frozenset()) for client in clients}
    for one in assignments:
        found[one.process_id] = ClientTasks(
            frozenset(one.of_type(TaskType.ACTIVE)), frozenset(one.of_type(TaskType.STANDBY))
        )
    return found


def fetched(task: Task) -> frozenset[TopicPartition]:
    """The partitions that a worker reads to work on a task: its inputs, and its changelogs to restore."""
    return task.inputs | task.changelogs


def logged_tasks(group: Group) -> tuple[TaskId, ...]:
    """The tasks with changelogs, in the order in which Kafka Streams takes them out of the map of all tasks."""
    logged = {task.id for task in group.tasks if task.stateful}
    return in_map_order(task for task in in_hash_order(task.id for task in group.tasks) if task in logged)


def stateful_tasks(group: Group) -> list[TaskId]:
    """The tasks with stores, in their order."""
    return sorted(task.id for task in group.tasks if task.stores)


def _task(info: TaskInfo) -> Task:
    places = info.topic_partitions
    return Task(
        info.id,
        frozenset(place.topic_partition for place in places if place.is_source),
        frozenset(place.topic_partition for place in places if place.is_changelog),
        info.state_store_names,
    )
