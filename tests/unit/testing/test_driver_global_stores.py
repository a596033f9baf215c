"""Global stores in the test driver: fed at once, read by every task, listed among the stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pykstreams import GlobalKTable, KStream, Processor, Serdes, StreamsBuilder, Topology
from pykstreams.core.errors import ProcessingError, StreamsError
from pykstreams.core.record import Record
from pykstreams.state import Stores, TimestampedKeyValueStore
from pykstreams.testing import TopologyTestDriver
from tests.unit.user_processors import Put

TEXT = Serdes.string()
SERDES = {"default.key.serde": TEXT, "default.value.serde": TEXT}


class Get(Processor[Any, Any, Any, Any]):
    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record.replace(value=self.context.get_state_store("kv").get(record.key)))


def joined() -> Topology:
    builder = StreamsBuilder()
    names: GlobalKTable[str, str] = builder.global_table("names", materialized="rows")
    builder.stream("in").left_join(names, lambda v, n: f"{v} {n}", key_selector=lambda k, v: v[:1] or None).to("out")
    return builder.build()


def stored(reader: Any = Get) -> Topology:
    builder = StreamsBuilder()
    store = Stores.key_value_store_builder(Stores.persistent_key_value_store("kv"), TEXT, TEXT)
    builder.add_global_store(store, "feed", Put)
    builder.stream("in").process(reader).to("out")
    return builder.build()


@pytest.fixture
def make_driver(topology_test_driver: Callable[..., TopologyTestDriver]) -> Callable[..., TopologyTestDriver]:
    def make(topology: Topology, **options: Any) -> TopologyTestDriver:
        return topology_test_driver(topology, SERDES, **options)

    return make


@pytest.mark.parametrize("partitions", [1, 3])
def test_stream_is_joined_with_what_the_table_has_at_that_moment(
    make_driver: Callable[..., TopologyTestDriver], partitions: int
) -> None:
    driver = make_driver(joined(), partitions=partitions)
    names, stream = driver.create_input_topic("names"), driver.create_input_topic("in")
    stream.pipe_input("k", "a1")
    names.pipe_input("a", "Ann")
    stream.pipe_input("k", "a2")
    stream.pipe_input("k", "")

    assert driver.create_output_topic("out").read_values() == ["a1 None", "a2 Ann", " None"]


def test_global_stores_are_found_by_name(make_driver: Callable[..., TopologyTestDriver]) -> None:
    driver = make_driver(joined())
    driver.create_input_topic("names").pipe_input("a", "Ann", 7)
    store = driver.get_timestamped_key_value_store("rows")

    assert set(driver.get_all_state_stores()) == {"rows"}
    assert isinstance(driver.get_state_store("rows"), TimestampedKeyValueStore)
    assert store is not None and store["a"] == ("Ann", 7)
    assert list(driver.raw_store("rows")) == [(b"a", b"Ann", 7, ())]


def test_topology_of_global_stores_alone_has_no_task(make_driver: Callable[..., TopologyTestDriver]) -> None:
    builder = StreamsBuilder()
    builder.global_table("names", materialized="rows")
    driver = make_driver(builder.build())
    driver.create_input_topic("names").pipe_input("a", "Ann")
    driver.advance_wall_clock_time(5)
    store = driver.get_key_value_store("rows")

    assert store is not None and store["a"] == "Ann"


def test_record_that_the_topology_writes_to_a_global_topic_is_read_back(
    make_driver: Callable[..., TopologyTestDriver],
) -> None:
    builder = StreamsBuilder()
    names: GlobalKTable[str, str] = builder.global_table("names")
    stream: KStream[str, str] = builder.stream("in")
    stream.to("names")
    stream.join(names, lambda value, name: name, key_selector=lambda key, value: key).to("out")
    driver = make_driver(builder.build())
    stream_in = driver.create_input_topic("in")
    stream_in.pipe_input("a", "1")
    stream_in.pipe_input("a", "2")

    assert driver.create_output_topic("out").read_values() == ["1"]


def test_task_that_writes_a_global_store_is_told_where_to_write_instead(
    make_driver: Callable[..., TopologyTestDriver],
) -> None:
    driver = make_driver(stored(Put))

    with pytest.raises(ProcessingError, match=r"put of store 'kv' is refused: .* write to its topic 'feed' instead"):
        driver.create_input_topic("in").pipe_input("a", "1")


def test_every_processor_reads_a_global_store_without_being_connected(
    make_driver: Callable[..., TopologyTestDriver],
) -> None:
    driver = make_driver(stored())
    driver.create_input_topic("feed").pipe_input("a", "1")
    driver.create_input_topic("in").pipe_input("a", "?")

    assert driver.create_output_topic("out").read_values() == ["1"]


def test_null_key_in_a_user_store_raises_what_the_processor_raised(
    make_driver: Callable[..., TopologyTestDriver],
) -> None:
    driver = make_driver(stored())

    with pytest.raises(TypeError, match="kv"):
        driver.create_input_topic("feed").pipe_input(None, "1")


def test_unknown_topics_are_refused_with_those_that_are_read(make_driver: Callable[..., TopologyTestDriver]) -> None:
    driver = make_driver(stored())

    with pytest.raises(ValueError, match=r"topic 'x' is unknown; the topology reads \['feed', 'in'\]"):
        driver.create_input_topic("x").pipe_input("a", "1")


def test_global_processor_that_cannot_start_is_an_error_of_the_driver(
    make_driver: Callable[..., TopologyTestDriver],
) -> None:
    class Failing(Put):
        def init(self, context: Any) -> None:
            raise ValueError("not today")

    store = Stores.key_value_store_builder(Stores.in_memory_key_value_store("kv"), TEXT, TEXT)

    with pytest.raises(StreamsError, match="which feeds a global store, failed"):
        make_driver(Topology().add_global_store(store, "s", "feed", "w", Failing))
