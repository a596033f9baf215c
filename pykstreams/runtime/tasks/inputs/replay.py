"""Records that a worker which died may have processed already: replayed under at-least-once.

State may be ahead of the committed offsets then, by what is in the changelogs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from pykstreams.core.ids import TopicPartition


class Replay:
    """Up to where the inputs of one task are replayed.

    :param end_offsets: gives the ends of partitions, and is asked before anything is restored; ``None`` where the last
        worker has ended in good order.
    """

    __slots__ = ("_end_offsets", "_until")

    def __init__(
        self, end_offsets: Callable[[Collection[TopicPartition]], Mapping[TopicPartition, int]] | None
    ) -> None:
        self._end_offsets = end_offsets
        self._until: dict[TopicPartition, int] = {}

    @property
    def lasts(self) -> bool:
        """Whether records that were there at the start are not all committed yet."""
        return bool(self._until)

    def begin(self, inputs: Collection[TopicPartition], changelogs: Collection[TopicPartition]) -> None:
        """Notes the ends of the inputs, where changelogs of the task's own may be ahead of the offsets."""
        if self._end_offsets is not None and set(changelogs).difference(inputs):
            ends = self._end_offsets(inputs)
            self._until = {place: ends[place] for place in inputs}

    def advance(self, committed: Mapping[TopicPartition, int]) -> None:
        """Forgets the partitions of which all that was there at the start is committed."""
        self._until = {place: end for place, end in self._until.items() if committed.get(place, 0) < end}
