"""Runs a workload on Bytewax, in an environment of its own, and reports its snapshots as ``streams.py`` does commits.

    python -m benchmarks.programs.peers.bytewax NAME=VALUE...      (the fields of ``Job``)

It belongs to no consumer group: offsets and state are written into SQLite files at the end of an epoch, here once per
commit interval. It has no cache, so each record gives a result, and no changelog.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

import bytewax.operators as op
import orjson
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource, KafkaSourceMessage
from bytewax.dataflow import Dataflow, Stream
from bytewax.inputs import StatefulSourcePartition
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.testing import cluster_main

from benchmarks.programs.job import Job, Progress, report

Event: TypeAlias = dict[str, Any]
Events: TypeAlias = Stream[tuple[str, Event]]


def filter_map_json(events: Events) -> Events:
    """w1-json."""

    def double_price(event: Event) -> Event:
        event["price"] = event["price"] * 2
        return event

    some: Events = op.filter("some", events, lambda pair: pair[1]["amount"] % 10 != 0)
    doubled: Events = op.map_value("double price", some, double_price)
    return doubled


def aggregate(events: Events) -> Events:
    """w2."""

    def add(total: Event | None, event: Event) -> tuple[Event, Event]:
        # a new one: what is emitted is written after the whole batch
        before = total or {"count": 0, "sum": 0}
        total = {"count": before["count"] + 1, "sum": before["sum"] + event["amount"]}
        return total, total

    totals: Events = op.stateful_map("add", events, add)
    return totals


def _read(message: KafkaSourceMessage[bytes, bytes]) -> tuple[str, Event]:
    return message.key.decode(), orjson.loads(message.value)


def _written(pair: tuple[str, Event]) -> KafkaSinkMessage[bytes, bytes]:
    return KafkaSinkMessage(pair[0].encode(), orjson.dumps(pair[1]))


WORK: dict[str, Callable[[Events], Events]] = {"w1-json": filter_map_json, "w2": aggregate}


class Snapshots:
    """Reports what was done at the end of an epoch when the next one ends: then its results are written, too."""

    def __init__(self, topic: str) -> None:
        self._progress = Progress(topic)
        self._ended: dict[int, tuple[str, int, int]] = {}

    def ended(self, topic: str, partition: int, offset: int) -> None:
        """Takes the end of an epoch of one partition."""
        done = self._ended.get(partition)
        self._ended[partition] = (topic, partition, max(offset, 0))
        if done is not None:
            self._progress.committed([done])


def main() -> None:
    """Runs until SIGTERM comes."""
    job = Job.from_arguments(sys.argv[1:])
    snapshots = Snapshots(job.measured)
    source = KafkaSource([job.brokers], [job.source])
    plain = source.build_part

    def build_part(step_id: str, for_part: str, resume_state: int | None) -> StatefulSourcePartition[Any, Any]:
        part = plain(step_id, for_part, resume_state)
        snapshot = part.snapshot

        def reported() -> int | None:
            offset: int | None = snapshot()
            snapshots.ended(job.source, int(for_part.split("-", 1)[0]), offset or 0)
            return offset

        setattr(part, snapshot.__name__, reported)
        return part

    setattr(source, plain.__name__, build_part)
    flow = Dataflow(job.application_id.replace(".", "-"))
    producer = {"linger.ms": job.linger_ms, "batch.size": job.batch_bytes, "partitioner": "murmur2_random"}
    results = WORK[job.workload](op.map("read", op.input("source", flow, source), _read))
    op.output("sink", op.map("written", results, _written), KafkaSink([job.brokers], job.sink, producer))
    snapshots_of_state = Path(job.state_dir, "recovery")
    snapshots_of_state.mkdir()
    init_db_dir(snapshots_of_state, 1)
    report(0)
    cluster_main(
        flow,
        [],
        0,
        epoch_interval=timedelta(milliseconds=int(job.commit_interval_ms)),
        recovery_config=RecoveryConfig(str(snapshots_of_state)),
    )


if __name__ == "__main__":
    main()
