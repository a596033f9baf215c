"""A bootstrap that is to become the state of tasks that run: what fits, where tasks begin in it, and how far it is.

Tasks are swapped by ``runtime.worker.swaps`` and ``shadow``; docs/internals/bulk-bootstrap.md has the order of
events.

Invariant: a task never goes from one generation to another with a lower number, and a number rises with the time at
which its bootstrap was made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.types import Duration, duration_ms
from pykstreams.runtime.clients.positions import OffsetReader, Offsets
from pykstreams.runtime.swap.bootstrap import (
    PIN,
    Bootstrap,
    generation_mark,
    generation_of,
    part_of,
    pinned,
)
from pykstreams.runtime.tasks.offset_metadata import UNKNOWN_TIME, encode
from pykstreams.state.bulk.take_over import StoreToMake, take_over
from pykstreams.state.layers.engine_store import EngineStore
from pykstreams.topology.plan import SubtopologyPlan, TopologyPlan

_ID_BITS: Final = 20
"""How much of the id of a bootstrap is in the number of a generation, behind the time at which it was made."""


class Generation:
    """A bootstrap, as the next state of the tasks of its stores; one object per ``KafkaStreams.load_bootstrap``.

    Raises ``BootstrapError`` for a bootstrap that no task of this topology can be swapped to.
    """

    def __init__(self, bootstrap: Bootstrap, plan: TopologyPlan, config: StreamsConfig, offsets: OffsetReader) -> None:
        manifest = bootstrap.manifest
        self.bootstrap = bootstrap
        self.number = manifest.created_ms << _ID_BITS | manifest.number >> (62 - _ID_BITS)
        self.subtopologies = frozenset(store.description.subtopology for store in manifest.stores.values())
        self._plan = plan
        self._config = config
        self._offsets = offsets
        self._changed = threading.Condition()
        self._waiting: dict[str, frozenset[TaskId]] = {}
        self.error: StreamsError | None = None
        """Why it was given up; tasks that had been swapped before stay so."""
        for part in plan.subtopologies:
            if part.id in self.subtopologies:
                self._check_part(part)
        if not config.exactly_once and (
            reused := sorted(name for part in plan.subtopologies for name in part.reused_changelogs)
        ):
            raise bootstrap.refused(
                f"cannot be loaded while the application runs at_least_once and restores stores from its input topics "
                f"{reused}: changelogs must be read without what was not committed, and input topics with it. Run it "
                "exactly_once_v2, or without topology.optimization"
            )

    @property
    def mark(self) -> str:
        """The mark on state of this generation."""
        return generation_mark(self.number)

    def covers(self, task_id: TaskId) -> bool:
        """Whether it holds stores of a task."""
        return task_id.subtopology in self.subtopologies

    def is_due(self, task_id: TaskId, number: int | None) -> bool:
        """Whether a task that is of the generation of a number is to be swapped."""
        return self.covers(task_id) and (number is None or number < self.number)

    def check(self, task_id: TaskId, inputs: Collection[TopicPartition], committed: Offsets) -> None:
        """Refuses a task whose inputs cannot be read again from where the bootstrap ends."""
        found = generation_of(committed)
        if self.covers(task_id) and found is not None and found > self.number:
            raise self.bootstrap.refused(
                f"is older than the state of task {task_id}, which was swapped for that of a bootstrap made later; "
                "make a new bootstrap"
            )
        if not self.is_due(task_id, found):
            return
        part = part_of(self._plan, task_id)
        begins, ends = self._offsets.beginning_offsets(inputs), self._offsets.end_offsets(inputs)
        for place in sorted(inputs):
            offset = self._begin_of(place)
            if offset is None:
                raise self.bootstrap.refused(
                    f"has no offset for {place}, which task {task_id} reads, so nobody knows which records its state "
                    "lacks. Bootstrap with source_offsets; for a repartition topic nobody can tell them: bootstrap "
                    "under another application id, or stop the application and start it with --reset-offsets"
                )
            if not begins[place] <= offset <= ends[place]:
                gone = (
                    "a repartition topic is purged of what was processed"
                    if place.topic in part.repartition_topics
                    else "records after the snapshot were deleted, or the topic is another one"
                )
                raise self.bootstrap.refused(
                    f"goes on at offset {offset} of {place}, which goes from {begins[place]} to {ends[place]}: {gone}; "
                    "bootstrap again"
                )
            if place in committed and committed[place][0] < offset:
                raise self.bootstrap.refused(
                    f"goes on at offset {offset} of {place}, and task {task_id} has come to {committed[place][0]} "
                    "only; load it again when the application has come so far"
                )

    def start_of(
        self, task_id: TaskId, inputs: Iterable[TopicPartition], live: Offsets
    ) -> dict[TopicPartition, tuple[int, str]]:
        """The offsets at which a task begins that has this state; what the group began with is carried on."""
        manifest, pin = self.bootstrap.manifest, pinned(live.values())
        numbers = {**manifest.metadata.get(str(task_id), {}), **({} if pin is None else {PIN: pin.value})}
        found = {}
        for place in inputs:
            time = manifest.source_times.get(place.topic, {}).get(place.partition, UNKNOWN_TIME)
            found[place] = self._begin_of(place) or 0, encode(time, numbers)
        return found

    def needs_everything(self, live: Offsets) -> bool:
        """Whether the changelogs lack rows of the state of a task, which only the files of another bootstrap have."""
        pin = pinned(live.values())
        return pin is not None and pin.base_only and generation_of(live) is None

    def take_over(self, task_id: TaskId, directory: Path) -> None:
        """Makes the stores of a task in a folder that has none."""
        part, manifest = part_of(self._plan, task_id), self.bootstrap.manifest
        stores = [
            StoreToMake(part.stores[name], files, None, part.changelogs[name])
            for name, files in manifest.task_files(task_id).items()
        ]
        take_over(directory, task_id, self.bootstrap.folder, stores, self._config, self.mark)

    def observed_times(self, task_id: TaskId) -> Mapping[str, int]:
        """The highest time that was put into each store of a task."""
        return {name: files.observed_time for name, files in self.bootstrap.manifest.task_files(task_id).items()}

    def report(self, worker: str, waiting: frozenset[TaskId]) -> None:
        """Notes the report of a worker, all of whose tasks run: which of them are still to be swapped."""
        if self._waiting.get(worker) != waiting:
            with self._changed:
                self._waiting[worker] = waiting
                self._changed.notify_all()

    def give_up(self, error: StreamsError) -> None:
        """Swaps no further task."""
        with self._changed:
            self.error = self.error or error
            self._changed.notify_all()

    def wait(self, workers: Callable[[], Collection[str]], seconds: float | None) -> bool:
        """Waits until each of these workers has reported that none of its tasks is left, or until it is given up."""
        with self._changed:
            return self._changed.wait_for(lambda: self.error is not None or self._is_done(workers()), seconds)

    def waiting(self, workers: Collection[str]) -> frozenset[TaskId] | None:
        """The tasks of these workers that are still to be swapped; ``None`` while one of them has not reported."""
        reports = [self._waiting.get(worker) for worker in workers]
        return None if None in reports else frozenset(task for one in reports if one for task in one)

    def _is_done(self, workers: Collection[str]) -> bool:
        return bool(workers) and self.waiting(workers) == frozenset()

    def _begin_of(self, place: TopicPartition) -> int | None:
        return self.bootstrap.manifest.source_offsets.get(place.topic, {}).get(place.partition)

    def _check_part(self, part: SubtopologyPlan) -> None:
        stores = self.bootstrap.manifest.stores
        for name, builder in part.stores.items():
            if name not in stores:
                held = sorted(set(part.stores).intersection(stores))
                raise self.bootstrap.refused(
                    f"does not hold store {name!r}, which is in the same tasks as {held}: the stores of a task change "
                    "together. Bootstrap it, too"
                )
            why = None
            store, description = builder.build(), stores[name].description
            if not description.in_files:
                why = "it is not kept on disk"
            elif part.changelogs.get(name) is None:
                why = "it has no changelog, so that it would be lost with its worker"
            elif part.changelogs[name] not in part.changelog_topics:
                why = f"it is restored from its source topic {part.changelogs[name]!r}, which says what it is"
            elif (
                not isinstance(store, EngineStore)
                or store.logged_from is None
                or description.shape.get("retain_duplicates")
            ):
                why = f"the changelog of a store of its kind ({description.kind}) does not hold its rows one by one"
            if why is not None:
                raise self.bootstrap.refused(
                    f"cannot be loaded while the application runs: store {name!r} cannot be swapped, for {why}. Stop "
                    "the application, delete the changelogs, and start it from the bootstrap with --reset-offsets"
                )


class BootstrapLoad:
    """How far ``KafkaStreams.load_bootstrap`` is; any thread may ask.

    :param workers: the names of the workers that there are.
    """

    def __init__(self, generation: Callable[[], Generation | None], workers: Callable[[], Collection[str]]) -> None:
        self._generation = generation
        self._workers = workers

    @property
    def waiting(self) -> frozenset[TaskId] | None:
        """The tasks of this process that are still to be swapped; ``None`` while they are not all known and running."""
        generation = self._generation()
        return None if generation is None else generation.waiting(self._workers())

    @property
    def error(self) -> StreamsError | None:
        """Why no further task is swapped."""
        generation = self._generation()
        return None if generation is None else generation.error

    def wait(self, timeout: Duration | None = None) -> bool:
        """Waits until every task of this process is swapped; false when that took longer.

        Raises the error for which it was given up.
        """
        generation = self._generation()
        if generation is None:
            raise StreamsError("the application has not been started; call start() before you wait for its tasks")
        done = generation.wait(self._workers, None if timeout is None else duration_ms(timeout, "timeout") / 1000)
        if generation.error is not None:
            raise generation.error
        return done
