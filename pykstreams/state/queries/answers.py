"""How a store of the package answers a query (``StoreQueryUtils`` and the metered stores, 4.3.1).

Bounds and failures are the same for all kinds of stores and are handled here; the queries that a kind can answer are
in its own room (``key_values.answers``, ``windows.answers``, ``sessions.answers``, ``versions.answers``).

An answer shows what the cache holds, unless it was asked for with ``skip_cache``; in Kafka Streams ``KeyQuery`` alone
looks into the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from pykstreams.core.clock import SystemClock
from pykstreams.core.errors import SerializationError
from pykstreams.core.record import KeyValue
from pykstreams.state.interfaces.position import Position, PositionBound, PositionOf, is_permitted
from pykstreams.state.interfaces.query import Query
from pykstreams.state.interfaces.query_results import FailureReason, QueryConfig, QueryResult
from pykstreams.state.interfaces.store import KeyValueIterator
from pykstreams.state.interfaces.window_store import WindowStoreIterator
from pykstreams.state.queries.values import Shown

if TYPE_CHECKING:
    from pykstreams.state.interfaces.store import TaskStore

R = TypeVar("R")

NO_ANSWER: Final = object()
"""Returned for a query that stores of a kind cannot answer."""

Answer: TypeAlias = Callable[[Query[Any]], object]
"""From a query to what a store finds for it, or ``NO_ANSWER``."""

_CLOCK: Final = SystemClock()


def answered(
    store: TaskStore,
    answer: Answer,
    query: Query[R],
    bound: PositionBound,
    config: QueryConfig,
    position_of: PositionOf,
    partition: int | None,
) -> QueryResult[R]:
    """Answers a query; the partition is ``None`` while the store is not open."""
    began = _CLOCK.monotonic()
    result = _result(store, answer, query, bound, position_of, partition)
    if config.collect_execution_info:
        took = (_CLOCK.monotonic() - began) * 1e6
        result.add_execution_info(f"handled by {type(store).__name__} {store.name!r} in {took:.0f} us")
    return result


def _result(
    store: TaskStore,
    answer: Answer,
    query: Query[R],
    bound: PositionBound,
    position_of: PositionOf,
    partition: int | None,
) -> QueryResult[R]:
    if partition is None:
        return QueryResult.not_up_to_bound(Position(), bound, None)
    position = position_of(below_cache=getattr(query, "skip_cache", False))
    if is_permitted(position, bound, partition):
        result = _found(store, answer, query)
    else:
        result = QueryResult.not_up_to_bound(position, bound, partition)
    result.position = position
    return result


def _found(store: TaskStore, answer: Answer, query: Query[R]) -> QueryResult[R]:
    try:
        found = answer(query)
    except SerializationError:  # the key is not what the store's serde takes: nothing is wrong with the store
        raise
    except Exception as error:
        return QueryResult.for_failure(
            FailureReason.STORE_EXCEPTION, f"store {store.name!r} failed to answer {query!r}: {error!r}"
        )
    if found is NO_ANSWER:
        return QueryResult.for_unknown_query_type(query, store)
    return QueryResult.for_result(cast("R", found))


def shown_rows(rows: KeyValueIterator[Any, Any], shown: Shown, store: str) -> KeyValueIterator[Any, Any]:
    """An iterator of the same kind whose values are shown otherwise."""
    kind = WindowStoreIterator if isinstance(rows, WindowStoreIterator) else KeyValueIterator
    return kind(rows, lambda key, value: KeyValue(key, shown(value)), store)
