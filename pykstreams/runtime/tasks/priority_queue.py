"""A heap that breaks ties as Java's does, so that records and punctuators with equal times come in the same order.

``heapq`` gives another order of equal times: it sinks the last item to a leaf before it lets it rise again.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class PriorityQueue(Generic[T]):
    """A binary heap of items by time, with the steps of ``java.util.PriorityQueue``.

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
        """Removes and returns the first item; the last one sinks from the root to its place. ``IndexError``: empty."""
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
