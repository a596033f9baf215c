"""The queries that versioned stores answer."""

from __future__ import annotations

from typing import Any

from pykstreams.state.interfaces.queries import MultiVersionedKeyQuery, VersionedKeyQuery
from pykstreams.state.interfaces.query import Query
from pykstreams.state.interfaces.versioned_store import VersionedKeyValueStore
from pykstreams.state.queries.answers import NO_ANSWER


def answer(store: VersionedKeyValueStore[Any, Any], query: Query[Any]) -> object:
    """Finds one version of a key, or those of a span of time."""
    match query:
        case VersionedKeyQuery():
            return store.get(query.key, query.as_of)
        case MultiVersionedKeyQuery():
            return store.get(query.key, query.from_time, query.to_time, query.order)
        case _:
            return NO_ANSWER
