"""Subscriptions and assignments of every consumer group, beside those of ``kafka-python``."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.membership.protocol.consumer_protocol import (
    ConsumerAssignment,
    ConsumerSubscription,
    decode_consumer_assignment,
    decode_consumer_subscription,
)
from pykstreams.runtime.membership.protocol.user_data import MalformedUserDataError
from tests.unit.runtime.membership.protocol.damage import damaged

TOPICS = st.text("abä", min_size=1, max_size=4)
PLACES = st.frozensets(st.builds(TopicPartition, TOPICS, st.integers(0, 99)), max_size=6)
SUBSCRIPTIONS = st.builds(
    ConsumerSubscription,
    st.frozensets(TOPICS, max_size=4),
    st.binary(max_size=9),
    PLACES,
    st.integers(-1, 2**31 - 1),
    st.none() | TOPICS,
)
ASSIGNMENTS = st.builds(ConsumerAssignment, PLACES, st.binary(max_size=9))
SAID = ConsumerSubscription(
    frozenset({"a", "b"}), b"data", frozenset({TopicPartition("a", 0), TopicPartition("a", 2)}), 7, "rack"
)


def by_topic(places: frozenset[TopicPartition]) -> list[tuple[str, list[int]]]:
    topics = sorted({place.topic for place in places})
    return [(topic, sorted(one.partition for one in places if one.topic == topic)) for topic in topics]


@given(SUBSCRIPTIONS)
def test_a_subscription_is_read_as_it_was_written(said: ConsumerSubscription) -> None:
    assert decode_consumer_subscription(said.encode()) == said


@given(ASSIGNMENTS)
def test_an_assignment_is_read_as_it_was_written(given_: ConsumerAssignment) -> None:
    assert decode_consumer_assignment(given_.encode()) == given_


@given(SUBSCRIPTIONS)
def test_a_subscription_has_the_bytes_of_kafka_python(said: ConsumerSubscription) -> None:
    theirs = ConsumerProtocolSubscription(
        topics=sorted(said.topics),
        user_data=said.user_data,
        owned_partitions=[
            ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(said.owned)
        ],
        generation_id=said.generation,
        rack_id=said.rack,
        version=3,
    )
    assert said.encode() == bytes(theirs.encode(version=3))


@given(ASSIGNMENTS)
def test_an_assignment_has_the_bytes_of_kafka_python(given_: ConsumerAssignment) -> None:
    theirs = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(given_.partitions)
        ],
        user_data=given_.user_data,
        version=3,
    )
    assert given_.encode() == bytes(theirs.encode(version=3))


@pytest.mark.parametrize(
    ("version", "left_out", "read"),
    [
        (0, 0, ConsumerSubscription(SAID.topics, SAID.user_data)),
        (1, 10, ConsumerSubscription(SAID.topics, SAID.user_data, SAID.owned)),
        (2, 6, ConsumerSubscription(SAID.topics, SAID.user_data, SAID.owned, 7)),
        (3, 0, SAID),
        (9, 0, SAID),
    ],
)
def test_subscriptions_of_other_versions_are_read(version: int, left_out: int, read: ConsumerSubscription) -> None:
    whole = SAID.encode()
    if version == 0:
        left_out = len(whole) - (2 + 4 + 3 + 3 + 4 + len(SAID.user_data))
    data = version.to_bytes(2, "big") + whole[2 : len(whole) - left_out]
    assert decode_consumer_subscription(data) == read


@given(st.binary(max_size=60) | damaged(SUBSCRIPTIONS.map(ConsumerSubscription.encode)))
def test_bytes_that_are_no_subscription_are_malformed(data: bytes) -> None:
    with suppress(MalformedUserDataError):
        assert isinstance(decode_consumer_subscription(data), ConsumerSubscription)


@given(st.binary(max_size=60) | damaged(ASSIGNMENTS.map(ConsumerAssignment.encode)))
def test_bytes_that_are_no_assignment_are_malformed(data: bytes) -> None:
    with suppress(MalformedUserDataError):
        assert isinstance(decode_consumer_assignment(data), ConsumerAssignment)


def test_a_subscription_that_ends_early_is_malformed() -> None:
    whole = SAID.encode()
    for size in range(len(whole)):
        with pytest.raises(MalformedUserDataError):
            decode_consumer_subscription(whole[:size])
