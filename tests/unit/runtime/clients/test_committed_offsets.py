"""Offsets and their metadata, at the byte: what is committed, and what is read of that which others have committed."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.clients import committed_offsets
from pykstreams.runtime.clients.consumers.group_consumer import GroupConsumer
from pykstreams.runtime.clients.mock_cluster import EmbeddedCluster
from pykstreams.runtime.clients.supplier import DefaultKafkaClientSupplier
from tests.unit.runtime.clients.offset_wire import commit_metadata, fetch_metadata

SUPPLIER = DefaultKafkaClientSupplier()
P0, P1, P2 = (TopicPartition("orders", number) for number in range(3))
JAVAS = "AgAAAAAAAAAF"
"""Partition time 5, as Kafka Streams writes it."""


@pytest.fixture
def address(embedded_cluster: EmbeddedCluster) -> str:
    embedded_cluster.create_topics("orders")
    return embedded_cluster.bootstrap_servers


@pytest.fixture
def group(address: str) -> Iterator[GroupConsumer]:
    config = StreamsConfig({"application.id": "shop", "bootstrap.servers": address})
    found = GroupConsumer.open(SUPPLIER, config, "member")
    yield found
    found.close(leave=True)


@pytest.mark.parametrize("text", [JAVAS, "", "a\0b", "größer"])
def test_metadata_is_committed_as_it_is(group: GroupConsumer, address: str, text: str) -> None:
    assert group.commit({P0: (7, text)})

    assert fetch_metadata(address, "shop", *P0) == text.encode()


@pytest.mark.parametrize("length", [1, 12, 24, 40, 56, 1000])
def test_metadata_of_others_is_read_up_to_its_end(group: GroupConsumer, address: str, length: int) -> None:
    text = "A" * length
    for _ in range(50):  # what lies behind the end is different each time
        commit_metadata(address, "shop", *P0, 7, text.encode())

        assert group.committed([P0], 10) == {P0: (7, text)}


def test_metadata_that_is_no_text_is_read_all_the_same(group: GroupConsumer, address: str) -> None:
    commit_metadata(address, "shop", *P0, 7, b"A\xff")

    assert group.committed([P0], 10) == {P0: (7, "A�")}


def test_partitions_without_a_committed_offset_are_left_out(group: GroupConsumer) -> None:
    assert group.commit({P1: (8, "one"), P2: (0, "")})

    assert group.committed([P0, P1, P2], 10) == {P1: (8, "one"), P2: (0, "")}


def test_an_offset_that_is_not_committed_in_time_says_so(address: str) -> None:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "shop"})
    with contextlib.closing(consumer), pytest.raises(KafkaException) as raised:
        committed_offsets.commit(consumer, {P0: (7, "")}, 0)  # it has not looked for its coordinator yet

    assert raised.value.args[0].code() == KafkaError._TIMED_OUT


def test_committed_offsets_that_are_not_told_in_time_say_so() -> None:
    consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "shop", "log_level": 0})
    with contextlib.closing(consumer), pytest.raises(KafkaException) as raised:
        committed_offsets.committed(consumer, [P0], 0.1)

    assert raised.value.args[0].code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT)


def test_errors_of_a_transaction_say_what_is_to_be_done() -> None:
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    with pytest.raises(KafkaException) as raised:
        committed_offsets.send_to_transaction(producer, {P0: (7, "")}, group_metadata(), 0.1)
    error: KafkaError = raised.value.args[0]

    assert error.code() == KafkaError._NOT_CONFIGURED
    assert not error.retriable()
    assert "transactional.id" in error.str()


def test_group_metadata_that_is_none_is_refused() -> None:
    producer = Producer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    with pytest.raises(KafkaException) as raised:
        committed_offsets.send_to_transaction(producer, {P0: (7, "")}, b"not this", 0.1)

    assert raised.value.args[0].code() == KafkaError._BAD_MSG


def test_closed_client_is_refused() -> None:
    consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "shop", "log_level": 0})
    consumer.close()

    with pytest.raises(RuntimeError, match="closed"):
        committed_offsets.committed(consumer, [P0], 0.1)


def test_subclass_of_a_client_is_as_good_as_the_client(address: str) -> None:
    class Own(Consumer):
        def __init__(self, *settings: Any) -> None:
            super().__init__(*settings)
            self.more = "of the user"

    consumer = Own({"bootstrap.servers": address, "group.id": "shop"})
    with contextlib.closing(consumer):
        committed_offsets.commit(consumer, {P0: (7, JAVAS)}, 10)

        assert committed_offsets.committed(consumer, [P0], 10) == {P0: (7, JAVAS)}


def test_client_of_another_kind_is_refused() -> None:
    with pytest.raises(StreamsError, match="no Consumer or Producer of confluent_kafka"):
        committed_offsets.handle_of(cast(Consumer, object()))


@pytest.fixture
def fresh_library() -> Iterator[None]:
    """The library is looked for again, now and after the test."""
    committed_offsets._library.cache_clear()
    yield
    committed_offsets._library.cache_clear()


@pytest.mark.usefixtures("fresh_library")
def test_library_without_the_functions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(committed_offsets, "_loaded", lambda: ctypes.CDLL(None))

    with pytest.raises(StreamsError, match=r"functions of librdkafka are not found .*rd_kafka_"):
        committed_offsets.handle_of(Producer({"log_level": 0}))


@pytest.mark.usefixtures("fresh_library")
def test_client_that_is_laid_out_in_another_way_is_refused_and_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    words = committed_offsets._words
    monkeypatch.setattr(committed_offsets, "_words", lambda client: [1, *words(client)[:3]])

    with pytest.raises(StreamsError, match="do not begin with their handle and callbacks"):
        committed_offsets.handle_of(Producer({"log_level": 0}))


@pytest.mark.usefixtures("fresh_library")
def test_python_without_addresses_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.implementation.name", "pypy")

    with pytest.raises(StreamsError, match="on pypy"):
        committed_offsets.handle_of(Producer({"log_level": 0}))


def group_metadata() -> bytes:
    consumer = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "shop", "log_level": 0})
    try:
        return cast(bytes, consumer.consumer_group_metadata())
    finally:
        consumer.close()
