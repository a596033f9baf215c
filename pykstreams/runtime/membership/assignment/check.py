"""Checking assignments before tasks run by them, and before they are sent.

Kafka Streams takes the pairs of tasks and partitions as they come: a wrong pair has records counted in another task,
and nobody notices. So whatever comes from a leader is held against the member's own topology, and whatever a leader of
ours is about to send is held against the group's tasks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pykstreams.core.errors import TaskAssignmentError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.membership.assignment.group import Task
from pykstreams.runtime.membership.protocol.assignment_info import AssignmentInfo


class WrongAssignmentError(TaskAssignmentError):
    """An assignment does not fit the topology: no task of it may run."""


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """The assignment of one member: its partitions, and the user data that goes with them."""

    partitions: tuple[TopicPartition, ...]
    info: AssignmentInfo


@dataclass(frozen=True, slots=True)
class SubtopologyInputs:
    """A sub-topology of this application, as far as assignments name it.

    :param topics: its source and repartition topics.
    :param stateful: whether it has changelogs.
    """

    topics: frozenset[str]
    stateful: bool


def paired_tasks(
    assignment: MemberAssignment, subtopologies: Mapping[int, SubtopologyInputs], partition_counts: Mapping[str, int]
) -> dict[TaskId, frozenset[TopicPartition]]:
    """Returns the active tasks with their partitions; ``WrongAssignmentError``: the assignment cannot be obeyed.

    The n-th task belongs to the n-th partition by topic and number; a task stands there once for each of its
    partitions.

    :param partition_counts: how many partitions each input topic has.
    """
    partitions, info = sorted(assignment.partitions), assignment.info
    if len(partitions) != len(info.active):
        raise _wrong(f"{len(partitions)} partitions come with {len(info.active)} tasks")
    if len(set(partitions)) != len(partitions):
        raise _wrong(f"a partition is there twice: {_names(partitions)}")
    pairs: dict[TaskId, set[TopicPartition]] = {}
    for task, partition in zip(info.active, partitions, strict=True):
        pairs.setdefault(task, set()).add(partition)
    for task, given in [*pairs.items(), *info.standby.items()]:
        _check_task(task, given, subtopologies, partition_counts)
    for task in info.standby:
        if task in pairs:
            raise _wrong(f"task {task} is active and standby at once")
        if not subtopologies[task.subtopology].stateful:
            raise _wrong(f"task {task} is a standby task, but has no state")
    return {task: frozenset(given) for task, given in pairs.items()}


def check_group(
    assignments: Mapping[str, MemberAssignment], tasks: Iterable[Task], owners: Mapping[TopicPartition, str]
) -> None:
    """Raises ``WrongAssignmentError`` unless all these may be sent to the members of a group.

    :param owners: who owns a partition until it joins again; such a partition is given to nobody else.
    """
    known = {task.id: task for task in tasks}
    active: dict[TaskId, str] = {}
    for member, assignment in assignments.items():
        if list(assignment.partitions) != sorted(set(assignment.partitions)):
            raise _wrong(f"the partitions of {member} are not in their order, or one is there twice")
        pairs = _pairs_to_send(member, assignment)
        for task, given in [*pairs.items(), *assignment.info.standby.items()]:
            if task not in known:
                raise _wrong(f"{member} is given task {task}, which there is not")
            if given != known[task].inputs:
                raise _wrong(
                    f"{member} is given task {task} with {_names(given)}; its inputs are {_names(known[task].inputs)}"
                )
        for task in assignment.info.standby:
            if task in pairs or not known[task].stateful:
                raise _wrong(f"{member} is given standby task {task}, which is active there, or has no state")
        for task, given in pairs.items():
            if task in active:
                raise _wrong(f"task {task} is given to {active[task]} and to {member}")
            active[task] = member
            held = {owners[partition] for partition in given if partition in owners} - {member}
            if held:
                raise _wrong(f"task {task} is given to {member} while {', '.join(sorted(held))} still works on it")


def _pairs_to_send(member: str, assignment: MemberAssignment) -> dict[TaskId, set[TopicPartition]]:
    if len(assignment.partitions) != len(assignment.info.active):
        raise _wrong(
            f"{member} is given {len(assignment.partitions)} partitions with {len(assignment.info.active)} tasks"
        )
    pairs: dict[TaskId, set[TopicPartition]] = {}
    for task, partition in zip(assignment.info.active, assignment.partitions, strict=True):
        pairs.setdefault(task, set()).add(partition)
    return pairs


def _check_task(
    task: TaskId,
    given: Collection[TopicPartition],
    subtopologies: Mapping[int, SubtopologyInputs],
    partition_counts: Mapping[str, int],
) -> None:
    inputs = subtopologies.get(task.subtopology)
    if inputs is None:
        raise _wrong(f"task {task} is of sub-topology {task.subtopology}; there are {sorted(subtopologies)}")
    for partition in sorted(given):
        if partition.topic not in inputs.topics:
            raise _wrong(
                f"task {task} comes with {partition}, but sub-topology {task.subtopology} reads "
                f"{', '.join(sorted(inputs.topics))}"
            )
        if partition.partition != task.partition:
            raise _wrong(
                f"task {task} comes with {partition}, which is of task {task.subtopology}_{partition.partition}"
            )
    expected = {
        TopicPartition(topic, task.partition)
        for topic in inputs.topics
        if task.partition < partition_counts.get(topic, 0)
    }
    if set(given) != expected:
        raise _wrong(
            f"task {task} comes with {_names(given)}; as many partitions as its topics have, "
            f"it reads {_names(expected)}"
        )


def _names(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(str(partition) for partition in sorted(partitions)) or "no partitions"


def _wrong(problem: str) -> WrongAssignmentError:
    return WrongAssignmentError(
        f"the assignment does not fit the topology: {problem}. All members must run the same topology; compare theirs "
        "(pykstreams topics, Topology.describe), and look at the log of the group's leader"
    )
