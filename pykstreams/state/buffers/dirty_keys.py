"""Keys that were changed since they were last taken, in the order in which Java's ``HashSet<Bytes>`` gives them.

Kafka Streams writes the rows of a buffer to its changelog in that order. Keys go to buckets by their hash code and
keep their order of insertion within one; the number of buckets grows with the keys and never shrinks again.
"""

from __future__ import annotations

import struct
from operator import mul

_MASK = 0xFFFFFFFF


class DirtyKeys:
    """A set of keys that can be taken."""

    __slots__ = ("_buckets", "_keys", "add")

    def __init__(self) -> None:
        self._keys: dict[bytes, None] = {}
        self.add = self._keys.setdefault
        """Adds a key."""
        self._buckets = 16

    def __bool__(self) -> bool:
        return bool(self._keys)

    def in_order(self) -> list[bytes]:
        """The keys in the order of the hash set."""
        count = len(self._keys)
        while count > self._buckets * 3 // 4:
            self._buckets *= 2
        if count < 2:
            return list(self._keys)
        last = self._buckets - 1

        def bucket(key: bytes) -> int:
            code = hash_code(key)
            return (code ^ code >> 16) & last

        return sorted(self._keys, key=bucket)

    def clear(self) -> None:
        """Forgets all keys."""
        self._keys.clear()


_powers = [1]
"""31 to the power of the index, modulo 2**32."""


def hash_code(data: bytes) -> int:
    """``Arrays.hashCode(byte[])`` as 32 unsigned bits.

    >>> hash_code(b"ab"), hash_code(b"")
    (4066, 1)
    """
    size = len(data)
    while len(_powers) <= size:
        _powers.append(_powers[-1] * 31 & _MASK)
    signed: tuple[int, ...] = struct.unpack(f"{size}b", data)
    code: int = _powers[size] + sum(map(mul, reversed(signed), _powers))
    return code & _MASK
