"""The stores of an operator, each by its kind; asked for once, while the operator is built.

A store of another kind is refused there, and not by the first record. The types of its keys and values are those that
the operator declares: a task keeps stores of all types side by side.
"""

from __future__ import annotations

from typing import Protocol, TypeVar, cast

from pykstreams.core.processor import OperatorContext
from pykstreams.state.interfaces.operator_stores import (
    JoinWindowRows,
    KeyedRows,
    KeyValueRows,
    SessionRows,
    SubscriptionRows,
    TableRows,
    VersionedRows,
    WindowRows,
)
from pykstreams.state.interfaces.versioned_store import VersionedKeyValueStore

K = TypeVar("K")
V = TypeVar("V")
S = TypeVar("S")


def keyed_rows(context: OperatorContext, name: str) -> KeyedRows[K, V]:
    """A store that is read by one key, which is a ``Windowed`` one for sessions."""
    return cast("KeyedRows[K, V]", _with_methods_of(KeyedRows, context, name))


def table_rows(context: OperatorContext, name: str) -> TableRows[K, V]:
    """The store of a table, whether it is a key-value store or a versioned one."""
    return cast("TableRows[K, V]", _with_methods_of(TableRows, context, name))


def key_value_rows(context: OperatorContext, name: str) -> KeyValueRows[K, V]:
    """A key-value store."""
    return cast("KeyValueRows[K, V]", _with_methods_of(KeyValueRows, context, name))


def versioned_rows(context: OperatorContext, name: str) -> VersionedRows[K, V]:
    """A versioned store."""
    return cast("VersionedRows[K, V]", _with_methods_of(VersionedRows, context, name))


def history_rows(context: OperatorContext, name: str) -> VersionedRows[K, V] | None:
    """The store of a table if it is versioned, else ``None``."""
    return versioned_rows(context, name) if isinstance(context.store(name), VersionedKeyValueStore) else None


def window_rows(context: OperatorContext, name: str) -> WindowRows[K, V]:
    """A window store."""
    return cast("WindowRows[K, V]", _with_methods_of(WindowRows, context, name))


def join_window_rows(context: OperatorContext, name: str) -> JoinWindowRows[K, V]:
    """A window store of a join of streams."""
    return cast("JoinWindowRows[K, V]", _with_methods_of(JoinWindowRows, context, name))


def session_rows(context: OperatorContext, name: str) -> SessionRows[K, V]:
    """A session store."""
    return cast("SessionRows[K, V]", _with_methods_of(SessionRows, context, name))


def subscription_rows(context: OperatorContext, name: str) -> SubscriptionRows:
    """The store of subscriptions of a foreign-key join."""
    return cast("SubscriptionRows", _with_methods_of(SubscriptionRows, context, name))


def store_of_class(kind: type[S], context: OperatorContext, name: str) -> S:
    """A store of one operator, such as a buffer, of which there is one class only."""
    store = context.store(name)
    if not isinstance(store, kind):
        raise _of_another_kind(context, name, store, kind)
    return store


def _with_methods_of(kind: type, context: OperatorContext, name: str) -> object:
    """The store, if it has all methods of a protocol.

    Not by ``isinstance``: methods of stores are closures of the open store, and a global store passes them on.
    """
    store = context.store(name)
    declared = (member for base in kind.__mro__ if base not in _BASES for member in vars(base))
    if not all(member.startswith("_") or callable(getattr(store, member, None)) for member in declared):
        raise _of_another_kind(context, name, store, kind)
    return store


_BASES = (object, Protocol, *Protocol.__mro__)


def _of_another_kind(context: OperatorContext, name: str, store: object, kind: type) -> TypeError:
    return TypeError(
        f"{context.node} uses store {name!r} as {kind.__name__}, but it is a {type(store).__name__}; "
        "connect the operator to a store of that kind"
    )
