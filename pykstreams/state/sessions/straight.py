"""The way of sessions from the cache straight into a topic; ``layers/cache_flush.py`` has that of other rows."""

from __future__ import annotations

from collections.abc import Callable

from pykstreams.core.processor import CurrentRecord
from pykstreams.core.serialized_sink import SerializedRecord
from pykstreams.state.interfaces.engine import BytesStore
from pykstreams.state.layers.cache_entries import CacheEntry
from pykstreams.state.layers.cache_flush import BATCH_ROWS, Encode, Send, WriteThrough


def straight_sessions(
    key_part: slice,
    send: Send,
    end_of: Callable[[bytes], int],
    below: BytesStore,
    current: CurrentRecord,
    encode: Encode,
    one_by_one: WriteThrough,
) -> WriteThrough:
    """Makes the function that writes entries one after the other, and sends them in batches, deletes among them.

    A session that grows is a delete and a new row: batches of rows without deletes would be short.

    :param key_part: which bytes of a key of the cache are the key of the record.
    :param end_of: reads the end of a session from its key.
    """
    put, get = below.put, below.get

    def write_batch(entries: list[CacheEntry]) -> None:
        records: list[SerializedRecord] = []
        for entry in entries:
            key, packed, headers = entry.key, entry.packed, entry.headers
            if headers is None:
                send(records)
                records = []
                one_by_one([entry])
                continue
            current.raw = None, entry.time, headers  # the changelog takes the time
            entry.headers = entry.message = None
            if packed is None and get(key) is None and not current.replayed:
                continue
            put(key, packed)
            records.append((key[key_part], packed, end_of(key), headers))
        send(records)

    def write_through(entries: list[CacheEntry]) -> None:
        saved = current.raw
        try:
            for at in range(0, len(entries), BATCH_ROWS):
                write_batch(entries[at : at + BATCH_ROWS])
        finally:
            current.raw = saved

    return write_through
