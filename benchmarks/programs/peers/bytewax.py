"""Runs a workload on Bytewax, in an environment of its own, and reports its epochs as ``streams.py`` does commits.

    python -m benchmarks.programs.peers.bytewax NAME=VALUE...      (the fields of ``Job``)

It belongs to no consumer group: offsets and state are written into SQLite files at the end of an epoch, here once per
commit interval. It has no cache, so each record gives a result, and no changelog. Its sink waits for the broker after
each batch that the source gave, so that one is as large as a batch of the producer may be.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias

import bytewax.operators as op
import orjson
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource, KafkaSourceMessage
from bytewax.dataflow import Dataflow, Stream
from bytewax.inputs import StatefulSourcePartition
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.run import cli_main

from benchmarks.programs.job import Job
from benchmarks.programs.peers.epochs import Epochs

Event: TypeAlias = dict[str, Any]
Read: TypeAlias = Stream[KafkaSourceMessage[bytes, bytes]]
Results: TypeAlias = Stream[tuple[str, Event]]

BATCH: Final = 5_000
"""Records of 100 bytes: a producer's batch of 128 KiB for each of four partitions."""


def filter_map_json(messages: Read) -> Results:
    """w1-json."""

    def double_price(event: Event) -> Event:
        event["price"] = event["price"] * 2
        return event

    some = op.filter("some", op.map("read", messages, _read), lambda pair: pair[1]["amount"] % 10 != 0)
    doubled: Results = op.map_value("double price", some, double_price)
    return doubled


def aggregate(messages: Read) -> Results:
    """w2."""

    def add(total: tuple[int, int] | None, event: Event) -> tuple[tuple[int, int], Event]:
        count, amounts = total or (0, 0)
        total = count + 1, amounts + event["amount"]
        return total, {"count": total[0], "sum": total[1]}

    totals: Results = op.stateful_map("add", op.map("read", messages, _read), add)
    return totals


WORK: dict[str, Callable[[Read], Results]] = {"w1-json": filter_map_json, "w2": aggregate}


def _read(message: KafkaSourceMessage[bytes, bytes]) -> tuple[str, Event]:
    return message.key.decode(), orjson.loads(message.value)


def _written(pair: tuple[str, Event]) -> KafkaSinkMessage[bytes, bytes]:
    return KafkaSinkMessage(pair[0].encode(), orjson.dumps(pair[1]))


class ReportingSource(KafkaSource):
    """Reports the epochs of its partitions."""

    def __init__(self, job: Job) -> None:
        super().__init__([job.brokers], [job.source], batch_size=BATCH)
        self._epochs = Epochs(job.measured)

    def build_part(self, step_id: str, for_part: str, resume_state: int | None) -> StatefulSourcePartition[Any, Any]:
        part = super().build_part(step_id, for_part, resume_state)
        partition = int(for_part.split("-", 1)[0])
        next_batch, snapshot, epochs = part.next_batch, part.snapshot, self._epochs

        def first_of_an_epoch() -> list[Any]:
            epochs.began()
            batch: list[Any] = next_batch()
            return batch

        def last_of_an_epoch() -> int | None:
            offset: int | None = snapshot()
            epochs.ended(partition, offset)
            return offset

        setattr(part, next_batch.__name__, first_of_an_epoch)
        setattr(part, snapshot.__name__, last_of_an_epoch)
        return part


def main() -> None:
    """Runs until SIGTERM comes."""
    job = Job.from_arguments(sys.argv[1:])
    flow = Dataflow(job.application_id.replace(".", "-"))
    results = WORK[job.workload](op.input("source", flow, ReportingSource(job)))
    producer = {
        "linger.ms": job.linger_ms,
        "batch.size": job.batch_bytes,
        "partitioner": "murmur2_random",
        "enable.idempotence": "true",
    }
    op.output("sink", op.map("written", results, _written), KafkaSink([job.brokers], job.sink, producer))
    snapshots = Path(job.state_dir, "recovery")
    snapshots.mkdir()
    init_db_dir(snapshots, 1)
    epoch = timedelta(milliseconds=int(job.commit_interval_ms))
    cli_main(flow, epoch_interval=epoch, recovery_config=RecoveryConfig(str(snapshots)))


if __name__ == "__main__":
    main()
