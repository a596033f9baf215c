"""Puts a worker together: which client is made with which id, and who gets what.

Client ids are those of Kafka Streams (``ClientUtils``, 4.3.1): ``<client.id>-StreamThread-<n>`` with ``-consumer``,
``-restore-consumer`` and ``-producer`` behind it, and ``<client.id>-admin``. The member of the group is a client of its
own and adds ``-membership``: it speaks with the coordinator of the group over two connections, one of which may wait
for other members while the other commits.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pykstreams.core.clock import Clock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.runtime.clients.admin import ClusterAdmin
from pykstreams.runtime.clients.coordinator_requests import group_settings
from pykstreams.runtime.clients.data_consumer import DataConsumer
from pykstreams.runtime.clients.group_consumer import GroupConsumer
from pykstreams.runtime.clients.outage import Outage
from pykstreams.runtime.clients.partitioner import partition_for_key
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.clients.producer import WorkerProducer
from pykstreams.runtime.clients.restore_consumer import RestoreConsumer
from pykstreams.runtime.clients.supplier import KafkaClientSupplier
from pykstreams.runtime.global_stores.global_state import GlobalState
from pykstreams.runtime.global_stores.global_thread import GlobalThread
from pykstreams.runtime.key_places.key_watch import KeyWatch
from pykstreams.runtime.membership.group_hosts import GroupHosts
from pykstreams.runtime.membership.member_state import MemberState, NoState
from pykstreams.runtime.membership.membership import Membership
from pykstreams.runtime.membership.offset_sums import OffsetSums
from pykstreams.runtime.membership.opening import GroupParts, open_membership
from pykstreams.runtime.membership.shutdown import ask_all_to_shut_down
from pykstreams.runtime.metrics.thread_metrics import TaskCounts
from pykstreams.runtime.metrics.updater_metrics import UpdaterMetrics
from pykstreams.runtime.pause import Pause
from pykstreams.runtime.restore.progress import restore_progress
from pykstreams.runtime.restore.restore import Listeners, OffsetReader, Restorer, StateRestoreListener
from pykstreams.runtime.restore.restore_metrics import RestoreMetrics
from pykstreams.runtime.standby.changelog_rounds import ChangelogRounds
from pykstreams.runtime.standby.group_offsets import GroupOffsets
from pykstreams.runtime.standby.standby_plan import StandbyPlan
from pykstreams.runtime.standby.standby_tasks import StandbyTasks
from pykstreams.runtime.standby.update_listener import StandbyUpdateListener, UpdateNotices
from pykstreams.runtime.swap.bootstrap import Bootstrap, GroupStart, TaskBase
from pykstreams.runtime.swap.only_stores import Nowhere
from pykstreams.runtime.swap.shadow import Shadow, ShadowParts
from pykstreams.runtime.swap.swap_output import SwapOutput
from pykstreams.runtime.tasks.cache_shares import CacheShares
from pykstreams.runtime.tasks.changelog_watch import ChangelogWatch
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.gate import Gates
from pykstreams.runtime.tasks.task import Task
from pykstreams.runtime.topics.partition_counts import PartitionCounts
from pykstreams.runtime.topics.topic_admin import TopicAdmin, TopicLayout
from pykstreams.runtime.topics.topic_watch import TopicWatch
from pykstreams.runtime.worker.commit import CommitSteps, Deliveries
from pykstreams.runtime.worker.output import WorkerOutput
from pykstreams.runtime.worker.purge import RepartitionPurge
from pykstreams.runtime.worker.start_offsets import StartOffsets
from pykstreams.runtime.worker.state_updater import StateUpdater
from pykstreams.runtime.worker.swaps import Swaps
from pykstreams.runtime.worker.task_manager import MakeTask, TaskManager
from pykstreams.runtime.worker.tasks_aside import TasksAside
from pykstreams.runtime.worker.work_notes import note_place
from pykstreams.runtime.worker.worker import Worker, WorkerParts
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.topology.plan import SubtopologyPlan, TopologyPlan

log = logging.getLogger(__name__)

_BROKER_SESSION_TIMEOUT_MS = 45_000
"""The session time-out that librdkafka, and brokers for the newer protocols, take where nothing is set."""

_UNTIL_ALL_ARE_TOLD_S = 60.0
"""How long a member that asks all to shut down waits for the leader, who waits for the slowest member."""

_WHILE_COMMITTING_S = 3.0
"""How long a commit waits for the ends of changelogs, without which state just keeps its old offsets."""


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
    key_watch: KeyWatch | None = None
    """``None`` where it is switched off (``partitioner.check.enable``)."""
    gates: Gates = field(default_factory=Gates)


def start_group(app: ApplicationParts, layout: TopicLayout, bootstrap: Bootstrap, *, reset: bool) -> None:
    """Lets the group begin at the offsets of a bootstrap, unless it has begun there before."""
    bootstrap.check_tasks(layout)
    policy = StartOffsets(app.plan, _reset_policy(app.config), app.admin.offsets_at, app.clock)
    group = GroupConsumer.open(app.supplier, app.config, f"{app.client_id}-bootstrap")
    try:
        GroupStart(
            bootstrap,
            app.plan,
            layout,
            group=group,
            offsets=app.admin,
            policy=lambda place: policy.start(place, because="is not in the bootstrap"),
            clock=app.clock,
        ).settle(reset=reset)
    finally:
        group.close(leave=True)


def build_global_thread(
    app: ApplicationParts,
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
            cache=app.caches.new(),
        ),
        partitions=layout.partitions,
        reader=lambda: RestoreConsumer.open_global(app.supplier, config, app.client_id),
        offsets=app.admin,
        listener=_with_progress(clock, listener),
        config=config,
        clock=clock,
        on_failure=on_failure,
    )


def build_standbys(
    app: ApplicationParts,
    layout: TopicLayout,
    *,
    directory: StateDirectory,
    listener: StandbyUpdateListener | None = None,
    on_listener_failure: Callable[[str | None, StreamsError], None] = lambda member, error: None,
) -> StandbyTasks | None:
    """Makes what keeps the standby tasks that members are assigned, if there is any state to keep."""
    config, clock = app.config, app.clock
    parts = {part.id: part for part in app.plan.subtopologies}
    if not any(part.changelogs for part in app.plan.subtopologies):
        return None
    if app.embedded:
        if config.num_standby_replicas:
            log.warning("on an embedded cluster no standby tasks are kept, so num.standby.replicas has no effect there")
        return None

    def make_task(task_id: TaskId, inputs: frozenset[TopicPartition], committed: Offsets) -> Task:
        return Task(
            task_id,
            parts[task_id.subtopology],
            sorted(inputs),
            config=config,
            clock=clock,
            collector=_uncounted(app, Nowhere(), layout.partitions.__getitem__),
            cache=RecordCache(0),
            directory=directory.task_dir(task_id),
            metrics=metrics,
            make_ready=lambda: app.base.make_ready(task_id, committed, directory),
            is_ready=lambda: app.base.is_ready(task_id, committed, directory),
            gate=app.gates.of(task_id),
        )

    def restorer(offsets: OffsetReader) -> tuple[Restorer, Callable[[], None]]:
        consumer = _changelog_consumer(app, f"{app.client_id}-standby-restore-consumer")
        listeners = Listeners((RestoreMetrics(metrics, app.plan, measured, standby=True), notices))
        made = Restorer(
            consumer, offsets, listeners, log_level=logging.DEBUG, clock=app.clock, on_step=measured.followed
        )
        return made, consumer.close

    def close() -> None:
        measured.close()
        group.close()

    name = f"{app.client_id}-StandbyTasks"
    metrics = app.metrics.with_tags(thread_id=name)
    measured = UpdaterMetrics(metrics)
    group = GroupOffsets(lambda: GroupConsumer.open(app.supplier, config, f"{app.client_id}-standby-offsets"))
    plan = StandbyPlan(group)
    notices = UpdateNotices(listener)
    standbys = StandbyTasks(
        name,
        plan=plan,
        rounds=ChangelogRounds(restorer, app.admin, plan.limits, clock),
        make_task=make_task,
        directory=directory,
        clock=clock,
        on_close=close,
        pause=app.pause,
        notices=notices,
        on_listener_failure=on_listener_failure,
    )
    measured.describe(restoring=lambda: 0, standby=lambda: len(standbys.tasks()), paused=lambda: app.pause.is_set)
    return standbys


def build_sums(app: ApplicationParts, directory: StateDirectory, standbys: StandbyTasks | None) -> OffsetSums:
    """Makes what knows how far the state of each task is in this process."""
    changelogs = {part.id: part.changelogs.keys() for part in app.plan.subtopologies if part.changelogs}
    return OffsetSums(changelogs, directory, standbys)


def build_worker(
    app: ApplicationParts,
    number: int,
    layout: TopicLayout,
    *,
    directory: StateDirectory,
    listener: StateRestoreListener | None,
    on_running: Callable[[bool], None],
    global_stores: Mapping[str, Any],
    standbys: StandbyTasks | None,
    sums: OffsetSums,
    hosts: GroupHosts,
) -> Worker:
    """Makes the clients and the parts of one worker thread; nothing runs yet."""
    config, clock = app.config, app.clock
    name = f"{app.client_id}-StreamThread-{number}"
    metrics = app.metrics.with_tags(thread_id=name)
    updater = _updater(app, name, number, directory, listener, standbys, metrics)
    state = MemberState(name, sums, standbys, running=lambda: tasks.running.copy(), opened=updater.offset_sums)
    membership = open_membership(_group_parts(app), name, number, state, hosts)
    reader = DataConsumer.open(app.supplier, config, f"{name}-consumer", metrics)
    purge = _purge(app)
    output = _output(app, name, number, membership, purge, metrics)
    start_offsets = StartOffsets(app.plan, _reset_policy(config), app.admin.offsets_at, clock)
    woken = threading.Event()
    cache = app.caches.new()
    tasks = TaskManager(
        inputs=layout.inputs,
        membership=membership,
        reader=reader,
        updater=updater,
        start_offsets=start_offsets,
        make_task=_task_maker(app, output, cache, reader.lag, woken.set, directory, global_stores, metrics),
        before_start=lambda: output.commits.before_processing(),
        aside=TasksAside(clock),
        note_of=_note_of(app),
        on_change=TaskCounts(metrics),
    )
    if app.key_watch is not None:
        app.key_watch.follow(layout.partitions)
    swaps, topic_watch = None, None
    if not app.embedded:
        swaps = _swaps(app, name, number, tasks, updater, membership, directory, global_stores)
        topic_watch = TopicWatch(f"{name}-topics", app.topics.check)
    return Worker(
        name,
        WorkerParts(
            membership=membership,
            reader=reader,
            updater=updater,
            output=output,
            tasks=tasks,
            purge=purge,
            start_offsets=start_offsets,
            prepare_topics=app.topics.prepare,
            cache=cache,
            woken=woken,
            swaps=swaps,
            pause=app.pause,
            topic_watch=topic_watch,
            metrics=metrics,
            process_id=app.process_id,
            key_watch=app.key_watch,
        ),
        layout=layout,
        config=config,
        session_timeout_ms=_session_timeout_ms(config),
        clock=clock,
        on_running=on_running,
        leaves_on_failure=not is_static(config),
    )


def is_static(config: StreamsConfig) -> bool:
    """Whether workers are static members, which keep their places in the group while they are away."""
    return group_settings(config, 1).instance_id is not None


def ask_application_to_shut_down(app: ApplicationParts, layout: TopicLayout) -> StreamsError | None:
    """Asks all members of the group to shut down; returns why that could not be seen, if so."""
    name = f"{app.client_id}-shutdown"
    membership = open_membership(_group_parts(app), name, None, NoState(), GroupHosts(), shutdown=True)
    return ask_all_to_shut_down(membership, layout, app.clock, _UNTIL_ALL_ARE_TOLD_S)


def _group_parts(app: ApplicationParts) -> GroupParts:
    return GroupParts(
        app.plan, app.config, app.topics.prepare, app.admin, app.instance, embedded=app.embedded, clock=app.clock
    )


def _note_of(app: ApplicationParts) -> Callable[[TaskId], TopicPartition | None]:
    """Where work is noted: a worker that dies under exactly-once leaves nothing behind, whose note would be missed."""
    parts = {part.id: part for part in app.plan.subtopologies}
    return lambda task: None if app.config.exactly_once else note_place(task, parts[task.subtopology])


def _updater(
    app: ApplicationParts,
    name: str,
    number: int,
    directory: StateDirectory,
    listener: StateRestoreListener | None,
    standbys: StandbyTasks | None,
    metrics: StreamsMetrics,
) -> StateUpdater:
    updater_name = f"{app.client_id}-StateUpdater-{number}"
    measured = UpdaterMetrics(app.metrics.with_tags(thread_id=updater_name))
    return StateUpdater(
        updater_name,
        restorer=lambda: _restorer(app, name, listener, RestoreMetrics(metrics, app.plan, measured), measured),
        metrics=measured,
        directory=directory,
        clock=app.clock,
        task_timeout_ms=app.config.task_timeout_ms,
        cleanup_delay_ms=app.config.state_cleanup_delay_ms,
        standbys=standbys,
        pause=app.pause,
    )


def _output(
    app: ApplicationParts,
    name: str,
    number: int,
    membership: Membership,
    purge: RepartitionPurge | None,
    metrics: StreamsMetrics,
) -> WorkerOutput:
    """Makes the way out of a worker."""
    config = app.config
    return WorkerOutput(
        config=config,
        clock=app.clock,
        metrics=metrics,
        partition_counts=PartitionCounts(app.admin.partition_counts, app.clock, config.metadata_max_age_ms),
        make_producer=lambda: WorkerProducer.open(
            app.supplier,
            config,
            f"{name}-producer",
            transactional_id=_transactional_id(app, number) if config.exactly_once else None,
            metrics=metrics,
        ),
        make_steps=lambda deliveries: _steps(app, name, deliveries, membership, purge),
        changelogs=ChangelogWatch() if app.embedded else None,
    )


def _task_maker(
    app: ApplicationParts,
    output: WorkerOutput,
    cache: RecordCache,
    lag: Callable[[TopicPartition], int | None],
    wake: Callable[[], None],
    directory: StateDirectory,
    global_stores: Mapping[str, Any],
    metrics: StreamsMetrics,
) -> MakeTask:
    """Makes what makes the tasks of a worker."""
    parts = {part.id: part for part in app.plan.subtopologies}

    def make_task(task_id: TaskId, inputs: frozenset[TopicPartition], committed: Offsets, interrupted: bool) -> Task:
        return Task(
            task_id,
            parts[task_id.subtopology],
            sorted(inputs),
            config=app.config,
            clock=app.clock,
            collector=output.collector,  # another one after a renewal
            cache=cache,
            directory=directory.task_dir(task_id),
            metrics=metrics,
            lag=lag,
            global_stores=global_stores,
            wake=wake,
            end_offsets=app.admin.end_offsets if interrupted else None,
            make_ready=lambda: app.base.make_ready(task_id, committed, directory),
            is_ready=lambda: app.base.is_ready(task_id, committed, directory),
            gate=app.gates.of(task_id),
        )

    return make_task


def _swaps(
    app: ApplicationParts,
    name: str,
    number: int,
    tasks: TaskManager,
    updater: StateUpdater,
    membership: Membership,
    directory: StateDirectory,
    global_stores: Mapping[str, Any],
) -> Swaps:
    """Makes the swaps of a worker, for the state of a bootstrap."""
    parts = _shadow_parts(app, name, number, directory, global_stores)
    return Swaps(
        name,
        tasks=tasks,
        updater=updater,
        membership=membership,
        output=parts.output,
        make_shadow=lambda task, committed, generation: Shadow(task, committed, generation, parts),
        clock=app.clock,
    )


def _shadow_parts(
    app: ApplicationParts, name: str, number: int, directory: StateDirectory, global_stores: Mapping[str, Any]
) -> ShadowParts:
    """Makes what the shadows of a worker share; their clients are made when they are needed."""
    config = app.config
    counts = PartitionCounts(app.admin.partition_counts, app.clock, config.metadata_max_age_ms)

    def make_output() -> tuple[WorkerProducer, RecordCollector]:
        producer = WorkerProducer.open_for_one_transaction(
            app.supplier, config, f"{name}-swap-producer", transactional_id=f"{_transactional_id(app, number)}-swap"
        )
        return producer, _uncounted(app, producer, counts.of)

    def make_task(
        task_id: TaskId,
        plan: SubtopologyPlan,
        inputs: Collection[TopicPartition],
        folder: Path,
        lag: Callable[[TopicPartition], int],
        wake: Callable[[], None],
    ) -> Task:
        return Task(
            task_id,
            plan,
            inputs,
            config=config.replace({"max.task.idle.ms": 0, "tracing.enable": False}),
            clock=app.clock,
            collector=_uncounted(app, Nowhere(), counts.of),
            cache=app.caches.new(),
            directory=folder,
            metrics=StreamsMetrics(),
            lag=lag,
            wake=wake,
            global_stores=global_stores,
        )

    return ShadowParts(
        {part.id: part for part in app.plan.subtopologies},
        make_task,
        lambda: RestoreConsumer.open_inputs(app.supplier, config, f"{name}-swap-consumer"),
        app.admin,
        SwapOutput(make_output),
        directory.task_dir,
    )


def _transactional_id(app: ApplicationParts, number: int) -> str:
    return f"{app.config.application_id}-{app.process_id}-{number}"


def _uncounted(app: ApplicationParts, producer: Any, partition_count: Callable[[str], int]) -> RecordCollector:
    """A way out beside that of a worker; what goes there is in no metric."""
    return RecordCollector(
        producer,
        config=app.config,
        metrics=StreamsMetrics(),
        partition_count=partition_count,
        partition_for_key=partition_for_key,
        takes_time_zero=False,
    )


def _purge(app: ApplicationParts) -> RepartitionPurge | None:
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
    app: ApplicationParts,
    name: str,
    deliveries: Deliveries,
    membership: Membership,
    purge: RepartitionPurge | None,
) -> CommitSteps:
    def ignore(offsets: Offsets) -> None:
        """Without repartition topics nobody wants to know."""

    def end_offsets(partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        return app.admin.end_offsets(partitions, timeout_s=_WHILE_COMMITTING_S)

    return CommitSteps(
        deliveries=deliveries,
        membership=membership,
        end_offsets=end_offsets,
        on_committed=ignore if purge is None else purge.committed,
        clock=app.clock,
        outage=Outage(f"commits of {name}", app.clock, app.config.task_timeout_ms / 1000),
        recommit_interval_ms=app.recommit_interval_ms,
    )


def _restorer(
    app: ApplicationParts,
    name: str,
    listener: StateRestoreListener | None,
    metrics: RestoreMetrics,
    updater: UpdaterMetrics,
) -> tuple[Restorer, Callable[[], None]]:
    consumer = _changelog_consumer(app, f"{name}-restore-consumer")
    listeners = Listeners((metrics, _with_progress(app.clock, listener)))
    return Restorer(consumer, app.admin, listeners, clock=app.clock, on_step=updater.restored), consumer.close


def _changelog_consumer(app: ApplicationParts, client_id: str) -> RestoreConsumer:
    # swaps of state write transactions to changelogs, whatever the guarantee is; input topics, where they serve as
    # changelogs, are read as the tasks read them
    reused = any(part.reused_changelogs for part in app.plan.subtopologies)
    return RestoreConsumer.open(app.supplier, app.config, client_id, only_committed=not (reused or app.embedded))


def _with_progress(clock: Clock, listener: StateRestoreListener | None) -> StateRestoreListener:
    shown = restore_progress(clock)
    return shown if listener is None else Listeners((shown, listener))


def _session_timeout_ms(config: StreamsConfig) -> int:
    settings = config.get_main_consumer_configs(config.application_id, "", 1)
    return int(str(settings.get("session.timeout.ms", _BROKER_SESSION_TIMEOUT_MS)))


def _reset_policy(config: StreamsConfig) -> str:
    return str(config.get_main_consumer_configs(config.application_id, "", 1)["auto.offset.reset"])
