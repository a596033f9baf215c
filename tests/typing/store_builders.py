"""Builders of stores that must type-check: keys and values have the types of the serdes; checked, never run."""

from datetime import timedelta
from typing import Any, assert_type

from pykstreams import Serdes
from pykstreams.state import (
    KeyValueStore,
    SessionStore,
    Stores,
    TimestampedKeyValueStore,
    TimestampedWindowStore,
    VersionedKeyValueStore,
    WindowStore,
)

DAY = timedelta(days=1)


def key_values() -> None:
    supplier = Stores.persistent_key_value_store("counts")
    store = Stores.key_value_store_builder(supplier, Serdes.string(), Serdes.long()).build()
    assert_type(store, KeyValueStore[str, int])
    store.put("a", 1)
    store.put(b"a", 1)  # type: ignore[arg-type]  # keys are text
    timestamped = Stores.timestamped_key_value_store_builder(supplier, Serdes.string(), Serdes.long()).build()
    assert_type(timestamped, TimestampedKeyValueStore[str, int])


def types_for_serdes() -> None:
    supplier = Stores.in_memory_key_value_store("counts")
    assert_type(Stores.key_value_store_builder(supplier, str, int).build(), KeyValueStore[str, int])
    mixed = Stores.timestamped_key_value_store_builder(supplier, str, Serdes.long())
    assert_type(mixed.build(), TimestampedKeyValueStore[str, int])


def windows_and_sessions() -> None:
    windows = Stores.persistent_window_store("counts", DAY, timedelta(hours=1))
    assert_type(
        Stores.window_store_builder(windows, Serdes.string(), Serdes.long()).build(),
        WindowStore[str, int],
    )
    assert_type(
        Stores.timestamped_window_store_builder(windows, Serdes.string(), Serdes.long()).build(),
        TimestampedWindowStore[str, int],
    )
    sessions = Stores.persistent_session_store("visits", DAY)
    assert_type(
        Stores.session_store_builder(sessions, Serdes.string(), Serdes.long()).build(),
        SessionStore[str, int],
    )


def versions() -> None:
    supplier = Stores.persistent_versioned_key_value_store("prices", DAY)
    store = Stores.versioned_key_value_store_builder(supplier, Serdes.string(), Serdes.float()).build()
    assert_type(store, VersionedKeyValueStore[str, float])


def serdes_of_the_configuration() -> None:
    store = Stores.key_value_store_builder(Stores.persistent_key_value_store("any")).build()
    assert_type(store, KeyValueStore[Any, Any])
    Stores.key_value_store_builder(Stores.persistent_key_value_store("any"), "text")  # type: ignore[arg-type]
