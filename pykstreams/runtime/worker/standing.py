"""Whether a worker still counts in its group, as far as it can know.

A member of which the group does not hear is put out when its session ends, and others take its tasks: one that was
stopped (by SIGSTOP, by its machine), and one that was cut off from the brokers. Neither is told. What it can know is
when it sent the last word that was answered: its session does not end before it has been over since then.

Invariant: no record is processed, and nothing is committed, by a worker whose session may end before it is done.
"""

from __future__ import annotations

import logging
from typing import Final

from pykstreams.core.clock import Clock
from pykstreams.core.repeated_warnings import RepeatedWarnings
from pykstreams.runtime.membership.membership import Membership

log = logging.getLogger(__name__)

_PART_OF_SESSION: Final = 0.75
"""After which part of it without an answer a worker stops, so that what it is doing ends before the session does."""


class GroupStanding:
    """The standing of one worker in its group.

    :param session_timeout_ms: how long the group keeps a member that is silent.
    """

    def __init__(self, name: str, membership: Membership, clock: Clock, session_timeout_ms: int) -> None:
        self._name = name
        self._membership = membership
        self._clock = clock
        self._session_s = session_timeout_ms / 1000
        self._patience_s = self._session_s * _PART_OF_SESSION
        self._looked_at = clock.monotonic()
        self._was_stopped = False
        """Whether the process may have been stopped while it joined, and so missed what came of the join."""
        self._warnings = RepeatedWarnings(log, clock)

    def is_member(self) -> bool:
        """Whether the worker counts for long enough to do something, as far as is known."""
        silent_s = self._membership.silent_s()
        now = self._clock.monotonic()
        pause_s, self._looked_at = now - self._looked_at, now
        if silent_s is None:
            self._was_stopped |= pause_s > self._patience_s
            return not self._was_stopped
        self._was_stopped = False
        return silent_s <= self._patience_s

    def has_lapsed(self) -> bool:
        """Whether the session is over as far as the worker can know, so that others may have its tasks."""
        silent_s = self._membership.silent_s()
        return silent_s is not None and silent_s > self._session_s

    def warn(self) -> None:
        """Says that the worker waits for its group."""
        silent_s = self._membership.silent_s()
        if silent_s is not None:
            self._warnings.warn(
                "silent",
                "the group has not answered %s for %.1f s, so it processes nothing until it does: others have its "
                "tasks when its session is over; look whether the brokers can be reached from here",
                self._name,
                silent_s,
            )
