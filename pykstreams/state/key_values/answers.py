"""The queries that key-value stores answer."""

from __future__ import annotations

from typing import Any

from pykstreams.state.interfaces.queries import KeyQuery, RangeQuery, TimestampedKeyQuery, TimestampedRangeQuery
from pykstreams.state.interfaces.query import Query
from pykstreams.state.interfaces.store import KeyValueIterator, KeyValueStore
from pykstreams.state.interfaces.versioned_store import ResultOrder
from pykstreams.state.queries.answers import NO_ANSWER, shown_rows
from pykstreams.state.queries.values import Shown, alone, keeps_time, with_time


def answer(store: KeyValueStore[Any, Any], query: Query[object]) -> object:
    """Finds what a query asks for, values with timestamps only where the store keeps them."""
    match query:
        case KeyQuery():
            return _of_key(store, query, alone(store))
        case TimestampedKeyQuery() if keeps_time(store):
            return _of_key(store, query, with_time(store))
        case RangeQuery():
            return _of_range(store, query, alone(store))
        case TimestampedRangeQuery() if keeps_time(store):
            return _of_range(store, query, with_time(store))
        case _:
            return NO_ANSWER


def _of_key(
    store: KeyValueStore[Any, Any], query: KeyQuery[object, object] | TimestampedKeyQuery[object, object], shown: Shown
) -> object:
    found = store.peek(query.key, skip_cache=query.skip_cache)
    return None if found is None else shown(found)


def _of_range(
    store: KeyValueStore[Any, Any],
    query: RangeQuery[object, object] | TimestampedRangeQuery[object, object],
    shown: Shown,
) -> KeyValueIterator[object, object]:
    rows = store.range(query.lower, query.upper, reverse=query.order is ResultOrder.DESCENDING)
    return shown_rows(rows, shown, store.name)
