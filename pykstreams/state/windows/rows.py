"""The methods of a window store for operators, as closures made when it is opened; ``layers/rows.py`` has the forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pykstreams.core.types import Headers
from pykstreams.core.windows import Window, Windowed, in_this_window
from pykstreams.state.encoding.composed_keys import LAST_TIME, WINDOW_KEY_PART, WindowKeySchema
from pykstreams.state.encoding.parts import parts_taker
from pykstreams.state.interfaces.engine import BytesStore
from pykstreams.state.interfaces.window_store import GetWindowRow, PutWindowRow, WindowRowsBetween, WindowRowsOfKey
from pykstreams.state.layers.cache_entries import IMMUTABLE, UNSET, CacheEntry
from pykstreams.state.layers.caching import CachingStore
from pykstreams.state.layers.rows import RowCodec, null_key
from pykstreams.state.windows.reads import WindowReads


class WindowClosures(NamedTuple):
    """The closures of one open store."""

    get_row: GetWindowRow
    put_row: PutWindowRow
    take_row: GetWindowRow
    keep_row: PutWindowRow


def rows_of_bytes(store: BytesStore, codec: RowCodec, schema: WindowKeySchema, name: str) -> WindowClosures:
    """Makes the closures over a layer that takes bytes."""
    compose, encode, decode_row = composer(codec, schema, name), codec.encode_value, codec.decoder()
    get, put = store.get, parts_taker(store, codec.layout)

    def get_row(key: object, start: int) -> tuple[object, int] | None:
        packed = get(compose(key, start))
        return None if packed is None else decode_row(packed)

    def put_row(key: object, start: int, value: object, timestamp: int, headers: Headers = (), /) -> None:
        if start < 0:
            raise negative_start(name, start)
        composed = compose(key, start)
        put(composed, None if value is None else encode(value, headers), timestamp, headers)

    return WindowClosures(get_row, put_row, get_row, put_row)


def rows_of_objects(cache: CachingStore, codec: RowCodec, schema: WindowKeySchema, name: str) -> WindowClosures:
    """Makes the closures over a cache that may hold objects."""
    compose = composer(codec, schema, name)
    take_row, keep_row = _rows_of_owner(cache, codec, schema, name, compose)
    get_row = _row_getter(cache, codec, compose)
    put_row = _row_putter(cache, codec, name, compose, keep_row)
    return WindowClosures(get_row, put_row, take_row, keep_row)


def _row_getter(cache: CachingStore, codec: RowCodec, compose: Callable[[object, int], bytes]) -> GetWindowRow:
    find, packed_of, get_below, decode_row = cache.finder(), cache.packed, cache.get_below, codec.decoder()
    immutable = IMMUTABLE

    def get_row(key: object, start: int) -> tuple[object, int] | None:
        composed = compose(key, start)
        entry = find(composed)
        if entry is None:
            packed = get_below(composed)
            return None if packed is None else decode_row(packed)
        value = entry.value
        if value is not UNSET:
            if value.__class__ not in immutable:
                packed_of(entry)
                entry.value = UNSET
            return value, entry.timestamp
        packed = entry.packed
        return None if packed is None else decode_row(packed)

    return get_row


def _row_putter(
    cache: CachingStore,
    codec: RowCodec,
    name: str,
    compose: Callable[[object, int], bytes],
    keep_row: PutWindowRow,
) -> PutWindowRow:
    put, encode_row, immutable = cache.put, codec.encoder(), IMMUTABLE

    def put_row(key: object, start: int, value: object, timestamp: int, headers: Headers = (), /) -> None:
        if value.__class__ in immutable:
            keep_row(key, start, value, timestamp)
            return
        if start < 0:
            raise negative_start(name, start)
        put(compose(key, start), encode_row(value, timestamp))

    return put_row


def _rows_of_owner(
    cache: CachingStore, codec: RowCodec, schema: WindowKeySchema, name: str, compose: Callable[[object, int], bytes]
) -> tuple[GetWindowRow, PutWindowRow]:
    """Makes ``take_row`` and ``keep_row``.

    The entry read last is kept at hand: what is put next mostly has the very key object and start that were read.
    """
    encode_key, compose_raw, decode_row = codec.encode_key, schema.packer(), codec.decoder()
    find, cached, keep_in, keep_new = cache.finder(), cache.cached, cache.keeper(), cache.new_keeper()
    put, get_below = cache.put, cache.get_below
    read_key: object = UNSET
    read_start = -1
    read_composed = b""
    read_entry: CacheEntry | None = None

    def take_row(key: object, start: int) -> tuple[object, int] | None:
        nonlocal read_key, read_start, read_composed, read_entry
        if key is None:
            raise null_key(name)
        read_composed = composed = compose_raw(encode_key(key, ()), start)
        read_entry = entry = find(composed)
        read_key, read_start = key, start
        if entry is None:
            packed = get_below(composed)
            return None if packed is None else decode_row(packed)
        value = entry.value
        if value is not UNSET:
            if entry.packed is not UNSET:
                entry.value = UNSET
            return value, entry.timestamp
        packed = entry.packed
        return None if packed is None else decode_row(packed)

    def keep_row(key: object, start: int, value: object, timestamp: int, headers: Headers = (), /) -> None:
        nonlocal read_key
        entry: CacheEntry | None
        if key is read_key and start == read_start:
            composed, entry = read_composed, read_entry
            read_key = UNSET
            if entry is not None and not entry.live:
                entry = None
        else:
            composed = compose(key, start)
            entry = cached(composed)
        if start < 0:
            raise negative_start(name, start)
        if value is None:
            put(composed, None)
            return
        if entry is None:
            keep_new(composed, value, timestamp)
        else:
            keep_in(entry, value, timestamp)

    return take_row, keep_row


def rows_of_key(reads: WindowReads, codec: RowCodec, schema: WindowKeySchema, name: str) -> WindowRowsOfKey:
    """Makes the function that reads the windows of a key."""
    encode_key, decode_row, time_of = codec.encode_key, codec.decoder(), schema.time_of
    of_key = reads.of_key

    def rows(key: object, time_from: int, time_to: int, reverse: bool = False) -> Iterator[tuple[int, object, int]]:
        if key is None:
            raise null_key(name)
        found = of_key(encode_key(key, ()), time_from, time_to, reverse, like_range=True)
        return ((time_of(composed), *decode_row(packed)) for composed, packed in found)

    return rows


def rows_between(
    reads: WindowReads, codec: RowCodec, windowed: Callable[[bytes], Windowed[object]]
) -> WindowRowsBetween:
    """Makes the function that reads the windows of all keys."""
    decode_row = codec.decoder()

    def rows(time_from: int, time_to: int) -> Iterator[tuple[Windowed[object], object, int]]:
        for composed, packed in reads.of_all(time_from, time_to, False):
            value, timestamp = decode_row(packed)
            yield windowed(composed), value, timestamp

    return rows


def windowed_key(codec: RowCodec, schema: WindowKeySchema, size_ms: int) -> Callable[[bytes], Windowed[Any]]:
    """Makes the function from composed keys to keys in windows of a size; no window ends after the last time."""
    decode_key, start_of, time_at = codec.decode_key, schema.time_of, schema.time_at
    last_start = LAST_TIME - size_ms
    last_time: bytes | None = None
    window = Window(0, size_ms)

    def windowed(composed: bytes) -> Windowed[Any]:
        nonlocal last_time, window
        time = composed[time_at]
        if time != last_time:  # many keys in a row lie in one window
            start = start_of(composed)
            window = Window(start, start + size_ms if start < last_start else LAST_TIME)
            last_time = time
        return in_this_window(decode_key(composed[WINDOW_KEY_PART], ()), window)

    return windowed


def composer(codec: RowCodec, schema: WindowKeySchema, name: str) -> Callable[[object, int], bytes]:
    """Makes the function from key and window start to composed key.

    The one composed last is kept at hand: what is put next mostly has the very key object and start that were read.
    """
    encode_key, compose_raw = codec.encode_key, schema.packer()
    last_key: object = UNSET
    last_start = -1
    last = b""

    def compose(key: object, start: int) -> bytes:
        nonlocal last_key, last_start, last
        if key is last_key and start == last_start:
            return last
        if key is None:
            raise null_key(name)
        last = compose_raw(encode_key(key, ()), start)
        last_key, last_start = key, start
        return last

    return compose


def negative_start(store: str, start: int) -> ValueError:
    """The error for a window that starts before time does."""
    return ValueError(f"the window start for store {store!r} is {start}; it must not be negative")
