"""Headers, keys and values that user code gives, in the test driver: as a broker would have them, or refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pykstreams import Processor, Produced, Record, Repartitioned, StreamsBuilder, Topology
from pykstreams.core.errors import ProcessingError, StreamsError
from pykstreams.serdes import Serde
from pykstreams.testing import TestRecord, TopologyTestDriver

MakeDriver = Callable[..., TopologyTestDriver]

TEXT = Produced(key_serde=str, value_serde=str)
IN_A_DICT: Any = {"source": b"web"}


def with_headers(headers: Any, *, before_repartitioning: bool = False) -> Topology:
    """Gives records other headers, and notes in the value those that come behind a repartition topic."""

    class Giver(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> None:
            self.context.forward(record.replace(headers=headers))

    class Noter(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> None:
            self.context.forward(record.replace(value=repr(list(record.headers)), headers=()))

    builder = StreamsBuilder()
    given = builder.stream("in", str, str).process(Giver, name="give")
    if before_repartitioning:
        given = given.repartition(Repartitioned(key_serde=str, value_serde=str)).process(Noter)
    given.to("out", TEXT)
    return builder.build()


def test_a_header_value_that_is_text_comes_out_in_the_bytes_that_a_broker_would_have(
    topology_test_driver: MakeDriver,
) -> None:
    driver = topology_test_driver(with_headers([("source", "café"), ("none", None), ("raw", b"1")]))
    driver.create_input_topic("in", str, str).pipe_input("k", "v", 5)

    assert driver.create_output_topic("out", str, str).read_record() == TestRecord(
        "k", "v", timestamp=5, headers=(("source", "café".encode()), ("none", None), ("raw", b"1"))
    )


def test_a_header_value_that_is_text_is_read_as_bytes_behind_a_repartition_topic(
    topology_test_driver: MakeDriver,
) -> None:
    driver = topology_test_driver(with_headers([("source", "web")], before_repartitioning=True))
    driver.create_input_topic("in", str, str).pipe_input("k", "v", 5)

    assert driver.create_output_topic("out", str, str).read_value() == "[('source', b'web')]"


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        (IN_A_DICT, r"the headers are a dict; give pairs: tuple\(headers\.items\(\)\)"),
        ([("attempts", 3)], "the value of header 'attempts' is int 3; give bytes, or text"),
    ],
)
def test_headers_that_the_client_refuses_are_refused_with_the_topic_the_sink_and_what_to_do(
    headers: Any, message: str, topology_test_driver: MakeDriver
) -> None:
    source = topology_test_driver(with_headers(headers)).create_input_topic("in", str, str)

    with pytest.raises(
        ProcessingError, match=f"record to out from KSTREAM-SINK-0000000001 was not sent: {message}"
    ) as found:
        source.pipe_input("k", "v", 5)

    assert found.value.node == "give"


def test_headers_that_are_piped_in_are_read_as_a_broker_would_have_them(topology_test_driver: MakeDriver) -> None:
    builder = StreamsBuilder()
    builder.stream("in", str, str).to("out", TEXT)
    driver = topology_test_driver(builder.build())
    source = driver.create_input_topic("in", str, str)

    text: Any = [("source", "web")]
    number: Any = [("attempts", 3)]

    source.pipe_input("k", "v", 5, text)

    assert driver.create_output_topic("out", str, str).read_record().headers == (("source", b"web"),)
    with pytest.raises(TypeError, match="the headers are a dict; give pairs"):
        source.pipe_input("k", "v", 5, IN_A_DICT)
    with pytest.raises(TypeError, match="the value of header 'attempts' is int 3"):
        source.pipe_input("k", "v", 5, number)


def test_a_test_record_refuses_headers_in_a_dict() -> None:
    with pytest.raises(TypeError, match="the headers are a dict; give pairs"):
        TestRecord("k", "v", headers=IN_A_DICT)


class TextSerde(Serde[Any]):
    """Serializes to what it is given."""

    def serialize(self, topic: str, data: Any, headers: Any = None) -> Any:
        return data

    def deserialize(self, topic: str, data: bytes | None, headers: Any = None) -> Any:
        return data


def test_a_serializer_that_gives_text_is_sent_in_bytes_and_one_that_gives_a_number_is_refused(
    topology_test_driver: MakeDriver,
) -> None:
    builder = StreamsBuilder()
    builder.stream("in", str, str).map_values(lambda value: int(value) if value.isdecimal() else value).to(
        "out", Produced(key_serde=str, value_serde=TextSerde())
    )
    driver = topology_test_driver(builder.build())
    source, out = driver.create_input_topic("in", str, str), driver.create_output_topic("out", str, TextSerde())

    source.pipe_input("k", "é", 5)

    assert out.read_value() == "é".encode()
    with pytest.raises(
        StreamsError, match=r"record to out from .* was not sent: the serializer of the value gave int 5; it must give"
    ):
        source.pipe_input("k", "5", 5)
