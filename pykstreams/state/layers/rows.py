"""The methods that operators call for each record, as closures made for one store when it is opened.

Three forms: no cache; a cache of bytes; a cache that holds objects, for timestamped stores. What is handed out by
``get_row`` may be changed by whoever gets it, without any effect on the store; ``take_row`` and ``keep_row`` save the
serialization for one who owns the values (see ``KeyValueStore``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from pykstreams.core.errors import SerdeError
from pykstreams.core.types import Decoder, Encoder, Headers
from pykstreams.state.encoding.layout import TIMESTAMP, TIMESTAMPED, Layout
from pykstreams.state.encoding.parts import parts_taker
from pykstreams.state.interfaces.engine import BytesStore
from pykstreams.state.interfaces.operator_stores import LastPut
from pykstreams.state.layers.cache_entries import IMMUTABLE, UNSET, CacheEntry
from pykstreams.state.layers.caching import CachingStore

GetRow: TypeAlias = Callable[[object], tuple[object, int] | None]
PutRow: TypeAlias = Callable[[object, object, int], bool]
KeyEncoder: TypeAlias = Callable[[object, Headers], bytes]


class RowCodec(NamedTuple):
    """How values and timestamps of one store become packed values, and back."""

    layout: Layout
    encode_key: KeyEncoder
    decode_key: Decoder
    encode_value: Encoder
    decode_value: Decoder
    bind_prefix: Callable[[object], Encoder]
    """Binds a serializer of the first part of keys as that of whole keys is bound."""
    key_serializer: object
    value_serializer: object

    def encoder(self) -> Callable[[object, int], bytes | None]:
        """Makes the function from value and timestamp to packed value.

        Rows of operators have no headers, also in stores that could keep them (``KTableSource.process`` and all
        aggregations hand new, empty ones to the store, 4.3.1).
        """
        encode = self.encode_value
        if self.layout is TIMESTAMPED:
            stamp = TIMESTAMP.pack

            def timestamped(value: object, timestamp: int) -> bytes | None:
                data = None if value is None else encode(value, ())
                return None if data is None else stamp(timestamp) + data

            return timestamped

        pack = self.layout.pack

        def other(value: object, timestamp: int) -> bytes | None:
            data = None if value is None else encode(value, ())
            return None if data is None else pack(data, timestamp, ())

        return other

    def decoder(self) -> Callable[[bytes], tuple[object, int]]:
        """Makes the function from packed value to value and timestamp."""
        decode = self.decode_value
        if self.layout is TIMESTAMPED:
            stamp_of = TIMESTAMP.unpack_from

            def timestamped(packed: bytes) -> tuple[object, int]:
                return decode(packed[8:], ()), stamp_of(packed)[0]

            return timestamped

        unpack = self.layout.unpack

        def other(packed: bytes) -> tuple[object, int]:
            value, timestamp, headers = unpack(packed)
            return decode(value, headers), timestamp

        return other


class Rows(NamedTuple):
    """The closures of one open store."""

    get_row: GetRow
    put_row: PutRow
    take_row: GetRow
    keep_row: PutRow


def rows_of_bytes(store: BytesStore, codec: RowCodec, name: str, last_put: LastPut) -> Rows:
    """Makes the closures over a layer that takes bytes.

    :param last_put: takes note of each row.
    """
    encode_key, encode_value, decode_row = codec.encode_key, codec.encode_value, codec.decoder()
    get, put = store.get, parts_taker(store, codec.layout)

    def get_row(key: object) -> tuple[object, int] | None:
        if key is None:
            raise null_key(name)
        packed = get(encode_key(key, ()))
        try:
            return None if packed is None else decode_row(packed)
        except SerdeError as error:
            error.row_key = key
            raise

    def put_row(key: object, value: object, timestamp: int) -> bool:
        if key is None:
            raise null_key(name)
        raw_key, raw_value = encode_key(key, ()), None if value is None else encode_value(value, ())
        put(raw_key, raw_value, timestamp, ())
        last_put.key, last_put.value = raw_key, raw_value
        return True

    return Rows(get_row, put_row, get_row, put_row)


def rows_of_objects(cache: CachingStore, codec: RowCodec, name: str) -> Rows:
    """Makes the closures over a cache that may hold objects.

    The entry read last is kept at hand: what is put next mostly has the very same key object.
    """
    encode_key, decode_row = codec.encode_key, codec.decoder()
    find, cached, keep_in, keep_new = cache.finder(), cache.cached, cache.keeper(), cache.new_keeper()
    put, packed_of = cache.put, cache.packed
    immutable = IMMUTABLE
    last_key: object = UNSET
    last_entry = CacheEntry(b"")

    def get_row(key: object) -> tuple[object, int] | None:
        nonlocal last_key, last_entry
        if key is None:
            raise null_key(name)
        entry = find(encode_key(key, ()))
        if entry is None:
            return None
        last_key, last_entry = key, entry
        value = entry.value
        if value is not UNSET:
            if value.__class__ not in immutable:
                packed_of(entry)
                entry.value = UNSET
            return value, entry.timestamp
        packed = entry.packed
        try:
            return None if packed is None else decode_row(packed)
        except SerdeError as error:
            error.row_key = key
            raise

    def take_row(key: object) -> tuple[object, int] | None:
        nonlocal last_key, last_entry
        if key is None:
            raise null_key(name)
        entry = find(encode_key(key, ()))
        if entry is None:
            return None
        last_key, last_entry = key, entry
        value = entry.value
        if value is not UNSET:
            if entry.packed is not UNSET:
                entry.value = UNSET
            return value, entry.timestamp
        packed = entry.packed
        try:
            return None if packed is None else decode_row(packed)
        except SerdeError as error:
            error.row_key = key
            raise

    def keep_row(key: object, value: object, timestamp: int) -> bool:
        if value is None:
            if key is None:
                raise null_key(name)
            put(encode_key(key, ()), None)
            return True
        if key is last_key and last_entry.live:
            keep_in(last_entry, value, timestamp)
            return True
        if key is None:
            raise null_key(name)
        raw = encode_key(key, ())
        entry = cached(raw)
        if entry is None:
            keep_new(raw, value, timestamp)
        else:
            keep_in(entry, value, timestamp)
        return True

    return Rows(get_row, _row_putter(cache, codec, name, keep_row), take_row, keep_row)


def _row_putter(cache: CachingStore, codec: RowCodec, name: str, keep_row: PutRow) -> PutRow:
    """Makes ``put_row``: values that cannot change are kept as objects, all others as bytes at once."""
    encode_key, encode_row, put, immutable = codec.encode_key, codec.encoder(), cache.put, IMMUTABLE

    def put_row(key: object, value: object, timestamp: int) -> bool:
        if value.__class__ in immutable:
            return keep_row(key, value, timestamp)
        if key is None:
            raise null_key(name)
        put(encode_key(key, ()), encode_row(value, timestamp))
        return True

    return put_row


def null_key(store: str) -> TypeError:
    """The error for a null key."""
    return TypeError(f"the key for store {store!r} is None; a key must not be None")
