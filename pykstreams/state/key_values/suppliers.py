"""Suppliers of key-value stores: in RocksDB, in memory, in memory and of limited size."""

from __future__ import annotations

from dataclasses import dataclass, field

from pykstreams.core.types import keep_whole_number
from pykstreams.state.encoding.layout import PLAIN, WITH_HEADERS, Layout
from pykstreams.state.engines.durable import durable
from pykstreams.state.engines.memory import LruEngine, MemoryEngine
from pykstreams.state.interfaces.engine import Engine
from pykstreams.state.spec import StoreSupplier
from pykstreams.state.user_stores import HeadersBytesStoreSupplier


class KeyValueBytesStoreSupplier(StoreSupplier[Engine]):
    """Makes engines of key-value stores, versioned ones among them."""

    layout: Layout
    """How rows are kept by an engine on disk; one in memory keeps what the store above gives it."""

    @property
    def with_headers(self) -> bool:
        """Whether rows keep their headers."""
        return isinstance(self, HeadersBytesStoreSupplier) or self.layout is WITH_HEADERS


@dataclass(frozen=True)
class PersistentKeyValueSupplier(KeyValueBytesStoreSupplier):
    """Stores in RocksDB; with ``prefix_bytes`` they find keys by prefixes of that length through bloom filters."""

    name: str
    layout: Layout
    prefix_bytes: int | None = field(default=None, kw_only=True)
    metrics_scope = "rocksdb"

    def __post_init__(self) -> None:
        of = f" of store {self.name!r}"
        if self.prefix_bytes is not None and keep_whole_number(self, "prefix_bytes", of) < 1:
            raise ValueError(f"prefix_bytes{of} is {self.prefix_bytes}; a prefix has at least one byte")

    @property
    def disk_form(self) -> str:
        return self.layout.name

    def get(self) -> Engine:
        return durable(self.name, self.prefix_bytes, self.disk_form)


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
