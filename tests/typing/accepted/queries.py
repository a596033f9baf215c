"""Asks a running application for its rows."""

from __future__ import annotations

from pykstreams import KafkaStreams, QueryableStoreTypes
from pykstreams.state import ReadOnlyKeyValueStore


def total_of(streams: KafkaStreams, customer: str) -> int | None:
    store: ReadOnlyKeyValueStore[str, int] = streams.store("totals", QueryableStoreTypes.KEY_VALUE_STORE)
    return store.get(customer)
