"""For how long records to a topic have not been delivered, over several attempts.

Under at-least-once a record waits in the producer no longer than others need to take over the tasks of a worker that
is stopped: when it goes on, the record must not come behind theirs. That is shorter than ``delivery.timeout.ms``. So a
record whose time is over is sent again, with all that was done since the last commit, until that time has passed, too.
"""

from __future__ import annotations

from typing import Final

from pykstreams.core.clock import Clock

_PAUSE_S: Final = 30.0
"""How much later than an attempt would end a record whose time is over is a new matter: tasks start over in between."""


class DeliveryAttempts:
    """The attempts of one worker.

    :param record_s: how long one attempt lasts: the time of a record in the producer.
    :param give_up_s: ``delivery.timeout.ms`` in seconds.
    """

    def __init__(self, clock: Clock, record_s: float, give_up_s: float) -> None:
        self._clock = clock
        self._record_s = record_s
        self._give_up_s = give_up_s
        self._times: dict[str, tuple[float, float]] = {}
        """By topic: when the first record that was not delivered was queued, and when the last was given up."""

    def are_over(self, topic: str) -> bool:
        """Notes a record to ``topic`` whose time was over; true when there is to be no further attempt."""
        now = self._clock.monotonic()
        since, last = self._times.get(topic, (0.0, 0.0))
        if topic not in self._times or now - last > self._record_s + _PAUSE_S:
            since = now - self._record_s
        self._times[topic] = since, now
        return now - since >= self._give_up_s
