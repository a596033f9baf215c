"""What a sample of keys says: how many lie elsewhere, what may have put them there, and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pykstreams.core.hashing import partition_for_key
from pykstreams.runtime.key_places.key_sample import ENOUGH, KeySample, Misplaced
from pykstreams.runtime.key_places.keyed_inputs import KeyedInput
from pykstreams.topology.placement.key_placement import by_crc32, by_fnv1a, placement_of

PARTITIONS = 6
KEYS = [f"key {number}".encode() for number in range(60)]


def orders(partitioner: str | None = None, met_by: tuple[str, ...] = ("customers",)) -> KeyedInput:
    return KeyedInput("orders", PARTITIONS, placement_of(partitioner), ("JOIN",), met_by)


def verdict(
    choose: Callable[[bytes, int], int], keyed: KeyedInput | None = None, keys: Iterable[bytes] = KEYS
) -> Misplaced | None:
    """What is said of keys that a producer has put by that partitioner."""
    sample = KeySample(keyed or orders())
    for key in keys:
        sample.add(choose(key, PARTITIONS), [key])
    return sample.verdict()


def found(
    choose: Callable[[bytes, int], int], keyed: KeyedInput | None = None, keys: Iterable[bytes] = KEYS
) -> Misplaced:
    said = verdict(choose, keyed, keys)
    assert said is not None
    return said


def test_nothing_is_said_of_keys_that_lie_where_murmur2_puts_them() -> None:
    assert verdict(partition_for_key) is None


def test_keys_of_plain_librdkafka_are_recognized_with_the_cure_at_the_producer_and_at_the_source() -> None:
    elsewhere = sum(by_crc32(key, PARTITIONS) != partition_for_key(key, PARTITIONS) for key in KEYS)

    said = found(by_crc32)

    assert said.what == (
        f"{elsewhere} of 60 sampled records lie in other partitions than Kafka's murmur2 chooses for their keys, "
        "namely where librdkafka's default partitioner consistent_random puts them; records of customers that lie by "
        "Kafka's murmur2 do not meet them (read by JOIN)"
    )
    assert said.cure == (
        'let the producers of the topic have "partitioner": "murmur2_random", or say where they put keys by '
        "Consumed(partitioner='consistent_random'); where this is meant so, partitioner.check.enable=false leaves the "
        "check out"
    )


def test_other_partitioner_of_librdkafka_is_recognized_too() -> None:
    assert "Consumed(partitioner='fnv1a_random')" in found(by_fnv1a).cure


def test_partitioner_that_nobody_knows_is_left_open() -> None:
    said = found(lambda key, count: key[-1] % count)

    assert "choose" in said.what
    assert "librdkafka" not in said.what
    assert "Consumed(partitioner=...)" in said.cure


def test_topic_that_was_given_more_partitions_is_told_from_one_with_another_partitioner() -> None:
    said = found(lambda key, count: partition_for_key(key, 4))

    assert "namely where it puts them in a topic of 4 partitions, as this one may have been" in said.what
    assert "behind repartition()" in said.cure


def test_named_partitioner_is_what_keys_are_compared_with() -> None:
    assert verdict(by_crc32, orders("consistent")) is None
    said = found(partition_for_key, orders("consistent"))

    assert "than partitioner consistent chooses for their keys, namely where murmur2 puts them" in said.what
    assert said.cure.startswith("give its source Consumed(partitioner='murmur2_random');")


def test_lone_group_or_table_is_told_what_follows_for_it() -> None:
    assert "who looks a key up asks the wrong partition" in found(by_crc32, orders(met_by=())).what


def test_many_topics_are_counted_behind_the_first() -> None:
    said = found(by_crc32, orders(met_by=tuple("abcdefg")))

    assert "records of a, b, c, d, e and 2 more that lie by" in said.what


def test_few_records_say_nothing() -> None:
    wrong = [key for key in KEYS if by_crc32(key, PARTITIONS) != partition_for_key(key, PARTITIONS)]

    assert verdict(by_crc32, keys=wrong[: ENOUGH - 1]) is None
    assert verdict(by_crc32, keys=wrong[:ENOUGH]) is not None


def test_few_keys_fit_many_partitioners_so_none_is_named() -> None:
    wrong = next(key for key in KEYS if by_crc32(key, PARTITIONS) != partition_for_key(key, PARTITIONS))

    assert "librdkafka" not in found(by_crc32, keys=[wrong] * ENOUGH).what


def test_records_without_key_do_not_count() -> None:
    sample = KeySample(orders())
    for partition in range(PARTITIONS):
        sample.add(partition, [None, b""] * 20)

    assert sample.verdict() is None
