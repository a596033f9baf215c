"""Whether a worker still counts in its group, as far as it can know.

A member of which the group does not hear is put out when its session ends, and others take its tasks: one that was
stopped (by SIGSTOP, by its machine), and one that was cut off from the brokers. Neither is told. What it can know is
when it sent the last word that was answered: its session does not end before it has been over since then.

Invariant: no record is processed, and nothing is committed, by a worker whose session may end before it is done.
"""

from __future__ import annotations

from pykstreams.core.clock import Clock
from pykstreams.runtime.clients.outage import Outage
from pykstreams.runtime.membership.membership import Membership


class GroupStanding:
    """The standing of one worker in its group.

    :param silence: notes how long work has waited for an answer of the group.
    """

    def __init__(self, membership: Membership, clock: Clock, silence: Outage) -> None:
        self._membership = membership
        self._clock = clock
        self._silence = silence
        self._looked_at = clock.monotonic()
        self._was_stopped = False
        """Whether the process may have been stopped while it joined, and so missed what came of the join."""

    def is_member(self) -> bool:
        """Whether the worker counts for long enough to do something, as far as is known."""
        patience_s = self._membership.times.patience_s
        silent_s = self._membership.silent_s()
        now = self._clock.monotonic()
        pause_s, self._looked_at = now - self._looked_at, now
        if silent_s is None:
            self._was_stopped |= pause_s > patience_s
            return not self._was_stopped
        self._was_stopped = False
        counts = silent_s <= patience_s
        if counts:
            self._silence.over()
        return counts

    def has_lapsed(self) -> bool:
        """Whether the session is over as far as the worker can know, so that others may have its tasks."""
        silent_s = self._membership.silent_s()
        return silent_s is not None and silent_s > self._membership.times.session_s

    def holds_up_work(self) -> None:
        """Notes that work waits until the group answers; ``ClusterError`` after ``task.timeout.ms``."""
        self._silence.failed(
            "the group does not answer, so nothing is processed and committed: others have the tasks of this worker "
            "when its session is over"
        )
