"""The columns of the batches between two stages, and in which order they are sorted there.

A row without ``key`` between ``fold`` and ``write`` is a note: its ``value`` (JSON) belongs to the report of the task.
Null keys come first, so the notes of a task are read before its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, cast

import pyarrow as pa

from pykstreams.bulk.targets.target import EncodedRow
from pykstreams.core.types import Headers
from pykstreams.state.encoding.layout import pack_headers, unpack_headers
from pykstreams.state.interfaces.engine import Row

ENCODED: Final = pa.schema(
    [
        ("task", pa.int32()),
        ("key", pa.binary()),
        ("time", pa.int64()),
        ("partition_time", pa.int64()),
        ("order", pa.int64()),
        ("value", pa.binary()),
        ("headers", pa.binary()),
        ("reason", pa.string()),
    ]
)
"""Encoded rows.

``task`` is the number of the task that folds them, and ``order`` says where they stood in the source, which counts
where times are equal. ``partition_time`` is that by which rows of one key are sorted, and ``time`` what a row carries.
They differ where of the records of a key in a topic the last one counts: there it is the highest time in the partition
so far, so that the records of a partition stay in the order of offsets, and several partitions are merged as workers
merge them, which go by the first record of each queue.

A row with a ``reason`` was refused, and ``order`` then says how many such rows it stands for.
"""

ROWS: Final = pa.schema([("key", pa.binary()), ("value", pa.binary())])
"""Rows of an engine."""

REPORT: Final = pa.schema([("task", pa.int32()), ("report", pa.string())])
"""The columns of the report of a task to the driver."""

BY_KEY: Final = ("key", "partition_time", "order", "value")
BY_TIME: Final = ("time", "key", "order", "value")
OF_ROWS: Final = ("key",)

CHUNK: Final = 10_000


class EncodedColumns:
    """Encoded rows that are becoming a batch: columns that few rows have are kept by the places of these rows."""

    def __init__(self) -> None:
        self.tasks: list[int] = []
        self.keys: list[bytes | None] = []
        self.times: list[int] = []
        self.values: list[bytes | None] = []
        self.orders: list[int] = []
        self.partition_times: dict[int, int] = {}
        self.headers: dict[int, bytes] = {}
        self.reasons: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.tasks)

    def add(
        self,
        task: int,
        key: bytes | None,
        time: int,
        value: bytes | None,
        headers: Headers = (),
        *,
        order: int = 0,
        partition_time: int | None = None,
        reason: str | None = None,
    ) -> None:
        """Adds one row; its partition time is its own time, unless another is given."""
        if partition_time is not None:
            self.partition_times[len(self.tasks)] = partition_time
        if headers:
            self.headers[len(self.tasks)] = pack_headers(headers)
        if reason is not None:
            self.reasons[len(self.tasks)] = reason
        self.tasks.append(task)
        self.keys.append(key)
        self.times.append(time)
        self.orders.append(order)
        self.values.append(value)

    def batch(self) -> pa.RecordBatch:
        """Returns the rows, and forgets them."""
        count = len(self.tasks)
        times = pa.array(self.times, pa.int64())
        others = self.partition_times
        columns = (
            self.tasks,
            self.keys,
            times,
            [others.get(at, time) for at, time in enumerate(self.times)] if others else times,
            self.orders,
            self.values,
            _scattered(self.headers, count),
            _scattered(self.reasons, count),
        )
        arrays = [pa.array(column, field.type) for column, field in zip(columns, ENCODED, strict=True)]
        for column in (self.tasks, self.keys, self.times, self.values, self.orders):
            column.clear()
        for places in (self.partition_times, self.headers, self.reasons):
            places.clear()
        return pa.RecordBatch.from_arrays(arrays, schema=ENCODED)


def _scattered(found: Mapping[int, object], count: int) -> object:
    return [found.get(at) for at in range(count)] if found else pa.nulls(count)


def encoded_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[EncodedRow]:
    """The rows of batches of encoded rows; refused ones are not among them."""
    for batch in batches:
        packed = batch.column("headers")
        keys, times, values = (batch.column(name).to_pylist() for name in ("key", "time", "value"))
        if packed.null_count == batch.num_rows:
            found: object = zip(keys, times, values, [()] * len(keys), strict=True)
        else:
            headers = [() if raw is None else unpack_headers(raw) for raw in packed.to_pylist()]
            found = zip(keys, times, values, headers, strict=True)
        yield from cast("Iterator[EncodedRow]", found)


def batches_of_rows(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    """Rows of an engine as batches."""
    keys: list[bytes] = []
    values: list[bytes] = []
    for key, value in rows:
        keys.append(key)
        values.append(value)
        if len(keys) == CHUNK:
            yield _rows(keys, values)
            keys, values = [], []
    if keys:
        yield _rows(keys, values)


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[bytes | None, bytes]]:
    """The rows of batches, notes among them."""
    for batch in batches:
        yield from zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)


def note(text: str) -> pa.RecordBatch:
    """A batch of one note."""
    return pa.RecordBatch.from_arrays(
        [pa.array([None], pa.binary()), pa.array([text.encode()], pa.binary())], schema=ROWS
    )


def _rows(keys: list[bytes], values: list[bytes]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(keys, pa.binary()), pa.array(values, pa.binary())], schema=ROWS)
