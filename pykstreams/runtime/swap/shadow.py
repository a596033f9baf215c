"""The next generation of a task that runs: made beside it, brought to where it is, and written to its changelogs.

It works on the thread of the state updater, in slices, like a task that is restored; ``follow`` and ``swap`` are for
the worker's thread, which looks at ``near``, ``written`` and ``failure``.

Invariant: nothing that the shadow does is seen by anybody until the transaction is committed whose offsets are
``written``; it never reads beyond what the live task has committed (``BoundedInputs``).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from pykstreams.core.errors import BootstrapError, ClusterError, ClusterUnavailableError, StreamsError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.positions import OffsetReader, Offsets
from pykstreams.runtime.swap.bootstrap import GENERATION
from pykstreams.runtime.swap.bounded_inputs import BoundedInputs, InputReader
from pykstreams.runtime.swap.generation import Generation
from pykstreams.runtime.swap.only_stores import only_stores
from pykstreams.runtime.swap.swap_output import SwapOutput
from pykstreams.runtime.tasks.offset_metadata import decode, encode
from pykstreams.runtime.tasks.task import Task
from pykstreams.state.bulk.differences import differences
from pykstreams.state.bulk.take_over import forget_next, next_of, put_in_place
from pykstreams.topology.plan import SubtopologyPlan

log = logging.getLogger(__name__)

_IN_FLIGHT_S: Final = 0.01
_BATCH: Final = 1000
_COMMIT_EVERY: Final = 50_000


class MakeTask(Protocol):
    """Makes a task that sends nothing."""

    def __call__(
        self,
        task_id: TaskId,
        plan: SubtopologyPlan,
        inputs: Collection[TopicPartition],
        directory: Path,
        lag: Callable[[TopicPartition], int],
        wake: Callable[[], None],
        /,
    ) -> Task: ...


@dataclass(frozen=True, slots=True)
class ShadowParts:
    """The clients and settings that the shadows of one worker share; there is one shadow at a time.

    :param plans: the sub-topologies by number.
    :param make_reader: makes the consumer that reads inputs again; each shadow has its own.
    :param directory: the folder of a task.
    """

    plans: Mapping[int, SubtopologyPlan]
    make_task: MakeTask
    make_reader: Callable[[], InputReader]
    offsets: OffsetReader
    output: SwapOutput
    directory: Callable[[TaskId], Path]


class Shadow:
    """The next generation of one task.

    :param live: the task, which works on while this one comes near, and is held from ``swap`` on.
    :param committed: what was committed for it last.
    """

    def __init__(self, live: Task, committed: Offsets, generation: Generation, parts: ShadowParts) -> None:
        self.task_id = live.id
        self.written: Offsets | None = None
        """The offsets to commit in the transaction that is open then, for the swap to be done."""
        self.failure: StreamsError | None = None
        """Why there is nothing to be swapped to; what was made is deleted."""
        self._live = live
        self._generation = generation
        self._parts = parts
        self._plan = parts.plans[live.id.subtopology]
        self._directory = parts.directory(live.id)
        self._begins = generation.start_of(live.id, live.input_partitions, committed)
        self._inputs = BoundedInputs(live.id, self._begins, parts.make_reader)
        self._inputs.limit(committed)
        self._reached: Mapping[TopicPartition, int] | None = None
        self._last: Offsets | None = None
        self._uncommitted = 0
        self._woken = threading.Event()
        self._task: Task | None = None
        self._writes = False
        self._steps = self._run(committed)

    @property
    def near(self) -> bool:
        """Whether it has come to the last commit of the live task that it was notified of."""
        return self._reached is self._inputs.limits

    def follow(self, committed: Offsets) -> None:
        """Follows a commit of the live task."""
        self._inputs.limit(committed)

    def swap(self, committed: Offsets) -> None:
        """Follows the commit at which the live task is held, up to which and no further."""
        self._inputs.limit(committed)
        self._last = dict(committed)

    def step(self) -> bool:
        """Goes on a bit; whether there is more to do at once."""
        try:
            return next(self._steps, False)
        except StreamsError as error:
            try:
                self.discard()
            except Exception:  # its task is to go on all the same
                log.exception("task %s: what was made as its next state was not deleted", self.task_id)
            self.failure = error
            return False

    def adopt(self) -> None:
        """Takes the place of the live task's state; the transaction is committed and the live task closed."""
        task = self._opened()
        try:
            task.post_commit(self._parts.offsets.end_offsets(self._changelogs))
        except ClusterError as error:  # what was written is read again, which changes nothing
            log.info("task %s: the ends of its changelogs are unknown: %s", self.task_id, error)
        self._writes = False
        self._let_go()
        put_in_place(self._directory)
        log.info("task %s: its state is that of bootstrap %s now", self.task_id, self._generation.bootstrap.manifest.id)

    def discard(self) -> None:
        """Deletes what was made, and writes nothing of what was not committed.

        Everything is let go of, whatever one of its parts raises; an error has those before it as its context.
        """
        try:
            self._steps.close()
            if self._writes:
                self._writes = False
                self._parts.output.abort()
        finally:
            try:
                self._let_go()
            finally:
                forget_next(self._directory)

    @property
    def _changelogs(self) -> list[TopicPartition]:
        return [TopicPartition(topic, self.task_id.partition) for topic in self._plan.changelogs.values()]

    def _opened(self) -> Task:
        if self._task is None:
            raise StreamsError(f"the shadow of task {self.task_id} is not open", task_id=self.task_id)
        return self._task

    def _run(self, committed: Offsets) -> Generator[bool, None, None]:
        self._generation.check(self.task_id, self._live.input_partitions, committed)
        self._open()
        yield True
        while (last := self._last) is None or not self._is_at(self._inputs.limits):
            if self._is_at(limits := self._inputs.limits):
                self._reached = limits
                yield False
            else:
                self._inputs.read(limits, self._opened())
                self._process()
                yield True
        offsets = yield from self._sealed(last)
        yield from self._write(committed)
        self.written = offsets

    def _open(self) -> None:
        beside = next_of(self._directory)
        try:
            forget_next(self._directory)
            beside.mkdir()
        except OSError as error:
            raise BootstrapError(
                f"the next state of task {self.task_id} cannot be made in {str(beside)!r}: {error}; look at the disk "
                "(space, permissions)",
                task_id=self.task_id,
            ) from error
        self._generation.take_over(self.task_id, beside)
        self._task = task = self._parts.make_task(
            self.task_id,
            only_stores(self._plan),
            self._live.input_partitions,
            beside,
            self._inputs.lag,
            self._woken.set,
        )
        task.open_stores()
        for name, time in self._generation.observed_times(self.task_id).items():
            task.stores[name].advance(time)
        task.start(self._begins)
        log.info("task %s: its next state is loaded, and follows from %s", self.task_id, self._inputs.positions)

    def _is_at(self, limits: Mapping[TopicPartition, int]) -> bool:
        task = self._opened()
        return self._inputs.are_at(limits) and not (task.buffered or task.unfinished)

    def _process(self) -> None:
        task = self._opened()
        self._woken.clear()
        while task.is_ready() and (count := task.process(_BATCH)):
            self._uncommitted += count
        if task.unfinished:
            self._woken.wait(_IN_FLIGHT_S)
        if self._uncommitted >= _COMMIT_EVERY and task.settle():
            self._uncommitted = 0
            task.prepare_commit()
            task.post_commit({})

    def _sealed(self, last: Offsets) -> Generator[bool, None, Offsets]:
        """Makes durable what was made; returns the offsets to commit."""
        task = self._opened()
        self._inputs.pause()
        task.metadata.put(GENERATION, self._generation.number)
        while not task.settle():
            self._woken.wait(_IN_FLIGHT_S)
            yield True
        found = task.prepare_commit()
        task.post_commit(self._parts.offsets.end_offsets(self._changelogs))
        offsets = {}
        for place, (offset, text) in found.items():
            time, numbers = decode(text)
            if place in last:
                offset, time = last[place][0], max(time, decode(last[place][1])[0])
            offsets[place] = offset, encode(time, numbers)
        return offsets

    def _write(self, committed: Offsets) -> Iterator[bool]:
        """Writes to the changelogs what they lack, in a transaction that is left open."""
        live, task, output = self._live, self._opened(), self._parts.output
        everything = self._generation.needs_everything(committed)
        self._writes = True
        output.begin()
        count, time = 0, max(0, live.stream_time, task.stream_time)
        for name, store in task.stores.items():
            write = output.writer(self.task_id, name, self._plan.changelogs[name])
            for rows in differences(live.stores[name], store, live.gate.read, time=time, everything=everything):
                for row in rows:
                    write(*row)
                count += len(rows)
                output.poll()
                yield True
        while not self._is_delivered():
            yield True
        log.info("task %s: its next state differs by %d rows", self.task_id, count)

    def _is_delivered(self) -> bool:
        """Waits a moment for what was written; what is not delivered in its time is an error by itself."""
        try:
            self._parts.output.flush()
        except ClusterUnavailableError as error:
            log.info("task %s: its next state is not written yet: %s", self.task_id, error)
            return False
        return True

    def _let_go(self) -> None:
        task, self._task = self._task, None
        try:
            self._inputs.close()
        finally:
            if task is not None:
                task.close()
