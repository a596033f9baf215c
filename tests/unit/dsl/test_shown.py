"""What a notebook and a traceback show of streams, tables and topologies."""

from __future__ import annotations

from xml.etree import ElementTree

from pykstreams import Consumed, Serdes, StreamsBuilder


def test_a_stream_says_its_types_and_where_it_is() -> None:
    stream = StreamsBuilder().stream("orders", str, dict[str, int])

    assert repr(stream) == "<KStream[str, dict[str, int]] KSTREAM-SOURCE-0000000000>"
    assert repr(stream.group_by_key()) == "<KGroupedStream[str, dict[str, int]] KSTREAM-SOURCE-0000000000>"
    assert repr(stream.group_by_key().count()) == "<KTable[str, LongSerde()] KSTREAM-AGGREGATE-0000000002>"


def test_a_stream_of_unknown_types_says_where_it_is() -> None:
    consumed: Consumed[str, str] = Consumed(key_serde=Serdes.string(), name="in")
    stream = StreamsBuilder().stream("orders", consumed)

    assert repr(stream) == "<KStream in>"


def test_a_topology_is_a_picture_in_a_notebook() -> None:
    builder = StreamsBuilder()
    builder.stream("orders", str, int).to("copies")
    topology = builder.build()

    picture = ElementTree.fromstring(topology._repr_html_())

    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    assert topology.to_svg().endswith(topology._repr_html_())
    assert repr(topology) == "<Topology of 2 nodes and 0 stores>"
