"""The buffer of a stream-table join with grace: records of the stream that wait, in the order of their times.

The layout of ``RocksDBTimeOrderedKeyValueBuffer`` and ``TimeFirstWindowKeySchema``, 4.3.1, here and in the changelog,
big-endian::

    key      00 | timestamp (8) | key | sequence (4)
    value    see ``record_buffer``

The sequence tells records of one key and time apart; it starts with 1. Stream time is the highest timestamp of what was
put, after a restart of what still waits.

Kafka Streams restores such a changelog wrongly: it takes its keys for those of a window store. It also counts sequences
from 1 again after a restart, so that new records may take the place of waiting ones. Neither is done here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.state.buffers.logged_buffer import BufferSupplier
from pykstreams.state.buffers.record_buffer import RecordBuffer
from pykstreams.state.encoding.record_context import RawContext
from pykstreams.state.interfaces.engine import Engine
from pykstreams.state.layers.rows import null_key
from pykstreams.state.spec import StoreBuilder

Emit: TypeAlias = Callable[[Any, Any, RawContext], None]
"""Takes what leaves the buffer: key, value, and the record it was part of."""

_START: Final = struct.Struct(">Bq")
_END: Final = struct.Struct(">BQ")  # the same, and one more than the last timestamp
_SEQUENCE: Final = struct.Struct(">i")
_LAST_SEQUENCE: Final = 2**31 - 1


class JoinBuffer(RecordBuffer):
    """The store, which only its join uses; made by ``join_buffer``."""

    def __init__(
        self,
        name: str,
        key_serde: SerdeOrDefault,
        value_serde: SerdeOrDefault,
        grace_ms: int,
        topic: str,
        engine: Engine,
        *,
        logging: bool,
    ) -> None:
        super().__init__(name, (key_serde, value_serde), engine, owner="join", topic=topic, logging=logging)
        self._grace_ms = grace_ms
        self._stream_time = -1
        self._sequence = 0

    def put(self, key: object, value: object, raw: RawContext) -> bool:
        """Lets a record wait; false for one that is too late to wait, which must be joined at once."""
        self._begin()
        if key is None:
            raise null_key(self._name)
        _, timestamp, headers = raw
        if timestamp < self._stream_time - self._grace_ms:
            return False
        self._sequence = (self._sequence + 1) & _LAST_SEQUENCE
        packed_key = _START.pack(0, timestamp) + self._encode_key(key, headers) + _SEQUENCE.pack(self._sequence)
        self._add(packed_key, value, raw)
        if timestamp > self._stream_time:
            self._stream_time = timestamp
        return True

    def evict(self, emit: Emit) -> None:
        """Removes what is older than stream time by the grace, in order; a record stays when ``emit`` raises."""
        self._begin()
        due = self._stream_time - self._grace_ms
        if due < 0:
            return
        rows, end, raw = self._rows, _END.pack(0, due + 1), self._current.raw
        headers = () if raw is None else raw[2]
        while (row := rows.first(end)) is not None:
            packed_key, (data, origin) = row
            key = self._decode_key(packed_key[_START.size : -_SEQUENCE.size], headers)
            emit(key, self._decode(data, headers), origin)
            rows.pop()
            self._remove(packed_key)

    def _take_up(self) -> None:
        self._stream_time, self._sequence = -1, 0
        for key, _ in self._engine.scan(None, None, False):
            self._stream_time = _START.unpack_from(key)[1]
            self._sequence = max(self._sequence, _SEQUENCE.unpack_from(key, len(key) - _SEQUENCE.size)[0])
        self._rows.start()


def join_buffer(
    name: str,
    key_serde: SerdeOrDefault,
    value_serde: SerdeOrDefault,
    *,
    grace_ms: int,
    topic: str,
    logging: bool = True,
) -> StoreBuilder[JoinBuffer]:
    """A buffer; serdes that are ``None`` are the defaults of the configuration."""

    def make(builder: StoreBuilder[JoinBuffer]) -> JoinBuffer:
        return JoinBuffer(
            name, key_serde, value_serde, grace_ms, topic, builder.supplier.get(), logging=builder.logging
        )

    return StoreBuilder(BufferSupplier(name), make, key_serde, value_serde, False, logging)
