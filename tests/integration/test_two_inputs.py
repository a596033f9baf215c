"""Tasks with two inputs of which one is written in transactions: what is no record holds nothing up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from pykstreams import Consumed, Produced, Serdes, StreamsBuilder
from pykstreams.core.ids import TopicPartition as Place
from pykstreams.runtime.clients.supplier import DefaultKafkaClientSupplier
from pykstreams.runtime.life_cycle import State
from pykstreams.runtime.streams import GroupMembershipOperation, KafkaStreams
from tests.brokers import offsets
from tests.brokers.producers import producer_in_order
from tests.brokers.records import records_of

pytestmark = pytest.mark.slow

TEXT = Serdes.string()
PATIENCE_S = 30.0
WAIT = "wait"


class Supplier(DefaultKafkaClientSupplier):
    """Keeps hold of the consumer that reads the inputs, to see what it has fetched."""

    def __init__(self) -> None:
        self.consumers: list[Consumer] = []

    def get_consumer(self, config: Any) -> Consumer:
        self.consumers.append(super().get_consumer(config))
        return self.consumers[-1]

    def has_fetched(self, topic: str, end: int) -> bool:
        place = TopicPartition(topic, 0)
        return any(one.get_watermark_offsets(place, cached=True)[1] >= end for one in self.consumers)


class Merging:
    """An application that merges left and right, and stops at a record that says so until it is let go."""

    def __init__(self, brokers: str, name: str, make_topic: Callable[..., str], folder: Path) -> None:
        self.brokers = brokers
        self.name = name
        self.left, self.right, self.out = (make_topic(f"{name}-{part}") for part in ("left", "right", "out"))
        self.folder = folder
        self.waits = threading.Event()
        self.let_go = threading.Event()
        self.supplier = Supplier()
        self.plain = producer_in_order(brokers)
        self.transactional = Producer({"bootstrap.servers": brokers, "transactional.id": f"{name}-left"})
        self.transactional.init_transactions(PATIENCE_S)

    def write(self, *values: str) -> None:
        """To the right, without a transaction."""
        for value in values:
            self.plain.produce(self.right, value, "k")
        assert self.plain.flush(PATIENCE_S) == 0

    def transact(self, *values: str, commit: bool = True) -> None:
        """To the left, in a transaction that is committed or aborted."""
        self.transactional.begin_transaction()
        for value in values:
            self.transactional.produce(self.left, value, "k")
        assert self.transactional.flush(PATIENCE_S) == 0
        if commit:
            self.transactional.commit_transaction(PATIENCE_S)
        else:
            self.transactional.abort_transaction(PATIENCE_S)

    @contextmanager
    def running(self) -> Iterator[None]:
        builder = StreamsBuilder()
        left = builder.stream(self.left, Consumed(key_serde=TEXT, value_serde=TEXT))
        right = builder.stream(self.right, Consumed(key_serde=TEXT, value_serde=TEXT))
        left.merge(right).peek(self._look).to(self.out, Produced(key_serde=TEXT, value_serde=TEXT))
        settings = {
            "application.id": self.name,
            "bootstrap.servers": self.brokers,
            "state.dir": str(self.folder),
            "commit.interval.ms": 100,
            "consumer.isolation.level": "read_committed",
        }
        streams = KafkaStreams(builder.build(), settings, client_supplier=self.supplier)
        streams.start()
        try:
            assert streams.wait_for_state(State.RUNNING, timedelta(seconds=PATIENCE_S))
            yield
        finally:
            self.let_go.set()
            assert streams.close(timedelta(seconds=PATIENCE_S), group_membership=GroupMembershipOperation.LEAVE_GROUP)

    def came_out(self) -> list[str]:
        return [(record.value() or b"").decode() for record in records_of(self.brokers, [self.out])]

    def committed(self) -> dict[Place, int]:
        reader = Consumer({"bootstrap.servers": self.brokers, "group.id": self.name})
        try:
            places = [TopicPartition(self.left, 0), TopicPartition(self.right, 0)]
            return {Place(one.topic, 0): one.offset for one in offsets.committed(reader, places)}
        finally:
            reader.close()

    def _look(self, key: str, value: str) -> None:
        if value == WAIT:
            self.waits.set()
            assert self.let_go.wait(PATIENCE_S)


def wait_until(what: Callable[[], bool], text: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline, text
        time.sleep(0.05)


@pytest.fixture
def app(
    bootstrap_servers: str, make_name: Callable[[str], str], make_topic: Callable[..., str], tmp_path: Path
) -> Merging:
    return Merging(bootstrap_servers, make_name("merge"), make_topic, tmp_path)


@pytest.mark.parametrize("commit", [True, False], ids=["committed", "aborted"])
def test_records_of_one_input_do_not_wait_for_the_end_of_a_transaction_of_the_other(app: Merging, commit: bool) -> None:
    with app.running():
        app.write(WAIT)
        assert app.waits.wait(PATIENCE_S)
        app.transact("left0", "left1", "left2", commit=commit)
        wait_until(lambda: app.supplier.has_fetched(app.left, 4), "the transaction was not fetched")
        app.let_go.set()
        app.write("right0", "right1", "right2")

        lefts = ["left0", "left1", "left2"] if commit else []
        expected = sorted([WAIT, *lefts, "right0", "right1", "right2"])
        wait_until(lambda: sorted(app.came_out()) == expected, f"{expected} did not come out: {app.came_out()}")
        if commit:
            ends = {Place(app.left, 0): 4, Place(app.right, 0): 4}
            wait_until(lambda: app.committed() == ends, f"the group shows lag: {app.committed()}")


def test_task_that_begins_at_a_transaction_marker_does_not_wait_for_that_input(app: Merging) -> None:
    app.let_go.set()
    app.transact("left0")
    with app.running():
        wait_until(lambda: app.came_out() == ["left0"], "the first record did not come out")
    group = Consumer({"bootstrap.servers": app.brokers, "group.id": app.name})
    group.commit(offsets=[TopicPartition(app.left, 0, 1)], asynchronous=False)  # as one that knows nothing of markers
    group.close()
    with app.running():
        app.write("right0")

        wait_until(lambda: app.came_out() == ["left0", "right0"], f"only these came out: {app.came_out()}")
