"""Reads the keys of the last records of topics, for a look at them: bounded in records, bytes and time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from pykstreams.core.clock import Clock
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients.consumers.restore_consumer import RestoreBatch, RestoreConsumer

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig

RECORDS: Final = 400
"""How many records of a topic are read, as many of each partition."""

_PATIENCE_S: Final = 5.0
_STEP_S: Final = 0.1


class Offsets(Protocol):
    """The methods of an administrative client that this module calls."""

    def beginning_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...

    def end_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]: ...


class Reader(Protocol):
    """The methods of a consumer that this module calls."""

    def assign(self, positions: Mapping[TopicPartition, int]) -> None: ...

    def unassign(self, partitions: Collection[TopicPartition]) -> None: ...

    def fetch(self, timeout: float) -> RestoreBatch: ...

    def close(self) -> None: ...


class LatestKeys:
    """Reads what lies at the ends of topics; whoever makes it closes it."""

    def __init__(self, reader: Reader, offsets: Offsets, clock: Clock) -> None:
        self._reader = reader
        self._offsets = offsets
        self._clock = clock

    @classmethod
    def open(cls, config: StreamsConfig, offsets: Offsets, client_id: str, clock: Clock) -> LatestKeys:
        """Makes the consumer, which fetches little ahead and belongs to no group."""
        return cls(RestoreConsumer.open_sample(config.client_supplier, config, client_id), offsets, clock)

    def read(self, topics: Mapping[str, int]) -> dict[TopicPartition, list[bytes | None]]:
        """Returns the raw keys of each partition; fewer where brokers are slow. ``ClusterError`` where it fails.

        :param topics: how many partitions each has.
        """
        places = [TopicPartition(topic, number) for topic, count in topics.items() for number in range(count)]
        if not places:
            return {}
        begins, ends = self._offsets.beginning_offsets(places), self._offsets.end_offsets(places)
        starts = {
            place: max(begins[place], ends[place] - max(1, RECORDS // topics[place.topic]))
            for place in places
            if place in begins and place in ends
        }
        waiting = {place for place, start in starts.items() if start < ends[place]}
        self._reader.assign({place: starts[place] for place in sorted(waiting)})
        found: dict[TopicPartition, list[bytes | None]] = {}
        deadline = self._clock.monotonic() + _PATIENCE_S
        while waiting and self._clock.monotonic() < deadline:
            batch = self._reader.fetch(_STEP_S)
            for place, run in batch.runs.items():
                if place in waiting:
                    found.setdefault(place, []).extend(message.key() for message in run)
            done = {place for place in waiting if batch.positions.get(place, 0) >= ends[place]}
            done.update(waiting.intersection((*batch.at_end, *batch.out_of_range)))
            self._reader.unassign(done)
            waiting -= done
        self._reader.unassign(waiting)
        return found

    def close(self) -> None:
        """Closes the consumer."""
        self._reader.close()
