"""Our partitioners choose as those of librdkafka do, which the client library offers as functions."""

from __future__ import annotations

import confluent_kafka
from hypothesis import example, given
from hypothesis import strategies as st

from pykstreams.core.hashing import partition_for_key
from pykstreams.topology.placement.key_placement import by_crc32, by_fnv1a

KEYS = st.binary(max_size=64)
COUNTS = st.integers(1, 1000)


@given(KEYS, COUNTS)
@example(b"", 7)
def test_crc32_is_that_of_consistent(key: bytes, partitions: int) -> None:
    assert by_crc32(key, partitions) == confluent_kafka.consistent(key, partitions)


@given(KEYS, COUNTS)
@example(b"", 7)
def test_fnv1a_is_that_of_fnv1a(key: bytes, partitions: int) -> None:
    assert by_fnv1a(key, partitions) == confluent_kafka.fnv1a(key, partitions)


@given(KEYS, COUNTS)
@example(b"", 7)
def test_murmur2_is_that_of_murmur2(key: bytes, partitions: int) -> None:
    assert partition_for_key(key, partitions) == confluent_kafka.murmur2(key, partitions)
