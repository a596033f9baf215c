"""``KafkaStreams``: an application on a cluster, from ``start`` to ``close``.

It prepares the topics, runs the workers in threads, and says which state the application is in. More cores are used by
more processes, each with a ``KafkaStreams`` of its own.

Invariant: the state changes along ``State.is_valid_transition`` only; ``ERROR`` is reached exactly when a worker failed
and nobody replaced it, and then ``error`` says why.
"""

from __future__ import annotations

import gc
import logging
import os
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from enum import Enum
from types import TracebackType
from typing import Any, TypeVar

from pykstreams.core.clock import Clock, SystemClock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.configured_metrics import configured_metrics
from pykstreams.core.errors import ConfigError, StreamsError, StreamsNotStartedError, StreamsStoppedError
from pykstreams.core.handlers import StreamsUncaughtExceptionHandler, StreamThreadExceptionResponse
from pykstreams.core.ids import TaskId
from pykstreams.core.metrics import Metric, MetricName
from pykstreams.core.shown_values import hide_values, show_values
from pykstreams.core.types import Duration, StreamPartitioner, duration_ms
from pykstreams.runtime.application import Application, StartOptions
from pykstreams.runtime.assembly.group import is_static
from pykstreams.runtime.clients.supplier import KafkaClientSupplier
from pykstreams.runtime.health import Health, TaskHealth
from pykstreams.runtime.life_cycle import LifeCycle, State, StateListener
from pykstreams.runtime.membership.membership import ShutdownRequestedError
from pykstreams.runtime.metrics.client_metrics import ClientMetrics
from pykstreams.runtime.open_files import allow_open_files
from pykstreams.runtime.queries.lags import LagInfo
from pykstreams.runtime.queries.local import LocalQueries
from pykstreams.runtime.queries.metadata import KeyQueryMetadata, StreamsMetadata
from pykstreams.runtime.queries.store_types import QueryableStoreType
from pykstreams.runtime.restore.restore import StateRestoreListener
from pykstreams.runtime.signals import stopped_by_signals
from pykstreams.runtime.standby.update_listener import StandbyUpdateListener
from pykstreams.runtime.swap.generation import BootstrapLoad
from pykstreams.runtime.swap.loading import BootstrapLoading
from pykstreams.runtime.tasks.dropped import NodeDrops
from pykstreams.runtime.topics.start_check import StoppedWhileStartingError
from pykstreams.runtime.worker.commits.commit import RECOMMIT_INTERVAL_MS
from pykstreams.runtime.worker.thread_metadata import ThreadMetadata
from pykstreams.runtime.worker.worker import Worker
from pykstreams.runtime.worker_threads import WorkerThreads
from pykstreams.state.bulk.folder import folder_at
from pykstreams.state.interfaces.position import PositionBound
from pykstreams.state.interfaces.query import Query
from pykstreams.state.interfaces.query_results import StateQueryResult
from pykstreams.topology.checks.missing_sources import check_sources
from pykstreams.topology.description import TopologyDescription
from pykstreams.topology.topology import Topology, check_topology

log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")

_LOOK_FOR_SIGNALS_S = 0.2
_STOP_LOOK_S = 10.0
"""How often is looked for what keeps an application from stopping, and how long a turn may take before it is named."""
_STOP_S = 60.0
"""How long a worker in one turn is waited for, once it was asked to stop."""
_COLLECT_AFTER = 50_000
"""New containers between two looks for cycles: a batch of records makes thousands, all of them freed by counting."""


class GroupMembershipOperation(Enum):
    """How ``close`` leaves the group."""

    LEAVE_GROUP = "leave_group"
    REMAIN_IN_GROUP = "remain_in_group"


class KafkaStreams:
    """Runs a topology; a context manager that starts and closes it.

    It creates the application's internal topics where they are missing, and joins the group ``application.id``.

    :param config: settings; ``application.id`` and ``bootstrap.servers`` are needed.
    :param client_supplier: makes the Kafka clients.
    :param state_listener: called with (new state, old state), from the threads in which states change.
    :param uncaught_exception_handler: asked what to do when a worker failed; without it the application stops.
    :param state_restore_listener: is notified of how the restoring of stores goes.
    :param standby_update_listener: is notified of how standby tasks are kept up.
    :param time: the clock.
    :param recommit_interval: how often offsets of idle inputs are committed again; must be shorter than the brokers'
        ``offsets.retention.minutes``.
    :param bootstrap: the folder of a bootstrap: the group starts at its offsets, and tasks without state with its
        files. Once the group has started from it, it goes on where it is.
    :param reset_offsets: whether offsets that the group has already are given up for those of the bootstrap.
    """

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig | Mapping[str, object],
        *,
        client_supplier: KafkaClientSupplier | None = None,
        state_listener: StateListener | None = None,
        uncaught_exception_handler: StreamsUncaughtExceptionHandler | None = None,
        state_restore_listener: StateRestoreListener | None = None,
        standby_update_listener: StandbyUpdateListener | None = None,
        time: Clock | None = None,
        recommit_interval: Duration = RECOMMIT_INTERVAL_MS,
        bootstrap: str | os.PathLike[str] | None = None,
        reset_offsets: bool = False,
    ) -> None:
        check_topology(topology)
        self._config = config if isinstance(config, StreamsConfig) else StreamsConfig(config)
        self._config.require()
        self._config.check_references()
        self._life = LifeCycle(self._config.application_id)
        self._life.listener = state_listener
        self.uncaught_exception_handler = uncaught_exception_handler
        self.state_restore_listener = state_restore_listener
        self.standby_update_listener = standby_update_listener
        self.error: BaseException | None = None
        """Why the application is in state ``ERROR``."""
        self._plan = topology.plan(self._config)
        check_sources(self._plan)
        clock = time or SystemClock()
        supplier = client_supplier or self._config.client_supplier
        options = _start_options(supplier, recommit_interval, bootstrap, reset_offsets)
        self._metrics = configured_metrics(self._config, clock)
        self._client_metrics: ClientMetrics | None = None
        self._topology = topology
        self._stop_requested = False
        self._leaves_by_itself = not is_static(self._config)
        self._leave = False
        self._application = Application(
            self._plan, self._config, clock, options, self._metrics, lambda: self._stop_requested
        )
        self._finishing = threading.RLock()
        self._workers = WorkerThreads(
            self._build,
            before_start=self._before_start,
            replaces=self._replaces,
            on_failure=self._stop_after,
            on_running=self._running_changed,
            on_count=self._application.share_cache,
            on_end=self._last_ended,
        )
        self._loading = BootstrapLoading(self._plan, self._config, lambda: self._workers.workers)
        self._queries = LocalQueries(
            self._plan,
            self._config,
            clock,
            workers=lambda: self._workers.workers,
            globals_=lambda: self._application.global_thread,
            layout=lambda: self._application.layout,
            check=self._check_queryable,
            standbys=self._application.standby_tasks,
            hosts=self._application.hosts.known,
            between=self._application.between,
        )

    def __repr__(self) -> str:
        return f"<KafkaStreams {self._config.application_id!r} {self.state.name}>"

    @property
    def state(self) -> State:
        """Where the application is in its life."""
        return self._life.state

    @property
    def state_listener(self) -> StateListener | None:
        """Called with (new state, old state), from the threads in which states change."""
        return self._life.listener

    @state_listener.setter
    def state_listener(self, listener: StateListener | None) -> None:
        self._life.listener = listener

    def start(self) -> None:
        """Prepares the topics, reads the global stores and starts the workers.

        Errors that need no record to be seen are raised here.
        Waits for a cluster that does not answer up to ``task.timeout.ms``, then raises ``ClusterError``.
        """
        if not self._life.move(State.REBALANCING):
            raise StreamsError(
                f"the application is {self.state.value} and cannot be started; an application starts once, make a new "
                "KafkaStreams"
            )
        if not self._config.log_record_values:
            hide_values(self)
        try:
            prepared = self._application.prepare()
            self._describe(prepared.app.client_id, prepared.app.process_id)
            self._application.start_global(self.state_restore_listener, self._global_failed)
            self._loading.load_remembered(prepared.layout, prepared.app.admin, embedded=prepared.app.embedded)
            if self._plan.global_stores and not self._plan.subtopologies:  # there is no task, and no worker needed
                self._life.move(State.RUNNING)
                return
            self._application.start_standbys(self.standby_update_listener, self._workers.fail)
            for _ in range(self._config.num_stream_threads):
                self._workers.add()
        except StoppedWhileStartingError:
            self._finish()
        except BaseException as error:
            self.error = error
            self._life.move(State.PENDING_ERROR)
            self._workers.stop(leave=self._leaves_by_itself)
            if self._workers.has_ended:
                self._finish()
            raise

    def close(
        self,
        timeout: Duration | None = None,
        *,
        group_membership: GroupMembershipOperation = GroupMembershipOperation.REMAIN_IN_GROUP,
    ) -> bool:
        """Commits, closes all tasks and stops; false when that took longer than ``timeout``.

        A worker that remains in the group keeps its tasks until its session ends (``session.timeout.ms``), in case it
        comes back; one that leaves hands them over at once, and so does a static member
        (``group.instance.id``), which has no place to come back to then (``CloseOptions``, KIP-1153).
        """
        leave = group_membership is GroupMembershipOperation.LEAVE_GROUP
        self._stop_requested = True
        self._leave = leave
        if self._life.move(State.PENDING_SHUTDOWN) and self._workers.has_ended:
            self._finish()
        self._workers.stop(leave=leave)
        if self._is_own_thread:  # of a listener, which cannot wait for itself
            return False
        seconds = None if timeout is None else duration_ms(timeout, "timeout") / 1000
        return self._life.wait_for(_has_ended, seconds)

    def add_stream_thread(self) -> str | None:
        """Starts one more worker in a running application, and returns its name.

        It gets its tasks as soon as the group has shared them out anew, and the application is rebalancing until then.
        All workers share ``statestore.cache.max.bytes``, so each has less of it from now on. ``None`` when the
        application does not run, has not got so far in its start, or has global stores only.
        """
        if self.state.is_running_or_rebalancing and self._application.takes_workers:
            with suppress(StoppedWhileStartingError):
                return self._workers.add()
        log.warning("the application is %s, and no worker can be added", self.state.value)
        return None

    def remove_stream_thread(self, timeout: Duration | None = None) -> str | None:
        """Has one worker commit, close its tasks and leave the group for good, and returns its name when it has ended.

        The others get its tasks, and its share of ``statestore.cache.max.bytes``. An application without workers goes
        on, and works again when one is added. ``None`` when the application does not run, or when no worker is left
        that was not asked to end already.

        In the thread of a worker, as in a handler, another worker is removed; the last one ends itself, after the
        call. Which one it is cannot be chosen: it is the one that has worked longest.

        :param timeout: raises ``TimeoutError`` when the worker has not ended by then; it goes on ending.
        """
        seconds = None if timeout is None else duration_ms(timeout, "timeout") / 1000
        if not self.state.is_running_or_rebalancing:
            log.warning("the application is %s, and no worker can be removed", self.state.value)
            return None
        name = self._workers.remove(seconds)
        if name is None:
            log.warning("no worker is left that could be removed")
        return name

    def pause(self) -> None:
        """Has all tasks of this process stand still, also those that come later; returns at once.

        No record is processed, no punctuator runs, no state is restored, and standby tasks are not kept up. The members
        stay in the group with their tasks, inputs are read as far as there is room, what was processed is committed,
        and stores can be read. Global stores go on. The state stays as it is, or becomes ``RUNNING`` where tasks were
        being restored. It may be called before the start; other processes of the application are not told.
        """
        if not self._application.pause.is_set:
            log.info("the tasks of this process are paused")
        self._application.pause.is_set = True

    def resume(self) -> None:
        """Has the tasks of this process go on; returns at once."""
        if self._application.pause.is_set:
            log.info("the tasks of this process go on")
        self._application.pause.is_set = False

    @property
    def is_paused(self) -> bool:
        """Whether the tasks of this process stand still, or are about to."""
        return self._application.pause.is_set

    def run(self) -> None:
        """Starts, works until SIGINT or SIGTERM comes, then commits, closes and leaves the group.

        A static member (``group.instance.id``) remains in the group, since it is about to come back. Raises the error
        that ended a worker, and ``StreamsError`` for one that is busy with one turn for a minute when it is to end. For
        scripts, in their main thread: it takes the process over, makes Python look less often for cycles of garbage,
        of which records make none, and lets the process have as many files open as its user may.
        """
        with stopped_by_signals(self._request_stop):
            allow_open_files()
            gc.set_threshold(_COLLECT_AFTER, *gc.get_threshold()[1:])
            self.start()
            while not self._stop_requested and not self._life.wait_for(_has_ended, _LOOK_FOR_SIGNALS_S):
                pass
            leaves = self._leaves_by_itself
            operation = GroupMembershipOperation.LEAVE_GROUP if leaves else GroupMembershipOperation.REMAIN_IN_GROUP
            self._close_in_time(operation)
        if self.error is not None:
            raise self.error

    def _close_in_time(self, operation: GroupMembershipOperation) -> None:
        """Closes, and gives up on a worker that remains in one turn: a call of a user's function that does not end."""
        waited_s = 0.0
        while not self.close(round(_STOP_LOOK_S * 1000), group_membership=operation):
            waited_s += _STOP_LOOK_S
            busy = {
                worker.name: busy_s for worker in self._workers.workers if (busy_s := worker.busy_s()) > _STOP_LOOK_S
            }
            for name, busy_s in busy.items():
                log.warning(
                    "%s has been busy with one turn for %.0f s, mostly with one call of a function, and cannot stop "
                    "before that is over; a second signal ends the process at once",
                    name,
                    busy_s,
                )
            if busy and min(waited_s, max(busy.values())) >= _STOP_S:
                raise StreamsError(
                    f"{', '.join(busy)} did not stop within {_STOP_S:g} s, being busy with one turn, mostly with one "
                    "call of a function; what it has not committed is processed again. Give functions that wait for "
                    "something a time-out"
                )

    def wait(self, timeout: Duration | None = None) -> State:
        """Waits until the application has stopped, for whatever reason; returns the state it is in then."""
        seconds = None if timeout is None else duration_ms(timeout, "timeout") / 1000
        self._life.wait_for(_has_ended, seconds)
        return self.state

    def wait_for_state(self, state: State, timeout: Duration) -> bool:
        """Waits until the application is in a state; false when it was not in time."""
        return self._life.wait_for(lambda reached: reached is state, duration_ms(timeout, "timeout") / 1000)

    def health(self) -> Health:
        """How the application is, with the progress of each task."""
        tasks: dict[TaskId, TaskHealth] = {}
        stuck: dict[str, int] = {}
        for worker in self._workers.workers:
            if (stuck_s := worker.stuck_s()) is not None:
                stuck[worker.name] = round(stuck_s * 1000)
            remaining = worker.remaining()
            for task, runs in worker.tasks().items():
                tasks[task.id] = TaskHealth(runs, 0 if runs else remaining.get(task.id, 0))
        state = self.state
        alive = state not in (State.PENDING_ERROR, State.ERROR) and not stuck
        runs = state is State.RUNNING and not stuck and not self._workers.is_one_ending
        return Health(alive, runs and all(one.running for one in tasks.values()), state, tasks, stuck)

    def store(
        self,
        store_name: str,
        store_type: QueryableStoreType[T],
        *,
        partition: int | None = None,
        enable_stale_stores: bool = False,
    ) -> T:
        """Returns a reader of the partitions of a store that are in this process; any thread may use it.

        Each read sees what is there between two batches of records, the record cache included. It finds the partitions
        anew, and raises an ``InvalidStateStoreError`` that says why there are none.

        :param partition: reads this one only, which asks one task instead of all.
        :param enable_stale_stores: reads what is there also while tasks are being restored or move between workers, and
            by standby tasks.
        """
        self._check_queryable()
        return self._queries.store(store_name, store_type, partition, enable_stale_stores)

    def query(
        self,
        store_name: str,
        query: Query[R],
        *,
        partitions: Collection[int] | None = None,
        position_bound: PositionBound | None = None,
        require_active: bool = False,
        execution_info: bool = False,
    ) -> StateQueryResult[R]:
        """Asks the partitions of a store that are in this process; a partition that fails says so in its result.

        :param partitions: asks these only; ``None`` for all that are here.
        :param position_bound: how far a partition must have come at least, else it is ``NOT_UP_TO_BOUND``.
        :param require_active: asks only tasks that are running, and no standby tasks; there is no bound then.
        :param execution_info: has results say how they came about.
        """
        self._queries.check_name(store_name)
        self._check_queryable()
        return self._queries.query(
            store_name,
            query,
            partitions=partitions,
            bound=PositionBound.UNBOUNDED if position_bound is None else position_bound,
            require_active=require_active,
            execution_info=execution_info,
        )

    @property
    def local_queries(self) -> LocalQueries:
        """The stores of this process, for a server that reads them for others (``pykstreams.http``)."""
        return self._queries

    def all_local_store_partition_lags(self) -> dict[str, dict[int, LagInfo]]:
        """How far each partition of a store that is in this process is behind its changelog, by store and partition.

        That of a task which runs is at the end; those of tasks that are being restored and of standby tasks may lag.
        Each call asks the brokers: make it every few seconds at most. Raises ``ClusterError`` when they do not answer.
        """
        return self._application.store_lags(self._workers.workers)

    def metadata_for_local_threads(self) -> list[ThreadMetadata]:
        """The workers of this process, with their tasks; empty before the start and after the end."""
        return self._application.thread_metadata(self._workers.workers)

    def load_bootstrap(self, folder: str | os.PathLike[str]) -> BootstrapLoad:
        """Swaps the state of the tasks in this process for that of a bootstrap, while they go on; returns at once.

        Beside the state of a task the new one is made of the files, and brought to where the task is by reading its
        inputs again from where the bootstrap ends, without sending anything. At a commit the one takes the place of the
        other: readers see the old state before, and the new one afterwards. What the changelogs lack is written to
        them, so that any machine can restore the new state, without the files.

        One task of a worker is swapped after the other, also those that come to it later, for as long as this process
        runs. Each process of the application needs its own call. Before the start it is remembered, and checked by
        ``start``. Raises ``BootstrapError`` for a bootstrap that does not fit, and changes nothing then; what goes
        wrong later is raised by ``wait`` of the result.

        :param folder: a bootstrap with all stores of each task that it has stores of, and source offsets that the tasks
            have passed and the topics still have; made with ``changelog="base-only"``.
        """
        state = self.state
        if state.has_not_started:
            self._loading.remember(folder_at(os.fspath(folder)))
        elif state.is_running_or_rebalancing and (prepared := self._application.prepared) is not None:
            self._loading.load(
                folder_at(os.fspath(folder)), prepared.layout, prepared.app.admin, embedded=prepared.app.embedded
            )
        else:
            raise StreamsError(f"the application is {state.value}, and has no tasks to load a bootstrap into")
        return self._loading.progress

    def metadata_for_all_streams_clients(self) -> list[StreamsMetadata]:
        """The tasks and stores of each instance of the application that has an ``application.server``.

        Before the first assignment, and where no instance has an address, it is this instance alone.
        """
        self._check_queryable()
        return self._queries.streams_metadata()

    def streams_metadata_for_store(self, store_name: str) -> list[StreamsMetadata]:
        """The same for those instances that have a part of a store, active or on standby."""
        self._check_queryable()
        return self._queries.streams_metadata(store_name)

    def query_metadata_for_key(
        self,
        store_name: str,
        key: Any,
        *,
        key_serializer: Any = None,
        partitioner: StreamPartitioner[Any, Any] | None = None,
    ) -> KeyQueryMetadata:
        """In which partition of a store a key is, and which instances have that partition.

        Exactly one of the keywords says how the records of the store were partitioned: by the bytes that a serializer,
        or a type, gives, or by a partitioner.
        """
        self._check_queryable()
        return self._queries.key_metadata(store_name, key, key_serializer, partitioner)

    def metrics(self) -> dict[MetricName, Metric]:
        """All metrics."""
        return self._metrics.metrics()

    def dropped_records(self) -> dict[TaskId, Mapping[str, NodeDrops]]:
        """The records that the tasks of this process have dropped, by task and node."""
        return {task.id: task.dropped.by_node() for worker in self._workers.workers for task in worker.tasks()}

    @property
    def application_id(self) -> str:
        """The ``application.id``."""
        return self._config.application_id

    def describe(self) -> TopologyDescription:
        """The description of the topology that runs."""
        return self._topology.describe()

    def clean_up(self) -> None:
        """Deletes the local state of tasks that no worker uses; before the start or after the end only."""
        if self.state.is_running_or_rebalancing or self.state.is_shutting_down:
            raise StreamsError(f"the application is {self.state.value}; clean up before it starts, or after its end")
        directory = self._application.open_directory()
        directory.clean_up(0)
        directory.clean_up_global()

    def __enter__(self) -> KafkaStreams:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _check_queryable(self) -> None:
        state = self.state
        if state.has_not_started:
            raise StreamsNotStartedError(
                "the application has not been started; call start() before its stores are read"
            )
        if not state.is_running_or_rebalancing:
            raise StreamsStoppedError(
                f"the application is {state.value} and cannot be asked any more; ask another instance"
            )

    @property
    def _is_own_thread(self) -> bool:
        keeper = self._application.global_thread
        return self._workers.is_current or (keeper is not None and keeper.is_current)

    def _global_failed(self, failure: StreamsError) -> None:
        """Ends the application: without its global stores no task may go on, and nobody can replace them."""
        log.error("the thread of the global stores failed: %s", failure)
        if self._response_to(failure) is StreamThreadExceptionResponse.REPLACE_THREAD:
            log.warning("the thread of the global stores cannot be replaced; the application stops")
        self._stop_requested = True
        self._stop_after(failure)
        if self._workers.has_ended:
            threading.Thread(target=self._finish, name="finish", daemon=True).start()

    def _build(self, number: int, on_running: Callable[[bool], None]) -> Worker:
        return self._application.worker(number, self.state_restore_listener, on_running)

    def _before_start(self, worker: Worker) -> None:
        self._loading.give(worker)
        if self._stop_requested:
            worker.stop(leave=self._leave)
        elif not self.state.is_running_or_rebalancing:
            worker.stop(leave=self._leaves_by_itself)

    def _describe(self, client_id: str, process_id: str) -> None:
        """Adds what metrics tell of the application itself."""
        self._client_metrics = ClientMetrics(self._metrics, client_id)
        self._client_metrics.describe(
            application_id=self._config.application_id,
            process_id=process_id,
            state=lambda: self.state.name,
            topology=lambda: str(self._topology.describe()),
            alive=lambda: len(self._workers.workers),
        )

    def _replaces(self, worker: Worker, failure: BaseException) -> bool:
        """Asks what to do about a failure, and does it; true when another worker is to take over."""
        log.error("%s failed: %s", worker.name, failure, exc_info=failure if log.isEnabledFor(logging.DEBUG) else None)
        if self._client_metrics is not None:
            self._client_metrics.thread_failed()
        if isinstance(failure, ShutdownRequestedError):
            return False
        replaced = self._response_to(failure) is StreamThreadExceptionResponse.REPLACE_THREAD
        if replaced and self.state.is_running_or_rebalancing:
            log.warning("%s is replaced by a new worker", worker.name)
            return True
        return False

    def _response_to(self, failure: BaseException) -> StreamThreadExceptionResponse:
        """Asks the user's handler, and tells all instances if it wants that; one that fails itself stops this one."""
        if self.uncaught_exception_handler is None:
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT
        try:
            response = self.uncaught_exception_handler(failure)
            if not isinstance(response, StreamThreadExceptionResponse):
                raise TypeError(f"it returned {response!r}; expected a StreamThreadExceptionResponse")
        except Exception:
            log.exception("the uncaught exception handler failed; the application stops (SHUTDOWN_CLIENT)")
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT
        if response is StreamThreadExceptionResponse.SHUTDOWN_APPLICATION:
            self._shut_down_application()
        return response

    def _stop_after(self, failure: BaseException) -> None:
        """Ends the application with an error, the first one if there are several."""
        if self.error is None:
            self.error = failure
        self._life.move(State.PENDING_ERROR)
        self._workers.stop(leave=self._leaves_by_itself)

    def _shut_down_application(self) -> None:
        log.error("all instances of the application are asked to shut down (SHUTDOWN_APPLICATION)")
        unseen = self._application.ask_all_to_shut_down()
        if unseen is not None:
            log.error(
                "whether all instances were told to shut down is not known; look at them, and stop them: %s", unseen
            )

    def _running_changed(self, everything: bool) -> None:
        target = State.RUNNING if everything else State.REBALANCING
        if self.state is not target and self.state.is_running_or_rebalancing:
            self._life.move(target)

    def _last_ended(self) -> None:
        """An application whose workers were all removed goes on without them; others can be added."""
        if not self.state.is_running_or_rebalancing:
            self._finish()

    def _finish(self) -> None:
        with self._finishing:
            try:
                self._application.close()
            except Exception as error:  # it has closed all that it could; tasks were committed and closed before
                log.exception("closing a part of the application failed: %s", error)
                if self.error is None:
                    self.error = error
            self._metrics.close_reporters()
            if self.state is not State.PENDING_ERROR:
                self._life.move(State.PENDING_SHUTDOWN)
            self._life.move(State.ERROR if self.state is State.PENDING_ERROR else State.NOT_RUNNING)
            show_values(self)

    def _request_stop(self) -> None:
        self._stop_requested = True


def _start_options(
    supplier: KafkaClientSupplier,
    recommit_interval: Duration,
    bootstrap: str | os.PathLike[str] | None,
    reset_offsets: bool,
) -> StartOptions:
    interval_ms = duration_ms(recommit_interval, "recommit_interval")
    if reset_offsets and bootstrap is None:
        raise ConfigError("reset_offsets gives up offsets for those of a bootstrap; name it with bootstrap=folder")
    return StartOptions(
        supplier, interval_ms, None if bootstrap is None else folder_at(os.fspath(bootstrap)), reset_offsets
    )


def _has_ended(state: State) -> bool:
    return state.has_completed_shutdown
