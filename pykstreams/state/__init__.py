"""Stores and their suppliers: what users and the layers above import."""

from pykstreams.core.record import ValueAndTimestamp
from pykstreams.state.dsl_suppliers import (
    BuiltInDslStoreSuppliers,
    DslKeyValueParams,
    DslSessionParams,
    DslStoreFormat,
    DslStoreSuppliers,
    DslWindowParams,
    InMemoryDslStoreSuppliers,
    RocksDBDslStoreSuppliers,
)
from pykstreams.state.engines.rocksdb import RocksDBConfigSetter
from pykstreams.state.interfaces.session_store import (
    AggregationWithHeaders,
    ReadOnlySessionStore,
    SessionStore,
    SessionStoreWithHeaders,
)
from pykstreams.state.interfaces.store import (
    ChangelogWriter,
    KeyValueIterator,
    KeyValueStore,
    ReadOnlyKeyValueStore,
    StoreContext,
    TimestampedKeyValueStore,
    TimestampedKeyValueStoreWithHeaders,
    ValueTimestampHeaders,
)
from pykstreams.state.interfaces.versioned_store import (
    PUT_RETURN_CODE_NOT_PUT,
    PUT_RETURN_CODE_VALID_TO_UNDEFINED,
    PutResult,
    ReadOnlyVersionedKeyValueStore,
    ResultOrder,
    VersionedKeyValueStore,
    VersionedRecord,
    VersionedRecordIterator,
)
from pykstreams.state.interfaces.window_store import (
    ReadOnlyWindowStore,
    TimestampedWindowStore,
    TimestampedWindowStoreWithHeaders,
    WindowStore,
    WindowStoreIterator,
)
from pykstreams.state.key_values.suppliers import KeyValueBytesStoreSupplier
from pykstreams.state.sessions.suppliers import SessionBytesStoreSupplier
from pykstreams.state.spec import ConnectedStoreProvider, StoreBuilder, StoreSupplier
from pykstreams.state.state_serdes import StateSerdes
from pykstreams.state.suppliers import Stores
from pykstreams.state.user_stores import (
    BatchingStateRestoreCallback,
    HeadersBytesStore,
    HeadersBytesStoreSupplier,
    StateStore,
    StateStoreContext,
    TimestampedBytesStore,
)
from pykstreams.state.versions.suppliers import VersionedBytesStoreSupplier
from pykstreams.state.versions.user_versions import VersionedBytesStore
from pykstreams.state.windows.suppliers import WindowBytesStoreSupplier

__all__ = [
    "PUT_RETURN_CODE_NOT_PUT",
    "PUT_RETURN_CODE_VALID_TO_UNDEFINED",
    "AggregationWithHeaders",
    "BatchingStateRestoreCallback",
    "BuiltInDslStoreSuppliers",
    "ChangelogWriter",
    "ConnectedStoreProvider",
    "DslKeyValueParams",
    "DslSessionParams",
    "DslStoreFormat",
    "DslStoreSuppliers",
    "DslWindowParams",
    "HeadersBytesStore",
    "HeadersBytesStoreSupplier",
    "InMemoryDslStoreSuppliers",
    "KeyValueBytesStoreSupplier",
    "KeyValueIterator",
    "KeyValueStore",
    "PutResult",
    "ReadOnlyKeyValueStore",
    "ReadOnlySessionStore",
    "ReadOnlyVersionedKeyValueStore",
    "ReadOnlyWindowStore",
    "ResultOrder",
    "RocksDBConfigSetter",
    "RocksDBDslStoreSuppliers",
    "SessionBytesStoreSupplier",
    "SessionStore",
    "SessionStoreWithHeaders",
    "StateSerdes",
    "StateStore",
    "StateStoreContext",
    "StoreBuilder",
    "StoreContext",
    "StoreSupplier",
    "Stores",
    "TimestampedBytesStore",
    "TimestampedKeyValueStore",
    "TimestampedKeyValueStoreWithHeaders",
    "TimestampedWindowStore",
    "TimestampedWindowStoreWithHeaders",
    "ValueAndTimestamp",
    "ValueTimestampHeaders",
    "VersionedBytesStore",
    "VersionedBytesStoreSupplier",
    "VersionedKeyValueStore",
    "VersionedRecord",
    "VersionedRecordIterator",
    "WindowBytesStoreSupplier",
    "WindowStore",
    "WindowStoreIterator",
]
