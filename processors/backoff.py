"""When a record that has failed is tried again, and when no more.

Invariant: the same failure of the same record has the same delay in every run; chance comes from the seed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from pykstreams.core.hashing import murmur2
from pykstreams.core.types import END_OF_TIME
from pykstreams.state.buffers.retry_buffer import Trials

_WHICH = struct.Struct(">qqi").pack
_HASHES = 1 << 32


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that grow: ``initial_ms`` after the first failure, ``factor`` times as long after each further one.

    None is longer than ``maximum_ms``; then up to the share ``jitter`` is added or taken away, by chance.
    """

    initial_ms: int
    maximum_ms: int
    factor: float
    jitter: float
    seed: int

    def delay_ms(self, attempts: int, record: int) -> int:
        """How long to wait after so many failures of a record, which a number tells from others.

        >>> [Backoff(100, 1000, 2.0, 0.0, 0).delay_ms(attempts, 7) for attempts in (1, 2, 3, 4, 5, 99999)]
        [100, 200, 400, 800, 1000, 1000]
        """
        delay, left = float(self.initial_ms), attempts - 1
        while left > 0 and delay < self.maximum_ms and self.factor > 1:
            delay *= self.factor
            left -= 1
        chance = murmur2(_WHICH(self.seed, record, attempts)) / _HASHES * 2  # from -1 to 1
        return round(min(delay, self.maximum_ms) * (1 + self.jitter * chance))


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Which errors are passing, how often a record is tried, and for how long after its first failure."""

    is_passing: Callable[[Exception], bool]
    max_attempts: int | None
    max_time_ms: int | None
    backoff: Backoff
    max_waiting: int

    def after_failure(self, before: Trials, now: int, record: int) -> tuple[Trials, bool]:
        """Counts a failure; the second result says that the attempts are used up.

        A last attempt is made when the time ends, however long the delay would be.
        """
        attempts = before.attempts + 1
        first = now if before.attempts == 0 else before.first_failure
        due = min(now + self.backoff.delay_ms(attempts, record), END_OF_TIME)
        used_up = self.max_attempts is not None and attempts >= self.max_attempts
        if self.max_time_ms is not None:
            used_up |= now - first >= self.max_time_ms
            due = min(due, first + self.max_time_ms)
        return Trials(attempts, first, due), used_up
