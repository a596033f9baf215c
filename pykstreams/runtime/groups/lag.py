"""The lag of an application by task, from what its group has committed and where topics end.

The lag of a partition is the number of offsets from the committed one to the end; with records that were compacted
away, aborted or markers of transactions among them it is more than the records. A partition without a committed
offset begins where ``auto.offset.reset`` says, and one whose committed offset is deleted, with the first that is left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from pykstreams.core.clock import Clock
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.inspection.group_tools import GroupView
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.groups.lag_report import LagReport, PartitionLag, StandbyLag, TaskLag
from pykstreams.runtime.groups.members import Member, members_of
from pykstreams.runtime.worker.start_offsets import StartOffsets
from pykstreams.topology.plan import TopologyPlan


class LagClient(Protocol):
    """The methods of an administrative client that this module calls."""

    def partition_counts(self) -> dict[str, int]: ...

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...

    def end_offsets(
        self, partitions: Collection[TopicPartition], *, read_committed: bool = False
    ) -> dict[TopicPartition, int]: ...

    def offsets_at(self, partitions: Collection[TopicPartition], timestamp: int) -> dict[TopicPartition, int]: ...


class LagGroup(Protocol):
    """A group that this module looks at."""

    def view(self) -> GroupView: ...

    def committed(self, partitions: Collection[TopicPartition], *, stable: bool = True) -> Offsets: ...


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The offsets at which partitions begin and end."""

    begins: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]


class GroupLag:
    """Works out the lag of one application.

    :param isolation: ``isolation.level`` of its consumers, which says what their end is.
    :param reset_policy: ``auto.offset.reset`` of its consumers.
    """

    def __init__(
        self,
        plan: TopologyPlan,
        client: LagClient,
        group: LagGroup,
        clock: Clock,
        *,
        isolation: str,
        reset_policy: str,
    ) -> None:
        self._plan = plan
        self._client = client
        self._group = group
        self._clock = clock
        self._isolation: Literal["read_committed", "read_uncommitted"] = (
            "read_committed" if isolation == "read_committed" else "read_uncommitted"
        )
        self._start = StartOffsets(plan, reset_policy, client.offsets_at, clock)
        self._repartition = {name for part in plan.subtopologies for name in part.repartition_topics}
        self._changelogs = {part.id: frozenset(part.changelogs.values()) for part in plan.subtopologies}

    def report(self, inputs: Mapping[TaskId, frozenset[TopicPartition]]) -> LagReport:
        """Asks the cluster; ``ClusterError`` where it does not answer.

        Committed offsets are asked for before ends, so that a lag is never too small.

        :param inputs: the tasks, with what they read. A topic that does not exist yet holds nothing.
        """
        view = self._group.view()
        members = members_of(view)
        existing = self._client.partition_counts()
        places = _existing({place for found in inputs.values() for place in found}, existing)
        committed = (
            {place: offset for place, (offset, _) in self._group.committed(places, stable=False).items()}
            if places
            else {}
        )
        kept = {task for one in members if one.tasks for task in one.tasks.standby | one.tasks.warmup}
        changelogs = _existing({place for task in kept for place in self._changelogs_of(task)}, existing)
        bounds = self._bounds([*places, *(place for place in changelogs if place not in set(places))])
        starts = self._starts([place for place in places if place not in committed], bounds)
        tasks = tuple(
            TaskLag(
                task,
                tuple(
                    self._partition(place, committed.get(place), bounds, starts)
                    for place in sorted(found)
                    if place in bounds.ends
                ),
                tuple(self._standbys(task, members, bounds)),
            )
            for task, found in sorted(inputs.items())
        )
        return LagReport(self._plan.application_id, view.protocol, view.state, self._isolation, tasks)

    def _bounds(self, places: Collection[TopicPartition]) -> _Bounds:
        if not places:
            return _Bounds({}, {})
        begins = self._client.beginning_offsets(places)
        return _Bounds(begins, self._client.end_offsets(places, read_committed=self._isolation == "read_committed"))

    def _partition(
        self, place: TopicPartition, committed: int | None, bounds: _Bounds, starts: Mapping[TopicPartition, int]
    ) -> PartitionLag:
        start = starts[place] if committed is None else committed
        end = bounds.ends[place]
        kind: Literal["repartition", "input"] = "repartition" if place.topic in self._repartition else "input"
        return PartitionLag(place, kind, committed, end, max(0, end - max(start, bounds.begins[place])))

    def _starts(self, places: Collection[TopicPartition], bounds: _Bounds) -> dict[TopicPartition, int]:
        """Where partitions without an offset begin; all counts with ``none``, by which nobody can start."""
        found: dict[TopicPartition, int] = {}
        young: defaultdict[int, list[TopicPartition]] = defaultdict(list)
        for place in places:
            policy = self._start.policy(place)
            if policy.duration_ms is not None:
                young[policy.duration_ms].append(place)
            else:
                found[place] = bounds.ends[place] if policy.strategy == "latest" else bounds.begins[place]
        for duration_ms, some in young.items():
            asked = self._client.offsets_at(some, self._clock.now_ms() - duration_ms)
            found.update({place: bounds.ends[place] if asked[place] < 0 else asked[place] for place in some})
        return found

    def _changelogs_of(self, task: TaskId) -> list[TopicPartition]:
        return [TopicPartition(topic, task.partition) for topic in self._changelogs.get(task.subtopology, ())]

    def _standbys(self, task: TaskId, members: Collection[Member], bounds: _Bounds) -> list[StandbyLag]:
        return [
            StandbyLag(one.id, one.host, self._behind(task, one, members, bounds))
            for one in members
            if one.tasks and task in one.tasks.standby | one.tasks.warmup
        ]

    def _behind(self, task: TaskId, keeper: Member, members: Collection[Member], bounds: _Bounds) -> int | None:
        """How far a standby is behind at most: it has read on since its process joined, and said how far it was.

        ``None``: the process has not said, as in streams groups, or it ran the task then. A process that said nothing
        of this task had no state of it.
        """
        if keeper.process_id is None or keeper.offset_sums is None:
            return None
        places = [place for place in self._changelogs_of(task) if place in bounds.ends]
        same = [one.offset_sums for one in members if one.process_id == keeper.process_id and one.offset_sums]
        said = [sums[task] for sums in same if task in sums]
        if any(one < 0 for one in said):
            return None
        if not said:
            return sum(bounds.ends[place] - bounds.begins[place] for place in places)
        return max(0, sum(bounds.ends[place] for place in places) - max(said))


def _existing(places: Collection[TopicPartition], existing: Mapping[str, int]) -> list[TopicPartition]:
    return sorted(place for place in places if place.partition < existing.get(place.topic, 0))
