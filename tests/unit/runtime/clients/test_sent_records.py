"""Headers, keys and values as they are sent: the same as with the client itself, read back from a mock broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest
from confluent_kafka import Producer

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TaskId
from pykstreams.runtime.clients.sent_records import sent_data, sent_headers, sent_time
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.testing import EmbeddedCluster


class Text(str):
    __slots__ = ()


SENT: Mapping[str, tuple[Any, Any]] = {
    "bytes": ([("a", b"1"), ("a", b"")], (("a", b"1"), ("a", b""))),
    "null": ([("a", None)], (("a", None),)),
    "text": ([("a", "é"), ("b", ""), ("c", Text("x"))], (("a", "é".encode()), ("b", b""), ("c", b"x"))),
    "text with a NUL": ([("a\0b", "x\0y")], (("a", b"x"),)),
    "names of another type": ([(1, b"1"), (None, b"2")], (("1", b"1"), ("None", b"2"))),
    "none": ([], ()),
}

REFUSED: Mapping[str, tuple[Any, str]] = {
    "int": ([("a", 1)], "the value of header 'a' is int 1; give bytes, or text, which is sent in UTF-8, or None"),
    "bool": ([("a", True)], "the value of header 'a' is bool True; give bytes"),
    "bytearray": ([("a", bytearray(b"1"))], "the value of header 'a' is bytearray .*; give bytes"),
    "one of two": ([("a", b"1"), ("b", 1.5)], "the value of header 'b' is float 1.5; give bytes"),
    "pair in a list": ([["a", b"1"]], r"one of the headers is \['a', b'1'\]; headers are pairs of name and value"),
    "three in a tuple": ([("a", b"1", b"2")], "one of the headers is .*; headers are pairs of name and value"),
    "names only": (["ab"], "one of the headers is 'ab'; headers are pairs of name and value"),
}

DATA: list[Any] = [None, b"x", b"", "é"]
REFUSED_DATA: list[Any] = [5, 1.5, bytearray(b"x"), memoryview(b"x"), [b"x"]]


@pytest.fixture(scope="module")
def producer() -> Iterator[Producer]:
    """One without brokers: it refuses before it sends."""
    made = Producer({"bootstrap.servers": "localhost:1", "log_level": 0})
    yield made
    made.purge()


def test_headers_are_what_a_consumer_gets_of_those_that_the_client_sends(embedded_cluster: EmbeddedCluster) -> None:
    topic = embedded_cluster.topic("sent", str, str)
    producer = Producer({"bootstrap.servers": embedded_cluster.bootstrap_servers, "log_level": 0})
    for name, (headers, _) in SENT.items():
        producer.produce("sent", name, name, headers=headers, partition=0)
    assert producer.flush(10) == 0

    read = {record.key: record.headers for record in topic.read_records(len(SENT))}

    assert read == {name: expected for name, (_, expected) in SENT.items()}
    assert read == {name: sent_headers(headers) for name, (headers, _) in SENT.items()}


@pytest.mark.parametrize("case", REFUSED)
def test_headers_that_the_client_refuses_are_refused_with_what_to_do(case: str, producer: Producer) -> None:
    headers, message = REFUSED[case]

    with pytest.raises(TypeError):
        producer.produce("t", b"v", headers=headers)
    with pytest.raises(TypeError, match=message):
        sent_headers(headers)


def test_headers_in_a_dict_are_refused_as_their_names_alone_would_be_sent(producer: Producer) -> None:
    """The runtime makes a list of headers."""
    headers: Any = {"source": b"web"}
    names: Any = list(headers)

    with pytest.raises(TypeError):
        producer.produce("t", b"v", headers=names)
    with pytest.raises(TypeError, match=r"the headers are a dict; give pairs: tuple\(headers\.items\(\)\)"):
        sent_headers(headers)


def test_headers_that_are_no_collection_are_refused() -> None:
    with pytest.raises(TypeError, match="the headers are 5; headers are pairs of name and value"):
        sent_headers(5)


def test_text_that_is_no_unicode_is_refused_in_values_as_by_the_client_and_in_names(producer: Producer) -> None:
    with pytest.raises(UnicodeEncodeError):
        producer.produce("t", b"v", headers=[("a", "\ud800")])
    for headers in ([("a", "\ud800")], [("\ud800", b"a")]):
        with pytest.raises(UnicodeEncodeError):
            sent_headers(headers)


@pytest.mark.parametrize("part", ["key", "value"])
def test_a_key_or_value_is_refused_where_the_client_refuses_it(part: str, producer: Producer) -> None:
    for data in DATA:
        producer.produce("t", **{part: data})
    for data in REFUSED_DATA:
        with pytest.raises(TypeError):
            producer.produce("t", **{part: data})
        with pytest.raises(TypeError, match=f"the serializer of the {part} gave .*; it must give bytes or None"):
            sent_data(data, part)

    assert [sent_data(data, part) for data in DATA] == [None, b"x", b"", "é".encode()]


TIMES: list[Any] = [0, 5, True, (1 << 63) - 1]
REFUSED_TIMES: list[Any] = [5.5, "5", 1 << 63, timedelta(seconds=5)]


def test_a_timestamp_is_refused_where_the_client_refuses_it(producer: Producer) -> None:
    for time in TIMES:
        producer.produce("t", timestamp=time)
    for time in REFUSED_TIMES:
        with pytest.raises((TypeError, OverflowError)):
            producer.produce("t", timestamp=time)
        with pytest.raises(TypeError, match=r"the timestamp is .*; give an int, in milliseconds since 1970"):
            sent_time(time)

    assert [sent_time(time) for time in TIMES] == TIMES


def test_what_the_client_refuses_is_named_with_its_topic_and_writer_by_a_worker(producer: Producer) -> None:
    config = StreamsConfig({"application.id": "sent", "bootstrap.servers": "localhost:1"})
    collector = RecordCollector(producer, config=config, partition_count=lambda topic: 1)
    collector.register(TaskId(0, 1), "the-sink", "out")
    write: Any = collector.produce_when_there_is_room

    with pytest.raises(StreamsError, match=r"record to out from the-sink was not sent: .* header 'a' is int 1; give"):
        write("out", b"v", b"k", -1, 5, [("a", 1)])
    with pytest.raises(StreamsError, match="was not sent: the headers are a dict; give pairs") as found:
        write("out", b"v", b"k", -1, 5, {"a": b"1"})
    with pytest.raises(StreamsError, match="was not sent: the serializer of the value gave int 5; it must give bytes"):
        write("out", 5, b"k", -1, 5, ())
    with pytest.raises(StreamsError, match=r"was not sent: the timestamp is float 5\.5; give an int"):
        write("out", b"v", b"k", -1, 5.5, ())

    assert found.value.task_id == TaskId(0, 1)
