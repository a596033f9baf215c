"""Deletes records of repartition topics that have been processed.

Invariant: nothing is deleted at or beyond an offset that the group has committed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from pykstreams.core.clock import Clock
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.positions import Offsets

log = logging.getLogger(__name__)


class DeletionUnderWay(Protocol):
    """A deletion that was asked for."""

    def done(self) -> bool: ...

    def problem(self) -> str | None: ...


class RepartitionPurge:
    """Asks now and then for the deletion of what was committed, and never waits for it."""

    def __init__(
        self,
        delete_records: Callable[[Mapping[TopicPartition, int]], DeletionUnderWay],
        *,
        topics: Collection[str],
        interval_ms: int,
        clock: Clock,
    ) -> None:
        self._delete_records = delete_records
        self._topics = frozenset(topics)
        self._interval_s = interval_ms / 1000
        self._clock = clock
        self._next_at = clock.monotonic() + self._interval_s
        self._before: dict[TopicPartition, int] = {}
        self._asked: dict[TopicPartition, int] = {}
        """Offsets up to which records are being deleted, as long as it is not known whether that succeeds."""
        self._under_way: DeletionUnderWay | None = None

    def committed(self, offsets: Offsets) -> None:
        """Notes offsets that were committed just now."""
        for place, (offset, _) in offsets.items():
            if place.topic in self._topics:
                self._before[place] = offset

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        """Leaves partitions to the workers that read them from now on."""
        for place in partitions:
            self._before.pop(place, None)
            self._asked.pop(place, None)

    def poll(self) -> None:
        """Asks for a deletion when it is time and the last one is over."""
        if self._clock.monotonic() < self._next_at:
            return
        if self._under_way is not None:
            if not self._under_way.done():
                return
            if problem := self._under_way.problem():
                log.info("consumed records of repartition topics were not deleted, and will be later: %s", problem)
                self._before = self._asked | self._before
            self._under_way = None
        if not self._before:
            return
        self._next_at = self._clock.monotonic() + self._interval_s
        self._asked, self._before = self._before, {}
        self._under_way = self._delete_records(self._asked.copy())
