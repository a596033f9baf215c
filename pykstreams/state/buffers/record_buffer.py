"""The base of buffers that records leave in one order: a row for each record that waits, in RocksDB and in a changelog.

A key begins with the time of the record, so that rows lie in the order in which they leave; what follows is a matter of
each buffer. The value, here and in the changelog, is the v3 of ``values`` with the record as new value, and with a time
of 0.
"""

from __future__ import annotations

from typing import Any

from pykstreams.state.buffers.logged_buffer import BufferSerdes, LoggedBuffer
from pykstreams.state.buffers.ordered_rows import Kept, OrderedRows
from pykstreams.state.buffers.values import pack_record, read_v3
from pykstreams.state.encoding.record_context import RawContext, without_message
from pykstreams.state.interfaces.engine import Engine


class RecordBuffer(LoggedBuffer):
    """A store of one operator; each kind of buffer says what its keys are and when its records leave.

    Its parameters are those of ``LoggedBuffer``.
    """

    def __init__(
        self,
        name: str,
        serdes: BufferSerdes,
        engine: Engine,
        *,
        owner: str,
        topic: str | None = None,
        logging: bool = True,
    ) -> None:
        super().__init__(name, serdes, engine, owner=owner, topic=topic, logging=logging)
        self._rows = OrderedRows(engine, self._read)

    def _add(self, row_key: bytes, value: Any, raw: RawContext) -> None:
        data = self._encode(value, raw[2])
        packed = pack_record(data, raw)
        self._rows.add(row_key, packed, (data, without_message(raw)))
        self._write_log(row_key, packed)

    def _remove(self, row_key: bytes) -> None:
        self._engine.put(row_key, None)
        self._write_log(row_key, None)

    def _read(self, row_key: bytes, packed: bytes) -> Kept:
        try:
            value = read_v3(packed)[1]
        except ValueError as error:
            raise self._unreadable(row_key, error) from error
        return value.new, value.raw
