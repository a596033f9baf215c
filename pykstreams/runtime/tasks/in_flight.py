"""The records of a task that are in flight: taken by an operator that finishes later, and not forwarded yet.

Operators that keep records in a store have none in flight, but may limit how many the task takes as well.

Invariant: while ``held``, which is from the moment a commit is due until it is done, no record is taken and no
punctuator runs; so what is in flight only gets less, but for what caches send when they are flushed.
"""

from __future__ import annotations

from collections.abc import Callable

from pykstreams.core.in_flight import FinishesLater

_ANY_NUMBER = 1 << 62


class InFlight:
    """All operators of one task that finish later, or limit what it takes; false without any.

    :param wake: notifies the worker, from any thread, that something has finished.
    """

    __slots__ = ("_limits", "_works", "held", "wake")

    def __init__(self, wake: Callable[[], None]) -> None:
        self._works: list[FinishesLater] = []
        self._limits: list[Callable[[], int]] = []
        self.wake = wake
        self.held = False

    def __bool__(self) -> bool:
        return bool(self._works or self._limits)

    def add(self, work: FinishesLater) -> None:
        """Adds an operator. They come from the leaves up, and are asked in the order of the path."""
        self._works.insert(0, work)

    def limit(self, room: Callable[[], int]) -> None:
        """Adds what an operator says of how many more records it wants."""
        self._limits.append(room)

    @property
    def delays_commits(self) -> bool:
        """Whether there are operators that finish later."""
        return bool(self._works)

    @property
    def unfinished(self) -> int:
        """How many records are in flight."""
        return sum(work.unfinished for work in self._works)

    @property
    def running(self) -> int:
        """How many of these are still being worked on."""
        return sum(work.running for work in self._works)

    @property
    def room(self) -> int:
        """How many records may be taken now."""
        if self.held:
            return 0
        return min(*(work.room for work in self._works), *(room() for room in self._limits), _ANY_NUMBER)

    @property
    def has_news(self) -> bool:
        """Whether anything can be forwarded."""
        return any(work.has_news for work in self._works)

    def forward_finished(self) -> None:
        """Forwards what has finished."""
        for work in self._works:
            if work.has_news:
                work.forward_finished()
