"""Puts the layers of a store on each other: ``metered(caching(changelogging(engine)))``.

A layer that is off is not there. Window stores have composed keys in all layers but the changelog, which takes them
without the prefix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pykstreams.core.errors import ConfigError
from pykstreams.core.types import Headers
from pykstreams.serdes.base import describe, fixed_width
from pykstreams.serdes.combined_key import prefix_width
from pykstreams.serdes.defaults import OverDefault, or_default
from pykstreams.state.adapter import AdaptedEngine
from pykstreams.state.caching import CachingStore
from pykstreams.state.changelogging import ChangeLogging
from pykstreams.state.composed_keys import PREFIX_BYTES, WindowKeySchema
from pykstreams.state.duplicates import RetainedDuplicates
from pykstreams.state.engine import BytesStore, Engine
from pykstreams.state.indexed_cache import IndexedCache
from pykstreams.state.key_first import KeyFirstCopies
from pykstreams.state.layout import Layout
from pykstreams.state.metered import (
    MeteredKeyValueStore,
    MeteredTimestampedKeyValueStore,
    MeteredTimestampedKeyValueStoreWithHeaders,
)
from pykstreams.state.metered_store import Layers
from pykstreams.state.metered_windows import (
    MeteredTimestampedWindowStore,
    MeteredTimestampedWindowStoreWithHeaders,
    MeteredWindowStore,
)
from pykstreams.state.rows import RowCodec
from pykstreams.state.segments import SegmentedEngine
from pykstreams.state.spec import StoreBuilder
from pykstreams.state.store import (
    ChangelogWriter,
    KeyValueStore,
    StoreContext,
    TimestampedKeyValueStore,
    TimestampedKeyValueStoreWithHeaders,
)
from pykstreams.state.window_suppliers import checked_window_supplier
from pykstreams.state.windows import TimestampedWindowStore, TimestampedWindowStoreWithHeaders, WindowStore


def key_value_store(builder: StoreBuilder[KeyValueStore[Any, Any]]) -> KeyValueStore[Any, Any]:
    """Builds a plain store."""
    return MeteredKeyValueStore(*key_value_parts(builder, MeteredKeyValueStore.layout))


def timestamped_key_value_store(
    builder: StoreBuilder[TimestampedKeyValueStore[Any, Any]],
) -> TimestampedKeyValueStore[Any, Any]:
    """Builds a store with timestamps."""
    return MeteredTimestampedKeyValueStore(*key_value_parts(builder, MeteredTimestampedKeyValueStore.layout))


def timestamped_key_value_store_with_headers(
    builder: StoreBuilder[TimestampedKeyValueStoreWithHeaders[Any, Any]],
) -> TimestampedKeyValueStoreWithHeaders[Any, Any]:
    """Builds a store with timestamps and headers."""
    return MeteredTimestampedKeyValueStoreWithHeaders(
        *key_value_parts(builder, MeteredTimestampedKeyValueStoreWithHeaders.layout)
    )


def key_value_parts(
    builder: StoreBuilder[Any], layout: Layout
) -> tuple[str, Any, Any, Engine, Callable[[StoreContext, RowCodec], Layers]]:
    """What a metered key-value store of that layout is made of."""
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

    return builder.name, builder.key_serde, builder.value_serde, engine, open_layers


def _check_prefixes(builder: StoreBuilder[Any], key_serde: Any) -> None:
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


_TIME_FIRST_BYTES: Final = 1  # the byte that tells kinds of keys apart in stores in order of time


def window_store(builder: StoreBuilder[WindowStore[Any, Any]]) -> WindowStore[Any, Any]:
    """Builds a plain window store."""
    return MeteredWindowStore(*_window_parts(builder, MeteredWindowStore.layout))


def timestamped_window_store(
    builder: StoreBuilder[TimestampedWindowStore[Any, Any]],
) -> TimestampedWindowStore[Any, Any]:
    """Builds a window store with timestamps."""
    return MeteredTimestampedWindowStore(*_window_parts(builder, MeteredTimestampedWindowStore.layout))


def timestamped_window_store_with_headers(
    builder: StoreBuilder[TimestampedWindowStoreWithHeaders[Any, Any]],
) -> TimestampedWindowStoreWithHeaders[Any, Any]:
    """Builds a window store with timestamps and headers."""
    return MeteredTimestampedWindowStoreWithHeaders(
        *_window_parts(builder, MeteredTimestampedWindowStoreWithHeaders.layout)
    )


def _window_parts(builder: StoreBuilder[Any], layout: Layout) -> tuple[Any, ...]:
    supplier = checked_window_supplier(builder.supplier)
    inner = supplier.get()
    if inner.persistent and supplier.layout is not layout:
        inner = AdaptedEngine(inner, supplier.layout, layout)
    interval = supplier.segment_interval_ms
    by_time, by_index = supplier.in_order_of_time, supplier.reads_keys_by_segment
    schema = WindowKeySchema(1 if by_time else interval)
    if by_index and inner.persistent:
        inner = KeyFirstCopies(inner, interval)
    retention, name = supplier.retention_period_ms, builder.name
    engine = SegmentedEngine(
        inner,
        schema,
        retention,
        interval,
        name,
        exact=not inner.persistent,
        shows_oldest=by_time and inner.persistent,
    )
    duplicates = RetainedDuplicates(engine, persistent=engine.persistent) if supplier.retain_duplicates else None

    def make_cache(top: BytesStore, context: StoreContext, codec: RowCodec) -> CachingStore:
        layers = top, context.cache, context.current, codec.encoder()
        extra = _TIME_FIRST_BYTES if by_time and engine.persistent else 0
        if by_index:
            return IndexedCache(*layers, extra_bytes=extra, interval_ms=interval)
        return CachingStore(*layers, keeps_reads=False, extra_bytes=extra, by_key=by_time)

    def open_layers(context: StoreContext, codec: RowCodec) -> Layers:
        engine.open(context)
        top: BytesStore = engine
        if duplicates is not None:
            top = duplicates
            offset = engine.committed_offset()
            if offset is not None:
                duplicates.reopened(offset)
        log = context.changelog(name) if builder.logging else None
        if log is not None:
            written = without_prefix(log if duplicates is None else duplicates.logging(log))
            top = ChangeLogging(top, layout, written, context.current, name)
        if not builder.caching or duplicates is not None:
            return Layers(top, None)
        cache = make_cache(top, context, codec)
        return Layers(cache, cache)

    return (
        name,
        builder.key_serde,
        builder.value_serde,
        engine,
        open_layers,
        schema,
        supplier.window_size_ms,
        interval,
        by_index,
        duplicates,
    )


def without_prefix(log: ChangelogWriter) -> ChangelogWriter:
    """Takes the prefix off composed keys before they are logged."""

    def write(key: bytes, value: bytes | None, timestamp: int | None, headers: Headers) -> None:
        log(key[PREFIX_BYTES:], value, timestamp, headers)

    return write
