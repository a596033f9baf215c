"""The lag of an application in words and numbers: one shape for programs, one text for users."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.groups.group_states import told_state


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """An input of a task.

    :param committed: ``None``: the group has committed nothing, so ``auto.offset.reset`` says what counts.
    """

    place: TopicPartition
    kind: Literal["input", "repartition"]
    committed: int | None
    end: int
    lag: int

    def as_dict(self) -> dict[str, object]:
        """Returns the shape for programs."""
        return {
            "topic": self.place.topic,
            "partition": self.place.partition,
            "kind": self.kind,
            "committed": self.committed,
            "end": self.end,
            "lag": self.lag,
        }


@dataclass(frozen=True, slots=True)
class StandbyLag:
    """A standby task.

    :param at_most: changelog offsets that it may lack; ``None``: not known.
    """

    member: str
    host: str
    at_most: int | None

    def as_dict(self) -> dict[str, object]:
        """Returns the shape for programs."""
        return {"member": self.member, "host": self.host, "lag_at_most": self.at_most}


@dataclass(frozen=True, slots=True)
class TaskLag:
    """The lag of a task; that of its standby tasks does not count."""

    task: TaskId
    partitions: tuple[PartitionLag, ...]
    standbys: tuple[StandbyLag, ...] = ()

    def lag(self, kind: Literal["input", "repartition"] | None = None) -> int:
        """Returns the sum over its partitions, of one kind or of both."""
        return sum(one.lag for one in self.partitions if kind in (None, one.kind))

    def as_dict(self) -> dict[str, object]:
        """Returns the shape for programs."""
        return {
            "task": str(self.task),
            "lag": self.lag(),
            "partitions": [one.as_dict() for one in self.partitions],
            "standbys": [one.as_dict() for one in self.standbys],
        }


@dataclass(frozen=True, slots=True)
class LagReport:
    """The lag of an application at one moment.

    :param isolation: which end counted.
    """

    application_id: str
    protocol: str
    state: str
    isolation: Literal["read_committed", "read_uncommitted"]
    tasks: tuple[TaskLag, ...]

    def lag(self, kind: Literal["input", "repartition"] | None = None) -> int:
        """Returns the sum over all tasks, of one kind of partitions or of both."""
        return sum(one.lag(kind) for one in self.tasks)

    def as_dict(self) -> dict[str, object]:
        """Returns the shape for programs, which docs/reference/cli.md describes: names are never renamed."""
        return {
            "application_id": self.application_id,
            "protocol": self.protocol,
            "state": self.state,
            "isolation_level": self.isolation,
            "total": self.lag(),
            "input": self.lag("input"),
            "repartition": self.lag("repartition"),
            "tasks": [one.as_dict() for one in self.tasks],
        }

    def lines(self) -> Iterator[str]:
        """Yields the text for users."""
        yield f"group {self.application_id} ({self.protocol}): {told_state(self.state)}; ends are {self.isolation}"
        for one in self.tasks:
            yield f"task {one.task}: {one.lag()}"
            for place in one.partitions:
                committed = "nothing is" if place.committed is None else place.committed
                yield f"  {place.kind} {place.place}: {place.lag} ({committed} committed, end {place.end})"
            for standby in one.standbys:
                behind = "lag is not known" if standby.at_most is None else f"at most {standby.at_most} behind"
                yield f"  standby of {standby.member} ({standby.host}): {behind}"
        yield f"total: {self.lag()} (input {self.lag('input')}, repartition {self.lag('repartition')})"
