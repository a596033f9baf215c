"""Records and settings that are no good: dropped and counted, refused with a message, or let through.

What each operator does to records without key or value is what Kafka Streams does (4.3.1): "dropped" is its metric
``dropped-records-total``, and for each drop there is a warning that says where the record was.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from pykstreams import (
    BufferConfig,
    Consumed,
    GlobalKTable,
    JoinWindows,
    KStream,
    KTable,
    Processor,
    Record,
    Repartitioned,
    Serdes,
    SessionWindows,
    SlidingWindows,
    Stores,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    UnlimitedWindows,
)
from pykstreams.errors import ConfigError, ProcessingError, StreamsError
from pykstreams.testing import TopologyTestDriver
from tests.unit.user_processors import Forward, ForwardValue

TEXT = Serdes.string()
SETTINGS: dict[str, object] = {
    "application.id": "app",
    "default.key.serde": TEXT,
    "default.value.serde": TEXT,
    "statestore.cache.max.bytes": 0,
}
Build = Callable[[StreamsBuilder], KStream[Any, Any]]
Rows = list[tuple[Any, Any]]

PASSED_KEYLESS: Rows = [(None, "v")]
PASSED_EMPTY: Rows = [("k", None)]


def stream(builder: StreamsBuilder) -> KStream[str, str]:
    return builder.stream("in")


def both(left: Any, right: Any) -> str:
    return f"{left}+{right}"


def same(key: Any, value: Any) -> tuple[Any, Any]:
    return key, value


def branched(builder: StreamsBuilder) -> KStream[Any, Any]:
    (branch,) = stream(builder).split().branch(lambda k, v: True).no_default_branch().values()
    return branch


def counted(table: KTable[Any, Any]) -> KStream[Any, Any]:
    return table.to_stream(lambda key, count: getattr(key, "key", key)).map_values(str)


def windowed(windows: Any) -> Build:
    return lambda builder: counted(stream(builder).group_by_key().windowed_by(windows).count())


def aggregated(builder: StreamsBuilder) -> KStream[Any, Any]:
    return stream(builder).group_by_key().aggregate(str, lambda k, v, all_: all_ + v).to_stream()


def cogrouped(builder: StreamsBuilder) -> KStream[Any, Any]:
    return stream(builder).group_by_key().cogroup(lambda k, v, all_: all_ + v).aggregate(str).to_stream()


def joined_streams(how: str) -> Build:
    return lambda builder: getattr(stream(builder), how)(builder.stream("other"), both, windows=JoinWindows(10))


def joined_with_table(how: str) -> Build:
    return lambda builder: getattr(stream(builder), how)(builder.table("other"), both)


def joined_with_global_table(how: str) -> Build:
    def build(builder: StreamsBuilder) -> KStream[Any, Any]:
        other: GlobalKTable[str, str] = builder.global_table("other")
        joined: KStream[Any, Any] = getattr(stream(builder), how)(other, both, key_selector=lambda key, value: key)
        return joined

    return build


def joined_tables(how: str) -> Build:
    return lambda builder: getattr(builder.table("in"), how)(builder.table("other"), both).to_stream()


def grouped_table(builder: StreamsBuilder) -> KStream[Any, Any]:
    return counted(builder.table("in").group_by(same).count())


def suppressed(builder: StreamsBuilder) -> KStream[Any, Any]:
    return builder.table("in").suppress(Suppressed.until_time_limit(0, BufferConfig())).to_stream()


# operator, how it is built, (what (None, "v") becomes, how many are dropped), the same of ("k", None)
OPERATORS: list[tuple[str, Build, tuple[Rows, int], tuple[Rows, int]]] = [
    ("filter", lambda b: stream(b).filter(lambda k, v: True), (PASSED_KEYLESS, 0), (PASSED_EMPTY, 0)),
    ("filter_not", lambda b: stream(b).filter_not(lambda k, v: False), (PASSED_KEYLESS, 0), (PASSED_EMPTY, 0)),
    ("map", lambda b: stream(b).map(same), (PASSED_KEYLESS, 0), (PASSED_EMPTY, 0)),
    ("map_values", lambda b: stream(b).map_values(lambda v: v), (PASSED_KEYLESS, 0), (PASSED_EMPTY, 0)),
    ("flat_map", lambda b: stream(b).flat_map(lambda k, v: [(k, v)]), (PASSED_KEYLESS, 0), (PASSED_EMPTY, 0)),
    ("flat_map_values", lambda b: stream(b).flat_map_values(lambda v: [v]), (PASSED_KEYLESS, 0), (PASSED_EMPTY, 0)),
    ("select_key", lambda b: stream(b).select_key(lambda k, v: k), (PASSED_KEYLESS, 0), (PASSED_EMPTY, 0)),
    ("peek", lambda b: stream(b).peek(lambda k, v: None), (PASSED_KEYLESS, 0), (PASSED_EMPTY, 0)),
    ("split", branched, (PASSED_KEYLESS, 0), (PASSED_EMPTY, 0)),
    ("merge", lambda b: stream(b).merge(b.stream("other")), (PASSED_KEYLESS, 0), (PASSED_EMPTY, 0)),
    ("repartition", lambda b: stream(b).repartition(), ([], 0), (PASSED_EMPTY, 0)),
    ("process", lambda b: stream(b).process(Forward), (PASSED_KEYLESS, 0), (PASSED_EMPTY, 0)),
    ("process_values", lambda b: stream(b).process_values(ForwardValue), (PASSED_KEYLESS, 0), (PASSED_EMPTY, 0)),
    ("to_table", lambda b: stream(b).to_table().to_stream(), ([], 1), (PASSED_EMPTY, 0)),
    ("table", lambda b: b.table("in").to_stream(), ([], 1), (PASSED_EMPTY, 0)),
    ("count", lambda b: counted(stream(b).group_by_key().count()), ([], 1), ([], 1)),
    ("reduce", lambda b: stream(b).group_by_key().reduce(both).to_stream(), ([], 1), ([], 1)),
    ("aggregate", aggregated, ([], 1), ([], 1)),
    ("cogroup", cogrouped, ([], 1), ([], 1)),
    ("group_by", lambda b: counted(stream(b).group_by(lambda k, v: k).count()), ([], 0), ([], 1)),
    ("count in time windows", windowed(TimeWindows(10)), ([], 1), ([("k", "1")], 0)),
    ("count in unlimited windows", windowed(UnlimitedWindows()), ([], 1), ([("k", "1")], 0)),
    ("count in sliding windows", windowed(SlidingWindows(10)), ([], 1), ([], 1)),
    ("count in sessions", windowed(SessionWindows(10)), ([], 1), ([("k", "1")], 0)),
    ("join of streams", joined_streams("join"), ([], 1), ([], 1)),
    ("left join of streams", joined_streams("left_join"), ([(None, "v+None")], 0), ([], 1)),
    ("outer join of streams", joined_streams("outer_join"), ([(None, "v+None")], 0), ([], 1)),
    ("join with a table", joined_with_table("join"), ([], 1), ([], 1)),
    ("left join with a table", joined_with_table("left_join"), ([(None, "v+None")], 0), ([], 1)),
    ("join with a global table", joined_with_global_table("join"), ([], 1), ([], 1)),
    ("left join with a global table", joined_with_global_table("left_join"), ([(None, "v+None")], 0), ([], 1)),
    ("join of tables", joined_tables("join"), ([], 1), ([], 0)),
    ("left join of tables", joined_tables("left_join"), ([], 1), ([], 0)),
    ("outer join of tables", joined_tables("outer_join"), ([], 1), ([], 0)),
    ("table group_by", grouped_table, ([], 1), ([], 0)),
    ("suppress", suppressed, ([], 1), (PASSED_EMPTY, 0)),
]


def run(build: Build, records: Rows, settings: dict[str, object] | None = None) -> tuple[Rows, int]:
    """Drives an operator; gives what it emits and how many records were dropped."""
    builder = StreamsBuilder()
    build(builder).to("out")
    with TopologyTestDriver(builder.build(), {**SETTINGS, **(settings or {})}) as driver:
        topic = driver.create_input_topic("in", TEXT, TEXT)
        for key, value in records:
            topic.pipe_input(key, value, 1)
        out = driver.create_output_topic("out", TEXT, TEXT)
        found: Rows = [(key, value) for key, value in out.read_key_values()]
        return found, dropped(driver)


def dropped(driver: TopologyTestDriver) -> int:
    values = [metric.value for name, metric in driver.metrics().items() if name.name == "dropped-records-total"]
    return int(sum(values))


@pytest.mark.parametrize(("build", "expected"), [pytest.param(o[1], o[2], id=o[0]) for o in OPERATORS])
def test_record_without_key(build: Build, expected: tuple[Rows, int]) -> None:
    assert run(build, [(None, "v")]) == expected


@pytest.mark.parametrize(("build", "expected"), [pytest.param(o[1], o[3], id=o[0]) for o in OPERATORS])
def test_record_without_value(build: Build, expected: tuple[Rows, int]) -> None:
    assert run(build, [("k", None)]) == expected


@pytest.mark.parametrize(
    ("build", "record"),
    [pytest.param(build, (None, "v"), id=f"{name} without key") for name, build, keyless, _ in OPERATORS if keyless[1]]
    + [pytest.param(build, ("k", None), id=f"{name} without value") for name, build, _, empty in OPERATORS if empty[1]],
)
def test_drop_is_told_with_node_and_place(
    build: Build, record: tuple[Any, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "pykstreams"):
        run(build, [record])

    (told,) = [line for line in caplog.messages if " dropped a record: " in line]
    assert "null" in told
    assert told.endswith(("in-0@0", "repartition-0@0"))


# Negative timestamps


@pytest.mark.parametrize("at", [-1, -7, -(2**63)])
def test_record_whose_time_is_extracted_as_negative_is_dropped(at: int, caplog: pytest.LogCaptureFixture) -> None:
    def timed(builder: StreamsBuilder) -> KStream[Any, Any]:
        return builder.stream("in", Consumed(timestamp_extractor=lambda record, partition_time: at))

    with caplog.at_level(logging.WARNING, "pykstreams"):
        assert run(timed, [("k", "v"), ("k", "w")]) == ([], 2)

    assert str(at) in caplog.text
    assert "in-0@0" in caplog.text


def test_test_driver_takes_no_record_with_a_negative_timestamp() -> None:
    builder = StreamsBuilder()
    stream(builder).to("out")
    with (
        TopologyTestDriver(builder.build(), SETTINGS) as driver,
        pytest.raises(ValueError, match="timestamp of a record is -7; it must not be negative"),
    ):
        driver.create_input_topic("in", TEXT, TEXT).pipe_input("k", "v", -7)


def test_processor_cannot_forward_a_negative_timestamp() -> None:
    class Back(Forward):
        def process(self, record: Record[Any, Any]) -> None:
            self.context.forward(record.replace(timestamp=-1))

    with pytest.raises(ProcessingError, match=r"Back\.process .*timestamp of a record is -1; it must not be negative"):
        run(lambda builder: stream(builder).process(Back), [("k", "v")])


# Stores and serdes


def test_store_must_be_connected_to_who_uses_it() -> None:
    class Reads(Forward):
        def process(self, record: Record[Any, Any]) -> None:
            self.context.get_state_store("kv")

    def build(builder: StreamsBuilder) -> KStream[Any, Any]:
        builder.add_state_store(Stores.key_value_store_builder(Stores.in_memory_key_value_store("kv")))
        stream(builder).process(Forward, "kv")
        return stream(builder).process(Reads)

    with pytest.raises(ProcessingError, match=r"PROCESSOR-0000000003 has no access to store 'kv'.* Name the store"):
        run(build, [("k", "v")])


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.put(None, "v"),
        lambda store: store.get(None),
        lambda store: store.delete(None),
        lambda store: store.put_if_absent(None, "v"),
        lambda store: store.put_all([(None, "v")]),
    ],
)
def test_null_is_no_key_of_a_store(call: Any) -> None:
    class Uses(Forward):
        def process(self, record: Record[Any, Any]) -> None:
            call(self.context.get_state_store("kv"))

    def build(builder: StreamsBuilder) -> KStream[Any, Any]:
        builder.add_state_store(Stores.key_value_store_builder(Stores.in_memory_key_value_store("kv")))
        return stream(builder).process(Uses, "kv")

    with pytest.raises(ProcessingError, match="the key for store 'kv' is None; a key must not be None"):
        run(build, [("k", "v")])


@pytest.mark.parametrize(
    ("repartitioned", "missing"),
    [
        (Repartitioned(name="r", value_serde=TEXT), "key"),
        (Repartitioned(name="r", key_serde=TEXT), "value"),
    ],
)
def test_serde_that_is_missing_for_a_repartition_topic_is_told_with_the_topic(
    repartitioned: Repartitioned[Any, Any], missing: str
) -> None:
    builder = StreamsBuilder()
    given = Consumed(key_serde=TEXT, value_serde=TEXT)
    builder.stream("in", given).map(same).repartition(repartitioned).foreach(print)
    topology = builder.build()

    said = rf"r-repartition-sink and r-repartition-source need a {missing} serde .*'default\.{missing}\.serde'"
    with pytest.raises(ConfigError, match=said):
        TopologyTestDriver(topology, {"application.id": "app"})


@pytest.mark.parametrize("call", [lambda store: store.get(1), lambda store: store.put(1, "v")])
def test_key_of_another_type_than_a_store_takes_is_an_error_of_the_application(call: Any) -> None:
    """As in Kafka Streams: asked for from outside it is a StreamsError, and in a processor it says which record."""

    class Calling(Processor[Any, Any, Any, Any]):
        def process(self, record: Record[Any, Any]) -> None:
            call(self.context.get_state_store("kv"))

    builder = StreamsBuilder()
    store = Stores.in_memory_key_value_store("kv")
    builder.add_state_store(Stores.key_value_store_builder(store, TEXT, TEXT))
    builder.stream("in").process(Calling, "kv")
    with TopologyTestDriver(builder.build(), SETTINGS) as driver:
        with pytest.raises(StreamsError, match=r"StringSerde\(.*\) cannot write 1 of type int .*: expected a str"):
            call(driver.get_key_value_store("kv"))
        with pytest.raises(ProcessingError, match=r"cannot write 1 of type int .*; key='k', value='v'"):
            driver.create_input_topic("in", TEXT, TEXT).pipe_input("k", "v")


def test_serde_that_is_missing_for_a_store_is_told_with_the_store() -> None:
    builder = StreamsBuilder()
    builder.stream("in", Consumed(key_serde=TEXT, value_serde=TEXT)).group_by(lambda key, value: value).count(
        materialized="counts"
    )

    with pytest.raises(ConfigError, match=r"store 'counts' need a key serde and none is set.*'default\.key\.serde'"):
        TopologyTestDriver(builder.build(), {"application.id": "app"})
