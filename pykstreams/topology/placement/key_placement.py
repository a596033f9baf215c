"""Where producers put keys: the partitioners of librdkafka by their names, or a function of the user's.

Kafka's own partitioner, murmur2, is what everything else takes for granted: it is ``None`` wherever a placement may be.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

from pykstreams.core.hashing import fnv1a
from pykstreams.core.user_code.functions import describe_function

KeyPartitioner: TypeAlias = Callable[[bytes, int], int]
"""(serialized key, number of partitions) -> partition."""


@dataclass(frozen=True, slots=True)
class KeyPlacement:
    """The partitioner of a producer, as far as keys decide; it can be called as one.

    Two are equal that put every key into the same partition. ``name`` is for messages.
    """

    name: str = field(compare=False)
    choose: KeyPartitioner

    def __call__(self, key: bytes, partitions: int) -> int:
        return self.choose(key, partitions)


def by_crc32(key: bytes, partitions: int) -> int:
    """Returns the partition that librdkafka's ``consistent`` chooses.

    >>> by_crc32(b"21", 12)
    4
    """
    return zlib.crc32(key) % partitions


def by_fnv1a(key: bytes, partitions: int) -> int:
    """Returns the partition that librdkafka's ``fnv1a`` chooses.

    >>> by_fnv1a(b"21", 12)
    0
    """
    return fnv1a(key) % partitions


_BY_NAME: Final[Mapping[str, KeyPartitioner | None]] = MappingProxyType(
    {
        "consistent": by_crc32,
        "consistent_random": by_crc32,
        "murmur2": None,
        "murmur2_random": None,
        "fnv1a": by_fnv1a,
        "fnv1a_random": by_fnv1a,
    }
)
"""The values of librdkafka's ``partitioner``; those that end in ``random`` differ in records without key only."""


def placement_of(partitioner: KeyPartitioner | str | None) -> KeyPlacement | None:
    """Returns the placement that a user gave, ``None`` for that of murmur2.

    ``ValueError`` for a name that librdkafka does not have, ``TypeError`` for what is no partitioner.

    >>> placement_of("murmur2_random") is None
    True
    >>> placement_of("consistent") == placement_of("consistent_random")
    True
    """
    if partitioner is None or isinstance(partitioner, KeyPlacement):
        return partitioner
    if isinstance(partitioner, str):
        if partitioner not in _BY_NAME:
            known = ", ".join(_BY_NAME)
            raise ValueError(f"partitioner is {partitioner!r}; librdkafka's are {known}, or give a function")
        choose = _BY_NAME[partitioner]
        return None if choose is None else KeyPlacement(partitioner, choose)
    if not callable(partitioner):
        raise TypeError(
            f"partitioner is {partitioner!r}; expected a name of librdkafka's, such as 'consistent_random', or a "
            "function (key in bytes, number of partitions) -> partition"
        )
    return KeyPlacement(describe_function(partitioner), partitioner)
