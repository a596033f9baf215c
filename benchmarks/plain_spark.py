"""What somebody writes who makes files of a database by PySpark alone: encode, partition, sort, write.

The jobs of pykstreams are held against it: rows are encoded by a Python function over Arrow batches, one by one, as
JSON with a timestamp before it, and lie in the partition that Kafka's partitioner gives. There is no store of an
application, no second attempt that would be harmless, no row that could be refused, no manifest.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from pykstreams.runtime.clients.partitioner import partition_for_key


def plain_job(spark: Any, source: Path, out: Path, tasks: int, keys: str = "id", times: str = "at") -> int:
    """Makes one file for each partition; gives how many rows they have."""
    out.mkdir()

    def encode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = [key.encode() for key in batch.column(keys).to_pylist()]
            stamps = batch.column(times).to_pylist()
            rows = zip(stamps, batch.to_pylist(), strict=True)
            values = [time.to_bytes(8, "big") + orjson.dumps(row) for time, row in rows]
            places = [partition_for_key(key, tasks) for key in found]
            arrays = [pa.array(places, pa.int32()), pa.array(found, pa.binary()), pa.array(values, pa.binary())]
            yield pa.RecordBatch.from_arrays(arrays, names=["p", "k", "v"])

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext
        from rocksdict import Options, SstFileWriter

        context = TaskContext.get()
        assert context is not None  # it runs in a task
        count, writer = 0, SstFileWriter(Options(raw_mode=True))
        for batch in batches:
            if not count:
                writer.open(str(out / f"{context.partitionId()}-{context.taskAttemptId()}.sst"))
            for key, value in zip(batch.column("k").to_pylist(), batch.column("v").to_pylist(), strict=True):
                writer[key] = value
            count += batch.num_rows
        if count:
            writer.finish()
        yield pa.RecordBatch.from_pydict({"rows": pa.array([count], pa.int64())})

    encoded = spark.read.parquet(str(source)).mapInArrow(encode, "p int, k binary, v binary")
    placed = encoded.repartitionById(tasks, "p").sortWithinPartitions("k")
    return sum(row.rows for row in placed.mapInArrow(write, "rows long").collect())
