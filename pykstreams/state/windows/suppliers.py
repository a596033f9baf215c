"""Suppliers of window stores: in RocksDB by segment, in RocksDB by time, in memory."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from pykstreams.core.types import Duration, duration_ms
from pykstreams.state.encoding.composed_keys import WINDOW_KEY_PART
from pykstreams.state.encoding.layout import PLAIN, WITH_HEADERS, Layout
from pykstreams.state.engines.durable import durable
from pykstreams.state.engines.memory import KeyedMemoryEngine
from pykstreams.state.interfaces.engine import Engine
from pykstreams.state.spec import StoreSupplier
from pykstreams.state.user_stores import HeadersBytesStoreSupplier

MIN_SEGMENT_INTERVAL_MS: Final = 60_000


class RowOrder(Enum):
    """The order in which rows of several keys are read from a window store, as (by time, ranges of keys by key)."""

    BY_SEGMENT = (False, False)
    """By segment, and in it by key."""

    BY_TIME = (True, False)
    """By time, and then by key."""

    BY_TIME_AND_INDEX = (True, True)
    """By time, but ranges of keys by segment and then by key: the order of the stores that Kafka Streams keeps with an
    index (``RocksDbIndexedTimeOrderedWindowBytesStoreSupplier``, 4.3.1).
    """

    @property
    def by_time(self) -> bool:
        """Whether rows of several keys are read by time and then by key."""
        return self.value[0]

    @property
    def indexed(self) -> bool:
        """Whether ranges of keys are read by segment and then by key, though other reads go by time."""
        return self.value[1]


class WindowBytesStoreSupplier(StoreSupplier[Engine]):
    """Makes engines of window stores; the window store itself is put over them."""

    layout: Layout
    """How rows are kept by an engine on disk; one in memory keeps what the store above gives it."""

    window_size_ms: int
    retention_period_ms: int
    retain_duplicates: bool
    row_order: RowOrder = RowOrder.BY_SEGMENT

    @property
    def segment_interval_ms(self) -> int:
        """For how long rows are kept together, and go together."""
        return segment_interval(self.retention_period_ms)

    @property
    def retention_ms(self) -> int:
        return self.retention_period_ms

    @property
    def with_headers(self) -> bool:
        """Whether rows keep their headers."""
        return isinstance(self, HeadersBytesStoreSupplier) or self.layout is WITH_HEADERS


@dataclass(frozen=True)
class PersistentWindowSupplier(WindowBytesStoreSupplier):
    """Window stores in RocksDB."""

    name: str
    retention_period_ms: int
    window_size_ms: int
    retain_duplicates: bool
    layout: Layout
    metrics_scope = "rocksdb-window"

    @property
    def disk_form(self) -> str:
        return f"{self.layout.name}, in parts of {self.segment_interval_ms} ms"

    def get(self) -> Engine:
        return durable(self.name, form=self.disk_form)


@dataclass(frozen=True)
class TimeOrderedWindowSupplier(WindowBytesStoreSupplier):
    """Window stores in RocksDB that are read by time, for results that are forwarded when windows close."""

    name: str
    retention_period_ms: int
    window_size_ms: int
    retain_duplicates: bool
    layout: Layout
    row_order: RowOrder
    metrics_scope = "rocksdb-window"

    @property
    def disk_form(self) -> str:
        form = f"{self.layout.name}, in order of time"
        return f"{form}, and of keys in parts of {self.segment_interval_ms} ms" if self.row_order.indexed else form

    def get(self) -> Engine:
        return durable(self.name, form=self.disk_form)


@dataclass(frozen=True)
class InMemoryWindowSupplier(WindowBytesStoreSupplier):
    """Window stores in memory."""

    name: str
    retention_period_ms: int
    window_size_ms: int
    retain_duplicates: bool
    layout = PLAIN
    row_order = RowOrder.BY_TIME
    metrics_scope = "in-memory-window"

    @property
    def segment_interval_ms(self) -> int:
        return 1

    def get(self) -> Engine:
        return KeyedMemoryEngine(WINDOW_KEY_PART)


def segment_interval(retention_ms: int) -> int:
    """How long the segments of a store are."""
    return max(retention_ms // 2, MIN_SEGMENT_INTERVAL_MS)


def window_lengths(name: str, retention_period: Duration, window_size: Duration) -> tuple[int, int]:
    """Returns retention and window size in ms; ``ValueError`` if the store would forget windows before they end."""
    retention_ms = duration_ms(retention_period, f"retention period of store {name!r}")
    size_ms = duration_ms(window_size, f"window size of store {name!r}")
    if size_ms > retention_ms:
        raise ValueError(
            f"the retention period of store {name!r} is {retention_ms} ms and its windows are {size_ms} ms long; the "
            "retention must be at least the window size (and, for an aggregation, the grace period more)"
        )
    return retention_ms, size_ms


def checked_window_supplier(supplier: object) -> WindowBytesStoreSupplier:
    """Returns the supplier if it can make a window store; ``TypeError`` for anything else."""
    if not isinstance(supplier, WindowBytesStoreSupplier):
        raise TypeError(
            f"supplier of a window store is {supplier!r}; expected one such as "
            "Stores.persistent_window_store(name, retention_period, window_size)"
        )
    return supplier
