"""Notices changelogs that cannot be read to their end, because a transaction in them is still open.

Nothing behind the first record of an open transaction is given to consumers that read what is committed. Brokers end a
transaction that its producer has left, by its time-out; one whose markers a broker failed to write stays open for ever.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from pykstreams.core.clock import Clock
from pykstreams.core.ids import TopicPartition
from pykstreams.core.repeated_warnings import RepeatedWarnings

log = logging.getLogger(__name__)

PATIENCE_S: Final = 15.0
"""How long a changelog may stand still before it is worth a line; transactions of workers last 10 s by default."""


@dataclass(slots=True)
class _Held:
    position: int
    end: int
    since: float


class OpenTransactions:
    """The changelogs that stand still in front of an open transaction."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[TopicPartition, _Held] = {}
        self._warnings = RepeatedWarnings(log, clock)

    def stands_at(self, place: TopicPartition, position: int, end: int) -> None:
        """Notes that everything up to a position was read, and no more can be read now, although the end is further."""
        held = self._held.get(place)
        if held is None or held.position != position:
            self._held[place] = _Held(position, end, self._clock.monotonic())

    def forget(self, place: TopicPartition) -> None:
        """Notes that a changelog moves on, or is no longer read."""
        self._held.pop(place, None)

    def warn(self) -> None:
        """Logs those that have stood still for ``PATIENCE_S``, each once per interval."""
        if not self._held:
            return
        now = self._clock.monotonic()
        for place, held in self._held.items():
            if now - held.since >= PATIENCE_S:
                self._warnings.warn(
                    str(place),
                    "restoring %s has stood at offset %d of %d for %.0f s: what follows is in a transaction that is "
                    "still open. It goes on when the brokers end it (transaction.timeout.ms of the producer that has "
                    "left it). One that stays open longer is found with `kafka-transactions.sh find-hanging "
                    "--topic %s --partition %d`, and ended with `kafka-transactions.sh abort`",
                    place,
                    held.position,
                    held.end,
                    now - held.since,
                    place.topic,
                    place.partition,
                )
