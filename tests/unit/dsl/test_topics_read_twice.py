"""Streams of one topic: they share a source, and so the types that it reads."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from pykstreams import Consumed, KStream, Serdes, StreamsBuilder, types
from pykstreams.errors import TopologyError
from pykstreams.serdes import JsonSerde, WindowedSerdes
from pykstreams.testing import TopologyTestDriver


@dataclass
class Order:
    id: int


@dataclass
class Refund:
    id: int


class OwnSerde:
    """A serde of a user's, without a text of its own."""

    @property
    def serializer(self) -> "OwnSerde":
        return self

    @property
    def deserializer(self) -> "OwnSerde":
        return self

    def serialize(self, topic: str, data: str | None) -> bytes | None:
        return None if data is None else data.encode()

    def deserialize(self, topic: str, data: bytes | None) -> str | None:
        return None if data is None else data.decode()


class Shape:
    pass


class Colour:
    pass


def own_functions() -> Any:
    return Serdes.from_functions(lambda value: b"value", lambda data: data)


def own_windowed() -> Any:
    own: Any = OwnSerde()
    return WindowedSerdes.time_windowed(own, 5)


Read = Callable[[StreamsBuilder], KStream[Any, Any]]


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (lambda b: b.stream("in", str, str), lambda b: b.stream("in", str, int), "values of int, .* with str"),
        (lambda b: b.stream("in", str, str), lambda b: b.stream("in", int, str), "keys of int, .* with str"),
        (
            lambda b: b.stream("in", str, int),
            lambda b: b.stream("in", str, Serdes.integer()),
            r"values of IntegerSerde\(\), .* with int",
        ),
        (
            lambda b: b.stream("in", str, Order),
            lambda b: b.stream("in", str, Refund),
            "values of Refund, .* with Order",
        ),
        (
            lambda b: b.stream(re.compile("in.*"), str, list[int]),
            lambda b: b.stream(re.compile("in.*"), str, list[str]),
            r"values of list\[str\], .* with list\[int\]",
        ),
        (
            lambda b: b.stream("in", str, OwnSerde()),
            lambda b: b.stream("in", str, str),
            "values of str, .* with OwnSerde",
        ),
    ],
)
def test_a_topic_that_is_read_twice_with_unlike_types_is_refused(first: Read, second: Read, said: str) -> None:
    """One source reads it, with the serdes of the first stream, so what the second says would be ignored."""
    builder = StreamsBuilder()
    first(builder).to("copy")
    second(builder).to("out")

    with pytest.raises(
        TopologyError, match=rf"topic 'in.*' of source 'KSTREAM-SOURCE-\d*2'.* {said}.*'KSTREAM-SOURCE-\d*0'"
    ):
        builder.build()


def test_a_topic_that_is_read_twice_with_unlike_serdes_is_read_with_those_of_the_first_and_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As in Kafka Streams, but for the warning."""
    builder = StreamsBuilder()
    builder.stream("in", WindowedSerdes.time_windowed(Serdes.string(), 5), str).to("copy")
    builder.stream("in", WindowedSerdes.time_windowed(Serdes.long(), 5), str).to("out")

    (said,) = map(str, builder.build().contradictions)

    assert re.search(r"^topic 'in' .* keys of Windowed\[int\], .* with Windowed\[str\]", said)
    assert said in caplog.text


def test_types_that_were_registered_with_serdes_of_one_class_are_told_apart() -> None:
    types.register(Shape, own_functions())
    types.register(Colour, own_functions())
    builder = StreamsBuilder()
    builder.stream("in", str, Shape).to("copy")
    builder.stream("in", str, Colour).to("out")

    with pytest.raises(TopologyError, match=r"values of Colour, .* with Shape"):
        builder.build()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda b: b.stream("in", str, Order), lambda b: b.stream("in", str, Order)),
        (
            lambda b: b.stream("in", str, int),
            lambda b: b.stream("in", Consumed(key_serde=Serdes.string(), value_serde=Serdes.long())),
        ),
        (lambda b: b.stream("in", str, str), lambda b: b.stream("in")),
        (lambda b: b.stream("in"), lambda b: b.stream("in", str, str)),
        (
            lambda b: b.stream("in", str, JsonSerde(Order)),
            lambda b: b.stream("in", str, JsonSerde(Order)),
        ),
        (lambda b: b.stream("in", Order, str), lambda b: b.stream("in", JsonSerde(Order), str)),
        (lambda b: b.stream("in", str, OwnSerde()), lambda b: b.stream("in", str, OwnSerde())),
        (
            lambda b: b.stream("in", own_windowed(), str),
            lambda b: b.stream("in", own_windowed(), str),
        ),
        (
            lambda b: b.stream("in", str, own_functions()),
            lambda b: b.stream("in", str, own_functions()),
        ),
    ],
)
def test_a_topic_that_is_read_twice_with_like_types_has_one_source(first: Read, second: Read) -> None:
    """Also where one of them says nothing, and where equal serdes are two objects."""
    builder = StreamsBuilder()
    first(builder).to("copy")
    second(builder).to("out")

    assert str(builder.build().describe()).count("Source:") == 1


def test_records_of_a_topic_that_is_read_twice_reach_both_streams() -> None:
    builder = StreamsBuilder()
    builder.stream("in", str, int).to("copy")
    builder.stream("in", str, int).filter(lambda key, value: value > 5).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in", str, int).pipe_input("k", 7)

        assert [driver.create_output_topic(topic, str, int).read_value() for topic in ("copy", "out")] == [7, 7]
