from pykstreams.core.hashing import partition_for_key
from pykstreams.core.windows import Window, Windowed
from pykstreams.serdes import Serdes, SessionWindowedSerde, StringSerde, TimeWindowedSerde
from pykstreams.topology.placement.windowed_partitioner import windowed_partitioner


def test_all_windows_of_a_key_go_to_the_partition_of_the_key() -> None:
    for serde in (TimeWindowedSerde(StringSerde(), 10), SessionWindowedSerde(StringSerde())):
        choose = windowed_partitioner(serde.serializer)
        assert choose is not None
        for key in ("a", "b", "customer-17"):
            chosen = {choose("t", Windowed(key, Window(start, start + 10)), None, 7) for start in range(0, 50, 10)}

            assert {partition_for_key(key.encode(), 7)} == chosen


def test_other_keys_are_left_to_the_producer() -> None:
    assert windowed_partitioner(Serdes.string().serializer) is None
    assert windowed_partitioner(None) is None


def test_the_key_alone_is_what_comes_before_the_times_of_a_serialized_key() -> None:
    for serde in (TimeWindowedSerde(StringSerde(), 10), SessionWindowedSerde(StringSerde())):
        choose = windowed_partitioner(serde.serializer)
        data = serde.serializer.serialize("t", Windowed("customer", Window(10, 20)))
        assert choose is not None
        assert data is not None

        assert b"customer" == data[: -choose.suffix_bytes]
