"""``Stores``: the suppliers of stores that come with the package, and builders over them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pykstreams.core.types import Duration, duration_ms, flag, whole_number
from pykstreams.serdes.by_type import SerdeOrType, given_serde
from pykstreams.state.encoding.layout import HEADERS_AND_VALUE, PLAIN, TIMESTAMPED, WITH_HEADERS, Layout
from pykstreams.state.interfaces.session_store import SessionStore, SessionStoreWithHeaders
from pykstreams.state.interfaces.store import (
    KeyValueStore,
    TaskStore,
    TimestampedKeyValueStore,
    TimestampedKeyValueStoreWithHeaders,
)
from pykstreams.state.interfaces.versioned_store import VersionedKeyValueStore
from pykstreams.state.interfaces.window_store import (
    TimestampedWindowStore,
    TimestampedWindowStoreWithHeaders,
    WindowStore,
)
from pykstreams.state.key_values.stack import (
    key_value_store,
    timestamped_key_value_store,
    timestamped_key_value_store_with_headers,
)
from pykstreams.state.key_values.suppliers import (
    InMemoryKeyValueSupplier,
    KeyValueBytesStoreSupplier,
    LruMapSupplier,
    PersistentKeyValueSupplier,
)
from pykstreams.state.sessions.stack import session_store, session_store_with_headers
from pykstreams.state.sessions.suppliers import (
    InMemorySessionSupplier,
    PersistentSessionSupplier,
    SessionBytesStoreSupplier,
)
from pykstreams.state.spec import StoreBuilder, StoreSupplier, checked_name
from pykstreams.state.versions.suppliers import (
    InMemoryVersionedSupplier,
    PersistentVersionedSupplier,
    VersionedBytesStoreSupplier,
    checked_versioned_supplier,
    versioned_lengths,
    versioned_store,
)
from pykstreams.state.windows.stack import (
    timestamped_window_store,
    timestamped_window_store_with_headers,
    window_store,
)
from pykstreams.state.windows.suppliers import (
    InMemoryWindowSupplier,
    PersistentWindowSupplier,
    WindowBytesStoreSupplier,
    checked_window_supplier,
    window_lengths,
)

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    # a store whose serdes are left to the configuration has keys and values of any type
    K = TypeVarWithDefault("K", default=Any)
    V = TypeVarWithDefault("V", default=Any)
else:
    K, V = TypeVar("K"), TypeVar("V")
S = TypeVar("S", bound=TaskStore)

log = logging.getLogger(__name__)


class Stores:
    """Suppliers of stores, and builders over them (Kafka Streams: ``Stores``).

    A builder takes a type wherever it takes a serde: ``str`` instead of ``Serdes.string()``. ``TypeError`` for a type
    that has no serde.

    A store in RocksDB that is made with ``prefix_bytes`` finds keys by prefixes of so many bytes through bloom filters
    (``prefix_scan``); other reads are as without. All its keys must have such a prefix, so it wants a key serde whose
    partial keys have just that width, such as ``CombinedKeySerde(Serdes.long(), ...)`` with 4 + 8 bytes, or one whose
    keys have a fixed width that is not smaller.
    """

    @staticmethod
    def persistent_key_value_store(name: str, *, prefix_bytes: int | None = None) -> KeyValueBytesStoreSupplier:
        """A store in RocksDB that keeps values only."""
        return PersistentKeyValueSupplier(checked_name(name), PLAIN, prefix_bytes=prefix_bytes)

    @staticmethod
    def persistent_timestamped_key_value_store(
        name: str, *, prefix_bytes: int | None = None
    ) -> KeyValueBytesStoreSupplier:
        """A store in RocksDB that keeps values and timestamps."""
        return PersistentKeyValueSupplier(checked_name(name), TIMESTAMPED, prefix_bytes=prefix_bytes)

    @staticmethod
    def persistent_timestamped_key_value_store_with_headers(
        name: str, *, prefix_bytes: int | None = None
    ) -> KeyValueBytesStoreSupplier:
        """A store in RocksDB that keeps values, timestamps and headers."""
        return PersistentKeyValueSupplier(checked_name(name), WITH_HEADERS, prefix_bytes=prefix_bytes)

    @staticmethod
    def in_memory_key_value_store(name: str) -> KeyValueBytesStoreSupplier:
        """A store in memory; it is read from its changelog at each start."""
        return InMemoryKeyValueSupplier(checked_name(name))

    @staticmethod
    def lru_map(name: str, max_cache_size: int) -> KeyValueBytesStoreSupplier:
        """A store in memory that keeps only the rows read or written last."""
        size = whole_number(max_cache_size, f"max_cache_size of store {checked_name(name)!r}")
        if size < 0:
            raise ValueError(f"max_cache_size of store {name!r} is {size}; it must not be negative")
        return LruMapSupplier(name, size)

    @staticmethod
    def key_value_store_builder(
        supplier: KeyValueBytesStoreSupplier,
        key_serde: SerdeOrType[K] | None = None,
        value_serde: SerdeOrType[V] | None = None,
        *,
        caching: bool = False,
        logging: bool = True,
        topic_config: Mapping[str, str] | None = None,
    ) -> StoreBuilder[KeyValueStore[K, V]]:
        """A store of values; serdes that are ``None`` are the defaults of the configuration."""
        return _builder(_key_value(supplier), key_value_store, key_serde, value_serde, caching, logging, topic_config)

    @staticmethod
    def timestamped_key_value_store_builder(
        supplier: KeyValueBytesStoreSupplier,
        key_serde: SerdeOrType[K] | None = None,
        value_serde: SerdeOrType[V] | None = None,
        *,
        caching: bool = False,
        logging: bool = True,
        topic_config: Mapping[str, str] | None = None,
    ) -> StoreBuilder[TimestampedKeyValueStore[K, V]]:
        """A store of ``ValueAndTimestamp``; over a persistent supplier without timestamps they are lost."""
        return _builder(
            _key_value(supplier), timestamped_key_value_store, key_serde, value_serde, caching, logging, topic_config
        )

    @staticmethod
    def timestamped_key_value_store_with_headers_builder(
        supplier: KeyValueBytesStoreSupplier,
        key_serde: SerdeOrType[K] | None = None,
        value_serde: SerdeOrType[V] | None = None,
        *,
        caching: bool = False,
        logging: bool = True,
        topic_config: Mapping[str, str] | None = None,
    ) -> StoreBuilder[TimestampedKeyValueStoreWithHeaders[K, V]]:
        """A store of ``ValueTimestampHeaders``; over a persistent supplier without headers they are lost."""
        return _builder(
            _key_value(supplier),
            timestamped_key_value_store_with_headers,
            key_serde,
            value_serde,
            caching,
            logging,
            topic_config,
        )

    @staticmethod
    def persistent_versioned_key_value_store(
        name: str, history_retention: Duration, segment_interval: Duration | None = None
    ) -> VersionedBytesStoreSupplier:
        """A versioned store in RocksDB.

        :param history_retention: how long a version can be read after another one has replaced it, and how late a
            record may come, by the stream time of the store. It must not change while there is local state.
        :param segment_interval: for how long versions are kept, and dropped, together; those of a key in one segment
            are read and written together. It must not change while there is local state.
        """
        return PersistentVersionedSupplier(
            checked_name(name), *versioned_lengths(name, history_retention, segment_interval)
        )

    @staticmethod
    def in_memory_versioned_key_value_store(
        name: str, history_retention: Duration, segment_interval: Duration | None = None
    ) -> VersionedBytesStoreSupplier:
        """A versioned store in memory; it is read from its changelog at each start. Kafka Streams has none."""
        lengths = versioned_lengths(checked_name(name), history_retention, segment_interval)
        return InMemoryVersionedSupplier(name, *lengths)

    @staticmethod
    def versioned_key_value_store_builder(
        supplier: VersionedBytesStoreSupplier,
        key_serde: SerdeOrType[K] | None = None,
        value_serde: SerdeOrType[V] | None = None,
        *,
        caching: bool = False,
        logging: bool = True,
        topic_config: Mapping[str, str] | None = None,
    ) -> StoreBuilder[VersionedKeyValueStore[K, V]]:
        """A versioned store; serdes that are ``None`` are the defaults of the configuration. It cannot have a cache."""
        checked = checked_versioned_supplier(supplier)
        if caching:
            raise ValueError(f"store {checked.name!r} is versioned and cannot have a cache; leave out caching=True")
        return _builder(checked, versioned_store, key_serde, value_serde, False, logging, topic_config)

    @staticmethod
    def persistent_session_store(name: str, retention_period: Duration) -> SessionBytesStoreSupplier:
        """A store of sessions in RocksDB that keeps them for that time after their end."""
        return PersistentSessionSupplier(checked_name(name), _retention(retention_period))

    @staticmethod
    def persistent_session_store_with_headers(name: str, retention_period: Duration) -> SessionBytesStoreSupplier:
        """A store of sessions and their headers in RocksDB that keeps them for that time after their end."""
        return PersistentSessionSupplier(checked_name(name), _retention(retention_period), HEADERS_AND_VALUE)

    @staticmethod
    def in_memory_session_store(name: str, retention_period: Duration) -> SessionBytesStoreSupplier:
        """A store of sessions in memory that keeps them for that time after their end."""
        return InMemorySessionSupplier(checked_name(name), _retention(retention_period))

    @staticmethod
    def session_store_builder(
        supplier: SessionBytesStoreSupplier,
        key_serde: SerdeOrType[K] | None = None,
        value_serde: SerdeOrType[V] | None = None,
        *,
        caching: bool = False,
        logging: bool = True,
        topic_config: Mapping[str, str] | None = None,
    ) -> StoreBuilder[SessionStore[K, V]]:
        """A store of aggregates by session."""
        return _builder(_session(supplier), session_store, key_serde, value_serde, caching, logging, topic_config)

    @staticmethod
    def session_store_with_headers_builder(
        supplier: SessionBytesStoreSupplier,
        key_serde: SerdeOrType[K] | None = None,
        value_serde: SerdeOrType[V] | None = None,
        *,
        caching: bool = False,
        logging: bool = True,
        topic_config: Mapping[str, str] | None = None,
    ) -> StoreBuilder[SessionStoreWithHeaders[K, V]]:
        """A store of ``AggregationWithHeaders`` by session; a persistent supplier without headers loses them."""
        return _builder(
            _session(supplier), session_store_with_headers, key_serde, value_serde, caching, logging, topic_config
        )

    @staticmethod
    def persistent_window_store(
        name: str, retention_period: Duration, window_size: Duration, retain_duplicates: bool = False
    ) -> WindowBytesStoreSupplier:
        """A window store in RocksDB that keeps values only.

        :param retention_period: how long a window can be read after its start, by the starts of the windows put.
        :param window_size: the length of the windows, for the keys that are handed out.
        :param retain_duplicates: whether each value that is put is kept; there is no cache then.
        """
        return _persistent_window(name, retention_period, window_size, retain_duplicates, PLAIN)

    @staticmethod
    def persistent_timestamped_window_store(
        name: str, retention_period: Duration, window_size: Duration, retain_duplicates: bool = False
    ) -> WindowBytesStoreSupplier:
        """A window store in RocksDB that keeps values and timestamps."""
        return _persistent_window(name, retention_period, window_size, retain_duplicates, TIMESTAMPED)

    @staticmethod
    def persistent_timestamped_window_store_with_headers(
        name: str, retention_period: Duration, window_size: Duration, retain_duplicates: bool = False
    ) -> WindowBytesStoreSupplier:
        """A window store in RocksDB that keeps values, timestamps and headers."""
        return _persistent_window(name, retention_period, window_size, retain_duplicates, WITH_HEADERS)

    @staticmethod
    def in_memory_window_store(
        name: str, retention_period: Duration, window_size: Duration, retain_duplicates: bool = False
    ) -> WindowBytesStoreSupplier:
        """A window store in memory; it is read from its changelog at each start."""
        lengths = window_lengths(checked_name(name), retention_period, window_size)
        flag(retain_duplicates, f"retain_duplicates of store {name!r}")
        return InMemoryWindowSupplier(name, *lengths, retain_duplicates)

    @staticmethod
    def window_store_builder(
        supplier: WindowBytesStoreSupplier,
        key_serde: SerdeOrType[K] | None = None,
        value_serde: SerdeOrType[V] | None = None,
        *,
        caching: bool = False,
        logging: bool = True,
        topic_config: Mapping[str, str] | None = None,
    ) -> StoreBuilder[WindowStore[K, V]]:
        """A window store of values; serdes that are ``None`` are the defaults of the configuration.

        The changelog of one that retains duplicates is not compacted.
        """
        duplicates = checked_window_supplier(supplier).retain_duplicates
        settings = {"cleanup.policy": "delete"} if duplicates and logging else {}
        settings.update(topic_config or {})
        return _window_builder(supplier, window_store, key_serde, value_serde, caching, logging, settings)

    @staticmethod
    def timestamped_window_store_builder(
        supplier: WindowBytesStoreSupplier,
        key_serde: SerdeOrType[K] | None = None,
        value_serde: SerdeOrType[V] | None = None,
        *,
        caching: bool = False,
        logging: bool = True,
        topic_config: Mapping[str, str] | None = None,
    ) -> StoreBuilder[TimestampedWindowStore[K, V]]:
        """A window store of ``ValueAndTimestamp``; over a persistent supplier without timestamps they are lost."""
        return _window_builder(
            supplier, timestamped_window_store, key_serde, value_serde, caching, logging, topic_config
        )

    @staticmethod
    def timestamped_window_store_with_headers_builder(
        supplier: WindowBytesStoreSupplier,
        key_serde: SerdeOrType[K] | None = None,
        value_serde: SerdeOrType[V] | None = None,
        *,
        caching: bool = False,
        logging: bool = True,
        topic_config: Mapping[str, str] | None = None,
    ) -> StoreBuilder[TimestampedWindowStoreWithHeaders[K, V]]:
        """A window store of ``ValueTimestampHeaders``; over a persistent supplier without headers they are lost."""
        return _window_builder(
            supplier, timestamped_window_store_with_headers, key_serde, value_serde, caching, logging, topic_config
        )


def _retention(period: Duration) -> int:
    return duration_ms(period, "retention period")


def _session(supplier: object) -> SessionBytesStoreSupplier:
    if not isinstance(supplier, SessionBytesStoreSupplier):
        raise TypeError(
            f"supplier of a session store is {supplier!r}; expected one such as "
            "Stores.persistent_session_store(name, retention)"
        )
    return supplier


def _key_value(supplier: object) -> KeyValueBytesStoreSupplier:
    if isinstance(supplier, VersionedBytesStoreSupplier) or not isinstance(supplier, KeyValueBytesStoreSupplier):
        raise TypeError(
            f"supplier of a key-value store is {supplier!r}; expected one such as "
            "Stores.persistent_key_value_store(name)"
        )
    return supplier


def _persistent_window(
    name: str,
    retention_period: Duration,
    window_size: Duration,
    retain_duplicates: bool,
    layout: Layout,
) -> WindowBytesStoreSupplier:
    lengths = window_lengths(checked_name(name), retention_period, window_size)
    flag(retain_duplicates, f"retain_duplicates of store {name!r}")
    return PersistentWindowSupplier(name, *lengths, retain_duplicates, layout)


def _window_builder(
    supplier: WindowBytesStoreSupplier,
    make: Callable[[StoreBuilder[S]], S],
    key_serde: SerdeOrType[K] | None,
    value_serde: SerdeOrType[V] | None,
    caching: bool,
    logging: bool,
    topic_config: Mapping[str, str] | None,
) -> StoreBuilder[S]:
    checked = checked_window_supplier(supplier)
    if caching and checked.retain_duplicates:
        log.warning("store %r has no cache, since it retains duplicates; leave out caching=True", checked.name)
        caching = False
    return _builder(checked, make, key_serde, value_serde, caching, logging, topic_config)


def _builder(
    supplier: StoreSupplier[object],
    make: Callable[[StoreBuilder[S]], S],
    key_serde: SerdeOrType[K] | None,
    value_serde: SerdeOrType[V] | None,
    caching: bool,
    logging: bool,
    topic_config: Mapping[str, str] | None,
) -> StoreBuilder[S]:
    try:
        serdes = given_serde(key_serde, is_key=True), given_serde(value_serde, is_key=False)
    except TypeError as error:
        raise TypeError(f"store {supplier.name!r}: {error}") from error
    return StoreBuilder(supplier, make, *serdes, caching, logging, dict(topic_config or {}))
