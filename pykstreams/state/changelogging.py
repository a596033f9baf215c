"""Every write also goes to the changelog, first to the store and then to the topic.

A changelog row carries the value without the local timestamp, and the row's own timestamp as that of the record; a
delete, and a row of a store without timestamps, the time of the record being processed. Headers are those of the row
(of the record, for deletes) where the store keeps headers, else none (``ChangeLoggingKeyValueBytesStore``,
``ChangeLoggingTimestampedKeyValueBytesStore``, ``ChangeLoggingTimestampedKeyValueBytesStoreWithHeaders``,
``ChangeLoggingSessionBytesStoreWithHeaders``, 4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from pykstreams.core.errors import ProcessorStateError
from pykstreams.core.processor import CurrentRecord
from pykstreams.core.types import Headers
from pykstreams.state.engines.engine import BytesStore
from pykstreams.state.engines.memory import LruEngine
from pykstreams.state.layout import HEADERS_AND_VALUE, PLAIN, TIMESTAMP, TIMESTAMPED, Layout
from pykstreams.state.store import ChangelogWriter

Put: TypeAlias = Callable[[bytes, bytes | None], None]
"""Sets a packed value; ``None`` deletes."""


class ChangeLogging:
    """An engine whose writes are logged."""

    def __init__(
        self, engine: BytesStore, layout: Layout, log: ChangelogWriter, current: CurrentRecord, store: str
    ) -> None:
        self.get = engine.get
        self.scan = engine.scan
        self.put = _logged(engine.put, layout, log, current, store)
        if layout is PLAIN and isinstance(engine, LruEngine):
            # Only plain stores tell the changelog of evicted rows: under a timestamped store Kafka Streams hides
            # the LRU map behind a marker, and its changelog keeps them.
            def evicted(key: bytes) -> None:
                log(key, None, record_being_processed(current, store)[1], ())

            engine.on_evict = evicted


def _logged(put: Put, layout: Layout, log: ChangelogWriter, current: CurrentRecord, store: str) -> Put:
    stamp_of = TIMESTAMP.unpack_from

    def plain(key: bytes, packed: bytes | None) -> None:
        put(key, packed)
        log(key, packed, record_being_processed(current, store)[1], ())

    def timestamped(key: bytes, packed: bytes | None) -> None:
        put(key, packed)
        if packed is None:
            log(key, None, record_being_processed(current, store)[1], ())
        else:
            log(key, packed[8:], stamp_of(packed)[0], ())

    def with_headers(key: bytes, packed: bytes | None) -> None:
        put(key, packed)
        if packed is None:
            _, timestamp, headers = record_being_processed(current, store)
            log(key, None, timestamp, headers)
        else:
            log(key, *layout.unpack(packed))

    def headers_and_value(key: bytes, packed: bytes | None) -> None:
        put(key, packed)
        _, timestamp, headers = record_being_processed(current, store)
        if packed is None:
            log(key, None, timestamp, headers)
        else:
            value, _, headers = layout.unpack(packed)
            log(key, value, timestamp, headers)

    if layout is PLAIN:
        return plain
    if layout is HEADERS_AND_VALUE:
        return headers_and_value
    return timestamped if layout is TIMESTAMPED else with_headers


def record_being_processed(current: CurrentRecord, store: str) -> tuple[Any, int, Headers]:
    """The current record (message, timestamp, headers); ``ProcessorStateError`` where none is current."""
    raw = current.raw
    if raw is None:
        raise ProcessorStateError(
            f"store {store!r} was written while no record was being processed; its changelog needs the time of a "
            "record. Write from process() or a punctuator, not from init()"
        )
    return raw
