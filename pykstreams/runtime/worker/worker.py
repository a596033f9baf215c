"""The loop of a worker: poll, hand records to tasks, process, punctuate, commit when it is time.

It drives the loop, and takes up what interrupts it: tasks that are revoked or start over, an outage, the last commit.
``feed`` takes records from the consumer to the tasks, ``turns`` has the tasks process them, and
``commit`` keeps the offsets; ``task_manager`` opens and closes tasks, ``state_updater`` their stores.

Invariant: neither opening nor restoring nor closing a store ever happens between two polls.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from pykstreams.core.clock import Clock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import (
    ClusterUnavailableError,
    StoreEngineError,
    TaskCorruptedError,
    TaskMigratedError,
)
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.runtime.between_batches import BetweenBatches
from pykstreams.runtime.clients.consumers.lost_positions import LostPositions
from pykstreams.runtime.clients.errors import is_of_unknown_topic
from pykstreams.runtime.clients.outage import Outage
from pykstreams.runtime.clients.positions import Offsets
from pykstreams.runtime.key_places.key_watch import KeyWatch
from pykstreams.runtime.membership.membership import Lost, Membership
from pykstreams.runtime.metrics.rebalance_metrics import RebalanceMetrics
from pykstreams.runtime.metrics.thread_metrics import ThreadMetrics
from pykstreams.runtime.pause import Pause
from pykstreams.runtime.swap.generation import Generation
from pykstreams.runtime.tasks.task import Task
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.runtime.topics.topic_watch import TopicWatch
from pykstreams.runtime.worker.client_ids import consumer_id
from pykstreams.runtime.worker.commits.commit import Commits
from pykstreams.runtime.worker.commits.commit_schedule import CommitSchedule
from pykstreams.runtime.worker.commits.purge import RepartitionPurge
from pykstreams.runtime.worker.feed import SOON_S, Feed, InputConsumer
from pykstreams.runtime.worker.life import WorkerLife
from pykstreams.runtime.worker.settling import LAST_COMMIT_S, Settling
from pykstreams.runtime.worker.standing import GroupStanding
from pykstreams.runtime.worker.starts_over import StartsOver
from pykstreams.runtime.worker.state_updater import UpdaterEndedError
from pykstreams.runtime.worker.swaps import Swaps
from pykstreams.runtime.worker.task_manager import Running, TaskManager
from pykstreams.runtime.worker.thread_metadata import TaskMetadata, metadata_of_tasks
from pykstreams.runtime.worker.topic_check import TopicCheck
from pykstreams.runtime.worker.turns import Turns
from pykstreams.runtime.worker.work_summary import WorkSummary
from pykstreams.state.interfaces.record_cache import RecordCache

log = logging.getLogger(__name__)


class Updater(Protocol):
    """The methods of the state updater that the loop calls."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    @property
    def restored(self) -> int: ...

    def remaining(self) -> Mapping[TaskId, int]: ...

    def positions(self) -> Mapping[TopicPartition, int]: ...


class Output(Protocol):
    """The way out: a producer, the collector over it, and how to commit."""

    @property
    def commits(self) -> Commits: ...

    def prepare(self) -> None:
        """Gets ready for the first record; ``ClusterUnavailableError``: the cluster does not answer, call it again."""
        ...

    @property
    def holds_records(self) -> bool:
        """Whether anything was not delivered yet."""
        ...

    def poll(self) -> None:
        """Runs the callbacks of deliveries; raises the error of one that failed."""
        ...

    def keeps_up(self) -> bool:
        """Whether more may be sent now; if not, it has waited a moment for what was sent before."""
        ...

    def renew(self) -> None:
        """Makes a new producer in place of one that is unusable."""
        ...

    def close(self) -> None:
        """Waits for deliveries and lets go of the producer."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerParts:
    """The parts that a worker is put together from."""

    membership: Membership
    reader: InputConsumer
    updater: Updater
    output: Output
    tasks: TaskManager
    purge: RepartitionPurge | None
    lost_positions: LostPositions
    topic_check: TopicCheck
    cache: RecordCache
    woken: threading.Event
    """Set, from any thread, when something that was in flight has finished."""
    swaps: Swaps | None
    """Swaps tasks for the state of a bootstrap; ``None`` where the cluster has no transactions."""
    pause: Pause
    between: BetweenBatches
    topic_watch: TopicWatch | None
    """``None`` where no topic can be deleted."""
    metrics: StreamsMetrics
    """Those with the tag of this worker."""
    process_id: str
    key_watch: KeyWatch | None = None
    """That of all workers; ``None`` where it is switched off."""


class Worker:
    """One worker; ``run`` is its thread, ``stop`` may be called from any.

    :param layout: the topics, and the tasks that it shares with the other workers.
    :param leaves_on_failure: whether it leaves the group when it fails; a static member rather keeps its place.
    :param longest_turn_s: how long its group lets a turn last (``max.poll.interval.ms``).
    """

    def __init__(
        self,
        name: str,
        parts: WorkerParts,
        *,
        layout: TopicLayout,
        config: StreamsConfig,
        clock: Clock,
        on_running: Callable[[bool], None] = lambda _: None,
        leaves_on_failure: bool = True,
        longest_turn_s: float = 300.0,
    ) -> None:
        self.name = name
        self._parts = parts
        self._tasks = parts.tasks
        self._layout = layout
        self._clock = clock
        self._life = WorkerLife(on_running, leaves_on_failure=leaves_on_failure)
        self._exactly_once = config.exactly_once
        self._poll_s = config.poll_ms / 1000
        self._schedule = CommitSchedule(
            clock, config.commit_interval_ms / 1000, self._poll_s, exactly_once=self._exactly_once
        )
        self._settling = Settling(clock, self._schedule, parts.woken, exactly_once=self._exactly_once)
        self._standing = GroupStanding(
            parts.membership, clock, Outage(f"heartbeats of {name}", clock, config.task_timeout_ms / 1000)
        )
        self._turns = Turns(clock, self._standing, parts.between)
        self._metrics = ThreadMetrics(parts.metrics, clock)
        self._rebalances = RebalanceMetrics(parts.metrics, clock)
        self._summary = WorkSummary(name, clock, config.log_summary_interval_ms)
        self._feed = Feed(
            parts.reader,
            parts.tasks,
            parts.lost_positions,
            parts.woken,
            clock,
            most=config.buffered_records_per_partition,
            poll_s=self._poll_s,
            key_watch=parts.key_watch,
        )
        self._outage = Outage(f"requests of {name}", clock, config.task_timeout_ms / 1000)
        self._longest_turn_s = longest_turn_s
        self._turn_since: float | None = None
        """When the turn under way began, the last of which is to commit and close; ``None`` before and after all."""
        self._starts_over = StartsOver(config.retry_backoff_ms / 1000)

    @property
    def running_tasks(self) -> frozenset[TaskId]:
        """The tasks that are being fed, or held for a moment."""
        return frozenset(task.id for task, runs in self._tasks.tasks().items() if runs)

    @property
    def all_running(self) -> bool:
        """Whether it has all of its tasks, and all of them run."""
        return self._life.runs

    def busy_s(self) -> float:
        """Seconds since the turn under way began, 0 before the first one and after the last one; any thread may ask."""
        since = self._turn_since
        return 0.0 if since is None else self._clock.monotonic() - since

    def stuck_s(self) -> float | None:
        """The same, where it is longer than a member of its group may take (``max.poll.interval.ms``): then others have
        its tasks. ``None`` otherwise.
        """
        busy_s = self.busy_s()
        return busy_s if busy_s > self._longest_turn_s else None

    def _last_poll_s(self) -> float:
        """Seconds since it polled last, -1 before that (``KafkaConsumerMetrics``, 4.3.1); each turn begins so."""
        return -1.0 if self._turn_since is None else self.busy_s()

    def tasks(self) -> Mapping[Task, bool]:
        """Its tasks, and whether each of them runs; may be called from any thread."""
        return self._tasks.tasks()

    def running_task(self, task_id: TaskId) -> Task | None:
        """One of its tasks, if that is here and runs; may be called from any thread."""
        return self._tasks.running_task(task_id)

    def remaining(self) -> Mapping[TaskId, int]:
        """How many changelog offsets each restoring task has still before it."""
        return self._parts.updater.remaining()

    def positions(self) -> Mapping[TopicPartition, int]:
        """How far the changelogs are that are being restored; may be called from any thread."""
        return self._parts.updater.positions()

    @property
    def thread_state(self) -> str:
        """Where it is in its life, in the words of Kafka Streams (``StreamThread.State``, 4.3.1)."""
        return self._life.thread_state

    def active_tasks(self) -> frozenset[TaskMetadata]:
        """The metadata of its active tasks; may be called from any thread."""
        reader = self._parts.reader
        return metadata_of_tasks(self._tasks.tasks(), self._tasks.running.copy(), reader.end, reader.start)

    def committed(self) -> dict[Task, Offsets]:
        """The last committed offsets of each of its running tasks; may be called from any thread."""
        return {one.task: one.committed.copy() for one in self._tasks.running.copy().values()}

    def load(self, generation: Generation) -> None:
        """Sets the state that its tasks are to be swapped to; may be called from any thread."""
        if self._parts.swaps is not None:
            self._parts.swaps.want(generation)

    def stop(self, *, leave: bool) -> None:
        """Asks the worker to commit, close its tasks, and leave the group or not."""
        self._life.stop(leave=leave)

    def fail(self, failure: Exception) -> None:
        """Has ``run`` raise an error that belongs to this worker and has happened elsewhere; for any thread."""
        self._life.fail(failure)

    def run(self) -> None:
        """Works until it is stopped; what cannot be mended is raised, after everything was closed without a commit."""
        self._life.begin()
        self._metrics.describe(
            lambda: self.thread_state, self._parts.process_id, self._last_poll_s, consumer_id(self.name)
        )
        try:
            self._parts.updater.start()
            if self._parts.topic_watch is not None:
                self._parts.topic_watch.start()
            self._parts.membership.start(self._layout, self.revoked)
            while not self._life.stops:
                self.step()
            self._turn_since = self._clock.monotonic()  # the end is a turn, too
            self._commit_for_the_last_time()
        except BaseException as error:
            self._parts.output.commits.abort()
            if (missing := self._missing_topic(error)) is not None:
                raise missing from error
            raise
        finally:
            self._close()  # a part of the last turn, or of the one that failed: functions of the user may hang in it
            self._turn_since = None

    def _missing_topic(self, error: BaseException) -> Exception | None:
        """Finds the topic that is gone, where brokers do not know one: reading does not notice that at once."""
        watch = self._parts.topic_watch
        return watch.missing() if watch is not None and is_of_unknown_topic(error) else None

    def step(self) -> None:
        """One turn; raises what cannot be mended."""
        self._turn_since = self._clock.monotonic()
        self._life.raise_failure()
        try:
            self._turn()
        except UpdaterEndedError as error:
            raise error.cause from error.cause.__cause__
        except TaskMigratedError as error:
            log.warning("%s; its tasks are taken up again from their last commit", error)
            self._start_over(None)
        except TaskCorruptedError as error:
            self._start_over_later(error)
        except ClusterUnavailableError as error:
            self._outage.failed(error)
            self._start_over(None)
        except StoreEngineError as error:
            self._set_aside(error)

    def revoked(self, tasks: frozenset[TaskId]) -> None:
        """Commits and suspends tasks that are going to another worker; runs inside the rebalance."""
        with self._rebalances.revoking():
            self._revoke(tasks)

    def _revoke(self, tasks: frozenset[TaskId]) -> None:
        going = [one for task_id, one in self._tasks.running.items() if task_id in tasks]
        log.info("tasks %s leave this worker", ", ".join(map(str, sorted(tasks))))
        if going:
            # one transaction holds the work of all tasks
            committing = self._tasks.running.values() if self._exactly_once else going
            try:
                if not self._commits_in_time(self._parts.output.commits.commit_last, committing):
                    raise ClusterUnavailableError(
                        "the brokers do not answer, or have put this worker out; their last records are processed again"
                    )
            except (TaskMigratedError, TaskCorruptedError, ClusterUnavailableError, StoreEngineError) as error:
                log.warning("tasks that leave could not be committed: %s", error)
                self._start_over(None)
        self._forget(going)
        self._tasks.drop(tasks)

    def _turn(self) -> None:
        parts, tasks = self._parts, self._tasks
        if parts.topic_watch is not None:
            parts.topic_watch.check()
        change = parts.membership.poll(0 if self._standing.is_member() else SOON_S)
        if isinstance(change, Lost):
            with self._rebalances.assigning(lost=True):
                self._life.lose()
                self._start_over(None)
                tasks.want(frozenset())
                parts.membership.ack(change)
        elif change is not None:
            with self._rebalances.assigning():
                self._life.assign()
                try:
                    if change.layout is not self._layout:
                        self._adapt(change.layout)
                finally:  # the group does not say it again, and others have what it took away
                    tasks.want(change.active)
                    parts.membership.ack(change)
        self._report_running()  # tasks may be gone, and none is opened before group and cluster answer
        if not self._standing.is_member():
            self._wait_for_the_group()
            return
        if not self._output_is_ready():
            return
        tasks.poll()
        pause = parts.pause
        if parts.swaps is not None and self._life.is_assigned and not pause.is_set:
            parts.swaps.poll()
        self._report_running()
        parts.output.commits.before_processing()  # records are decoded as they are fed, which may send dead letters
        began = self._clock.monotonic()
        polled = self._feed.poll(self._patience(), processes=not pause.is_set)
        self._metrics.polled(self._clock.monotonic() - began, polled)
        requested = self._schedule.transaction_waits
        if not pause.is_set and not requested and parts.output.keeps_up():  # it may have been set in the wait
            requested |= self._work()
        requested |= parts.swaps is not None and parts.swaps.commit_requested
        parts.output.poll()
        self._feed.resume()
        if (requested or self._schedule.left_s <= 0) and parts.membership.may_commit():
            self._commit()
        if parts.purge is not None:
            parts.purge.poll()
        if parts.membership.may_commit() and (layout := parts.topic_check.poll(self._layout)) is not None:
            self._adapt(layout)
        self._summary.poll(self._tasks.running, parts.updater)
        self._metrics.turn_ended(lambda: [one.task for one in tasks.running.values()])

    def _wait_for_the_group(self) -> None:
        """Drops what could not be delivered while the worker counted: it must not come behind others' records.

        Under exactly-once brokers fence it. ``ClusterError`` when work has waited for ``task.timeout.ms``.
        """
        if self._exactly_once or not self._standing.has_lapsed():
            self._parts.output.poll()
        elif self._parts.output.holds_records:
            raise TaskMigratedError(
                f"the group has not answered {self.name} for its whole session, so others may have its tasks, and what "
                "it could not deliver is dropped"
            )
        if any(one.task.commit_needed for one in self._tasks.running.values()):
            self._standing.holds_up_work()

    def _work(self) -> bool:
        """Lets tasks process and punctuate; true when one of them wants a commit."""
        self._empty_cache()
        began = self._clock.monotonic()
        processed = self._turns.process(self._tasks.running.values())
        after = self._clock.monotonic()
        now_ms = self._clock.now_ms()
        requested, punctuated = False, 0
        for one in self._tasks.running.values():
            punctuated += one.task.punctuate(now_ms)
            requested |= one.task.commit_requested
        self._metrics.processed(after - began, processed)
        self._metrics.punctuated(self._clock.monotonic() - after, punctuated)
        self._summary.add(processed=processed, punctuated=punctuated)
        return requested

    def _empty_cache(self) -> None:
        """Evicts what is too much since other workers have come, and each has a smaller share of the cache."""
        cache, is_empty = self._parts.cache, False
        while cache.is_too_full and not is_empty:
            is_empty = True
            for one in self._tasks.running.values():
                is_empty &= not one.task.evict_eldest()

    def _output_is_ready(self) -> bool:
        try:
            self._parts.output.prepare()
        except ClusterUnavailableError as error:
            self._outage.failed(error)
            self._start_over(None)  # with another producer, where the call hangs in this one
            return False
        return True

    def _patience(self) -> float:
        """How long to wait for records: not long while something else is about to happen."""
        swaps = self._parts.swaps
        if not self._life.runs or (swaps is not None and swaps.holds_a_task):
            return min(SOON_S, self._poll_s)
        if not self._parts.membership.may_commit():  # nor is a commit that is due about to happen
            return self._poll_s
        return max(0.0, min(self._poll_s, self._schedule.left_s))

    def _report_running(self) -> None:
        # while nothing may be restored nobody waits for it (DefaultStateUpdater.restoresActiveTasks, 4.3.1)
        running = self._life.is_assigned and (self._tasks.all_running or self._parts.pause.is_set)
        if self._life.note(runs=running) and running:
            self._outage.over()

    def _commit(self) -> None:
        if not self._settling.is_over(self._tasks.running.values()):
            return
        began = self._clock.monotonic()
        due = [task_id for task_id, one in self._tasks.running.items() if one.task.commit_needed]
        if self._standing.is_member() and self._parts.output.commits.commit_all(self._tasks.running.values()):
            self._summary.add(committed=len(due))
            if due:
                self._metrics.committed(self._clock.monotonic() - began, len(due))
            self._schedule.done()
            self._starts_over.committed(due)
            if self._parts.swaps is not None and (held := self._parts.swaps.after_commit()) is not None:
                self._forget([held])
        else:
            self._schedule.waits()

    def _commits_in_time(self, commit: Callable[[Collection[Running]], bool], tasks: Collection[Running]) -> bool:
        """Commits tasks of which some are about to go; false when that was not possible in all the time there is.

        Nothing is delivered for a worker that may have been put out of its group: others have its tasks then.
        """
        self._parts.output.commits.before_processing()  # what is in flight may be sent when it has finished
        settled = self._settling.wait(tasks)
        deadline = self._clock.monotonic() + LAST_COMMIT_S
        while not (self._standing.is_member() and commit(settled)):
            if self._standing.has_lapsed() or self._clock.monotonic() > deadline:
                return False
            self._parts.woken.wait(SOON_S)
        return True

    def _adapt(self, layout: TopicLayout) -> None:
        """Has tasks whose inputs have changed begin again with the new ones, from a commit if there can be one."""
        changed = self._tasks.changed_by(layout.inputs)
        try:
            if changed:
                log.info("tasks %s read other partitions from now on", ", ".join(map(str, sorted(changed))))
                if not self._commits_in_time(self._parts.output.commits.commit, self._tasks.running.values()):
                    self._start_over(None)
        except StoreEngineError as error:  # while its task is here, which may be one of those to be dropped
            self._set_aside(error)
        finally:
            self._layout = layout
            self._drop(changed)
            self._tasks.update_inputs(layout.inputs)
            if self._parts.key_watch is not None:
                self._parts.key_watch.follow(layout.partitions)
            self._parts.membership.follow(layout)  # last: while it joins the group again, nothing can be committed

    def _start_over(self, tasks: Collection[TaskId] | None) -> None:
        """Aborts what was not committed; the tasks that are still wanted begin again at their last commit.

        When all begin again, nothing of theirs may still be sent: it could come behind what their next owners send.
        """
        self._schedule.begin_anew()
        usable = self._parts.output.commits.abort()
        if not usable or (tasks is None and self._parts.output.holds_records):
            self._parts.output.renew()
            # those that are being opened, too: all of them send through the producer that is gone
            self._forget([*self._tasks.running.values()])
            self._tasks.drop_all()
        else:
            self._drop(tasks if tasks is not None and not self._exactly_once else [*self._tasks.running])

    def _start_over_later(self, error: TaskCorruptedError) -> None:
        """Starts tasks over after a while; under exactly-once all of them, since they share a transaction."""
        tasks = frozenset(self._tasks.running) if self._exactly_once else error.corrupted_tasks
        wait_s = self._starts_over.wait_s(tasks | error.corrupted_tasks)
        log.warning(
            "%s; they are taken up again from their last commit in %g s", error, wait_s, exc_info=error.__cause__
        )
        self._start_over(error.corrupted_tasks)
        self._tasks.put_off(tasks | error.corrupted_tasks, wait_s)

    def _set_aside(self, error: StoreEngineError) -> None:
        """Goes on without a task whose store failed; ends with the error of a store that is no task's here."""
        self._forget([one for task_id, one in self._tasks.running.items() if task_id == error.task_id])
        if not self._tasks.set_aside(error):
            raise error
        if self._exactly_once:  # its work is in one transaction with that of the others
            self._start_over(None)

    def _drop(self, tasks: Collection[TaskId]) -> None:
        self._forget([one for task_id, one in self._tasks.running.items() if task_id in tasks])
        self._tasks.drop(tasks)

    def _forget(self, going: Collection[Running]) -> None:
        for one in going:
            self._feed.forget(one.inputs)
            if self._parts.purge is not None:
                self._parts.purge.forget(one.inputs)

    def _commit_for_the_last_time(self) -> None:
        """Commits before the tasks close; keeps the group going while it has other things to do."""
        deadline, waits = self._clock.monotonic() + LAST_COMMIT_S, False
        try:
            while self._tasks.running and not self._commits_last():
                if not waits:
                    log.info("%s stops; its last commit waits for the brokers, %g s at most", self.name, LAST_COMMIT_S)
                    waits = True
                if self._clock.monotonic() > deadline:
                    raise ClusterUnavailableError("the brokers do not answer")
                if isinstance(self._parts.membership.poll(SOON_S), Lost):
                    raise TaskMigratedError("the group has gone on without this worker")
        except (TaskMigratedError, TaskCorruptedError, ClusterUnavailableError, StoreEngineError) as error:
            log.warning("the last commit did not succeed, so some records will be processed again: %s", error)
            self._start_over(None)

    def _commits_last(self) -> bool:
        parts = self._parts
        if not self._standing.is_member():
            self._standing.holds_up_work()
            return False
        if not parts.membership.may_commit():
            return False
        parts.output.commits.before_processing()
        return parts.output.commits.commit_last(self._settling.wait(self._tasks.running.values()))

    def _close(self) -> None:
        parts = self._parts
        watch = parts.topic_watch
        closed_in_order: Mapping[str, Callable[[], None]] = {
            "tasks": self._tasks.drop_all,
            "the watch over topics": (lambda: None) if watch is None else watch.stop,
            "the thread of state": parts.updater.stop,
            "the producer of swaps": (lambda: None) if parts.swaps is None else parts.swaps.close,
            "the producer": parts.output.close,
            "the membership of the group": lambda: parts.membership.close(self._life.leaves),
            "the consumer": parts.reader.close,
        }
        for what, close in closed_in_order.items():
            try:
                close()
            except Exception:
                log.exception("%s: closing %s went wrong; the worker closes the rest", self.name, what)
        self._metrics.close()
        log.info("%s has stopped", self.name)
