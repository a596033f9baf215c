"""The buffer of an operator whose function is tried again: failed records wait here, and those of their keys behind.

The layout, here and in the changelog, big-endian; ``record_context`` tells what a context and what sized bytes are::

    key      sequence (8) | 00, or 01 and the key of the record
    value    attempts (4) | first failure (8) | due (8) | raw key, sized | raw value, sized | context | value, sized

Times are wall-clock ms. Raw key and value are those of the input record, null where no dead letter may need them. The
sequence counts the records that have begun to wait, so that those of one key lie in their order. It is committed beside
the offsets (``CommittedNumbers``), and a restart takes away rows that were put later, since their records are read
again. Rows of records that have left stay in the engine until the commit: one that is written early then has them.

Invariant: a record waits in the lane of its key, and only the first of a lane is tried. Records without key have a lane
each. ``_heads`` holds the first of each lane, but for one that is being tried.
"""

from __future__ import annotations

import struct
from collections import deque
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple, TypeAlias

from pykstreams.core.processor import CommittedNumbers
from pykstreams.core.types import Headers
from pykstreams.serdes.defaults import SerdeOrDefault
from pykstreams.state.buffers.logged_buffer import BufferSerdes, BufferSupplier, LoggedBuffer
from pykstreams.state.encoding.record_context import KeptMessage, PackedReader, RawContext, pack_context, sized
from pykstreams.state.interfaces.engine import Engine
from pykstreams.state.spec import StoreBuilder

Lane: TypeAlias = "bytes | int"
"""The place of a lane: the key of its records in bytes, or the sequence of the only one, which has no key."""

_SEQUENCE: Final = struct.Struct(">q")
_TRIALS: Final = struct.Struct(">iqq")


class Trials(NamedTuple):
    """How often a record has failed, when it did first, and when it is tried again, in wall-clock ms."""

    attempts: int
    first_failure: int
    due: int


UNTRIED: Final = Trials(0, -1, -1)
"""Those of a record that waits behind others of its key; it is due as soon as it is the first of them."""


class Waiting(NamedTuple):
    """A record that is due, still in bytes; ``sequence``, ``lane`` and ``data`` are the buffer's own."""

    sequence: int
    lane: Lane
    data: bytes | None
    raw: RawContext
    trials: Trials


class RetryBuffer(LoggedBuffer):
    """The store, which only its operator uses; made by ``retry_buffer``."""

    def __init__(self, name: str, serdes: BufferSerdes, engine: Engine, *, logging: bool = True) -> None:
        super().__init__(name, serdes, engine, owner="retry", logging=logging)
        self._numbers: CommittedNumbers
        self._sequence_name = f"{name}.sequence"
        self._sequence = 0
        self._lanes: dict[Lane, deque[int]] = {}
        self._heads: list[tuple[int, int, Lane]] = []
        """A heap: when the first of a lane is due, its sequence, its lane."""
        self._count = 0
        self._gone: list[bytes] = []
        """The rows that have left since the last commit."""
        self._stale: list[bytes] = []
        """The rows whose records are read again."""

    def __len__(self) -> int:
        return self._count

    def follow(self, numbers: CommittedNumbers) -> None:
        """Goes back to how far the last commit had come, and keeps the numbers up to date; before the first use."""
        self._numbers = numbers
        self._begin()

    @property
    def next_sequence(self) -> int:
        """The sequence of the record that begins to wait next."""
        return self._sequence + 1

    def keeps(self, key: object, headers: Headers) -> bool:
        """Whether a record of that key waits; never for null."""
        return key is not None and self._encode_key(key, headers) in self._lanes

    def put(self, key: object, value: object, raw: RawContext, trials: Trials) -> None:
        """Lets a record wait as the last one of its key."""
        self._check_open()
        headers = raw[2]
        raw_key = None if key is None else self._encode_key(key, headers)
        data = self._encode(value, headers)
        self._sequence = sequence = self._sequence + 1
        lane = sequence if raw_key is None else raw_key
        row_key = _row_key(sequence, lane)
        self._write(row_key, trials, self._packed_record(raw, data))
        self._numbers.put(self._sequence_name, sequence)
        waiting = self._lanes.setdefault(lane, deque())
        if not waiting:
            heappush(self._heads, (trials.due, sequence, lane))
        waiting.append(sequence)
        self._count += 1

    @property
    def next_due(self) -> int | None:
        """When the next record is due, ``None`` where none waits."""
        return self._heads[0][0] if self._heads else None

    def take(self, now: int) -> Waiting | None:
        """Returns a record that is due; ``None`` where none is. ``put_back`` or ``remove`` must follow."""
        heads = self._heads
        if not heads or heads[0][0] > now:
            return None
        _, sequence, lane = heappop(heads)
        row_key = _row_key(sequence, lane)
        packed = self._engine.get(row_key)
        try:
            trials, raw, data = _read(packed or b"")
        except ValueError as error:
            raise self._unreadable(row_key, error) from error
        return Waiting(sequence, lane, data, raw, trials)

    def record(self, waiting: Waiting) -> tuple[object, object]:
        """Key and value of a record."""
        lane, headers = waiting.lane, waiting.raw[2]
        key = None if isinstance(lane, int) else self._decode_key(lane, headers)
        return key, self._decode(waiting.data, headers)

    def put_back(self, waiting: Waiting, trials: Trials) -> None:
        """Lets a record wait on that has failed once more."""
        row_key = _row_key(waiting.sequence, waiting.lane)
        packed = self._engine.get(row_key) or b""
        self._write(row_key, trials, packed[_TRIALS.size :])
        heappush(self._heads, (trials.due, waiting.sequence, waiting.lane))

    def remove(self, waiting: Waiting) -> None:
        """Removes a record; the next one of its key is the first then."""
        lane = self._lanes[waiting.lane]
        lane.popleft()
        if lane:
            heappush(self._heads, (UNTRIED.due, lane[0], waiting.lane))
        else:
            del self._lanes[waiting.lane]
        self._count -= 1
        row_key = _row_key(waiting.sequence, waiting.lane)
        self._gone.append(row_key)
        self._write_log(row_key, None)

    def flush_cache(self) -> None:
        """Removes the rows of records that are read again, and sees to it that the commit has a sequence."""
        if self._begun and self._numbers.get(self._sequence_name) is None:
            self._numbers.put(self._sequence_name, self._sequence)
        if self._stale:
            self._gone += self._stale
            for row_key in self._stale:
                self._write_log(row_key, None)
            self._stale = []

    def commit(self, changelog_offset: int | None) -> None:
        gone, self._gone = self._gone, []
        for row_key in gone:
            self._engine.put(row_key, None)
        super().commit(changelog_offset)

    def _take_up(self) -> None:
        committed = self._numbers.get(self._sequence_name)
        self._sequence, self._count = committed or 0, 0
        self._lanes, self._gone, self._stale = {}, [], []
        heads: dict[Lane, tuple[int, int, Lane]] = {}
        for row_key, packed in self._engine.scan(None, None, False):
            sequence = _SEQUENCE.unpack_from(row_key)[0]
            self._sequence = max(self._sequence, sequence)  # no later record takes the place of one that goes
            if committed is not None and sequence > committed:
                self._stale.append(row_key)
                continue
            lane = row_key[_SEQUENCE.size + 1 :] if row_key[_SEQUENCE.size] else sequence
            self._lanes.setdefault(lane, deque()).append(sequence)
            self._count += 1
            if lane not in heads:
                heads[lane] = (Trials(*_TRIALS.unpack_from(packed)).due, sequence, lane)
        self._heads = [*heads.values()]
        heapify(self._heads)

    def _packed_record(self, raw: RawContext, data: bytes | None) -> bytes:
        message = raw[0]
        raw_key = raw_value = None
        if message is not None and self._current.keeps_messages:
            raw_key, raw_value = message.key(), message.value()
        return sized(raw_key) + sized(raw_value) + pack_context(raw) + sized(data)

    def _write(self, row_key: bytes, trials: Trials, record: bytes) -> None:
        packed = _TRIALS.pack(*trials) + record
        self._engine.put(row_key, packed)
        self._write_log(row_key, packed)


def retry_buffer(
    name: str, key_serde: SerdeOrDefault, value_serde: SerdeOrDefault, *, logging: bool = True
) -> StoreBuilder[RetryBuffer]:
    """A buffer; serdes that are ``None`` are the defaults of the configuration."""

    def make(builder: StoreBuilder[RetryBuffer]) -> RetryBuffer:
        return RetryBuffer(name, (key_serde, value_serde), builder.supplier.get(), logging=builder.logging)

    return StoreBuilder(BufferSupplier(name), make, key_serde, value_serde, False, logging)


def _row_key(sequence: int, lane: Lane) -> bytes:
    place = _SEQUENCE.pack(sequence)
    return place + b"\0" if isinstance(lane, int) else place + b"\1" + lane


def _read(packed: bytes) -> tuple[Trials, RawContext, bytes | None]:
    reader = PackedReader(packed)
    trials = Trials(reader.int32(), reader.int64(), reader.int64())
    raw_key, raw_value = reader.sized(), reader.sized()
    origin, timestamp, headers = reader.context()
    message = KeptMessage(origin, raw_key, raw_value) if origin.topic() else None  # a punctuator's has no topic
    return trials, (message, timestamp, headers), reader.sized()
