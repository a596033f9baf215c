"""A durable engine of one layout under a store of another: what its layout does not keep is lost.

So a timestamped store over ``Stores.persistent_key_value_store`` gives ``NO_TIMESTAMP`` for what its cache does not
know (``KeyValueToTimestampedKeyValueByteStoreAdapter``, ``PlainToHeadersStoreAdapter``,
``TimestampedToHeadersStoreAdapter``, 4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pykstreams.state.encoding.layout import PLAIN, Layout
from pykstreams.state.encoding.parts import TAKEN_IN_PARTS, parts_taker, values_scanner
from pykstreams.state.engines.engine_over import EngineOver
from pykstreams.state.interfaces.engine import Engine, Row, Write
from pykstreams.state.interfaces.store import StoreContext


class AdaptedEngine(EngineOver):
    """An engine whose rows are converted on the way in and out."""

    def __init__(self, engine: Engine, kept: Layout, shown: Layout) -> None:
        super().__init__(engine)
        self._kept, self._shown = kept, shown
        self._show = _converter(kept, shown)
        self.put_parts = parts_taker(engine, kept) if shown in TAKEN_IN_PARTS else None
        self.scan_values = values_scanner(engine, kept)

    def open(self, context: StoreContext) -> None:
        self._engine.open(context)

    def get(self, key: bytes) -> bytes | None:
        packed = self._engine.get(key)
        return None if packed is None else self._show(packed)

    def put(self, key: bytes, packed: bytes | None) -> None:
        self._engine.put(key, self._to_keep(packed))

    def scan(self, lower: bytes | None, upper: bytes | None, reverse: bool) -> Iterator[Row]:
        show = self._show
        return ((key, show(packed)) for key, packed in self._engine.scan(lower, upper, reverse))

    def write(self, rows: Iterable[Write]) -> None:
        self._engine.write([(key, self._to_keep(packed)) for key, packed in rows])

    def _to_keep(self, packed: bytes | None) -> bytes | None:
        return None if packed is None else self._kept.pack(*self._shown.unpack(packed))


def _converter(kept: Layout, shown: Layout) -> Callable[[bytes], bytes]:
    """Makes the function from a row as it is kept to one as it is shown."""
    if kept is PLAIN:
        head = shown.pack(*PLAIN.unpack(b""))  # all that comes before the value is the same in every row
        return lambda packed: head + packed
    return lambda packed: shown.pack(*kept.unpack(packed))
