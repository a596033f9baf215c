"""Runs a topology of ``topologies`` on pykstreams, and reports its commits.

    python -m benchmarks.programs.streams NAME=VALUE...      (the fields of ``Job``)

The commits are seen from outside, where a worker learns that they are done: nothing is added per record.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from benchmarks.programs.counting import CountingStores
from benchmarks.programs.job import NO_METRICS, Job, Progress, report, report_reads
from benchmarks.programs.topologies import build
from pykstreams import KafkaStreams, StreamsConfig, TopicPartition
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.metrics.task_metrics import TaskMetrics
from pykstreams.runtime.metrics.thread_metrics import ThreadMetrics
from pykstreams.runtime.restore.restore import StateRestoreListener
from pykstreams.runtime.worker.commits.commit import CommitSteps, Committable


def _report_commits(measured: str, stores: CountingStores | None) -> None:
    """Reports each commit from now on: where the offsets of both guarantees are known to be committed."""
    progress = Progress(measured)
    plainly = CommitSteps.committed

    def committed(steps: CommitSteps, tasks: Collection[Committable], offsets: Offsets) -> None:
        plainly(steps, tasks, offsets)
        if stores is not None:
            report_reads(stores.reads)
        progress.committed((*place, offset) for place, (offset, _) in offsets.items())

    setattr(CommitSteps, plainly.__name__, committed)


def _leave_out_metrics() -> None:
    """Makes the methods that sum metrics up do nothing; workers call them, and look at the clock, all the same."""

    def nothing(*_: object) -> None:
        pass

    for kind, names in (
        (ThreadMetrics, ("polled", "processed", "punctuated", "committed", "turn_ended")),
        (TaskMetrics, ("added", "batch", "punctuated", "enforced", "flush")),
    ):
        for name in names:
            setattr(kind, name, nothing)


@contextmanager
def _served(streams: KafkaStreams, address: str) -> Iterator[None]:
    """Serves the stores at an address, for the length of a block; does nothing without one."""
    if not address:
        yield
        return
    from pykstreams.http import Address, HttpOptions, HttpServerProcess, app
    from pykstreams.http.server import bound

    options = HttpOptions()
    server = HttpServerProcess(app(streams, options=options), bound(Address.parse(address)), options)
    server.start()
    try:
        yield
    finally:
        server.close()


class _RestoreReport(StateRestoreListener):
    """Reports when the first partition begins and when the last one ends."""

    def __init__(self) -> None:
        self._open: set[TopicPartition] = set()
        self._restored = 0

    def on_restore_start(
        self, topic_partition: TopicPartition, store_name: str, starting_offset: int, ending_offset: int
    ) -> None:
        if not self._open and not self._restored:
            report(0)
        self._open.add(topic_partition)

    def on_restore_end(self, topic_partition: TopicPartition, store_name: str, total_restored: int) -> None:
        self._open.discard(topic_partition)
        self._restored += total_restored
        report(self._restored)


def main() -> None:
    """Runs until SIGTERM comes."""
    logging.basicConfig(level=logging.WARNING)
    job = Job.from_arguments(sys.argv[1:])
    counting = CountingStores() if job.count_reads == "yes" else None
    if job.metrics == NO_METRICS:
        _leave_out_metrics()
    config = StreamsConfig(
        {
            "application.id": job.application_id,
            "bootstrap.servers": job.brokers,
            "state.dir": job.state_dir,
            "replication.factor": 1,
            "processing.guarantee": job.guarantee,
            "commit.interval.ms": int(job.commit_interval_ms),
            "statestore.cache.max.bytes": int(job.cache_bytes),
            "producer.batch.size": int(job.batch_bytes),
            "producer.linger.ms": int(job.linger_ms),
            "metrics.recording.level": "INFO" if job.metrics == NO_METRICS else job.metrics,
            **({"application.server": f"127.0.0.1:{job.http}"} if job.http else {}),
            **({} if counting is None else {"dsl.store.suppliers.class": counting}),
        }
    )
    restores = job.workload == "restore"
    if not restores:
        report(0)
    if not restores:
        _report_commits(job.measured, counting)
    streams = KafkaStreams(
        build(job),
        config,
        state_restore_listener=_RestoreReport() if restores else None,
    )
    with _served(streams, job.http):
        streams.run()


if __name__ == "__main__":
    main()
