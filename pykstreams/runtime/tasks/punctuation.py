"""Schedules of punctuators, by stream time or by wall-clock time (``PunctuationQueue``, 4.3.1).

Invariant: a punctuator fires at most once for a time, with that time and not the one at which it was due; what was
missed in between is not made up for. The next due time is the last one plus the smallest multiple of the interval
that lies after the time at which it fired.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pykstreams.core.types import Punctuator
from pykstreams.runtime.tasks.priority_queue import PriorityQueue

NEVER = 1 << 63
"""A due time that no time reaches."""

Run: TypeAlias = Callable[[str, Punctuator, int], None]
"""Runs a punctuator of a node at a time."""


class Schedule:
    """One punctuator; what ``schedule`` gives to user code."""

    __slots__ = ("callback", "cancelled", "due", "interval", "node")

    def __init__(self, node: str, due: int, interval: int, callback: Punctuator) -> None:
        self.node = node
        self.due = due
        self.interval = interval
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        """Stops it, also from within the punctuator itself."""
        self.cancelled = True

    def move_past(self, time: int) -> None:
        """Sets the next due time."""
        steps = max(1, (time - self.due) // self.interval + 1)
        self.due += steps * self.interval


class PunctuationQueue:
    """The schedules of one task that follow one clock."""

    __slots__ = ("_queue", "_run", "next_due")

    def __init__(self, run: Run) -> None:
        self._queue: PriorityQueue[Schedule] = PriorityQueue()
        self._run = run
        self.next_due = [NEVER]
        """The earliest due time, in one slot that the loop over records looks at."""

    def schedule(self, schedule: Schedule) -> None:
        """Adds a schedule."""
        self._queue.add(schedule.due, schedule)
        self.next_due[0] = self._queue.first_time

    def fire(self, now: int) -> bool:
        """Runs what is due, in the order of due times; returns whether anything ran."""
        queue = self._queue
        ran = False
        while len(queue) and queue.first_time <= now:
            schedule = queue.pop()
            if schedule.cancelled:
                continue
            self._run(schedule.node, schedule.callback, now)
            ran = True
            if not schedule.cancelled:
                schedule.move_past(now)
                queue.add(schedule.due, schedule)
        self.next_due[0] = queue.first_time if len(queue) else NEVER
        return ran

    def clear(self) -> None:
        """Drops every schedule."""
        self._queue.clear()
        self.next_due[0] = NEVER
