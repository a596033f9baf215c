"""Puts the layers of a session store on each other: ``metered(caching(changelogging(segmented(engine))))``."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from pykstreams.state.encoding.composed_keys import PREFIX_BYTES, SESSION_KEY_PART, SessionKeySchema
from pykstreams.state.encoding.layout import Layout
from pykstreams.state.engines.adapter import AdaptedEngine
from pykstreams.state.engines.segments import Expiry, SegmentedEngine
from pykstreams.state.interfaces.engine import BytesStore, Engine
from pykstreams.state.interfaces.session_store import SessionStore, SessionStoreWithHeaders
from pykstreams.state.interfaces.store import StoreContext
from pykstreams.state.layers.caching import CachingStore
from pykstreams.state.layers.changelogging import ChangeLogging
from pykstreams.state.layers.metered_store import Layers
from pykstreams.state.layers.rows import RowCodec
from pykstreams.state.sessions.end_index import EndIndex
from pykstreams.state.sessions.metered import MeteredSessionStore, MeteredSessionStoreWithHeaders, SessionParts
from pykstreams.state.sessions.order import InMemorySessions
from pykstreams.state.sessions.suppliers import SessionBytesStoreSupplier
from pykstreams.state.spec import StoreBuilder

K = TypeVar("K")
V = TypeVar("V")


def session_store(builder: StoreBuilder[SessionStore[K, V]]) -> SessionStore[K, V]:
    """Builds a store of aggregates."""
    return MeteredSessionStore(_parts(builder, MeteredSessionStore.layout))


def session_store_with_headers(
    builder: StoreBuilder[SessionStoreWithHeaders[K, V]],
) -> SessionStoreWithHeaders[K, V]:
    """Builds a store of aggregates with headers."""
    return MeteredSessionStoreWithHeaders(_parts(builder, MeteredSessionStoreWithHeaders.layout))


def _parts(builder: StoreBuilder[Any], layout: Layout) -> SessionParts:
    supplier, name = cast("SessionBytesStoreSupplier", builder.supplier), builder.name
    schema = SessionKeySchema(supplier.segment_interval_ms)
    kept: Engine = supplier.get()
    index = None
    if kept.persistent and supplier.layout is not layout:
        kept = AdaptedEngine(kept, supplier.layout, layout)
    elif supplier.time_ordered:
        kept = index = EndIndex(kept, schema.prefix_ms)
    expiry = Expiry.BY_SEGMENT if kept.persistent else Expiry.AT_ONCE
    engine = SegmentedEngine(kept, schema, supplier.retention_period_ms, schema.prefix_ms, name, expiry)

    def open_layers(context: StoreContext, codec: RowCodec) -> Layers:
        engine.open(context)
        log = context.changelog(name) if builder.logging else None

        def logged(layer: BytesStore) -> BytesStore:
            if log is None:
                return layer
            return ChangeLogging(layer, layout, log, context.current, name, key_from=PREFIX_BYTES)

        top = logged(engine) if engine.persistent else InMemorySessions(engine, logged)
        if not builder.caching:
            return Layers(top, None)
        cache = CachingStore(
            top,
            context.cache,
            context.current,
            codec.encoder(),
            keeps_reads=False,
            key_part=SESSION_KEY_PART if engine.persistent else None,
            time_at=schema.time_at,
        )
        return Layers(cache, cache)

    return SessionParts(name, builder.key_serde, builder.value_serde, engine, open_layers, schema, index)
