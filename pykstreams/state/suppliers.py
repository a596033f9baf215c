"""The factories of stores (``Stores``), the suppliers they give, and what the DSL takes where nobody chose a store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, TypeVar

from pykstreams.state.engine import Engine
from pykstreams.state.layout import PLAIN, TIMESTAMPED, WITH_HEADERS, Layout
from pykstreams.state.memory import LruEngine, MemoryEngine
from pykstreams.state.rocksdb import RocksDbEngine
from pykstreams.state.spec import StoreBuilder
from pykstreams.state.spec import StoreSupplier as StoreSupplier
from pykstreams.state.stack import (
    key_value_store,
    timestamped_key_value_store,
    timestamped_key_value_store_with_headers,
)
from pykstreams.state.store import (
    KeyValueStore,
    StateStore,
    TimestampedKeyValueStore,
    TimestampedKeyValueStoreWithHeaders,
)
from pykstreams.state.transactional import WriteBuffer

K = TypeVar("K")
V = TypeVar("V")
S = TypeVar("S", bound=StateStore)


class DslStoreFormat(StrEnum):
    """What a store of the DSL keeps beside its values; looked up in upper or lower case."""

    PLAIN = "PLAIN"
    TIMESTAMPED = "TIMESTAMPED"
    HEADERS = "HEADERS"

    @classmethod
    def _missing_(cls, value: object) -> DslStoreFormat | None:
        text = str(value).upper()
        return next((member for member in cls if member.value == text), None)


class KeyValueBytesStoreSupplier(StoreSupplier[Engine]):
    """Makes engines of key-value stores."""

    layout: Layout
    """How rows are kept by an engine on disk; one in memory keeps what the store above gives it."""

    @property
    def with_headers(self) -> bool:
        """Whether rows keep their headers."""
        return self.layout is WITH_HEADERS


@dataclass(frozen=True)
class PersistentKeyValueSupplier(KeyValueBytesStoreSupplier):
    """Stores in RocksDB."""

    name: str
    format: DslStoreFormat
    metrics_scope = "rocksdb"

    @property
    def layout(self) -> Layout:  # type: ignore[override]
        return _LAYOUTS[self.format]

    def get(self) -> Engine:
        return WriteBuffer(RocksDbEngine(self.name))


@dataclass(frozen=True)
class InMemoryKeyValueSupplier(KeyValueBytesStoreSupplier):
    """Stores in memory."""

    name: str
    metrics_scope = "in-memory"
    layout = PLAIN

    def get(self) -> Engine:
        return MemoryEngine()


@dataclass(frozen=True)
class LruMapSupplier(KeyValueBytesStoreSupplier):
    """Stores in memory that keep the ``max_cache_size`` rows used last."""

    name: str
    max_cache_size: int
    metrics_scope = "in-memory-lru"
    layout = PLAIN

    def get(self) -> Engine:
        return LruEngine(self.max_cache_size)


_LAYOUTS: Final[Mapping[DslStoreFormat, Layout]] = {
    DslStoreFormat.PLAIN: PLAIN,
    DslStoreFormat.TIMESTAMPED: TIMESTAMPED,
    DslStoreFormat.HEADERS: WITH_HEADERS,
}


class Stores:
    """Suppliers of stores, and builders over them (Kafka Streams: ``Stores``)."""

    @staticmethod
    def persistent_key_value_store(name: str) -> KeyValueBytesStoreSupplier:
        """A store in RocksDB that keeps values only."""
        return PersistentKeyValueSupplier(_checked(name), DslStoreFormat.PLAIN)

    @staticmethod
    def persistent_timestamped_key_value_store(name: str) -> KeyValueBytesStoreSupplier:
        """A store in RocksDB that keeps values and timestamps."""
        return PersistentKeyValueSupplier(_checked(name), DslStoreFormat.TIMESTAMPED)

    @staticmethod
    def persistent_timestamped_key_value_store_with_headers(name: str) -> KeyValueBytesStoreSupplier:
        """A store in RocksDB that keeps values, timestamps and headers."""
        return PersistentKeyValueSupplier(_checked(name), DslStoreFormat.HEADERS)

    @staticmethod
    def in_memory_key_value_store(name: str) -> KeyValueBytesStoreSupplier:
        """A store in memory; it is read from its changelog at each start."""
        return InMemoryKeyValueSupplier(_checked(name))

    @staticmethod
    def lru_map(name: str, max_cache_size: int) -> KeyValueBytesStoreSupplier:
        """A store in memory that keeps only the rows read or written last."""
        if max_cache_size < 0:
            raise ValueError(f"max_cache_size of store {name!r} is {max_cache_size}; it must not be negative")
        return LruMapSupplier(_checked(name), max_cache_size)

    @staticmethod
    def key_value_store_builder(
        supplier: KeyValueBytesStoreSupplier,
        key_serde: Any = None,
        value_serde: Any = None,
        *,
        caching: bool = False,
        logging: bool = True,
        topic_config: Mapping[str, str] | None = None,
    ) -> StoreBuilder[KeyValueStore[Any, Any]]:
        """A store of values; serdes that are ``None`` are the defaults of the configuration."""
        return StoreBuilder(
            _key_value(supplier),
            key_value_store,
            key_serde,
            value_serde,
            caching,
            logging,
            dict(topic_config or {}),
        )

    @staticmethod
    def timestamped_key_value_store_builder(
        supplier: KeyValueBytesStoreSupplier,
        key_serde: Any = None,
        value_serde: Any = None,
        *,
        caching: bool = False,
        logging: bool = True,
        topic_config: Mapping[str, str] | None = None,
    ) -> StoreBuilder[TimestampedKeyValueStore[Any, Any]]:
        """A store of ``ValueAndTimestamp``; over a persistent supplier without timestamps they are lost."""
        return StoreBuilder(
            _key_value(supplier),
            timestamped_key_value_store,
            key_serde,
            value_serde,
            caching,
            logging,
            dict(topic_config or {}),
        )

    @staticmethod
    def timestamped_key_value_store_with_headers_builder(
        supplier: KeyValueBytesStoreSupplier,
        key_serde: Any = None,
        value_serde: Any = None,
        *,
        caching: bool = False,
        logging: bool = True,
        topic_config: Mapping[str, str] | None = None,
    ) -> StoreBuilder[TimestampedKeyValueStoreWithHeaders[Any, Any]]:
        """A store of ``ValueTimestampHeaders``; over a persistent supplier without headers they are lost."""
        return StoreBuilder(
            _key_value(supplier),
            timestamped_key_value_store_with_headers,
            key_serde,
            value_serde,
            caching,
            logging,
            dict(topic_config or {}),
        )


@dataclass(frozen=True, slots=True)
class DslKeyValueParams:
    """The key-value store that the DSL asks for."""

    name: str
    store_format: DslStoreFormat = DslStoreFormat.TIMESTAMPED


class DslStoreSuppliers(ABC):
    """Chooses the stores of the DSL (``dsl.store.suppliers.class``, ``Materialized(store_type=...)``)."""

    def configure(self, configs: Mapping[str, object]) -> None:  # noqa: B027 - most have nothing to configure
        """Called once with the configuration."""

    @abstractmethod
    def key_value_store(self, params: DslKeyValueParams) -> KeyValueBytesStoreSupplier:
        """The supplier of a key-value store."""


class RocksDBDslStoreSuppliers(DslStoreSuppliers):
    """Every store in RocksDB."""

    def key_value_store(self, params: DslKeyValueParams) -> KeyValueBytesStoreSupplier:
        return PersistentKeyValueSupplier(_checked(params.name), params.store_format)


class InMemoryDslStoreSuppliers(DslStoreSuppliers):
    """Every store in memory."""

    def key_value_store(self, params: DslKeyValueParams) -> KeyValueBytesStoreSupplier:
        return InMemoryKeyValueSupplier(_checked(params.name))


class BuiltInDslStoreSuppliers:
    """The two that come with the package."""

    ROCKS_DB: Final[DslStoreSuppliers] = RocksDBDslStoreSuppliers()
    IN_MEMORY: Final[DslStoreSuppliers] = InMemoryDslStoreSuppliers()


def _checked(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"name of a store is {name!r}; expected text")
    return name


def _key_value(supplier: Any) -> KeyValueBytesStoreSupplier:
    if not isinstance(supplier, KeyValueBytesStoreSupplier):
        raise TypeError(
            f"supplier of a key-value store is {supplier!r}; expected one such as "
            "Stores.persistent_key_value_store(name)"
        )
    return supplier
