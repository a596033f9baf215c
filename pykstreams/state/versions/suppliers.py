"""Suppliers of versioned stores, and what puts the layers of such a store on each other."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from pykstreams.core.types import Duration, duration_ms
from pykstreams.state.encoding.layout import PLAIN
from pykstreams.state.engines.durable import durable
from pykstreams.state.engines.memory import MemoryEngine
from pykstreams.state.interfaces.engine import Engine
from pykstreams.state.interfaces.versioned_store import VersionedKeyValueStore
from pykstreams.state.key_values.suppliers import KeyValueBytesStoreSupplier
from pykstreams.state.spec import StoreBuilder
from pykstreams.state.user_stores import StateStore, check_name
from pykstreams.state.versions.history import VersionHistory
from pykstreams.state.versions.metered import MeteredVersionedStore
from pykstreams.state.versions.user_versions import UserVersions, VersionedBytesStore

K = TypeVar("K")
V = TypeVar("V")


class VersionedBytesStoreSupplier(KeyValueBytesStoreSupplier):
    """Makes versioned stores; tables take it wherever they take the supplier of a key-value store.

    One of your own has ``name``, ``metrics_scope``, ``history_retention_ms``, for the settings of the changelog, and
    ``get``, which makes a ``VersionedBytesStore``.
    """

    history_ms: int
    """How long a version can be read after it was replaced, and how late a record may come."""

    segment_interval_ms: int
    """For how long versions are kept together, and go together."""

    layout = PLAIN

    @property
    def history_retention_ms(self) -> int:
        return self.history_ms

    @abstractmethod
    def get(self) -> Any:
        """Makes an engine, or a ``VersionedBytesStore``."""


@dataclass(frozen=True)
class PersistentVersionedSupplier(VersionedBytesStoreSupplier):
    """Versioned stores in RocksDB."""

    name: str
    history_ms: int
    segment_interval_ms: int
    metrics_scope = "rocksdb"

    @property
    def disk_form(self) -> str:
        return f"versions, in parts of {self.segment_interval_ms} ms"

    def get(self) -> Engine:
        return durable(self.name, form=self.disk_form)


@dataclass(frozen=True)
class InMemoryVersionedSupplier(VersionedBytesStoreSupplier):
    """Versioned stores in memory."""

    name: str
    history_ms: int
    segment_interval_ms: int
    metrics_scope = "in-memory"

    def get(self) -> Engine:
        return MemoryEngine()


_SECOND: Final = 1000
_MINUTE: Final = 60 * _SECOND
_INTERVALS: Final = (
    # retention up to, segments in it, least length (RocksDbVersionedKeyValueBytesStoreSupplier, 4.3.1)
    (_MINUTE, 3, 2 * _SECOND),
    (5 * _MINUTE, 5, 20 * _SECOND),
    (60 * _MINUTE, 12, _MINUTE),
)


def versioned_lengths(name: str, history_retention: Duration, segment_interval: Duration | None) -> tuple[int, int]:
    """Returns history retention and segment interval in ms."""
    retention_ms = duration_ms(history_retention, f"history retention of store {name!r}")
    if segment_interval is None:
        return retention_ms, _default_interval(retention_ms)
    interval_ms = duration_ms(segment_interval, f"segment interval of store {name!r}")
    if interval_ms == 0:
        raise ValueError(f"the segment interval of store {name!r} is 0 ms; it must be at least 1 ms, or be left away")
    return retention_ms, interval_ms


def checked_versioned_supplier(supplier: object) -> VersionedBytesStoreSupplier:
    """Returns a supplier of versioned stores; ``TypeError`` for anything else."""
    if not isinstance(supplier, VersionedBytesStoreSupplier):
        raise TypeError(
            f"supplier of a versioned store is {supplier!r}; expected one such as "
            "Stores.persistent_versioned_key_value_store(name, history_retention)"
        )
    return supplier


def versioned_store(builder: StoreBuilder[VersionedKeyValueStore[K, V]]) -> VersionedKeyValueStore[K, V]:
    """Builds a versioned store."""
    supplier = checked_versioned_supplier(builder.supplier)
    engine: Any = supplier.get()
    if isinstance(engine, StateStore):
        return _over_user_store(builder, engine)
    history = VersionHistory(engine, supplier.history_retention_ms, supplier.segment_interval_ms, builder.name)
    return MeteredVersionedStore(
        builder.name, builder.key_serde, builder.value_serde, engine, history, logging=builder.logging
    )


def _over_user_store(
    builder: StoreBuilder[VersionedKeyValueStore[K, V]], store: StateStore
) -> VersionedKeyValueStore[K, V]:
    if not isinstance(store, VersionedBytesStore):
        raise TypeError(
            f"supplier {builder.supplier!r} of a versioned store gave {store!r}; expected an object of a class derived "
            "from VersionedBytesStore"
        )
    check_name(store, builder.name)
    versions = UserVersions(store)
    life = cast("Engine", versions)  # rows are read and written as versions only
    return MeteredVersionedStore(
        builder.name, builder.key_serde, builder.value_serde, life, versions, logging=builder.logging
    )


def _default_interval(retention_ms: int) -> int:
    for longest, segments, least in _INTERVALS:
        if retention_ms <= longest:
            return max(retention_ms // segments, least)
    return max(retention_ms // 24, 5 * _MINUTE)
