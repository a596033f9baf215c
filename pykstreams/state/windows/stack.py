"""Puts the layers of a window store on each other: ``metered(caching(changelogging(segmented(engine))))``.

Keys are composed in all layers but the changelog, which takes them without the prefix.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from pykstreams.state.encoding.composed_keys import PREFIX_BYTES, WINDOW_KEY_PART, WindowKeySchema
from pykstreams.state.encoding.layout import Layout
from pykstreams.state.engines.adapter import AdaptedEngine
from pykstreams.state.engines.segments import Expiry, SegmentedEngine
from pykstreams.state.interfaces.engine import BytesStore
from pykstreams.state.interfaces.store import StoreContext
from pykstreams.state.interfaces.window_store import (
    TimestampedWindowStore,
    TimestampedWindowStoreWithHeaders,
    WindowStore,
)
from pykstreams.state.layers.caching import CachingStore
from pykstreams.state.layers.changelogging import ChangeLogging
from pykstreams.state.layers.metered_store import Layers
from pykstreams.state.layers.rows import RowCodec
from pykstreams.state.spec import StoreBuilder
from pykstreams.state.windows.duplicates import RetainedDuplicates
from pykstreams.state.windows.indexed_cache import IndexedCache
from pykstreams.state.windows.key_first import KeyFirstCopies
from pykstreams.state.windows.metered import (
    MeteredTimestampedWindowStore,
    MeteredTimestampedWindowStoreWithHeaders,
    MeteredWindowStore,
    WindowParts,
)
from pykstreams.state.windows.suppliers import checked_window_supplier

_TIME_FIRST_BYTES: Final = 1  # the byte that tells kinds of keys apart in stores in order of time

K = TypeVar("K")
V = TypeVar("V")


def window_store(builder: StoreBuilder[WindowStore[K, V]]) -> WindowStore[K, V]:
    """Builds a plain window store."""
    return MeteredWindowStore(_parts(builder, MeteredWindowStore.layout))


def timestamped_window_store(
    builder: StoreBuilder[TimestampedWindowStore[K, V]],
) -> TimestampedWindowStore[K, V]:
    """Builds a window store with timestamps."""
    return MeteredTimestampedWindowStore(_parts(builder, MeteredTimestampedWindowStore.layout))


def timestamped_window_store_with_headers(
    builder: StoreBuilder[TimestampedWindowStoreWithHeaders[K, V]],
) -> TimestampedWindowStoreWithHeaders[K, V]:
    """Builds a window store with timestamps and headers."""
    return MeteredTimestampedWindowStoreWithHeaders(_parts(builder, MeteredTimestampedWindowStoreWithHeaders.layout))


def _parts(builder: StoreBuilder[Any], layout: Layout) -> WindowParts:
    supplier = checked_window_supplier(builder.supplier)
    inner = supplier.get()
    if inner.persistent and supplier.layout is not layout:
        inner = AdaptedEngine(inner, supplier.layout, layout)
    interval = supplier.segment_interval_ms
    by_time, by_index = supplier.row_order.by_time, supplier.row_order.indexed
    schema = WindowKeySchema(1 if by_time else interval)
    if by_index and inner.persistent:
        inner = KeyFirstCopies(inner, interval)
    retention, name = supplier.retention_period_ms, builder.name
    if not inner.persistent:
        expiry = Expiry.AT_ONCE
    else:
        expiry = Expiry.AFTER_CLOSE if by_time else Expiry.BY_SEGMENT
    engine = SegmentedEngine(inner, schema, retention, interval, name, expiry)
    duplicates = RetainedDuplicates(engine, persistent=engine.persistent) if supplier.retain_duplicates else None

    def make_cache(top: BytesStore, context: StoreContext, codec: RowCodec) -> CachingStore:
        layers = top, context.cache, context.current, codec.encoder()
        key_part = WINDOW_KEY_PART if by_time else None
        extra = _TIME_FIRST_BYTES if by_time and engine.persistent else 0
        if by_index:
            return IndexedCache(*layers, extra_bytes=extra, interval_ms=interval)
        return CachingStore(*layers, keeps_reads=False, extra_bytes=extra, key_part=key_part, time_at=schema.time_at)

    def open_layers(context: StoreContext, codec: RowCodec) -> Layers:
        was_open = engine.is_open
        engine.open(context)
        top: BytesStore = engine
        if duplicates is not None:
            top = duplicates
            offset = None if was_open else engine.committed_offset()
            if offset is not None:
                duplicates.reopened(offset)
        log = context.changelog(name) if builder.logging else None
        if log is not None:
            written = log if duplicates is None else duplicates.logging(log)
            top = ChangeLogging(top, layout, written, context.current, name, key_from=PREFIX_BYTES)
        if not builder.caching or duplicates is not None:
            return Layers(top, None)
        cache = make_cache(top, context, codec)
        return Layers(cache, cache)

    return WindowParts(
        name=name,
        key_serde=builder.key_serde,
        value_serde=builder.value_serde,
        engine=engine,
        open_layers=open_layers,
        schema=schema,
        size_ms=supplier.window_size_ms,
        interval_ms=interval,
        by_key=by_index,
        duplicates=duplicates,
    )
