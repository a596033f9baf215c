"""How often a worker waits until all that it has sent was delivered, so that no record waits in the producer for long.

Under at-least-once a record that has waited for too long is given up, and its worker starts over
(``delivery_attempts``). Where brokers take less than tasks send, the queue of the producer would grow until that
happens, again and again.

Invariant: a record waits for one interval and one wait at most; each wait is meant to be no longer than an interval
may be.
"""

from __future__ import annotations

from typing import Final

from pykstreams.core.clock import Clock

_PARTS: Final = 4
_SHORTEST_S: Final = 0.05


class SendPace:
    """The pace of one worker; it begins carefully, and finds out what the brokers take.

    :param record_s: how long a record may wait in the producer.
    """

    def __init__(self, clock: Clock, record_s: float) -> None:
        self._clock = clock
        self._longest_s = record_s / _PARTS
        self._interval_s = max(_SHORTEST_S, self._longest_s / _PARTS)
        self._empty_at = clock.monotonic()
        self._waits_since: float | None = None

    def must_wait(self, undelivered: int) -> bool:
        """Whether to wait until nothing is undelivered any more; call it before something is sent.

        :param undelivered: how many records the producer has.
        """
        now = self._clock.monotonic()
        if not undelivered:
            if self._waits_since is not None:
                self._adapt(now - self._waits_since)
                self._waits_since = None
            self._empty_at = now
        elif self._waits_since is None and now - self._empty_at > self._interval_s:
            self._waits_since = now
        return self._waits_since is not None

    def _adapt(self, waited_s: float) -> None:
        if waited_s > self._longest_s:
            self._interval_s = max(_SHORTEST_S, self._interval_s * self._longest_s / waited_s)
        else:
            self._interval_s = min(self._longest_s, 2 * self._interval_s)
