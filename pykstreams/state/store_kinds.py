"""The kinds of stores, by which readers know what can be asked of one."""

from __future__ import annotations

from enum import Enum
from typing import Final

from pykstreams.state.interfaces.session_store import SessionStore
from pykstreams.state.interfaces.store import KeyValueStore, TaskStore
from pykstreams.state.interfaces.versioned_store import VersionedKeyValueStore
from pykstreams.state.interfaces.window_store import WindowStore
from pykstreams.state.user_stores import UserStore


class StoreKind(Enum):
    """The kinds of stores."""

    KEY_VALUE = "key-value"
    VERSIONED = "versioned"
    WINDOW = "window"
    SESSION = "session"
    CUSTOM = "custom"
    """A store that a user has written."""
    BUFFER = "buffer"
    """A store in which one operator keeps what waits, for nobody else to read."""


_KINDS: Final = {
    VersionedKeyValueStore: StoreKind.VERSIONED,
    KeyValueStore: StoreKind.KEY_VALUE,
    WindowStore: StoreKind.WINDOW,
    SessionStore: StoreKind.SESSION,
    UserStore: StoreKind.CUSTOM,
}


def kind_of(store: TaskStore) -> StoreKind:
    """Returns the kind of a store."""
    return next((kind for type_, kind in _KINDS.items() if isinstance(store, type_)), StoreKind.BUFFER)


def buffer_refused(store: str) -> str:
    """Returns the message for who wants to read a buffer."""
    return (
        f"store {store!r} is a buffer, in which an operator such as suppress keeps what waits; as in Kafka Streams "
        "nobody else reads it. Query the table in front of the operator, or read the topic behind it"
    )
