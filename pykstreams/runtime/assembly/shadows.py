"""Puts together what swaps the tasks of a worker for the state of a bootstrap."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.runtime.assembly.application_parts import WorkerPlace, uncounted
from pykstreams.runtime.clients.consumers.restore_consumer import RestoreConsumer
from pykstreams.runtime.clients.producer import WorkerProducer, one_transaction_ms
from pykstreams.runtime.membership.membership import Membership
from pykstreams.runtime.swap.only_stores import Nowhere
from pykstreams.runtime.swap.shadow import Shadow, ShadowParts
from pykstreams.runtime.swap.swap_output import SwapOutput
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.stores.initial_state import InitialState
from pykstreams.runtime.tasks.task import Task, TaskParts
from pykstreams.runtime.topics.partition_counts import PartitionCounts
from pykstreams.runtime.worker.state_updater import StateUpdater
from pykstreams.runtime.worker.swaps import Swaps
from pykstreams.runtime.worker.task_manager import TaskManager
from pykstreams.topology.plan import SubtopologyPlan


def build_swaps(place: WorkerPlace, tasks: TaskManager, updater: StateUpdater, membership: Membership) -> Swaps:
    """Makes the swaps of a worker, for the state of a bootstrap."""
    parts = _shadow_parts(place)
    return Swaps(
        place.name,
        tasks=tasks,
        updater=updater,
        membership=membership,
        output=parts.output,
        make_shadow=lambda task, committed, generation: Shadow(task, committed, generation, parts),
        clock=place.app.clock,
        transaction_s=one_transaction_ms(place.app.config) / 1000,
    )


def _shadow_parts(place: WorkerPlace) -> ShadowParts:
    """Makes what the shadows of a worker share; their clients are made when they are needed."""
    app, config = place.app, place.app.config
    counts = PartitionCounts(app.admin.partition_counts, app.clock, config.metadata_max_age_ms)

    def make_output() -> tuple[WorkerProducer, RecordCollector]:
        producer = WorkerProducer.open_for_one_transaction(
            app.supplier,
            config,
            f"{place.name}-swap-producer",
            transactional_id=f"{place.transactional_id}-swap",
        )
        return producer, uncounted(app, producer, counts.of)

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
            TaskParts(
                config=config.replace({"max.task.idle.ms": 0, "tracing.enable": False}),
                clock=app.clock,
                collector=uncounted(app, Nowhere(), counts.of),
                cache=app.caches.new(),
                metrics=StreamsMetrics(),
                global_stores=place.global_stores,
                wake=wake,
            ),
            InitialState(folder),
            lag=lag,
        )

    return ShadowParts(
        {part.id: part for part in app.plan.subtopologies},
        make_task,
        lambda: RestoreConsumer.open_inputs(app.supplier, config, f"{place.name}-swap-consumer"),
        app.admin,
        SwapOutput(make_output),
        place.directory.task_dir,
    )
