"""The queries that versioned stores answer."""

from __future__ import annotations

from typing import Any, TypeVar

from pykstreams.state.interfaces.queries import MultiVersionedKeyQuery, VersionedKeyQuery
from pykstreams.state.interfaces.query import Query
from pykstreams.state.interfaces.versioned_store import VersionedKeyValueStore, VersionedRecord
from pykstreams.state.queries.answers import NO_ANSWER

K = TypeVar("K")
V = TypeVar("V")


def version_as_of(store: VersionedKeyValueStore[K, V], key: K, as_of: int) -> VersionedRecord[V] | None:
    """The version that was valid at a time, with its ``valid_to``, which ``get`` leaves out as Kafka Streams' does."""
    with store.get(key, as_of, as_of) as versions:
        return next(versions, None)


def answer(store: VersionedKeyValueStore[Any, Any], query: Query[Any]) -> object:
    """Finds one version of a key, or those of a span of time."""
    match query:
        case VersionedKeyQuery(key=key, as_of=None):
            return store.get(key)
        case VersionedKeyQuery(key=key, as_of=int(as_of)):
            return version_as_of(store, key, as_of)
        case MultiVersionedKeyQuery():
            return store.get(query.key, query.from_time, query.to_time, query.order)
        case _:
            return NO_ANSWER
