"""A producer that writes what a task sends to files, one for each topic.

The files carry the attempt in their names, and count only when they are reported to the driver. In memory is a part of
a batch for each topic.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import accumulate
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from pykstreams.bulk.backfills.records import SENT
from pykstreams.core.clock import Clock
from pykstreams.runtime.clients.partitioner import partition_for_key
from pykstreams.runtime.tasks.collector import ANY_PARTITION

_BATCH_ROWS: Final = 10_000
_BATCH_BYTES: Final = 8 << 20


class SentRecords:
    """Has the methods of ``confluent_kafka.Producer`` that the runtime calls, in the same positional order.

    :param folder: where the files go.
    :param stem: how their names begin; nobody else uses it.
    :param first: the number of the first record.
    :param partition_count: how many partitions a topic has.
    :param unwanted: topics of which nothing is kept.
    :param times: the highest timestamp that was sent before, by topic.
    """

    def __init__(
        self,
        folder: Path,
        stem: str,
        task: str,
        first: int,
        partition_count: Callable[[str], int],
        unwanted: Collection[str],
        clock: Clock,
        times: Mapping[str, int],
    ) -> None:
        self._folder, self._stem, self._task = folder, stem, task
        self._partition_count = partition_count
        self._unwanted = frozenset(unwanted)
        self._clock = clock
        self._times = times
        self._topics: dict[str, _TopicFile] = {}
        self.next_number = first

    def produce(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int = ANY_PARTITION,
        callback: object = None,
        on_delivery: object = None,
        timestamp: int | None = None,
        headers: object = None,
    ) -> None:
        """Keeps a record; without a timestamp it gets the time of day."""
        if topic in self._unwanted:
            return
        file = self._topics.get(topic)
        if file is None:
            path = self._folder / topic / f"{self._stem}.parquet"
            file = self._topics[topic] = _TopicFile(
                topic, path, self._task, self._partition_count(topic), self._times.get(topic, -1)
            )
        number = self.next_number
        self.next_number = number + 1
        file.rows.append(
            (partition, key, value, self._clock.now_ms() if timestamp is None else timestamp, headers, number)
        )
        file.waiting_bytes += 0 if value is None else len(value)
        if len(file.rows) >= _BATCH_ROWS or file.waiting_bytes >= _BATCH_BYTES:
            file.write()

    def count(self, topic: str) -> int:
        """How many records of a topic it has taken."""
        return self._topics[topic].count if topic in self._topics else 0

    @property
    def times(self) -> dict[str, int]:
        """The highest timestamp that was sent, by topic."""
        return {**self._times, **{topic: file.time for topic, file in self._topics.items()}}

    def poll(self, timeout_s: float, /) -> int:
        """Nothing is ever under way."""
        return 0

    def flush(self, timeout_s: float, /) -> int:
        """Nothing is ever under way."""
        return 0

    def finish(self) -> dict[str, str]:
        """Ends the files; gives their paths by topic."""
        for file in self._topics.values():
            file.close()
        return {topic: str(file.path) for topic, file in self._topics.items()}


class _TopicFile:
    """The file of one topic, and the rows that wait for it."""

    def __init__(self, topic: str, path: Path, task: str, partitions: int, time: int) -> None:
        self.path, self.time = path, time
        self.rows: list[tuple[int, bytes | None, bytes | None, int, object, int]] = []
        self.waiting_bytes = 0
        self._written = 0
        self._topic, self._task, self._partitions = topic, task, partitions
        path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = pq.ParquetWriter(path, SENT)

    @property
    def count(self) -> int:
        """How many rows it has, with those that wait."""
        return self._written + len(self.rows)

    def write(self) -> None:
        """Writes what waits."""
        rows, self.rows, self.waiting_bytes = self.rows, [], 0
        if not rows:
            return
        self._written += len(rows)
        partitions, keys, values, times, headers, numbers = zip(*rows, strict=True)
        count = self._partitions
        places = [
            chosen if chosen >= 0 else (number % count if key is None else partition_for_key(key, count))
            for chosen, key, number in zip(partitions, keys, numbers, strict=True)
        ]
        highest = list(accumulate(times, max, initial=self.time))
        self.time = highest[-1]
        columns: list[object] = [
            [self._topic] * len(rows),
            places,
            keys,
            values,
            times,
            [None if each is None else [{"key": name, "value": data} for name, data in each] for each in headers],
            [self._task] * len(rows),
            numbers,
            highest[1:],
        ]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, SENT, strict=True)]
        self._writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=SENT))

    def close(self) -> None:
        """Writes the rest, and ends the file."""
        self.write()
        self._writer.close()
