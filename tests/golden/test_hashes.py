"""Hashes beside those of Kafka (hashes.json says how they were recorded)."""

from __future__ import annotations

import json
from pathlib import Path

from pykstreams.core.hashing import murmur2, murmur3_128, partition_for_key
from pykstreams.runtime.clients import partitioner

ROWS = json.loads(Path(__file__).with_name("hashes.json").read_text())["hashes"]


def test_murmur2_is_that_of_kafka_for_every_length_up_to_39() -> None:
    assert [row["murmur2"] for row in ROWS] == [murmur2(bytes.fromhex(row["hex"])) for row in ROWS]


def test_partitions_are_those_of_kafka() -> None:
    expected = [row["positive"] % 7 for row in ROWS]

    assert expected == [partition_for_key(bytes.fromhex(row["hex"]), 7) for row in ROWS]


def test_murmur3_is_that_of_kafka_streams_for_every_length_up_to_39() -> None:
    assert [row["murmur3"] for row in ROWS] == [murmur3_128(bytes.fromhex(row["hex"])).hex() for row in ROWS]


def test_the_hash_of_the_client_library_chooses_the_same_partitions() -> None:
    rows = [bytes.fromhex(row["hex"]) for row in ROWS]

    assert [partition_for_key(data, 7) for data in rows] == [partitioner.partition_for_key(data, 7) for data in rows]
