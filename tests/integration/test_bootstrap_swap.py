"""A bootstrap that is loaded into a running application, on a real broker.

The bootstrap is made of what the application has counted so far, with a thousand more for each key; the application
goes on meanwhile, is read all the time, and goes on later on a machine that knows the changelogs only.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from pykstreams import (
    Consumed,
    Grouped,
    KafkaStreams,
    Materialized,
    Produced,
    QueryableStoreTypes,
    Serdes,
    StreamsBuilder,
    StreamsConfig,
)
from pykstreams.core.errors import BootstrapError, InvalidStateStoreError
from pykstreams.core.ids import TaskId
from pykstreams.runtime.life_cycle import State
from pykstreams.runtime.streams import GroupMembershipOperation
from pykstreams.state.bulk.description import described
from pykstreams.state.bulk.manifest import Manifest, StoreManifest, new_id, publish
from pykstreams.topology.topology import Topology
from tests.brokers.offsets import committed
from tests.brokers.producers import producer_in_order
from tests.brokers.reaper import Process
from tests.integration.test_bootstrap import records
from tests.unit.state.bulk.bulk_support import Part, write_task

pytestmark = pytest.mark.slow

TEXT, NUMBER = Serdes.string(), Serdes.long()
PARTITIONS = 2
PATIENCE_S = 180.0
MORE = 1000
WHEN = os.environ.get("BOOTSTRAP_SWAP_KILLS", "after").split(",")
"""When workers are killed: after a swap is committed, or before; then brokers take ten seconds to abort it."""
ALL = [f"k{number}" for number in range(50)]
KEYS = ALL * 60
FIRST, MEANWHILE, LATER = KEYS[:1000], KEYS[1000:2500], KEYS[2500:]


def topology(orders: str, out: str) -> Topology:
    builder = StreamsBuilder()
    stream: Any = builder.stream(orders, Consumed(key_serde=TEXT, value_serde=TEXT))
    counts = stream.group_by_key(Grouped(key_serde=TEXT, value_serde=TEXT)).count(materialized=Materialized("counts"))
    counts.to_stream().to(out, Produced(key_serde=TEXT, value_serde=NUMBER))
    return builder.build()


class App:
    """The application; a machine is a state directory."""

    def __init__(self, brokers: str, name: str, folder: Path, orders: str, out: str, guarantee: str) -> None:
        self.brokers, self.name, self.folder, self.orders, self.out = brokers, name, folder, orders, out
        self._settings = {
            "application.id": name,
            "bootstrap.servers": brokers,
            "commit.interval.ms": "200",
            "statestore.cache.max.bytes": "0",
            "consumer.auto.offset.reset": "earliest",
            "processing.guarantee": guarantee,
        }
        self.running: list[KafkaStreams] = []

    def settings(self, machine: str) -> dict[str, object]:
        return {**self._settings, "state.dir": str(self.folder / machine)}

    def config(self, machine: str) -> StreamsConfig:
        return StreamsConfig(self.settings(machine))

    def start(self, machine: str) -> KafkaStreams:
        streams = KafkaStreams(topology(self.orders, self.out), self.config(machine))
        self.running.append(streams)
        streams.start()
        assert streams.wait_for_state(State.RUNNING, 60_000), streams.error
        return streams

    def stop(self) -> None:
        while self.running:
            assert self.running.pop().close(60_000, group_membership=GroupMembershipOperation.LEAVE_GROUP)

    def send(self, keys: list[str]) -> None:
        producer = producer_in_order(self.brokers, {"partitioner": "murmur2_random", "linger.ms": 5})
        for key in keys:
            producer.produce(self.orders, key=key, value="order")
        assert producer.flush(60) == 0

    def sent(self) -> list[tuple[str, int]]:
        return [(one.key().decode(), int.from_bytes(one.value())) for one in records(self.brokers, self.out, 1)]

    def wait_for(self, count: int) -> list[tuple[str, int]]:
        """Waits until so many results were sent."""
        deadline = time.monotonic() + PATIENCE_S
        while len(found := self.sent()) < count:
            assert time.monotonic() < deadline, (len(found), [one.error for one in self.running])
            time.sleep(0.1)
        return found

    def wait_for_commit(self) -> None:
        """Waits until the offsets of all orders are committed."""
        places = [TopicPartition(self.orders, number) for number in range(PARTITIONS)]
        consumer = Consumer({"bootstrap.servers": self.brokers, "group.id": self.name})
        try:
            ends = [consumer.get_watermark_offsets(place, timeout=60)[1] for place in places]
            wait_until(lambda: [place.offset for place in committed(consumer, places)] == ends)
        finally:
            consumer.close()

    def bootstrap(self, more: int = MORE, **changes: Any) -> Path:
        """Makes a bootstrap of the changelog, as it is now."""
        folder = self.folder / f"bootstrap-{more}"
        config = self.config("none")
        plan = topology(self.orders, self.out).plan(config)
        (part,) = plan.subtopologies
        rows: dict[int, dict[bytes, Any]] = {number: {} for number in range(PARTITIONS)}
        for message in records(self.brokers, part.changelogs["counts"]):
            count = int.from_bytes(message.value()) + more
            rows[message.partition()][message.key()] = message.key(), count.to_bytes(8), message.timestamp()[1], ()
        tasks = {
            number: write_task(
                folder, part.stores["counts"], Part(sorted(mine.values())), task_id=TaskId(part.id, number)
            )
            for number, mine in rows.items()
        }
        ends = Counter(message.partition() for message in records(self.brokers, self.orders))
        given = {
            "source_offsets": {self.orders: {number: ends[number] for number in range(PARTITIONS)}},
            "created_ms": int(time.time() * 1000),
            **changes,
        }
        stores = {"counts": StoreManifest(described(plan, config)["counts"], tasks)}
        publish(folder, Manifest(new_id(), self.name, changelog="base-only", stores=stores, **given))
        return folder


@pytest.fixture
def make_app(
    bootstrap_servers: str, make_name: Callable[[str], str], make_topic: Callable[..., str], tmp_path: Path
) -> Iterator[Callable[[str], App]]:
    made: list[App] = []

    def make(guarantee: str) -> App:
        orders, out = make_topic("orders", partitions=PARTITIONS), make_topic("out")
        made.append(App(bootstrap_servers, make_name("counts"), tmp_path, orders, out, guarantee))
        return made[-1]

    yield make
    for app in made:
        app.stop()


class Watch:
    """Reads all counts of each partition over and over, in a thread: all of them are old ones, or new ones."""

    def __init__(self, streams: KafkaStreams) -> None:
        self._stores = [
            streams.store("counts", QueryableStoreTypes.KEY_VALUE_STORE, partition=number)
            for number in range(PARTITIONS)
        ]
        self.seen: list[list[bool]] = [[] for _ in range(PARTITIONS)]
        self.error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stop.wait(0.002):
                for store, seen in zip(self._stores, self.seen, strict=True):
                    try:
                        with store.all() as rows:
                            new = {row.value > MORE for row in rows}
                    except InvalidStateStoreError:  # between closing the one and opening the other
                        continue
                    assert len(new) == 1
                    seen.append(new.pop())
        except BaseException as error:
            self.error = error


class Orders:
    """Sends orders of all keys over and over, in a thread, and once more when it is told to stop."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.sent: list[str] = []
        self.error: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Orders:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            last = False
            while not last:
                last = self._stop.wait(0.05)
                self._app.send(ALL)
                self.sent += ALL
        except BaseException as error:
            self.error = error


def wait_until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("guarantee", [pytest.param("at_least_once", marks=pytest.mark.nightly), "exactly_once_v2"])
def test_an_application_goes_on_with_the_state_of_a_bootstrap(make_app: Callable[[str], App], guarantee: str) -> None:
    app = make_app(guarantee)
    streams = app.start("one")
    app.send(FIRST)
    app.wait_for(len(FIRST))
    app.wait_for_commit()
    folder = app.bootstrap()
    with Watch(streams) as watch, Orders(app) as orders:
        wait_until(lambda: all(watch.seen))
        load = streams.load_bootstrap(folder)
        done = load.wait(60_000)
        orders.stop()
        wait_until(lambda: all(seen[-1] for seen in watch.seen))
        app.wait_for(len(FIRST + orders.sent))

    assert done
    assert orders.error is None
    assert load.waiting == frozenset()
    assert watch.error is None
    for seen in watch.seen:  # old ones first, new ones then
        assert seen == sorted(seen)
        assert len(set(seen)) == 2
    check_sent(app.sent(), FIRST + orders.sent)
    assert streams.load_bootstrap(folder).wait(60_000)  # there is nothing to do

    app.stop()
    app.start("two")  # without files
    app.send(LATER)
    check_sent(app.wait_for(len(FIRST + orders.sent + LATER)), FIRST + orders.sent + LATER)


def check_sent(sent: list[tuple[str, int]], keys: list[str]) -> None:
    """Each order has one result; the counts of a key rise by one, and once by a thousand more."""
    assert Counter(key for key, _ in sent) == Counter(keys)
    for key in set(keys):
        counts = [count for found, count in sent if found == key]
        old = [count for count in counts if count <= MORE]
        assert old == list(range(1, len(old) + 1))
        assert counts[len(old) :] == list(range(len(old) + 1 + MORE, len(counts) + 1 + MORE))
        assert len(old) < len(counts)


def test_what_does_not_fit_is_refused_and_the_application_goes_on(make_app: Callable[[str], App]) -> None:
    app = make_app("at_least_once")
    streams = app.start("one")
    app.send(FIRST)
    app.wait_for(len(FIRST))
    app.wait_for_commit()
    far = {app.orders: dict.fromkeys(range(PARTITIONS), 10_000)}

    with pytest.raises(BootstrapError, match=r"goes on at offset 10000 of .*, which goes from 0 to \d+: records after"):
        streams.load_bootstrap(app.bootstrap(1, source_offsets=far))

    damaged = app.bootstrap(2)
    for path in sorted(damaged.rglob("*.sst"))[-1:]:
        path.write_bytes(b"?" + path.read_bytes()[1:])
    load = streams.load_bootstrap(damaged)
    with pytest.raises(BootstrapError, match=r"is damaged: its sha256 .* Nothing was loaded"):
        load.wait(60_000)
    assert load.waiting == frozenset({TaskId(0, 1)})

    app.send(MEANWHILE)
    assert len(app.wait_for(len(FIRST) + len(MEANWHILE))) == len(FIRST) + len(MEANWHILE)
    whole = app.bootstrap()
    assert streams.load_bootstrap(whole).wait(60_000)
    assert streams.error is None


DEADLY = """
import os, signal
from tests.integration.test_bootstrap_swap import topology
from pykstreams.runtime.swap.swap_output import SwapOutput

commit = SwapOutput.commit

def deadly(self, offsets, metadata):
    if {when!r} == "after":
        commit(self, offsets, metadata)
    os.kill(os.getpid(), signal.SIGKILL)

SwapOutput.commit = deadly
build = lambda: topology({orders!r}, {out!r})
"""


@pytest.mark.parametrize("when", WHEN)
def test_a_worker_that_is_killed_leaves_the_one_state_or_the_other(make_app: Callable[[str], App], when: str) -> None:
    app = make_app("at_least_once")
    app.start("one")
    app.send(FIRST)
    app.wait_for(len(FIRST))
    app.stop()
    script = app.folder / "deadly.py"
    script.write_text(DEADLY.format(when=when, orders=app.orders, out=app.out))
    settings = {**app.settings("one"), "producer.transaction.timeout.ms": "2000"}
    command = [sys.executable, "-m", "pykstreams", "run", f"{script}:build", "--load-bootstrap", str(app.bootstrap())]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    with (app.folder / "deadly.log").open("wb") as log:
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        worker = Process(command, stdout=log, stderr=log, env=environment)

    assert worker.wait(PATIENCE_S) == -signal.SIGKILL, (app.folder / "deadly.log").read_text()

    app.start("one")
    app.send(LATER)
    sent = app.wait_for(len(FIRST) + len(LATER))
    first_task = {one.key().decode() for one in records(app.brokers, app.orders) if one.partition() == 0}
    counted = dict(sent[len(FIRST) :])
    new = {key for key, count in counted.items() if count > MORE}

    assert new == (first_task if when == "after" else set())
    assert Counter(key for key, _ in sent) == Counter(FIRST + LATER)
    assert {key: count - MORE * (key in new) for key, count in counted.items()} == Counter(FIRST + LATER)
