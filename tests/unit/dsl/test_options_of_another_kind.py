"""Options of another kind are refused where they are given, with what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pykstreams import (
    Branched,
    BufferConfig,
    Consumed,
    JoinWindows,
    KStream,
    KTable,
    LookupCache,
    Materialized,
    Processor,
    Produced,
    Repartitioned,
    Retry,
    Serdes,
    Stores,
    StreamJoined,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
)
from pykstreams.processors import MapValuesAsync

SECOND = timedelta(seconds=1)
TEXT: Any = Serdes.string()
GLOBAL: Any = Stores.key_value_store_builder(Stores.in_memory_key_value_store("global"))

NO_BUILDER = "builder is {given!r}; expected a StoreBuilder such as Stores.key_value_store_builder(supplier) makes"


def key(key: Any, value: Any) -> Any:
    return key


def both(value: Any, other: Any) -> Any:
    return value


async def later(value: Any) -> Any:
    return value


class Five:
    """A whole number of another library, as NumPy has them."""

    def __index__(self) -> int:
        return 5


class Script:
    def __init__(self) -> None:
        self.builder = StreamsBuilder()

    @property
    def stream(self) -> KStream[Any, Any]:
        return self.builder.stream("in")

    @property
    def other(self) -> KStream[Any, Any]:
        return self.builder.stream("other")

    @property
    def table(self) -> KTable[Any, Any]:
        return self.builder.table("table")

    @property
    def referred(self) -> KTable[Any, Any]:
        return self.builder.table("referred")


Step = Callable[[Script, Any], object]

STEPS: dict[str, tuple[Step, Any, str]] = {
    "stream, nothing": (
        lambda s, given: s.builder.stream(given),
        None,
        "topics are None; expected the name of a topic, several names, or a pattern of names that re.compile made",
    ),
    "stream, bytes": (
        lambda s, given: s.builder.stream(given),
        b"in",
        "topics are b'in'; expected the name of a topic, several names, or a pattern of names that re.compile made",
    ),
    "stream, nothing among names": (
        lambda s, given: s.builder.stream(given),
        ["in", None],
        "topics are ['in', None]; expected the name of a topic, several names, or a pattern of names that re.compile "
        "made",
    ),
    "stream, lists among names": (
        lambda s, given: s.builder.stream(given),
        [["in"]],
        "topics are [['in']]; expected the name of a topic, several names, or a pattern of names that re.compile made",
    ),
    "table, nothing": (
        lambda s, given: s.builder.table(given),
        None,
        "topic is None; expected the name of a topic",
    ),
    "table, names": (
        lambda s, given: s.builder.table(given),
        ["a", "b"],
        "topic is ['a', 'b']; expected the name of a topic",
    ),
    "global_table, nothing": (
        lambda s, given: s.builder.global_table(given),
        None,
        "topic is None; expected the name of a topic",
    ),
    "add_global_store, nothing": (
        lambda s, given: s.builder.add_global_store(GLOBAL, given, Processor),
        None,
        "topic is None; expected the name of a topic",
    ),
    "add_global_store of a topology, nothing": (
        lambda s, given: Topology().add_global_store(GLOBAL, "source", given, "processor", Processor),
        None,
        "topic is None; expected the name of a topic",
    ),
    "to, nothing": (
        lambda s, given: s.stream.to(given),
        None,
        "topic is None; expected the name of a topic, or a function that is called with (key, value, record context)",
    ),
    "to, names": (
        lambda s, given: s.stream.to(given),
        ["out"],
        "topic is ['out']; expected the name of a topic, or a function that is called with (key, value, record "
        "context)",
    ),
    "to, serde": (
        lambda s, given: s.stream.to("out", given),
        TEXT,
        "produced is {given!r}; expected a Produced: produced=Produced(key_serde=..., value_serde=...)",
    ),
    "to, type": (
        lambda s, given: s.stream.to("out", given),
        str,
        "produced is {given!r}; expected a Produced: produced=Produced(key_serde=..., value_serde=...)",
    ),
    "group_by_key": (
        lambda s, given: s.stream.group_by_key(given),
        "g",
        "grouped is 'g'; expected a Grouped: grouped=Grouped(name='g')",
    ),
    "group_by": (
        lambda s, given: s.stream.group_by(key, given),
        "g",
        "grouped is 'g'; expected a Grouped: grouped=Grouped(name='g')",
    ),
    "group_by of a table": (
        lambda s, given: s.table.group_by(key, given),
        "g",
        "grouped is 'g'; expected a Grouped: grouped=Grouped(name='g')",
    ),
    "repartition": (
        lambda s, given: s.stream.repartition(given),
        "r",
        "repartitioned is 'r'; expected a Repartitioned: repartitioned=Repartitioned(name='r')",
    ),
    "repartition, number of partitions": (
        lambda s, given: s.stream.repartition(given),
        4,
        "repartitioned is 4; expected a Repartitioned: repartitioned=Repartitioned(num_partitions=4)",
    ),
    "windows, duration": (
        lambda s, given: s.stream.join(s.other, both, windows=given),
        SECOND,
        "windows is {given!r}; expected a JoinWindows: windows=JoinWindows({given!r})",
    ),
    "windows, TimeWindows": (
        lambda s, given: s.stream.outer_join(s.other, both, windows=given),
        TimeWindows(SECOND),
        "windows is {given!r}; expected a JoinWindows: windows=JoinWindows(timedelta(minutes=5))",
    ),
    "stream_joined": (
        lambda s, given: s.stream.left_join(s.other, both, windows=JoinWindows(1), stream_joined=given),
        "j",
        "stream_joined is 'j'; expected a StreamJoined: stream_joined=StreamJoined(name='j')",
    ),
    "joined, name": (
        lambda s, given: s.stream.join(s.table, both, joined=given),
        "j",
        "joined is 'j'; expected a Joined: joined=Joined(name='j')",
    ),
    "joined, StreamJoined": (
        lambda s, given: s.stream.join(s.table, both, joined=given),
        StreamJoined[Any, Any, Any](name="j"),
        "joined is {given!r}; expected a Joined: joined=Joined(key_serde=..., value_serde=...)",
    ),
    "joined by a foreign key": (
        lambda s, given: s.stream.join(s.table, both, key_selector=key, joined=given),
        "j",
        "joined is 'j'; expected a Joined: joined=Joined(name='j')",
    ),
    "results of a foreign-key join": (
        lambda s, given: s.stream.join(s.table, both, key_selector=key, repartitioned=given),
        "back",
        "repartitioned is 'back'; expected a Repartitioned: repartitioned=Repartitioned(name='back')",
    ),
    "table_joined": (
        lambda s, given: s.table.join(s.referred, both, foreign_key_extractor=str, table_joined=given),
        "x",
        "table_joined is 'x'; expected a TableJoined: table_joined=TableJoined(name='x')",
    ),
    "suppress, duration": (
        lambda s, given: s.table.suppress(given),
        SECOND,
        "suppressed is {given!r}; expected a Suppressed: "
        "suppressed=Suppressed.until_time_limit({given!r}, BufferConfig.UNBOUNDED)",
    ),
    "suppress, buffer": (
        lambda s, given: s.table.suppress(given),
        BufferConfig.UNBOUNDED,
        "suppressed is {given!r}; expected a Suppressed: "
        "suppressed=Suppressed.until_window_closes(BufferConfig.UNBOUNDED)",
    ),
    "suppress, nothing": (
        lambda s, given: s.table.suppress(given),
        None,
        "suppressed is None; expected a Suppressed: suppressed=Suppressed.until_window_closes(BufferConfig.UNBOUNDED)",
    ),
    "until_window_closes": (
        lambda s, given: Suppressed.until_window_closes(given),
        SECOND,
        "buffer is {given!r}; expected a BufferConfig: buffer=BufferConfig.UNBOUNDED",
    ),
    "until_time_limit": (
        lambda s, given: Suppressed.until_time_limit(SECOND, given),
        1000,
        "buffer is 1000; expected a BufferConfig: buffer=BufferConfig.UNBOUNDED",
    ),
    "materialized, serde": (
        lambda s, given: s.stream.group_by_key().count(materialized=given),
        TEXT,
        "materialized is {given!r}; expected a Materialized: materialized=Materialized(key_serde=..., "
        "value_serde=...), or the name of a store",
    ),
    "materialized, supplier": (
        lambda s, given: s.builder.table("topic", materialized=given),
        Stores.in_memory_key_value_store("kept"),
        "materialized is {given!r}; expected a Materialized: materialized=Materialized(supplier), or the name of a "
        "store",
    ),
    "num_partitions": (
        lambda s, given: Repartitioned(num_partitions=given),
        "5",
        "num_partitions is '5'; expected a whole number",
    ),
    "max_attempts": (
        lambda s, given: Retry(max_attempts=given),
        "5",
        "max_attempts is '5'; expected a whole number",
    ),
    "max_waiting": (
        lambda s, given: Retry(max_waiting=given),
        1.5,
        "max_waiting is 1.5; expected a whole number",
    ),
    "max_entries": (
        lambda s, given: LookupCache(given),
        True,
        "max_entries is True; expected a whole number",
    ),
    "seed": (
        lambda s, given: Retry(seed=given),
        "5",
        "seed is '5'; expected a whole number",
    ),
    "jitter": (
        lambda s, given: Retry(jitter=given),
        "0.5",
        "jitter is '0.5'; expected a number",
    ),
    "factor": (
        lambda s, given: Retry(factor=given),
        True,
        "factor is True; expected a number",
    ),
    "max_in_flight": (
        lambda s, given: s.stream.map_values_async(later, max_in_flight=given),
        "5",
        "max_in_flight is '5'; expected a whole number",
    ),
    "max_in_flight of a look-up": (
        lambda s, given: s.stream.lookup(later, both, key=key, max_in_flight=given),
        2.5,
        "max_in_flight is 2.5; expected a whole number",
    ),
    "retries": (
        lambda s, given: s.stream.map_values_async(later, retries=given),
        "5",
        "retries is '5'; expected a whole number",
    ),
    "max_cache_size": (
        lambda s, given: Stores.lru_map("kept", given),
        "5",
        "max_cache_size of store 'kept' is '5'; expected a whole number",
    ),
    "prefix_bytes": (
        lambda s, given: Stores.persistent_key_value_store("kept", prefix_bytes=given),
        "8",
        "prefix_bytes of store 'kept' is '8'; expected a whole number",
    ),
    "caching": (
        lambda s, given: Materialized(caching=given),
        "no",
        "caching is 'no'; expected True or False",
    ),
    "logging": (
        lambda s, given: Materialized(logging=given),
        None,
        "logging is None; expected True or False",
    ),
    "logging of a join": (
        lambda s, given: StreamJoined(logging=given),
        "no",
        "logging is 'no'; expected True or False",
    ),
    "logging of a buffer": (
        lambda s, given: BufferConfig(logging=given),
        "no",
        "logging of a BufferConfig is 'no'; expected True or False",
    ),
    "caching of a store": (
        lambda s, given: Stores.key_value_store_builder(Stores.in_memory_key_value_store("kept"), caching=given),
        "no",
        "caching of store 'kept' is 'no'; expected True or False",
    ),
    "logging of a store": (
        lambda s, given: Stores.key_value_store_builder(Stores.in_memory_key_value_store("kept"), logging=given),
        0,
        "logging of store 'kept' is 0; expected True or False",
    ),
    "retain_duplicates": (
        lambda s, given: Stores.persistent_window_store("kept", SECOND, SECOND, given),
        "no",
        "retain_duplicates of store 'kept' is 'no'; expected True or False",
    ),
    "retain_duplicates in memory": (
        lambda s, given: Stores.in_memory_window_store("kept", SECOND, SECOND, given),
        "no",
        "retain_duplicates of store 'kept' is 'no'; expected True or False",
    ),
    "max_records": (
        lambda s, given: BufferConfig(max_records=given),
        "5",
        "max_records of a BufferConfig is '5'; expected a whole number",
    ),
    "store of Materialized": (
        lambda s, given: Materialized(given),
        5,
        "store of Materialized is 5; expected a name, or the supplier of a store such as "
        "Stores.persistent_timestamped_key_value_store(name)",
    ),
    "add_state_store, name": (
        lambda s, given: s.builder.add_state_store(given),
        "kept",
        NO_BUILDER,
    ),
    "add_state_store, supplier": (
        lambda s, given: s.builder.add_state_store(given),
        Stores.in_memory_key_value_store("kept"),
        NO_BUILDER,
    ),
    "add_global_store, name": (
        lambda s, given: s.builder.add_global_store(given, "topic", Processor),
        "kept",
        NO_BUILDER,
    ),
    "add_state_store of a topology": (
        lambda s, given: Topology().add_state_store(given),
        "kept",
        NO_BUILDER,
    ),
    "add_global_store of a topology": (
        lambda s, given: Topology().add_global_store(given, "source", "topic", "processor", Processor),
        "kept",
        NO_BUILDER,
    ),
    "build, name": (
        lambda s, given: s.builder.build(given),
        "app",
        "config is 'app'; expected a StreamsConfig, or settings by name such as {{'application.id': 'shop'}}",
    ),
    "function of a branch": (
        lambda s, given: Branched(function=given),
        5,
        "Branched: function is 5; expected a function that is called with (stream)",
    ),
    "consumer of a branch": (
        lambda s, given: Branched(consumer=given),
        "out",
        "Branched: consumer is 'out'; expected a function that is called with (stream)",
    ),
    "consumed of a global store": (
        lambda s, given: s.builder.add_global_store(GLOBAL, "topic", Processor, given),
        TEXT,
        "consumed is {given!r}; expected a Consumed: consumed=Consumed(key_serde=..., value_serde=...)",
    ),
    "merge, table": (
        lambda s, given: s.stream.merge(given),
        StreamsBuilder().table("table", Consumed(key_serde=TEXT, value_serde=TEXT)),
        "other is {given!r}; expected a KStream: other=table.to_stream()",
    ),
    "merge, name": (
        lambda s, given: s.stream.merge(given),
        "other",
        "other is 'other'; expected a KStream: other=builder.stream('other')",
    ),
}


@pytest.mark.parametrize(("step", "given", "said"), STEPS.values(), ids=STEPS)
def test_an_option_of_another_kind_is_refused_with_what_to_write(step: Step, given: Any, said: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(said.format(given=given))}$"):
        step(Script(), given)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (lambda given: Repartitioned(num_partitions=given), "num_partitions"),
        (lambda given: Retry(max_attempts=given), "max_attempts"),
        (lambda given: Retry(max_waiting=given), "max_waiting"),
        (lambda given: Retry(seed=given), "seed"),
        (lambda given: LookupCache(given), "max_entries"),
        (lambda given: BufferConfig(max_records=given), "max_records"),
        (lambda given: BufferConfig(max_bytes=given), "max_bytes"),
        (lambda given: MapValuesAsync(later, max_in_flight=given), "max_in_flight"),
        (lambda given: MapValuesAsync(later, retries=given), "retries"),
        (lambda given: Stores.lru_map("kept", given), "max_cache_size"),
        (lambda given: Stores.persistent_key_value_store("kept", prefix_bytes=given), "prefix_bytes"),
    ],
)
def test_whole_numbers_of_other_libraries_become_those_of_python(options: Callable[[Any], object], field: str) -> None:
    number = getattr(options(Five()), field)

    assert (type(number), number) == (int, 5)


def test_an_option_without_its_name_is_refused_with_what_to_write() -> None:
    produced: Any = Produced
    materialized: Any = Materialized

    with pytest.raises(TypeError) as raised:
        produced(str, int)
    assert str(raised.value) == ("Produced takes its options by their names: Produced(key_serde=str, value_serde=int)")
    with pytest.raises(TypeError) as raised:
        materialized("counts", str)
    assert str(raised.value) == (
        "Materialized takes its options by their names: Materialized(store='counts', key_serde=str)"
    )
    assert Materialized("counts").replace(value_serde=int).store == "counts"
