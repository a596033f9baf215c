"""Positions that a broker refuses: whether the records there are really gone, and where to go on.

A broker that was stopped for a while, or has just started, may refuse a position although the record there exists: it
no longer leads the partition, or has not caught up. To begin anew then would process records twice, under exactly-once
too: what was processed before is committed already.

The client reports a refusal late, too: that of an assignment which is over, when the next one of the same partition has
begun. So a partition of which anything comes does not stand still, whatever was reported.

Invariant: a position is left only when the leader says that what is there has been deleted, or, for ``CONFIRM_S``, that
the partition ends before it; a partition that is being read is never moved.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final, Protocol

from pykstreams.core.clock import Clock
from pykstreams.core.errors import ClusterUnavailableError
from pykstreams.core.ids import TopicPartition
from pykstreams.core.repeated_warnings import RepeatedWarnings
from pykstreams.runtime.clients.positions import CONFIRM_S, OffsetReader

log = logging.getLogger(__name__)

LOOK_S: Final = 1.0
"""How long the leaders are left alone between two questions, in seconds."""

_ASK_S = 2.0
"""How long an answer is waited for; the worker serves nobody meanwhile."""


class Positions(Protocol):
    """The methods of a consumer that are called here."""

    def position(self, partition: TopicPartition) -> int | None:
        """The offset of the next record; ``None`` where nothing was read yet, from one of the ends."""
        ...

    def seek(self, partition: TopicPartition, offset: int) -> None: ...


class OtherOffsets(Protocol):
    """Says where a partition goes on whose position is not there any more; it may raise."""

    def start(self, place: TopicPartition, *, because: str, begin: int) -> int:
        """An offset for one that has none, or whose records were deleted."""
        ...

    def after_truncation(self, place: TopicPartition, begin: int, end: int) -> int:
        """An offset for one that ends before its position."""
        ...


class LostPositions:
    """The partitions of a consumer that stand still because their position was refused."""

    def __init__(self, bounds: OffsetReader, start_offsets: OtherOffsets, clock: Clock) -> None:
        self._bounds = bounds
        self._start_offsets = start_offsets
        self._clock = clock
        self._warnings = RepeatedWarnings(log, clock)
        self._lost: dict[TopicPartition, float] = {}
        """Since when they stand still."""
        self._look_at = 0.0

    def note(self, partition: TopicPartition) -> None:
        """Notes that a position was refused; once more while the partition stands still changes nothing."""
        self._lost.setdefault(partition, self._clock.monotonic())

    def read(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Notes that something of partitions was read, or their end reached: they do not stand still."""
        if self._lost:
            self.forget(partitions)

    def forget(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Forgets partitions that are not read any more."""
        for partition in partitions:
            self._lost.pop(TopicPartition(*partition), None)

    def settle(self, reader: Positions) -> None:
        """Asks the leaders, and seeks with each partition that can be read again."""
        if not self._lost or self._clock.monotonic() < self._look_at:
            return
        try:
            begins = self._bounds.beginning_offsets([*self._lost], timeout_s=_ASK_S)
            ends = self._bounds.end_offsets([*self._lost], timeout_s=_ASK_S)
        except ClusterUnavailableError as error:
            self._warnings.warn(
                "bounds", "the positions of %s were refused, and are asked for again: %s", self._names(), error
            )
            return
        finally:
            self._look_at = self._clock.monotonic() + LOOK_S
        for partition in [*self._lost]:
            offset = self._next_offset(partition, reader.position(partition), begins[partition], ends[partition])
            if offset is not None:
                del self._lost[partition]
                reader.seek(partition, offset)

    def _next_offset(self, partition: TopicPartition, position: int | None, begin: int, end: int) -> int | None:
        """Where to go on, or ``None`` while that is not certain."""
        if position is None:
            return self._start_offsets.start(partition, because="has no position", begin=begin)
        if begin <= position <= end:
            log.info("partition %s is read on at offset %d, which a broker had refused", partition, position)
            return position
        if position < begin:
            log.warning(
                "the records of %s from offset %d to %d were deleted before they were read; raise the topic's "
                "retention.ms or retention.bytes, or add workers",
                partition,
                position,
                begin - 1,
            )
            # the leader's own word: the client would ask for the beginning again, and perhaps another broker
            because = "lost its position, for its records were deleted"
            return self._start_offsets.start(partition, because=because, begin=begin)
        left_s = self._lost[partition] + CONFIRM_S - self._clock.monotonic()
        if left_s > 0:
            self._warnings.warn(
                str(partition),
                "partition %s ends at offset %d, before the position %d of this application; the leader is asked for "
                "another %.0f s whether that is so",
                partition,
                end,
                position,
                left_s,
            )
            return None
        log.warning(
            "partition %s ends at offset %d, before the position %d of this application: the topic was made anew, or "
            "its log was cut short when a replica that was not in sync became the leader",
            partition,
            end,
            position,
        )
        return self._start_offsets.after_truncation(partition, begin, end)

    def _names(self) -> str:
        return ", ".join(map(str, sorted(self._lost)))
