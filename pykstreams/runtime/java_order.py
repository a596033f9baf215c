"""The order in which Java walks through its collections, where it can be seen from outside.

Kafka Streams lets such orders leak: entries of committed metadata are written in the order of a ``HashMap``,
and records with equal timestamps are taken in the order of a ``PriorityQueue``. To do the same, byte for byte
and event for event, the two collections are rebuilt here as far as their order goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


def string_hash(text: str) -> int:
    """``String.hashCode`` as an unsigned 32-bit number, over UTF-16 units.

    >>> string_hash("a"), string_hash("ab"), string_hash("")
    (97, 3105, 0)
    """
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for i in range(0, len(units), 2):
        value = (31 * value + (units[i] << 8 | units[i + 1])) & 0xFFFFFFFF
    return value


def topic_partition_hash(topic: str, partition: int) -> int:
    """``TopicPartition.hashCode`` of the Java client as an unsigned 32-bit number."""
    return (31 * (31 + partition) + string_hash(topic)) & 0xFFFFFFFF


def hash_map_order(keys: Iterable[T], hash_of: Callable[[T], int]) -> list[T]:
    """Gives keys, handed in as they were inserted, in the order in which a ``HashMap`` iterates over them.

    The map starts with 16 buckets and doubles them when more than three quarters are used; each bucket keeps
    the order of insertion.

    >>> hash_map_order(["b", "q", "a"], string_hash)
    ['a', 'b', 'q']
    """
    found = list(keys)
    buckets = 16
    while len(found) > buckets * 3 // 4:
        buckets *= 2

    def bucket(key: T) -> int:
        value = hash_of(key)
        return (value ^ value >> 16) & (buckets - 1)

    return sorted(found, key=bucket)


class PriorityQueue(Generic[T]):
    """A binary heap of items by time that breaks ties as ``java.util.PriorityQueue`` does.

    Invariant: no item's time is larger than those of the two items at ``2 * i + 1`` and ``2 * i + 2``.
    """

    __slots__ = ("_heap",)

    def __init__(self) -> None:
        self._heap: list[tuple[int, T]] = []

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def first_time(self) -> int:
        """The time of the first item; ``IndexError`` when there is none."""
        return self._heap[0][0]

    def add(self, time: int, item: T) -> None:
        """Puts an item at the end and moves it up while its time is smaller than that of its parent."""
        heap = self._heap
        at = len(heap)
        entry = (time, item)
        heap.append(entry)
        while at > 0:
            parent = (at - 1) >> 1
            if time >= heap[parent][0]:
                break
            heap[at] = heap[parent]
            at = parent
        heap[at] = entry

    def pop(self) -> T:
        """Takes the first item; the last one sinks from the root to its place. ``IndexError`` when empty."""
        heap = self._heap
        first = heap[0][1]
        last = heap.pop()
        size = len(heap)
        if not size:
            return first
        at = 0
        time = last[0]
        while (child := 2 * at + 1) < size:
            right = child + 1
            if right < size and heap[child][0] > heap[right][0]:
                child = right
            if time <= heap[child][0]:
                break
            heap[at] = heap[child]
            at = child
        heap[at] = last
        return first

    def clear(self) -> None:
        """Drops everything."""
        self._heap.clear()
