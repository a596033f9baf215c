"""Reads changelogs back into stores, several at once, in batches.

A store is restored from the offset that it was last committed with, or from the beginning, up to the end that its
changelog had when restoring began. What counts is the position in the changelog, never the last record seen:
compaction and transactions leave holes.

Invariant: a store is committed with an offset only after every record before that offset was given to it.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeAlias, cast

from pykstreams.core.clock import Clock, SystemClock
from pykstreams.core.errors import ClusterUnavailableError, StoreEngineError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.consumers.messages import RecordMessage
from pykstreams.runtime.clients.consumers.restore_consumer import RestoreBatch
from pykstreams.runtime.clients.positions import OffsetReader
from pykstreams.runtime.restore.open_transactions import OpenTransactions
from pykstreams.state.encoding.changelog_rows import ChangelogColumns
from pykstreams.state.interfaces.store import ChangelogRow

log = logging.getLogger(__name__)

COMMIT_EVERY = 200_000
"""After how many rows a store keeps how far it is, so that a crash does not start restoring anew."""

ASK_S = 5.0
"""How long brokers have to say where changelogs begin and end. Whoever asks tries again, and cannot end meanwhile."""

_ENDING_THREADS = 2
"""How many stores are made ready for reads at a time, while others are still read."""


class StateRestoreListener:
    """Notified of how restoring goes, on the state updater's thread; override what you need."""

    def on_restore_start(
        self, topic_partition: TopicPartition, store_name: str, starting_offset: int, ending_offset: int
    ) -> None:
        """Called before the first record of a changelog is read."""

    def on_batch_restored(
        self, topic_partition: TopicPartition, store_name: str, batch_end_offset: int, num_restored: int
    ) -> None:
        """Called after each batch; ``batch_end_offset`` is the offset of its last record."""

    def on_restore_end(self, topic_partition: TopicPartition, store_name: str, total_restored: int) -> None:
        """Called when a store is as its changelog says."""

    def on_restore_suspended(self, topic_partition: TopicPartition, store_name: str, total_restored: int) -> None:
        """Called when a task goes away before it is restored."""


class ChangelogReader(Protocol):
    """The methods of a consumer that restoring calls."""

    def assign(self, positions: Mapping[TopicPartition, int]) -> None: ...

    def unassign(self, partitions: Collection[TopicPartition]) -> None: ...

    def fetch(self, timeout: float) -> RestoreBatch: ...


class RestorableStore(Protocol):
    """The methods of a store that restoring calls; see ``TaskStore`` for what each of these promises."""

    @property
    def name(self) -> str: ...

    def committed_offset(self) -> int | None: ...

    def restore(self, rows: Sequence[ChangelogRow], /) -> None: ...

    def commit(self, changelog_offset: int, /) -> None: ...

    def end_restore(self) -> None: ...


@dataclass(slots=True)
class Restoring:
    """One store on its way.

    :param own: whether the changelog is the store's own, and no source topic that serves as one.
    """

    task_id: TaskId
    store: RestorableStore
    place: TopicPartition
    position: int
    end: int
    own: bool
    total: int = 0
    uncommitted: int = 0


@dataclass(frozen=True, slots=True)
class Truncated:
    """A store whose offset its changelog no longer has, or whose input was made anew: it can be read again."""

    task_id: TaskId
    reason: str


@dataclass(frozen=True, slots=True)
class Remade:
    """A store that stands for more than its changelog has: what it holds may be nowhere else."""

    task_id: TaskId
    place: TopicPartition
    reason: str


@dataclass(frozen=True, slots=True)
class Damaged:
    """A store whose database cannot be read or written; the other stores of its task are as good as before."""

    task_id: TaskId
    error: StoreEngineError


Setback: TypeAlias = Truncated | Remade | Damaged
"""Why a task cannot be restored; it has to be removed."""


class Restorer:
    """All stores that one worker restores.

    :param log_level: of the lines about each changelog.
    :param on_step: called after each step, with the seconds that it took.
    """

    def __init__(
        self,
        reader: ChangelogReader,
        offsets: OffsetReader,
        listener: StateRestoreListener,
        *,
        log_level: int = logging.INFO,
        clock: Clock | None = None,
        on_step: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        self._clock = SystemClock() if clock is None else clock
        self._on_step = on_step
        self._reader = reader
        self._offsets = offsets
        self._listener = listener
        self._log_level = log_level
        self._stores: dict[TopicPartition, Restoring] = {}
        self._ending: dict[Future[None], Restoring] = {}
        self._lost: set[TopicPartition] = set()
        self._open_transactions = OpenTransactions(self._clock)
        self._enders: ThreadPoolExecutor | None = None
        self.restored = 0
        """How many records it has restored so far."""

    def add(
        self, task_id: TaskId, stores: Mapping[TopicPartition, RestorableStore], limits: Mapping[TopicPartition, int]
    ) -> Setback | None:
        """Begins to restore the stores of a task.

        :param limits: where to stop in source topics that serve as changelogs: at what the task has read of them.
        """
        begins = self._offsets.beginning_offsets(stores, timeout_s=ASK_S)
        ends = dict(self._offsets.end_offsets(stores, timeout_s=ASK_S))
        ends |= {place: limit for place, limit in limits.items() if place in stores}
        found = []
        for place, store in stores.items():
            try:
                offset = store.committed_offset()
            except StoreEngineError as error:
                return Damaged(task_id, error)
            begin, end = begins[place], ends[place]
            one = Restoring(task_id, store, place, begin if offset is None else offset, end, place not in limits)
            if offset is not None and not begin <= offset <= end:
                return _setback_of(one, begin, end)
            found.append(one)
        for one in found:
            self._listener.on_restore_start(one.place, one.store.name, one.position, one.end)
            if one.position >= one.end:
                self._ended(one)
            else:
                log.log(
                    self._log_level, "task %s: restoring %s from %s to %s", task_id, one.place, one.position, one.end
                )
                self._stores[one.place] = one
        self._reader.assign({one.place: one.position for one in found if one.place in self._stores})
        return None

    def remove(self, task_id: TaskId) -> None:
        """Stops restoring a task; what was restored stays restored.

        Nothing touches its stores any more when this returns, and also when it raises what a listener has raised.
        """
        mine = [one for one in self._stores.values() if one.task_id == task_id]
        for one in mine:
            del self._stores[one.place]
            self._open_transactions.forget(one.place)
        with ExitStack() as stack:  # from the last to the first, whatever one of them raises
            stack.callback(self._await_ending, task_id)
            for one in reversed(mine):
                stack.callback(self._suspend, one)
            stack.callback(self._reader.unassign, [one.place for one in mine])

    def _suspend(self, one: Restoring) -> None:
        try:
            one.store.commit(one.position)
        except StoreEngineError as error:
            _not_kept(error)
        self._listener.on_restore_suspended(one.place, one.store.name, one.total)

    def _await_ending(self, task_id: TaskId) -> None:
        wait(ending := [future for future, one in self._ending.items() if one.task_id == task_id])
        for damaged in self._collect(ending):
            _not_kept(damaged.error)

    def is_restoring(self, task_id: TaskId) -> bool:
        """Whether a store of a task is not there yet."""
        return any(one.task_id == task_id for one in (*self._stores.values(), *self._ending.values()))

    def remaining(self) -> dict[TaskId, int]:
        """How many offsets each task has still before it."""
        left: dict[TaskId, int] = {}
        for one in list(self._stores.values()):
            left[one.task_id] = left.get(one.task_id, 0) + max(0, one.end - one.position)
        return left

    def positions(self) -> dict[TopicPartition, int]:
        """How far the changelogs that are being read are in their stores; may be called from any thread."""
        return {one.place: one.position for one in list(self._stores.values())}

    def step(self, timeout: float) -> list[Setback]:
        """Restores one batch, for which it waits up to ``timeout`` seconds; returns what cannot be restored."""
        began = self._clock.monotonic()
        with _garbage_collection_paused():
            setbacks = self._step(timeout)
        self._on_step(self._clock.monotonic() - began)
        return setbacks

    def _step(self, timeout: float) -> list[Setback]:
        setbacks: list[Setback] = []
        if self._ending:
            setbacks += self._collect(wait(self._ending, 0 if self._stores else timeout, FIRST_COMPLETED).done)
            if not self._stores:
                return setbacks
        batch = self._reader.fetch(timeout)
        for place, position in batch.positions.items():
            one = self._stores.get(place)
            if one is None:
                continue
            try:
                self._advance(one, batch.runs.get(place, ()), position)
            except StoreEngineError as error:
                if self._stores.pop(place, None) is not None:
                    self._open_transactions.forget(place)
                    self._reader.unassign([place])
                setbacks.append(self._damaged(one, error))
        for place in batch.at_end:
            if (waiting := self._stores.get(place)) is not None:
                self._open_transactions.stands_at(place, waiting.position, waiting.end)
        self._open_transactions.warn()
        self._lost.update(batch.out_of_range)
        return setbacks + self._judge_lost()

    def _judge_lost(self) -> list[Setback]:
        """Finds out what became of the offsets of stores that stand still."""
        lost = [one for place, one in self._stores.items() if place in self._lost]
        places = [one.place for one in lost]
        try:
            begins = self._offsets.beginning_offsets(places, timeout_s=ASK_S) if places else {}
            ends = self._offsets.end_offsets(places, timeout_s=ASK_S) if places else {}
        except ClusterUnavailableError as error:
            log.info("why %s stand still is asked again: %s", ", ".join(map(str, places)), error)
            return []
        self._lost.clear()
        setbacks: list[Setback] = []
        for one in lost:
            begin, end = begins[one.place], ends[one.place]
            if begin <= one.position <= end:  # refused by a broker that does not lead it
                log.info("%s is read on at offset %d, which a broker had refused", one.place, one.position)
                self._reader.unassign([one.place])
                self._reader.assign({one.place: one.position})
            else:
                setbacks.append(_setback_of(one, begin, end))
        return setbacks

    def _advance(self, one: Restoring, messages: Sequence[RecordMessage], position: int) -> None:
        """Restores a store up to a position, and finishes it where that is its end."""
        if messages:
            self._restore(one, messages)
        if position > one.position:
            self._open_transactions.forget(one.place)
        one.position = max(one.position, min(position, one.end))
        if one.position >= one.end:
            del self._stores[one.place]
            self._reader.unassign([one.place])
            self._finish(one)
        elif one.uncommitted >= COMMIT_EVERY:
            one.uncommitted = 0
            one.store.commit(one.position)

    def _restore(self, one: Restoring, messages: Sequence[RecordMessage]) -> None:
        last = messages[-1].offset()
        if last >= one.end:
            messages = [message for message in messages if message.offset() < one.end]
            if not messages:
                return
            last = messages[-1].offset()
        one.store.restore(changelog_columns(messages))
        one.total += len(messages)
        self.restored += len(messages)
        one.uncommitted += len(messages)
        self._listener.on_batch_restored(one.place, one.store.name, last, len(messages))

    def _finish(self, one: Restoring) -> None:
        one.store.commit(one.end)
        if not one.total:
            self._ended(one)
            return
        if self._enders is None:
            self._enders = ThreadPoolExecutor(_ENDING_THREADS, "ending-restore")
        self._ending[self._enders.submit(one.store.end_restore)] = one

    def _collect(self, done: Collection[Future[None]]) -> list[Damaged]:
        damaged = []
        for future in done:
            one = self._ending.pop(future)
            try:
                future.result()
            except StoreEngineError as error:
                damaged.append(self._damaged(one, error))
                continue
            log.log(self._log_level, "task %s: restored %s, %s records", one.task_id, one.place, one.total)
            self._ended(one)
        if self._enders is not None and not self._ending:
            self._enders.shutdown()
            self._enders = None
        return damaged

    def _damaged(self, one: Restoring, error: StoreEngineError) -> Damaged:
        self._listener.on_restore_suspended(one.place, one.store.name, one.total)
        return Damaged(one.task_id, error)

    def _ended(self, one: Restoring) -> None:
        self._listener.on_restore_end(one.place, one.store.name, one.total)


def _setback_of(one: Restoring, begin: int, end: int) -> Truncated | Remade:
    """The setback of a store whose offset its changelog does not have.

    Records that were deleted are no loss where others came after them. But an end that lies before a store was never
    moved by the application: the topic was deleted and made anew, or the brokers have lost records.
    """
    reason = (
        f"store {one.store.name!r} of task {one.task_id} stands for offset {one.position} of {one.place}, which goes "
        f"from {begin} to {end}"
    )
    if one.own and one.position > end:
        return Remade(one.task_id, one.place, reason)
    return Truncated(one.task_id, reason)


def _not_kept(error: StoreEngineError) -> None:
    log.warning("what was restored is not kept, and is read again: %s", error)


@contextmanager
def _garbage_collection_paused() -> Iterator[None]:
    """Spares the search for cycles among messages: they have none, and all of them are gone at the end of a batch."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def changelog_columns(messages: Sequence[RecordMessage]) -> ChangelogColumns:
    """Rows as stores take them."""
    keys = list(map(type(messages[0]).key, messages))
    if None in keys:  # nothing that a changelog can hold; somebody else wrote it
        messages = [message for message, key in zip(messages, keys, strict=True) if key is not None]
        keys = [key for key in keys if key is not None]
    return ChangelogColumns(cast("list[bytes]", keys), messages)


class Listeners(StateRestoreListener):
    """Notifies several listeners."""

    def __init__(self, listeners: Sequence[StateRestoreListener]) -> None:
        self._listeners = listeners

    def on_restore_start(
        self, topic_partition: TopicPartition, store_name: str, starting_offset: int, ending_offset: int
    ) -> None:
        self._notify(lambda one: one.on_restore_start(topic_partition, store_name, starting_offset, ending_offset))

    def on_batch_restored(
        self, topic_partition: TopicPartition, store_name: str, batch_end_offset: int, num_restored: int
    ) -> None:
        self._notify(lambda one: one.on_batch_restored(topic_partition, store_name, batch_end_offset, num_restored))

    def on_restore_end(self, topic_partition: TopicPartition, store_name: str, total_restored: int) -> None:
        self._notify(lambda one: one.on_restore_end(topic_partition, store_name, total_restored))

    def on_restore_suspended(self, topic_partition: TopicPartition, store_name: str, total_restored: int) -> None:
        self._notify(lambda one: one.on_restore_suspended(topic_partition, store_name, total_restored))

    def _notify(self, call: Callable[[StateRestoreListener], None]) -> None:
        for listener in self._listeners:
            call(listener)
