"""The test driver as users meet it: topics, time, stores, several partitions, errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pykstreams import (
    Consumed,
    ConsumerRecord,
    KStream,
    Processor,
    ProcessorContext,
    Produced,
    PunctuationType,
    Record,
    Serdes,
    StreamsBuilder,
    Topology,
)
from pykstreams.core.errors import ConfigError, ProcessingError, StreamsError
from pykstreams.core.hashing import partition_for_key
from pykstreams.state import TimestampedKeyValueStore
from pykstreams.testing import ProducedRecord, TestInputTopic, TestOutputTopic, TestRecord, TopologyTestDriver

MakeDriver = Callable[..., TopologyTestDriver]

SERDES = {"default.key.serde": Serdes.string(), "default.value.serde": Serdes.string()}


def upper() -> Topology:
    builder = StreamsBuilder()
    builder.stream("in").map_values(str.upper).to("out")
    return builder.build()


def count_by_value() -> Topology:
    """Counts values, so records go through a repartition topic."""
    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream("in")
    counts = stream.group_by(lambda key, value: value).count(materialized="counts")
    counts.to_stream().to("out", Produced(value_serde=Serdes.long()))
    return builder.build()


@pytest.fixture
def make_driver(topology_test_driver: MakeDriver) -> MakeDriver:
    def make(topology: Topology, config: dict[str, object] | None = None, **options: Any) -> TopologyTestDriver:
        return topology_test_driver(topology, {**SERDES, **(config or {})}, **options)

    return make


def topics(
    driver: TopologyTestDriver, output_value: Any = None
) -> tuple[TestInputTopic[Any, Any], TestOutputTopic[Any, Any]]:
    return driver.create_input_topic("in"), driver.create_output_topic("out", value_deserializer=output_value)


def test_what_is_piped_in_comes_out_at_once(make_driver: MakeDriver) -> None:
    source, out = topics(make_driver(upper()))

    source.pipe_input("k", "v", 5, [("h", b"x")])

    assert out.read_record() == TestRecord("k", "V", timestamp=5, headers=[("h", b"x")])
    assert out.is_empty


def test_input_topics_have_a_time_of_their_own_that_moves_on(make_driver: MakeDriver) -> None:
    driver = make_driver(upper())
    source = driver.create_input_topic("in", start_timestamp=100, auto_advance=timedelta(milliseconds=10))
    out = driver.create_output_topic("out")

    source.pipe_input("k", "a")
    source.pipe_value("b")
    source.advance_time(1000)
    source.pipe_record(TestRecord("k", "c"))
    source.pipe_record(TestRecord("k", "d", timestamp=3))
    source.pipe_records([TestRecord(None, "e")])

    assert [record.timestamp for record in out.read_records()] == [100, 110, 1120, 3, 1130]


def test_input_topics_start_at_the_drivers_time(make_driver: MakeDriver) -> None:
    driver = make_driver(upper(), initial_wall_clock_time=datetime(1970, 1, 2, tzinfo=UTC))
    source, out = topics(driver)

    source.pipe_values(["a", "b"])

    assert [record.record_time for record in out.read_records()] == [datetime(1970, 1, 2, tzinfo=UTC)] * 2


def test_pairs_are_piped_in_from_a_start_and_some_way_apart(make_driver: MakeDriver) -> None:
    source, out = topics(make_driver(upper()))

    source.pipe_key_values([("a", "x"), ("b", "y")], start_timestamp=10, advance=5)

    assert [(record.key, record.timestamp) for record in out.read_records()] == [("a", 10), ("b", 15)]


def test_output_topics_are_read_in_the_shapes_a_test_needs(make_driver: MakeDriver) -> None:
    source, out = topics(make_driver(upper()))
    source.pipe_key_values([("a", "x"), ("b", "y"), ("a", "z"), ("c", "1"), ("d", "2")])

    assert (len(out), out.queue_size) == (5, 5)
    assert out.read_value() == "X"
    assert out.read_key_value() == ("b", "Y")
    assert out.read_values() == ["Z", "1", "2"]
    source.pipe_key_values([("a", "x"), ("a", "y")])
    assert out.read_key_values_to_dict() == {"a": "Y"}
    source.pipe_value("last")
    assert out.read_key_values() == [(None, "LAST")]


@dataclass
class Gate:
    """A key that can change, and so is none of a dict."""

    name: str


def test_a_table_of_keys_that_no_dict_has_is_an_error_with_the_key_and_the_cure(make_driver: MakeDriver) -> None:
    builder = StreamsBuilder()
    builder.stream("in", Gate, str).to("out")
    driver = make_driver(builder.build())
    driver.create_input_topic("in", Gate, str).pipe_input(Gate("north"), "open")

    with pytest.raises(TypeError) as raised:
        driver.create_output_topic("out", Gate, str).read_key_values_to_dict()

    assert str(raised.value) == (
        "key Gate(name='north') of topic 'out' cannot be a key of a dict (unhashable type: 'Gate'); give a dataclass "
        "frozen=True, take a tuple in place of a list, or read records or pairs"
    )


def test_reading_an_empty_topic_is_an_error(make_driver: MakeDriver) -> None:
    _, out = topics(make_driver(upper()))

    with pytest.raises(LookupError, match="topic 'out' is empty"):
        out.read_value()


def test_piping_into_a_topic_that_nobody_reads_is_an_error(make_driver: MakeDriver) -> None:
    driver = make_driver(upper())

    with pytest.raises(ValueError, match=r"topic 'elsewhere' is unknown; the topology reads \['in'\]"):
        driver.create_input_topic("elsewhere").pipe_input("k", "v")


def test_negative_timestamps_are_refused(make_driver: MakeDriver) -> None:
    source, _ = topics(make_driver(upper()))

    with pytest.raises(ValueError, match="timestamp of a record is -1; it must not be negative"):
        source.pipe_input("k", "v", -1)
    with pytest.raises(ValueError, match="it must not be negative"):
        TestRecord("k", "v", timestamp=-1)


def test_everything_that_was_sent_can_be_seen_internal_topics_included(make_driver: MakeDriver) -> None:
    driver = make_driver(count_by_value(), {"application.id": "app"})
    source, _ = topics(driver)

    source.pipe_input("k", "v", 5)

    one = bytes(7) + b"\x01"
    assert driver.take_produced() == [
        ProducedRecord("app-counts-repartition", None, b"v", b"v", 5, ()),
        ProducedRecord("app-counts-changelog", 0, b"v", one, 5, ()),
        ProducedRecord("out", None, b"v", one, 5, ()),
    ]
    assert driver.take_produced() == []
    assert driver.produced_topic_names == {"app-counts-repartition", "app-counts-changelog", "out"}


def test_stores_can_be_read(make_driver: MakeDriver) -> None:
    driver = make_driver(count_by_value())
    source, _ = topics(driver)
    source.pipe_input("k", "v", 5)

    store = driver.get_timestamped_key_value_store("counts")

    assert isinstance(store, TimestampedKeyValueStore)
    assert store.get("v") == (1, 5)
    assert driver.get_state_store("counts") is store
    assert list(driver.get_all_state_stores()) == ["counts"]
    assert driver.get_state_store("none") is None
    assert [row[0] for row in driver.raw_store("counts")] == [b"v"]


def test_a_store_with_a_cache_can_be_filled_before_the_first_record(make_driver: MakeDriver) -> None:
    driver = make_driver(count_by_value(), {"statestore.cache.max.bytes": 10_000})
    source, _ = topics(driver)
    store = driver.get_key_value_store("counts")
    assert store is not None

    store.put("v", 4)
    source.pipe_input("k", "v")

    assert store.get("v") == 5


@pytest.mark.parametrize("config", [{}, {"dsl.store.format": "HEADERS"}])
def test_a_timestamped_store_can_be_seen_as_a_plain_one(make_driver: MakeDriver, config: dict[str, object]) -> None:
    driver = make_driver(count_by_value(), config)
    source, _ = topics(driver)
    source.pipe_key_values([("k", "a"), ("k", "b"), ("k", "a")])

    store = driver.get_key_value_store("counts")

    assert store is not None
    assert (store.get("a"), store.get("c"), store.get("c", 0), store["b"], "c" in store) == (2, None, 0, 1, False)
    with store.all(reverse=True) as rows:
        assert list(rows) == [("b", 1), ("a", 2)]
    store["c"] = 5
    assert store.put_if_absent("c", 6) == 5
    with store.range("b", "c") as rows:
        assert list(rows) == [("b", 1), ("c", 5)]
    assert store.delete("c") == 5
    store.put_all([("d", 1), ("a", None)])
    with store.all() as rows:
        assert list(rows) == [("b", 1), ("d", 1)]


def test_a_store_of_another_kind_or_name_is_refused(make_driver: MakeDriver) -> None:
    driver = make_driver(count_by_value())

    with pytest.raises(ValueError, match=r"store 'counts' is a .*, no TimestampedKeyValueStoreWithHeaders"):
        driver.get_timestamped_key_value_store_with_headers("counts")
    with pytest.raises(LookupError, match=r"no store is named 'none'; there are \['counts'\]"):
        driver.raw_store("none")


class Ticker(Processor[str, str, str, str]):
    def init(self, context: ProcessorContext[str, str]) -> None:
        super().init(context)
        context.schedule(100, PunctuationType.WALL_CLOCK_TIME, self.tick)

    def tick(self, now: int) -> None:
        self.context.forward(Record("tick", str(now), now))

    def process(self, record: Record[str, str]) -> None:
        self.context.forward(record)


def test_the_wall_clock_stands_still_until_it_is_moved(make_driver: MakeDriver) -> None:
    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream("in")
    stream.process(Ticker).to("out")
    driver = make_driver(builder.build(), initial_wall_clock_time=0)
    _, out = topics(driver)

    driver.advance_wall_clock_time(99)
    assert out.is_empty
    driver.advance_wall_clock_time(timedelta(milliseconds=251))

    assert out.read_key_values() == [("tick", "350")]


def test_a_cache_is_flushed_after_every_record(make_driver: MakeDriver) -> None:
    driver = make_driver(count_by_value(), {"statestore.cache.max.bytes": 1_000_000})
    source, out = topics(driver, Serdes.long())

    source.pipe_values(["v", "v"])

    assert out.read_values() == [1, 2]


def test_an_exception_of_user_code_surfaces_where_the_record_was_piped_in(make_driver: MakeDriver) -> None:
    builder = StreamsBuilder()
    builder.stream("in").map_values(int).to("out")
    source, _ = topics(make_driver(builder.build()))

    with pytest.raises(ProcessingError, match=r"KSTREAM-MAPVALUES-0000000001 failed at record in-0 offset 0"):
        source.pipe_input("k", "no number")


def test_a_driver_that_cannot_start_leaves_nothing_behind(tmp_path: Path) -> None:
    config = {"state.dir": str(tmp_path)}

    with pytest.raises(StreamsError):
        TopologyTestDriver(upper(), config)

    assert list(tmp_path.iterdir()) == []


def test_state_is_gone_after_close_and_close_may_be_repeated(tmp_path: Path) -> None:
    driver = TopologyTestDriver(count_by_value(), {**SERDES, "state.dir": str(tmp_path)})
    driver.create_input_topic("in").pipe_input("k", "v")
    assert list(tmp_path.iterdir()) != []

    driver.close()
    driver.close()

    assert list(Path(tmp_path).iterdir()) == []


def test_topics_of_a_pattern_share_a_queue_and_its_offsets(make_driver: MakeDriver) -> None:
    seen = []

    class Where(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> None:
            assert self.context.record_metadata is not None
            seen.append(tuple(self.context.record_metadata))

    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream(re.compile("in-.*"))
    stream.process(Where)
    driver = make_driver(builder.build())

    driver.create_input_topic("in-a").pipe_value("v")
    driver.create_input_topic("in-b").pipe_value("v")

    assert seen == [("in-a", 0, 0), ("in-b", 0, 1)]


def test_with_several_partitions_records_go_where_their_keys_belong(make_driver: MakeDriver) -> None:
    seen = []

    class Where(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> None:
            assert self.context.record_metadata is not None
            seen.append((record.key, str(self.context.task_id), self.context.record_metadata.partition))

    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream("in")
    stream.process(Where)
    driver = make_driver(builder.build(), partitions=4)
    keys = [f"key-{i}" for i in range(20)]

    driver.create_input_topic("in").pipe_key_values((key, "v") for key in keys)

    expected = [partition_for_key(key.encode(), 4) for key in keys]
    assert seen == [(key, f"0_{place}", place) for key, place in zip(keys, expected, strict=True)]
    assert len(set(expected)) == 4


def test_with_several_partitions_repartitioned_records_are_counted_once(make_driver: MakeDriver) -> None:
    driver = make_driver(count_by_value(), partitions=4)
    source, out = topics(driver, Serdes.long())
    values = [f"v{i % 5}" for i in range(50)]

    source.pipe_values(values)

    assert out.read_key_values_to_dict() == {f"v{i}": 10 for i in range(5)}
    rows = sorted(row[0] for row in driver.raw_store("counts"))
    assert rows == [f"v{i}".encode() for i in range(5)]
    changelog = [record for record in driver.take_produced() if record.topic.endswith("changelog")]
    assert all(record.partition == partition_for_key(record.key or b"", 4) for record in changelog)
    store = driver.get_state_store("counts", partition_for_key(b"v0", 4))
    assert store.get("v0").value == 10


def test_a_partition_count_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="partitions is 0; a topic has at least one"):
        TopologyTestDriver(upper(), partitions=0)


def test_partition_counts_by_topic_are_refused() -> None:
    counts: Any = {"in": 3}

    with pytest.raises(TypeError, match=r"partitions is {'in': 3}; expected one number, which counts for every topic"):
        TopologyTestDriver(upper(), partitions=counts)


def test_idle_inputs_are_waited_for_on_the_drivers_clock(make_driver: MakeDriver) -> None:
    builder = StreamsBuilder()
    builder.stream("in").merge(builder.stream("other")).to("out")
    driver = make_driver(builder.build(), {"max.task.idle.ms": 100})
    source, out = topics(driver)

    source.pipe_input("k", "v", 5)
    assert out.is_empty
    driver.advance_wall_clock_time(100)

    assert out.read_values() == ["v"]


def test_values_of_records_are_hidden_while_the_driver_is_open(caplog: pytest.LogCaptureFixture) -> None:
    builder = StreamsBuilder()
    numbers = builder.stream("in", str, int)
    wrong: Any = Produced(value_serde=int)
    numbers.map_values(lambda number: 1 // number).map_values(lambda number: "sec" + "ret").to("out", wrong)
    topology = builder.build()

    with TopologyTestDriver(topology, {"log.record.values": False}) as driver:
        topic = driver.create_input_topic("in", str, int)
        with pytest.raises(ProcessingError, match=r"raised ZeroDivisionError.*key=<str hidden>, value=<int hidden>; "):
            topic.pipe_input("Ann", 0)
        with pytest.raises(StreamsError) as unwritable:
            topic.pipe_input("Ann", 1)
    assert "secret" not in str(unwritable.value)
    assert "secret" not in caplog.text and "Ann" not in caplog.text

    with TopologyTestDriver(topology) as driver, pytest.raises(ProcessingError, match=r"key='Ann', value=0; "):
        driver.create_input_topic("in", str, int).pipe_input("Ann", 0)


def test_a_builder_in_place_of_a_topology_is_refused_with_what_to_call() -> None:
    builder: Any = StreamsBuilder()

    with pytest.raises(TypeError, match=r"StreamsBuilder.*; expected a Topology.* give builder\.build\(\)"):
        TopologyTestDriver(builder)


def test_a_function_in_place_of_a_topology_is_refused_with_what_to_call() -> None:
    function: Any = upper

    with pytest.raises(TypeError, match=r"expected a Topology: call the function, .*upper \(line \d+\)"):
        TopologyTestDriver(function)


def test_output_topic_that_nothing_writes_is_unknown_when_it_is_read(make_driver: MakeDriver) -> None:
    driver = make_driver(upper())
    mistyped = driver.create_output_topic("oo")

    with pytest.raises(ValueError, match=r"topic 'oo' is unknown; the topology writes \['out'\]"):
        mistyped.read_values()
    with pytest.raises(ValueError, match="topic 'oo' is unknown"):
        bool(mistyped.is_empty)
    assert repr(mistyped) == "TestOutputTopic('oo')"


def test_output_topic_that_is_chosen_per_record_is_known_once_something_was_sent_there(make_driver: MakeDriver) -> None:
    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream("in")
    stream.to(lambda key, value, context: f"out-{value}")
    driver = make_driver(builder.build())
    chosen = driver.create_output_topic("out-a")

    with pytest.raises(ValueError, match=r"the topology writes \[\], and nothing was sent to another"):
        chosen.read_values()
    driver.create_input_topic("in").pipe_input("k", "a")

    assert chosen.read_values() == ["a"]


def test_sink_to_which_nothing_was_sent_is_empty(make_driver: MakeDriver) -> None:
    assert make_driver(upper()).create_output_topic("out").is_empty


@pytest.mark.parametrize(
    "use",
    [
        lambda driver: driver.create_input_topic("in").pipe_input("k", "a"),
        lambda driver: driver.advance_wall_clock_time(1),
        lambda driver: driver.get_key_value_store("counts"),
        lambda driver: driver.get_all_state_stores(),
        lambda driver: driver.raw_store("counts"),
    ],
)
def test_closed_driver_says_that_it_is_closed(
    make_driver: MakeDriver, use: Callable[[TopologyTestDriver], object]
) -> None:
    driver = make_driver(count_by_value())
    driver.close()

    with pytest.raises(StreamsError, match="the test driver is closed"):
        use(driver)


def test_an_extractor_that_gives_no_milliseconds_is_named_by_the_driver(make_driver: MakeDriver) -> None:
    def at_of(record: ConsumerRecord, partition_time: int) -> Any:
        return record.timestamp / 1000

    builder = StreamsBuilder()
    builder.stream("in", Consumed(key_serde=str, value_serde=str, timestamp_extractor=at_of)).to("out")
    source, out = topics(make_driver(builder.build()))

    with pytest.raises(StreamsError, match=r"timestamp extractor .*at_of .* gave float 1\.5 .*it must give an int"):
        source.pipe_input("k", "v", 1500)

    assert out.is_empty


@pytest.mark.parametrize("timestamp", [5.5, 1 << 63])
def test_a_timestamp_of_a_forwarded_record_that_the_client_refuses_is_refused(
    timestamp: Any, make_driver: MakeDriver
) -> None:
    class Timed(Processor[str, str, str, str]):
        def process(self, record: Record[str, str]) -> None:
            self.context.forward(record.replace(timestamp=timestamp))

    builder = StreamsBuilder()
    builder.stream("in", str, str).process(Timed).to("out")
    source, out = topics(make_driver(builder.build()))

    with pytest.raises(ProcessingError, match=r"was not sent: the timestamp is .*; give an int, in milliseconds"):
        source.pipe_input("k", "v", 5)

    assert out.is_empty


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda driver: driver.create_input_topic("in", str), "value"),
        (lambda driver: driver.create_input_topic("in"), "key"),
        (lambda driver: driver.create_output_topic("out", str), "value"),
    ],
)
def test_topic_whose_type_was_forgotten_is_named(
    topology_test_driver: MakeDriver, make: Callable[[TopologyTestDriver], object], part: str
) -> None:
    builder = StreamsBuilder()
    builder.stream("in", str, str).to("out")
    driver = topology_test_driver(builder.build())

    with pytest.raises(ConfigError, match=rf"topic '(in|out)' is given no {part} serde, .* give the types or serdes"):
        make(driver)


def test_driver_and_its_stores_say_what_they_are() -> None:
    builder = StreamsBuilder()
    builder.table("in", str, str, materialized="kept")
    driver = TopologyTestDriver(builder.build(), {"application.id": "shop"}, partitions=2)

    with driver:
        assert repr(driver) == "<TopologyTestDriver 'shop' with 2 partitions>"
        assert repr(driver.get_state_store("kept", 0)) == "<MeteredTimestampedKeyValueStore 'kept'>"

    assert repr(driver) == "<TopologyTestDriver 'shop' with 2 partitions, closed>"
