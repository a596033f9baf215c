"""Stores in RocksDB that count how often they are read, for runs that are not timed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pykstreams.state.dsl_suppliers import RocksDBDslStoreSuppliers
from pykstreams.state.engines.rocksdb import RocksDbEngine
from pykstreams.state.engines.transactional import WriteBuffer
from pykstreams.state.key_values.suppliers import KeyValueBytesStoreSupplier, PersistentKeyValueSupplier


class CountingStores(RocksDBDslStoreSuppliers):
    """Chooses RocksDB for all stores; ``reads`` is how many rows of key-value stores were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def key_value_store(self, params: Any) -> KeyValueBytesStoreSupplier:
        supplier = super().key_value_store(params)
        assert isinstance(supplier, PersistentKeyValueSupplier)
        return _CountedSupplier(supplier.name, supplier.layout, self)


@dataclass(frozen=True)
class _CountedSupplier(PersistentKeyValueSupplier):
    stores: CountingStores = field(compare=False)

    def get(self) -> WriteBuffer:
        return _CountedBuffer(RocksDbEngine(self.name), self.stores)


class _CountedBuffer(WriteBuffer):
    def __init__(self, engine: RocksDbEngine, stores: CountingStores) -> None:
        super().__init__(engine)
        self._stores = stores

    def get(self, key: bytes) -> bytes | None:
        self._stores.reads += 1
        return super().get(key)
