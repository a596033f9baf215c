"""An engine in which each row has a second one, so that it can be found in another order, too.

Second rows lie in the same engine, so that both are written in one batch, and behind all others: their prefix is the
prefix of a composed key with the highest bit set. Invariant: a scan from outside shows first rows only.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Final

from pykstreams.state.engines.engine_over import EngineOver
from pykstreams.state.interfaces.engine import Engine, Row, Write
from pykstreams.state.interfaces.store import StoreContext

_PREFIX: Final = struct.Struct(">Q")
_SECOND: Final = 1 << 63
_FIRST_SECOND: Final = _PREFIX.pack(_SECOND)


def second_prefix(number: int) -> bytes:
    """The prefix of the second rows of a segment, or of a time."""
    return _PREFIX.pack(_SECOND + number)


def number_of_second(key: bytes) -> int:
    """The number for which ``second_prefix`` gave the prefix of that key."""
    number: int = _PREFIX.unpack_from(key)[0]
    return number - _SECOND


class SecondRows(EngineOver, ABC):
    """An engine over an engine; subclasses say what the second rows are, and read them."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.get = engine.get

    def open(self, context: StoreContext) -> None:
        self._engine.open(context)
        self.get = self._engine.get

    def put(self, key: bytes, packed: bytes | None) -> None:
        self._engine.put(*self._second(key, packed))
        self._engine.put(key, packed)

    def write(self, rows: Iterable[Write]) -> None:
        self._engine.write([each for row in rows for each in (self._second(*row), row)])

    def scan(self, lower: bytes | None, upper: bytes | None, reverse: bool) -> Iterator[Row]:
        return self._engine.scan(lower, _FIRST_SECOND if upper is None else min(upper, _FIRST_SECOND), reverse)

    def drop(self, lower: bytes, upper: bytes) -> None:
        super().drop(lower, upper)
        super().drop(self._second_bound(lower), self._second_bound(upper))

    def approximate_num_entries(self) -> int:
        return self._engine.approximate_num_entries() // 2

    @abstractmethod
    def _second(self, key: bytes, packed: bytes | None) -> Write:
        """The second row of a row; ``None`` as its value deletes it, too."""

    @abstractmethod
    def _second_bound(self, bound: bytes) -> bytes:
        """Where the second rows of the rows from that bound on begin; bounds are those of whole segments."""
