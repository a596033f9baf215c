"""The store of a table with sessions: how long it keeps them, and whether it caches."""

from __future__ import annotations

from dataclasses import dataclass

from pykstreams.core.config import StreamsConfig
from pykstreams.core.types import K, V, duration_ms, total_ms
from pykstreams.core.windows import EmitStrategy, SessionWindows
from pykstreams.dsl.options import Materialized
from pykstreams.dsl.stores.materialization import DslStore, named_or_generated, store_format
from pykstreams.dsl.stores.time_to_live import refuse_time_to_live
from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.state.dsl_suppliers import DslSessionParams, DslStoreFormat
from pykstreams.state.interfaces.store import TaskStore
from pykstreams.state.sessions.suppliers import SessionBytesStoreSupplier
from pykstreams.state.spec import StoreBuilder
from pykstreams.state.suppliers import Stores
from pykstreams.topology.graph import Graph


@dataclass(frozen=True, slots=True)
class SessionTableStore(DslStore):
    """The store of a table with sessions (``SessionStoreMaterializer``, 4.3.1)."""

    supplier: SessionBytesStoreSupplier | None
    retention_ms: int
    emit_strategy: EmitStrategy

    def builder(self, config: StreamsConfig) -> StoreBuilder[TaskStore]:
        supplier = self.supplier
        if supplier is None:
            with_headers = store_format(config) is DslStoreFormat.HEADERS
            supplier = self._suppliers(config).session_store(
                DslSessionParams(
                    self.name,
                    self.retention_ms,
                    self.emit_strategy,
                    DslStoreFormat.HEADERS if with_headers else DslStoreFormat.PLAIN,
                )
            )
        if supplier.with_headers:
            return self._builder(Stores.session_store_with_headers_builder, supplier, self.retention_ms)
        return self._builder(Stores.session_store_builder, supplier, self.retention_ms)


def session_table_store(
    graph: Graph,
    options: Materialized[K, V],
    prefix: str,
    key_serde: SerdeOrDefault,
    value_serde: SerdeOrDefault,
    windows: SessionWindows,
    emit_strategy: EmitStrategy,
) -> SessionTableStore:
    """The store that the user named, or one with a generated name; the serdes are those to fall back on.

    It keeps sessions as long as they may grow, or for the retention that the user gave; ``ValueError`` where that is
    shorter. Sessions that are emitted on close have no cache.
    """
    refuse_time_to_live(options, "sessions go with the retention of their store")
    name, queryable = named_or_generated(graph, options, prefix)
    supplier = options.store if not isinstance(options.store, str) else None
    if supplier is not None and not isinstance(supplier, SessionBytesStoreSupplier):
        raise TypeError(
            f"store of a table with sessions is {supplier!r}; expected a name or a supplier of a session store, such "
            "as Stores.persistent_session_store(name, retention)"
        )
    gap, grace = windows.inactivity_gap_ms, windows.grace_period_ms
    needed = total_ms(gap + grace, f"how long session store {name!r} keeps sessions (inactivity gap + grace)")
    retention = needed if options.retention is None else duration_ms(options.retention, "retention")
    if retention < needed:
        raise ValueError(
            f"retention of session store {name!r} is {retention} ms, less than inactivity gap {gap} ms + grace {grace} "
            f"ms, which its sessions need; give Materialized a retention of at least {needed} ms or none"
        )
    return SessionTableStore(
        name,
        queryable,
        options.key_serde or key_serde,
        options.value_serde or value_serde,
        supplier,
        options.store_type,
        options.caching and emit_strategy is not EmitStrategy.ON_WINDOW_CLOSE,
        options.logging,
        dict(options.topic_config or {}),
        retention,
        emit_strategy,
    )
