"""How the stores of the package answer queries (``StoreQueryUtils`` and the metered stores, 4.3.1).

An answer shows what the cache holds, unless it was asked for with ``skip_cache``; in Kafka Streams ``KeyQuery`` alone
looks into the cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from pykstreams.core.clock import SystemClock
from pykstreams.core.errors import SerializationError
from pykstreams.core.record import KeyValue
from pykstreams.state.interfaces.position import Position, PositionBound, PositionOf, is_permitted
from pykstreams.state.interfaces.queries import (
    KeyQuery,
    MultiVersionedKeyQuery,
    RangeQuery,
    TimestampedKeyQuery,
    TimestampedRangeQuery,
    VersionedKeyQuery,
    WindowKeyQuery,
    WindowRangeQuery,
)
from pykstreams.state.interfaces.query import Query
from pykstreams.state.interfaces.query_results import FailureReason, QueryConfig, QueryResult
from pykstreams.state.interfaces.session_store import SessionStore
from pykstreams.state.interfaces.store import KeyValueIterator, KeyValueStore
from pykstreams.state.interfaces.versioned_store import ResultOrder, VersionedKeyValueStore
from pykstreams.state.interfaces.window_store import WindowStore, WindowStoreIterator
from pykstreams.state.queries.values import Shown, alone, keeps_time, with_time

if TYPE_CHECKING:
    from pykstreams.state.interfaces.store import TaskStore

R = TypeVar("R")

_CLOCK: Final = SystemClock()


def answered(
    store: TaskStore,
    query: Query[R],
    bound: PositionBound,
    config: QueryConfig,
    position_of: PositionOf,
    partition: int | None,
) -> QueryResult[R]:
    """Answers a query; the partition is ``None`` while the store is not open."""
    began = _CLOCK.monotonic()
    result = _result(store, query, bound, position_of, partition)
    if config.collect_execution_info:
        took = (_CLOCK.monotonic() - began) * 1e6
        result.add_execution_info(f"handled by {type(store).__name__} {store.name!r} in {took:.0f} us")
    return result


def _result(
    store: TaskStore, query: Query[R], bound: PositionBound, position_of: PositionOf, partition: int | None
) -> QueryResult[R]:
    if partition is None:
        return QueryResult.not_up_to_bound(Position(), bound, None)
    position = position_of(below_cache=getattr(query, "skip_cache", False))
    if is_permitted(position, bound, partition):
        result = _answer(store, query)
    else:
        result = QueryResult.not_up_to_bound(position, bound, partition)
    result.position = position
    return result


def _answer(store: Any, query: Query[R]) -> QueryResult[R]:
    try:
        match query:
            case KeyQuery() if isinstance(store, KeyValueStore):
                found = _of_key(store, query, alone(store))
            case TimestampedKeyQuery() if isinstance(store, KeyValueStore) and keeps_time(store):
                found = _of_key(store, query, with_time(store))
            case RangeQuery() if isinstance(store, KeyValueStore):
                found = _of_range(store, query, alone(store))
            case TimestampedRangeQuery() if isinstance(store, KeyValueStore) and keeps_time(store):
                found = _of_range(store, query, with_time(store))
            case WindowKeyQuery() if isinstance(store, WindowStore):
                windows = store.fetch(query.key, query.time_from, query.time_to)
                found = shown_rows(windows, with_time(store), store.name)
            case WindowRangeQuery(key=None) if isinstance(store, WindowStore):
                rows = store.fetch_all(cast("int", query.time_from), cast("int", query.time_to))
                found = shown_rows(rows, with_time(store), store.name)
            case WindowRangeQuery(time_from=None) if isinstance(store, SessionStore):
                found = shown_rows(store.fetch(query.key), alone(store), store.name)
            case VersionedKeyQuery() if isinstance(store, VersionedKeyValueStore):
                found = store.get(query.key, query.as_of)
            case MultiVersionedKeyQuery() if isinstance(store, VersionedKeyValueStore):
                found = store.get(query.key, query.from_time, query.to_time, query.order)
            case _:
                return QueryResult.for_unknown_query_type(query, store)
    except SerializationError:  # the key is not what the store's serde takes: nothing is wrong with the store
        raise
    except Exception as error:
        return QueryResult.for_failure(
            FailureReason.STORE_EXCEPTION, f"store {store.name!r} failed to answer {query!r}: {error!r}"
        )
    return QueryResult.for_result(cast("R", found))


def _of_key(store: KeyValueStore[Any, Any], query: Any, shown: Shown) -> Any:
    found = store.peek(query.key, skip_cache=query.skip_cache)
    return None if found is None else shown(found)


def _of_range(store: KeyValueStore[Any, Any], query: Any, shown: Shown) -> KeyValueIterator[Any, Any]:
    rows = store.range(query.lower, query.upper, reverse=query.order is ResultOrder.DESCENDING)
    return shown_rows(rows, shown, store.name)


def shown_rows(rows: KeyValueIterator[Any, Any], shown: Shown, store: str) -> KeyValueIterator[Any, Any]:
    """An iterator of the same kind whose values are shown otherwise."""
    kind = WindowStoreIterator if isinstance(rows, WindowStoreIterator) else KeyValueIterator
    return kind(rows, lambda key, value: KeyValue(key, shown(value)), store)
