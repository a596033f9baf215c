"""Keys that plain producers put elsewhere than Kafka's murmur2 does, on a real broker: a join loses rows and says so,
and loses none once the source names the partitioner.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pykstreams import Consumed, Joined, KafkaStreams, KStream, KTable, Produced, Serdes, StreamsBuilder
from pykstreams.cli.app import cli
from pykstreams.core.hashing import partition_for_key
from pykstreams.topology.placement.key_placement import by_crc32, placement_of
from tests.brokers.producers import producer_in_order
from tests.brokers.records import key_of, partition_of, records_of, value_of

pytestmark = pytest.mark.integration

TEXT = Serdes.string()
PARTITIONS = 4
KEYS = [f"customer-{number}" for number in range(100)]
THERE = [key for key in KEYS if by_crc32(key.encode(), PARTITIONS) == partition_for_key(key.encode(), PARTITIONS)]
"""The keys that both partitioners put into the same partition."""
PATIENCE_S = 120.0
MakeTopic = Callable[..., str]


def send(brokers: str, topic: str, first_ms: int, **settings: Any) -> None:
    producer = producer_in_order(brokers, settings)
    for number, key in enumerate(KEYS):
        producer.produce(topic, key=key.encode(), value=f"{topic} {number}".encode(), timestamp=first_ms + number)
    assert producer.flush(60) == 0


@pytest.mark.parametrize(
    "name", ["consistent", "consistent_random", "murmur2", "murmur2_random", "fnv1a", "fnv1a_random"]
)
def test_producers_put_keys_where_their_partitioner_is_said_to(
    name: str, bootstrap_servers: str, make_topic: MakeTopic
) -> None:
    topic = make_topic(partitions=7)
    keys = [f"{number}".encode() * (number % 5 + 1) for number in range(200)]
    producer = producer_in_order(bootstrap_servers, {"partitioner": name})
    for key in keys:
        producer.produce(topic, key=key)
    assert producer.flush(60) == 0
    choose = placement_of(name) or partition_for_key

    found = {key_of(one): partition_of(one) for one in records_of(bootstrap_servers, [topic])}

    assert found == {key: choose(key, 7) for key in keys}


class Shop:
    """Orders of a plain producer, and customers by murmur2; each result tells whether an order found its customer."""

    def __init__(self, brokers: str, name: str, make_topic: MakeTopic, folder: Path) -> None:
        self.brokers, self.name, self.folder = brokers, name, folder
        self.orders, self.customers, self.out = (
            make_topic(prefix, partitions=PARTITIONS) for prefix in ("orders", "customers", "out")
        )
        send(brokers, self.customers, 1_000_000, partitioner="murmur2_random")
        send(brokers, self.orders, 2_000_000)

    def found(self, consumed: Consumed[str, str]) -> set[str]:
        """Runs the join until each order has its result; returns the customers that were found."""
        builder = StreamsBuilder()
        orders: KStream[str, str] = builder.stream(self.orders, consumed)
        customers: KTable[str, str] = builder.table(self.customers, Consumed(key_serde=TEXT, value_serde=TEXT))
        orders.left_join(customers, lambda _, customer: customer or "", joined=Joined(name="with-customers")).to(
            self.out, Produced(key_serde=TEXT, value_serde=TEXT)
        )
        settings = {
            "application.id": self.name,
            "bootstrap.servers": self.brokers,
            "state.dir": str(self.folder),
            "commit.interval.ms": 200,
            "max.task.idle.ms": 500,
            "replication.factor": 1,
            "default.key.serde": TEXT,
            "default.value.serde": TEXT,
            "main.consumer.auto.offset.reset": "earliest",
        }
        streams = KafkaStreams(builder.build(), settings)
        streams.start()
        try:
            deadline = time.monotonic() + PATIENCE_S
            while len(results := records_of(self.brokers, [self.out])) < len(KEYS):
                assert time.monotonic() < deadline, (len(results), streams.state)
        finally:
            assert streams.close(60_000)
        assert len(results) == len(KEYS)
        return {key_of(one).decode() for one in results if value_of(one)}


@pytest.fixture
def shop(
    bootstrap_servers: str, make_name: Callable[[str], str], make_topic: MakeTopic, tmp_path: Path
) -> Iterator[Shop]:
    yield Shop(bootstrap_servers, make_name("shop"), make_topic, tmp_path)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if "sampled records" in one.getMessage()]


def test_join_that_loses_rows_says_so_with_the_partitioner_and_the_cure(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    assert shop.found(Consumed(key_serde=TEXT, value_serde=TEXT)) == set(THERE)
    (warning,) = warnings(caplog)
    assert warning.startswith(f"topic {shop.orders!r}: ")
    assert "librdkafka's default partitioner consistent_random" in warning
    assert f"records of {shop.customers} that lie by Kafka's murmur2 do not meet them" in warning


def test_join_whose_source_names_the_partitioner_loses_none(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    consumed = Consumed(key_serde=TEXT, value_serde=TEXT, partitioner="consistent_random")

    assert shop.found(consumed) == set(KEYS)
    assert warnings(caplog) == []


def test_check_finds_it_before_the_start(shop: Shop, tmp_path: Path) -> None:
    file = tmp_path / "app.py"
    file.write_text(
        f"""
from pykstreams import Consumed, Serdes, StreamsBuilder
application_id = "{shop.name}"
config = {{"default.key.serde": Serdes.string(), "default.value.serde": Serdes.string(), "replication.factor": 1}}
def build(config):
    named = Consumed(partitioner=config.get("app.partitioner"))
    builder = StreamsBuilder()
    builder.stream("{shop.orders}", named).join(builder.table("{shop.customers}"), str.__add__).to("{shop.out}")
    return builder.build(config)
""",
        encoding="utf-8",
    )
    checking = ["check", str(file), "--bootstrap-servers", shop.brokers]
    runner = CliRunner()

    found = runner.invoke(cli, checking)
    named = runner.invoke(cli, [*checking, "--set", "app.partitioner=consistent_random"])
    off = runner.invoke(cli, [*checking, "--set", "partitioner.check.enable=false"])

    (line,) = [line for line in found.output.splitlines() if "[keys]" in line]
    wrong = len(KEYS) - len(THERE)
    assert line.startswith(f"warning [keys] {shop.orders}: {wrong} of {len(KEYS)} sampled records lie in other")
    assert found.exit_code == 0
    assert "[keys]" not in named.output + off.output
