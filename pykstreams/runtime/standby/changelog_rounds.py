"""Follows the changelogs of open stores in rounds, with the same ``Restorer`` as active tasks.

A round goes from where a store was committed to the end that its changelog has by then; the ends of all changelogs are
asked for in one request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from pykstreams.core.clock import Clock
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.positions import OffsetReader
from pykstreams.runtime.restore.restore import ASK_S, RestorableStore, Restorer, Setback
from pykstreams.state.interfaces.store import ChangelogRow

log = logging.getLogger(__name__)

ROUND_S: Final = 1.0
"""How often a round begins."""

_FETCH_S: Final = 0.1


class FollowedStore:
    """A store of a standby task as the restorer gets it: it knows its position, also when it keeps rows in memory."""

    __slots__ = ("_offset", "_store", "name")

    def __init__(self, store: RestorableStore) -> None:
        self._store = store
        self._offset: int | None = None
        self.name = store.name

    def committed_offset(self) -> int | None:
        return self._store.committed_offset() if self._offset is None else self._offset

    def restore(self, rows: Sequence[ChangelogRow]) -> None:
        self._store.restore(rows)

    def commit(self, changelog_offset: int) -> None:
        self._store.commit(changelog_offset)
        self._offset = changelog_offset

    def end_restore(self) -> None:
        self._store.end_restore()


class KnownOffsets:
    """Where changelogs begin and end, asked for all of them at once."""

    def __init__(self, offsets: OffsetReader) -> None:
        self._offsets = offsets
        self._begins: Mapping[TopicPartition, int] = {}
        self._ends: Mapping[TopicPartition, int] = {}

    def refresh(self, partitions: Collection[TopicPartition]) -> None:
        """Asks anew."""
        self._begins = self._offsets.beginning_offsets(partitions, timeout_s=ASK_S)
        self._ends = self._offsets.end_offsets(partitions, timeout_s=ASK_S)

    def beginning_offsets(
        self, partitions: Collection[TopicPartition], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        return {one: self._begins[one] for one in partitions}

    def end_offsets(
        self, partitions: Collection[TopicPartition], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        return {one: self._ends[one] for one in partitions}


MakeRestorer: TypeAlias = Callable[[OffsetReader], tuple[Restorer, Callable[[], None]]]
"""Makes a restorer over known offsets; returns what closes its consumer, too."""

Reached: TypeAlias = Callable[[Mapping[TopicPartition, int]], None]
"""Called with offsets of inputs: the stores of a task stand for all records before them."""


@dataclass(slots=True)
class _Followed:
    stores: dict[TopicPartition, FollowedStore]
    reached: Reached
    aim: Mapping[TopicPartition, int] | None = None
    """The committed offsets that the stores stand for when they have come to the ends of this round."""
    is_warm: bool = False
    """Whether they have come to the end of their changelogs once."""


class ChangelogRounds:
    """The changelogs of the standby tasks of one process.

    :param restorer: makes what reads changelogs, and what closes it; called when there is something to read.
    :param limits: the committed offsets of a task: up to them its inputs may be read that serve as changelogs, and what
        comes of all records before them is in its changelogs by then.
    """

    def __init__(
        self,
        restorer: MakeRestorer,
        offsets: OffsetReader,
        limits: Callable[[TaskId], Mapping[TopicPartition, int]],
        clock: Clock,
    ) -> None:
        self._make_restorer = restorer
        self._known = KnownOffsets(offsets)
        self._limits = limits
        self._clock = clock
        self._followed: dict[TaskId, _Followed] = {}
        self._restorer: Restorer | None = None
        self._close_restorer: Callable[[], None] = lambda: None
        self._round_at = clock.monotonic()

    @property
    def due_at(self) -> float | None:
        """When the next round begins; ``None`` without anything to follow."""
        return self._round_at if self._followed else None

    @property
    def is_busy(self) -> bool:
        """Whether a store is behind the end that its changelog had when the round began."""
        restorer = self._restorer
        return restorer is not None and any(restorer.is_restoring(task_id) for task_id in self._followed)

    def positions(self) -> dict[TopicPartition, int]:
        """How far the changelogs are that are being read; may be called from any thread."""
        restorer = self._restorer
        return {} if restorer is None else restorer.positions()

    def add(self, task_id: TaskId, stores: Mapping[TopicPartition, RestorableStore], reached: Reached) -> None:
        """Follows the stores of a task from now on, with a round that begins at once.

        :param reached: called at the end of each round.
        """
        followed = {place: FollowedStore(store) for place, store in stores.items()}
        self._followed[task_id] = _Followed(followed, reached)
        self._round_at = self._clock.monotonic()

    def remove(self, task_id: TaskId) -> None:
        """Stops following a task; its stores are committed with the offsets they have come to."""
        followed = self._followed.pop(task_id, None)
        if followed is not None and followed.stores and self._restorer is not None:
            self._restorer.remove(task_id)

    def turn(self, now: float) -> Iterator[Setback]:
        """Goes on with what is being read, and begins a round when it is due; yields what cannot be followed.

        A task with a setback has to be removed before the next one is asked for.
        """
        if not self._followed:
            return
        if self._restorer is None:
            self._restorer, self._close_restorer = self._make_restorer(self._known)
        restorer = self._restorer
        if now >= self._round_at:
            self._round_at = now + ROUND_S
            yield from self._begin(restorer)
            self._note_ends(restorer)
        if self.is_busy:
            yield from restorer.step(_FETCH_S)
            self._note_ends(restorer)

    def close(self) -> None:
        """Closes the reader of changelogs; another one is made when there is something to read."""
        close, self._close_restorer = self._close_restorer, lambda: None
        self._restorer = None
        close()

    def _begin(self, restorer: Restorer) -> Iterator[Setback]:
        idle = {task_id: one for task_id, one in self._followed.items() if not restorer.is_restoring(task_id)}
        # what was committed was in the changelogs already, and so it lies before the ends that are asked for now
        for task_id, one in idle.items():
            one.aim = self._limits(task_id)
        self._known.refresh({place for one in idle.values() for place in one.stores})
        for task_id, one in idle.items():
            if setback := restorer.add(task_id, one.stores, one.aim or {}):
                one.aim = None
                yield setback

    def _note_ends(self, restorer: Restorer) -> None:
        for task_id, one in self._followed.items():
            if one.aim is None or restorer.is_restoring(task_id):
                continue
            one.reached(one.aim)
            one.aim = None
            if not one.is_warm:
                one.is_warm = True
                log.info("standby task %s is up to date", task_id)
