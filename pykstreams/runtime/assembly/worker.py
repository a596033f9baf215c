"""Puts a worker together: which client is made with which id, and who gets what."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.assembly.application_parts import (
    ApplicationParts,
    WorkerPlace,
    changelog_consumer,
    reset_policy,
    with_progress,
)
from pykstreams.runtime.assembly.group import group_parts, is_static
from pykstreams.runtime.assembly.shadows import build_swaps
from pykstreams.runtime.clients.consumers.data_consumer import DataConsumer
from pykstreams.runtime.clients.consumers.lost_positions import LostPositions
from pykstreams.runtime.clients.coordinators.coordinator_requests import group_settings
from pykstreams.runtime.clients.outage import Outage
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.clients.producer import WorkerProducer
from pykstreams.runtime.membership.group_hosts import GroupHosts
from pykstreams.runtime.membership.member_state import MemberState
from pykstreams.runtime.membership.membership import Membership
from pykstreams.runtime.membership.offset_sums import OffsetSums
from pykstreams.runtime.membership.opening import open_membership
from pykstreams.runtime.metrics.thread_metrics import TaskCounts
from pykstreams.runtime.metrics.updater_metrics import UpdaterMetrics
from pykstreams.runtime.restore.restore import Listeners, Restorer, StateRestoreListener
from pykstreams.runtime.restore.restore_metrics import RestoreMetrics
from pykstreams.runtime.standby.standby_tasks import StandbyTasks
from pykstreams.runtime.tasks.changelog_watch import ChangelogWatch
from pykstreams.runtime.tasks.task import Task, TaskParts
from pykstreams.runtime.topics.partition_counts import PartitionCounts
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.runtime.topics.topic_watch import TopicWatch
from pykstreams.runtime.worker.client_ids import consumer_id, producer_id, restore_consumer_id
from pykstreams.runtime.worker.commits.commit import CommitSteps, Deliveries
from pykstreams.runtime.worker.commits.delivery_times import DeliveryTimes
from pykstreams.runtime.worker.commits.output import WorkerOutput
from pykstreams.runtime.worker.commits.purge import RepartitionPurge
from pykstreams.runtime.worker.commits.work_notes import note_place
from pykstreams.runtime.worker.start_offsets import StartOffsets
from pykstreams.runtime.worker.state_updater import StateUpdater
from pykstreams.runtime.worker.task_manager import MakeTask, TaskManager
from pykstreams.runtime.worker.tasks_aside import TasksAside
from pykstreams.runtime.worker.topic_check import TopicCheck
from pykstreams.runtime.worker.unsettled_offsets import UnsettledOffsets
from pykstreams.runtime.worker.worker import Worker, WorkerParts
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.state.interfaces.record_cache import RecordCache

_WHILE_COMMITTING_S = 3.0
"""How long a commit waits for the ends of changelogs, without which state just keeps its old offsets."""


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
    place = WorkerPlace(app, number, directory, global_stores)
    updater = _updater(place, listener, standbys)
    state = MemberState(place.name, sums, standbys, running=lambda: tasks.running.copy(), opened=updater.offset_sums)
    membership = open_membership(group_parts(app), place.name, number, state, hosts)
    reader = DataConsumer.open(app.supplier, config, consumer_id(place.name), place.metrics)
    purge = _purge(app)
    output = _output(place, membership, purge)
    start_offsets = StartOffsets(app.plan, reset_policy(config), app.admin.offsets_at, clock)
    woken = threading.Event()
    cache = app.caches.new()
    tasks = TaskManager(
        inputs=layout.inputs,
        membership=membership,
        reader=reader,
        updater=updater,
        start_offsets=start_offsets,
        make_task=_task_maker(place, output, cache, reader.lag, woken.set),
        before_start=lambda: output.commits.before_processing(),
        aside=TasksAside(clock, keep=directory.keep),
        unsettled=UnsettledOffsets(config.application_id, clock, config.task_timeout_ms / 1000),
        note_of=_note_of(app),
        on_change=TaskCounts(place.metrics),
    )
    if app.key_watch is not None:
        app.key_watch.follow(layout.partitions)
    return Worker(
        place.name,
        WorkerParts(
            membership=membership,
            reader=reader,
            updater=updater,
            output=output,
            tasks=tasks,
            purge=purge,
            lost_positions=LostPositions(app.admin, start_offsets, clock),
            topic_check=TopicCheck(app.topics.prepare, clock, config.metadata_max_age_ms),
            cache=cache,
            woken=woken,
            swaps=None if app.embedded else build_swaps(place, tasks, updater, membership),
            pause=app.pause,
            between=app.between,
            topic_watch=None if app.embedded else TopicWatch(f"{place.name}-topics", app.topics.check),
            metrics=place.metrics,
            process_id=app.process_id,
            key_watch=app.key_watch,
        ),
        layout=layout,
        config=config,
        clock=clock,
        on_running=on_running,
        leaves_on_failure=not is_static(config),
        longest_turn_s=group_settings(config, None).rebalance_timeout_ms / 1000,
    )


def _note_of(app: ApplicationParts) -> Callable[[TaskId], TopicPartition | None]:
    """Where work is noted: a worker that dies under exactly-once leaves nothing behind, whose note would be missed."""
    parts = {part.id: part for part in app.plan.subtopologies}
    return lambda task: None if app.config.exactly_once else note_place(task, parts[task.subtopology])


def _updater(place: WorkerPlace, listener: StateRestoreListener | None, standbys: StandbyTasks | None) -> StateUpdater:
    app = place.app
    updater_name = f"{app.client_id}-StateUpdater-{place.number}"
    measured = UpdaterMetrics(app.metrics.with_tags(thread_id=updater_name))
    return StateUpdater(
        updater_name,
        restorer=lambda: _restorer(place, listener, RestoreMetrics(place.metrics, app.plan, measured), measured),
        metrics=measured,
        directory=place.directory,
        clock=app.clock,
        task_timeout_ms=app.config.task_timeout_ms,
        cleanup_delay_ms=app.config.state_cleanup_delay_ms,
        standbys=standbys,
        pause=app.pause,
    )


def _output(place: WorkerPlace, membership: Membership, purge: RepartitionPurge | None) -> WorkerOutput:
    """Makes the way out of a worker."""
    app, config = place.app, place.app.config
    times = None if config.exactly_once or app.embedded else DeliveryTimes.of(config)
    return WorkerOutput(
        config=config,
        clock=app.clock,
        partition_counts=PartitionCounts(app.admin.partition_counts, app.clock, config.metadata_max_age_ms),
        make_producer=lambda: WorkerProducer.open(
            app.supplier,
            config,
            producer_id(place.name),
            transactional_id=place.transactional_id if config.exactly_once else None,
            record_s=None if times is None else times.record_s,
            metrics=place.metrics,
        ),
        make_steps=lambda deliveries: _steps(place, deliveries, membership, purge),
        changelogs=ChangelogWatch() if app.embedded else None,
        times=times,
    )


def _task_maker(
    place: WorkerPlace,
    output: WorkerOutput,
    cache: RecordCache,
    lag: Callable[[TopicPartition], int | None],
    wake: Callable[[], None],
) -> MakeTask:
    """Makes what makes the tasks of a worker."""
    app = place.app
    parts = {part.id: part for part in app.plan.subtopologies}

    def make_task(task_id: TaskId, inputs: frozenset[TopicPartition], committed: Offsets, interrupted: bool) -> Task:
        return Task(
            task_id,
            parts[task_id.subtopology],
            sorted(inputs),
            TaskParts(
                config=app.config,
                clock=app.clock,
                collector=output.collector,  # another one after a renewal
                cache=cache,
                metrics=place.metrics,
                global_stores=place.global_stores,
                wake=wake,
            ),
            app.base.of_task(task_id, committed, place.directory),
            lag=lag,
            end_offsets=app.admin.end_offsets if interrupted else None,
            gate=app.gates.of(task_id),
        )

    return make_task


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
    place: WorkerPlace, deliveries: Deliveries, membership: Membership, purge: RepartitionPurge | None
) -> CommitSteps:
    app = place.app

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
        outage=Outage(f"commits of {place.name}", app.clock, app.config.task_timeout_ms / 1000),
        recommit_interval_ms=app.recommit_interval_ms,
        between=app.between,
    )


def _restorer(
    place: WorkerPlace, listener: StateRestoreListener | None, metrics: RestoreMetrics, updater: UpdaterMetrics
) -> tuple[Restorer, Callable[[], None]]:
    app = place.app
    consumer = changelog_consumer(app, restore_consumer_id(place.name))
    listeners = Listeners((metrics, with_progress(app.clock, listener)))
    return Restorer(consumer, app.admin, listeners, clock=app.clock, on_step=updater.restored), consumer.close
