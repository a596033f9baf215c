"""Global stores: opened, fed record by record, restored and committed; fed by a thread, or by a test driver by hand.

A global table takes records as they are when it is restored; a user's processor sees each of them again
(``GlobalStateManagerImpl``, ``GlobalStateUpdateTask``, 4.3.1). Unlike there, the same processor object sees both.

Invariant: ``offsets`` never lies ahead of what the stores have taken.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, TypeVar

from pykstreams.core.clock import Clock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import (
    DamagedStoreError,
    InvalidStateStoreError,
    ProcessorStateError,
    StoreEngineError,
    StreamsError,
)
from pykstreams.core.ids import TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.metrics.built_in.tasks import DROPPED_TOTAL, GROUP
from pykstreams.core.processor import CurrentRecord, OperatorSupplier
from pykstreams.core.store_topic import row_of
from pykstreams.core.types import Decoder, Forward, Headers
from pykstreams.processors.user import UserProcessor
from pykstreams.runtime.clients.consumers.messages import RecordMessage
from pykstreams.runtime.global_stores.checkpoint import GlobalCheckpoint
from pykstreams.runtime.global_stores.global_context import (
    GLOBAL_TASK,
    GlobalFailures,
    GlobalProcessingContext,
    GlobalStoreContext,
    NoProducer,
)
from pykstreams.runtime.restore.restore import changelog_columns
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.compiled import fan_out, source_decoders
from pykstreams.runtime.tasks.context import NodeContext, TaskState, describe_record
from pykstreams.runtime.tasks.dropped import DroppedRecords
from pykstreams.runtime.tasks.failures import ROW_OF_ANOTHER_TYPE, origin_of, said_of
from pykstreams.runtime.tasks.gate import PATIENCE_S
from pykstreams.runtime.tasks.in_flight import InFlight
from pykstreams.runtime.tasks.input_watch import InputWatch
from pykstreams.runtime.tasks.punctuation import PunctuationQueue
from pykstreams.state.directory.damaged_stores import is_set_aside, set_aside
from pykstreams.state.engines.disk_form import OtherFormError
from pykstreams.state.interfaces.position import Position, PositionOf
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.state.interfaces.store import TaskStore
from pykstreams.state.shared import ReadOnlyStore, SharedStore
from pykstreams.topology.plan import GlobalStorePlan

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Feed:
    """The way of a record into one store."""

    plan: GlobalStorePlan
    store: TaskStore
    root: Forward
    decode_key: Decoder
    decode_value: Decoder


class _StoresLock:
    """The lock over the stores: those who process records wait for it as long as it takes, readers for a while.

    Once a reader has waited in vain, others are refused at once until somebody has left: a store that hangs costs the
    few threads that read stores their time once, and not with each question.

    It tells of damaged stores that somebody has met while it was held. Tasks meet them as well, whose worker ends with
    the error; whoever closes the stores sets them aside.
    """

    def __init__(self, on_damage: Callable[[DamagedStoreError], None], patience_s: float) -> None:
        self._lock = RLock()
        self._on_damage = on_damage
        self._patience_s = patience_s
        self._hangs = False

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, DamagedStoreError):
            self._on_damage(error)
        self._hangs = False
        self._lock.release()

    def read(self, action: Callable[[], T]) -> T:
        """Runs a read when it is free; ``InvalidStateStoreError`` when that takes too long."""
        if not self._lock.acquire(timeout=0 if self._hangs else self._patience_s):
            self._hangs = True
            raise InvalidStateStoreError(
                f"global stores could not be read within {self._patience_s:g} s: somebody is in one call of such a "
                "store; ask again, and look for a serde, a store or a callback of yours that waits, or for a disk "
                "that does not answer"
            )
        try:
            with self:
                return action()
        finally:
            self._lock.release()

    def read_now(self, action: Callable[[], None]) -> bool:
        """Runs a read if it is free; returns whether it was."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            with self:
                action()
        finally:
            self._lock.release()
        return True


class GlobalState:
    """All global stores of one worker.

    :param directory: a folder that nobody else uses meanwhile.
    :param cache: a record cache that no other thread uses.
    :param patience_s: how long a reader who is no task waits at most.
    """

    def __init__(
        self,
        plans: Sequence[GlobalStorePlan],
        *,
        config: StreamsConfig,
        clock: Clock,
        metrics: StreamsMetrics,
        directory: Path,
        cache: RecordCache,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._plans = plans
        self._cache = cache
        # One for all stores, since one cache may evict from each of them; it may be taken again, by an iterator that is
        # collected as garbage while it is held.
        self._damaged: dict[str, DamagedStoreError] = {}
        self._lock = _StoresLock(self._note_damage, patience_s)
        self._directory = directory
        current = CurrentRecord(describe_record)
        counter = metrics.counter(DROPPED_TOTAL, GROUP, task_id=str(GLOBAL_TASK))
        dropped = DroppedRecords(GLOBAL_TASK, counter, clock, lambda: current.context)
        collector = RecordCollector(NoProducer(), config=config, partition_count=lambda _: 0)
        self._state = TaskState(
            task_id=GLOBAL_TASK,
            config=config,
            clock=clock,
            collector=collector,
            metrics=metrics,
            directory=directory,
            current=current,
            dropped=dropped,
            failures=GlobalFailures(config, collector, current, dropped),
            stream_schedules=PunctuationQueue(lambda *_: None),
            wall_clock_schedules=PunctuationQueue(lambda *_: None),
            in_flight=InFlight(lambda: None),
            input_watch=InputWatch(clock, lambda: False),
        )
        self._stores: dict[str, TaskStore] = {}
        self._views: dict[str, ReadOnlyStore] = {}
        self._feeds: dict[str, _Feed] = {}
        self._checkpoint = GlobalCheckpoint(directory)
        self._number = 0
        self.offsets: dict[TopicPartition, int] = {}
        """Where to go on reading."""
        self.uncommitted = 0
        """Records that were taken since the last commit."""

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that feed the stores."""
        return tuple(plan.topic for plan in self._plans)

    @property
    def stores(self) -> Mapping[str, TaskStore]:
        """The stores by name, for whoever owns this."""
        return self._stores

    @property
    def views(self) -> Mapping[str, Any]:
        """The stores by name, for tasks: they cannot be written."""
        return self._views

    def read(self, action: Callable[[], T]) -> T:
        """Runs a read of a store while nobody else uses it; ``InvalidStateStoreError`` when that takes too long."""
        return self._lock.read(action)

    def soon(self, action: Callable[[], None], then: Callable[[], None], reads: int) -> bool:
        """Runs short reads at once, or returns false where they would have to wait."""
        return self._lock.read_now(action)

    def readable(self, name: str) -> TaskStore | None:
        """A store for whoever reads it by ``read``; ``None`` while it is not open."""
        store = self._stores.get(name)
        return store if store is not None and store.is_open else None

    def store_of(self, topic: str) -> str:
        """The name of the store that a topic feeds."""
        return self._feeds[topic].plan.store.name

    def open(self) -> None:
        """Opens the stores, looks up where reading goes on, and starts the processors.

        State whose offsets are not known is deleted.
        """
        known = self._checkpoint.load()
        if not known:
            self._wipe()
        self._open_stores()
        if known:
            self._find_offsets()
        self._start_processors()

    def start_anew(self) -> None:
        """Deletes all state, and opens empty stores."""
        self.close(wipe=True)
        self._checkpoint.load()
        self._open_stores()
        self._start_processors()

    def update(self, messages: Sequence[Any]) -> None:
        """Puts records of one partition, each through the processor of its store.

        An exception of a processor that no handler is asked about is raised as it is.
        """
        feed = self._feeds[messages[0].topic()]
        root, decode_key, decode_value = feed.root, feed.decode_key, feed.decode_value
        failures, current = self._state.failures, self._state.current
        taken, last = 0, None
        try:
            for message in messages:
                headers: Headers = message.headers() or ()
                try:
                    key, value = decode_key(message.key(), headers), decode_value(message.value(), headers)
                except Exception as unreadable:
                    failures.undecodable(feed.plan.source.name, message, decode_key, unreadable)
                else:
                    timestamp = message.timestamp()[1]
                    current.raw = (message, timestamp, headers)
                    root(key, value, timestamp, headers)
                taken, last = taken + 1, message
        finally:
            if last is not None:
                self._took(last, taken)

    def restore(self, messages: Sequence[Any]) -> None:
        """Puts records of one partition that were there before the start; those without key are passed over."""
        feed = self._feeds[messages[0].topic()]
        if not feed.plan.reprocesses:
            with self._lock:
                feed.store.restore(changelog_columns(messages))
        elif keyed := [message for message in messages if message.key() is not None]:
            self.update(keyed)
        self._took(messages[-1], 0 if feed.plan.reprocesses else len(messages))

    def end_restore(self) -> None:
        """Makes the stores ready to be read."""
        for store in self._stores.values():
            with self._lock:
                store.end_restore()

    def flush_caches(self) -> None:
        """Writes what the caches hold to the stores."""
        for store in self._stores.values():
            with self._lock:
                store.flush_cache()

    def commit(self) -> None:
        """Makes what was taken durable, together with its offsets."""
        self._number += 1
        self.flush_caches()
        for store in self._stores.values():
            try:
                with self._lock:
                    store.commit(self._number)
            except StoreEngineError:
                raise
            except Exception as error:
                raise ProcessorStateError(f"global store {store.name!r} was not committed: {error}") from error
        if any(store.persistent for store in self._stores.values()):
            self._checkpoint.add(self._number, self.offsets)
        self.uncommitted = 0

    def close(self, *, wipe: bool = False) -> None:
        """Closes processors and stores, all of them, whatever one of them raises. Does not commit.

        With ``wipe`` their state is deleted; damaged stores are set aside all the same.
        """
        errors: list[Exception] = []
        at_close = self._state.callbacks.at_close(self._nodes)
        closing = [callback for _, callbacks in at_close for callback in callbacks]
        for close in (*closing, *(store.close for store in self._stores.values())):
            try:
                with self._lock:  # somebody may be reading
                    close()
            except Exception as error:
                errors.append(error)
        self._state.callbacks.clear()
        self._state.stores.clear()
        for kept in (self._stores, self._views, self._feeds, self.offsets):
            kept.clear()
        self._set_damaged_aside()
        if wipe:
            self._wipe()
        for further in errors[1:]:
            log.error("closing global stores went wrong once more", exc_info=further)
        if errors:
            raise errors[0]

    def explained(self, error: BaseException) -> StreamsError:
        """Returns the error for an exception of a processor that no handler was asked about."""
        if isinstance(error, StreamsError):
            return error
        found = self._state.current.context
        where = "" if found is None else f" at record {found.topic}-{found.partition} offset {found.offset}"
        if row_of(error) is not None:
            said = f"{said_of(error)}; a processor of global stores failed{where}"
            return StreamsError(f"{said}; {ROW_OF_ANOTHER_TYPE}")
        said = f"{origin_of(error) or 'a step'} raised {error!r}; a processor of global stores failed{where}"
        return StreamsError(
            f"{said}; correct it, or set processing.exception.handler and "
            "processing.exception.handler.global.enabled to go on without such records"
        )

    @property
    def _nodes(self) -> list[str]:
        return [plan.processor.name for plan in self._plans]

    def _took(self, message: RecordMessage, count: int) -> None:
        self.offsets[TopicPartition(message.topic(), message.partition())] = message.offset() + 1
        self.uncommitted += count

    def _open_stores(self) -> None:
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ProcessorStateError(
                f"folder {str(self._directory)!r} for global stores cannot be made: {error}; give the worker the right "
                "to write there, or set state.dir to a folder where it has"
            ) from error
        for plan in self._plans:
            self._open_store(plan)

    def _open_store(self, plan: GlobalStorePlan) -> None:
        try:
            self._init_store(plan)
        except DamagedStoreError as error:
            self._damaged[error.store] = error
            self._set_damaged_aside()
            self._init_store(plan)

    def _init_store(self, plan: GlobalStorePlan) -> None:
        store = plan.store.build()
        self._stores[store.name] = store
        store.set_position_source(self._position_of(plan.topic))
        store.init(GlobalStoreContext(self._state, {store.name: plan.topic}, self._cache))
        self._state.stores[store.name] = SharedStore(store.public_view, self._lock)
        self._views[store.name] = ReadOnlyStore(store.public_view, self._lock, plan.topic)

    def _find_offsets(self) -> None:
        """Looks up where reading goes on; a store of which that is not known is emptied."""
        self._number = self._checkpoint.last
        for plan in self._plans:
            store = self._stores[plan.store.name]
            if not store.persistent:
                continue
            number = self._committed_number(store)
            self._number = max(self._number, number or 0)
            offsets = self._checkpoint.offsets(plan.topic, number)
            if offsets is None:
                log.warning(
                    "global store %r stands for no known offset of topic %s; it is read anew", store.name, plan.topic
                )
                store.close()
                self._delete(self._directory / "rocksdb" / store.name)
                self._open_store(plan)
            else:
                self.offsets.update(offsets)

    def _committed_number(self, store: TaskStore) -> int | None:
        try:
            return store.committed_offset()
        except DamagedStoreError as error:
            self._damaged[error.store] = error
            store.close()
            self._set_damaged_aside()
            return None

    def _note_damage(self, error: DamagedStoreError) -> None:
        self._damaged[error.store] = error

    def _set_damaged_aside(self) -> None:
        """Moves the stores that were found damaged, and are closed, so that they are read anew from their topics."""
        damaged, self._damaged = self._damaged, {}
        for store, error in damaged.items():
            try:
                folder = set_aside(self._directory, store, self._state.clock.now_ms())
            except ProcessorStateError as failure:
                log.error("global store %r is damaged, and stays as it is: %s", store, failure)
                continue
            if isinstance(error, OtherFormError):
                log.warning("%s. It was set aside in %r, and is read anew from its topic", error.reason, str(folder))
                continue
            log.error(
                "global store %r is damaged; %s, and it is read anew from its topic. Look at the disk. The cause: %s",
                store,
                "its folder is gone" if folder is None else f"it was set aside in {str(folder)!r}",
                error.__cause__ or error,
            )

    def _start_processors(self) -> None:
        for plan in self._plans:
            name = plan.processor.name
            context = NodeContext(
                self._state, name, GlobalProcessingContext(self._state, name, ()), fan_out(()), {}, None
            )
            supplier: Any = plan.processor.supplier
            operator: OperatorSupplier = supplier if hasattr(supplier, "build") else UserProcessor(supplier)
            decode_key, decode_value = source_decoders(plan.source, plan.topic, self._state)
            store = self._stores[plan.store.name]
            self._feeds[plan.topic] = _Feed(plan, store, operator.build(context), decode_key, decode_value)
        for name, callbacks in self._state.callbacks.at_init(self._nodes):
            self._state.current.raw = (None, self._state.clock.now_ms(), ())
            for callback in callbacks:
                try:
                    callback()
                except Exception as error:
                    raise StreamsError(f"init of {name}, which feeds a global store, failed: {error!r}") from error

    def _position_of(self, topic: str) -> PositionOf:
        def position(*, below_cache: bool = False) -> Position:
            found = Position()
            for place, offset in self.offsets.copy().items():
                if place.topic == topic and offset:
                    found.with_component(topic, place.partition, offset - 1)
            return found

        return position

    def _wipe(self) -> None:
        """Deletes all state; damaged stores that were set aside stay for whoever looks for the cause."""
        folder = self._directory
        try:
            for entry in folder.iterdir() if folder.is_dir() else ():
                if not is_set_aside(entry):
                    shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        except OSError as error:
            raise _not_deleted(folder, error) from error

    @staticmethod
    def _delete(folder: Path) -> None:
        try:
            if folder.is_dir():
                shutil.rmtree(folder)
        except OSError as error:
            raise _not_deleted(folder, error) from error


def _not_deleted(folder: Path, error: OSError) -> ProcessorStateError:
    return ProcessorStateError(f"{str(folder)!r} cannot be deleted: {error}; delete it by hand")
