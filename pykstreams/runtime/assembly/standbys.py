"""Puts together what keeps the standby tasks of a process, and what knows how far all of its state is."""

from __future__ import annotations

import logging
from collections.abc import Callable

from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.runtime.assembly.application_parts import ApplicationParts, changelog_consumer, uncounted
from pykstreams.runtime.clients.consumers.group_consumer import GroupConsumer
from pykstreams.runtime.clients.positions import OffsetReader, Offsets
from pykstreams.runtime.membership.offset_sums import OffsetSums
from pykstreams.runtime.metrics.updater_metrics import UpdaterMetrics
from pykstreams.runtime.restore.restore import Listeners, Restorer
from pykstreams.runtime.restore.restore_metrics import RestoreMetrics
from pykstreams.runtime.standby.changelog_rounds import ChangelogRounds, MakeRestorer
from pykstreams.runtime.standby.group_offsets import GroupOffsets
from pykstreams.runtime.standby.standby_plan import StandbyPlan
from pykstreams.runtime.standby.standby_tasks import MakeStandby, StandbyTasks
from pykstreams.runtime.standby.update_listener import StandbyUpdateListener, UpdateNotices
from pykstreams.runtime.swap.only_stores import Nowhere
from pykstreams.runtime.tasks.task import Task, TaskParts
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.state.interfaces.record_cache import RecordCache

log = logging.getLogger(__name__)


def build_standbys(
    app: ApplicationParts,
    layout: TopicLayout,
    *,
    directory: StateDirectory,
    listener: StandbyUpdateListener | None = None,
    on_listener_failure: Callable[[str | None, StreamsError], None] = lambda member, error: None,
) -> StandbyTasks | None:
    """Makes what keeps the standby tasks that members are assigned, if there is any state to keep."""
    if not any(part.changelogs for part in app.plan.subtopologies):
        return None
    if app.embedded:
        if app.config.num_standby_replicas:
            log.warning("on an embedded cluster no standby tasks are kept, so num.standby.replicas has no effect there")
        return None

    def close() -> None:
        measured.close()
        group.close()

    name = f"{app.client_id}-StandbyTasks"
    metrics = app.metrics.with_tags(thread_id=name)
    measured = UpdaterMetrics(metrics)
    group = GroupOffsets(lambda: GroupConsumer.open(app.supplier, app.config, f"{app.client_id}-standby-offsets"))
    plan = StandbyPlan(group)
    notices = UpdateNotices(listener)
    standbys = StandbyTasks(
        name,
        plan=plan,
        rounds=ChangelogRounds(_restorer_maker(app, metrics, measured, notices), app.admin, plan.limits, app.clock),
        make_task=_task_maker(app, layout, directory, metrics),
        directory=directory,
        clock=app.clock,
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


def _task_maker(
    app: ApplicationParts, layout: TopicLayout, directory: StateDirectory, metrics: StreamsMetrics
) -> MakeStandby:
    parts = {part.id: part for part in app.plan.subtopologies}

    def make_task(task_id: TaskId, inputs: frozenset[TopicPartition], committed: Offsets) -> Task:
        return Task(
            task_id,
            parts[task_id.subtopology],
            sorted(inputs),
            TaskParts(
                config=app.config,
                clock=app.clock,
                collector=uncounted(app, Nowhere(), layout.partitions.__getitem__),
                cache=RecordCache(0),
                metrics=metrics,
            ),
            app.base.of_task(task_id, committed, directory),
            gate=app.gates.of(task_id),
        )

    return make_task


def _restorer_maker(
    app: ApplicationParts, metrics: StreamsMetrics, measured: UpdaterMetrics, notices: UpdateNotices
) -> MakeRestorer:
    def restorer(offsets: OffsetReader) -> tuple[Restorer, Callable[[], None]]:
        consumer = changelog_consumer(app, f"{app.client_id}-standby-restore-consumer")
        listeners = Listeners((RestoreMetrics(metrics, app.plan, measured, standby=True), notices))
        made = Restorer(
            consumer, offsets, listeners, log_level=logging.DEBUG, clock=app.clock, on_step=measured.followed
        )
        return made, consumer.close

    return restorer
