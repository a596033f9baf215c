"""The facts that an assignor decides by: the instances of an application, its tasks and its settings (KIP-924)."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from pykstreams.core.errors import TaskAssignmentError
from pykstreams.core.ids import TaskId
from pykstreams.runtime.membership.assignment.configs import AssignmentConfigs
from pykstreams.runtime.membership.assignors.task_info import TaskInfo
from pykstreams.runtime.membership.host_info import HostInfo
from pykstreams.runtime.membership.process_id import ProcessId


@dataclass(frozen=True)
class KafkaStreamsState:
    """An instance of the application (``KafkaStreamsState``): its workers, and the tasks that it had.

    :param consumers: the tasks with state that each worker reported, by the id of its consumer in the group.
    :param previous_active_tasks: what it worked on before this rebalance, in their order.
    :param previous_standby_tasks: the other tasks of which it has state, in their order.
    :param task_lags: for each stateful task of the application, how many offsets this instance is behind; -2: the
        active task is here, -3: nothing is known. ``None``: lags were not asked for.
    :param host_info: its ``application.server``.
    :param client_tags: its settings ``client.tag.*``.
    :param rack_id: ``None``: a worker said none, or they said different ones.
    """

    process_id: ProcessId
    consumers: Mapping[str, Collection[TaskId]]
    previous_active_tasks: tuple[TaskId, ...] = ()
    previous_standby_tasks: tuple[TaskId, ...] = ()
    task_lags: Mapping[TaskId, int] | None = None
    host_info: HostInfo | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    rack_id: str | None = None

    def __post_init__(self) -> None:
        if not self.consumers:
            raise ValueError(f"the instance {self.process_id} has no consumers; each instance of a group has one")
        object.__setattr__(self, "previous_active_tasks", tuple(sorted(self.previous_active_tasks)))
        object.__setattr__(self, "previous_standby_tasks", tuple(sorted(self.previous_standby_tasks)))

    @property
    def num_processing_threads(self) -> int:
        """The number of its workers."""
        return len(self.consumers)

    @property
    def consumer_client_ids(self) -> tuple[str, ...]:
        """The ids of its consumers in the group, in their order."""
        return tuple(sorted(self.consumers))

    @property
    def stateful_tasks_to_lag_sums(self) -> dict[TaskId, int]:
        """The lag of each stateful task of the application; ``RuntimeError``: lags were not asked for."""
        return dict(self._lags())

    def lag_for(self, task: TaskId) -> int:
        """Returns how many offsets it is behind in a task, in all its changelogs together.

        It is -2 where the active task ran here and -3 where nothing is known. ``RuntimeError``: lags were not asked
        for; ``ValueError``: the application has no such task with state.
        """
        lags = self._lags()
        if task not in lags:
            raise ValueError(
                f"there is no lag of task {task}; tasks with state are {', '.join(map(str, sorted(lags)))}"
            )
        return lags[task]

    def prev_tasks_by_lag(self, consumer_client_id: str) -> list[TaskId]:
        """Returns the tasks that a consumer reported, the least behind first; none for an unknown consumer.

        ``RuntimeError``: lags were not asked for.
        """
        lags = self._lags()
        known = [task for task in self.consumers.get(consumer_client_id, ()) if task in lags]
        return sorted(known, key=lambda task: (lags[task], task))

    def without_lags(self) -> KafkaStreamsState:
        """Returns the same without lags."""
        return dataclasses.replace(self, task_lags=None)

    def _lags(self) -> Mapping[TaskId, int]:
        if self.task_lags is None:
            raise RuntimeError(
                f"the lags of the instance {self.process_id} are not here; ask for them: "
                "kafka_streams_states(compute_task_lags=True)"
            )
        return self.task_lags


class ApplicationState:
    """The application at one rebalance (``ApplicationState``).

    It can be made by hand, to test an assignor without a group.

    :param states: its instances; with ``task_lags`` where these could be found out.
    """

    def __init__(
        self,
        states: Iterable[KafkaStreamsState],
        tasks: Iterable[TaskInfo],
        assignment_configs: AssignmentConfigs | None = None,
    ) -> None:
        self._states = {state.process_id: state for state in states}
        self._tasks = {task.id: task for task in sorted(tasks, key=lambda task: task.id)}
        self._configs = AssignmentConfigs() if assignment_configs is None else assignment_configs

    @property
    def assignment_configs(self) -> AssignmentConfigs:
        """The settings of the leader; those of other instances count for nothing."""
        return self._configs

    @property
    def all_tasks(self) -> dict[TaskId, TaskInfo]:
        """The tasks to be assigned, in their order."""
        return dict(self._tasks)

    def kafka_streams_states(self, compute_task_lags: bool) -> dict[ProcessId, KafkaStreamsState]:
        """Returns the instances; a leader has them in the order of their ids.

        :param compute_task_lags: whether the lags of tasks are needed. ``TaskAssignmentError``: they could not be
            found out. An assignor lets it pass: tasks then stay where they are until the next rebalance.
        """
        if not compute_task_lags:
            return {process: state.without_lags() for process, state in self._states.items()}
        for process, state in self._states.items():
            if state.task_lags is None:
                raise TaskAssignmentError(
                    f"how far instance {process} is behind is unknown, since the ends of changelogs could not be read; "
                    "let this error pass, and tasks stay where they are until the next rebalance"
                )
        return dict(self._states)
