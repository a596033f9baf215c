"""How far a task has come in its inputs: what was processed, what is committed, and what lies behind."""

from __future__ import annotations

from collections.abc import Mapping

from pykstreams.core.ids import TopicPartition
from pykstreams.state.interfaces.position import Position


class InputOffsets:
    """The offsets of one task, by input partition.

    ``processed`` has the last record that was processed, ``committed`` the offset that a commit stands for.
    """

    __slots__ = ("_ends", "_settled", "committed", "processed")

    def __init__(self) -> None:
        self.processed: dict[TopicPartition, int] = {}
        self.committed: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._settled: dict[TopicPartition, int] = {}

    def come(self, partition: TopicPartition, offset: int) -> None:
        """Notes that records come, the first of which has this offset.

        Where the partition goes on before what was known of it, its topic was made anew, or has lost records: what was
        processed, and where it ended, says nothing of the records that come.
        """
        if offset < self._ends.get(partition, 0):
            del self._ends[partition]
        if offset <= self.processed.get(partition, -1):
            del self.processed[partition]

    def reached_end(self, partition: TopicPartition, end: int) -> bool:
        """Notes that there is no record between the last one that was added and an offset; true if that is news."""
        known = max(self._ends.get(partition, 0), self.processed.get(partition, end) + 1)
        self._ends[partition] = end
        return end > known

    def note_skipped(self, skipped: Mapping[TopicPartition, int]) -> None:
        """Notes records that are as good as processed, by the last one of each partition."""
        for partition, offset in skipped.items():
            self.processed[partition] = max(offset, self.processed.get(partition, offset))

    def next_of(self, partition: TopicPartition, waiting: int | None) -> int | None:
        """The offset to commit for a partition; ``None`` where nothing of it was ever processed or committed.

        :param waiting: the offset of the first record that waits to be processed, if one does.
        """
        if waiting is not None:
            return waiting
        if partition in self.processed:
            return max(self.processed[partition] + 1, self._ends.get(partition, 0))
        return self.committed.get(partition)

    def note_commit(self) -> None:
        """Notes that all that was processed is committed."""
        self.committed.update((partition, offset + 1) for partition, offset in self.processed.items())

    def settle(self) -> None:
        """Notes that no record is in flight: stores, with their caches, stand for all that was processed."""
        self._settled = dict(self.processed)

    def position(self, *, below_cache: bool) -> Position:
        """Up to which records stores have come, with or without what their caches hold."""
        committed = {place: offset - 1 for place, offset in self.committed.items() if offset}
        position = Position()
        for offsets in (committed, {} if below_cache else self._settled):
            for place, offset in offsets.items():
                position.with_component(*place, offset)
        return position
