"""Before the first stage, where it has to be: rows of one key meet, and only the newest of them is encoded.

A row of a left table is kept under the keys that it refers to, so an older row of the same key would leave behind
what it referred to: nobody finds out once rows are encoded. ``keyed`` → sort by key → ``encode_newest``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from zlib import crc32

import pyarrow as pa

from pykstreams.bulk.sources.plain_types import plain
from pykstreams.bulk.sources.python_objects import find_unreadable
from pykstreams.bulk.sources.rows import RowReader
from pykstreams.bulk.sources.store_bootstrap import Row
from pykstreams.bulk.stages.batches import CHUNK, EncodedColumns
from pykstreams.bulk.stages.encode import MarkedRows, encode_marked, row_orders
from pykstreams.bulk.stages.store_job import StoreJob
from pykstreams.bulk.targets.carried_values import dumps, loads
from pykstreams.bulk.targets.target import RowError


def keyed(job: StoreJob, batches: Iterable[pa.RecordBatch], part: int) -> Iterator[pa.RecordBatch]:
    """Yields the rows of a part of the source as they are (``value``), with the key by which they meet; those without
    one have none here either.

    ``task`` is one of as many as there are shares, the same for all rows of a key.
    """
    read = RowReader(job.spec, job.started_ms, job.application, job.topic)
    make = job.target.row_key
    if make is None:
        raise ValueError(f"rows for store {job.spec.store!r} need not meet")
    row_key, count, columns, orders_of = make(), len(job.shares), EncodedColumns(), row_orders(job, part)
    last_counts, highest = job.last_counts, 0
    for batch in batches:
        for parts, row, order in zip(read(batch), _as_they_are(job, batch), orders_of(batch), strict=False):
            key, time = None, 0
            if not isinstance(parts, Exception) and parts[0] is not None and parts[2] is not None:
                time = parts[2]
                highest = max(highest, time)
                try:
                    key = row_key(parts[0])
                except Exception:  # the first stage meets the same, and says which row it was
                    key = None
            partition_time = highest if last_counts else None
            columns.add(crc32(key or b"") % count, key, time, dumps(row), order=order, partition_time=partition_time)
        yield columns.batch()


def _as_they_are(job: StoreJob, batch: pa.RecordBatch) -> list[Row]:
    rows = plain(batch)
    try:
        found: list[Row] = rows.to_pylist()
    except (ValueError, OverflowError) as error:
        raise RowError(
            f"a row for store {job.spec.store!r} cannot be taken: {find_unreadable(rows) or error}. Correct it, or "
            "leave it out of the source, whatever on_error= says: such rows do not get to where they would be counted"
        ) from error
    return found


def encode_newest(
    job: StoreJob, batches: Iterable[pa.RecordBatch], schema: pa.Schema | None
) -> Iterator[pa.RecordBatch]:
    """The first stage for rows that have been keyed and sorted.

    :param schema: of the rows as they were, if that is known.
    """
    return encode_marked(job, _marked(batches, schema, job.spec.latest), 0)


def _marked(batches: Iterable[pa.RecordBatch], schema: pa.Schema | None, latest: bool) -> Iterator[MarkedRows]:
    """Rows, and which of them are followed by a newer one of their key; these are left out if the latest one counts."""
    rows: list[object] = []
    marks: list[bool] = []
    held: tuple[bytes | None, bytes] | None = None

    def add(raw: bytes, superseded: bool) -> None:
        if not (superseded and latest):
            rows.append(loads(raw))
            marks.append(superseded)

    for batch in batches:
        for key, raw in zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True):
            if held is not None:
                add(held[1], key is not None and key == held[0])
            held = key, raw
            if len(rows) == CHUNK:
                yield pa.RecordBatch.from_pylist(rows, schema=schema), marks
                rows, marks = [], []
    if held is not None:
        add(held[1], False)
    if rows:
        yield pa.RecordBatch.from_pylist(rows, schema=schema), marks
