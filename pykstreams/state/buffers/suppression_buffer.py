"""The buffer of a suppression: the last change of each key, to be taken out by time and, at one time, by key.

A key keeps its place when it changes again before it is taken out. The buffer lives in memory; its changelog gets, at
each commit, one row for every key that has changed since: its value, or a tombstone where it was taken out
(``InMemoryTimeOrderedKeyValueChangeBuffer``, 4.3.1). Values are kept as bytes, so that nobody further up or down can
change them while they wait.

Invariant: the heap holds (time, key) of exactly the keys in the index, except while a changelog is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, Final, TypeAlias

from pykstreams.core.errors import InvalidStateStoreError, ProcessorStateError
from pykstreams.core.metrics.built_in.stores import BUFFER_COUNT, BUFFER_SIZE
from pykstreams.core.processor import CurrentRecord
from pykstreams.core.types import Change, Headers
from pykstreams.state.buffers.dirty_keys import DirtyKeys
from pykstreams.state.buffers.values import HEADERS, BufferValue, pack, read
from pykstreams.state.encoding.layout import PLAIN
from pykstreams.state.encoding.record_context import Origin, RawContext
from pykstreams.state.interfaces.store import ChangelogRow, ChangelogWriter, StoreContext, TaskStore
from pykstreams.state.layers.store_serdes import bound_codec
from pykstreams.state.spec import StoreBuilder, StoreSupplier

NEVER: Final = 2**63 - 1
"""The time of an empty buffer."""

NOT_BUFFERED: Final[Any] = object()
"""Stands for the prior value of a key that is not in the buffer."""

Emit: TypeAlias = Callable[[Any, Change[Any], RawContext], None]
"""Takes what leaves the buffer: key, change, and the record that brought the change."""


class SuppressionBuffer(TaskStore):
    """A store that only a suppression writes; made by ``suppression_buffer``."""

    can_be_released = True
    metrics_scope = "in-memory-suppression"

    def __init__(self, name: str, key_serde: object, value_serde: object) -> None:
        self._name = name
        self._serdes = key_serde, value_serde
        self._index: dict[bytes, tuple[int, BufferValue]] = {}
        self._heap: list[tuple[int, bytes]] = []
        self._dirty = DirtyKeys()
        self._log: ChangelogWriter | None = None
        self._open = False
        self.min_time = NEVER
        """The smallest time in the buffer."""
        self.size_bytes = 0
        """The size of keys and values, as Kafka Streams counts it."""

    @property
    def name(self) -> str:
        return self._name

    @property
    def persistent(self) -> bool:
        return False

    @property
    def is_open(self) -> bool:
        return self._open

    @property
    def uncommitted_bytes(self) -> int:
        """Nothing waits for a commit."""
        return 0

    @property
    def record_count(self) -> int:
        """The number of keys that wait."""
        return len(self._index)

    def init(self, context: StoreContext, root: TaskStore | None = None) -> None:
        codec = bound_codec(self._name, *self._serdes, PLAIN, context)
        self._encode_key, self._decode_key = codec.encode_key, codec.decode_key
        self._encode, self._decode = codec.encode_value, codec.decode_value
        self._current = context.current
        self._changelog = Origin(context.changelog_topic(self._name), context.task_id.partition, -1)
        self._log = context.changelog(self._name)
        tags = {"task_id": str(context.task_id), f"{self.metrics_scope}-state-id": self._name}
        self._sizes = context.metrics.sensor(BUFFER_SIZE, **tags)
        self._counts = context.metrics.sensor(BUFFER_COUNT, **tags)
        self._open = True

    def flush_metrics(self, now_ms: int) -> None:
        self._sizes.record(self.size_bytes, now_ms)
        self._counts.record(self.record_count, now_ms)

    def put(self, time: int, key: object, change: Change[object], raw: RawContext) -> None:
        """Keeps a change that ``raw`` brought; ``time`` is the place of a key that does not wait yet."""
        headers = raw[2]
        packed_key = self._packed_key(key, headers)
        new_value, old_value, _ = change
        old = None if old_value is None else self._encode(old_value, headers)
        new = None if new_value is None else self._encode(new_value, headers)
        known = self._index.get(packed_key)
        value = BufferValue(old if known is None else known[1].prior, old, new, raw)
        self._place(time, packed_key, value, known)
        if known is None:
            heappush(self._heap, (time, packed_key))
            if time < self.min_time:
                self.min_time = time
        if self._log is not None:
            self._dirty.add(packed_key)

    def max_time(self) -> int:
        """The largest time in the buffer, -1 when it is empty; reads all of it."""
        return max((time for time, _ in self._heap), default=-1)

    def evict_until(self, time: int, emit: Emit) -> None:
        """Removes everything of that time or before."""
        while self._heap and self.min_time <= time:
            self.evict_first(emit)

    def evict_first(self, emit: Emit) -> None:
        """Removes the first; it stays when ``emit`` raises, and can be seen while ``emit`` runs."""
        heap, headers = self._heap, _headers_of(self._current)
        packed_key = heap[0][1]
        value = self._index[packed_key][1]
        new, old = value.new, value.old
        change = (
            None if new is None else self._decode(new, headers),
            None if old is None else self._decode(old, headers),
            True,
        )
        emit(self._decode_key(packed_key, headers), change, value.raw)
        heappop(heap)
        del self._index[packed_key]
        if self._log is not None:
            self._dirty.add(packed_key)
        self.size_bytes -= 8 + len(packed_key) + value.size
        self.min_time = heap[0][0] if heap else NEVER

    def prior_value(self, key: object) -> Any:
        """The row of a key from before it began to wait; ``NOT_BUFFERED`` where it does not wait."""
        headers = _headers_of(self._current)
        known = self._index.get(self._packed_key(key, headers))
        if known is None:
            return NOT_BUFFERED
        prior = known[1].prior
        return None if prior is None else self._decode(prior, headers)

    def restore(self, rows: Sequence[ChangelogRow]) -> None:
        index = self._index
        for key, data, timestamp, headers in rows:
            known = index.get(key)
            if data is None:
                if known is not None:
                    del index[key]
                    self.size_bytes -= 8 + len(key) + known[1].size
                continue
            prior = None if known is None else known[1].prior
            try:
                time, value = read(data, headers, timestamp, prior, self._changelog)
            except ValueError as error:
                raise ProcessorStateError(
                    f"store {self._name!r} cannot be restored: the row of key {key!r} in its changelog "
                    f"{self._changelog.topic()!r} is no row of a suppression buffer: {error}. Was the changelog "
                    "written by something else? Reset the application, or give the suppression another name"
                ) from error
            # As in Kafka Streams: a key that is known keeps its place, also where the changelog had a later one.
            self._place(time, key, value, known)

    def end_restore(self) -> None:
        self._heap = [(time, key) for key, (time, _) in self._index.items()]
        heapify(self._heap)
        self.min_time = self._heap[0][0] if self._heap else NEVER

    def flush_cache(self) -> None:
        """Writes the changelog of what has changed since the last commit."""
        log = self._log
        if log is None or not self._dirty:
            return
        for key in self._dirty.in_order():
            known = self._index.get(key)
            if known is None:
                log(key, None, None, ())
            else:
                log(key, pack(*known), None, HEADERS)
        self._dirty.clear()

    def commit(self, changelog_offset: int | None) -> None:
        """There is nothing to keep."""

    def committed_offset(self) -> int | None:
        return None

    def release(self) -> None:
        self.end_restore()  # which nobody else does where all of its changelog was read but the holes at its end
        self._open = False

    def close(self) -> None:
        self._open = False
        self._index.clear()
        self._heap.clear()
        self._dirty.clear()
        self.min_time, self.size_bytes = NEVER, 0

    def _place(self, time: int, key: bytes, value: BufferValue, known: tuple[int, BufferValue] | None) -> None:
        if known is None:
            self._index[key] = (time, value)
            self.size_bytes += 8 + len(key) + value.size
        else:
            self._index[key] = (known[0], value)
            self.size_bytes += value.size - known[1].size

    def _packed_key(self, key: object, headers: Headers) -> bytes:
        if not self._open:
            raise InvalidStateStoreError(f"store {self._name!r} is not open: its task was closed or not yet started")
        return self._encode_key(key, headers)


class _BufferSupplier(StoreSupplier[SuppressionBuffer]):
    """Makes buffers; there are no layers over them."""

    metrics_scope = "in-memory-suppression"

    def __init__(self, name: str, key_serde: object, value_serde: object) -> None:
        self.name = name
        self._serdes = key_serde, value_serde

    def get(self) -> SuppressionBuffer:
        return SuppressionBuffer(self.name, *self._serdes)


def suppression_buffer(
    name: str,
    key_serde: object = None,
    value_serde: object = None,
    *,
    logging: bool = True,
    topic_config: Mapping[str, str] | None = None,
) -> StoreBuilder[SuppressionBuffer]:
    """A buffer; serdes that are ``None`` are the defaults of the configuration."""
    supplier = _BufferSupplier(name, key_serde, value_serde)

    def make(builder: StoreBuilder[SuppressionBuffer]) -> SuppressionBuffer:
        return supplier.get()

    return StoreBuilder(supplier, make, key_serde, value_serde, False, logging, dict(topic_config or {}))


def _headers_of(current: CurrentRecord) -> Headers:
    return () if current.raw is None else current.raw[2]
