"""Applications that start from a bootstrap, on a real broker: counts go on where the snapshot ends, on any machine.

The bootstrap is made from the changelogs of an application that has counted the first records; another one starts from
it, and has to know at the end what one would know that had counted them all.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from pykstreams import (
    Consumed,
    Grouped,
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
from pykstreams.runtime.restore.restore import StateRestoreListener
from pykstreams.runtime.streams import GroupMembershipOperation, KafkaStreams
from pykstreams.state.bulk.description import described
from pykstreams.state.bulk.manifest import Changelog, Manifest, StoreManifest, new_id, publish, read
from pykstreams.state.interfaces.store import ChangelogRow
from pykstreams.topology.topology import Topology
from tests.brokers.brokers import create_topic
from tests.brokers.producers import producer_in_order
from tests.unit.state.bulk.bulk_support import Part, write_task

pytestmark = pytest.mark.slow

TEXT, NUMBER = Serdes.string(), Serdes.long()
LEAVE = GroupMembershipOperation.LEAVE_GROUP
PARTITIONS = 2
PATIENCE_S = 180.0
STORES = ("counts", "letters")
FIRST = [f"{chr(97 + number % 20)}{number % 50}" for number in range(2000)]
MORE = [f"{chr(97 + number % 22)}{number % 60}" for number in range(1000)]


def topology(orders: str, out: str) -> Topology:
    """Counts orders by their key, and by their first letter, which another sub-topology does."""
    builder = StreamsBuilder()
    stream = builder.stream(orders, Consumed(key_serde=TEXT, value_serde=TEXT))
    write = Produced(key_serde=TEXT, value_serde=NUMBER)
    stream.group_by_key(Grouped(key_serde=TEXT, value_serde=TEXT)).count(
        materialized=Materialized("counts")
    ).to_stream().to(out, write)
    by_letter = stream.group_by(lambda key, _: key[0], Grouped(name="letters", key_serde=TEXT, value_serde=TEXT))
    by_letter.count(materialized=Materialized("letters")).to_stream().to(out, write)
    return builder.build()


class Restored(StateRestoreListener):
    """Notes from which offset each store was restored, and how many rows that took."""

    def __init__(self) -> None:
        self.begun: dict[tuple[str, int], int] = {}
        self.rows = 0

    def on_restore_start(self, topic_partition: Any, store_name: str, starting_offset: int, ending_offset: int) -> None:
        self.begun[store_name, topic_partition.partition] = starting_offset

    def on_restore_end(self, topic_partition: Any, store_name: str, total_restored: int) -> None:
        self.rows += total_restored


@dataclass
class App:
    """One application; a machine is a state directory."""

    brokers: str
    name: str
    folder: Path
    orders: str
    out: str
    settings: dict[str, object] = field(default_factory=dict)
    running: list[KafkaStreams] = field(default_factory=list)

    def config(self, machine: str) -> StreamsConfig:
        return StreamsConfig(
            {
                "application.id": self.name,
                "bootstrap.servers": self.brokers,
                "state.dir": str(self.folder / self.name / machine),
                "commit.interval.ms": "200",
                "consumer.auto.offset.reset": "earliest",
                **self.settings,
            }
        )

    def start(self, machine: str = "one", **bootstrap: Any) -> Restored:
        """Starts a worker, and waits until it runs; raises what ends it instead."""
        restored = Restored()
        streams = KafkaStreams(
            topology(self.orders, self.out), self.config(machine), state_restore_listener=restored, **bootstrap
        )
        self.running.append(streams)
        streams.start()
        deadline = time.monotonic() + PATIENCE_S
        while not streams.wait_for_state(State.RUNNING, 100):
            if streams.error is not None:
                raise streams.error
            assert time.monotonic() < deadline, streams.health()
        return restored

    def stop(self) -> None:
        while self.running:
            assert self.running.pop().close(60_000, group_membership=LEAVE)

    def send(self, keys: list[str]) -> None:
        producer = producer_in_order(self.brokers, {"partitioner": "murmur2_random"})
        for key in keys:
            producer.produce(self.orders, key=key, value="order")
        assert producer.flush(60) == 0

    def counted(self) -> dict[str, int]:
        """The last count of each key and letter."""
        return {
            message.key().decode(): int.from_bytes(message.value()) for message in records(self.brokers, self.out, 1)
        }

    def wait_for(self, keys: list[str], new: list[str] | None = None) -> None:
        """Waits until all counts are those of these keys; only ``new`` ones were counted since the bootstrap."""
        told = {text for key in (keys if new is None else new) for text in (key, key[0])}
        counts = Counter(keys) + Counter(key[0] for key in keys)
        expected = {text: counts[text] for text in told}
        deadline = time.monotonic() + PATIENCE_S
        while (found := self.counted()) != expected:
            wrong = {key: (found.get(key), expected[key]) for key in expected if found.get(key) != expected[key]}
            assert time.monotonic() < deadline, (wrong, [streams.error for streams in self.running])
            time.sleep(0.1)


def records(brokers: str, topic: str, partitions: int = PARTITIONS) -> list[Any]:
    """All records of a topic, by partition."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "test", "enable.partition.eof": True})
    try:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        found, ended = [], 0
        while ended < partitions:
            message = consumer.poll(60)
            assert message is not None
            if message.error() is None:
                found.append(message)
            else:
                ended += 1
        return found
    finally:
        consumer.close()


@pytest.fixture
def make_app(
    bootstrap_servers: str, make_name: Callable[[str], str], make_topic: Callable[..., str], tmp_path: Path
) -> Iterator[Callable[..., App]]:
    made: list[App] = []

    def make(orders: str | None = None, **settings: object) -> App:
        source = orders or make_topic("orders", partitions=PARTITIONS)
        app = App(bootstrap_servers, make_name("counts"), tmp_path, source, make_topic("out"), settings)
        made.append(app)
        return app

    yield make
    for app in made:
        app.stop()


@pytest.fixture
def snapshot(make_app: Callable[..., App]) -> App:
    """An application that has counted the first orders, and has stopped."""
    app = make_app()
    app.send(FIRST)
    app.start()
    app.wait_for(FIRST)
    app.stop()
    return app


def bootstrapped(app: App, snapshot: App, changelog: Changelog) -> Path:
    """Makes a bootstrap for an application from the changelogs of another."""
    folder = app.folder / f"{app.name}-bootstrap"
    config = app.config("none")
    plan = topology(app.orders, app.out).plan(config)
    written = {}
    for part in plan.subtopologies:
        for name, builder in part.stores.items():
            rows: dict[int, list[ChangelogRow]] = {number: [] for number in range(PARTITIONS)}
            for message in records(app.brokers, f"{snapshot.name}-{name}-changelog"):
                rows[message.partition()].append((message.key(), message.value(), message.timestamp()[1], ()))
            if changelog == "write":
                create_topic(app.brokers, part.changelogs[name], partitions=PARTITIONS, cleanup_policy="compact")
                write_rows(app.brokers, part.changelogs[name], rows)
            tasks = {
                number: write_task(
                    folder,
                    builder,
                    Part(sorted(mine, key=lambda row: row[0]), len(mine) if changelog == "write" else 0),
                    task_id=TaskId(part.id, number),
                )
                for number, mine in rows.items()
            }
            written[name] = StoreManifest(described(plan, config)[name], tasks)
    ends = Counter(message.partition() for message in records(app.brokers, app.orders))
    sources = {app.orders: {number: ends[number] for number in range(PARTITIONS)}}
    publish(folder, Manifest(new_id(), app.name, 0, changelog, sources, written))
    return folder


def write_rows(brokers: str, topic: str, rows: dict[int, list[ChangelogRow]]) -> None:
    producer = producer_in_order(brokers)
    for number, mine in rows.items():
        for key, value, timestamp, _ in mine:
            producer.produce(topic, key=key, value=value, partition=number, timestamp=timestamp)
    assert producer.flush(60) == 0


def offsets_of(folder: Path) -> dict[tuple[str, int], int]:
    return {
        (name, number): task.changelog_offset
        for name, store in read(folder).stores.items()
        for number, task in store.tasks.items()
    }


def test_counts_go_on_from_a_bootstrap_after_restarts_and_on_machines_with_and_without_its_files(
    make_app: Callable[..., App], snapshot: App
) -> None:
    app = make_app(snapshot.orders)
    folder = bootstrapped(app, snapshot, "write")
    app.send(MORE[:400])

    started = app.start("one", bootstrap=folder)
    app.wait_for(FIRST + MORE[:400], MORE[:400])

    assert (started.begun, started.rows) == (offsets_of(folder), 0)

    app.stop()
    app.send(MORE[400:600])
    restarted = app.start("one", bootstrap=folder)
    app.wait_for(FIRST + MORE[:600], MORE[:600])

    assert restarted.begun != offsets_of(folder)

    app.stop()
    without_files = app.start("two")
    app.send(MORE[600:800])
    app.wait_for(FIRST + MORE[:800], MORE[:800])

    assert set(without_files.begun.values()) == {0}

    app.stop()
    with_files = app.start("three", bootstrap=folder)
    app.send(MORE[800:])
    app.wait_for(FIRST + MORE, MORE)

    assert with_files.begun == offsets_of(folder)
    assert with_files.rows > 0


def test_several_workers_start_from_one_bootstrap_at_once_also_under_exactly_once(
    make_app: Callable[..., App], snapshot: App
) -> None:
    app = make_app(snapshot.orders, **{"processing.guarantee": "exactly_once_v2"})
    folder = bootstrapped(app, snapshot, "write")
    app.send(MORE)
    threads = [threading.Thread(target=app.start, args=(name,), kwargs={"bootstrap": folder}) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    app.wait_for(FIRST + MORE, MORE)
    assert len(app.running) == 2
    app.stop()
    app.start("c")  # without files
    app.send(MORE)
    app.wait_for(FIRST + MORE + MORE, MORE)


def test_base_only_state_is_not_restored_without_its_files(make_app: Callable[..., App], snapshot: App) -> None:
    app = make_app(snapshot.orders)
    folder = bootstrapped(app, snapshot, "base-only")
    app.start("one", bootstrap=folder)
    app.send(MORE[:500])
    app.wait_for(FIRST + MORE[:500], MORE[:500])
    app.stop()

    app.start("one")  # its state is whole
    app.stop()
    with pytest.raises(BootstrapError, match=r"is based on a bootstrap whose rows are not in the changelogs"):
        app.start("two")
    app.stop()
    app.start("two", bootstrap=folder)
    app.send(MORE[500:])
    app.wait_for(FIRST + MORE, MORE)


def test_a_damaged_file_is_refused_and_the_whole_one_accepted_later(
    make_app: Callable[..., App], snapshot: App
) -> None:
    app = make_app(snapshot.orders)
    folder = bootstrapped(app, snapshot, "write")
    path = folder / next(read(folder).files()).path
    whole = path.read_bytes()
    path.unlink()  # what is linked elsewhere stays as it is
    path.write_bytes(b"?" + whole[1:])

    with pytest.raises(BootstrapError, match=r"is damaged: its sha256"):
        app.start("one", bootstrap=folder)
    app.stop()
    path.write_bytes(whole)
    app.start("one", bootstrap=folder)
    app.send(MORE)
    app.wait_for(FIRST + MORE, MORE)


def test_a_group_gives_up_its_offsets_and_its_state_only_if_told_to(
    make_app: Callable[..., App], snapshot: App
) -> None:
    app = make_app(snapshot.orders)
    app.start("one")
    app.wait_for(FIRST)
    app.stop()
    delete_topics(app.brokers, [f"{app.name}-{store}-changelog" for store in STORES])
    folder = bootstrapped(app, snapshot, "write")

    with pytest.raises(BootstrapError, match=r"has offsets already, which did not begin with it"):
        app.start("one", bootstrap=folder)
    app.stop()
    app.start("one", bootstrap=folder, reset_offsets=True)
    app.send(MORE)
    app.wait_for(FIRST + MORE)
    app.stop()
    app.start("one", bootstrap=folder, reset_offsets=True)  # the same command again goes on
    app.send(MORE)
    app.wait_for(FIRST + MORE + MORE)


def delete_topics(brokers: str, topics: list[str]) -> None:
    admin = AdminClient({"bootstrap.servers": brokers})
    for done in admin.delete_topics(topics).values():
        done.result(60)
    deadline = time.monotonic() + PATIENCE_S
    while set(topics) & set(admin.list_topics(timeout=60).topics):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_copy_begins_with_the_files_of_a_bootstrap_and_is_there_when_its_task_comes(
    make_app: Callable[..., App], snapshot: App
) -> None:
    app = make_app(snapshot.orders, **{"num.standby.replicas": 1})
    folder = bootstrapped(app, snapshot, "base-only")
    app.start("one", bootstrap=folder)
    of_two = app.start("two", bootstrap=folder)
    app.send(MORE[:600])
    app.wait_for(FIRST + MORE[:600], MORE[:600])
    one, two = app.running
    expected, deadline = Counter(FIRST + MORE[:600]), time.monotonic() + PATIENCE_S
    while (found := known(two)) != expected:
        assert time.monotonic() < deadline, (len(found), len(expected))
        time.sleep(0.1)
    assert all(two.health().tasks[task].running for task in two.health().tasks)
    mine = {task.partition for task in two.health().tasks if task.subtopology == 0}
    of_two.begun.clear()
    of_two.rows = 0

    app.running.remove(one)
    assert one.close(60_000, group_membership=LEAVE)
    app.send(MORE[600:])
    app.wait_for(FIRST + MORE, MORE)

    begun = {place: offset for place, offset in of_two.begun.items() if place[0] == "counts"}
    assert {number for _, number in begun} == set(range(PARTITIONS)) - mine
    assert all(offset > 0 for offset in begun.values())  # the files stand for the beginning of the changelog
    assert of_two.rows < 100


def known(streams: KafkaStreams) -> Counter[str]:
    """The counts that an instance has, of its tasks and of copies."""
    try:
        with streams.store("counts", QueryableStoreTypes.KEY_VALUE_STORE, enable_stale_stores=True).all() as rows:
            return Counter(dict(rows))
    except InvalidStateStoreError:
        return Counter()
