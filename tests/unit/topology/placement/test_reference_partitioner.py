"""Where repartitioned rows go: to the partition of what they refer to."""

from __future__ import annotations

from operator import itemgetter

from pykstreams import Windowed
from pykstreams.core.hashing import partition_for_key
from pykstreams.core.windows import Window
from pykstreams.serdes import CombinedKey, SessionWindowedSerde, StringSerde, TimeWindowedSerde
from pykstreams.topology.placement.key_placement import by_fnv1a, placement_of
from pykstreams.topology.placement.reference_partitioner import ReferencePartitioner

TEXT = StringSerde()
PARTITIONS = 7


def test_reference_alone_chooses_the_partition() -> None:
    choose = ReferencePartitioner(itemgetter(0), TEXT)
    chosen = {choose("t", CombinedKey("x", key), None, PARTITIONS) for key in "abcdefg"}

    assert chosen == {partition_for_key(b"x", PARTITIONS)}


def test_windowed_reference_goes_by_its_key_without_the_window() -> None:
    for serde in (TimeWindowedSerde(TEXT, 10), SessionWindowedSerde(TEXT)):
        choose = ReferencePartitioner(itemgetter(0), serde)
        chosen = {
            choose("t", CombinedKey(Windowed("x", Window(start, start + 10)), "a"), None, PARTITIONS)
            for start in range(50)
        }

        assert chosen == {partition_for_key(b"x", PARTITIONS)}


def test_row_that_refers_to_nothing_is_left_to_the_default_partitioner() -> None:
    choose = ReferencePartitioner(itemgetter(0), TEXT)

    assert choose("t", CombinedKey(None, "a"), None, PARTITIONS) is None
    assert choose.of_keys(itemgetter(0))("t", CombinedKey(None, "a"), None, PARTITIONS) is None


def test_placement_takes_the_place_of_the_default_partitioner_and_hashes_whole_keys() -> None:
    serde = TimeWindowedSerde(TEXT, 10)
    given = ReferencePartitioner(itemgetter(0), serde, placement=placement_of("fnv1a"))
    key = Windowed("x", Window(10, 20))
    data = serde.serializer.serialize("t", key)

    for choose in (given, given.over_default(lambda: TEXT, lambda raw, count: -1)):
        assert choose("t", (key,), None, PARTITIONS) == by_fnv1a(data or b"", PARTITIONS)
        assert choose.of_keys(itemgetter(0))("t", ((key,),), None, PARTITIONS) == by_fnv1a(data or b"", PARTITIONS)
