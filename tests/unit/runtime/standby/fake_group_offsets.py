"""The committed offsets of a group, as standby tasks ask for them."""

from __future__ import annotations

from collections.abc import Collection

from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.positions import Offsets


class FakeGroupOffsets:
    """Offsets that tests change, and may leave unknown; ``fail`` is raised while it is set."""

    def __init__(self) -> None:
        self.offsets: dict[TopicPartition, tuple[int, str]] = {}
        self.are_known = True
        self.asked = 0
        self.fail: Exception | None = None

    def committed(self, partitions: Collection[TopicPartition]) -> Offsets | None:
        self.asked += 1
        if self.fail is not None:
            raise self.fail
        if not self.are_known:
            return None
        return {place: self.offsets[place] for place in partitions if place in self.offsets}
