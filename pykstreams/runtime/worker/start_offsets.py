"""Where a partition starts to be read when the group has no offset for it (``auto.offset.reset``, KIP-1106).

A source's own policy comes first, then that of the consumer. Repartition topics always start at the beginning, since
what is in them was written for this application and nobody else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping

from pykstreams.core.clock import Clock
from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.positions import BEGINNING, END
from pykstreams.topology.offset_reset import AutoOffsetReset
from pykstreams.topology.plan import SourceNode, TopologyPlan

log = logging.getLogger(__name__)

_BEGINNING_WORDS = ("earliest", "smallest", "beginning")
_END_WORDS = ("latest", "largest", "end")


class StartOffsets:
    """Answers for all sources of one plan."""

    def __init__(
        self,
        plan: TopologyPlan,
        default: str,
        offsets_at: Callable[[Collection[TopicPartition], int], Mapping[TopicPartition, int]],
        clock: Clock,
    ) -> None:
        self._sources = [source for part in plan.subtopologies for source in part.sources]
        self._repartition = {name for part in plan.subtopologies for name in part.repartition_topics}
        self._default = _policy(default)
        self._offsets_at = offsets_at
        self._clock = clock

    def policy(self, place: TopicPartition) -> AutoOffsetReset:
        """The policy for a partition without an offset."""
        if place.topic in self._repartition:
            return AutoOffsetReset.EARLIEST
        source = self._source(place.topic)
        return (source.offset_reset if source is not None else None) or self._default

    def start(self, place: TopicPartition, *, because: str, begin: int = BEGINNING) -> int:
        """The offset to start at, ``BEGINNING`` or ``END``; ``StreamsError`` where the policy is ``none``.

        :param because: why the question comes up, for the log and the error: "has no committed offset".
        :param begin: the first offset that there is, where it is known.
        """
        if place.topic in self._repartition:
            return begin
        source, policy = self._source(place.topic), self.policy(place)
        log.info("partition %s %s and is read by policy %r", place, because, policy.strategy)
        if policy.strategy == "earliest":
            return begin
        if policy.strategy == "latest":
            return END
        if policy.duration_ms is not None:
            found = self._offsets_at([place], self._clock.now_ms() - policy.duration_ms)[place]
            return END if found < 0 else found
        raise StreamsError(
            f"partition {place} {because}, and the offset reset policy of "
            f"{'its source' if source is None else source.name} is 'none'; commit an offset for group and topic "
            "first, or choose 'earliest' or 'latest' for the source (offset_reset_policy)"
        )

    def after_truncation(self, place: TopicPartition, begin: int, end: int) -> int:
        """The offset to start at when a partition, from ``begin`` to ``end``, ends before what was processed.

        A repartition topic goes on at its ``end``: all before it has been processed. Kafka Streams begins it anew.
        """
        if place.topic in self._repartition:
            return end
        return self.start(place, because="ends before what was read of it", begin=begin)

    def _source(self, topic: str) -> SourceNode | None:
        return next((source for source in self._sources if _reads(source, topic)), None)


def _reads(source: SourceNode, topic: str) -> bool:
    return topic in source.topics or (source.pattern is not None and source.pattern.fullmatch(topic) is not None)


def _policy(word: str) -> AutoOffsetReset:
    """The policy for librdkafka's word for it."""
    if word in _BEGINNING_WORDS:
        return AutoOffsetReset.EARLIEST
    return AutoOffsetReset.LATEST if word in _END_WORDS else AutoOffsetReset.NONE
