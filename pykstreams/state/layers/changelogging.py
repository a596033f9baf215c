"""Every write also goes to the changelog, first to the store and then to the topic.

A changelog row carries the value without the local timestamp, and the row's own timestamp as that of the record; a
delete, and a row of a store without timestamps, the time of the record being processed. Headers are those of the row
(of the record, for deletes) where the store keeps headers, else none (``ChangeLoggingKeyValueBytesStore``,
``ChangeLoggingTimestampedKeyValueBytesStore``, ``ChangeLoggingTimestampedKeyValueBytesStoreWithHeaders``,
``ChangeLoggingSessionBytesStoreWithHeaders``, 4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from pykstreams.core.errors import ProcessorStateError
from pykstreams.core.processor import CurrentRecord
from pykstreams.core.types import Headers
from pykstreams.state.encoding.layout import HEADERS_AND_VALUE, PLAIN, TIMESTAMP, TIMESTAMPED, Layout
from pykstreams.state.encoding.parts import TAKEN_IN_PARTS, PutParts, parts_taker, values_scanner
from pykstreams.state.engines.memory import LruEngine
from pykstreams.state.interfaces.engine import BytesStore, Row
from pykstreams.state.interfaces.store import ChangelogWriter
from pykstreams.state.layers.cache_flush import PutRows

Put: TypeAlias = Callable[[bytes, bytes | None], None]
"""Sets a packed value; ``None`` deletes."""


class ChangeLogging:
    """An engine whose writes are logged.

    :param key_from: how many bytes at the beginning of a key (the prefix of a segment) are not logged.
    """

    def __init__(
        self,
        engine: BytesStore,
        layout: Layout,
        log: ChangelogWriter,
        current: CurrentRecord,
        store: str,
        *,
        key_from: int = 0,
    ) -> None:
        self.get = engine.get
        self.scan = engine.scan
        self.scan_values = values_scanner(engine, layout)
        self.put = _logged(engine.put, layout, log, current, store, key_from)
        self.put_rows: PutRows | None = None
        if layout is TIMESTAMPED:
            self.put_rows = _rows_logged(engine.put, log, key_from)
        self.put_parts: PutParts | None = None
        if layout in TAKEN_IN_PARTS:
            self.put_parts = _parts_logged(parts_taker(engine, layout), layout, log, current, store, key_from)
        if layout is PLAIN and isinstance(engine, LruEngine):
            # Only plain stores report evicted rows to the changelog: under a timestamped store Kafka Streams hides
            # the LRU map behind a marker, and its changelog keeps them.
            def evicted(key: bytes) -> None:
                log(key, None, record_being_processed(current, store)[1], ())

            engine.on_evict = evicted


def _logged(put: Put, layout: Layout, log: ChangelogWriter, current: CurrentRecord, store: str, key_from: int) -> Put:
    stamp_of = TIMESTAMP.unpack_from

    def plain(key: bytes, packed: bytes | None) -> None:
        put(key, packed)
        log(key[key_from:], packed, record_being_processed(current, store)[1], ())

    def timestamped(key: bytes, packed: bytes | None) -> None:
        put(key, packed)
        if packed is None:
            log(key[key_from:], None, record_being_processed(current, store)[1], ())
        else:
            log(key[key_from:], packed[8:], stamp_of(packed)[0], ())

    def with_headers(key: bytes, packed: bytes | None) -> None:
        put(key, packed)
        if packed is None:
            _, timestamp, headers = record_being_processed(current, store)
            log(key[key_from:], None, timestamp, headers)
        else:
            log(key[key_from:], *layout.unpack(packed))

    def headers_and_value(key: bytes, packed: bytes | None) -> None:
        put(key, packed)
        _, timestamp, headers = record_being_processed(current, store)
        if packed is None:
            log(key[key_from:], None, timestamp, headers)
        else:
            value, _, headers = layout.unpack(packed)
            log(key[key_from:], value, timestamp, headers)

    if layout is PLAIN:
        return plain
    if layout is HEADERS_AND_VALUE:
        return headers_and_value
    return timestamped if layout is TIMESTAMPED else with_headers


def _rows_logged(put: Put, log: ChangelogWriter, key_from: int) -> PutRows:
    """Logs rows with timestamps behind the last of them, none of which is a delete."""
    stamp_of = TIMESTAMP.unpack_from

    def put_and_log(rows: Sequence[Row]) -> None:
        for row in rows:
            put(*row)
        for key, packed in rows:
            log(key[key_from:], packed[8:], stamp_of(packed)[0], ())

    return put_and_log


def _parts_logged(
    put: PutParts, layout: Layout, log: ChangelogWriter, current: CurrentRecord, store: str, key_from: int
) -> PutParts:
    keeps_headers = layout is not TIMESTAMPED

    def put_parts(key: bytes, value: bytes | None, timestamp: int, headers: Headers) -> None:
        put(key, value, timestamp, headers)
        if value is None:
            _, timestamp, headers = record_being_processed(current, store)
        log(key[key_from:], value, timestamp, headers if keeps_headers else ())

    return put_parts


def record_being_processed(current: CurrentRecord, store: str) -> tuple[Any, int, Headers]:
    """The current record (message, timestamp, headers); ``ProcessorStateError`` where none is current."""
    raw = current.raw
    if raw is None:
        raise ProcessorStateError(
            f"store {store!r} was written while no record was being processed; its changelog needs the time of a "
            "record. Write from process() or a punctuator, not from init()"
        )
    return raw
