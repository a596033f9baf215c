"""The parts that all workers of one ``KafkaStreams`` share, and what each of its clients is made with.

Client ids are those of Kafka Streams (``ClientUtils``, 4.3.1): ``<client.id>-StreamThread-<n>`` with ``-consumer``,
``-restore-consumer`` and ``-producer`` behind it, and ``<client.id>-admin``. The member of the group is a client of its
own and adds ``-membership``: it speaks with the coordinator of the group over two connections, one of which may wait
for other members while the other commits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pykstreams.core.clock import Clock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.runtime.between_batches import BetweenBatches
from pykstreams.runtime.clients.admin import ClusterAdmin
from pykstreams.runtime.clients.consumers.restore_consumer import RestoreConsumer
from pykstreams.runtime.clients.partitioner import partition_for_key
from pykstreams.runtime.clients.supplier import KafkaClientSupplier
from pykstreams.runtime.key_places.key_watch import KeyWatch
from pykstreams.runtime.pause import Pause
from pykstreams.runtime.restore.progress import restore_progress
from pykstreams.runtime.restore.restore import Listeners, StateRestoreListener
from pykstreams.runtime.swap.bootstrap import TaskBase
from pykstreams.runtime.tasks.cache_shares import CacheShares
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.gate import Gates
from pykstreams.runtime.topics.topic_admin import TopicAdmin
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.topology.plan import TopologyPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationParts:
    """The plan, clients and caches that all workers of one ``KafkaStreams`` share."""

    plan: TopologyPlan
    config: StreamsConfig
    clock: Clock
    supplier: KafkaClientSupplier
    admin: ClusterAdmin
    topics: TopicAdmin
    metrics: StreamsMetrics
    client_id: str
    process_id: str
    instance: str
    """The id of the state directory, which several processes may share."""
    embedded: bool
    base: TaskBase
    caches: CacheShares
    recommit_interval_ms: int
    pause: Pause
    between: BetweenBatches
    key_watch: KeyWatch | None = None
    """``None`` where it is switched off (``partitioner.check.enable``)."""
    gates: Gates = field(default_factory=Gates)


class WorkerPlace:
    """One worker among those of an application: its names, and what the application gives to it.

    :param number: counted from 1; a worker that takes the place of one that failed has another.
    """

    __slots__ = ("app", "directory", "global_stores", "metrics", "name", "number")

    def __init__(
        self, app: ApplicationParts, number: int, directory: StateDirectory, global_stores: Mapping[str, Any]
    ) -> None:
        self.app = app
        self.number = number
        self.directory = directory
        self.global_stores = global_stores
        self.name = f"{app.client_id}-StreamThread-{number}"
        self.metrics = app.metrics.with_tags(thread_id=self.name)

    @property
    def transactional_id(self) -> str:
        """The id of its transactions, if it has any."""
        return f"{self.app.config.application_id}-{self.app.process_id}-{self.number}"


def uncounted(app: ApplicationParts, producer: Any, partition_count: Callable[[str], int]) -> RecordCollector:
    """A way out beside that of a worker; what goes there is in no metric."""
    return RecordCollector(
        producer,
        config=app.config,
        partition_count=partition_count,
        partition_for_key=partition_for_key,
        takes_time_zero=False,
    )


def changelog_consumer(app: ApplicationParts, client_id: str) -> RestoreConsumer:
    """Makes a consumer that reads changelogs."""
    # swaps of state write transactions to changelogs, whatever the guarantee is; input topics, where they serve as
    # changelogs, are read as the tasks read them
    reused = any(part.reused_changelogs for part in app.plan.subtopologies)
    return RestoreConsumer.open(app.supplier, app.config, client_id, only_committed=not (reused or app.embedded))


def with_progress(clock: Clock, listener: StateRestoreListener | None) -> StateRestoreListener:
    """A listener that logs how far restoring is, and notifies another one."""
    shown = restore_progress(clock)
    return shown if listener is None else Listeners((shown, listener))


def reset_policy(config: StreamsConfig) -> str:
    """Where inputs begin that the group has committed nothing of."""
    return str(config.get_main_consumer_configs(config.application_id, "", 1)["auto.offset.reset"])
