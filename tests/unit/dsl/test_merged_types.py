"""A merge of streams whose types differ has no serde of its own, and whoever needs one is told why."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams import KStream, Produced, Serdes, StreamsBuilder
from pykstreams.errors import ConfigError
from pykstreams.serdes import JsonSerde
from pykstreams.testing import TopologyTestDriver


def merged(builder: StreamsBuilder, one: tuple[Any, Any], other: tuple[Any, Any]) -> KStream[Any, Any]:
    left: KStream[Any, Any] = builder.stream("a", *one)
    right: KStream[Any, Any] = builder.stream("b", *other)
    return left.merge(right)


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (
            (str, str),
            (str, int),
            r"a value serde and none is set \(merge of KSTREAM-SOURCE-\d*0 \(values of str\) with "
            r"KSTREAM-SOURCE-\d*1 \(values of int\)\)",
        ),
        ((str, str), (int, str), r"a key serde and none is set \(merge of .*\(keys of str\) with .*\(keys of int\)\)"),
        (
            (str, Serdes.string()),
            (str, Serdes.long()),
            r"\(merge of KSTREAM-SOURCE-\d*0 \(values of str\) with KSTREAM-SOURCE-\d*1 \(values of int\)\)",
        ),
    ],
)
def test_missing_serde_behind_a_merge_tells_of_both_sides(
    one: tuple[Any, Any], other: tuple[Any, Any], said: str
) -> None:
    builder = StreamsBuilder()
    merged(builder, one, other).filter(lambda key, value: True).to("out")

    with pytest.raises(ConfigError, match=said):
        TopologyTestDriver(builder.build())


def test_merge_of_three_streams_tells_of_the_two_that_differ() -> None:
    builder = StreamsBuilder()
    merged(builder, (str, str), (str, int)).merge(builder.stream("c", str, str)).to("out")

    with pytest.raises(ConfigError, match=r"merge of .*\(values of str\) with .*\(values of int\)"):
        TopologyTestDriver(builder.build())


def test_merge_of_unlike_types_goes_on_where_the_serde_is_given() -> None:
    builder = StreamsBuilder()
    as_text = merged(builder, (str, str), (str, int)).map_values(str)
    as_text.to("out", Produced(key_serde=str, value_serde=str))
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("b", str, int).pipe_input("k", 7)

        assert driver.create_output_topic("out", str, str).read_value() == "7"


def test_default_serde_is_that_of_a_merge_of_unlike_types() -> None:
    builder = StreamsBuilder()
    merged(builder, (str, str), (str, int)).to("out")
    with TopologyTestDriver(builder.build(), {"default.value.serde": JsonSerde()}) as driver:
        driver.create_input_topic("b", str, int).pipe_input("k", 7)

        assert driver.create_output_topic("out", str, JsonSerde()).read_value() == 7
