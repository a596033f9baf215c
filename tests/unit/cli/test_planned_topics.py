"""``pykstreams topics``: the partitions of repartition topics follow from what they are joined with, as at run time."""

from __future__ import annotations

import pytest

from pykstreams import KTable, Repartitioned, StreamsBuilder, StreamsConfig
from pykstreams.cli.topics import planned_topics

CONFIG = {"application.id": "app", "bootstrap.servers": "localhost:9092"}


def both(left: str, right: str) -> str:
    return left + right


def same_key(key: str, value: str) -> str:
    return key


def itself(value: str) -> str:
    return value


def partitions_of(builder: StreamsBuilder) -> dict[str, str]:
    plan = builder.build().plan(StreamsConfig(CONFIG))
    found = planned_topics(plan, {})
    return {topic.name.removeprefix("app-"): topic.partitions_text for topic in found if topic.kind == "repartition"}


def table(builder: StreamsBuilder, topic: str, partitions: int | None) -> KTable[str, str]:
    return builder.stream(topic, str, str).repartition(Repartitioned(num_partitions=partitions, name=topic)).to_table()


def test_topics_of_a_foreign_key_join_have_the_partitions_of_the_table_that_they_meet() -> None:
    builder = StreamsBuilder()
    left, right = table(builder, "left", 6), table(builder, "right", 3)
    left.join(right, both, foreign_key_extractor=itself, name="fk").to_stream().to("out")

    assert partitions_of(builder) == {
        "fk-subscription-registration-topic": "3",
        "fk-subscription-response-topic": "6",
        "left-repartition": "6",
        "right-repartition": "3",
    }


def test_a_stream_that_is_repartitioned_for_a_join_has_the_partitions_of_the_table() -> None:
    builder = StreamsBuilder()
    customers = builder.table("customers", str, str)
    orders = builder.stream("orders", str, str).repartition(Repartitioned(num_partitions=6, name="six"))
    orders.select_key(same_key).join(customers, both).to("out")

    assert partitions_of(builder) == {
        "KSTREAM-KEY-SELECT-0000000007-repartition": "as customers",
        "six-repartition": "6",
    }


@pytest.mark.parametrize("first", ["a", "b"])
def test_topics_that_are_joined_and_both_free_have_as_many_as_the_largest_that_is_read(first: str) -> None:
    builder = StreamsBuilder()
    one, other = (table(builder, topic, None) for topic in (("a", "b") if first == "a" else ("b", "a")))
    one.join(other, both).to_stream().to("out")

    assert partitions_of(builder) == {"a-repartition": "most of a, b", "b-repartition": "most of a, b"}
