"""The records of a task that are in flight: taken by an operator that finishes later, and not forwarded yet.

Invariant: while ``held``, which is from the moment a commit is due until it is done, no record is taken and no
punctuator runs; so what is in flight only gets less, but for what caches send when they are flushed.
"""

from __future__ import annotations

from collections.abc import Callable

from pykstreams.core.in_flight import FinishesLater


class InFlight:
    """All operators of one task that finish later; false without any.

    :param wake: notifies the worker, from any thread, that something has finished.
    """

    __slots__ = ("_works", "held", "wake")

    def __init__(self, wake: Callable[[], None]) -> None:
        self._works: list[FinishesLater] = []
        self.wake = wake
        self.held = False

    def __bool__(self) -> bool:
        return bool(self._works)

    def add(self, work: FinishesLater) -> None:
        """Takes an operator in. They come from the leaves up, and are asked in the order of the path."""
        self._works.insert(0, work)

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
        return 0 if self.held else min(work.room for work in self._works)

    @property
    def has_news(self) -> bool:
        """Whether anything can be forwarded."""
        return any(work.has_news for work in self._works)

    def forward_finished(self) -> None:
        """Forwards what has finished."""
        for work in self._works:
            if work.has_news:
                work.forward_finished()
