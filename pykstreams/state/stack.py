"""Puts the layers of a key-value store on each other: ``metered(caching(changelogging(engine)))``.

A layer that is off is not there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pykstreams.state.adapter import AdaptedEngine
from pykstreams.state.caching import CachingStore
from pykstreams.state.changelogging import ChangeLogging
from pykstreams.state.engine import BytesStore, Engine
from pykstreams.state.layout import Layout
from pykstreams.state.metered import (
    MeteredKeyValueStore,
    MeteredTimestampedKeyValueStore,
    MeteredTimestampedKeyValueStoreWithHeaders,
)
from pykstreams.state.metered_store import Layers
from pykstreams.state.rows import RowCodec
from pykstreams.state.spec import StoreBuilder
from pykstreams.state.store import (
    KeyValueStore,
    StoreContext,
    TimestampedKeyValueStore,
    TimestampedKeyValueStoreWithHeaders,
)


def key_value_store(builder: StoreBuilder[KeyValueStore[Any, Any]]) -> KeyValueStore[Any, Any]:
    """Builds a plain store."""
    return MeteredKeyValueStore(*_parts(builder, MeteredKeyValueStore.layout))


def timestamped_key_value_store(
    builder: StoreBuilder[TimestampedKeyValueStore[Any, Any]],
) -> TimestampedKeyValueStore[Any, Any]:
    """Builds a store with timestamps."""
    return MeteredTimestampedKeyValueStore(*_parts(builder, MeteredTimestampedKeyValueStore.layout))


def timestamped_key_value_store_with_headers(
    builder: StoreBuilder[TimestampedKeyValueStoreWithHeaders[Any, Any]],
) -> TimestampedKeyValueStoreWithHeaders[Any, Any]:
    """Builds a store with timestamps and headers."""
    return MeteredTimestampedKeyValueStoreWithHeaders(
        *_parts(builder, MeteredTimestampedKeyValueStoreWithHeaders.layout)
    )


def _parts(
    builder: StoreBuilder[Any], layout: Layout
) -> tuple[str, Any, Any, Engine, Callable[[StoreContext, RowCodec], Layers]]:
    engine: Engine = builder.supplier.get()
    kept: Layout = getattr(builder.supplier, "layout", layout)
    if engine.persistent and kept is not layout:
        engine = AdaptedEngine(engine, kept, layout)

    def open_layers(context: StoreContext, codec: RowCodec) -> Layers:
        engine.open(context)
        name, current = builder.name, context.current
        top: BytesStore = engine
        log = context.changelog(name) if builder.logging else None
        if log is not None:
            top = ChangeLogging(engine, layout, log, current, name)
        if not builder.caching:
            return Layers(top, None)
        cache = CachingStore(top, context.cache, current, codec.encoder())
        return Layers(cache, cache)

    return builder.name, builder.key_serde, builder.value_serde, engine, open_layers
