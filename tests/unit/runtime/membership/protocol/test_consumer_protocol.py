"""Subscriptions and assignments beside the bytes of another library, and beside bytes that nobody should send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from pykstreams.core.ids import TopicPartition
from pykstreams.runtime.membership.protocol.consumer_protocol import (
    NO_GENERATION,
    ConsumerAssignment,
    ConsumerSubscription,
    decode_consumer_assignment,
    decode_consumer_subscription,
)
from pykstreams.runtime.membership.protocol.user_data import MalformedUserDataError
from tests.unit.runtime.membership.protocol.damage import damaged

INTS = st.integers(0, 2**31 - 1)
NAMES = st.text(max_size=12)
PLACES = st.frozensets(st.builds(TopicPartition, NAMES, INTS), max_size=6)
SUBSCRIPTIONS = st.builds(
    ConsumerSubscription,
    st.frozensets(NAMES, max_size=4),
    st.binary(max_size=20),
    PLACES,
    st.integers(-1, 2**31 - 1),
    st.none() | NAMES,
)
ASSIGNMENTS = st.builds(ConsumerAssignment, PLACES, st.binary(max_size=20))


def grouped(places: frozenset[TopicPartition]) -> list[tuple[str, list[int]]]:
    topics = sorted({place.topic for place in places})
    return [(name, sorted(place.partition for place in places if place.topic == name)) for name in topics]


def encoded_by_library(subscription: ConsumerSubscription, version: int) -> bytes:
    place = ConsumerProtocolSubscription.TopicPartition
    found = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=[place(topic=name, partitions=numbers) for name, numbers in grouped(subscription.owned)],
        generation_id=subscription.generation,
        rack_id=subscription.rack,
        version=version,
    )
    return bytes(found.encode())


@given(SUBSCRIPTIONS)
def test_subscriptions_have_the_bytes_of_the_library(subscription: ConsumerSubscription) -> None:
    assert subscription.encode() == encoded_by_library(subscription, 3)


@given(ASSIGNMENTS)
def test_assignments_have_the_bytes_of_the_library(assignment: ConsumerAssignment) -> None:
    place = ConsumerProtocolAssignment.TopicPartition
    found = ConsumerProtocolAssignment(
        assigned_partitions=[place(topic=name, partitions=numbers) for name, numbers in grouped(assignment.partitions)],
        user_data=assignment.user_data,
        version=3,
    )
    assert assignment.encode() == bytes(found.encode())


@given(SUBSCRIPTIONS, st.integers(0, 3))
def test_subscriptions_of_each_version_are_read(subscription: ConsumerSubscription, version: int) -> None:
    read = decode_consumer_subscription(encoded_by_library(subscription, version))
    assert read == ConsumerSubscription(
        subscription.topics,
        subscription.user_data,
        subscription.owned if version >= 1 else frozenset(),
        subscription.generation if version >= 2 else NO_GENERATION,
        subscription.rack if version >= 3 else None,
    )


@given(SUBSCRIPTIONS, st.binary(max_size=9))
def test_what_later_versions_add_is_not_looked_at(subscription: ConsumerSubscription, more: bytes) -> None:
    later = b"\x00\x04" + subscription.encode()[2:] + more
    assert decode_consumer_subscription(later) == subscription


@given(ASSIGNMENTS)
def test_assignments_that_were_written_are_read(assignment: ConsumerAssignment) -> None:
    assert decode_consumer_assignment(assignment.encode()) == assignment


@given(st.binary(max_size=200) | damaged(SUBSCRIPTIONS.map(ConsumerSubscription.encode)))
def test_any_subscription_is_read_or_malformed(data: bytes) -> None:
    try:
        found = decode_consumer_subscription(data)
    except MalformedUserDataError:
        return
    assert decode_consumer_subscription(found.encode()) == found


@given(st.binary(max_size=200) | damaged(ASSIGNMENTS.map(ConsumerAssignment.encode)))
def test_any_assignment_is_read_or_malformed(data: bytes) -> None:
    try:
        found = decode_consumer_assignment(data)
    except MalformedUserDataError:
        return
    assert decode_consumer_assignment(found.encode()) == found


@given(SUBSCRIPTIONS, ASSIGNMENTS, st.data())
def test_bytes_that_were_cut_off_are_malformed(
    subscription: ConsumerSubscription, assignment: ConsumerAssignment, data: st.DataObject
) -> None:
    said, given_ = subscription.encode(), assignment.encode()
    with pytest.raises(MalformedUserDataError):
        decode_consumer_subscription(said[: data.draw(st.integers(0, len(said) - 1))])
    with pytest.raises(MalformedUserDataError):
        decode_consumer_assignment(given_[: data.draw(st.integers(0, len(given_) - 1))])


def test_null_user_data_reads_as_none() -> None:
    assert decode_consumer_assignment(bytes.fromhex("0000 00000000 ffffffff")).user_data == b""
    assert decode_consumer_subscription(bytes.fromhex("0000 00000000 ffffffff")).user_data == b""


@pytest.mark.parametrize("data", ["ffff 00000000 00000000", "0000 00000001 ffff 00000000"])
def test_a_version_below_zero_and_a_topic_without_a_name_are_malformed(data: str) -> None:
    with pytest.raises(MalformedUserDataError):
        decode_consumer_subscription(bytes.fromhex(data))


@pytest.mark.parametrize("data", ["ffff 00000000 00000000", "0000 00000001 ffff 00000000 00000000"])
def test_so_they_are_in_an_assignment(data: str) -> None:
    with pytest.raises(MalformedUserDataError):
        decode_consumer_assignment(bytes.fromhex(data))
