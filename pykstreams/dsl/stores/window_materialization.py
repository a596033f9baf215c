"""The store of a windowed table: how long it keeps windows, and whether it caches."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams.core.config import StreamsConfig
from pykstreams.core.types import K, V, duration_ms, total_ms
from pykstreams.core.windows import EmitStrategy, SlidingWindows, Window, Windows
from pykstreams.dsl.options import Materialized
from pykstreams.dsl.stores.materialization import DslStore, named_or_generated, store_format
from pykstreams.dsl.stores.time_to_live import refuse_time_to_live
from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.state.dsl_suppliers import DslWindowParams
from pykstreams.state.interfaces.store import TaskStore
from pykstreams.state.spec import StoreBuilder
from pykstreams.state.suppliers import Stores
from pykstreams.state.windows.suppliers import WindowBytesStoreSupplier
from pykstreams.topology.graph import Graph


@dataclass(frozen=True, slots=True)
class WindowTableStore(DslStore):
    """The store of a table with time or sliding windows (``WindowStoreMaterializer``, 4.3.1)."""

    supplier: WindowBytesStoreSupplier | None
    window_size_ms: int
    retention_ms: int
    sliding: bool
    emit_strategy: EmitStrategy

    def builder(self, config: StreamsConfig) -> StoreBuilder[TaskStore]:
        supplier = self.supplier
        if supplier is None:
            supplier = self._suppliers(config).window_store(
                DslWindowParams(
                    self.name,
                    self.retention_ms,
                    self.window_size_ms,
                    False,
                    self.emit_strategy,
                    self.sliding,
                    store_format(config),
                )
            )
        if supplier.with_headers:
            return self._builder(Stores.timestamped_window_store_with_headers_builder, supplier, self.retention_ms)
        return self._builder(Stores.timestamped_window_store_builder, supplier, self.retention_ms)


def window_table_store(
    graph: Graph,
    options: Materialized[K, V],
    prefix: str,
    key_serde: SerdeOrDefault,
    value_serde: SerdeOrDefault,
    windows: Windows[Window] | SlidingWindows,
    emit_strategy: EmitStrategy,
) -> WindowTableStore:
    """The store that the user named, or one with a generated name; the serdes are those to fall back on.

    It keeps windows as long as they may change, or for the retention that the user gave; ``ValueError`` where that is
    shorter. Sliding windows that are emitted on close have no cache (``SlidingWindowStoreMaterializer``, 4.3.1).
    """
    refuse_time_to_live(options, "windows go with the retention of their store")
    name, queryable = named_or_generated(graph, options, prefix)
    supplier = options.store if not isinstance(options.store, str) else None
    if supplier is not None and not isinstance(supplier, WindowBytesStoreSupplier):
        raise TypeError(
            f"store of a windowed table is {supplier!r}; expected a name or a supplier of a window store, such as "
            "Stores.persistent_timestamped_window_store(name, retention, window size)"
        )
    sliding = isinstance(windows, SlidingWindows)
    if isinstance(windows, SlidingWindows):
        size = windows.time_difference_ms
        needed, why = 2 * size, f"2 * time difference {size} ms"
    else:
        size = needed = windows.size_ms
        why = f"window size {size} ms"
    needed = total_ms(needed + windows.grace_period_ms, f"how long window store {name!r} keeps windows ({why} + grace)")
    retention = needed if options.retention is None else duration_ms(options.retention, "retention")
    if retention < needed:
        raise ValueError(
            f"retention of window store {name!r} is {retention} ms, less than {why} + grace {windows.grace_period_ms} "
            f"ms, which its windows need; give Materialized a retention of at least {needed} ms or none"
        )
    return WindowTableStore(
        name,
        queryable,
        options.key_serde or key_serde,
        options.value_serde or value_serde,
        supplier,
        options.store_type,
        options.caching and not (sliding and emit_strategy is EmitStrategy.ON_WINDOW_CLOSE),
        options.logging,
        dict(options.topic_config or {}),
        size,
        retention,
        sliding,
        emit_strategy,
    )
