"""A queue by priority that gives up its items in the order of ``java.util.PriorityQueue``.

Kafka Streams weighs clients by a load that changes while they are in the queue, so that which one comes first depends
on how the heap moves its items. Leaders in both languages decide the same because these moves are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Protocol, Self, TypeVar

T = TypeVar("T")


class Priority(Protocol):
    """A number, a tuple, or whatever else is less than another of its kind or not."""

    def __lt__(self, other: Self, /) -> bool: ...


class JavaQueue(Generic[T]):
    """A heap over a list.

    Invariant: as long as no priority changes, the item with the least one is first. Items are compared when they are
    moved, never before.
    """

    __slots__ = ("_heap", "_priority")

    def __init__(self, priority: Callable[[T], Priority], items: Iterable[T] = ()) -> None:
        self._priority = priority
        self._heap = list(items)
        for at in range(len(self._heap) // 2 - 1, -1, -1):
            self._sink(at, self._heap[at])

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[T]:
        """The items in the order of the heap, which is none of their priorities."""
        return iter(self._heap)

    def __contains__(self, item: T) -> bool:
        return item in self._heap

    def push(self, item: T) -> None:
        self._heap.append(item)
        self._rise(len(self._heap) - 1, item)

    def pop(self) -> T:
        """Removes and returns the first item."""
        first = self._heap[0]
        last = self._heap.pop()
        if self._heap:
            self._sink(0, last)
        return first

    def remove(self, item: T) -> None:
        """Removes an item, wherever it is."""
        at = self._heap.index(item)
        last = self._heap.pop()
        if at == len(self._heap):
            return
        self._sink(at, last)
        if self._heap[at] is last:
            self._rise(at, last)

    def _rise(self, at: int, item: T) -> None:
        heap, priority = self._heap, self._priority
        while at > 0:
            parent = (at - 1) // 2
            if not priority(item) < priority(heap[parent]):
                break
            heap[at] = heap[parent]
            at = parent
        heap[at] = item

    def _sink(self, at: int, item: T) -> None:
        heap, priority = self._heap, self._priority
        size = len(heap)
        while at < size // 2:
            child = 2 * at + 1
            if child + 1 < size and priority(heap[child + 1]) < priority(heap[child]):
                child += 1
            if not priority(heap[child]) < priority(item):
                break
            heap[at] = heap[child]
            at = child
        heap[at] = item
