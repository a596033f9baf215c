"""Rows that a layer takes, or gives, in their parts: value, timestamp and headers, not packed and unpacked in between.

A layer that alters rows, or writes them elsewhere besides, may have ``put_parts`` beside ``put``, and ``scan_values``
beside ``scan``; both do the same to the same rows. Whoever has the parts at hand, or wants no more, asks the layer
below once, when the store is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from pykstreams.core.types import Headers
from pykstreams.state.encoding.layout import PLAIN, TIMESTAMP, TIMESTAMPED, WITH_HEADERS, Layout
from pykstreams.state.interfaces.engine import BytesStore, Row

PutParts: TypeAlias = Callable[[bytes, bytes | None, int, Headers], None]
"""(key, value, timestamp in ms, headers); a value of ``None`` deletes. No headers where the layout keeps none."""

ScanValues: TypeAlias = Callable[[bytes | None, bytes | None, bool], Iterator[Row]]
"""(lower, upper, reverse) -> the rows of a scan as (key, value), without what else is packed with the value"""

TAKEN_IN_PARTS: Final = (TIMESTAMPED, WITH_HEADERS)
"""The layouts that say as much as the parts do; rows of others are packed."""


def parts_taker(store: BytesStore, layout: Layout) -> PutParts:
    """Returns the callable that puts a row into a layer in parts; packed, for a layer that takes packed rows only."""
    taker: PutParts | None = getattr(store, "put_parts", None)
    if taker is not None:
        return taker
    put, pack, stamp = store.put, layout.pack, TIMESTAMP.pack

    def put_timestamped(key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:
        put(key, None if value is None else stamp(timestamp) + value)

    def put_packed(key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:
        put(key, None if value is None else pack(value, timestamp, headers))

    return put_timestamped if layout is TIMESTAMPED else put_packed


def values_scanner(store: BytesStore, layout: Layout) -> ScanValues:
    """Returns the callable that scans a layer for values; unpacks the rows of one that has packed rows only."""
    scanner: ScanValues | None = getattr(store, "scan_values", None)
    if scanner is not None:
        return scanner
    if layout is PLAIN:
        return store.scan
    scan, unpack, width = store.scan, layout.unpack, TIMESTAMP.size

    def scan_timestamped(lower: bytes | None, upper: bytes | None, reverse: bool) -> Iterator[Row]:
        return ((key, packed[width:]) for key, packed in scan(lower, upper, reverse))

    def scan_packed(lower: bytes | None, upper: bytes | None, reverse: bool) -> Iterator[Row]:
        return ((key, unpack(packed)[0]) for key, packed in scan(lower, upper, reverse))

    return scan_timestamped if layout is TIMESTAMPED else scan_packed
