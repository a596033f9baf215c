"""Partitions rows by what they refer to, so that they come to the partition of the row that they refer to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, cast

from pykstreams.core.hashing import partition_for_key
from pykstreams.core.types import Encoder
from pykstreams.serdes.base import AnySerde, bind_serializer
from pykstreams.serdes.defaults import or_default
from pykstreams.topology.placement.key_placement import KeyPlacement
from pykstreams.topology.placement.windowed_partitioner import windowed_partitioner

P = TypeVar("P")


class PartPartitioner(Protocol):
    """A partitioner ``(topic, key, value, number of partitions) -> partition`` that looks at a part of the key alone.

    ``None`` leaves it to the default partitioner, which takes the whole key.
    """

    def over_default(self, default: Callable[[], AnySerde], choose: Callable[[bytes, int], int]) -> PartPartitioner:
        """The same with the default serde where none was given."""
        ...

    def __call__(self, topic: str, key: object, value: object, partitions: int) -> int | None: ...


class ReferencePartitioner:
    """A partitioner ``(topic, key, value, number of partitions) -> partition`` that hashes a part of the key alone.

    Of a windowed key it hashes the key without the window, as that table is partitioned whose keys are referred to. A
    key without reference lies beside nothing: the default partitioner chooses by the whole key.

    :param reference: gives that part of a key.
    :param serializer: writes it as the keys of the other topic are written; may be ``None`` or an ``OverDefault``, then
        a sink completes the partitioner by ``over_default``.
    :param choose: (bytes, number of partitions) -> partition, as Kafka's default partitioner has it.
    :param placement: chooses in its place, by the bytes of the whole part, also of a windowed key.
    """

    def __init__(
        self,
        reference: Callable[[Any], object],
        serializer: object,
        choose: Callable[[bytes, int], int] = partition_for_key,
        placement: KeyPlacement | None = None,
    ) -> None:
        self._reference = reference
        self._serializer = serializer
        self._choose = choose if placement is None else placement
        self._placement = placement
        self._encoders: dict[str, Encoder] = {}
        windowed = windowed_partitioner(getattr(serializer, "serializer", None))
        self._end = None if windowed is None or placement is not None else -windowed.suffix_bytes

    def of_keys(self, inner: Callable[[Any], object]) -> ReferencePartitioner:
        """The partitioner of keys of which ``inner(key)`` is partitioned by this one."""
        reference = self._reference

        def reference_of(key: object) -> object:
            part = inner(key)
            return None if part is None else reference(part)

        return ReferencePartitioner(reference_of, self._serializer, placement=self._placement)

    def over_default(
        self, default: Callable[[], AnySerde], choose: Callable[[bytes, int], int]
    ) -> ReferencePartitioner:
        """The partitioner of one sink, with the default serde where none was given."""
        return ReferencePartitioner(self._reference, or_default(self._serializer, default), choose, self._placement)

    def __call__(self, topic: str, key: object, value: object, partitions: int) -> int | None:
        reference = self._reference(key)
        if reference is None:
            return None
        encode = self._encoders.get(topic)
        if encode is None:
            encode = self._encoders[topic] = bind_serializer(self._serializer, topic)
        return self._choose(cast("bytes", encode(reference, ()))[: self._end], partitions)


@dataclass(frozen=True, slots=True)
class GivenPartitioner(Generic[P]):
    """Has a partitioner of a user choose by a part of the key.

    :param reference: gives that part.
    """

    reference: Callable[[object], P]
    partitioner: Callable[[str, P, None, int], int | None]

    def over_default(self, default: Callable[[], AnySerde], choose: Callable[[bytes, int], int]) -> GivenPartitioner[P]:
        """Itself: it needs no serde."""
        return self

    def __call__(self, topic: str, key: object, value: object, partitions: int) -> int | None:
        return self.partitioner(topic, self.reference(key), None, partitions)
