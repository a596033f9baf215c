"""Whether a member joins the group at the moment, and why and when it is to join again.

Invariant: waiting times go by the monotonic clock, so that a clock that is set back stops none.
"""

from __future__ import annotations

import math

from pykstreams.core.clock import Clock
from pykstreams.runtime.membership.protocol.assignment_info import NEVER


class Joins:
    """The joins of one member.

    ``soon`` says why to join again at the next poll: when the worker has what it was given, and can tell of it.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_s = 0.0
        self._again_at_s = math.inf
        self.under_way = False
        """Whether a join is under way, of which ``Synced`` was not taken yet: so no generation is certain."""
        self.soon: str | None = None

    @property
    def waited_s(self) -> float:
        """For how long the one that is under way has been."""
        return self._clock.monotonic() - self._since_s

    @property
    def is_due(self) -> bool:
        """Whether the time has come that ``again_at`` has set."""
        return self._clock.monotonic() >= self._again_at_s

    def begin(self) -> None:
        """Notes that a join begins, and so that none is due any more."""
        self._again_at_s, self.soon = math.inf, None
        self.under_way, self._since_s = True, self._clock.monotonic()

    def end(self) -> None:
        """Notes that none is under way any more."""
        self.under_way = False

    def again_at(self, time_ms: int) -> None:
        """Sets when to join again, by the wall clock as it is now; ``NEVER`` takes that back."""
        if time_ms == NEVER:
            self._again_at_s = math.inf
        else:
            self.again_in(time_ms - self._clock.now_ms())

    def again_in(self, after_ms: int) -> None:
        """Sets after what time to join again."""
        self._again_at_s = self._clock.monotonic() + after_ms / 1000
