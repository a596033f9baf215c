"""Changelogs that end before the state which was written with them, as a broker says.

Then the topic was deleted and made anew, or the brokers have lost records, and the application has to stop: the state
may be the only copy that is left. But a broker that was stopped for a while says so as well, of what it had then, until
it knows that it no longer leads the topic.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from pykstreams.core.clock import Clock
from pykstreams.core.ids import TopicPartition
from pykstreams.core.repeated_warnings import RepeatedWarnings
from pykstreams.runtime.clients.positions import CONFIRM_S
from pykstreams.runtime.restore.restore import Remade

log = logging.getLogger(__name__)

_PAUSE_S: Final = 60.0
"""A changelog of which it was not said for so long is doubted anew: its task has left meanwhile. While that is opened
again and again, brokers say it more often."""


class RemadeChangelogs:
    """The changelogs of one worker of which brokers say so."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._warnings = RepeatedWarnings(log, clock)
        self._said: dict[TopicPartition, tuple[float, float]] = {}
        """Since when it is said, and when it was said last."""

    def is_certain(self, remade: Remade) -> bool:
        """Whether brokers have said so for ``CONFIRM_S``; until then, ask them again."""
        now = self._clock.monotonic()
        since, last = self._said.get(remade.place, (now, now))
        if now - last > _PAUSE_S:
            since = now
        self._said[remade.place] = since, now
        left_s = since + CONFIRM_S - now
        if left_s > 0:
            self._warnings.warn(
                str(remade.place),
                "%s; a broker that leads it no longer may say so, too, and its leader is asked for another %.0f s",
                remade.reason,
                left_s,
            )
        return left_s <= 0

    def forget(self, places: Iterable[TopicPartition]) -> None:
        """Forgets changelogs that are as long as their state."""
        if self._said:
            for place in places:
                self._said.pop(place, None)
