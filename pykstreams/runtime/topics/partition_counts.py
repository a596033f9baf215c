"""How many partitions a topic has, for partitioners: asked of the cluster once, and again when it has grown old."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pykstreams.core.clock import Clock
from pykstreams.core.errors import ClusterUnavailableError


class PartitionCounts:
    """Remembers the partition counts of all topics, until ``poll`` finds that they have grown old.

    A topic that is not known is asked for again at each call, since it may have been created meanwhile. One that was
    known stays so: a broker that has just started may leave it out, and if it was deleted the producer says so.

    :param ask: gives the counts of all topics.
    :param max_age_ms: how long an answer is believed (``metadata.max.age.ms``).
    """

    def __init__(self, ask: Callable[[], Mapping[str, int]], clock: Clock, max_age_ms: int) -> None:
        self._ask = ask
        self._clock = clock
        self._max_age_s = max_age_ms / 1000
        self._known: Mapping[str, int] = {}
        self._old = False
        self._asked_at = float("-inf")

    def of(self, topic: str) -> int:
        """The number of partitions; 0 for a topic that does not exist.

        What was known before is believed while the cluster does not answer.
        """
        known = self._known.get(topic)
        if known and not self._old:
            return known
        try:
            return self._asked(topic)
        except ClusterUnavailableError:
            if not known:
                raise
            self._believe_again()
            return known

    def poll(self) -> None:
        """Looks at the clock, which is too expensive for each record; to be called now and then."""
        if self._known and self._clock.monotonic() - self._asked_at > self._max_age_s:
            self._old = True

    def _asked(self, topic: str) -> int:
        self._known = {**self._known, **self._ask()}
        self._believe_again()
        return self._known.get(topic, 0)

    def _believe_again(self) -> None:
        self._old = False
        self._asked_at = self._clock.monotonic()
