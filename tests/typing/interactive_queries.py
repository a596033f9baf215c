"""Interactive queries that must type-check, with the types that come out; checked by ``mypy --strict``, never run."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, assert_type

from pykstreams import (
    HostInfo,
    KafkaStreams,
    QueryableStoreType,
    QueryableStoreTypes,
    Serdes,
    StreamsMetadata,
    ValueAndTimestamp,
)
from pykstreams.query import (
    KeyQuery,
    MultiVersionedKeyQuery,
    Position,
    PositionBound,
    RangeQuery,
    StateQueryResult,
    TimestampedKeyQuery,
    VersionedKeyQuery,
)
from pykstreams.state import (
    KeyValueIterator,
    ReadOnlyKeyValueStore,
    ReadOnlySessionStore,
    ReadOnlyVersionedKeyValueStore,
    ReadOnlyWindowStore,
    StateStore,
    VersionedRecord,
    VersionedRecordIterator,
)


def stores(streams: KafkaStreams, then: datetime) -> None:
    plain = streams.store("totals", QueryableStoreTypes.KEY_VALUE_STORE, partition=1)
    assert_type(plain, ReadOnlyKeyValueStore[Any, Any])
    typed: ReadOnlyKeyValueStore[str, int] = plain
    assert_type(typed.get("tea"), int | None)
    timed = streams.store("totals", QueryableStoreTypes.TIMESTAMPED_KEY_VALUE_STORE, enable_stale_stores=True)
    assert_type(timed, ReadOnlyKeyValueStore[Any, ValueAndTimestamp[Any]])
    assert_type(streams.store("views", QueryableStoreTypes.WINDOW_STORE), ReadOnlyWindowStore[Any, Any])
    assert_type(streams.store("visits", QueryableStoreTypes.SESSION_STORE), ReadOnlySessionStore[Any, Any])
    prices: ReadOnlyVersionedKeyValueStore[str, int] = streams.store(
        "prices", QueryableStoreTypes.VERSIONED_KEY_VALUE_STORE
    )
    assert_type(prices.get("tea", as_of=then), VersionedRecord[int] | None)


def queries(streams: KafkaStreams, then: datetime) -> None:
    one = streams.query("totals", KeyQuery[str, int]("tea"), require_active=True)
    assert_type(one, StateQueryResult[int | None])
    timed = streams.query("totals", TimestampedKeyQuery[str, int]("tea"), partitions=[1])
    assert_type(timed, StateQueryResult[ValueAndTimestamp[int] | None])
    bound = PositionBound.at(one.position)
    rows = streams.query("totals", RangeQuery[str, int]("a", "b"), position_bound=bound, execution_info=True)
    assert_type(rows, StateQueryResult[KeyValueIterator[str, int]])
    version = streams.query("prices", VersionedKeyQuery[str, int]("tea", as_of=then))
    assert_type(version, StateQueryResult[VersionedRecord[int] | None])
    versions = streams.query("prices", MultiVersionedKeyQuery[str, int]("tea", from_time=0))
    assert_type(versions, StateQueryResult[VersionedRecordIterator[int]])
    assert_type(one.position, Position)


def metadata(streams: KafkaStreams) -> None:
    assert_type(streams.metadata_for_all_streams_clients(), list[StreamsMetadata])
    found = streams.query_metadata_for_key("totals", "tea", key_serializer=Serdes.string().serializer)
    assert_type(found.active_host, HostInfo)


class Sizes(QueryableStoreType[Callable[[], int]]):
    """A type of a user's own."""

    def accepts(self, store: StateStore) -> bool:
        return True

    def create(self, provider: Any, store_name: str) -> Callable[[], int]:
        return lambda: len(provider.stores(store_name, self))
