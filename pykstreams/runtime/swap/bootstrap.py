"""The use of a bootstrap by a worker: it is checked, the group starts from its offsets, and tasks get its files.

The group remembers which bootstrap its state is based on: a number beside each committed offset, the *pin*, which every
later commit carries on. It lives as long as the offsets, and every worker reads it before it opens a task, whether it
was given the bootstrap or not. So nobody starts the group twice, nobody takes up state from before, and state that only
the files of the bootstrap hold is never restored without them.

Who starts the group, and when:

- It has no offsets: those of the bootstrap are committed, with the pin, in one request. All workers that start at
  once may do so; they commit the same, and only while the group has no members.
- Its offsets carry the pin of this bootstrap: it was started from it, and goes on where it is.
- It has other offsets: refused, unless ``--reset-offsets`` says that they are to be given up.

What the files stand for must be all that there is: no record may have been written to the changelogs since, and the
inputs must still have the offsets.

The state of a task may have been swapped for that of another bootstrap while it ran (``generation``). Then a second
number is committed beside the pin, the *generation*, and everything is in the changelogs: files are needed no more.

Invariant: the folder of a task that has a generation, or else a pin, is marked with it, or is emptied before the task
is opened; but state that the group began with is kept, and brought to the generation by its changelogs.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from pykstreams.core.clock import Clock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import BootstrapError, TaskMigratedError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.positions import BEGINNING, END, OffsetReader, Offsets
from pykstreams.runtime.tasks.offset_metadata import UNKNOWN_TIME, decode, encode
from pykstreams.runtime.tasks.stores.initial_state import InitialState
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.state.bulk.description import described, differences
from pykstreams.state.bulk.folder import AnyFolder, folder_at
from pykstreams.state.bulk.manifest import Manifest, read, verify
from pykstreams.state.bulk.take_over import StoreToMake, forget_next, mark_of, put_mark, take_over
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.topology.plan import SubtopologyPlan, TopologyPlan

log = logging.getLogger(__name__)

PIN = "pykstreams.bootstrap"
"""The name of the pin among the numbers of operators."""

GENERATION = "pykstreams.generation"
"""The name of the number of what state was swapped for last."""

_PATIENCE_S = 20.0
_PAUSE_S = 0.5


class Group(Protocol):
    """The methods that this module calls of a client that knows the group, and is no member of it."""

    def committed(self, partitions: Collection[TopicPartition], timeout: float) -> Offsets | None: ...

    def commit(self, offsets: Offsets) -> bool: ...

    def poll(self, timeout: float) -> None: ...


@dataclass(frozen=True, slots=True)
class Pin:
    """Which bootstrap state is based on, and whether its files are the only place of some of it."""

    number: int
    base_only: bool

    @classmethod
    def of(cls, manifest: Manifest) -> Pin:
        """The pin of a bootstrap."""
        return cls(manifest.number, manifest.changelog == "base-only")

    @classmethod
    def found(cls, metadata: str) -> Pin | None:
        """The pin in the text beside a committed offset."""
        value = decode(metadata)[1].get(PIN)
        return None if value is None else cls(value >> 1, bool(value & 1))

    @property
    def value(self) -> int:
        """The number that is committed."""
        return self.number << 1 | self.base_only

    @property
    def mark(self) -> str:
        """The mark on state that is based on it."""
        return f"{self.number:016x}"


def generation_of(committed: Offsets) -> int | None:
    """The generation of a task, by its committed offsets: all of them were committed anew when it was swapped."""
    return max((found for _, text in committed.values() if (found := decode(text)[1].get(GENERATION))), default=None)


def generation_mark(number: int) -> str:
    """The mark on state of a generation."""
    return f"{number:016x}"


class Bootstrap:
    """A bootstrap that a worker was given.

    Raises ``BootstrapError`` for one that is incomplete, or is not of this topology. Its files are only looked for:
    they are read when a task takes them over.
    """

    def __init__(self, where: AnyFolder, plan: TopologyPlan, config: StreamsConfig) -> None:
        self.folder = folder = folder_at(where)
        self.manifest = manifest = read(folder)
        self.pin = Pin.of(manifest)
        self._plan = plan
        self._name = f"bootstrap {manifest.id} in {str(folder)!r}"
        if manifest.application_id != plan.application_id:
            raise self.refused(
                f"was made for application {manifest.application_id!r}, and this is {plan.application_id!r}: offsets "
                "and topics belong to the name"
            )
        planned = described(plan, config)
        for name, store in manifest.stores.items():
            if name not in planned:
                raise self.refused(f"holds store {name!r}, which the topology has not; it has {sorted(planned)}")
            if found := differences(store.description, planned[name]):
                raise self.refused(
                    f"does not fit store {name!r} of the topology: {'; '.join(found)}. Run the topology that it was "
                    "made for, or bootstrap again"
                )
        if problems := verify(folder, manifest, hashes=False):
            more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
            raise self.refused(f"is incomplete: {problems[0]}{more}. Copy it again, or bootstrap again")

    def refused(self, why: str) -> BootstrapError:
        """The error for a bootstrap that cannot be used."""
        return BootstrapError(f"{self._name} {why}")

    def check_tasks(self, layout: TopicLayout) -> None:
        """Refuses a cluster with other numbers of tasks."""
        tasks: dict[int, int] = {}
        for task_id in layout.inputs:
            tasks[task_id.subtopology] = tasks.get(task_id.subtopology, 0) + 1
        for name, store in self.manifest.stores.items():
            found = tasks.get(store.description.subtopology, 0)
            if found != len(store.tasks):
                raise self.refused(
                    f"has {len(store.tasks)} tasks for store {name!r}, and by the partitions of its topics there are "
                    f"{found}; bootstrap again for that number"
                )
        for topic, offsets in self.manifest.source_offsets.items():
            count = layout.partitions.get(topic)
            if count is not None and sorted(offsets) != list(range(count)):
                raise self.refused(
                    f"has offsets for the partitions {sorted(offsets)} of topic {topic!r}, which has {count}; "
                    "bootstrap again"
                )

    def offset_of(self, part: SubtopologyPlan, store: str, partition: int) -> tuple[TopicPartition, int] | None:
        """Which changelog partition a store of a task is restored from, and what its files stand for there."""
        topic = part.changelogs.get(store)
        if topic is None:
            return None
        place = TopicPartition(topic, partition)
        if topic in part.changelog_topics:
            return place, self.manifest.stores[store].tasks[partition].changelog_offset
        # a source topic serves as changelog: the table is as it was at the offset that is read next
        return place, self.manifest.source_offsets.get(topic, {}).get(partition, 0)


class GroupStart:
    """Settles where the group begins, before this worker joins it.

    :param policy: gives where to begin with an input of which the bootstrap says nothing: an offset, ``BEGINNING`` or
        ``END``.
    """

    def __init__(
        self,
        bootstrap: Bootstrap,
        plan: TopologyPlan,
        layout: TopicLayout,
        *,
        group: Group,
        offsets: OffsetReader,
        policy: Callable[[TopicPartition], int],
        clock: Clock,
    ) -> None:
        self._bootstrap = bootstrap
        self._plan = plan
        self._layout = layout
        self._group = group
        self._offsets = offsets
        self._policy = policy
        self._clock = clock
        self._deadline = clock.monotonic() + _PATIENCE_S

    def settle(self, *, reset: bool) -> None:
        """Commits the offsets of the bootstrap where the group has none, or is to give up those it has."""
        while True:
            committed = self._committed()
            if committed and self._goes_on(committed):
                log.info("%s goes on where it is", self._name)
                return
            if committed and not reset:
                place = min(committed)
                raise self._bootstrap.refused(
                    f"cannot be started from: {self._name} has offsets already, which did not begin with it, such as "
                    f"{committed[place][0]} in {place}. To give them up, stop all workers and start with "
                    "--reset-offsets; to keep them, start without --bootstrap"
                )
            if self._begin():
                return

    @property
    def _name(self) -> str:
        return f"group {self._plan.application_id!r}"

    def _goes_on(self, committed: Offsets) -> bool:
        """Whether offsets began with this bootstrap; inputs that came later began by their own policy."""
        mine = self._bootstrap.pin
        pins = {place: Pin.found(metadata) for place, (_, metadata) in committed.items()}
        known = self._bootstrap.manifest.source_offsets
        return mine in pins.values() and all(
            pin == mine or (pin is None and place.topic not in known) for place, pin in pins.items()
        )

    def _begin(self) -> bool:
        """Commits the offsets of the bootstrap; false when somebody else may have done so meanwhile."""
        self._check_changelogs()
        offsets = self._first_offsets()
        try:
            if self._group.commit(offsets):
                log.info(
                    "%s starts from bootstrap %s, at offsets %s",
                    self._name,
                    self._bootstrap.manifest.id,
                    ", ".join(f"{place}: {offset}" for place, (offset, _) in sorted(offsets.items())),
                )
                return True
        except TaskMigratedError as error:  # the group has members, so it may have offsets now, too
            if self._clock.monotonic() > self._deadline:
                raise self._bootstrap.refused(
                    f"cannot be started from while {self._name} has other members: stop all workers, wait until their "
                    "sessions have ended, and start again"
                ) from error
        self._group.poll(_PAUSE_S)
        return False

    def _committed(self) -> Offsets:
        while (found := self._group.committed(self._inputs, _PATIENCE_S)) is None:
            if self._clock.monotonic() > self._deadline:
                raise self._bootstrap.refused(f"waits for the offsets of {self._name}, which the brokers do not tell")
            self._group.poll(_PAUSE_S)
        return found

    @property
    def _inputs(self) -> set[TopicPartition]:
        return {place for places in self._layout.inputs.values() for place in places}

    def _first_offsets(self) -> dict[TopicPartition, tuple[int, str]]:
        """Where each input begins: as the bootstrap says; what stands in repartition topics is in its state already."""
        manifest, pin = self._bootstrap.manifest, self._bootstrap.pin
        inputs = self._inputs
        begins, ends = self._offsets.beginning_offsets(inputs), self._offsets.end_offsets(inputs)
        internal = {topic for part in self._plan.subtopologies for topic in part.repartition_topics}
        found: dict[TopicPartition, tuple[int, str]] = {}
        for task_id, places in self._layout.inputs.items():
            numbers = {**manifest.metadata.get(str(task_id), {}), PIN: pin.value}
            for place in places:
                offset = manifest.source_offsets.get(place.topic, {}).get(place.partition)
                if offset is None:
                    wanted = END if place.topic in internal else self._policy(place)
                    offset = {BEGINNING: begins[place], END: ends[place]}.get(wanted, wanted)
                elif not begins[place] <= offset <= ends[place]:
                    raise self._bootstrap.refused(
                        f"goes on at offset {offset} of {place}, which goes from {begins[place]} to {ends[place]}: "
                        "records after the snapshot were deleted, or the topic is another one; bootstrap again"
                    )
                time = manifest.source_times.get(place.topic, {}).get(place.partition, UNKNOWN_TIME)
                found[place] = offset, encode(time, numbers)
        return found

    def _check_changelogs(self) -> None:
        """Refuses changelogs that hold anything that the bootstrap does not stand for."""
        expected = dict(self._expected_ends())
        begins, ends = self._offsets.beginning_offsets(expected), self._offsets.end_offsets(expected)
        for place, (store, expected_end) in sorted(expected.items()):
            begin, end = begins[place], ends[place]
            if expected_end is None and end > begin:
                raise self._bootstrap.refused(
                    f"does not hold store {store!r}, whose changelog {place} has records from {begin} to {end}: it "
                    "would be ahead of the offsets of the others. Bootstrap it, too, or delete its changelog"
                )
            if expected_end is not None and end != expected_end:
                raise self._bootstrap.refused(
                    f"stands for offset {expected_end} of {place}, the changelog of store {store!r}, which ends at "
                    f"{end}: something was written since. Delete the changelogs and bootstrap again"
                )

    def _expected_ends(self) -> Iterator[tuple[TopicPartition, tuple[str, int | None]]]:
        """Where the changelog of each store must end, ``None`` for one that must be empty."""
        stores = self._bootstrap.manifest.stores
        for task_id in self._layout.inputs:
            part = part_of(self._plan, task_id)
            for name, topic in part.changelogs.items():
                if topic in part.changelog_topics:
                    known = stores[name].tasks[task_id.partition].changelog_offset if name in stores else None
                    yield TopicPartition(topic, task_id.partition), (name, known)


class TaskBase:
    """The state that tasks begin with; one object per ``KafkaStreams``.

    :param bootstrap: the one that this worker was given, if any.
    """

    def __init__(
        self, plan: TopologyPlan, config: StreamsConfig, offsets: OffsetReader, bootstrap: Bootstrap | None
    ) -> None:
        self._plan = plan
        self._config = config
        self._offsets = offsets
        self._bootstrap = bootstrap

    def of_task(self, task_id: TaskId, committed: Offsets, directory: StateDirectory) -> InitialState:
        """The state that a task with these committed offsets begins with."""
        return InitialState(
            directory.task_path(task_id),
            lambda: self.make_ready(task_id, committed, directory),
            lambda: self.is_ready(task_id, committed, directory),
        )

    def make_ready(self, task_id: TaskId, committed: Offsets, directory: StateDirectory) -> None:
        """Brings the folder of a task, whose lock this worker holds, to what its committed offsets want.

        Raises ``BootstrapError`` where they want files that are not there.
        """
        path = directory.task_dir(task_id)
        forget_next(path)
        generation, pin, found = generation_of(committed), pinned(committed.values()), mark_of(path)
        if generation is not None:
            mark = generation_mark(generation)
            if found != mark and found != (None if pin is None else pin.mark):
                directory.wipe(task_id)
            # what is from before the swap, and of this group, becomes the other by reading on in the changelogs
            put_mark(path, mark)
            return
        if pin is None or found == pin.mark:
            return
        given = self._bootstrap
        part = part_of(self._plan, task_id)
        if given is not None and given.pin == pin:
            directory.wipe(task_id)
            take_over(path, task_id, given.folder, self._to_make(given, part, task_id), self._config, pin.mark)
        elif pin.base_only and part.changelogs:
            raise BootstrapError(
                f"the state of task {task_id} is based on a bootstrap whose rows are not in the changelogs "
                f"('base-only'), number {pin.mark}, and this worker was "
                + ("not given it" if given is None else f"given another one, {given.manifest.id}")
                + "; start it with --bootstrap DIR, where DIR holds that bootstrap",
                task_id=task_id,
            )
        else:
            directory.wipe(task_id)
            put_mark(path, pin.mark)

    def is_ready(self, task_id: TaskId, committed: Offsets, directory: StateDirectory) -> bool:
        """Whether ``make_ready`` would leave the stores as they are, and may so be called while they are open."""
        generation, pin = generation_of(committed), pinned(committed.values())
        found = mark_of(directory.task_dir(task_id))
        if generation is None:
            return pin is None or found == pin.mark
        return found in (generation_mark(generation), None if pin is None else pin.mark)

    def _to_make(self, given: Bootstrap, part: SubtopologyPlan, task_id: TaskId) -> list[StoreToMake]:
        wanted = {
            name: files
            for name, files in given.manifest.task_files(task_id).items()
            if given.manifest.stores[name].description.in_files
        }
        found = {name: given.offset_of(part, name, task_id.partition) for name in wanted}
        places = {one[0] for one in found.values() if one is not None}
        begins = self._offsets.beginning_offsets(places)
        ends = self._offsets.end_offsets(places)
        stores = []
        for name, files in wanted.items():
            topic, offset = part.changelogs.get(name), None
            if (known := found[name]) is not None:
                place, offset = known
                if offset > ends[place]:
                    raise given.refused(
                        f"stands for offset {offset} of {place}, the changelog of store {name!r}, which ends at "
                        f"{ends[place]}: the topic is another one; bootstrap again"
                    )
                # what retention has deleted meanwhile is too old for the store, too
                offset = max(offset, begins[place])
            stores.append(StoreToMake(part.stores[name], files, offset, topic))
        return stores


def pinned(committed: Iterable[tuple[int, str]]) -> Pin | None:
    """The pin of a task, which is beside the offset of at least one of its inputs."""
    return next((pin for _, metadata in committed if (pin := Pin.found(metadata)) is not None), None)


def part_of(plan: TopologyPlan, task_id: TaskId) -> SubtopologyPlan:
    """The sub-topology of a task."""
    return next(part for part in plan.subtopologies if part.id == task_id.subtopology)
