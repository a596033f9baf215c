"""A bootstrap that is loaded into a running application: tasks go from one generation to the other, whole, at a commit.

The model counts the same orders: those before the swap of their partition with the old counts, and the others with the
new ones, which were made of the old ones at some commit: all are higher by a thousand, one key is gone, one is new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pykstreams import Consumed, Grouped, Materialized, Produced, Serdes, StreamsBuilder, StreamsConfig, TimeWindows
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.swap.bootstrap import Bootstrap, generation_of
from pykstreams.runtime.swap.generation import Generation
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.state.bulk.description import described
from pykstreams.state.bulk.manifest import Manifest, StoreManifest, new_id, publish
from pykstreams.state.interfaces.store import ChangelogRow
from pykstreams.testing.records import ProducedRecord
from pykstreams.topology.plan import TopologyPlan
from tests.simulation.swaps import Brokers, SimulatedWorker, Transaction
from tests.unit.state.bulk.bulk_support import Part, write_task

pytestmark = pytest.mark.slow

TEXT, NUMBER = Serdes.string(), Serdes.long()
PARTITIONS = 2
TASKS = frozenset(TaskId(0, number) for number in range(PARTITIONS))
LAYOUT = TopicLayout(
    {"orders": PARTITIONS}, {task: frozenset({TopicPartition("orders", task.partition)}) for task in TASKS}
)
KEYS = "abcdefgh"
WINDOW_MS = 1000
MORE, GHOST = 1000, 7
"""What is added to each count in the bootstrap, and the count of a key that only it has."""
_MOST_STEPS = 20_000

Rows = dict[Any, int]


def topology(config: StreamsConfig, seen: list[str]) -> TopologyPlan:
    builder = StreamsBuilder()
    orders = builder.stream("orders", Consumed(key_serde=TEXT, value_serde=TEXT))
    orders.foreach(lambda key, value: seen.append(value))
    grouped = orders.group_by_key(Grouped(key_serde=TEXT, value_serde=TEXT))
    grouped.count(materialized=Materialized("counts")).to_stream().to(
        "out", Produced(key_serde=TEXT, value_serde=NUMBER)
    )
    windows = TimeWindows(WINDOW_MS)
    grouped.windowed_by(windows).count(materialized=Materialized("windows", retention=86_400_000))
    return builder.build().plan(config)


@dataclass
class SwapRun:
    """One run."""

    folder: Path
    seed: int
    settings: dict[str, object]
    crashes: int = 0
    moves: int = 0
    joins: bool = False
    """Whether workers join their group again and again."""
    loads_again: bool = True
    sent_later: int = 0
    snapshot: dict[int, tuple[int, Rows, Rows]] = field(default_factory=dict)
    swapped_at: dict[int, int] = field(default_factory=dict)
    hanging: list[Transaction] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.config = StreamsConfig(
            {
                "application.id": "shop",
                "bootstrap.servers": "memory",
                "commit.interval.ms": 100,
                "statestore.cache.max.bytes": 0,
                **self.settings,
            }
        )
        self.seen: list[str] = []
        self.plan = topology(self.config, self.seen)
        self.brokers = Brokers(
            dict.fromkeys(("orders", "out", "shop-counts-changelog", "shop-windows-changelog"), PARTITIONS)
        )
        self.sent = 0
        self.machines = 0
        self.workers = [self.worker()]
        self.workers[0].assign(TASKS)
        self.generation: Generation | None = None

    def worker(self, folder: Path | None = None) -> SimulatedWorker:
        """A new worker, on a machine of its own unless the files of one are named."""
        if folder is None:
            self.machines += 1
            folder = self.folder / str(self.machines)
        return SimulatedWorker(self.plan, self.config, LAYOUT, self.brokers, folder, self.random)

    def send(self, count: int) -> None:
        for _ in range(count):
            self.sent += 1
            key = self.random.choice(KEYS)
            value = str(self.sent).encode()
            self.brokers.append(ProducedRecord("orders", None, key.encode(), value, 40 * self.sent, ()))

    def orders(self, partition: int) -> list[tuple[str, int]]:
        """Key and time of each order."""
        return [
            ((message.key() or b"").decode(), message.timestamp()[1])
            for message in self.brokers.records("orders", partition)
        ]

    def run(self, done: Callable[[], bool]) -> None:
        """Lets workers go on until something holds, and looks at what readers see all the while."""
        for _ in range(_MOST_STEPS):
            if done():
                return
            self.random.choice(self.workers).go_on()
            self._events()
            self._note_swaps()
            self._read()
        raise AssertionError(f"seed {self.seed}: not done after {_MOST_STEPS} steps")

    def is_quiet(self) -> bool:
        """Whether everything is read and committed, and every task swapped that is to be."""
        if self.sent_later or any(
            self.brokers.offsets.get(place, (0, ""))[0] < len(self.brokers.logs[place]) for place in self.inputs
        ):
            return False
        owners = self.brokers.owners
        swapped = all(task.partition in self.swapped_at for task, owner in owners.items() if owner.loaded)
        return swapped and set(owners) == TASKS and all(one.tasks.all_running for one in self.workers)

    @property
    def inputs(self) -> list[TopicPartition]:
        return [TopicPartition("orders", number) for number in range(PARTITIONS)]

    def take_snapshot(self) -> Path:
        """Makes a bootstrap of what is committed, but not quite of that."""
        folder = self.folder / "bootstrap"
        stores, offsets = {}, {}
        tasks: dict[str, dict[int, Any]] = {"counts": {}, "windows": {}}
        for number in range(PARTITIONS):
            offset = offsets[number] = self.brokers.offsets[TopicPartition("orders", number)][0]
            known: dict[str, Rows] = {}
            for name in tasks:
                table = self.brokers.table(f"shop-{name}-changelog", number)
                rows: list[ChangelogRow] = []
                for key, message in table.items():
                    if key.startswith(b"a"):
                        continue
                    count = int.from_bytes(message.value() or b"") + MORE
                    rows.append((key, count.to_bytes(8), message.timestamp()[1], ()))
                if name == "counts":
                    rows.append((f"ghost{number}".encode(), GHOST.to_bytes(8), 5, ()))
                known[name] = {key: int.from_bytes(value or b"") for key, value, _, _ in rows}
                builder = self.plan.subtopologies[0].stores[name]
                tasks[name][number] = write_task(folder, builder, Part(sorted(rows)), task_id=TaskId(0, number))
            self.snapshot[number] = offset, known["counts"], known["windows"]
        about = described(self.plan, self.config)
        stores = {name: StoreManifest(about[name], found) for name, found in tasks.items()}
        publish(folder, Manifest(new_id(), "shop", 77, "base-only", {"orders": offsets}, stores))
        return folder

    def load(self, folder: Path) -> None:
        bootstrap = Bootstrap(folder, self.plan, self.config)
        self.generation = Generation(bootstrap, self.plan, self.config, self.brokers)
        for one in self.workers:
            one.load(self.generation)

    def check(self, *, outputs: bool = True) -> None:
        """What was sent, and what a worker has that knows the changelogs only, is what the model says."""
        for number in range(PARTITIONS) if outputs else ():
            assert self.outputs(number) == self.expected_outputs(number), (self.seed, number, self.swapped_at)
        for one in self.workers:
            self._check_state(one)
        while self.workers:
            self.workers.pop().die()
        for transaction in [*self.brokers.open]:
            self.brokers.end(transaction, commit=False)
        self.workers = [self.worker()]
        self.workers[0].assign(TASKS)
        self.generation = None
        self.run(self.is_quiet)
        self._check_state(self.workers[0])

    def close(self) -> None:
        for one in self.workers:
            one.die()

    def outputs(self, number: int) -> list[tuple[str, int]]:
        return [
            ((message.key() or b"").decode(), int.from_bytes(message.value() or b""))
            for message in self.brokers.records("out", number)
        ]

    def expected_outputs(self, number: int) -> list[tuple[str, int]]:
        """What is sent; records are partitioned by the same key."""
        found = []
        old: Counter[str] = Counter()
        new = self.expected_new(number, "counts", upto=0) if number in self.swapped_at else {}
        begin = self.snapshot[number][0]
        for place, (key, _) in enumerate(self.orders(number)):
            old[key] += 1
            if place >= begin:
                new[key.encode()] = new.get(key.encode(), 0) + 1
            swapped = number in self.swapped_at and place >= self.swapped_at[number]
            found.append((key, new[key.encode()] if swapped else old[key]))
        return found

    def expected_new(self, number: int, store: str, upto: int | None = None) -> Rows:
        begin, counts, windows = self.snapshot[number]
        found = dict(counts if store == "counts" else windows)
        later = self.orders(number)[begin:] if upto is None else []
        for key, time in later:
            place = row_key(store, key, time)
            found[place] = found.get(place, 0) + 1
        return found

    def expected(self, number: int, store: str) -> Rows:
        if number in self.swapped_at:
            return self.expected_new(number, store)
        return dict(Counter(row_key(store, key, time) for key, time in self.orders(number)))

    def _check_state(self, one: SimulatedWorker) -> None:
        for task in one.tasks.tasks():
            for store in ("counts", "windows"):
                assert rows_of(task, store) == self.expected(task.id.partition, store), (self.seed, task.id, store)

    def _events(self) -> None:
        random = self.random
        if self.sent_later and random.random() < 0.2:
            self.sent_later -= 1
            self.send(1)
        if self.hanging and random.random() < 0.03:
            self.brokers.end(self.hanging.pop(), commit=False)
        if self.crashes and random.random() < 0.02:
            self._crash()
        if self.moves and random.random() < 0.02:
            self.moves -= 1
            self._move()
        if self.joins and random.random() < 0.2:
            member = random.choice(self.workers).member
            member.joins = not member.joins

    def _crash(self) -> None:
        one = self.random.choice(self.workers)
        if not self.config.exactly_once and not one.is_clean:
            return
        self.crashes -= 1
        mine = frozenset(task for task, owner in self.brokers.owners.items() if owner is one)
        one.die()
        self.hanging += [made.transaction for made in one.producers if made.transaction in self.brokers.open]
        new = self.worker(one.folder if self.random.random() < 0.5 else None)
        self.workers[self.workers.index(one)] = new
        new.assign(mine)
        if self.generation is not None and self.loads_again:
            new.load(self.generation)

    def _move(self) -> None:
        """Gives tasks to other workers; those that lose them hear of it first."""
        if len(self.workers) == 1:
            self.workers.append(self.worker())
            if self.generation is not None:
                self.workers[-1].load(self.generation)
        goal = {task: self.random.choice(self.workers) for task in sorted(TASKS)}
        shares = {one: frozenset(task for task in TASKS if goal[task] is one) for one in self.workers}
        owned = {
            one: frozenset(task for task, owner in self.brokers.owners.items() if owner is one) for one in self.workers
        }
        for one in self.workers:
            one.assign(owned[one] & shares[one])
        for one in self.workers:
            one.assign(shares[one])

    def _note_swaps(self) -> None:
        for place in self.inputs:
            found = self.brokers.offsets.get(place)
            if found is not None and place.partition not in self.swapped_at and generation_of({place: found}):
                self.swapped_at[place.partition] = found[0]

    def _read(self) -> None:
        """A reader sees the one generation or the other, in all stores of a task."""
        if not self.snapshot:
            return
        for one in self.workers:
            for task, runs in one.tasks.tasks().items():
                if runs:
                    number = task.id.partition
                    is_new = number in self.swapped_at
                    counts, windows = rows_of(task, "counts"), rows_of(task, "windows")
                    _, known, known_windows = self.snapshot[number]
                    assert (f"ghost{number}".encode() in counts) == is_new
                    assert all((counts[key] >= MORE) == is_new for key in known if not key.startswith(b"ghost"))
                    assert all((windows[key] >= MORE) == is_new for key in known_windows)


def row_key(store: str, key: str, time: int) -> bytes:
    start = time // WINDOW_MS * WINDOW_MS
    return key.encode() if store == "counts" else key.encode() + start.to_bytes(8) + bytes(4)


def rows_of(task: Any, name: str) -> Rows:
    """What a store holds, by the keys of its changelog."""

    def read() -> Rows:
        store = task.readable_store(name)
        if store is None:
            return {}
        if name == "counts":
            return {key.encode(): value.value for key, value in store.all()}
        return {row_key(name, key.key, key.window.start): value.value for key, value in store.all()}

    return task.gate.read(read)  # type: ignore[no-any-return]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., SwapRun]]:
    made: list[SwapRun] = []

    def build(seed: int, guarantee: str, **more: Any) -> SwapRun:
        settings: dict[str, object] = {"processing.guarantee": guarantee, **more.pop("settings", {})}
        made.append(SwapRun(tmp_path / f"{guarantee}-{seed}", seed, settings, **more))
        return made[-1]

    yield build
    for simulated in made:
        simulated.close()


GUARANTEES = ("at_least_once", "exactly_once_v2")


def begun(simulated: SwapRun) -> Path:
    """Processes some orders, and makes a bootstrap of what they have come to."""
    simulated.send(40)
    simulated.run(simulated.is_quiet)
    folder = simulated.take_snapshot()
    simulated.send(20)
    simulated.sent_later = 30
    return folder


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("seed", range(5))
def test_tasks_are_swapped_at_a_commit_and_send_nothing_twice(
    make: Callable[..., SwapRun], guarantee: str, seed: int
) -> None:
    simulated = make(seed, guarantee)
    folder = begun(simulated)
    simulated.load(folder)
    simulated.run(simulated.is_quiet)

    assert set(simulated.swapped_at) == {0, 1}
    assert sorted(map(int, simulated.seen)) == list(range(1, simulated.sent + 1))
    simulated.check()


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("seed", range(30, 33))
def test_tasks_are_swapped_at_once_however_often_the_group_shares_them_out(
    make: Callable[..., SwapRun], guarantee: str, seed: int
) -> None:
    simulated = make(seed, guarantee, joins=True)
    simulated.load(begun(simulated))
    simulated.run(simulated.is_quiet)

    assert set(simulated.swapped_at) == {0, 1}
    assert sorted(simulated.workers[0].shadows) == sorted(TASKS)
    simulated.joins = False
    simulated.check()


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("seed", range(20, 23))
def test_rows_that_a_cache_holds_are_swapped_too(make: Callable[..., SwapRun], guarantee: str, seed: int) -> None:
    simulated = make(seed, guarantee, crashes=1, settings={"statestore.cache.max.bytes": 1 << 20})
    simulated.load(begun(simulated))
    simulated.run(simulated.is_quiet)

    simulated.check(outputs=False)


@pytest.mark.parametrize("guarantee", GUARANTEES)
@pytest.mark.parametrize("seed", range(12))
def test_after_crashes_and_moves_each_task_is_of_one_generation(
    make: Callable[..., SwapRun], guarantee: str, seed: int
) -> None:
    simulated = make(seed, guarantee, crashes=3, moves=2, loads_again=seed % 2 == 0)
    folder = begun(simulated)
    simulated.load(folder)
    simulated.run(simulated.is_quiet)

    simulated.check()
