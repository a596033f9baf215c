"""The buffer of a re-ordered table: its records wait here until none can come any more that belongs before them.

The layout, here and in the changelog, big-endian::

    key      timestamp (8) | sequence (8) | key
    value    see ``record_buffer``

The sequence counts the records that were put, so that those of one time leave as they came. Stream time is the highest
timestamp of what was put. Both are committed beside the offsets (``CommittedNumbers``), and a restart goes back to
them: a row put later is taken away, since its record is read again; and what was forwarded is taken away only when a
commit has shown that what came of it was sent. So also under at-least-once, where a changelog may be ahead of the
offsets and of what was sent, nothing is lost, and nothing waits twice.

Invariant: rows whose time is at most ``_done`` were forwarded; the second commit after that takes them away.
"""

from __future__ import annotations

import struct
from typing import Final, TypeAlias

from pykstreams.core.processor import CommittedNumbers
from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.state.buffers.logged_buffer import BufferSupplier
from pykstreams.state.buffers.ordered_rows import Kept
from pykstreams.state.buffers.record_buffer import RecordBuffer
from pykstreams.state.encoding.record_context import RawContext
from pykstreams.state.interfaces.engine import Engine
from pykstreams.state.spec import StoreBuilder

Waited: TypeAlias = tuple[bytes, Kept]
"""A record that is due, still in bytes."""

_START: Final = struct.Struct(">qq")
_TIME: Final = struct.Struct(">Q")  # as in ``_START``, and one more than the last timestamp
_NOTHING: Final = -1


class ReorderBuffer(RecordBuffer):
    """The store, which only the re-ordering operator uses; made by ``reorder_buffer``."""

    def __init__(
        self,
        name: str,
        key_serde: SerdeOrDefault,
        value_serde: SerdeOrDefault,
        grace_ms: int,
        engine: Engine,
        *,
        logging: bool = True,
    ) -> None:
        super().__init__(name, (key_serde, value_serde), engine, owner="table", logging=logging)
        self._grace_ms = grace_ms
        self._numbers: CommittedNumbers
        self._time_name, self._sequence_name = f"{name}.time", f"{name}.sequence"
        self._stream_time = self._done = _NOTHING
        self._due = b""
        self._sequence = 0
        self._told = self._sent = self._removed = _NOTHING

    def follow(self, numbers: CommittedNumbers) -> None:
        """Goes back, with the first record, to how far the last commit had come, and keeps the numbers up to date."""
        self._numbers = numbers

    def put(self, key: object, value: object, raw: RawContext) -> bool:
        """Lets a record wait; false for one that comes later than the grace."""
        self._begin()
        _, timestamp, headers = raw
        if timestamp < self._done:
            return False
        sequence = self._sequence + 1
        self._add(_START.pack(timestamp, sequence) + self._encode_key(key, headers), value, raw)
        self._sequence = sequence
        self._numbers.put(self._sequence_name, sequence)
        if timestamp > self._stream_time:
            self._numbers.put(self._time_name, timestamp)
            self._advance(timestamp)
        return True

    def take(self) -> Waited | None:
        """Returns the next record that is due, in the order of time, then of arrival; ``None`` where none is."""
        row = self._rows.first(self._due)
        if row is not None:
            self._rows.pop()
        return row

    def record(self, waited: Waited) -> tuple[object, object, RawContext]:
        """Key and value of a record, and where it came from."""
        row_key, (data, raw) = waited
        headers = raw[2]
        return self._decode_key(row_key[_START.size :], headers), self._decode(data, headers), raw

    def flush_cache(self) -> None:
        """Removes what was forwarded before the last commit."""
        if self._sent > self._removed:
            self._remove_until(self._sent)
        self._told = self._done

    def commit(self, changelog_offset: int | None) -> None:
        super().commit(changelog_offset)
        self._sent = self._told

    def _take_up(self) -> None:
        time, sequence = self._numbers.get(self._time_name), self._numbers.get(self._sequence_name)
        self._stream_time = self._done = self._told = self._sent = self._removed = _NOTHING
        self._due, self._sequence = b"", sequence or 0
        if time is not None:
            self._advance(time)
        for row_key, _ in self._engine.scan(None, None, False):
            row_time, row_sequence = _START.unpack_from(row_key)
            if row_time <= self._done or (sequence is not None and row_sequence > sequence):
                self._remove(row_key)
            else:
                self._sequence = max(self._sequence, row_sequence)
        self._rows.start(self._due)

    def _advance(self, timestamp: int) -> None:
        self._stream_time = timestamp
        if timestamp >= self._grace_ms:
            self._done = timestamp - self._grace_ms
            self._due = _TIME.pack(self._done + 1)

    def _remove_until(self, time: int) -> None:
        """Removes the rows up to that time; those before the last such time are gone already."""
        for row_key, _ in self._engine.scan(_TIME.pack(max(self._removed, 0)), _TIME.pack(time + 1), False):
            self._remove(row_key)
        self._removed = time


def reorder_buffer(
    name: str, key_serde: SerdeOrDefault, value_serde: SerdeOrDefault, *, grace_ms: int, logging: bool = True
) -> StoreBuilder[ReorderBuffer]:
    """A buffer; serdes that are ``None`` are the defaults of the configuration."""

    def make(builder: StoreBuilder[ReorderBuffer]) -> ReorderBuffer:
        return ReorderBuffer(name, key_serde, value_serde, grace_ms, builder.supplier.get(), logging=builder.logging)

    return StoreBuilder(BufferSupplier(name), make, key_serde, value_serde, False, logging)
