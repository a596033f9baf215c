"""Records that wait for a partner in a left or outer join of streams: both sides', in the order of their times.

The layout of ``TimestampedKeyAndJoinSide``, ``LeftOrRightValue`` and ``ListValueStore``, 4.3.1, here and in the
changelog, big-endian::

    key      time (8 bytes) | side (1 byte: 1 left, 0 right) | key
    value    01 | count (4) | for each record of that key, time and side: length (4) | side (1) | value

So at one time the right side comes first. A row of the changelog has the time of the record that brought it about, and
no headers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, cast

from pykstreams.state.interfaces.engine import BytesStore, Engine
from pykstreams.state.interfaces.store import RawRow, StoreContext, TaskStore
from pykstreams.state.layers.changelogging import ChangeLogging
from pykstreams.state.layers.engine_store import EngineStore
from pykstreams.state.layers.rows import KeyEncoder
from pykstreams.state.layers.store_serdes import bound_codec
from pykstreams.state.spec import StoreBuilder

_PLACE: Final = struct.Struct(">q?")
_COUNT: Final = struct.Struct(">Bi")
_LENGTH: Final = struct.Struct(">i")
_MANY: Final = 1
"""Marks a list of entries of different sizes (``ListSerializer``, clients 4.3.1)."""


class JoinProgress:
    """How far both sides of one join have come in one task.

    ``earliest`` is a time from which records may wait, ``None`` where none is known. After a look at the store it is
    the time of the last record that was looked at, as in Kafka Streams, so some results come later than they might.
    """

    __slots__ = ("earliest", "next_look", "stream_time")

    def __init__(self) -> None:
        self.stream_time = -1
        self.earliest: int | None = None
        self.next_look = 0
        """The wall-clock time in ms before which nobody looks for closed windows."""

    def note(self, timestamp: int) -> None:
        """Notes a record that begins to wait."""
        if self.earliest is None or timestamp < self.earliest:
            self.earliest = timestamp

    def may_have_closed(self, look_ahead: int) -> bool:
        """Whether the window of the earliest record may have closed, ``look_ahead`` ms after it.

        Where no record is known somebody looks nevertheless, since records may have been restored; not so where
        ``look_ahead`` is zero or less (a long overflows in ``emitNonJoinedOuterRecords``, 4.3.1, or does not).
        """
        if self.earliest is None:
            return look_ahead > 0
        return self.earliest + look_ahead < self.stream_time


class WaitingRecords(EngineStore):
    """The store, which only the two sides of its join use; made by ``waiting_records``."""

    def __init__(self, name: str, serdes: tuple[object, object, object], engine: Engine, *, logging: bool) -> None:
        super().__init__(name, engine)
        self._serdes = serdes
        self._logging = logging
        self.progress = JoinProgress()

    def init(self, context: StoreContext, root: TaskStore | None = None) -> None:
        key_serde, left_serde, right_serde = self._serdes
        left = bound_codec(self._name, key_serde, left_serde, self.layout, context)
        right = bound_codec(self._name, key_serde, right_serde, self.layout, context)
        self._encode_key: KeyEncoder = left.encode_key
        self._decode_key = left.decode_key
        self._encode = {True: left.encode_value, False: right.encode_value}
        self._decode = {True: left.decode_value, False: right.decode_value}
        self._engine.open(context)
        self._top: BytesStore = self._engine
        log = context.changelog(self._name) if self._logging else None
        if log is not None:
            self._top = ChangeLogging(self._engine, self.layout, log, context.current, self._name)
        self.progress = JoinProgress()
        self._open = True

    def add(self, key: object, time: int, left: bool, value: object) -> None:
        """Lets a record wait, after those of the same key, time and side."""
        top = self._checked()
        raw = _PLACE.pack(time, left) + self._encode_key(key, ())
        data = self._encode[left](value, ())
        if data is None:  # as in Kafka Streams: a value without bytes takes its predecessors away
            top.put(raw, None)
            return
        old = top.get(raw)
        count, entries = (0, b"") if old is None else (_COUNT.unpack_from(old)[1], old[_COUNT.size :])
        entry = (_LENGTH.pack(1 + len(data)), b"\1" if left else b"\0", data)
        top.put(raw, b"".join((_COUNT.pack(_MANY, count + 1), entries, *entry)))

    def discard(self, key: object, time: int, left: bool) -> None:
        """Removes all records of a key, time and side, if any wait."""
        top = self._checked()
        raw = _PLACE.pack(time, left) + self._encode_key(key, ())
        if top.get(raw) is not None:
            top.put(raw, None)

    def remove(self, raw: bytes) -> None:
        """Removes the records that ``scan`` gave with this raw key; that is written to the changelog in any case."""
        self._checked().put(raw, None)

    def scan(self) -> Iterator[tuple[bytes, int, bool, object, object]]:
        """All that wait now, in order: raw key, time, whether it is of the left side, key, value."""
        for raw, time, left, data in self._entries():
            yield raw, time, left, self._decode_key(raw[_PLACE.size :], ()), self._decode[left](data[1:], ())

    def raw_rows(self) -> Iterator[RawRow]:
        """Every record that waits, as it is kept."""
        for raw, _, _, data in self._entries():
            yield raw, data, None, ()

    def approximate_num_entries(self) -> int:
        """About how many keys, times and sides there are."""
        self._checked()
        return self._engine.approximate_num_entries()

    def _entries(self) -> Iterator[tuple[bytes, int, bool, bytes]]:
        for raw, packed in self._checked().scan(None, None, False):
            time, left = _PLACE.unpack_from(raw)
            at = _COUNT.size
            while at < len(packed):
                start = at + _LENGTH.size
                at = start + _LENGTH.unpack_from(packed, at)[0]
                yield raw, time, left, packed[start:at]

    def _checked(self) -> BytesStore:
        self._check_open()
        return self._top


def waiting_records(builder: StoreBuilder[WaitingRecords]) -> WaitingRecords:
    """Builds the store; the value serde of the builder is the pair of both sides' serdes."""
    left, right = cast("tuple[object, object]", builder.value_serde)
    serdes = (builder.key_serde, left, right)
    return WaitingRecords(builder.name, serdes, builder.supplier.get(), logging=builder.logging)
