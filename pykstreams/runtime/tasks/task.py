"""One task: the plan of a sub-topology, compiled over open stores, fed with the records of its partitions.

The worker and the test driver run this same class. The order of its life: ``open_stores``, restoring the stores from
outside, ``start``, then ``add``, ``process``, ``punctuate`` and for each commit ``settle``, ``prepare_commit`` and
``post_commit``, at last ``close``. ``open_stores``, restoring and ``close`` happen on the state updater's thread, the
rest on the worker's.

Invariant: what ``prepare_commit`` gives is exactly what was processed; records that are queued are not in it, and none
is in flight.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pykstreams.core.clock import Clock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import (
    DamagedStoreError,
    StoreEngineError,
    StreamsError,
)
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.processor import CurrentRecord
from pykstreams.core.types import Punctuator
from pykstreams.runtime.clients.consumers.messages import RecordMessage
from pykstreams.runtime.metrics.record_traces import RecordTraces
from pykstreams.runtime.metrics.task_metrics import TaskMetrics
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.compiled import compile_plan, source_of
from pykstreams.runtime.tasks.context import TaskState, describe_record
from pykstreams.runtime.tasks.dropped import DroppedRecords
from pykstreams.runtime.tasks.failures import Failures
from pykstreams.runtime.tasks.gate import Gate
from pykstreams.runtime.tasks.in_flight import InFlight
from pykstreams.runtime.tasks.input_watch import InputWatch
from pykstreams.runtime.tasks.inputs.columns import AT_ONCE
from pykstreams.runtime.tasks.inputs.input_offsets import InputOffsets
from pykstreams.runtime.tasks.inputs.partition_group import LagProvider, PartitionGroup
from pykstreams.runtime.tasks.inputs.replay import Replay
from pykstreams.runtime.tasks.inputs.task_input import TaskInput
from pykstreams.runtime.tasks.observers import RecordObserver
from pykstreams.runtime.tasks.offset_metadata import ProcessorMetadata, decode, encode
from pykstreams.runtime.tasks.punctuation import PunctuationQueue
from pykstreams.runtime.tasks.stores.initial_state import InitialState
from pykstreams.runtime.tasks.stores.open_stores import OpenStores
from pykstreams.runtime.tasks.stores.restored_store import RestoredStore
from pykstreams.runtime.tasks.stores.state_offsets import StateOffsets
from pykstreams.runtime.tasks.stores.task_stores import TaskStores
from pykstreams.state.interfaces.position import Position
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.state.interfaces.store import TaskStore
from pykstreams.topology.plan import SubtopologyPlan

log = logging.getLogger(__name__)

WHILE_READ: Final = 200
"""Records that are processed at most before readers of the stores have their turn again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskParts:
    """The parts that a task has from its worker, or from a test driver."""

    config: StreamsConfig
    clock: Clock
    collector: RecordCollector
    cache: RecordCache
    metrics: StreamsMetrics
    global_stores: Mapping[str, object] = field(default_factory=dict)
    """The global stores by name, as tasks may see them."""
    wake: Callable[[], None] = lambda: None
    """Called from any thread when something that was in flight has finished, so that ``process`` is due."""


class Task:
    """A task of a worker, or of a test driver.

    :param plan: the sub-topology to run.
    :param input_partitions: the partitions that it reads.
    :param lag: tells how many records of a partition are still on the brokers (for ``max.task.idle.ms``).
    :param end_offsets: gives the ends of partitions, and is asked before anything is restored, if the last worker has
        died and so state may be ahead of what is committed; ``None`` where it is not.
    :param gate: the one of all tasks of this id in this process, which may hand their stores to each other.
    """

    def __init__(
        self,
        task_id: TaskId,
        plan: SubtopologyPlan,
        input_partitions: Collection[TopicPartition],
        parts: TaskParts,
        initial_state: InitialState,
        *,
        lag: LagProvider | None = None,
        end_offsets: Callable[[Collection[TopicPartition]], Mapping[TopicPartition, int]] | None = None,
        gate: Gate | None = None,
    ) -> None:
        config, clock = parts.config, parts.clock
        self.id = task_id
        self._plan = plan
        self._input = TaskInput(input_partitions, lag)
        self.input_partitions = self._input.partitions
        current = CurrentRecord(describe_record)
        self._metrics = TaskMetrics(
            parts.metrics, task_id, buffered=lambda: self.buffered, cache_bytes=lambda: self._stores.cache_bytes()
        )
        dropped = DroppedRecords(task_id, self._metrics.dropped, clock, lambda: current.context)
        failures = Failures(task_id, config, parts.collector, current, dropped, plan.makers)
        current.keeps_messages = failures.shows_input or plan.reads_messages
        self._state = TaskState(
            task_id=task_id,
            config=config,
            clock=clock,
            collector=parts.collector,
            metrics=parts.metrics,
            directory=initial_state.folder,
            current=current,
            dropped=dropped,
            failures=failures,
            stream_schedules=PunctuationQueue(self._punctuate),
            wall_clock_schedules=PunctuationQueue(self._punctuate),
            in_flight=InFlight(parts.wake),
            input_watch=InputWatch(clock, self._input_waits),
            global_stores=parts.global_stores,
        )
        self._offsets = InputOffsets()
        self._replay = Replay(end_offsets)
        self._commit_needed = False
        self._punctuated = 0
        self.gate = Gate(f"task {task_id}") if gate is None else gate
        """Between whoever works on the stores and those who read them."""
        self._stores = TaskStores(plan, self._state, parts.cache, self.gate, initial_state)

    @property
    def stores(self) -> Mapping[str, Any]:
        """The open stores by name, in the order in which they are flushed."""
        return self._state.stores

    @property
    def state_offsets(self) -> StateOffsets:
        """How far its stores are in their changelogs."""
        return self._stores.offsets

    def readable_store(self, name: str) -> TaskStore | None:
        """An open store, for one inside of the gate; ``None`` without one, or while it is made ready."""
        return self._stores.readable(name)

    def changelogs(self) -> Mapping[str, TopicPartition]:
        """The changelog partition of each store that has one."""
        return self._stores.changelogs

    def restorable(self, error: StoreEngineError) -> DamagedStoreError | None:
        """The error, if it is about a damaged store that can be restored from a changelog."""
        return self._stores.restorable(error)

    @property
    def stream_time(self) -> int:
        """The highest timestamp of the records processed so far, -1 before the first."""
        return self._state.stream_time[0]

    @property
    def metadata(self) -> ProcessorMetadata:
        """Numbers of operators that are committed beside the offsets."""
        return self._state.metadata

    @property
    def commit_needed(self) -> bool:
        """Whether anything has happened since the last commit."""
        return self._commit_needed or self._state.metadata.needs_commit or bool(self._input.skipped)

    @property
    def replays(self) -> bool:
        """Whether records that a worker which died may have processed are not all committed yet."""
        return self._replay.lasts

    @property
    def commit_requested(self) -> bool:
        """Whether user code has asked for a commit."""
        return self._state.commit_requested

    @property
    def buffered(self) -> int:
        """The number of records that wait."""
        return len(self._input)

    @property
    def dropped(self) -> DroppedRecords:
        """The records that it has dropped."""
        return self._state.dropped

    def behind(self) -> int:
        """Returns how many records of its input are still before it, as far as brokers have said."""
        return self.buffered + self._input.unread()

    @property
    def unfinished(self) -> int:
        """The number of records in flight: taken by an operator that forwards them later."""
        return self._state.in_flight.unfinished

    @property
    def running(self) -> int:
        """The number of records in flight that are still being worked on elsewhere."""
        return self._state.in_flight.running

    @property
    def room(self) -> int:
        """How many more records its operators want, if they limit that; none if it is 0."""
        return max(self._state.in_flight.room, 0)

    def buffered_of(self, partition: TopicPartition) -> int:
        """The number of records of one partition that wait."""
        return self._input.length_of(partition)

    def open_stores(self, kept: OpenStores | None = None) -> dict[TopicPartition, RestoredStore]:
        """Builds and opens the stores; gives those that are to be restored, by changelog partition.

        :param kept: those of another task of this id, which are taken up if they are what this one is to begin with,
            and closed otherwise.
        """
        kept = self._stores.prepare(kept)
        self._metrics.open({place.topic: source_of(self._plan, place.topic).name for place in self.input_partitions})
        self._replay.begin(self.input_partitions, set(self._stores.changelogs.values()))
        return self._stores.open(kept, self.position)

    def start(self, committed: Mapping[TopicPartition, tuple[int, str]]) -> None:
        """Compiles the path, runs ``init`` of every node and takes up time where the last commit left it.

        :param committed: offset and metadata of the input partitions that have been committed.
        """
        with self.gate:
            self._start(committed)

    def _start(self, committed: Mapping[TopicPartition, tuple[int, str]]) -> None:
        self._state.collector.count_drops(self.id, self._state.dropped)
        self._input.open(self._plan, self._state, compile_plan(self._plan, self._state, self._observers()))
        for partition, (offset, text) in committed.items():
            time, values = decode(text)
            self._input.queues[partition].partition_time = time
            self._offsets.committed[partition] = offset
            self._state.stream_time[0] = max(self._state.stream_time[0], time)
            self._state.metadata.update(values)
        self._advance_replay()
        self._run_init()

    def _observers(self) -> list[RecordObserver]:
        """The observers of each record that the settings ask for."""
        found: list[RecordObserver] = []
        if self._metrics.of_records is not None:
            found.append(self._metrics.of_records)
        if self._state.config.tracing_enable:
            found.append(RecordTraces(str(self.id), self._state.current))
        return found

    def add(self, partition: TopicPartition, messages: Sequence[RecordMessage]) -> None:
        """Puts raw messages, as the consumer gave them, at the end of a partition's queue."""
        self._metrics.added(partition.topic, messages)
        if messages:
            self._offsets.come(partition, messages[0].offset())
        self._input.add(partition, messages)

    def reached_end(self, partition: TopicPartition, end: int) -> None:
        """Notes that up to this offset the partition has no further records than those that were added.

        Transaction markers and aborted records are committed behind the last record that was processed
        (``StreamTask.commitNeeded``, 4.3.1), so that a group which has read everything shows no lag.
        """
        self._commit_needed |= self._offsets.reached_end(partition, end)

    def is_ready(self) -> bool:
        """Whether ``process`` would do anything: there is a record, and no other input must be waited for.

        With operators that finish later: something can be forwarded, or they have room for a record that is there.
        """
        in_flight = self._state.in_flight
        if in_flight and (in_flight.has_news or in_flight.room <= 0):
            return in_flight.has_news
        return self._input.is_ready(self._state.clock.now_ms())

    def process(self, max_records: int) -> int:
        """Processes up to so many records; gives how many were taken, those that had to be skipped included.

        What was in flight and has finished is forwarded first.
        """
        with self.gate:
            return self._process(min(max_records, WHILE_READ) if self.gate.was_waited_for() else max_records)

    def _process(self, max_records: int) -> int:
        if self._state.in_flight:
            self._forward_finished()
            max_records = min(max_records, self._state.in_flight.room)
            if max_records <= 0:
                return 0
        clock = self._state.clock
        began = clock.monotonic()
        group = self._input.group
        try:
            count = (
                self._process_one_partition(max_records) if group is None else self._process_group(group, max_records)
            )
        except BaseException:
            self._commit_needed = True  # what was written before is in the stores
            raise
        if count:
            self._commit_needed = True
            self._metrics.batch(count, clock.monotonic() - began, self._last_record(), clock.now_ms())
            if self._state.input_watch.wanted:
                self._state.input_watch.note()
        return count

    def _last_record(self) -> tuple[str, int] | None:
        """Topic and timestamp of the record that was processed last."""
        raw = self._state.current.raw
        return None if raw is None or raw[0] is None else (raw[0].topic(), raw[1])

    def punctuate(self, now_ms: int) -> int:
        """Runs the wall-clock punctuators that are due.

        Returns how many times punctuators ran since the last call, those by stream time included; all that are due at
        once count as one (``TaskExecutor.punctuate``, 4.3.1).

        While a commit waits for records in flight they wait, too: what they send could keep it waiting for ever.
        """
        schedules = self._state.wall_clock_schedules
        ran, self._punctuated = self._punctuated, 0
        if now_ms < schedules.next_due[0] or self._state.in_flight.held:
            return ran
        with self.gate:
            fired = schedules.fire(now_ms)
        return ran + fired

    @property
    def busy_s(self) -> float:
        """How long it has processed since its metrics were flushed last."""
        return self._metrics.busy_s

    def flush_metrics(self, now_ms: int, share: float | None = None) -> None:
        """Hands what was measured to the sensors; ``share`` is its part of what its worker has processed meanwhile."""
        self._metrics.flush(now_ms, share)
        self._stores.flush_metrics(now_ms)

    def settle(self) -> bool:
        """Gets ready for a commit; true when nothing is in flight and caches are flushed, and so ``prepare_commit`` may
        be called.

        From the first call until ``post_commit`` no record is taken and no punctuator runs; call it again when
        something has finished. At once true without operators that finish later, or when there is nothing to commit.
        """
        in_flight = self._state.in_flight
        if not in_flight.delays_commits or not self.commit_needed:
            return True
        in_flight.held = True
        with self.gate:
            self._forward_finished()
            if not in_flight.unfinished:
                self._state.flush_caches()  # may send records to operators that finish later
        return not in_flight.unfinished

    def prepare_commit(self) -> dict[TopicPartition, tuple[int, str]]:
        """Flushes the caches and gives the offsets to commit, with their metadata.

        What the flush sends is in the producer's queue only: the worker flushes the collector once for all tasks.
        """
        if not self.commit_needed:
            return {}
        with self.gate:
            self._state.flush_caches()
        if self._state.in_flight and self.unfinished:
            raise StreamsError(
                f"task {self.id} has {self.unfinished} records in flight; before a commit call settle until it is true",
                task_id=self.id,
            )
        if self._input.skipped:  # before they were due, and with dead letters, which belong to this commit
            self._offsets.note_skipped(self._input.skipped)
            self._input.skipped.clear()
            self._commit_needed = True
        everywhere = self._state.metadata.needs_commit
        partitions = self.input_partitions if everywhere else tuple(self._offsets.processed)
        return {
            partition: committed for partition in partitions if (committed := self._committable(partition)) is not None
        }

    def post_commit(self, changelog_offsets: Mapping[TopicPartition, int]) -> None:
        """Makes the state durable, once Kafka has the offsets.

        :param changelog_offsets: the next offset of each changelog partition; for a source topic that serves as a
            changelog it is known here.
        """
        with self.gate:
            self._stores.commit(changelog_offsets, self._offsets.processed)
            self._offsets.note_commit()
            if self._replay.lasts:
                self._advance_replay()
            self._commit_needed = False
            self._state.in_flight.held = False
            self._state.commit_requested = False
            self._state.metadata.needs_commit = False

    def abandon(self) -> None:
        """Drops what waits to be sent: the task is let go of. For the worker's thread, before ``close`` on another."""
        self._state.collector.abandon(self.id)

    def close(self) -> None:
        """Closes processors and stores; all of them, whatever one of them raises. Does not commit."""
        with self.gate:
            self._close()

    def hand_over(self) -> OpenStores | None:
        """Closes processors, and lets go of the stores, for another task to take up; ``None``: call ``close``.

        Stores stay only when nothing has happened since the last commit: what was aborted would be in them.
        """
        with self.gate:
            left = None if self.commit_needed else self._stores.leave_open()
            if left is None:
                return None
            try:
                self._close()
            except Exception:
                left.close()
                raise
            for store in left.stores.values():
                store.release()
            return left

    def evict_eldest(self) -> bool:
        """Evicts one entry of each cache of its stores; false when all of them are empty.

        Dirty ones are forwarded, as when a put finds the cache too full; they are of records since the last commit.
        """
        with self.gate:
            try:
                return self._stores.evict_eldest()
            except Exception as error:
                raise self._as_streams_error(error) from _cause(error)

    def reached(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Notes that its stores, which are kept up by reading changelogs, stand for all records before offsets."""
        with self.gate:
            self._offsets.committed.update(offsets)

    def position(self, *, below_cache: bool = False) -> Position:
        """Up to which records its stores have come, with or without what their caches hold.

        While records are in flight, up to which they had when there were none the last time that somebody asked.
        """
        if not self.unfinished:
            self._offsets.settle()
        return self._offsets.position(below_cache=below_cache)

    def _close(self) -> None:
        errors: list[Exception] = []
        for name, callbacks in self._state.callbacks.at_close(self._plan.nodes):
            for callback in callbacks:
                try:
                    callback()
                except Exception as error:
                    errors.append(self._node_error(name, "close", error))
        for name, failure in self._stores.close().items():
            known = isinstance(failure, StreamsError)
            errors.append(failure if known else self._node_error(f"store {name!r}", "close", failure))
        self._state.callbacks.clear()
        self._state.stream_schedules.clear()
        self._state.wall_clock_schedules.clear()
        self._state.collector.forget(self.id)
        self._metrics.close()
        for further in errors[1:]:
            log.error("task %s: closing went wrong once more", self.id, exc_info=further)
        if errors:
            raise errors[0]

    def _input_waits(self) -> bool:
        """Whether records are here, or may be on the brokers, that were not processed yet."""
        if self.buffered or self.unfinished:
            return True
        return self._input.may_be_unread()

    def _advance_replay(self) -> None:
        self._replay.advance(self._offsets.committed)
        self._state.current.replayed = self._replay.lasts

    def _forward_finished(self) -> None:
        """Forwards what was in flight and has finished; counts as work to commit even if no record is taken."""
        if not self._state.in_flight.has_news:
            return
        self._commit_needed = True
        try:
            self._state.in_flight.forward_finished()
        except Exception as error:
            raise self._as_streams_error(error) from _cause(error)

    def _process_one_partition(self, max_records: int) -> int:
        """The hot loop: one partition, no record object, no look-up per record."""
        waiting = self._input.waiting
        queue = self._input.only
        if not waiting or queue is None:
            return 0
        if len(waiting) <= max_records:
            batch, self._input.waiting = waiting, []
        else:
            batch = waiting[:max_records]
            del waiting[:max_records]
        state = self._state
        root, decode_key, decode_value = queue.root, queue.decode_key, queue.decode_value
        extracts_below = 1 << 63 if queue.extracts else 0
        current, times, due = state.current, state.stream_time, state.stream_schedules.next_due
        partition_time, stream_time = queue.partition_time, times[0]
        message = None
        rows_of = self._input.columns.rows
        try:
            for first in range(0, len(batch), AT_ONCE):
                rows, is_read = rows_of(batch[first : first + AT_ONCE])
                for message, key, value, timestamp, headers in rows:
                    if not is_read:
                        try:
                            key, value = decode_key(key, headers), decode_value(value, headers)
                        except Exception as unreadable:
                            state.failures.undecodable(queue.source, message, decode_key, unreadable)
                            continue
                    if timestamp < extracts_below:
                        queue.partition_time = partition_time
                        extracted = queue.timestamp_of(message, key, value, headers)
                        if extracted is None:
                            continue
                        timestamp = extracted
                    if timestamp > partition_time:
                        partition_time = timestamp
                        if timestamp > stream_time:
                            stream_time = times[0] = timestamp
                    current.raw = (message, timestamp, headers)
                    root(key, value, timestamp, headers)
                    if stream_time >= due[0] and stream_time >= 0:
                        self._fire_stream_time()
        except BaseException as error:
            done = next((i for i, other in enumerate(batch) if other is message), -1)
            self._input.waiting[:0] = batch[done + 1 :]
            if done > 0:
                self._offsets.processed[queue.partition] = batch[done - 1].offset()
            raise self._as_streams_error(error) from _cause(error)
        finally:
            queue.partition_time = partition_time
        self._offsets.processed[queue.partition] = batch[-1].offset()
        return len(batch)

    def _process_group(self, group: PartitionGroup, max_records: int) -> int:
        state, processed = self._state, self._offsets.processed
        current, times, due = state.current, state.stream_time, state.stream_schedules.next_due
        now = self._state.clock.now_ms()
        count = 0
        if group.lacks_input and group.is_ready(now):
            self._metrics.enforced()
        while count < max_records and group.is_ready(now):
            queue, until = group.leave()
            done = None
            try:
                for message, key, value, timestamp, headers in queue.run(until):
                    if timestamp >= 0:
                        if timestamp > times[0]:
                            times[0] = timestamp
                        current.raw = (message, timestamp, headers)
                        queue.root(key, value, timestamp, headers)
                    done = message
                    count += 1
                    if times[0] >= due[0] and times[0] >= 0:
                        self._fire_stream_time()
                    if count >= max_records:
                        break
            except Exception as error:
                raise self._as_streams_error(error) from _cause(error)
            finally:
                if done is not None:
                    processed[queue.partition] = done.offset()
                group.come_back(queue)
        return count

    def _fire_stream_time(self) -> None:
        self._punctuated += self._state.stream_schedules.fire(self._state.stream_time[0])

    def _punctuate(self, node: str, callback: Punctuator, now: int) -> None:
        self._commit_needed = True  # also where it fails, and has written before
        self._state.current.raw = (None, now, ())
        began = self._state.clock.monotonic()
        try:
            callback(now)
        except Exception as error:
            self._state.failures.punctuation(node, error, now)
        self._metrics.punctuated(self._state.clock.monotonic() - began)

    def _committable(self, partition: TopicPartition) -> tuple[int, str] | None:
        offset = self._offsets.next_of(partition, self._input.next_offset(partition))
        if offset is None:
            return None
        return offset, encode(self._input.queues[partition].partition_time, self._state.metadata.values())

    def _run_init(self) -> None:
        state = self._state
        state.current.raw = (None, state.clock.now_ms(), ())
        for name, callbacks in state.callbacks.at_init(self._plan.nodes):
            self._commit_needed = True  # they may send records and write to stores, and perhaps no input comes
            for callback in callbacks:
                try:
                    callback()
                except StoreEngineError:
                    raise
                except Exception as error:
                    raise self._node_error(name, "init", error) from error

    def _node_error(self, node: str, what: str, error: Exception) -> StreamsError:
        found = StreamsError(f"{what} of {node} failed in task {self.id}: {error!r}", task_id=self.id)
        found.__cause__ = error
        return found

    def _as_streams_error(self, error: BaseException) -> BaseException:
        if isinstance(error, StreamsError):
            if error.task_id is None:
                error.task_id = self.id
            return error
        return self._state.failures.unexpected(error) if isinstance(error, Exception) else error


def _cause(error: BaseException) -> BaseException | None:
    """The cause of the error that is raised in place of this one: itself, unless it is raised unchanged."""
    return error if isinstance(error, Exception) and not isinstance(error, StreamsError) else error.__cause__
