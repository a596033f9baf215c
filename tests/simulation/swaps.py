"""Workers that swap their tasks for another generation, over brokers in memory, in the order that a scheduler draws.

The worker's loop, its tasks, the state updater, shadows and swaps are those of the runtime, and stores lie on disk;
only clients and threads are replaced. A worker that dies leaves what it has sent, its files, and transactions that the
brokers abort some time later.

Invariant: a run is a pure function of its seed.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import StreamsError, TaskMigratedError
from pykstreams.core.hashing import partition_for_key
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.runtime.between_batches import BetweenBatches
from pykstreams.runtime.clients.consumers.lost_positions import LostPositions
from pykstreams.runtime.clients.consumers.messages import Fetched
from pykstreams.runtime.clients.consumers.restore_consumer import RestoreBatch
from pykstreams.runtime.clients.outage import Outage
from pykstreams.runtime.clients.positions import CommittedOffsets, Offsets
from pykstreams.runtime.clients.producer import DeliveryFailures
from pykstreams.runtime.membership.membership import Assignment, Lost
from pykstreams.runtime.membership.session_times import SessionTimes
from pykstreams.runtime.pause import Pause
from pykstreams.runtime.restore.restore import Restorer, StateRestoreListener
from pykstreams.runtime.swap.bootstrap import TaskBase
from pykstreams.runtime.swap.generation import Generation
from pykstreams.runtime.swap.only_stores import Nowhere
from pykstreams.runtime.swap.shadow import Shadow, ShadowParts
from pykstreams.runtime.swap.swap_output import SwapOutput
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.gate import Gates
from pykstreams.runtime.tasks.raw_message import RawMessage
from pykstreams.runtime.tasks.stores.initial_state import InitialState
from pykstreams.runtime.tasks.task import Task, TaskParts
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.runtime.worker.commits.commit import AtLeastOnce, CommitSteps, ExactlyOnce
from pykstreams.runtime.worker.start_offsets import StartOffsets
from pykstreams.runtime.worker.state_updater import StateUpdater
from pykstreams.runtime.worker.swaps import Swaps
from pykstreams.runtime.worker.task_folders import Standbys
from pykstreams.runtime.worker.task_manager import TaskManager
from pykstreams.runtime.worker.tasks_aside import TasksAside
from pykstreams.runtime.worker.topic_check import TopicCheck
from pykstreams.runtime.worker.unsettled_offsets import UnsettledOffsets
from pykstreams.runtime.worker.worker import Worker, WorkerParts
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.testing.capture import CapturingProducer
from pykstreams.testing.clock import MockClock
from pykstreams.testing.records import ProducedRecord
from pykstreams.topology.plan import TopologyPlan
from tests.unit.runtime.cluster_fakes import FakeBounds

_FETCHED = 7


@dataclass
class Transaction:
    """What one producer has written and not committed yet."""

    is_open: bool = True
    committed: bool = False
    offsets: dict[TopicPartition, tuple[int, str]] = field(default_factory=dict)


class Brokers:
    """Topics and the offsets of the group; records of open and aborted transactions are not read."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.counts = dict(counts)
        self.logs: defaultdict[TopicPartition, list[tuple[RawMessage, Transaction | None]]] = defaultdict(list)
        self.offsets: dict[TopicPartition, tuple[int, str]] = {}
        self.owners: dict[TaskId, SimulatedWorker] = {}
        self.open: list[Transaction] = []

    def append(self, record: ProducedRecord, transaction: Transaction | None = None) -> None:
        chosen = record.partition
        if chosen is None:
            assert record.key is not None
            chosen = partition_for_key(record.key, self.counts[record.topic])
        log = self.logs[TopicPartition(record.topic, chosen)]
        message = RawMessage(
            record.topic, chosen, len(log), record.timestamp or 0, record.key, record.value, record.headers
        )
        log.append((message, transaction))

    def read(self, place: TopicPartition, start: int, most: int) -> tuple[list[RawMessage], int]:
        """Some of what is committed, and the position behind it."""
        found: list[RawMessage] = []
        log = self.logs[place]
        while start < len(log) and len(found) < most:
            message, transaction = log[start]
            if transaction is not None and transaction.is_open:
                break
            if transaction is None or transaction.committed:
                found.append(message)
            start += 1
        return found, start

    def records(self, topic: str, partition: int) -> list[RawMessage]:
        return self.read(TopicPartition(topic, partition), 0, 1 << 30)[0]

    def table(self, topic: str, partition: int) -> dict[bytes, RawMessage]:
        """What compaction leaves."""
        found: dict[bytes, RawMessage] = {}
        for message in self.records(topic, partition):
            key = message.key()
            assert key is not None
            found.pop(key, None)
            if message.value() is not None:
                found[key] = message
        return found

    def end(self, transaction: Transaction, *, commit: bool) -> None:
        transaction.is_open, transaction.committed = False, commit
        self.open.remove(transaction)
        if commit:
            self.offsets.update(transaction.offsets)

    def beginning_offsets(
        self, places: Collection[TopicPartition], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        return dict.fromkeys(places, 0)

    def end_offsets(
        self, places: Collection[TopicPartition], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        return {place: len(self.logs[place]) for place in places}


class Producer:
    """A ``WorkerProducer``: records wait until they are flushed, and belong to a transaction if there is one.

    :param slowness: decides which flushes end before brokers have taken anything; ``None``: none.
    """

    def __init__(self, brokers: Brokers, worker: SimulatedWorker, slowness: Random | None = None) -> None:
        self.raw = _Queue(self, slowness)
        self.failures = DeliveryFailures()
        self.transaction: Transaction | None = None
        self.broken = False
        self._brokers = brokers
        self._worker = worker

    def start_transactions(self, timeout_s: float) -> None:
        """The scheduler aborts what a dead worker has left open."""

    def begin(self) -> None:
        assert self.transaction is None
        self.transaction = Transaction()
        self._brokers.open.append(self.transaction)

    def commit(self, offsets: Offsets, group_metadata: bytes) -> None:
        worker, transaction = self._worker, self.transaction
        assert transaction is not None
        self.flush()
        if not worker.owns(offsets):
            raise TaskMigratedError("the worker is not the one that has the tasks")
        transaction.offsets.update(offsets)
        self.transaction = None
        self._brokers.end(transaction, commit=True)

    def abort(self) -> bool:
        self.raw.take()
        transaction, self.transaction = self.transaction, None
        if transaction is not None:
            self._brokers.end(transaction, commit=False)
        return True

    def discard(self) -> None:
        """What waits is gone."""
        self.raw.take()

    def flush(self) -> None:
        for record in self.raw.take():
            self._brokers.append(record, self.transaction)

    def die(self, sent: float) -> None:
        """Of what waits a first part is sent."""
        records = self.raw.take()
        for record in records[: round(len(records) * sent)]:
            self._brokers.append(record, self.transaction)


class _Queue(CapturingProducer):
    def __init__(self, producer: Producer, slowness: Random | None) -> None:
        super().__init__()
        self._producer = producer
        self._slowness = slowness

    def flush(self, timeout_s: float, /) -> int:
        if self._slowness is not None and self._slowness.random() < 0.8:
            return 1
        self._producer.flush()
        return 0


class Reader:
    """A consumer, of inputs or of changelogs."""

    def __init__(self, brokers: Brokers, random: Random) -> None:
        self._brokers = brokers
        self._random = random
        self._positions: dict[TopicPartition, int] = {}

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        assert not set(positions) & set(self._positions)
        self._positions.update({place: max(0, offset) for place, offset in positions.items()})

    def unassign(self, partitions: Collection[TopicPartition]) -> None:
        for place in partitions:
            del self._positions[place]

    def close(self) -> None:
        self._positions.clear()

    def lag(self, place: TopicPartition) -> int:
        return len(self._brokers.logs[place]) - self._positions.get(place, 0)

    def _next(self) -> tuple[TopicPartition, list[Any], int] | None:
        if not self._positions:
            return None
        place = self._random.choice(sorted(self._positions))
        messages, position = self._brokers.read(place, self._positions[place], self._random.randint(1, _FETCHED))
        self._positions[place] = position
        return place, messages, position


class InputReader(Reader):
    paused: frozenset[TopicPartition] = frozenset()
    """None: little is read at a time."""

    def fetch(self, timeout: float) -> Fetched:
        found = self._next()
        return Fetched({found[0]: found[1]} if found is not None and found[1] else {})

    def seek(self, partition: TopicPartition, offset: int) -> None:
        raise AssertionError

    def position(self, partition: TopicPartition) -> int | None:
        return None

    def end(self, partition: TopicPartition) -> int | None:
        return None

    def start(self, partition: TopicPartition) -> int | None:
        return None

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        assert not partitions

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        assert not partitions


class WholeReader(Reader):
    def fetch(self, timeout: float) -> RestoreBatch:
        found = self._next()
        if found is None:
            return RestoreBatch()
        place, messages, position = found
        return RestoreBatch({place: messages} if messages else {}, {place: position})


class Updater(StateUpdater):
    """The state updater without its thread."""

    def start(self) -> None:
        self._restorer, _ = self._make_restorer()

    def go_on(self) -> None:
        assert self._restorer is not None
        self.turn(self._restorer, 0)

    def stop(self) -> None:
        self.go_on()

    def die(self) -> None:
        """Closes what is open, as the end of a process does, and changes nothing else."""
        shadows = [self._shadow]
        for task, _ in self._restoring.values():
            task.close()
        while not self._orders.empty():
            order = self._orders.get()
            if order is not None and not isinstance(order, Shadow):
                order.task.close()
                leaves = getattr(order, "leaves", None)
                shadows.append(leaves if isinstance(leaves, Shadow) else None)
        for shadow in shadows:
            if shadow is not None:
                shadow._let_go()


class Member:
    """A worker's place in the group, whose tasks the scheduler shares out."""

    def __init__(self, worker: SimulatedWorker, brokers: Brokers) -> None:
        self._worker, self._brokers = worker, brokers
        self.changes: list[Assignment | Lost] = []
        self.revoke: Callable[[frozenset[TaskId]], None] = lambda _: None
        self.joins = False
        """Whether a join is under way, at whose end it has the same tasks."""

    def start(self, layout: TopicLayout, on_revoked: Callable[[frozenset[TaskId]], None]) -> None:
        self.revoke = on_revoked

    def follow(self, layout: TopicLayout) -> None:
        """They stay the same."""

    def may_commit(self) -> bool:
        return not self.joins

    def poll(self, timeout: float = 0) -> Assignment | Lost | None:
        return self.changes.pop(0) if self.changes else None

    def ack(self, change: Any) -> None:
        """It is believed."""

    times = SessionTimes(2, 6)

    def silent_s(self) -> float:
        return 0.0

    def commit(self, offsets: Offsets) -> bool:
        if not self._worker.owns(offsets):
            raise TaskMigratedError("no member any more")
        if self.joins:
            return False
        self._brokers.offsets.update(offsets)
        return True

    def committed(self, partitions: Collection[TopicPartition]) -> CommittedOffsets:
        unsettled = frozenset(place for one in self._brokers.open for place in one.offsets if place in partitions)
        offsets = {place: found for place, found in self._brokers.offsets.items() if place in partitions}
        return CommittedOffsets({place: offsets[place] for place in offsets.keys() - unsettled}, unsettled)

    def note_of(self, task: TaskId) -> TopicPartition:
        return TopicPartition(f"tasks-{task.subtopology}", task.partition)

    def transaction_metadata(self) -> bytes:
        if self.joins:
            raise TaskMigratedError("not in the group at the moment")
        return b"metadata"

    def close(self, leave: bool) -> None:
        """It has left."""


@dataclass
class Output:
    commits: Any
    holds_records: bool = False

    def prepare(self) -> None:
        self.commits.prepare()

    def poll(self) -> None:
        """Nothing is under way."""

    def keeps_up(self) -> bool:
        return True

    def renew(self) -> None:
        raise StreamsError("a producer is never out of use here")

    def close(self) -> None:
        """Nothing is held."""


class BegunRestores(StateRestoreListener):
    """Keeps from where to where each store was to be restored."""

    def __init__(self) -> None:
        self.offsets: list[tuple[int, int]] = []

    def on_restore_start(
        self, topic_partition: TopicPartition, store_name: str, starting_offset: int, ending_offset: int
    ) -> None:
        self.offsets.append((starting_offset, ending_offset))


class SimulatedWorker:
    """A worker with files in a folder, which is its machine.

    :param standbys: the standby tasks of the same machine, if it keeps any; they have the same gates.
    """

    def __init__(
        self,
        plan: TopologyPlan,
        config: StreamsConfig,
        layout: TopicLayout,
        brokers: Brokers,
        folder: Path,
        random: Random,
        standbys: Standbys | None = None,
        gates: Gates | None = None,
    ) -> None:
        self.folder = folder
        self.loaded = False
        self._random = random
        self._layout, self._brokers, self._config = layout, brokers, config
        self.clock = clock = MockClock(0)
        self.directory = StateDirectory(folder, config.application_id, clock=clock)
        self.member = Member(self, brokers)
        self.producers = [Producer(brokers, self)]
        exactly_once = config.exactly_once
        collector = self._collector(self.producers[0].raw, holds_changelogs=not exactly_once)
        steps = CommitSteps(
            deliveries=collector,
            membership=self.member,
            end_offsets=brokers.end_offsets,
            on_committed=lambda offsets: None,
            clock=clock,
            outage=Outage("commits of worker", clock, 300),
        )
        commits = ExactlyOnce(steps, self.producers[0], clock, 10_000) if exactly_once else AtLeastOnce(steps)
        self.begun_restores = BegunRestores()
        self.updater = Updater(
            "updater",
            restorer=lambda: (Restorer(WholeReader(brokers, random), brokers, self.begun_restores), lambda: None),
            directory=self.directory,
            clock=clock,
            task_timeout_ms=300_000,
            cleanup_delay_ms=600_000,
            standbys=standbys,
        )
        gates = gates or Gates()
        base = TaskBase(plan, config, brokers, None)
        parts = {part.id: part for part in plan.subtopologies}
        reader = InputReader(brokers, random)

        def make_task(
            task_id: TaskId, inputs: frozenset[TopicPartition], committed: Offsets, interrupted: bool
        ) -> Task:
            return Task(
                task_id,
                parts[task_id.subtopology],
                sorted(inputs),
                TaskParts(
                    config=config,
                    clock=clock,
                    collector=collector,
                    cache=RecordCache(config.statestore_cache_max_bytes),
                    metrics=StreamsMetrics(),
                ),
                base.of_task(task_id, committed, self.directory),
                lag=reader.lag,
                end_offsets=brokers.end_offsets if interrupted else None,
                gate=gates.of(task_id),
            )

        start = StartOffsets(plan, "earliest", lambda places, time: {}, clock)
        self.tasks = TaskManager(
            inputs=layout.inputs,
            membership=self.member,
            reader=reader,
            updater=self.updater,
            start_offsets=start,
            make_task=make_task,
            before_start=commits.before_processing,
            aside=TasksAside(clock),
            unsettled=UnsettledOffsets("app", clock, 300),
            note_of=(lambda _: None) if exactly_once else self.member.note_of,
        )
        swap_output = SwapOutput(self._make_swap_output)
        shadow_parts = ShadowParts(
            parts,
            self._shadow_task,
            lambda: WholeReader(brokers, random),
            brokers,
            swap_output,
            self.directory.task_dir,
        )
        self.shadows: list[TaskId] = []

        def make_shadow(task: Task, committed: Offsets, generation: Generation) -> Shadow:
            self.shadows.append(task.id)
            return Shadow(task, committed, generation, shadow_parts)

        self.swaps = Swaps(
            "worker",
            tasks=self.tasks,
            updater=self.updater,
            membership=self.member,
            output=swap_output,
            make_shadow=make_shadow,
            clock=clock,
            transaction_s=60,
        )
        self.worker = Worker(
            "worker",
            WorkerParts(
                membership=self.member,
                reader=reader,
                updater=self.updater,
                output=Output(commits),
                tasks=self.tasks,
                purge=None,
                lost_positions=LostPositions(FakeBounds({}), start, clock),
                topic_check=TopicCheck(lambda: layout, clock, 300_000, lambda act: act()),
                cache=RecordCache(0),
                woken=threading.Event(),
                swaps=self.swaps,
                pause=Pause(),
                between=BetweenBatches(),
                topic_watch=None,
                metrics=StreamsMetrics(),
                process_id="",
            ),
            layout=layout,
            config=config,
            clock=clock,
        )
        self.updater.start()
        self.member.start(layout, self.worker.revoked)

    def owns(self, offsets: Offsets) -> bool:
        """Whether the tasks that read these partitions are its own."""
        tasks = [
            task
            for task, inputs in self._layout.inputs.items()
            if inputs.union({self.member.note_of(task)}).intersection(offsets)
        ]
        return all(self._brokers.owners.get(task) is self for task in tasks)

    def assign(self, tasks: frozenset[TaskId]) -> None:
        """Gives it these tasks; others have let go of them."""
        mine = frozenset(task for task, owner in self._brokers.owners.items() if owner is self)
        if going := mine - tasks:
            self.member.revoke(going)
        self._brokers.owners = {task: one for task, one in self._brokers.owners.items() if one is not self}
        self._brokers.owners.update(dict.fromkeys(tasks, self))
        self.member.changes = [Assignment(tasks, self._layout)]

    def load(self, generation: Generation) -> None:
        self.loaded = True
        self.worker.load(generation)

    def go_on(self) -> None:
        """Lets one of its threads go on."""
        if self._random.random() < 0.5:
            self.updater.go_on()
        else:
            self.clock.advance(self._random.choice((0, 10, 50)))
            self.worker.step()

    @property
    def is_clean(self) -> bool:
        """Whether nothing of its work is uncommitted."""
        return not any(one.task.commit_needed for one in self.tasks.running.values())

    def die(self) -> None:
        """Ends it as SIGKILL does."""
        for producer in self.producers:
            producer.die(self._random.random())
        for task in self.tasks.tasks():
            task.close()
        self.updater.die()
        self.directory.close()
        self._brokers.owners = {task: one for task, one in self._brokers.owners.items() if one is not self}

    def _collector(self, raw: Any, **more: Any) -> RecordCollector:
        return RecordCollector(
            raw,
            config=self._config,
            partition_count=lambda topic: self._brokers.counts.get(topic, 0),
            **more,
        )

    def _make_swap_output(self) -> tuple[Producer, RecordCollector]:
        producer = Producer(self._brokers, self, self._random)
        self.producers.append(producer)
        return producer, self._collector(producer.raw)

    def _shadow_task(
        self,
        task_id: TaskId,
        plan: Any,
        inputs: Collection[TopicPartition],
        folder: Path,
        lag: Callable[[TopicPartition], int],
        wake: Callable[[], None],
    ) -> Task:
        return Task(
            task_id,
            plan,
            inputs,
            TaskParts(
                config=self._config.replace({"max.task.idle.ms": 0}),
                clock=self.clock,
                collector=self._collector(Nowhere()),
                cache=RecordCache(self._config.statestore_cache_max_bytes),
                metrics=StreamsMetrics(),
                wake=wake,
            ),
            InitialState(folder),
            lag=lag,
        )
