"""The database of a store behind its write buffer: RocksDB, unless the context of the task brings another engine.

Suppliers make engines before anybody knows where they are opened, so which database it is is decided when it is opened.
A context that has ``durable_engine`` chooses: so a store can be opened outside of a worker, over rows in memory or over
a database that is only read (``state/bulk/offline.py``), and is the same store in all its layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, runtime_checkable

from pykstreams.state.engines.rocksdb import RocksDbEngine
from pykstreams.state.engines.transactional import DurableEngine, Range, WriteBuffer
from pykstreams.state.interfaces.engine import Engine, Scan, Write
from pykstreams.state.interfaces.store import StoreContext


@runtime_checkable
class ChoosesEngines(Protocol):
    """A ``StoreContext`` that says where rows are kept."""

    def durable_engine(self, name: str, prefix_bytes: int | None, form: str | None) -> DurableEngine:
        """Makes the database of a store, which is opened next; the other arguments are those of ``RocksDbEngine``."""
        ...


def durable(name: str, prefix_bytes: int | None = None, form: str | None = None) -> Engine:
    """Makes the engine of a store that outlives the process.

    :param prefix_bytes: how many bytes the prefixes have that scans look for most.
    :param form: the form of the rows, as ``disk_form`` keeps it; ``None`` where it never changes.
    """
    return WriteBuffer(_ChosenWhenOpened(name, prefix_bytes, form))


class _ChosenWhenOpened:
    """A database of which only the name is known yet."""

    def __init__(self, name: str, prefix_bytes: int | None, form: str | None) -> None:
        self._name = name
        self._prefix_bytes = prefix_bytes
        self._form = form
        self._engine: DurableEngine = RocksDbEngine(name, prefix_bytes, form)
        self.get: Callable[[bytes], bytes | None] = self._engine.get
        self.scan: Scan = self._engine.scan

    def open(self, context: StoreContext) -> None:
        if isinstance(context, ChoosesEngines):
            self._engine = context.durable_engine(self._name, self._prefix_bytes, self._form)
        self._engine.open(context)
        self.get, self.scan = self._engine.get, self._engine.scan

    def load(self, rows: Iterable[Write]) -> None:
        self._engine.load(rows)

    def end_load(self) -> None:
        self._engine.end_load()

    def write_batch(self, rows: Iterable[Write], offset: int | None, dropped: Iterable[Range] = ()) -> None:
        self._engine.write_batch(rows, offset, dropped)

    def committed_offset(self) -> int | None:
        return self._engine.committed_offset()

    def flushed_offset(self) -> int | None:
        return self._engine.flushed_offset()

    def approximate_num_entries(self) -> int:
        return self._engine.approximate_num_entries()

    def property_value(self, name: str) -> int | None:
        return self._engine.property_value(name)

    def statistics(self) -> str | None:
        return self._engine.statistics()

    def close(self) -> None:
        self._engine.close()
