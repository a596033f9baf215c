"""The order in which Kafka Streams' unordered sets of names come out.

``describe()`` prints node and store names from Java hash sets, and tasks register the stores of a node in the order of
one. Both are visible (in texts and in the order in which caches are flushed), so the order is reproduced here: names
go to buckets by their hash code, and keep their order of insertion within a bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

_MIN_BUCKETS = 16


def hash_code(text: str) -> int:
    """``String.hashCode``: 31-polynomial over UTF-16 units, as 32 unsigned bits."""
    units = text.encode("utf-16-be")
    code = 0
    for i in range(0, len(units), 2):
        code = (31 * code + (units[i] << 8 | units[i + 1])) & 0xFFFFFFFF
    return code


def hash_set_order(names: Iterable[str], *, copied: bool = False) -> tuple[str, ...]:
    """Returns distinct names in the iteration order of a hash set.

    ``copied`` is for sets made from another collection, which start with room for all of it; others grow as they fill.
    """
    return bucket_order(names, hash_code, copied=copied)


def bucket_order(items: Iterable[T], code_of: Callable[[T], int], *, copied: bool = False) -> tuple[T, ...]:
    """Returns distinct items in the iteration order of a hash set or of the keys of a hash map.

    :param code_of: the hash code of an item, as 32 unsigned bits.
    :param copied: whether the set was made from these items, duplicates among them, and so began with room for all.
    """
    given = tuple(items)
    unique = tuple(dict.fromkeys(given))
    buckets = _MIN_BUCKETS
    wanted = int(len(given) / 0.75) + 1 if copied else 0
    while buckets < wanted or len(unique) > buckets * 0.75:
        buckets *= 2

    def bucket(item: T) -> int:
        code = code_of(item)
        return (code ^ code >> 16) & (buckets - 1)

    return tuple(sorted(unique, key=bucket))
