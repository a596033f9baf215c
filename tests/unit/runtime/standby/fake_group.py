"""What the brokers tell of a group, as standby tasks ask for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.positions import Offsets


class FakeGroupView:
    """Members with their tasks (``None``: nobody knows), and committed offsets; tests change both."""

    def __init__(self, tasks: Mapping[str, frozenset[TaskId]] | None = None) -> None:
        self.tasks: dict[str, frozenset[TaskId]] | None = dict(tasks or {})
        self.offsets: dict[TopicPartition, tuple[int, str]] = {}
        self.offsets_are_known = True
        self.fail: Exception | None = None
        self.closed = False

    def members(self) -> dict[str, frozenset[TaskId]] | None:
        if self.fail is not None:
            raise self.fail
        return self.tasks

    def committed(self, partitions: Collection[TopicPartition]) -> Offsets | None:
        if not self.offsets_are_known:
            return None
        return {place: self.offsets[place] for place in partitions if place in self.offsets}

    def close(self) -> None:
        self.closed = True
