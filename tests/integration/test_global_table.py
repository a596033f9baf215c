"""Global tables and stores on a real broker: read before anything is processed, followed, and found again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from pykstreams import Consumed, Processor, Produced, Serdes, StreamsBuilder
from pykstreams.core.errors import MissingSourceTopicError
from pykstreams.core.record import Record
from pykstreams.runtime.life_cycle import State
from pykstreams.runtime.restore.restore import StateRestoreListener
from pykstreams.runtime.streams import GroupMembershipOperation, KafkaStreams
from pykstreams.state import Stores
from tests.brokers.producers import producer_in_order
from tests.brokers.records import value_of

pytestmark = pytest.mark.slow

TEXT = Serdes.string()
READ, WRITE = Consumed(key_serde=TEXT, value_serde=TEXT), Produced(key_serde=TEXT, value_serde=TEXT)
LEAVE = GroupMembershipOperation.LEAVE_GROUP
PARTITIONS = 3
PATIENCE_S = 180.0


class Upper(Processor[str, str, Any, Any]):
    """Puts each value in capitals into the store ``caps``."""

    def process(self, record: Record[str, str]) -> None:
        value = None if record.value is None else record.value.upper()
        self.context.get_state_store("caps").put(record.key, value)


class Starts(StateRestoreListener):
    """Notes from where each store was read, and what state the application was in when it was ready."""

    def __init__(self) -> None:
        self.read_from: dict[str, int] = {}
        self.ready_in: list[State] = []
        self.state: Callable[[], State] = lambda: State.CREATED

    def on_restore_start(self, topic_partition: Any, store_name: str, starting_offset: int, ending_offset: int) -> None:
        self.read_from[store_name] = self.read_from.get(store_name, 0) + starting_offset

    def on_restore_end(self, topic_partition: Any, store_name: str, total_restored: int) -> None:
        self.ready_in.append(self.state())


class Shop:
    """Orders joined with the names of customers, and looked up in a store that a processor feeds."""

    def __init__(self, brokers: str, name: str, make_topic: Callable[..., str], folder: Path) -> None:
        self.brokers, self.name, self.folder = brokers, name, folder
        self.orders, self.out = make_topic("orders", partitions=2), make_topic("out")
        compacted = {"partitions": PARTITIONS, "cleanup_policy": "compact"}
        self.names, self.feed = make_topic("names", **compacted), make_topic("feed", **compacted)
        self.streams: KafkaStreams | None = None
        self._seen = 0

    def start(self, *, names: str | None = None) -> Starts:
        builder = StreamsBuilder()
        caps = Stores.key_value_store_builder(Stores.persistent_key_value_store("caps"), TEXT, TEXT)
        builder.add_global_store(caps, self.feed, Upper, READ)
        table = builder.global_table(names or self.names, READ, materialized="names")

        class Look(Processor[str, str, str, str]):
            def process(self, record: Record[str, str]) -> None:
                found = self.context.get_state_store("caps").get(record.key)
                self.context.forward(record.replace(value=f"{record.value} {found}"))

        orders = builder.stream(self.orders, READ)
        named = orders.left_join(table, lambda order, name: f"{order} {name}", key_selector=lambda key, order: key)
        named.process(Look).to(self.out, WRITE)
        starts = Starts()
        config = {
            "application.id": self.name,
            "bootstrap.servers": self.brokers,
            "state.dir": str(self.folder),
            "commit.interval.ms": "200",
            "consumer.auto.offset.reset": "earliest",
        }
        self.streams = KafkaStreams(builder.build(), config, state_restore_listener=starts)
        starts.state = lambda: self.streams.state if self.streams is not None else State.CREATED
        self.streams.start()
        return starts

    def stop(self) -> None:
        streams, self.streams = self.streams, None
        if streams is not None:
            assert streams.close(60_000, group_membership=LEAVE)

    def send(self, topic: str, **rows: str | None) -> None:
        producer = producer_in_order(self.brokers)
        for key, value in rows.items():
            producer.produce(topic, key=key.encode(), value=None if value is None else value.encode())
        assert producer.flush(60) == 0

    def ordered(self, key: str, order: str) -> str:
        """Orders something, and waits for what comes out."""
        self.send(self.orders, **{key: order})
        return self.next_result()

    def next_result(self) -> str:
        """Waits for the result after those that were seen before."""
        deadline = time.monotonic() + PATIENCE_S
        while len(found := self._results()) <= self._seen:
            assert time.monotonic() < deadline, self.streams
            time.sleep(0.05)
        self._seen += 1
        return found[self._seen - 1]

    def _results(self) -> list[str]:
        consumer = Consumer({"bootstrap.servers": self.brokers, "group.id": "test", "enable.partition.eof": True})
        try:
            consumer.assign([TopicPartition(self.out, 0, 0)])
            found: list[str] = []
            while (message := consumer.poll(60)) is not None and message.error() is None:
                found.append(value_of(message).decode())
            return found
        finally:
            consumer.close()

    def eventually(self, key: str, expected: str) -> None:
        """Orders the same until the change of a global store has arrived."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := self.ordered(key, "tea")) != expected:
            assert time.monotonic() < deadline, found


@pytest.fixture
def shop(
    bootstrap_servers: str, make_name: Callable[[str], str], make_topic: Callable[..., str], tmp_path: Path
) -> Iterator[Shop]:
    made = Shop(bootstrap_servers, make_name("shop"), make_topic, tmp_path)
    yield made
    made.stop()


def test_global_stores_are_whole_before_the_first_record_and_follow_their_topics(shop: Shop) -> None:
    shop.send(shop.names, a="Ann", b="Bob", c="Cid")
    shop.send(shop.feed, a="x", b="y")
    shop.send(shop.orders, b="early")
    starts = shop.start()

    assert starts.ready_in == [State.REBALANCING] * PARTITIONS * 2
    assert shop.next_result() == "early Bob Y"
    assert shop.ordered("a", "tea") == "tea Ann X"
    assert shop.ordered("d", "tea") == "tea None None"

    shop.send(shop.names, a="Anna", b=None, d="Dan")
    shop.send(shop.feed, a="z")
    shop.eventually("d", "tea Dan None")
    shop.eventually("b", "tea None Y")
    shop.eventually("a", "tea Anna Z")


def test_global_stores_go_on_where_they_were_after_a_restart(shop: Shop) -> None:
    shop.send(shop.names, a="Ann", b="Bob", c="Cid")
    shop.send(shop.feed, a="x", b="y")
    shop.start()
    assert shop.ordered("a", "tea") == "tea Ann X"
    shop.stop()
    shop.send(shop.names, a="Anna", c=None)
    shop.send(shop.feed, b="why")
    starts = shop.start()

    assert starts.read_from == {"names": 3, "caps": 2}
    assert shop.ordered("a", "milk") == "milk Anna X"
    assert shop.ordered("b", "milk") == "milk Bob WHY"
    assert shop.ordered("c", "milk") == "milk None None"


def test_missing_topic_of_a_global_table_is_an_error_of_start(shop: Shop) -> None:
    missing = f"{shop.names}-not"

    with pytest.raises(MissingSourceTopicError, match=f"topic '{missing}', which global store 'names' reads, does not"):
        shop.start(names=missing)
    assert shop.streams is not None and shop.streams.state is State.ERROR
