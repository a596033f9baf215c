"""What a notebook and a traceback show of streams, tables and topologies."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from pykstreams import (
    Consumed,
    CountWindows,
    GlobalKTable,
    KStream,
    KTable,
    Serdes,
    SessionWindows,
    StreamsBuilder,
    TimeWindows,
)


def test_a_stream_says_its_types_and_where_it_is() -> None:
    stream = StreamsBuilder().stream("orders", str, dict[str, int])

    assert repr(stream) == "<KStream[str, dict[str, int]] KSTREAM-SOURCE-0000000000>"
    assert repr(stream.group_by_key()) == "<KGroupedStream[str, dict[str, int]] KSTREAM-SOURCE-0000000000>"
    assert repr(stream.group_by_key().count()) == "<KTable[str, int] KSTREAM-AGGREGATE-0000000002>"


def test_a_builder_and_a_description_say_how_much_there_is() -> None:
    builder = StreamsBuilder()
    assert repr(builder) == "<StreamsBuilder of 0 steps>"

    builder.stream("orders", str, int).to("copies")

    assert repr(builder) == "<StreamsBuilder of 2 steps>"
    assert repr(builder.build().describe()) == "<TopologyDescription, sub-topologies: 1, global stores: 0>"


def pair(key: str, value: int) -> tuple[str, int]:
    return key, value


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (
            lambda stream: stream.group_by_key().windowed_by(TimeWindows(300_000)),
            "<TimeWindowedKStream[str, int] in, 5 min>",
        ),
        (
            lambda stream: stream.group_by_key().windowed_by(SessionWindows(30_000)),
            "<SessionWindowedKStream[str, int] in, sessions with gaps of 30 s>",
        ),
        (
            lambda stream: stream.group_by_key().windowed_by(CountWindows(10)),
            "<CountWindowedKStream[str, int] in, 10 records>",
        ),
        (lambda stream: stream.to_table().group_by(pair), "<KGroupedTable[str, int] KTABLE-SELECT-0000000003>"),
        (lambda stream: stream.split(name="size-"), "<BranchedKStream[str, int] in>"),
        (lambda stream: stream.group_by_key().cogroup(added), "<CogroupedKStream of in>"),
        (
            lambda stream: stream.group_by_key().cogroup(added).cogroup(stream.merge(stream).group_by_key(), added),
            "<CogroupedKStream of in and KSTREAM-MERGE-0000000001>",
        ),
        (
            lambda stream: stream.group_by_key().cogroup(added).windowed_by(TimeWindows(1000)),
            "<TimeWindowedCogroupedKStream of in, 1 s>",
        ),
        (
            lambda stream: stream.group_by_key().cogroup(added).windowed_by(SessionWindows(1000)),
            "<SessionWindowedCogroupedKStream of in, sessions with gaps of 1 s>",
        ),
    ],
)
def test_what_is_not_aggregated_yet_says_what_it_is_made_of(
    make: Callable[[KStream[str, int]], object], shown: str
) -> None:
    stream = StreamsBuilder().stream("orders", Consumed(key_serde=str, value_serde=int, name="in"))

    assert repr(make(stream)) == shown


def added(key: str, value: int, total: int) -> int:
    return total + value


def test_a_stream_of_unknown_types_says_where_it_is() -> None:
    consumed: Consumed[str, str] = Consumed(key_serde=Serdes.string(), name="in")
    stream = StreamsBuilder().stream("orders", consumed)

    assert repr(stream) == "<KStream in>"


def test_a_global_table_says_its_types_and_where_it_is() -> None:
    table = StreamsBuilder().global_table("countries", str, str)

    assert repr(table) == "<GlobalKTable[str, str] KTABLE-SOURCE-0000000002>"


@pytest.mark.parametrize(
    "make",
    [
        lambda builder: builder.stream("orders", str, int).filter(lambda key, value: True),
        lambda builder: builder.stream("orders", str, int).group_by_key().count(),
        lambda builder: builder.global_table("orders", str, int),
    ],
)
def test_streams_and_tables_are_pictures_of_the_steps_that_lead_to_them(
    make: Callable[[StreamsBuilder], KStream[str, int] | KTable[str, int] | GlobalKTable[str, int]],
) -> None:
    face = make(StreamsBuilder())

    drawn = ElementTree.fromstring(face._repr_html_())

    assert drawn.findtext("code") == repr(face)
    assert drawn.find("{http://www.w3.org/2000/svg}svg") is not None


def test_drawing_a_stream_changes_nothing_of_its_topology() -> None:
    def described(*, drawn: bool) -> str:
        builder = StreamsBuilder()
        orders = builder.stream("orders", str, str)
        table = orders.group_by_key().count()
        joined = orders.join(table, lambda order, count: count)
        if drawn:
            joined._repr_html_()
        joined.to("out")
        return str(builder.build().describe())

    assert described(drawn=True) == described(drawn=False)


def test_a_topology_is_a_picture_in_a_notebook() -> None:
    builder = StreamsBuilder()
    builder.stream("orders", str, int).to("copies")
    topology = builder.build()

    picture = ElementTree.fromstring(topology._repr_html_())

    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    assert topology.to_svg().endswith(topology._repr_html_())
    assert repr(topology) == "<Topology of 2 nodes and 0 stores>"
