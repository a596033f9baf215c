"""A cluster whose workers die or hand their tasks over, under at-least-once: nothing is lost, and much is done again.

Each task is a worker of its own, with a producer that sends whenever the scheduler lets it: per partition in order,
and otherwise in any. A worker that dies leaves of what it has not committed some first records of each partition, of
changelogs and other topics alike: state may be ahead of messages, and messages of state. The next one restores the
stores from their changelogs and goes on at the last commit. A worker that hands its task over commits all before, so
that the next one lacks nothing but what was in memory. Input comes in between, since what is there when a task is
opened may be taken for repeated.

Invariant: as that of ``Cluster``.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from pykstreams import StreamsConfig
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.restore.restore import changelog_columns
from pykstreams.runtime.tasks.task import Task
from pykstreams.testing.capture import CapturingProducer
from pykstreams.testing.records import ProducedRecord
from pykstreams.topology.plan import SubtopologyPlan, TopologyPlan
from tests.simulation.cluster import Cluster, Runner, Sent

_MOST_CRASHES = 3
_CRASHES_IN = 60
"""About one in so many steps is a crash, until there have been enough."""
_HAND_OVERS_IN = 20
"""About one in so many steps of a task hands it over."""
_SENDS_IN_BETWEEN = 0.2
_INPUT_COMES = 0.1
_MOST_INPUT_AT_ONCE = 5


class CrashingCluster(Cluster):
    """One run of a topology, with a few crashes in its first part."""

    def __init__(self, plan: TopologyPlan, config: StreamsConfig, partitions: Mapping[str, int], seed: int) -> None:
        super().__init__(plan, config, partitions, seed)
        self.crashes_left = self.random.randint(1, _MOST_CRASHES)
        self._to_come: deque[Sent] = deque()

    @property
    def input_is_to_come(self) -> bool:
        return bool(self._to_come)

    def send(self, records: Iterable[Sent]) -> None:
        """Holds input, of which some comes whenever the scheduler lets it."""
        self._to_come.extend(records)

    def let_input_come(self) -> None:
        """Writes some records, in their order."""
        count = min(self.random.randint(1, _MOST_INPUT_AT_ONCE), len(self._to_come))
        super().send([self._to_come.popleft() for _ in range(count)])

    def _runner(self, task_id: TaskId, part: SubtopologyPlan, read: Sequence[TopicPartition]) -> MortalRunner:
        return MortalRunner(self, task_id, part, read)


class MortalRunner(Runner):
    """A worker with one task."""

    _cluster: CrashingCluster

    def __init__(
        self, cluster: CrashingCluster, task_id: TaskId, part: SubtopologyPlan, read: Sequence[TopicPartition]
    ) -> None:
        self._outbox = Outbox(cluster)
        self._collector = cluster.make_collector(self._outbox)
        self._committed: dict[TopicPartition, tuple[int, str]] = {}
        super().__init__(cluster, task_id, part, read)
        self._committed = dict.fromkeys(read, (0, ""))

    @property
    def busy(self) -> bool:
        return super().busy or self._cluster.input_is_to_come

    def go_on(self) -> None:
        """Does one thing, sends something, hands its task over, dies, or waits for input."""
        cluster = self._cluster
        if cluster.input_is_to_come and cluster.random.random() < _INPUT_COMES:
            cluster.let_input_come()
        elif not super().busy:
            return
        elif cluster.crashes_left and cluster.random.randrange(_CRASHES_IN) == 0:
            cluster.crashes_left -= 1
            self._die()
        elif cluster.random.randrange(_HAND_OVERS_IN) == 0:
            self._hand_over()
        elif cluster.random.random() < _SENDS_IN_BETWEEN:
            self._outbox.send_something()
        else:
            super().go_on()

    def _commit(self) -> None:
        offsets = self.task.prepare_commit()
        self._collector.flush()
        self._committed.update(offsets)
        self.task.post_commit({})

    def _hand_over(self) -> None:
        repeats = self.task.replays
        self._commit()
        self.task.close()
        self._go_on_elsewhere(interrupted=repeats)

    def _die(self) -> None:
        self.task.close()
        self._outbox.die()
        self._go_on_elsewhere(interrupted=True)

    def _go_on_elsewhere(self, *, interrupted: bool) -> None:
        self._collector = self._cluster.make_collector(self._outbox)
        self.task = self._begin(interrupted=interrupted)
        self._read = {place: self._committed.get(place, (0, ""))[0] for place in self._read}

    def _begin(self, *, interrupted: bool = False) -> Task:
        task = self._make_task(self._collector, end_offsets=self._end_offsets if interrupted else None)
        for place, store in task.open_stores().items():
            if log := self._cluster.logs[place]:
                store.restore(changelog_columns(log))
                store.commit(len(log))
        task.start(self._committed)
        return task

    def _end_offsets(self, places: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        return {place: len(self._cluster.logs[place]) for place in places}


class Outbox(CapturingProducer):
    """A producer whose records wait until the scheduler, or a flush, lets them go."""

    def __init__(self, cluster: CrashingCluster) -> None:
        super().__init__()
        self._cluster = cluster
        self._waiting: defaultdict[TopicPartition, deque[ProducedRecord]] = defaultdict(deque)

    def flush(self, timeout_s: float, /) -> int:
        self._sort()
        for place in list(self._waiting):
            self._send(place, len(self._waiting[place]))
        return 0

    def send_something(self) -> None:
        """Sends some records of one partition."""
        self._sort()
        random = self._cluster.random
        if places := [place for place, records in self._waiting.items() if records]:
            place = random.choice(places)
            self._send(place, random.randint(1, len(self._waiting[place])))

    def die(self) -> None:
        """Of each partition some records have been sent; the others never will be."""
        self._sort()
        random = self._cluster.random
        for place, records in self._waiting.items():
            self._send(place, random.choice((0, random.randint(0, len(records)), len(records))))
        self._waiting.clear()

    def forget(self) -> None:
        """Takes back all that was not flushed, as the transaction that it belongs to is aborted."""
        self.take()
        self._waiting.clear()

    def _sort(self) -> None:
        for record in self.take():
            self._waiting[self._cluster.place_of(record)].append(record)

    def _send(self, place: TopicPartition, count: int) -> None:
        for _ in range(count):
            self._cluster.append_to(place, self._waiting[place].popleft())
