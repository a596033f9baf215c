"""Runs a workload on Quix Streams, in an environment of its own, and reports its commits as ``streams.py`` does.

    python -m benchmarks.programs.peers.quix NAME=VALUE...      (the fields of ``Job``)

It has no cache: each record gives a result, and changes reach store and changelog at a commit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from confluent_kafka import TopicPartition
from quixstreams import Application, State
from quixstreams.checkpointing.checkpoint import Checkpoint
from quixstreams.dataframe import StreamingDataFrame
from quixstreams.kafka.consumer import BaseConsumer

from benchmarks.programs.job import Job, Progress, report


def filter_map_json(events: StreamingDataFrame) -> StreamingDataFrame:
    """w1-json."""

    def double_price(event: dict[str, Any]) -> dict[str, Any]:
        event["price"] = event["price"] * 2
        return event

    return events.filter(lambda event: event["amount"] % 10 != 0).apply(double_price)


def aggregate(events: StreamingDataFrame) -> StreamingDataFrame:
    """w2."""

    def add(event: dict[str, Any], state: State) -> dict[str, Any]:
        total: dict[str, Any] = state.get("total", None) or {"count": 0, "sum": 0}
        total["count"] += 1
        total["sum"] += event["amount"]
        state.set("total", total)
        return total

    return events.apply(add, stateful=True)


def count_by_minute(events: StreamingDataFrame) -> StreamingDataFrame:
    """w4."""
    return events.tumbling_window(timedelta(minutes=1)).count().current()


DATAFRAMES: dict[str, Callable[[StreamingDataFrame], StreamingDataFrame]] = {
    "w1-json": filter_map_json,
    "w2": aggregate,
    "w4": count_by_minute,
}


def main() -> None:
    """Runs until SIGTERM comes."""
    job = Job.from_arguments(sys.argv[1:])
    progress = Progress(job.measured)
    offsets_only, whole = BaseConsumer.commit, Checkpoint.commit
    newest: list[TopicPartition] = []

    def commit_offsets(consumer: Any, message: Any = None, offsets: Any = None, asynchronous: bool = True) -> Any:
        newest[:] = offsets or []
        return offsets_only(consumer, message, offsets, asynchronous)

    def commit(checkpoint: Any, **options: Any) -> None:
        """Reports when the stores are written, too, which comes after the offsets."""
        whole(checkpoint, **options)
        progress.committed((each.topic, each.partition, each.offset) for each in newest)

    setattr(BaseConsumer, offsets_only.__name__, commit_offsets)
    setattr(Checkpoint, whole.__name__, commit)
    application = Application(
        broker_address=job.brokers,
        consumer_group=job.application_id,
        auto_offset_reset="earliest",
        commit_interval=int(job.commit_interval_ms) / 1000,
        producer_extra_config={"linger.ms": int(job.linger_ms), "batch.size": int(job.batch_bytes)},
        state_dir=job.state_dir,
        loglevel="WARNING",
    )
    source = application.topic(job.source, key_deserializer="str", value_deserializer="json")
    sink = application.topic(job.sink, key_serializer="str", value_serializer="json")
    DATAFRAMES[job.workload](application.dataframe(source)).to_topic(sink)
    report(0)
    application.run()


if __name__ == "__main__":
    main()
