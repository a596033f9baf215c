"""Stores and their suppliers: what users and the layers above import."""

from pykstreams.core.record import ValueAndTimestamp
from pykstreams.state.rocksdb import RocksDBConfigSetter
from pykstreams.state.spec import StoreBuilder, StoreSupplier
from pykstreams.state.store import (
    ChangelogWriter,
    KeyValueIterator,
    KeyValueStore,
    ReadOnlyKeyValueStore,
    StateStore,
    StoreContext,
    TimestampedKeyValueStore,
    TimestampedKeyValueStoreWithHeaders,
    ValueTimestampHeaders,
)
from pykstreams.state.suppliers import (
    BuiltInDslStoreSuppliers,
    DslKeyValueParams,
    DslStoreFormat,
    DslStoreSuppliers,
    InMemoryDslStoreSuppliers,
    KeyValueBytesStoreSupplier,
    RocksDBDslStoreSuppliers,
    Stores,
)

__all__ = [
    "BuiltInDslStoreSuppliers",
    "ChangelogWriter",
    "DslKeyValueParams",
    "DslStoreFormat",
    "DslStoreSuppliers",
    "InMemoryDslStoreSuppliers",
    "KeyValueBytesStoreSupplier",
    "KeyValueIterator",
    "KeyValueStore",
    "ReadOnlyKeyValueStore",
    "RocksDBConfigSetter",
    "RocksDBDslStoreSuppliers",
    "StateStore",
    "StoreBuilder",
    "StoreContext",
    "StoreSupplier",
    "Stores",
    "TimestampedKeyValueStore",
    "TimestampedKeyValueStoreWithHeaders",
    "ValueAndTimestamp",
    "ValueTimestampHeaders",
]
