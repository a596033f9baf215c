"""The base of buffers of records: a row for each record that waits, in RocksDB and in a changelog.

A key begins with the time of the record, so that rows lie in the order in which they leave; what follows is a matter of
each buffer. The value, here and in the changelog, is the v3 of ``values`` with the record as new value, and with a time
of 0. Each row goes to the changelog at once, with neither time nor headers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from pykstreams.core.errors import ProcessorStateError
from pykstreams.state.buffers.ordered_rows import Kept, OrderedRows
from pykstreams.state.buffers.values import pack_record, read_v3
from pykstreams.state.encoding.record_context import RawContext, without_message
from pykstreams.state.engines.durable import durable
from pykstreams.state.interfaces.engine import Engine
from pykstreams.state.interfaces.store import ChangelogRow, ChangelogWriter, RawRow, StoreContext, TaskStore
from pykstreams.state.layers.engine_store import EngineStore
from pykstreams.state.layers.store_serdes import bound_codec
from pykstreams.state.spec import StoreSupplier


class RecordBuffer(EngineStore):
    """A store of one operator; each kind of buffer says what its keys are and when its records leave.

    :param owner: who has them wait, for error messages, such as "join".
    :param topic: what serdes get as their topic, ``None`` for that of the changelog.
    """

    def __init__(
        self,
        name: str,
        serdes: tuple[Any, Any],
        engine: Engine,
        *,
        owner: str,
        topic: str | None = None,
        logging: bool = True,
    ) -> None:
        super().__init__(name, engine)
        self._serdes = serdes
        self._owner = owner
        self._topic = topic
        self._logging = logging
        self._log: ChangelogWriter | None = None
        self._begun = False
        self._rows = OrderedRows(engine, self._read)

    def init(self, context: StoreContext, root: TaskStore | None = None) -> None:
        codec = bound_codec(self._name, *self._serdes, self.layout, context, topic=self._topic)
        self._encode_key, self._decode_key = codec.encode_key, codec.decode_key
        self._encode, self._decode = codec.encode_value, codec.decode_value
        self._current = context.current
        self._engine.open(context)
        self._log = context.changelog(self._name) if self._logging else None
        self._open = True

    def raw_rows(self) -> Iterator[RawRow]:
        """Every row, as it is kept."""
        for key, packed in self._engine.scan(None, None, False):
            yield key, packed, None, ()

    def approximate_num_entries(self) -> int:
        """About how many rows there are."""
        return self._engine.approximate_num_entries()

    def restore(self, rows: Sequence[ChangelogRow]) -> None:
        self._begun = False
        super().restore(rows)

    def _leave_task(self) -> None:
        self._begun = False
        super()._leave_task()

    def _begin(self) -> None:
        """Takes up, before the first use, what waits from before."""
        if not self._begun:
            self._check_open()
            self._take_up()
            self._begun = True

    @abstractmethod
    def _take_up(self) -> None:
        """Finds out from the engine how far the buffer had come."""

    def _add(self, row_key: bytes, value: Any, raw: RawContext) -> None:
        data = self._encode(value, raw[2])
        packed = pack_record(data, raw)
        self._rows.add(row_key, packed, (data, without_message(raw)))
        if self._log is not None:
            self._log(row_key, packed, None, ())

    def _remove(self, row_key: bytes) -> None:
        self._engine.put(row_key, None)
        if self._log is not None:
            self._log(row_key, None, None, ())

    def _read(self, row_key: bytes, packed: bytes) -> Kept:
        try:
            value = read_v3(packed)[1]
        except ValueError as error:
            owner = self._owner
            raise ProcessorStateError(
                f"store {self._name!r}: the row of key {row_key!r} is no record that waits for a {owner}: {error}. Was "
                f"its changelog written by something else? Reset the application, or give the {owner} another name"
            ) from error
        return value.new, value.raw


class BufferSupplier(StoreSupplier[Engine]):
    """Makes the engine of a buffer."""

    metrics_scope = "rocksdb"

    def __init__(self, name: str) -> None:
        self.name = name

    def get(self) -> Engine:
        return durable(self.name)
