"""Puts the layers of a key-value store on each other: ``metered(caching(changelogging(engine)))``.

A layer that is off is not there.
"""

from __future__ import annotations

from typing import TypeVar

from pykstreams.core.errors import ConfigError
from pykstreams.serdes.base import describe, fixed_width
from pykstreams.serdes.combined_key import prefix_width
from pykstreams.serdes.defaults import OverDefault, or_default
from pykstreams.state.encoding.layout import Layout
from pykstreams.state.engines.adapter import AdaptedEngine
from pykstreams.state.interfaces.engine import BytesStore, Engine
from pykstreams.state.interfaces.store import (
    KeyValueStore,
    StoreContext,
    TaskStore,
    TimestampedKeyValueStore,
    TimestampedKeyValueStoreWithHeaders,
)
from pykstreams.state.key_values.metered import (
    MeteredKeyValueStore,
    MeteredTimestampedKeyValueStore,
    MeteredTimestampedKeyValueStoreWithHeaders,
)
from pykstreams.state.layers.caching import CachingStore
from pykstreams.state.layers.changelogging import ChangeLogging
from pykstreams.state.layers.metered_store import Layers, StoreParts
from pykstreams.state.layers.rows import RowCodec
from pykstreams.state.spec import StoreBuilder

K = TypeVar("K")
V = TypeVar("V")


def key_value_store(builder: StoreBuilder[KeyValueStore[K, V]]) -> KeyValueStore[K, V]:
    """Builds a plain store."""
    return MeteredKeyValueStore(key_value_parts(builder, MeteredKeyValueStore.layout))


def timestamped_key_value_store(
    builder: StoreBuilder[TimestampedKeyValueStore[K, V]],
) -> TimestampedKeyValueStore[K, V]:
    """Builds a store with timestamps."""
    return MeteredTimestampedKeyValueStore(key_value_parts(builder, MeteredTimestampedKeyValueStore.layout))


def timestamped_key_value_store_with_headers(
    builder: StoreBuilder[TimestampedKeyValueStoreWithHeaders[K, V]],
) -> TimestampedKeyValueStoreWithHeaders[K, V]:
    """Builds a store with timestamps and headers."""
    return MeteredTimestampedKeyValueStoreWithHeaders(
        key_value_parts(builder, MeteredTimestampedKeyValueStoreWithHeaders.layout)
    )


def key_value_parts(builder: StoreBuilder[TaskStore], layout: Layout) -> StoreParts:
    """The parts of a metered key-value store of that layout."""
    known = builder.key_serde is not None and not isinstance(builder.key_serde, OverDefault)
    if known:
        _check_prefixes(builder, builder.key_serde)
    engine: Engine = builder.supplier.get()
    kept: Layout = getattr(builder.supplier, "layout", layout)
    if engine.persistent and kept is not layout:
        engine = AdaptedEngine(engine, kept, layout)

    def open_layers(context: StoreContext, codec: RowCodec) -> Layers:
        if not known:
            _check_prefixes(builder, or_default(builder.key_serde, lambda: context.config.default_key_serde))
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

    return StoreParts(builder.name, builder.key_serde, builder.value_serde, engine, open_layers)


def _check_prefixes(builder: StoreBuilder[TaskStore], key_serde: object) -> None:
    """Refuses prefixes that not all keys have."""
    width = getattr(builder.supplier, "prefix_bytes", None)
    if width is None:
        return
    partial, whole = prefix_width(key_serde), fixed_width(key_serde)
    if partial == width or (partial is None and whole is not None and width <= whole):
        return
    told = f"its partial keys have {partial}" if partial is not None else "not all of its keys have such a prefix"
    raise ConfigError(
        f"store {builder.name!r} is to find keys by prefixes of {width} bytes, but its key serde is "
        f"{describe(key_serde)}, and {told}; leave prefix_bytes out, or give the store a key serde of fixed width"
    )
