"""How far the stores of this process are behind their changelogs (``allLocalStorePartitionLags``, 4.3.1)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.tasks.task import Task


@dataclass(frozen=True, slots=True)
class LagInfo:
    """How far a partition of a store is."""

    current_offset_position: int
    """Up to where the store has its changelog; the end of that where the task runs."""
    end_offset_position: int
    """The end of the changelog, as the brokers said."""

    @property
    def offset_lag(self) -> int:
        """How many offsets are missing; it says how far behind it is, not how many rows.

        >>> LagInfo(3, 10).offset_lag
        7
        """
        return max(0, self.end_offset_position - self.current_offset_position)


@dataclass(frozen=True, slots=True)
class KeptTask:
    """A task that has its stores open here.

    :param running: whether it is active and restored, so that nobody else writes its changelogs.
    :param positions: how far the changelogs are that are being read, which may be further than the last commit.
    """

    task: Task
    running: bool
    positions: Mapping[TopicPartition, int]


def store_lags(
    tasks: Iterable[KeptTask], end_offsets: Callable[[Collection[TopicPartition]], Mapping[TopicPartition, int]]
) -> dict[str, dict[int, LagInfo]]:
    """Returns the lags by store and partition; of several tasks of one id the last one counts.

    :param end_offsets: asks the brokers, once for all changelogs.
    """
    stores: dict[TopicPartition, str] = {}
    positions: dict[TopicPartition, int | None] = {}
    for one in tasks:
        committed = one.task.state_offsets.committed()
        for store, place in one.task.changelogs().items():
            stores[place] = store
            known = max(committed.get(place, 0), one.positions.get(place, 0))
            positions[place] = None if one.running else known
    ends = end_offsets(positions) if positions else {}
    found: dict[str, dict[int, LagInfo]] = {}
    for place in sorted(ends):
        position = positions[place]
        info = LagInfo(ends[place] if position is None else position, ends[place])
        found.setdefault(stores[place], {})[place.partition] = info
    return dict(sorted(found.items()))
