"""The id of an instance in the group, ordered as Kafka Streams orders it."""

from __future__ import annotations

import functools
import os
import uuid
from dataclasses import dataclass


@functools.total_ordering
@dataclass(frozen=True, slots=True)
class ProcessId:
    """The id of an instance, which all its workers share.

    Invariant: the order is that of ``java.util.UUID``, which compares the two halves as signed numbers. Leaders decide
    by this order, so that a leader of ours decides as one of Java's would.
    """

    id: uuid.UUID

    @classmethod
    def random(cls) -> ProcessId:
        """Makes a new one."""
        return cls(uuid.UUID(bytes=os.urandom(16), version=4))

    def __str__(self) -> str:
        return str(self.id)

    def __lt__(self, other: ProcessId) -> bool:
        return self.halves < other.halves

    @property
    def halves(self) -> tuple[int, int]:
        """The two halves as signed numbers of 64 bits."""
        high, low = divmod(self.id.int, 1 << 64)
        return _signed(high), _signed(low)

    @property
    def hash_code(self) -> int:
        """``UUID.hashCode``, as 32 unsigned bits.

        >>> ProcessId(uuid.UUID("00000001-0000-0000-0000-000000000002")).hash_code
        3
        """
        high, low = divmod(self.id.int, 1 << 64)
        mixed = high ^ low
        return (mixed >> 32 ^ mixed) & 0xFFFFFFFF


def _signed(half: int) -> int:
    return half - (1 << 64) if half >> 63 else half
