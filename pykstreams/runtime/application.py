"""The parts that the workers of one ``KafkaStreams`` share, opened and closed in order.

``prepare`` looks at the cluster and at the topics; ``start_global`` reads the global stores; ``start_standbys`` starts
what keeps standby tasks; from then on ``worker`` makes workers, as many as are wanted, until ``close``.

Invariant: nothing here runs before ``prepare``, and nothing runs any more after ``close``.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from pykstreams.core.clock import Clock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ConfigError, StreamsError
from pykstreams.core.ids import TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.runtime.assembly.application_parts import ApplicationParts
from pykstreams.runtime.assembly.global_thread import build_global_thread
from pykstreams.runtime.assembly.group import ask_application_to_shut_down, start_group
from pykstreams.runtime.assembly.standbys import build_standbys, build_sums
from pykstreams.runtime.assembly.worker import build_worker
from pykstreams.runtime.between_batches import BetweenBatches
from pykstreams.runtime.checks.setting_checks import setting_findings
from pykstreams.runtime.clients.admin import ClusterAdmin
from pykstreams.runtime.clients.supplier import KafkaClientSupplier
from pykstreams.runtime.global_stores.global_thread import GlobalThread
from pykstreams.runtime.key_places.key_watch import KeyWatch
from pykstreams.runtime.membership.group_hosts import GroupHosts
from pykstreams.runtime.membership.offset_sums import OffsetSums
from pykstreams.runtime.metrics.record_traces import require_opentelemetry
from pykstreams.runtime.pause import Pause
from pykstreams.runtime.queries.lags import KeptTask, LagInfo, store_lags
from pykstreams.runtime.restore.restore import StateRestoreListener
from pykstreams.runtime.standby.standby_tasks import StandbyTasks
from pykstreams.runtime.standby.update_listener import StandbyUpdateListener
from pykstreams.runtime.swap.bootstrap import Bootstrap, TaskBase
from pykstreams.runtime.tasks.cache_shares import CacheShares
from pykstreams.runtime.tasks.task import Task
from pykstreams.runtime.topics.start_check import StoppedWhileStartingError, ask_at_start, check_start
from pykstreams.runtime.topics.topic_admin import TopicAdmin, TopicLayout
from pykstreams.runtime.worker.thread_metadata import ThreadMetadata, metadata_of
from pykstreams.runtime.worker.worker import Worker
from pykstreams.state.bulk.folder import Folder
from pykstreams.state.directory.state_directory import StateDirectory
from pykstreams.topology.checks.missing_serdes import check_serdes
from pykstreams.topology.plan import TopologyPlan

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StartOptions:
    """The arguments of ``KafkaStreams`` that only its start uses."""

    supplier: KafkaClientSupplier
    recommit_interval_ms: int
    bootstrap: Folder | None
    reset_offsets: bool


@dataclass(frozen=True, slots=True)
class Prepared:
    """An application whose topics are there."""

    app: ApplicationParts
    layout: TopicLayout


class Application:
    """The parts of one application; the thread that started it opens and closes them, any thread may ask for them.

    :param stopped: tells whether somebody wants the application to stop, which ends a start early.
    """

    def __init__(
        self,
        plan: TopologyPlan,
        config: StreamsConfig,
        clock: Clock,
        options: StartOptions,
        metrics: StreamsMetrics,
        stopped: Callable[[], bool],
    ) -> None:
        self._plan = plan
        self._config = config
        self._clock = clock
        self._options = options
        self._metrics = metrics
        self._stopped = stopped
        self._prepared: Prepared | None = None
        self._directory: StateDirectory | None = None
        self._global: GlobalThread | None = None
        self._standbys: StandbyTasks | None = None
        self._sums: OffsetSums | None = None
        self._caches = CacheShares(config.statestore_cache_max_bytes, has_global=bool(plan.global_stores))
        self.pause = Pause()
        """Whether its tasks stand still."""
        self.between = BetweenBatches()
        """Who is served by its workers between two batches of records."""
        self.hosts = GroupHosts()
        """The instances of the application that have an address."""

    @property
    def prepared(self) -> Prepared | None:
        """The application on its cluster; ``None`` before ``prepare`` and after ``close``."""
        return self._prepared

    @property
    def layout(self) -> TopicLayout | None:
        """The topics, as they were at the start; ``None`` before it, and after ``close``."""
        return None if self._prepared is None else self._prepared.layout

    @property
    def global_thread(self) -> GlobalThread | None:
        """The thread of the global stores, if there are any."""
        return self._global

    def standby_tasks(self) -> list[Task]:
        """The standby tasks whose stores are open."""
        return [] if (standbys := self._standbys) is None else standbys.tasks()

    @property
    def takes_workers(self) -> bool:
        """Whether ``worker`` may be called: when everything else runs, and there are tasks at all."""
        return self._sums is not None

    def share_cache(self, workers: int) -> None:
        """Shares out the record cache among so many workers."""
        self._caches.share_among(workers)

    def thread_metadata(self, workers: Iterable[Worker]) -> list[ThreadMetadata]:
        """The metadata of workers, each with the standby tasks that it was assigned."""
        if (prepared := self._prepared) is None:
            return []
        standbys, admin_id = self._standbys, f"{prepared.app.client_id}-admin"
        kept: dict[str | None, list[Task]] = {}
        for task in self.standby_tasks():
            kept.setdefault(None if standbys is None else standbys.member_of(task.id), []).append(task)
        return [metadata_of(worker, kept.get(worker.name, ()), admin_id) for worker in workers]

    def store_lags(self, workers: Iterable[Worker]) -> dict[str, dict[int, LagInfo]]:
        """How far the stores of standby tasks and of workers are behind their changelogs."""
        if (prepared := self._prepared) is None:
            return {}
        positions: Mapping[TopicPartition, int] = {} if self._standbys is None else self._standbys.positions()
        tasks = [KeptTask(task, False, positions) for task in self.standby_tasks()]
        for worker in workers:  # a task of a worker comes after its standby
            positions = worker.positions()
            tasks += [KeptTask(task, runs, positions) for task, runs in worker.tasks().items()]
        return store_lags(tasks, prepared.app.admin.end_offsets)

    def prepare(self) -> Prepared:
        """Looks at the cluster, and makes the internal topics that are missing."""
        config = self._config
        check_serdes(self._plan, config)
        for found in setting_findings(config):
            log.warning("%s %s; %s", found.where, found.what, found.cure)
        if config.tracing_enable:
            require_opentelemetry()
        folder = self._options.bootstrap
        bootstrap = None if folder is None else Bootstrap(folder, self._plan, config)
        self._directory = directory = self.open_directory()
        directory.make(config)
        process_id = _checked_id(directory.process_id(_new_process_id), directory)
        instance = _checked_id(directory.instance_id(), directory)
        client_id = config.client_id or f"{config.application_id}-{process_id}"
        admin = ClusterAdmin.open(self._options.supplier, config, f"{client_id}-admin", self._clock)

        def prepared() -> Prepared:
            return self._prepared_on(admin, bootstrap, client_id=client_id, process_id=process_id, instance=instance)

        try:
            self._prepared = made = ask_at_start(prepared, admin, config, self._clock, self._stopped)
        except BaseException:
            admin.close()
            raise
        return made

    def _prepared_on(
        self, admin: ClusterAdmin, bootstrap: Bootstrap | None, *, client_id: str, process_id: str, instance: str
    ) -> Prepared:
        """Checks the cluster and prepares topics and offsets; may be called again."""
        config = self._config
        check_start(self._plan, config, admin)
        app = ApplicationParts(
            plan=self._plan,
            config=config,
            clock=self._clock,
            supplier=self._options.supplier,
            admin=admin,
            topics=TopicAdmin(admin, self._plan, replication=config.replication_factor, embedded=admin.embedded),
            metrics=self._metrics,
            client_id=client_id,
            process_id=process_id,
            instance=instance,
            embedded=admin.embedded,
            base=TaskBase(self._plan, config, admin, bootstrap),
            caches=self._caches,
            recommit_interval_ms=self._options.recommit_interval_ms,
            pause=self.pause,
            between=self.between,
            key_watch=KeyWatch(self._plan) if config.partitioner_check_enable else None,
        )
        layout = app.topics.prepare()
        if bootstrap is not None:
            start_group(app, layout, bootstrap, reset=self._options.reset_offsets)
        return Prepared(app, layout)

    def start_global(self, listener: StateRestoreListener | None, on_failure: Callable[[StreamsError], None]) -> None:
        """Reads the global stores, if there are any, to the ends of their topics."""
        directory = self._directory
        if not self._plan.global_stores or directory is None:
            return
        prepared = self._require()
        self._global = build_global_thread(
            prepared.app,
            prepared.layout,
            directory=directory,
            listener=listener,
            on_failure=on_failure,
        )
        if not self._global.start(self._stopped):
            raise StoppedWhileStartingError

    def start_standbys(
        self, listener: StandbyUpdateListener | None, on_listener_failure: Callable[[str | None, StreamsError], None]
    ) -> None:
        """Starts what keeps the standby tasks of this process; call it before the first worker is made.

        :param on_listener_failure: called with the name of the worker whose standby task it was, and the error.
        """
        prepared = self._require()
        self._standbys = build_standbys(
            prepared.app,
            prepared.layout,
            directory=self.open_directory(),
            listener=listener,
            on_listener_failure=on_listener_failure,
        )
        self._sums = build_sums(prepared.app, self.open_directory(), self._standbys)
        if self._standbys is not None:
            self._standbys.start()

    def worker(self, number: int, listener: StateRestoreListener | None, on_running: Callable[[bool], None]) -> Worker:
        """Makes a worker; nothing of it runs yet. ``StoppedWhileStartingError``: everything was closed meanwhile."""
        prepared = self._require()
        if self._sums is None:
            raise StoppedWhileStartingError
        return build_worker(
            prepared.app,
            number,
            prepared.layout,
            directory=self.open_directory(),
            listener=listener,
            on_running=on_running,
            global_stores=self._global_views(),
            standbys=self._standbys,
            sums=self._sums,
            hosts=self.hosts,
        )

    def ask_all_to_shut_down(self) -> StreamsError | None:
        """Asks all members of the group to shut down; returns why that could not be seen, if so."""
        if (prepared := self._prepared) is None:
            return None
        return ask_application_to_shut_down(prepared.app, prepared.layout)

    def close(self) -> None:
        """Closes everything, after the last worker has ended; a second call does nothing."""
        global_thread, self._global = self._global, None
        standbys, self._standbys = self._standbys, None
        directory, self._directory = self._directory, None
        prepared, self._prepared = self._prepared, None
        self._sums = None
        with ExitStack() as stack:  # closed from the last to the first, whatever one of them raises
            if prepared is not None:
                stack.callback(prepared.app.admin.close)
            if directory is not None:
                stack.callback(directory.close)
            if standbys is not None:
                stack.callback(standbys.stop)
            if global_thread is not None:
                stack.callback(global_thread.stop)

    def open_directory(self) -> StateDirectory:
        """Opens the state directory once more: each that is opened has locks of its own."""
        return StateDirectory.of(self._config, clock=self._clock)

    def _global_views(self) -> Mapping[str, Any]:
        return {} if self._global is None else self._global.views

    def _require(self) -> Prepared:
        if (prepared := self._prepared) is None:
            raise StoppedWhileStartingError
        return prepared


def _checked_id(stored: str, directory: StateDirectory) -> str:
    try:
        return str(uuid.UUID(stored))
    except ValueError:
        raise ConfigError(
            f"a file worker-*.id in {str(directory.path)!r} holds {stored[:40]!r}, which is no id of a process; delete "
            "that file: a new id is made then, and tasks may move once"
        ) from None


def _new_process_id() -> str:
    """An id that no other process has; the one place where a running application makes one up."""
    return str(uuid.UUID(bytes=os.urandom(16), version=4))
