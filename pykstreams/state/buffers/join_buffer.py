"""The buffer of a stream-table join with grace: records of the stream that wait, in the order of their times.

The layout of ``RocksDBTimeOrderedKeyValueBuffer`` and ``TimeFirstWindowKeySchema``, 4.3.1, here and in the changelog,
big-endian::

    key      00 | timestamp (8) | key | sequence (4)
    value    the v3 of ``values`` with the record as new value, and with a time of 0

The sequence tells records of one key and time apart; it starts with 1. Stream time is the highest timestamp of what was
put, after a restart of what still waits. Rows of the changelog carry neither time nor headers.

Kafka Streams restores such a changelog wrongly: it takes its keys for those of a window store. It also counts sequences
from 1 again after a restart, so that new records may take the place of waiting ones. Neither is done here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, Final, TypeAlias

from pykstreams.core.errors import ProcessorStateError
from pykstreams.state.buffers.values import BufferValue, pack, read_v3
from pykstreams.state.engine_store import EngineStore
from pykstreams.state.engines.engine import Engine
from pykstreams.state.engines.rocksdb import RocksDbEngine
from pykstreams.state.engines.transactional import WriteBuffer
from pykstreams.state.record_context import RawContext
from pykstreams.state.rows import null_key
from pykstreams.state.spec import StoreBuilder, StoreSupplier
from pykstreams.state.store import ChangelogRow, ChangelogWriter, RawRow, StoreContext, TaskStore
from pykstreams.state.store_serdes import bound_codec

Emit: TypeAlias = Callable[[Any, Any, RawContext], None]
"""Takes what leaves the buffer: key, value, and the record it was part of."""

_START: Final = struct.Struct(">Bq")
_SEQUENCE: Final = struct.Struct(">i")
_LAST_SEQUENCE: Final = 2**31 - 1


class JoinBuffer(EngineStore):
    """The store, which only its join uses; made by ``join_buffer``.

    :param topic: what serdes are told as their topic: the name of the join.
    """

    def __init__(
        self, name: str, key_serde: Any, value_serde: Any, grace_ms: int, topic: str, engine: Engine, *, logging: bool
    ) -> None:
        super().__init__(name, engine)
        self._serdes = key_serde, value_serde
        self._grace_ms = grace_ms
        self._topic = topic
        self._logging = logging
        self._log: ChangelogWriter | None = None
        self._begun = False
        self._stream_time = -1
        self._sequence = 0
        self._times: list[int] = []
        self._known_times: set[int] = set()

    def init(self, context: StoreContext, root: TaskStore | None = None) -> None:
        codec = bound_codec(self._name, *self._serdes, self.layout, context, topic=self._topic)
        self._encode_key, self._decode_key = codec.encode_key, codec.decode_key
        self._encode, self._decode = codec.encode_value, codec.decode_value
        self._current = context.current
        self._engine.open(context)
        self._log = context.changelog(self._name) if self._logging else None
        self._open = True

    def put(self, key: Any, value: Any, raw: RawContext) -> bool:
        """Lets a record wait; false for one that is too late to wait, which must be joined at once."""
        self._begin()
        if key is None:
            raise null_key(self._name)
        _, timestamp, headers = raw
        if timestamp < self._stream_time - self._grace_ms:
            return False
        self._sequence = (self._sequence + 1) & _LAST_SEQUENCE
        packed_key = _START.pack(0, timestamp) + self._encode_key(key, headers) + _SEQUENCE.pack(self._sequence)
        packed = pack(0, BufferValue(None, None, self._encode(value, headers), raw))
        self._engine.put(packed_key, packed)
        if self._log is not None:
            self._log(packed_key, packed, None, ())
        self._note(timestamp)
        return True

    def evict(self, emit: Emit) -> None:
        """Takes out what is older than stream time by the grace, in order; a record stays when ``emit`` raises."""
        self._begin()
        times, due = self._times, self._stream_time - self._grace_ms
        if not times or times[0] > due:
            return
        raw = self._current.raw
        headers = () if raw is None else raw[2]
        for packed_key, packed in self._engine.scan(_START.pack(0, times[0]), _START.pack(0, due + 1), False):
            value = self._value(packed_key, packed)
            key = self._decode_key(packed_key[_START.size : -_SEQUENCE.size], headers)
            emit(key, self._decode(value.new, headers), value.raw)
            self._engine.put(packed_key, None)
            if self._log is not None:
                self._log(packed_key, None, None, ())
        while times and times[0] <= due:
            self._known_times.discard(heappop(times))

    def raw_rows(self) -> Iterator[RawRow]:
        """Every record that waits, as it is kept."""
        for key, packed in self._engine.scan(None, None, False):
            yield key, packed, None, ()

    def approximate_num_entries(self) -> int:
        """About how many records wait."""
        return self._engine.approximate_num_entries()

    def restore(self, rows: Sequence[ChangelogRow]) -> None:
        self._begun = False
        super().restore(rows)

    def close(self) -> None:
        self._begun = False
        super().close()

    def _begin(self) -> None:
        """Reads once what waits from before: its times, and how far time and sequence have come."""
        if self._begun:
            return
        self._check_open()
        self._sequence = 0
        self._known_times.clear()
        for key, _ in self._engine.scan(None, None, False):
            self._known_times.add(_START.unpack_from(key)[1])
            self._sequence = max(self._sequence, _SEQUENCE.unpack_from(key, len(key) - _SEQUENCE.size)[0])
        self._times = list(self._known_times)
        heapify(self._times)
        self._stream_time = max(self._times, default=-1)
        self._begun = True

    def _note(self, timestamp: int) -> None:
        if timestamp > self._stream_time:
            self._stream_time = timestamp
        if timestamp not in self._known_times:
            self._known_times.add(timestamp)
            heappush(self._times, timestamp)

    def _value(self, key: bytes, packed: bytes) -> BufferValue:
        try:
            return read_v3(packed)[1]
        except ValueError as error:
            raise ProcessorStateError(
                f"store {self._name!r}: the row of key {key!r} is no record that waits for a join: {error}. Was its "
                "changelog written by something else? Reset the application, or give the join another name"
            ) from error


class _BufferSupplier(StoreSupplier[Engine]):
    """Makes the engine of a buffer."""

    metrics_scope = "rocksdb"

    def __init__(self, name: str) -> None:
        self.name = name

    def get(self) -> Engine:
        return WriteBuffer(RocksDbEngine(self.name))


def join_buffer(
    name: str, key_serde: Any, value_serde: Any, *, grace_ms: int, topic: str, logging: bool = True
) -> StoreBuilder[JoinBuffer]:
    """A buffer; serdes that are ``None`` are the defaults of the configuration."""

    def make(builder: StoreBuilder[JoinBuffer]) -> JoinBuffer:
        return JoinBuffer(
            name, key_serde, value_serde, grace_ms, topic, builder.supplier.get(), logging=builder.logging
        )

    return StoreBuilder(_BufferSupplier(name), make, key_serde, value_serde, False, logging)
