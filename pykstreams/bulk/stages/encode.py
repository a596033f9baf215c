"""The first stage: rows of a user become encoded rows, each with the task that folds it.

Refused rows go to a task of their own, with the reason: so they are reported by a task as everything else, and
counted once however often a task is tried.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice
from typing import Final, TypeAlias, cast

import pyarrow as pa

from pykstreams.bulk.sources.header_columns import headers_of
from pykstreams.bulk.sources.python_objects import describe_row
from pykstreams.bulk.sources.row_files import file_of, in_file
from pykstreams.bulk.sources.rows import RowReader
from pykstreams.bulk.stages.batches import EncodedColumns
from pykstreams.bulk.stages.store_job import StoreJob
from pykstreams.bulk.targets.target import RowError, duplicate
from pykstreams.core.types import Headers
from pykstreams.runtime.tasks.failures import origin_of, said_of

_ORDER: Final = "offset"
"""The column of a topic's rows that says in which order they came."""

_MOST_ROWS_BITS: Final = 40
_PLACE: Final = "partition"

MarkedRows: TypeAlias = tuple[pa.RecordBatch, Sequence[bool] | None]
"""Rows, and which of them are superseded by a newer one of their key, if that is known."""


def encode(job: StoreJob, batches: Iterable[pa.RecordBatch], part: int) -> Iterator[pa.RecordBatch]:
    """Encodes the rows of a part of the source; ``RowError`` for one that cannot be taken, where the user wants the job
    to fail then.
    """
    return encode_marked(job, ((batch, None) for batch in batches), part)


def encode_marked(job: StoreJob, marked: Iterable[MarkedRows], part: int) -> Iterator[pa.RecordBatch]:
    """The same; a superseded row cannot be taken."""
    spec, name = job.spec, job.spec.store
    read = RowReader(spec, job.started_ms, job.application, job.topic)
    encode_row = job.target.encoder(job.layout)
    choose, columns = job.chooser(), EncodedColumns()
    refused_task, fails, noted = job.refused, spec.on_error == "fail", spec.on_error == "rejects"
    orders_of = row_orders(job, part)
    order = place = highest = 0
    carried: Headers = ()
    take, divided = columns.add, bool(job.bounds)
    last_counts = job.last_counts and job.target.row_key is None  # rows that have met are the last ones already
    tasks, keys, times, orders, values = (
        columns.tasks.append,
        columns.keys.append,
        columns.times.append,
        columns.orders.append,
        columns.values.append,
    )

    def add(partition: int, key: bytes, time: int, value: bytes | None, headers: Headers) -> None:
        if headers or carried or divided or last_counts:
            partition_time, headers = (highest if last_counts else None), headers or carried
            take(choose(partition, key), key, time, value, headers, order=order, partition_time=partition_time)
            return
        tasks(partition)
        keys(key)
        times(time)
        orders(order)
        values(value)

    def add_in_place(partition: int, key: bytes, time: int, value: bytes | None, headers: Headers) -> None:
        add(place, key, time, value, headers)

    add_encoded = add_in_place if job.stays else add
    for batch, superseded in marked:
        places = batch.column(_PLACE).to_pylist() if job.stays else None
        headers = headers_of(batch.column("headers"), batch.num_rows) if job.carries_headers else None
        counted: Counter[str] = Counter()
        for at, (parts, order) in enumerate(zip(read(batch), orders_of(batch), strict=False)):  # noqa: B007 - of `add`
            if places is not None:
                place = places[at]
            if headers is not None:
                carried = headers[at]
            try:
                if isinstance(parts, Exception):
                    raise parts
                if last_counts and parts[2] is not None:
                    highest = max(highest, parts[2])
                if superseded is not None and superseded[at]:
                    raise duplicate(name, parts[0])
                encode_row(parts, add_encoded)
            except Exception as error:
                if fails:
                    raise _refusal(name, batch, at, error) from error
                reason = type(error).__name__
                if noted:
                    told = {"reason": str(error), "file": file_of(batch), "row": describe_row(batch, at)}
                    line = json.dumps(told, default=_as_text)
                    columns.add(refused_task, b"", 0, line.encode(), order=1, reason=reason)
                else:
                    counted[reason] += 1
        for reason, number in counted.items():
            columns.add(refused_task, b"", 0, None, order=number, reason=reason)
        if len(columns):
            yield columns.batch()


def row_orders(job: StoreJob, part: int) -> Callable[[pa.RecordBatch], Iterable[int]]:
    """Makes the function that numbers the rows of a part, batch after batch: as a topic or as the source has them."""
    if job.topic is not None:
        return lambda batch: cast("list[int]", batch.column(_ORDER).to_pylist())
    numbers = count(part << _MOST_ROWS_BITS)
    return lambda batch: islice(numbers, batch.num_rows)


def _refusal(store: str, batch: pa.RecordBatch, at: int, error: Exception) -> RowError:
    said = str(error) if origin_of(error) is None else said_of(error)
    return RowError(
        f"a row for store {store!r} cannot be taken: {said}; the row{in_file(batch)}: {_shown(batch, at)}. Correct it, "
        'or say on_error="count" or "rejects"'
    )


def _shown(batch: pa.RecordBatch, at: int) -> str:
    text = repr(describe_row(batch, at))
    return text if len(text) < 500 else text[:500] + "..."


def _as_text(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
