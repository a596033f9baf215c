"""A sorted set that orders its members as Java's ``TreeSet`` does even when they change after they were added.

``describe()`` shows such sets: nodes are ordered by weights that still grow while arrows are drawn. A tree compares a
new member only with those on its way down, so the outcome depends on the shape of the tree; hence the same balancing
(red-black, as in every text book) is done here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class _Entry(Generic[T]):
    __slots__ = ("item", "left", "parent", "red", "right")

    def __init__(self, item: T, parent: _Entry[T] | None) -> None:
        self.item = item
        self.parent = parent
        self.left: _Entry[T] | None = None
        self.right: _Entry[T] | None = None
        self.red = True


class TreeSet(Generic[T]):
    """Members in the order of ``before(new, old)``, by what it said while they were added."""

    def __init__(self, before: Callable[[T, T], bool]) -> None:
        self._before = before
        self._root: _Entry[T] | None = None

    def add(self, item: T) -> None:
        """Adds a member that is not there yet."""
        above, place, goes_left = None, self._root, False
        while place is not None:
            if place.item is item:
                return
            above, goes_left = place, self._before(item, place.item)
            place = place.left if goes_left else place.right
        entry = _Entry(item, above)
        if above is None:
            self._root = entry
        elif goes_left:
            above.left = entry
        else:
            above.right = entry
        self._balance(entry)

    def __iter__(self) -> Iterator[T]:
        waiting: list[_Entry[T]] = []
        place = self._root
        while waiting or place is not None:
            while place is not None:
                waiting.append(place)
                place = place.left
            entry = waiting.pop()
            yield entry.item
            place = entry.right

    def _balance(self, entry: _Entry[T]) -> None:
        while (parent := entry.parent) is not None and parent.red and (grandparent := parent.parent) is not None:
            parent_is_left = parent is grandparent.left
            uncle = grandparent.right if parent_is_left else grandparent.left
            if uncle is not None and uncle.red:
                parent.red = uncle.red = False
                grandparent.red = True
                entry = grandparent
                continue
            if entry is (parent.right if parent_is_left else parent.left):
                self._rotate(parent, to_left=parent_is_left)
                parent = entry
            parent.red = False
            grandparent.red = True
            self._rotate(grandparent, to_left=not parent_is_left)
            break
        if self._root is not None:
            self._root.red = False

    def _rotate(self, entry: _Entry[T], *, to_left: bool) -> None:
        child = entry.right if to_left else entry.left
        if child is None:
            return
        inner = child.left if to_left else child.right
        if to_left:
            entry.right, child.left = inner, entry
        else:
            entry.left, child.right = inner, entry
        if inner is not None:
            inner.parent = entry
        parent = child.parent = entry.parent
        entry.parent = child
        if parent is None:
            self._root = child
        elif parent.left is entry:
            parent.left = child
        else:
            parent.right = child
