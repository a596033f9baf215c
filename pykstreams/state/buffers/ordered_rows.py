"""The rows of a buffer in the order of their keys, to be taken from the front: what buffers of records go by.

Rows lie in an engine, whose scans cost many times what a row costs that is at hand. So the first ones are in memory,
too, as records, and are read from the engine many at a time.

Invariant: the heap holds exactly the rows that wait and whose keys are below ``_beyond``; ``None`` there means all.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import islice
from typing import Final, TypeAlias

from pykstreams.state.encoding.record_context import RawContext
from pykstreams.state.interfaces.engine import Engine, after

ROWS_AT_HAND: Final = 4096
"""How many rows are read at once; about twice as many are in memory at most."""

Kept: TypeAlias = tuple[bytes | None, RawContext]
"""The value of a record, and where it came from."""


class OrderedRows:
    """The rows of an engine by their keys, the first ones at hand; ``start`` comes before everything else.

    ``read(key, packed)`` reads a row.
    """

    __slots__ = ("_at_hand", "_beyond", "_engine", "_heap", "_read")

    def __init__(self, engine: Engine, read: Callable[[bytes, bytes], Kept], at_hand: int = ROWS_AT_HAND) -> None:
        self._engine = engine
        self._read = read
        self._at_hand = at_hand
        self._heap: list[tuple[bytes, Kept]] = []
        self._beyond: bytes | None = b""

    def start(self, first: bytes = b"") -> None:
        """Begins anew with all rows of the engine from that key on."""
        self._heap.clear()
        self._beyond = first

    def add(self, key: bytes, packed: bytes, kept: Kept) -> None:
        """Puts a row, packed and as it is read; no other one may have its key."""
        self._engine.put(key, packed)
        beyond = self._beyond
        if beyond is not None and key >= beyond:
            return
        heap = self._heap
        heappush(heap, (key, kept))
        if len(heap) > 2 * self._at_hand:
            heap.sort()
            self._beyond = heap[self._at_hand][0]
            del heap[self._at_hand :]

    def first(self, below: bytes) -> tuple[bytes, Kept] | None:
        """The first row if its key is below that one."""
        heap = self._heap
        if not heap:
            beyond = self._beyond
            if beyond is None or beyond >= below:
                return None
            read, at_hand = self._read, self._at_hand
            rows = islice(self._engine.scan(beyond, None, False), at_hand)
            heap += [(key, read(key, packed)) for key, packed in rows]
            self._beyond = after(heap[-1][0]) if len(heap) == at_hand else None
            if not heap:
                return None
        row = heap[0]
        return row if row[0] < below else None

    def pop(self) -> None:
        """Removes the first row from the order, which ``first`` gave just before; it stays in the engine."""
        heappop(self._heap)
