"""When a worker commits: at ``commit.interval.ms``, on request, and again soon after a commit that had to wait."""

from __future__ import annotations

from pykstreams.core.clock import Clock

_COMPLAIN_S = 60.0


class CommitSchedule:
    """The times of one worker's commits.

    :param interval_s: ``commit.interval.ms``.
    :param again_s: after what time a commit that had to wait is tried again.
    :param exactly_once: whether all tasks share a transaction.
    """

    def __init__(self, clock: Clock, interval_s: float, again_s: float, *, exactly_once: bool) -> None:
        self._clock = clock
        self._exactly_once = exactly_once
        self.transaction_waits = False
        """Whether a commit waits for deliveries: until they are there nothing is added to its transaction."""
        self._interval_s = interval_s
        self._again_s = min(again_s, interval_s)
        self._at = clock.monotonic() + interval_s
        self._complain_at = self._at + _COMPLAIN_S

    @property
    def left_s(self) -> float:
        """Seconds until the next commit; negative when it is overdue."""
        return self._at - self._clock.monotonic()

    def done(self) -> None:
        """Notes a commit: the next one comes after the interval."""
        self.transaction_waits = False
        self._next_in(self._interval_s)

    def waits(self) -> None:
        """Notes that a commit has to be tried again."""
        self.transaction_waits = self._exactly_once
        self._next_in(self._again_s)

    def begin_anew(self) -> None:
        """Notes that what was to be committed is given up."""
        self.transaction_waits = False

    def should_complain(self) -> bool:
        """Whether a commit has been overdue for so long that it is worth a line; true once per minute."""
        now = self._clock.monotonic()
        if now < self._complain_at:
            return False
        self._complain_at = now + _COMPLAIN_S
        return True

    def _next_in(self, seconds: float) -> None:
        self._at = self._clock.monotonic() + seconds
        self._complain_at = self._at + _COMPLAIN_S
