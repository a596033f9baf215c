"""The suppliers of session stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pykstreams.state.encoding.layout import HEADERS_AND_VALUE, PLAIN, Layout
from pykstreams.state.engines.durable import durable
from pykstreams.state.engines.memory import MemoryEngine
from pykstreams.state.interfaces.engine import Engine
from pykstreams.state.spec import StoreSupplier
from pykstreams.state.user_stores import HeadersBytesStoreSupplier

_SHORTEST_SEGMENT_MS: Final = 60_000


class SessionBytesStoreSupplier(StoreSupplier[Engine]):
    """Makes engines of session stores."""

    retention_period_ms: int
    """How long after its end a session is kept."""

    layout: Layout
    """How sessions are kept by an engine on disk; one in memory keeps what the store above gives it."""

    time_ordered: bool = False
    """Whether there is an index by end, for sessions that are emitted when they are closed."""

    @property
    def segment_interval_ms(self) -> int:
        """How much time the sessions span that are dropped together."""
        return max(self.retention_period_ms // 2, _SHORTEST_SEGMENT_MS)

    @property
    def with_headers(self) -> bool:
        """Whether sessions keep their headers."""
        return isinstance(self, HeadersBytesStoreSupplier) or self.layout is HEADERS_AND_VALUE

    @property
    def retention_ms(self) -> int:
        return self.retention_period_ms


@dataclass(frozen=True)
class PersistentSessionSupplier(SessionBytesStoreSupplier):
    """Stores in RocksDB."""

    name: str
    retention_period_ms: int
    layout: Layout = PLAIN
    time_ordered: bool = False
    metrics_scope = "rocksdb-session"

    @property
    def disk_form(self) -> str:
        form = f"{self.layout.name}, in parts of {self.segment_interval_ms} ms"
        return f"{form}, and in order of their ends" if self.time_ordered else form

    def get(self) -> Engine:
        return durable(self.name, form=self.disk_form)


@dataclass(frozen=True)
class InMemorySessionSupplier(SessionBytesStoreSupplier):
    """Stores in memory."""

    name: str
    retention_period_ms: int
    metrics_scope = "in-memory-session"
    layout = PLAIN

    @property
    def segment_interval_ms(self) -> int:
        return 1

    def get(self) -> Engine:
        return MemoryEngine()
