"""Follows the changelogs of open stores in rounds, with the same ``Restorer`` as active tasks.

A round goes from where a store was committed to the end that its changelog has by then; the ends of all changelogs are
asked for in one request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from pykstreams.core.clock import Clock
from pykstreams.core.errors import ClusterUnavailableError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.repeated_warnings import RepeatedWarnings
from pykstreams.runtime.clients.positions import OffsetReader
from pykstreams.runtime.restore.restore import ASK_S, RestorableStore, Restorer, Setback

log = logging.getLogger(__name__)

ROUND_S: Final = 1.0
"""How often a round begins."""

_FETCH_S: Final = 0.1


class OffsetsAtOnce:
    """An offset reader that asks once for many partitions whose offsets are wanted one task after the other."""

    def __init__(self, offsets: OffsetReader) -> None:
        self._offsets = offsets
        self._begins: Mapping[TopicPartition, int] = {}
        self._ends: Mapping[TopicPartition, int] = {}

    def ask(self, partitions: Collection[TopicPartition]) -> None:
        """Asks for partitions, whose offsets are those of now until ``forget``."""
        begins = self._offsets.beginning_offsets(partitions, timeout_s=ASK_S)
        self._begins, self._ends = begins, self._offsets.end_offsets(partitions, timeout_s=ASK_S)

    def forget(self) -> None:
        """Has each partition asked for when it is wanted."""
        self._begins, self._ends = {}, {}

    def beginning_offsets(
        self, partitions: Collection[TopicPartition], *, timeout_s: float | None = None
    ) -> Mapping[TopicPartition, int]:
        if self._begins.keys() >= set(partitions):
            return {one: self._begins[one] for one in partitions}
        return self._offsets.beginning_offsets(partitions, timeout_s=timeout_s)

    def end_offsets(
        self, partitions: Collection[TopicPartition], *, timeout_s: float | None = None
    ) -> Mapping[TopicPartition, int]:
        if self._ends.keys() >= set(partitions):
            return {one: self._ends[one] for one in partitions}
        return self._offsets.end_offsets(partitions, timeout_s=timeout_s)


MakeRestorer: TypeAlias = Callable[[OffsetReader], tuple[Restorer, Callable[[], None]]]
"""Makes a restorer that gets offsets from this reader; returns what closes its consumer, too."""

Reached: TypeAlias = Callable[[Mapping[TopicPartition, int]], None]
"""Called with offsets of inputs: the stores of a task stand for all records before them."""


@dataclass(slots=True)
class _Followed:
    stores: Mapping[TopicPartition, RestorableStore]
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
        self._offsets = OffsetsAtOnce(offsets)
        self._limits = limits
        self._clock = clock
        self._unknown = RepeatedWarnings(log, clock)
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
        self._followed[task_id] = _Followed(stores, reached)
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
            self._restorer, self._close_restorer = self._make_restorer(self._offsets)
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
        aims = {task_id: self._limits(task_id) for task_id in idle}
        try:
            self._offsets.ask({place for one in idle.values() for place in one.stores})
        except ClusterUnavailableError as error:
            self._unknown.warn("ends", "the ends of changelogs of standby tasks are asked for again: %s", error)
            return
        try:
            for task_id, one in idle.items():
                if setback := restorer.add(task_id, one.stores, aims[task_id]):
                    yield setback
                else:
                    one.aim = aims[task_id]
        finally:
            self._offsets.forget()

    def _note_ends(self, restorer: Restorer) -> None:
        for task_id, one in self._followed.items():
            if one.aim is None or restorer.is_restoring(task_id):
                continue
            one.reached(one.aim)
            one.aim = None
            if not one.is_warm:
                one.is_warm = True
                log.info("standby task %s is up to date", task_id)
