"""Where partitions begin and end, as a swap asks for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.positions import OffsetReader


@dataclass
class FakeOffsets:
    """Where partitions begin and end: orders at 100, changelogs at 0 unless a test says otherwise."""

    begins: dict[TopicPartition, int] = field(default_factory=dict)
    ends: dict[TopicPartition, int] = field(default_factory=dict)

    def beginning_offsets(
        self, partitions: Collection[TopicPartition], *, timeout_s: float | None = None
    ) -> Mapping[TopicPartition, int]:
        return {place: self.begins.get(place, 0) for place in partitions}

    def end_offsets(
        self, partitions: Collection[TopicPartition], *, timeout_s: float | None = None
    ) -> Mapping[TopicPartition, int]:
        return {place: self.ends.get(place, 100 if place.topic == "orders" else 0) for place in partitions}


_: OffsetReader = FakeOffsets()
