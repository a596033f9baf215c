"""Stores, and their fakes in tests, have what operators use; checked by mypy, never run."""

from typing import Any

from pykstreams.bulk.targets.store_in_memory import OfflineNode
from pykstreams.core.processor import OperatorContext
from pykstreams.runtime.tasks.context import NodeContext
from pykstreams.state.interfaces.operator_stores import (
    JoinWindowRows,
    KeyValueRows,
    SessionRows,
    SubscriptionRows,
    TableRows,
    VersionedRows,
    WindowRows,
)
from pykstreams.state.key_values.metered import MeteredKeyValueStore
from pykstreams.state.key_values.subscriptions import SubscriptionStore
from pykstreams.state.sessions.metered import MeteredSessionStore
from pykstreams.state.versions.metered import MeteredVersionedStore
from pykstreams.state.windows.metered import MeteredWindowStore
from tests.unit.processors.fakes import FakeOperatorContext, FakeStore
from tests.unit.processors.store_fakes import (
    FakeJoinWindowStore,
    FakeSessionStore,
    FakeSubscriptions,
    FakeVersionedStore,
    FakeWindowStore,
)


def key_values(store: MeteredKeyValueStore[Any, Any], fake: FakeStore) -> tuple[KeyValueRows[Any, Any], ...]:
    return store, fake


def tables(
    key_values: MeteredKeyValueStore[Any, Any], versions: MeteredVersionedStore[Any, Any], fake: FakeStore
) -> tuple[TableRows[Any, Any], ...]:
    return key_values, versions, fake


def versions(store: MeteredVersionedStore[Any, Any], fake: FakeVersionedStore) -> tuple[VersionedRows[Any, Any], ...]:
    return store, fake


def windows(store: MeteredWindowStore[Any, Any], fake: FakeWindowStore) -> tuple[WindowRows[Any, Any], ...]:
    return store, fake


def windows_of_joins(
    store: MeteredWindowStore[Any, Any], fake: FakeJoinWindowStore
) -> tuple[JoinWindowRows[Any, Any], ...]:
    return store, fake


def sessions(store: MeteredSessionStore[Any, Any], fake: FakeSessionStore) -> tuple[SessionRows[Any, Any], ...]:
    return store, fake


def subscriptions(store: SubscriptionStore, fake: FakeSubscriptions) -> tuple[SubscriptionRows, ...]:
    return store, fake  # pyright: ignore[reportReturnType]  # it binds a function that an object keeps


def context(node: NodeContext, offline: OfflineNode, fake: FakeOperatorContext) -> tuple[OperatorContext, ...]:
    return node, offline, fake  # pyright: ignore[reportReturnType]  # it binds a function that an object keeps
