"""The schedule of a generator that waits for nobody (an open loop), and the records it writes.

A record carries the time at which it should be written. Latency is taken from there, so a generator, broker or program
that stands still delays the records of that time in the figures, too, and does not leave them out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SECOND_NS: Final = 1_000_000_000
_DIGITS: Final = 20
_KEYS: Final = 10_000
_PADDING: Final = b"." * 80


@dataclass(frozen=True, slots=True)
class Schedule:
    """So many records a second, evenly, from a time on.

    >>> schedule = Schedule(start_ns=0, rate=1000, count=5000)
    >>> schedule.due(-1), schedule.due(0), schedule.due(1_999_999), schedule.due(2_000_000), schedule.due(10**12)
    (0, 1, 2, 3, 5000)
    """

    start_ns: int
    rate: int
    count: int

    def due(self, now_ns: int) -> int:
        """How many records should have been written by now."""
        if now_ns < self.start_ns:
            return 0
        return min(self.count, (now_ns - self.start_ns) * self.rate // SECOND_NS + 1)

    def time_of(self, number: int) -> int:
        """When a record is due, in nanoseconds since the epoch."""
        return self.start_ns + number * SECOND_NS // self.rate


def key_of(number: int) -> bytes:
    """The key of a record."""
    return b"key-%06d" % (number * 7919 % _KEYS)


def value_at(scheduled_ns: int) -> bytes:
    """A value of 100 bytes that carries the time of its record; 0 in a record that is not measured."""
    return b"%0*d" % (_DIGITS, scheduled_ns) + _PADDING


def time_in(value: bytes) -> int:
    """The time that a value carries.

    >>> time_in(value_at(1_700_000_000_123_456_789))
    1700000000123456789
    """
    return int(value[:_DIGITS])
