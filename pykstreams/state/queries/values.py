"""Values with timestamps and headers, and views for readers that want less than the store keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pykstreams.core.record import ValueAndTimestamp
from pykstreams.state.interfaces.session_store import SessionStoreWithHeaders
from pykstreams.state.interfaces.store import TimestampedKeyValueStore, TimestampedKeyValueStoreWithHeaders
from pykstreams.state.interfaces.window_store import TimestampedWindowStore, TimestampedWindowStoreWithHeaders

Shown: TypeAlias = Callable[[Any], Any]
"""From what a store gives to what a reader is given."""


def keeps_headers(store: object) -> bool:
    """Whether values come with headers."""
    return isinstance(
        store, TimestampedKeyValueStoreWithHeaders | TimestampedWindowStoreWithHeaders | SessionStoreWithHeaders
    )


def keeps_time(store: object) -> bool:
    """Whether values come with timestamps; those of sessions never do."""
    if isinstance(store, TimestampedKeyValueStore | TimestampedWindowStore):
        return True
    return keeps_headers(store) and not isinstance(store, SessionStoreWithHeaders)


def alone(store: object) -> Shown:
    """Returns the values of a store without timestamps and headers."""
    if isinstance(store, SessionStoreWithHeaders):
        return _aggregation
    return _value if keeps_time(store) else as_it_is


def with_time(store: object) -> Shown:
    """Returns the values of a store with timestamps, where it keeps them, and without headers."""
    if isinstance(store, SessionStoreWithHeaders):
        return _aggregation
    return _value_and_time if keeps_headers(store) else as_it_is


def as_it_is(value: Any) -> Any:
    """Returns a value as the store does."""
    return value


def _value(kept: Any) -> Any:
    return kept.value


def _value_and_time(kept: Any) -> ValueAndTimestamp[Any]:
    return ValueAndTimestamp(kept.value, kept.timestamp)


def _aggregation(kept: Any) -> Any:
    return kept.aggregation
