"""The DSL's default stores: the parameters it asks with, and the suppliers that answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pykstreams.core.types import duration_ms
from pykstreams.core.windows import EmitStrategy
from pykstreams.state.encoding.layout import HEADERS_AND_VALUE, PLAIN, TIMESTAMPED, WITH_HEADERS, Layout
from pykstreams.state.key_values.suppliers import KeyValueBytesStoreSupplier, PersistentKeyValueSupplier
from pykstreams.state.sessions.suppliers import PersistentSessionSupplier, SessionBytesStoreSupplier
from pykstreams.state.spec import checked_name
from pykstreams.state.suppliers import Stores
from pykstreams.state.windows.suppliers import (
    PersistentWindowSupplier,
    RowOrder,
    TimeOrderedWindowSupplier,
    WindowBytesStoreSupplier,
    window_lengths,
)


class DslStoreFormat(StrEnum):
    """The format of the DSL's stores: whether headers are kept; looked up in upper or lower case."""

    PLAIN = "PLAIN"
    TIMESTAMPED = "TIMESTAMPED"
    HEADERS = "HEADERS"

    @classmethod
    def _missing_(cls, value: object) -> DslStoreFormat | None:
        text = str(value).upper()
        return next((member for member in cls if member.value == text), None)


_LAYOUTS: Final[Mapping[DslStoreFormat, Layout]] = {
    DslStoreFormat.PLAIN: PLAIN,
    DslStoreFormat.TIMESTAMPED: TIMESTAMPED,
    DslStoreFormat.HEADERS: WITH_HEADERS,
}


@dataclass(frozen=True, slots=True)
class DslKeyValueParams:
    """The key-value store that the DSL asks for; where all its keys have prefixes of ``prefix_bytes`` bytes, it will be
    scanned for these.
    """

    name: str
    store_format: DslStoreFormat = DslStoreFormat.TIMESTAMPED
    prefix_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class DslSessionParams:
    """The session store that the DSL asks for; the retention is in ms."""

    name: str
    retention_period: int
    emit_strategy: EmitStrategy = EmitStrategy.ON_WINDOW_UPDATE
    store_format: DslStoreFormat = DslStoreFormat.PLAIN


@dataclass(frozen=True, slots=True)
class DslWindowParams:
    """The window store that the DSL asks for; lengths are in ms."""

    name: str
    retention_period: int
    window_size: int
    retain_duplicates: bool
    emit_strategy: EmitStrategy
    is_sliding_window: bool
    store_format: DslStoreFormat = DslStoreFormat.TIMESTAMPED


class DslStoreSuppliers(ABC):
    """Chooses the stores of the DSL (``dsl.store.suppliers.class``, ``Materialized(store_type=...)``)."""

    def configure(self, configs: Mapping[str, object]) -> None:  # noqa: B027 - most have nothing to configure
        """Called once with the configuration."""

    @abstractmethod
    def key_value_store(self, params: DslKeyValueParams) -> KeyValueBytesStoreSupplier:
        """The supplier of a key-value store."""

    @abstractmethod
    def window_store(self, params: DslWindowParams) -> WindowBytesStoreSupplier:
        """The supplier of a window store."""

    @abstractmethod
    def session_store(self, params: DslSessionParams) -> SessionBytesStoreSupplier:
        """The supplier of a session store."""


class RocksDBDslStoreSuppliers(DslStoreSuppliers):
    """Every store in RocksDB.

    :param prefix_seek: whether scans for prefixes of a fixed length go through bloom filters.
    """

    def __init__(self, *, prefix_seek: bool = True) -> None:
        self._prefix_seek = prefix_seek

    def key_value_store(self, params: DslKeyValueParams) -> KeyValueBytesStoreSupplier:
        prefix_bytes = params.prefix_bytes if self._prefix_seek else None
        return PersistentKeyValueSupplier(
            checked_name(params.name), _LAYOUTS[params.store_format], prefix_bytes=prefix_bytes
        )

    def window_store(self, params: DslWindowParams) -> WindowBytesStoreSupplier:
        lengths = window_lengths(checked_name(params.name), params.retention_period, params.window_size)
        if params.emit_strategy is EmitStrategy.ON_WINDOW_UPDATE:
            kept = _LAYOUTS[params.store_format]
            return PersistentWindowSupplier(params.name, *lengths, params.retain_duplicates, kept)
        with_headers = params.store_format is DslStoreFormat.HEADERS
        kept = _LAYOUTS[DslStoreFormat.HEADERS if with_headers else DslStoreFormat.TIMESTAMPED]
        order = RowOrder.BY_TIME_AND_INDEX if with_headers or params.is_sliding_window else RowOrder.BY_TIME
        return TimeOrderedWindowSupplier(params.name, *lengths, params.retain_duplicates, kept, order)

    def session_store(self, params: DslSessionParams) -> SessionBytesStoreSupplier:
        layout = HEADERS_AND_VALUE if params.store_format is DslStoreFormat.HEADERS else PLAIN
        on_close = params.emit_strategy is EmitStrategy.ON_WINDOW_CLOSE
        retention_ms = duration_ms(params.retention_period, "retention period")
        return PersistentSessionSupplier(checked_name(params.name), retention_ms, layout, on_close)


class InMemoryDslStoreSuppliers(DslStoreSuppliers):
    """Every store in memory."""

    def key_value_store(self, params: DslKeyValueParams) -> KeyValueBytesStoreSupplier:
        return Stores.in_memory_key_value_store(params.name)

    def window_store(self, params: DslWindowParams) -> WindowBytesStoreSupplier:
        return Stores.in_memory_window_store(
            params.name, params.retention_period, params.window_size, params.retain_duplicates
        )

    def session_store(self, params: DslSessionParams) -> SessionBytesStoreSupplier:
        return Stores.in_memory_session_store(params.name, params.retention_period)


class BuiltInDslStoreSuppliers:
    """The two that come with the package."""

    ROCKS_DB: Final[DslStoreSuppliers] = RocksDBDslStoreSuppliers()
    IN_MEMORY: Final[DslStoreSuppliers] = InMemoryDslStoreSuppliers()
