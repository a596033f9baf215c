"""Puts a worker together: which client is made with which id, and who gets what.

Client ids are those of Kafka Streams (``ClientUtils``, 4.3.1): ``<client.id>-StreamThread-<n>`` with ``-consumer``,
``-restore-consumer`` and ``-producer`` behind it, and ``<client.id>-admin``. The member of the group is a client of its
own and adds ``-membership``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pykstreams.core.clock import Clock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.runtime.changelog_watch import ChangelogWatch
from pykstreams.runtime.commit import RECOMMIT_INTERVAL_MS, CommitSteps, Deliveries
from pykstreams.runtime.global_state import GlobalState
from pykstreams.runtime.global_thread import GlobalThread
from pykstreams.runtime.kafka import DataConsumer, GroupConsumer, KafkaClientSupplier, RestoreConsumer, WorkerProducer
from pykstreams.runtime.kafka_admin import ClusterAdmin
from pykstreams.runtime.membership import Offsets
from pykstreams.runtime.membership.task_topics import TaskTopicMembership
from pykstreams.runtime.output import WorkerOutput
from pykstreams.runtime.partition_counts import PartitionCounts
from pykstreams.runtime.purge import RepartitionPurge
from pykstreams.runtime.restore import Listeners, Restorer, StateRestoreListener
from pykstreams.runtime.restore_progress import restore_progress
from pykstreams.runtime.start_offsets import StartOffsets
from pykstreams.runtime.state_updater import StateUpdater
from pykstreams.runtime.task import Task
from pykstreams.runtime.task_manager import TaskManager
from pykstreams.runtime.topic_admin import TopicAdmin, TopicLayout
from pykstreams.runtime.worker import Worker, WorkerParts
from pykstreams.state.caching import RecordCache
from pykstreams.state.directory import StateDirectory
from pykstreams.topology.plan import TopologyPlan


@dataclass(frozen=True, slots=True)
class Application:
    """What all workers of one ``KafkaStreams`` share."""

    plan: TopologyPlan
    config: StreamsConfig
    clock: Clock
    supplier: KafkaClientSupplier
    admin: ClusterAdmin
    topics: TopicAdmin
    metrics: StreamsMetrics
    client_id: str
    process_id: str
    embedded: bool
    recommit_interval_ms: int = RECOMMIT_INTERVAL_MS


def build_global_thread(
    app: Application,
    layout: TopicLayout,
    *,
    directory: StateDirectory,
    listener: StateRestoreListener | None,
    on_failure: Callable[[StreamsError], None],
) -> GlobalThread:
    """Makes what keeps the global stores, which all workers share; nothing runs yet."""
    config, clock = app.config, app.clock
    return GlobalThread(
        f"{app.client_id}-GlobalStreamThread",
        state=GlobalState(
            app.plan.global_stores,
            config=config,
            clock=clock,
            metrics=app.metrics,
            directory=directory.global_dir,
            cache=_cache(app),
        ),
        partitions=layout.partitions,
        reader=lambda: RestoreConsumer.open_global(app.supplier, config, app.client_id),
        offsets=app.admin,
        listener=_with_progress(clock, listener),
        config=config,
        clock=clock,
        on_failure=on_failure,
    )


def build_worker(
    app: Application,
    number: int,
    layout: TopicLayout,
    *,
    directory: StateDirectory,
    listener: StateRestoreListener | None,
    on_running: Callable[[bool], None],
    global_stores: Mapping[str, Any],
) -> Worker:
    """Makes the clients and the parts of one worker thread; nothing runs yet."""
    config, clock, plan = app.config, app.clock, app.plan
    name = f"{app.client_id}-StreamThread-{number}"
    membership = TaskTopicMembership(
        GroupConsumer.open(app.supplier, config, f"{name}-membership"), config.application_id
    )
    reader = DataConsumer.open(app.supplier, config, f"{name}-consumer")
    purge = _purge(app)
    output = WorkerOutput(
        config=config,
        metrics=app.metrics,
        partition_count=PartitionCounts(app.admin.partition_counts, clock, config.metadata_max_age_ms).of,
        make_producer=lambda: WorkerProducer.open(
            app.supplier,
            config,
            f"{name}-producer",
            transactional_id=f"{config.application_id}-{app.process_id}-{number}" if config.exactly_once else None,
        ),
        make_steps=lambda deliveries: _steps(app, deliveries, membership, purge),
        changelogs=ChangelogWatch() if app.embedded else None,
    )
    updater = StateUpdater(
        f"{app.client_id}-StateUpdater-{number}",
        restorer=lambda: _restorer(app, name, listener),
        directory=directory,
        clock=clock,
        task_timeout_ms=config.task_timeout_ms,
        cleanup_delay_ms=config.state_cleanup_delay_ms,
    )
    start_offsets = StartOffsets(plan, _reset_policy(config), app.admin.offsets_at, clock)
    cache = _cache(app)
    parts = {part.id: part for part in plan.subtopologies}
    woken = threading.Event()

    def make_task(task_id: TaskId, inputs: frozenset[TopicPartition]) -> Task:
        return Task(
            task_id,
            parts[task_id.subtopology],
            sorted(inputs),
            config=config,
            clock=clock,
            collector=output.collector,
            cache=cache,
            directory=directory.task_dir(task_id),
            metrics=app.metrics,
            lag=reader.lag,
            global_stores=global_stores,
            wake=woken.set,
            end_offsets=None if config.exactly_once else app.admin.end_offsets,
        )

    tasks = TaskManager(
        inputs=layout.inputs,
        membership=membership,
        reader=reader,
        updater=updater,
        start_offsets=start_offsets,
        make_task=make_task,
        before_start=lambda: output.commits.before_processing(),
    )
    return Worker(
        name,
        WorkerParts(membership, reader, updater, output, tasks, purge, start_offsets, app.topics.prepare, woken),
        subtopologies=list(parts),
        config=config,
        clock=clock,
        on_running=on_running,
    )


def _cache(app: Application) -> RecordCache:
    """The record cache of one thread: workers and the thread of global stores share the bytes equally."""
    threads = app.config.num_stream_threads + (1 if app.plan.global_stores else 0)
    return RecordCache(app.config.statestore_cache_max_bytes // max(1, threads))


def _purge(app: Application) -> RepartitionPurge | None:
    topics = {name for part in app.plan.subtopologies for name in part.repartition_topics}
    if not topics or app.embedded:  # embedded clusters drop old records by themselves, and only so
        return None
    return RepartitionPurge(
        app.admin.delete_records,
        topics=topics,
        interval_ms=app.config.repartition_purge_interval_ms,
        clock=app.clock,
    )


def _steps(
    app: Application, deliveries: Deliveries, membership: TaskTopicMembership, purge: RepartitionPurge | None
) -> CommitSteps:
    def ignore(offsets: Offsets) -> None:
        """Without repartition topics nobody wants to know."""

    def end_offsets(partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        return app.admin.end_offsets(partitions)

    return CommitSteps(
        deliveries=deliveries,
        membership=membership,
        end_offsets=end_offsets,
        on_committed=ignore if purge is None else purge.committed,
        clock=app.clock,
        task_timeout_ms=app.config.task_timeout_ms,
        recommit_interval_ms=app.recommit_interval_ms,
    )


def _restorer(
    app: Application, name: str, listener: StateRestoreListener | None
) -> tuple[Restorer, Callable[[], None]]:
    consumer = RestoreConsumer.open(app.supplier, app.config, f"{name}-restore-consumer")
    return Restorer(consumer, app.admin, _with_progress(app.clock, listener)), consumer.close


def _with_progress(clock: Clock, listener: StateRestoreListener | None) -> StateRestoreListener:
    shown = restore_progress(clock)
    return shown if listener is None else Listeners((shown, listener))


def _reset_policy(config: StreamsConfig) -> str:
    return str(config.get_main_consumer_configs(config.application_id, "", 1)["auto.offset.reset"])
