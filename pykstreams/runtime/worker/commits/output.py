"""The way out of a worker: its producer, the collector over it, and how to commit what goes through them.

What was built on a producer goes with it: one that was fenced is unusable.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from pykstreams.core.clock import Clock
from pykstreams.core.config import StreamsConfig
from pykstreams.runtime.clients.partitioner import partition_for_key
from pykstreams.runtime.clients.producer import WorkerProducer
from pykstreams.runtime.tasks.changelog_watch import ChangelogWatch
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.delivery_attempts import DeliveryAttempts
from pykstreams.runtime.topics.partition_counts import PartitionCounts
from pykstreams.runtime.worker.commits.commit import AtLeastOnce, Commits, CommitSteps, Deliveries, ExactlyOnce
from pykstreams.runtime.worker.commits.delivery_times import DeliveryTimes
from pykstreams.runtime.worker.commits.send_pace import SendPace

log = logging.getLogger(__name__)

_LAST_FLUSH_S = 10.0
_DRAIN_S = 0.1
"""How long one turn of the worker waits for the producer to be empty."""


class WorkerOutput:
    """Makes the three, and makes them anew.

    :param make_producer: makes a producer; a transactional one under exactly-once.
    :param make_steps: makes the steps of a commit over the collector.
    :param changelogs: watches what is written to changelogs; for embedded clusters.
    :param times: how long records may be on their way; ``None``: transactions, or an embedded cluster.
    """

    def __init__(
        self,
        *,
        config: StreamsConfig,
        clock: Clock,
        partition_counts: PartitionCounts,
        make_producer: Callable[[], WorkerProducer],
        make_steps: Callable[[Deliveries], CommitSteps],
        changelogs: ChangelogWatch | None = None,
        times: DeliveryTimes | None = None,
    ) -> None:
        self._config = config
        self._clock = clock
        self._partition_counts = partition_counts
        self._make_producer = make_producer
        self._make_steps = make_steps
        self._changelogs = changelogs
        self._pace = None if times is None else SendPace(clock, times.record_s)
        self._attempts = None if times is None else DeliveryAttempts(clock, times.record_s, times.give_up_s)
        self._producer = self._make_producer()
        self._make_way()

    def prepare(self) -> None:
        """Gets ready for the first record; ``ClusterUnavailableError``: the cluster does not answer, call it again."""
        self.commits.prepare()

    @property
    def holds_records(self) -> bool:
        """Whether anything was not delivered yet."""
        return self._producer.undelivered > 0

    def keeps_up(self) -> bool:
        """Whether more may be sent now; if not, waits a moment for what was sent before."""
        if self._pace is None or not self._pace.must_wait(self._producer.undelivered):
            return True
        self._producer.flush(_DRAIN_S)
        return not self._pace.must_wait(self._producer.undelivered)

    def renew(self) -> None:
        """Drops what was not delivered, and makes a new collector and way to commit; tasks made before must go.

        The producer is made anew, too, where it has transactions or can take nothing any more. Otherwise it stays:
        what it has given up cannot come behind what it sends from now on.
        """
        if self._config.exactly_once or self.collector.broken or not self._producer.drop_undelivered():
            self._producer.discard()
            self._producer = self._make_producer()
        self._make_way()

    def _make_way(self) -> None:
        self.collector = RecordCollector(
            self._producer,
            config=self._config,
            partition_count=self._partition_counts.of,
            partition_for_key=partition_for_key,
            takes_time_zero=False,
            changelogs=self._changelogs,
            holds_changelogs=not self._config.exactly_once,
            attempts=self._attempts,
        )
        self._producer.failures.handler = self.collector.delivery_failed
        steps = self._make_steps(self.collector)
        self.commits: Commits = AtLeastOnce(steps)
        if self._config.exactly_once:
            timeout_ms = int(str(self._config.get_producer_configs("")["transaction.timeout.ms"]))
            self.commits = ExactlyOnce(steps, self._producer, self._clock, timeout_ms)

    def poll(self) -> None:
        """Runs the callbacks of deliveries, and lets go of partition counts that have grown old."""
        self._partition_counts.poll()
        self.collector.poll()

    def close(self) -> None:
        """Waits for deliveries, but not for ever: what is not delivered was not committed, and is processed again."""
        try:
            if not self._producer.broken and (left := self._producer.flush(_LAST_FLUSH_S)):
                log.warning("%d records were not delivered within %g s; they are processed again", left, _LAST_FLUSH_S)
        finally:
            self._producer.close()
