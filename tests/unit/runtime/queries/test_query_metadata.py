"""When an application can be asked, and what it says about where its stores are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pykstreams import (
    Consumed,
    HostInfo,
    KafkaStreams,
    KeyQueryMetadata,
    Materialized,
    QueryableStoreTypes,
    Serdes,
    StreamsBuilder,
    StreamsConfig,
    StreamsMetadata,
    TopicPartition,
    Topology,
)
from pykstreams.core.errors import (
    ConfigError,
    InvalidStateStoreError,
    StreamsNotStartedError,
    StreamsStoppedError,
    UnknownStateStoreError,
)
from pykstreams.core.hashing import partition_for_key
from pykstreams.core.ids import TaskId
from pykstreams.query import KeyQuery
from pykstreams.runtime.queries.local import LocalQueries
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.serdes import CombinedKey, CombinedKeySerde
from pykstreams.testing.clock import MockClock
from pykstreams.topology.placement.key_placement import by_crc32
from tests.unit.runtime.queries.queried import TOPIC, Application
from tests.unit.runtime.queries.test_store_queries import make, table

__all__ = ["make"]  # a fixture

Make = Callable[..., Application]
TEXT = Serdes.string()
CALLS: dict[str, Callable[[KafkaStreams], object]] = {
    "store": lambda streams: streams.store("prices", QueryableStoreTypes.KEY_VALUE_STORE),
    "query": lambda streams: streams.query("prices", KeyQuery("a")),
    "metadata": lambda streams: streams.metadata_for_all_streams_clients(),
    "metadata for store": lambda streams: streams.streams_metadata_for_store("prices"),
    "metadata for key": lambda streams: streams.query_metadata_for_key("prices", "a", key_serializer=TEXT),
}


@pytest.fixture
def streams(tmp_path: Path) -> Iterator[KafkaStreams]:
    made = KafkaStreams(
        table().build(), {"application.id": "shop", "bootstrap.servers": "nowhere:1", "state.dir": str(tmp_path)}
    )
    yield made
    made.close()


@pytest.mark.parametrize("call", CALLS)
def test_application_that_was_not_started_cannot_be_asked(streams: KafkaStreams, call: str) -> None:
    with pytest.raises(
        StreamsNotStartedError,
        match=r"^the application has not been started; call start\(\) before its stores are read$",
    ) as error:
        CALLS[call](streams)

    assert isinstance(error.value, InvalidStateStoreError)


@pytest.mark.parametrize("call", CALLS)
def test_application_that_has_stopped_cannot_be_asked(streams: KafkaStreams, call: str) -> None:
    streams.close()

    with pytest.raises(
        StreamsStoppedError,
        match=r"^the application is not_running and cannot be asked any more; ask another instance$",
    ):
        CALLS[call](streams)


def test_unknown_store_is_named_before_the_state_in_a_query_only(streams: KafkaStreams) -> None:
    """As in ``KafkaStreams.query`` and ``KafkaStreams.store``, 4.3.1."""
    with pytest.raises(UnknownStateStoreError):
        streams.query("price", KeyQuery("a"))
    with pytest.raises(StreamsNotStartedError):
        streams.store("price", QueryableStoreTypes.KEY_VALUE_STORE)


def server(make: Make, **more: Any) -> Application:
    return make(table(), settings={"application.server": "shop-3:7070"}, **more)


def test_instance_tells_its_address_and_what_it_has(make: Make) -> None:
    app = server(make, partitions=2)
    mine = StreamsMetadata(
        HostInfo("shop-3", 7070), frozenset({"prices"}), frozenset({TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)})
    )

    assert app.queries.streams_metadata() == app.queries.streams_metadata("prices") == [mine]
    assert (mine.host, mine.port) == ("shop-3", 7070)
    app.started.clear()
    assert app.queries.streams_metadata("prices") == []
    assert app.queries.streams_metadata()[0].state_store_names == frozenset()


def test_key_is_in_the_partition_that_its_bytes_choose(make: Make) -> None:
    app = server(make, partitions=4)
    partition = partition_for_key(b"tea", 4)
    here = app.queries.key_metadata("prices", "tea", TEXT, None)
    del app.started[app.by_partition[partition]]
    elsewhere = app.queries.key_metadata("prices", "tea", TEXT.serializer, None)

    assert here == KeyQueryMetadata(HostInfo("shop-3", 7070), frozenset(), partition)
    assert elsewhere == KeyQueryMetadata(HostInfo.UNAVAILABLE, frozenset(), partition)


@pytest.mark.parametrize("serializer", [Decimal, Serdes.for_type(Decimal)])
def test_type_says_how_keys_are_written(make: Make, serializer: object) -> None:
    app = server(make, partitions=4)
    keys = [Decimal(f"{number}.50") for number in range(20)]

    found = [app.queries.key_metadata("prices", key, serializer, None).partition for key in keys]

    assert found == [partition_for_key(f"{number}.5".encode(), 4) for number in range(20)]


def test_keys_of_joins_are_where_their_first_part_is() -> None:
    """The join has put them there, beside the rows of the other table."""
    builder = StreamsBuilder()
    people, orders = builder.table("people", str, str), builder.table("orders", str, str)
    joined = people.one_to_many_join(
        orders, lambda order, person: "", key_extractor=lambda person: person, materialized="of-people", name="om"
    )
    joined.filter(lambda key, value: True, materialized="some")
    builder.table("left", str, str).join(
        builder.table("right", int, str), lambda one, two: "", foreign_key_extractor=int, name="fk"
    )
    queries = queries_of(builder.build(), partitions=4)
    both, number = CombinedKeySerde(TEXT, TEXT), CombinedKeySerde(Serdes.long(), TEXT)
    keys = [CombinedKey(str(one), "x") for one in range(20)]
    numbers = [CombinedKey(one, "x") for one in range(20)]

    for store in ("of-people", "some", "om-shipped-store"):
        found = [queries.key_metadata(store, key, both, None).partition for key in keys]
        assert found == [partition_for_key(key.prefix.encode(), 4) for key in keys], store
    found = [queries.key_metadata("fk-subscription-store", key, number, None).partition for key in numbers]
    assert found == [partition_for_key(key.prefix.to_bytes(8, "big"), 4) for key in numbers]


def queries_of(topology: Topology, partitions: int) -> LocalQueries:
    """What answers where keys are, of an application without a task."""
    config = StreamsConfig({"application.id": "shop"})
    plan = topology.plan(config)
    layout = TopicLayout(
        {topic: partitions for part in plan.subtopologies for topic in part.source_topics},
        {
            TaskId(part.id, number): frozenset(TopicPartition(topic, number) for topic in part.source_topics)
            for part in plan.subtopologies
            for number in range(partitions)
        },
    )
    return LocalQueries(
        plan, config, MockClock(), workers=list, globals_=lambda: None, layout=lambda: layout, check=lambda: None
    )


def test_key_is_in_the_partition_that_the_partitioner_of_the_source_chooses(make: Make) -> None:
    builder = StreamsBuilder()
    builder.table(TOPIC, Consumed(partitioner="consistent_random"), materialized=Materialized("prices"))
    app = make(builder, settings={"application.server": "shop-3:7070"}, partitions=4)
    keys = [str(number) for number in range(20)]

    found = [app.queries.key_metadata("prices", key, TEXT, None).partition for key in keys]

    assert found == [by_crc32(key.encode(), 4) for key in keys]
    assert found != [partition_for_key(key.encode(), 4) for key in keys]


def test_instance_tells_of_the_copies_that_it_keeps(make: Make) -> None:
    app = server(make, partitions=4)
    partition = partition_for_key(b"tea", 4)
    others = {TopicPartition(TOPIC, number) for number in range(4) if number != partition}
    app.keep_copy(partition)
    here = HostInfo("shop-3", 7070)
    mine = StreamsMetadata(
        here,
        frozenset({"prices"}),
        frozenset(others),
        frozenset({TopicPartition(TOPIC, partition)}),
        frozenset({"prices"}),
    )

    assert app.queries.streams_metadata() == app.queries.streams_metadata("prices") == [mine]
    assert app.queries.key_metadata("prices", "tea", TEXT, None) == KeyQueryMetadata(
        HostInfo.UNAVAILABLE, frozenset({here}), partition
    )
    app.started.clear()
    assert app.queries.streams_metadata("prices")[0].state_store_names == frozenset()


def test_partitioner_says_where_a_key_is(make: Make) -> None:
    app = server(make, partitions=4)
    seen: list[Any] = []

    def third(topic: str, key: str, value: Any, count: int) -> set[int]:
        seen.append((topic, key, value, count))
        return {3}

    assert app.queries.key_metadata("prices", "tea", None, third).partition == 3
    assert app.queries.key_metadata("prices", "tea", None, lambda *_: 2).partition == 2
    assert seen == [(TOPIC, "tea", None, 4)]


@pytest.mark.parametrize("chosen", [None, {1, 2}, set()], ids=["default", "several", "none"])
def test_partitioner_must_choose_one_partition(make: Make, chosen: Any) -> None:
    app = server(make)

    with pytest.raises(
        ValueError,
        match=r"^the partitioner for store 'prices' gave .*; to find a key it must give exactly one partition$",
    ):
        app.queries.key_metadata("prices", "tea", None, lambda *_: chosen)


def test_either_serializer_or_partitioner_is_needed(make: Make) -> None:
    app = server(make)

    for serializer, partitioner in ((None, None), (TEXT, lambda *_: 0)):
        with pytest.raises(
            TypeError, match=r"^key_serializer is .* and partitioner .*; give exactly one of them, as the"
        ):
            app.queries.key_metadata("prices", "tea", serializer, partitioner)
    with pytest.raises(TypeError, match=r"^the key for store 'prices' is None; a key must not be None$"):
        app.queries.key_metadata("prices", None, TEXT, None)
    with pytest.raises(
        TypeError, match=r"^the key 'tea' for store 'prices' was serialized to None, which is in no part"
    ):
        app.queries.key_metadata("prices", "tea", lambda data: None, None)
    with pytest.raises(UnknownStateStoreError):
        app.queries.key_metadata("price", "tea", TEXT, None)


def test_nothing_is_known_before_the_topics_are(make: Make) -> None:
    app = server(make)
    app.layout = None

    assert app.queries.key_metadata("prices", "tea", TEXT, None) is KeyQueryMetadata.NOT_AVAILABLE


def test_key_of_a_global_store_is_everywhere(make: Make) -> None:
    builder: StreamsBuilder = table()
    builder.global_table("rates", materialized="rates")
    app = make(builder, settings={"application.server": "shop-3:7070"})

    assert app.queries.key_metadata("rates", "euro", TEXT, None) == KeyQueryMetadata(
        HostInfo("shop-3", 7070), frozenset(), -1
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("shop-3:7070", HostInfo("shop-3", 7070)),
        ("http://shop-3:7070", HostInfo("shop-3", 7070)),
        ("[::1]:7070", HostInfo("::1", 7070)),
        ("", None),
        (None, None),
    ],
)
def test_address_is_read(text: str | None, expected: HostInfo | None) -> None:
    assert HostInfo.from_endpoint(text) == expected


def test_what_is_no_address_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"^the endpoint 'shop-3' is no host:port; write application.server as 'shop-3:7070'$"
    ):
        HostInfo.from_endpoint("shop-3")


ONE, TWO = HostInfo("shop-1", 7070), HostInfo("shop-2", 7070)


def test_instances_with_an_address_know_what_each_of_them_has(make: Make) -> None:
    """``StreamsMetadataState.rebuildMetadata``, 4.3.1."""
    app = make(table(), partitions=3)
    places = [TopicPartition(TOPIC, number) for number in range(3)]
    app.hosts.update(
        {TWO: frozenset(places[2:]), ONE: frozenset(places[:2])}, {TWO: frozenset(places[:1]), ONE: frozenset()}
    )

    stores = frozenset({"prices"})
    assert app.queries.streams_metadata("prices") == [
        StreamsMetadata(ONE, stores, frozenset(places[:2])),
        StreamsMetadata(TWO, stores, frozenset(places[2:]), frozenset(places[:1]), stores),
    ]


@pytest.mark.parametrize(
    ("partition", "active", "standby"), [(0, ONE, {TWO}), (1, HostInfo.UNAVAILABLE, set()), (2, TWO, set())]
)
def test_a_key_is_at_the_instances_that_have_its_partition(
    make: Make, partition: int, active: HostInfo, standby: set[HostInfo]
) -> None:
    app = make(table(), partitions=3)
    places = [TopicPartition(TOPIC, number) for number in range(3)]
    app.hosts.update({ONE: frozenset(places[:1]), TWO: frozenset(places[2:])}, {TWO: frozenset(places[:1])})
    key = next(str(n) for n in range(100) if partition_for_key(str(n).encode(), 3) == partition)

    assert app.queries.key_metadata("prices", key, TEXT.serializer, None) == KeyQueryMetadata(
        active, frozenset(standby), partition
    )
