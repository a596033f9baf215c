"""Whether a worker still counts in its group, as far as it can know.

A worker that was stopped for longer than its session (by SIGSTOP, by its machine) wakes up in the middle of its work,
and others may have its tasks. The only sign of it is the clock: so it is looked at often, and the group is asked before
anything else is done.
"""

from __future__ import annotations

from pykstreams.core.clock import Clock
from pykstreams.runtime.membership.membership import Membership


class GroupStanding:
    """The standing of one worker in its group.

    :param session_timeout_ms: how long the group keeps a member that is silent.
    """

    def __init__(self, membership: Membership, clock: Clock, session_timeout_ms: int) -> None:
        self._membership = membership
        self._clock = clock
        self._silence_s = session_timeout_ms / 2000
        self._in_touch_at = clock.monotonic()
        self._in_doubt = False

    def is_member(self) -> bool:
        """Whether the worker still counts; asks the group when in doubt. False: not known yet, ask again.

        ``TaskMigratedError`` when others have its tasks.
        """
        if not self.touch():
            self._in_doubt = not self._membership.confirm()
            self._in_touch_at = self._clock.monotonic()
        return not self._in_doubt

    def touch(self) -> bool:
        """Looks at the clock; false when so much time has gone by that the group may have put the worker out."""
        now = self._clock.monotonic()
        if now - self._in_touch_at > self._silence_s:
            self._in_doubt = True
        self._in_touch_at = now
        return not self._in_doubt
