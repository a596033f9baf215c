"""How long something has been failing that should go on: says so while it lasts, and in the end gives up.

Every request of a worker that may pass is tried again until ``task.timeout.ms`` has gone by without a success.
"""

from __future__ import annotations

import logging
from typing import Final

from pykstreams.core.clock import Clock
from pykstreams.core.errors import ClusterError
from pykstreams.core.repeated_warnings import INTERVAL_S

log = logging.getLogger(__name__)

_PAUSE_S: Final = 60.0
"""After how long without a failure the next one is a new matter, also where nobody has noted a success: what fails on
and on is asked again after 41 s at most (``admin.py``)."""


class Outage:
    """One thing that fails now and then, such as the commits of a worker.

    :param what: the thing in the plural, as messages say it: "commits of worker-1".
    :param give_up_s: ``task.timeout.ms`` in seconds.
    :param patience_s: how long it may fail before that is worth a line, where it often does for a moment.
    """

    def __init__(self, what: str, clock: Clock, give_up_s: float, *, patience_s: float = 0.0) -> None:
        self._what = what
        self._clock = clock
        self._give_up_s = give_up_s
        self._patience_s = patience_s
        self._since: float | None = None
        self._last = 0.0
        self._say_at = 0.0

    def failed(self, reason: object) -> None:
        """Notes a failure; raises ``ClusterError`` when it has failed on and on for ``task.timeout.ms``."""
        now = self._clock.monotonic()
        if self._since is None or now - self._last > _PAUSE_S:
            self._since, self._say_at = now, now + self._patience_s
        self._last = now
        lasted = now - self._since
        if lasted > self._give_up_s:
            raise ClusterError(
                f"{self._what} have failed for {lasted:.0f} s, longer than task.timeout.ms allows "
                f"({self._give_up_s:g} s): {reason}; look at the brokers, or raise task.timeout.ms"
            )
        if now >= self._say_at:
            self._say_at = now + INTERVAL_S
            log.warning(
                "%s fail%s: %s; trying again for another %.0f s at most (task.timeout.ms)",
                self._what,
                f" (for {lasted:.0f} s so far)" if lasted >= 1 else "",
                reason,
                self._give_up_s - lasted,
            )

    @property
    def lasts(self) -> bool:
        """Whether it failed the last time."""
        return self._since is not None

    def over(self) -> None:
        """Notes a success."""
        if self._since is not None:
            log.info("%s succeed again, after %.1f s", self._what, self._clock.monotonic() - self._since)
            self._since = None
