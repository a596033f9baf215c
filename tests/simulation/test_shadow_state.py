"""What a task would have become from nothing is what it has become: a swap for an empty bootstrap changes no row.

The bootstrap stands for offset 0, so the shadow reads all that the task has read. Its stores must be the same whatever
was fetched when, also where the order of several inputs, and the time that has passed, decide what is in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pykstreams import (
    Consumed,
    Grouped,
    Materialized,
    Serdes,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
)
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.swap.bootstrap import Bootstrap, generation_of
from pykstreams.runtime.swap.generation import Generation
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.state.bulk.description import described
from pykstreams.state.bulk.manifest import Manifest, StoreManifest, TaskFiles, new_id, publish
from pykstreams.testing.records import ProducedRecord
from tests.simulation.swaps import Brokers, SimulatedWorker

pytestmark = pytest.mark.slow

TEXT = Serdes.string()
TASK = TaskId(0, 0)
KEYS = "abcde"
_MOST_STEPS = 5000


def orders_of_customers(builder: StreamsBuilder) -> tuple[str, ...]:
    """Each order remembers the name that its customer had then, so that the order of both topics can be seen."""
    given: Any = Consumed(key_serde=TEXT, value_serde=TEXT)
    customers = builder.table("customers", given, materialized=Materialized("names"))
    joined = builder.stream("orders", given).join(customers, lambda order, name: f"{order}:{name}")
    joined.group_by_key(Grouped(key_serde=TEXT, value_serde=TEXT)).reduce(
        lambda old, new: f"{old},{new}", materialized=Materialized("bought")
    )
    return "customers", "orders"


def tables(builder: StreamsBuilder) -> tuple[str, ...]:
    given: Any = Consumed(key_serde=TEXT, value_serde=TEXT)
    left = builder.table("customers", given, materialized=Materialized("left"))
    right = builder.table("orders", given, materialized=Materialized("right"))
    left.outer_join(right, lambda one, other: f"{one}-{other}", materialized=Materialized("joined"))
    return "customers", "orders"


def windows(kind: Any) -> Callable[[StreamsBuilder], tuple[str, ...]]:
    def build(builder: StreamsBuilder) -> tuple[str, ...]:
        stream: Any = builder.stream("orders", Consumed(key_serde=TEXT, value_serde=TEXT))
        grouped = stream.group_by_key(Grouped(key_serde=TEXT, value_serde=TEXT)).windowed_by(kind)
        grouped.count(materialized=Materialized("windows", retention=2000))
        return ("orders",)

    return build


TOPOLOGIES = {
    "stream and table": orders_of_customers,
    "tables": tables,
    "hopping windows": windows(TimeWindows(400, advance_by=100, grace=300)),
    "sliding windows": windows(SlidingWindows(300, grace=300)),
    "sessions": windows(SessionWindows(120, grace=300)),
}


class ShadowRun:
    def __init__(self, folder: Path, name: str, seed: int) -> None:
        self.random = Random(seed)
        self.folder = folder
        builder = StreamsBuilder()
        self.topics = TOPOLOGIES[name](builder)
        self.config = StreamsConfig(
            {
                "application.id": "shop",
                "bootstrap.servers": "memory",
                "commit.interval.ms": 100,
                "statestore.cache.max.bytes": 0,  # with a cache, commits decide what a join sees
                "processing.guarantee": "exactly_once_v2",
                "default.key.serde": TEXT,
                "default.value.serde": TEXT,
            }
        )
        self.plan = builder.build().plan(self.config)
        (self.part,) = self.plan.subtopologies
        self.places = frozenset(TopicPartition(topic, 0) for topic in self.topics)
        self.brokers = Brokers(dict.fromkeys([*self.topics, *self.part.changelogs.values()], 1))
        layout = TopicLayout(dict.fromkeys(self.topics, 1), {TASK: self.places})
        self.worker = SimulatedWorker(self.plan, self.config, layout, self.brokers, folder / "one", self.random)
        self.worker.assign(frozenset({TASK}))
        self.time = 0

    def send(self, count: int) -> None:
        """Sends records in the order of their times; now and then one is late, and some delete."""
        for _ in range(count):
            self.time += self.random.randrange(60)
            late = self.random.choice((0, 0, 0, 200, 900)) if len(self.topics) == 1 else 0
            value = None if self.random.random() < 0.1 else str(self.time).encode()
            key = self.random.choice(KEYS).encode()
            topic = self.random.choice(self.topics)
            self.brokers.append(ProducedRecord(topic, 0, key, value, max(1, self.time - late), ()))

    def run(self, done: Callable[[], bool], sends: int = 0) -> None:
        for _ in range(_MOST_STEPS):
            if sends and self.random.random() < 0.3:
                sends -= 1
                self.send(1)
            if not sends and done():
                return
            self.worker.go_on()
        raise AssertionError("not done")

    def is_committed(self) -> bool:
        ends = self.brokers.end_offsets(self.places)
        return all(self.brokers.offsets.get(place, (0, ""))[0] == end for place, end in ends.items())

    def is_swapped(self) -> bool:
        return generation_of(self.brokers.offsets) is not None and self.worker.tasks.all_running

    def load(self) -> None:
        """Loads an empty bootstrap."""
        about = described(self.plan, self.config)
        empty = {0: TaskFiles((), 0, 0, 0)}
        stores = {name: StoreManifest(store, empty) for name, store in about.items()}
        folder = self.folder / "bootstrap"
        folder.mkdir()
        publish(folder, Manifest(new_id(), "shop", 5, "base-only", {topic: {0: 0} for topic in self.topics}, stores))
        bootstrap = Bootstrap(folder, self.plan, self.config)
        self.worker.load(Generation(bootstrap, self.plan, self.config, self.brokers))

    def rows(self) -> dict[str, list[Any]]:
        (task,) = self.worker.tasks.tasks()
        return {name: list(store.engine_rows()) for name, store in task.stores.items()}

    def changelogs(self) -> dict[str, dict[bytes, bytes | None]]:
        found = {name: self.brokers.table(topic, 0) for name, topic in self.part.changelogs.items()}
        return {name: {key: message.value() for key, message in table.items()} for name, table in found.items()}


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[str, int], ShadowRun]]:
    made: list[ShadowRun] = []

    def build(name: str, seed: int) -> ShadowRun:
        made.append(ShadowRun(tmp_path, name, seed))
        return made[-1]

    yield build
    for simulated in made:
        simulated.worker.die()


@pytest.mark.parametrize("name", TOPOLOGIES)
@pytest.mark.parametrize("seed", range(3))
def test_reading_everything_again_comes_to_the_same_state(
    make: Callable[[str, int], ShadowRun], name: str, seed: int
) -> None:
    simulated = make(name, seed)
    simulated.send(30)
    simulated.run(simulated.is_committed, sends=30)
    before, logged = simulated.rows(), simulated.changelogs()
    assert any(before.values())
    simulated.load()
    simulated.run(simulated.is_swapped)

    after = simulated.rows()
    # a store that was just opened does not know the time, and so shows rows that were hidden as too old
    assert {name: [row for row in rows if row in before[name]] for name, rows in after.items()} == before
    assert simulated.changelogs() == logged

    simulated.send(20)
    simulated.run(simulated.is_committed)
