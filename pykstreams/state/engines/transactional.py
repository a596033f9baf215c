"""Writes wait in memory until they are committed; reads and scans see through them.

Invariants: the durable engine never claims an offset that its rows do not stand for. A commit writes all waiting rows
and their offset in one batch. Under at-least-once, rows that wait in too great a number are written early, without
an offset: what is durable then lies ahead of its offset, and reading the changelog again from there sets it right.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final, Protocol, TypeAlias

from pykstreams.state.engines.ordered import OrderedKeys, merged
from pykstreams.state.interfaces.engine import Row, Write
from pykstreams.state.interfaces.store import StoreContext

UNCOMMITTED_LIMIT_BYTES: Final = 64 << 20
"""How many bytes of keys and values wait at most in one store before they are written early."""

_ROW_BYTES: Final = 64
"""About how many bytes a waiting row takes besides its key and value."""


Range: TypeAlias = tuple[bytes, bytes]
"""The keys from the first up to, and without, the second."""


class DurableEngine(Protocol):
    """A database on disk that writes batches as a whole."""

    def open(self, context: StoreContext) -> None:
        """Opens it for one task."""
        ...

    def get(self, key: bytes, /) -> bytes | None:
        """The packed value of a key."""
        ...

    def scan(self, lower: bytes | None, upper: bytes | None, reverse: bool, /) -> Iterator[Row]:
        """The rows from ``lower`` up to, and without, ``upper``."""
        ...

    def load(self, rows: Iterable[Write]) -> None:
        """Writes many rows; they need not be durable before the next batch is."""
        ...

    def end_load(self) -> None:
        """Makes ready for reads after ``load``; without it, the first read does."""
        ...

    def write_batch(self, rows: Iterable[Write], offset: int | None, dropped: Iterable[Range] = ()) -> None:
        """Drops ranges, then writes rows, and the offset they stand for, all or nothing."""
        ...

    def committed_offset(self) -> int | None:
        """The offset last written."""
        ...

    def flushed_offset(self) -> int | None:
        """The offset that is left when the process is killed now, or a lower one."""
        ...

    def approximate_num_entries(self) -> int:
        """About how many rows there are."""
        ...

    def property_value(self, name: str) -> int | None:
        """A property of the database, such as ``rocksdb.estimate-num-keys``; ``None`` where it has none.

        Any thread may ask, also when it is closed.
        """
        ...

    def statistics(self) -> str | None:
        """The counts of the database as its text; ``None`` where it counts nothing. Any thread may ask."""
        ...

    def close(self) -> None:
        """Lets go of everything."""
        ...


class WriteBuffer:
    """A durable engine behind the writes that wait for their commit."""

    persistent = True

    def __init__(self, engine: DurableEngine, limit_bytes: int = UNCOMMITTED_LIMIT_BYTES) -> None:
        self._engine = engine
        self._limit = limit_bytes
        self._writes_early = True
        self._pending: dict[bytes, bytes | None] = {}
        self._keys = OrderedKeys(self._pending)
        self._dropped: list[Range] = []
        self.uncommitted_bytes = 0

    def open(self, context: StoreContext) -> None:
        self._writes_early = not context.config.exactly_once
        self._engine.open(context)
        self._below = self._engine.get  # which database it is may have been chosen only now

    def property_value(self, name: str) -> int | None:
        return self._engine.property_value(name)

    def statistics(self) -> str | None:
        return self._engine.statistics()

    def get(self, key: bytes) -> bytes | None:
        pending = self._pending
        return pending[key] if key in pending else self._below(key)

    def put(self, key: bytes, packed: bytes | None) -> None:
        pending = self._pending
        size = 0 if packed is None else len(packed)
        if key in pending:
            old = pending[key]
            if old is not None:
                size -= len(old)
        else:
            size += len(key) + _ROW_BYTES
            if self._keys.awake:
                self._keys.add(key)
        pending[key] = packed
        self.uncommitted_bytes += size
        if self.uncommitted_bytes > self._limit and self._writes_early:
            self._flush(None)

    def scan(self, lower: bytes | None, upper: bytes | None, reverse: bool) -> Iterator[Row]:
        below = self._engine.scan(lower, upper, reverse)
        pending = self._pending
        if not pending:
            return below
        above = [(key, pending[key]) for key in self._keys.between(lower, upper, reverse)]
        return merged(above, below, reverse) if above else below

    def write(self, rows: Iterable[Write]) -> None:
        if self._pending:
            self._flush(None)
        self._engine.load(rows)

    def drop(self, lower: bytes, upper: bytes) -> None:
        self._dropped.append((lower, upper))

    def end_restore(self) -> None:
        self._engine.end_load()

    def commit(self, offset: int | None) -> None:
        if self._pending or self._dropped or offset is not None:
            self._flush(offset)

    def committed_offset(self) -> int | None:
        return self._engine.committed_offset()

    def flushed_offset(self) -> int | None:
        return self._engine.flushed_offset()

    def approximate_num_entries(self) -> int:
        waiting = sum(packed is not None for packed in self._pending.values())
        return self._engine.approximate_num_entries() + waiting

    def close(self) -> None:
        self._dropped.clear()
        self._pending.clear()
        self._keys.clear()
        self.uncommitted_bytes = 0
        self._engine.close()

    def _flush(self, offset: int | None) -> None:
        pending = self._pending
        keys = sorted(pending)  # neighbours meet in the caches of the processor: less than half of what a write takes
        for lower, upper in self._dropped:  # nothing was put into them since
            del keys[bisect_left(keys, lower) : bisect_left(keys, upper)]
        self._engine.write_batch(zip(keys, map(pending.__getitem__, keys), strict=True), offset, self._dropped)
        self._dropped.clear()
        self._pending.clear()
        self._keys.clear()
        self.uncommitted_bytes = 0
