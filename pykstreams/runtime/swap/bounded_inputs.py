"""Reads the inputs of a task again, from where its next state begins, up to limits that move on.

Invariant: no record at a limit or beyond is given to the task. ``limit`` may be called from another thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Protocol

from pykstreams.core.errors import BootstrapError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.consumers.restore_consumer import RestoreBatch
from pykstreams.runtime.clients.positions import Offsets

_FETCH_S: Final = 0.05
_MOST_BUFFERED: Final = 10_000
"""A partition that has so many records waiting for another one is not read on."""


class InputReader(Protocol):
    """The methods of a consumer that reading inputs again calls."""

    def assign(self, positions: Mapping[TopicPartition, int]) -> None: ...

    def unassign(self, partitions: Collection[TopicPartition]) -> None: ...

    def fetch(self, timeout: float) -> RestoreBatch: ...

    def close(self) -> None: ...


class FedTask(Protocol):
    """The methods of a task that is given records."""

    def buffered_of(self, place: TopicPartition, /) -> int: ...

    def add(self, place: TopicPartition, messages: Sequence[Any], /) -> None: ...


class BoundedInputs:
    """The inputs of one task.

    :param begins: the offset of each that its next state begins with, with metadata.
    :param make_reader: makes the consumer, when there is something to read.
    """

    def __init__(self, task_id: TaskId, begins: Offsets, make_reader: Callable[[], InputReader]) -> None:
        self.positions = {place: offset for place, (offset, _) in begins.items()}
        self.limits: Mapping[TopicPartition, int] = dict(self.positions)
        self._task_id = task_id
        self._begins = begins
        self._make_reader = make_reader
        self._assigned: set[TopicPartition] = set()
        self._reader: InputReader | None = None

    def limit(self, committed: Offsets) -> None:
        """Moves the limits on to what was committed; an input of which nothing was has not been read by anybody."""
        self.limits = {
            place: committed[place][0] if place in committed else begin for place, (begin, _) in self._begins.items()
        }

    def are_at(self, limits: Mapping[TopicPartition, int]) -> bool:
        """Whether everything below some limits was read."""
        return all(self.positions[place] >= limits[place] for place in limits)

    def lag(self, place: TopicPartition) -> int:
        """How many offsets an input is behind its limit."""
        return max(0, self.limits[place] - self.positions[place])

    def read(self, limits: Mapping[TopicPartition, int], task: FedTask) -> None:
        """Adds a batch to a task of what is below some limits."""
        positions = self.positions
        wanted = {
            place for place in limits if positions[place] < limits[place] and task.buffered_of(place) < _MOST_BUFFERED
        }
        self._assign(wanted)
        if not wanted:
            return
        batch = self._read_by().fetch(_FETCH_S)
        for place in batch.out_of_range:
            if place in wanted:
                raise BootstrapError(
                    f"task {self._task_id} cannot go on with its next state at offset {positions[place]} of "
                    f"{place}: the records there were deleted meanwhile; bootstrap again",
                    task_id=self._task_id,
                )
        for place, messages in batch.runs.items():
            if place in wanted:
                task.add(place, _below(limits[place], messages))
        for place, position in batch.positions.items():
            if place in wanted:
                positions[place] = max(positions[place], min(position, limits[place]))
        # the consumer may have come beyond a limit: it is placed anew when there is a higher one
        self._assign({place for place in wanted if positions[place] < limits[place]})

    def pause(self) -> None:
        """Reads nothing for now."""
        self._assign(set())

    def close(self) -> None:
        """Closes the consumer."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def _assign(self, wanted: set[TopicPartition]) -> None:
        if wanted != self._assigned:
            reader = self._read_by()
            reader.unassign(self._assigned - wanted)
            reader.assign({place: self.positions[place] for place in wanted - self._assigned})
            self._assigned = wanted

    def _read_by(self) -> InputReader:
        if self._reader is None:
            self._reader = self._make_reader()
        return self._reader


def _below(limit: int, messages: list[Any]) -> list[Any]:
    """The messages of a run whose offsets are below a limit."""
    return messages if messages[-1].offset() < limit else [one for one in messages if one.offset() < limit]
