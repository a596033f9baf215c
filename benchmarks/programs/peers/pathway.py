"""Runs a workload on Pathway, in an environment of its own, and reports its minibatches as ``streams.py`` does commits.

    python -m benchmarks.programs.peers.pathway NAME=VALUE...      (the fields of ``Job``)

A minibatch is what has come within a commit interval, ``BACKLOG`` records at most; a key that is summed up has one
result in it, as with a cache. Its engine is not Python; what a user's function does is. Its input is copied to files,
from which state is made anew; snapshots of state itself need a key of its makers.

Nothing tells what its sink has delivered: the offsets that it commits do not. So records count as done when its engine
has counted them, when up to ``BACKLOG`` results may still be on their way; all of them are done when nothing has come
into the sink's topic for a while.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import orjson
import pathway as pw
from confluent_kafka import Consumer, TopicPartition

from benchmarks.programs.job import Job, report
from benchmarks.settings import PARTITIONS

BACKLOG: Final = 50_000
"""The most records that are read and not processed; its documentation advises a few tens of thousands."""

PRODUCER: Final = {"partitioner": "murmur2_random", "enable.idempotence": "true"}

_QUIET_S: Final = 0.5


def filter_map_json(events: pw.Table) -> pw.Table:
    """w1-json."""

    def double_price(data: str) -> str | None:
        event = orjson.loads(data)
        if event["amount"] % 10 == 0:
            return None
        event["price"] = event["price"] * 2
        return orjson.dumps(event).decode()

    mapped = events.select(events.key, value=_pure(double_price)(events.data))
    return mapped.filter(mapped.value.is_not_none())


def aggregate(events: pw.Table) -> pw.Table:
    """w2."""
    amounts = events.select(events.key, amount=_pure(_amount)(events.data))
    totals = amounts.groupby(amounts.key).reduce(
        amounts.key, count=pw.reducers.count(), sum=pw.reducers.sum(amounts.amount)
    )
    return _changes(totals.select(totals.key, value=_pure(_total)(totals.count, totals.sum)))


def count_by_minute(events: pw.Table) -> pw.Table:
    """w4."""
    timed = events.select(events.key, time=events._metadata["timestamp_millis"].as_int(unwrap=True))
    counts = timed.windowby(timed.time, window=pw.temporal.tumbling(duration=60_000), instance=timed.key).reduce(
        key=pw.this._pw_instance, start=pw.this._pw_window_start, count=pw.reducers.count()
    )
    return _changes(counts.select(counts.key, value=_pure(_windowed)(counts.start, counts.count)))


def _pure(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose results need not be kept, since it gives the same for the same arguments."""
    pure: Callable[..., Any] = pw.udf(function, deterministic=True)
    return pure


def _amount(data: str) -> int:
    amount: int = orjson.loads(data)["amount"]
    return amount


def _total(count: int, total: int) -> str:
    return f'{{"count":{count},"sum":{total}}}'


def _windowed(start: int, count: int) -> str:
    return f'{{"start":{start},"count":{count}}}'


def _changes(table: pw.Table) -> pw.Table:
    """The newest row of each key that has changed, without the rows that these take the place of."""
    stream = table.to_stream()
    return stream.filter(stream.is_upsert)


TABLES: dict[str, Callable[[pw.Table], pw.Table]] = {
    "w1-json": filter_map_json,
    "w2": aggregate,
    "w4": count_by_minute,
}


class Done:
    """Reports how many records are done."""

    def __init__(self, job: Job) -> None:
        self._consumer = Consumer({"bootstrap.servers": job.brokers, "group.id": f"{job.application_id}-ends"})
        self._sink = job.sink
        self._all = self._end_of(job.source)

    def counted(self, records: int) -> None:
        """Takes how many records the engine has seen."""
        if records < self._all:
            report(records)
        else:
            threading.Thread(target=self._report_all).start()

    def _report_all(self) -> None:
        before, now = -1, self._end_of(self._sink)
        while now > before:
            time.sleep(_QUIET_S)
            before, now = now, self._end_of(self._sink)
        report(self._all)

    def _end_of(self, topic: str) -> int:
        places = (TopicPartition(topic, partition) for partition in range(PARTITIONS))
        return sum(self._consumer.get_watermark_offsets(place, timeout=30)[1] for place in places)


def main() -> None:
    """Runs until SIGTERM comes."""
    job = Job.from_arguments(sys.argv[1:])
    brokers = {"bootstrap.servers": job.brokers}
    events = pw.io.kafka.read(
        {**brokers, "group.id": job.application_id, "auto.offset.reset": "earliest"},
        job.source,
        format="plaintext",
        autogenerate_key=True,
        with_metadata=job.workload == "w4",
        autocommit_duration_ms=int(job.commit_interval_ms),
        max_backlog_size=BACKLOG,
    )
    results = TABLES[job.workload](events)
    pw.io.kafka.write(
        results,
        {**brokers, "linger.ms": job.linger_ms, "batch.size": job.batch_bytes, **PRODUCER},
        job.sink,
        format="plaintext",
        key=results.key,
        value=results.value,
    )

    done = Done(job)

    def counted(key: Any, row: dict[str, int], time: int, is_addition: bool) -> None:
        if is_addition:
            done.counted(row["records"])

    pw.io.subscribe(events.reduce(records=pw.reducers.count()), counted)
    report(0)
    pw.run(
        monitoring_level=pw.MonitoringLevel.NONE,
        persistence_config=pw.persistence.Config(
            pw.persistence.Backend.filesystem(job.state_dir), snapshot_interval_ms=int(job.commit_interval_ms)
        ),
    )


if __name__ == "__main__":
    main()
