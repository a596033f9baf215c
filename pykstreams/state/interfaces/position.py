"""Up to which input records a store has come, and how far it must have come for an answer to be good enough."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol


class Position:
    """Offsets by topic and partition: the record with that offset, and all before it, are in.

    As in Kafka Streams it is changed in place, by ``with_component`` and ``merge``, and an offset never goes back.

    >>> Position().with_component("orders", 0, 5).with_component("orders", 0, 3)
    Position({'orders': {0: 5}})
    """

    __slots__ = ("_offsets",)

    def __init__(self) -> None:
        self._offsets: dict[str, dict[int, int]] = {}

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Mapping[int, int]]) -> Position:
        """Makes one from topic, partition and offset; it shares nothing with the mapping."""
        made = cls()
        made._offsets = {topic: dict(offsets) for topic, offsets in mapping.items()}
        return made

    def with_component(self, topic: str, partition: int, offset: int) -> Position:
        """Sets the offset of a partition unless it is there already with a higher one; returns itself."""
        offsets = self._offsets.setdefault(topic, {})
        offsets[partition] = max(offset, offsets.get(partition, offset))
        return self

    def copy(self) -> Position:
        """One of its own with the same offsets."""
        return Position.from_mapping(self._offsets)

    def merge(self, other: Position) -> Position:
        """Keeps the higher offset of each partition; returns itself."""
        for topic, offsets in other._offsets.items():
            for partition, offset in offsets.items():
                self.with_component(topic, partition, offset)
        return self

    @property
    def topics(self) -> frozenset[str]:
        """The topics of which it has offsets."""
        return frozenset(self._offsets)

    def partition_positions(self, topic: str) -> dict[int, int]:
        """The offsets of a topic by partition; empty for a topic that it does not have."""
        return dict(self._offsets.get(topic, ()))

    @property
    def is_empty(self) -> bool:
        """Whether it has no offsets."""
        return not self._offsets

    def __bool__(self) -> bool:
        return bool(self._offsets)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Position) and self._offsets == other._offsets

    def __repr__(self) -> str:
        return f"Position({self._offsets!r})"


class PositionOf(Protocol):
    """Returns up to which records stores have come, with or without what their caches hold."""

    def __call__(self, *, below_cache: bool = False) -> Position: ...


class PositionBound:
    """How far a store must have come at least."""

    UNBOUNDED: ClassVar[PositionBound]
    """Any answer will do."""

    __slots__ = ("_position",)

    def __init__(self, position: Position) -> None:
        self._position = position.copy()

    @classmethod
    def at(cls, position: Position) -> PositionBound:
        """At least this position; it is copied."""
        return cls(position)

    @property
    def position(self) -> Position:
        """The position; empty when there is no bound."""
        return self._position.copy()

    @property
    def is_unbounded(self) -> bool:
        """Whether any answer will do."""
        return self._position.is_empty

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositionBound) and self._position == other._position

    def __repr__(self) -> str:
        return f"PositionBound({self._position!r})"


PositionBound.UNBOUNDED = PositionBound(Position())


def is_permitted(position: Position, bound: PositionBound, partition: int) -> bool:
    """Whether the store of one partition has come far enough; bounds of other partitions do not matter to it.

    A negative partition stands for a global store, which holds all of them.
    """
    wanted = bound.position
    for topic in wanted.topics:
        reached = position.partition_positions(topic)
        for number, least in wanted.partition_positions(topic).items():
            if (partition < 0 or number == partition) and reached.get(number, -1) < least:
                return False
    return True
