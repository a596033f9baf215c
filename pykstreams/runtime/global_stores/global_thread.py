"""The thread that feeds the global stores of a worker: it reads whole topics to their end, and on from there.

It has a consumer of its own, which belongs to no group and reads every partition. ``start`` returns when all stores
are as their topics were at that moment, so that no task ever sees half of them (``GlobalStreamThread``, 4.3.1).

Invariant: stores are open from before ``start`` returns until ``stop`` is called, also after a failure.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias

from pykstreams.core.clock import Clock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ClusterUnavailableError, DamagedStoreError, DiskFullError, StreamsError
from pykstreams.core.ids import TopicPartition
from pykstreams.core.repeated_warnings import RepeatedWarnings
from pykstreams.runtime.clients.consumers.lost_positions import LostPositions
from pykstreams.runtime.clients.consumers.restore_consumer import RestoreBatch
from pykstreams.runtime.clients.outage import Outage
from pykstreams.runtime.clients.positions import OffsetReader
from pykstreams.runtime.global_stores.global_state import GlobalState
from pykstreams.runtime.queries.local_store import LocalStore
from pykstreams.runtime.restore.restore import COMMIT_EVERY, StateRestoreListener
from pykstreams.state.directory.disk_room import room_of

log = logging.getLogger(__name__)

OffsetByPartition: TypeAlias = Mapping[TopicPartition, int]

_FETCH_S = 0.1
_LOOK_S = 0.1
_FIRST_RETRY_S = 1.0
_LAST_RETRY_S = 30.0
_WORTH_COMMITTING = 10_000
"""Later, fewer records than this are read again rather than committed (``StateManagerUtil``, 4.3.1)."""


class TopicReader(Protocol):
    """The methods of a consumer that this thread calls."""

    def assign(self, positions: Mapping[TopicPartition, int]) -> None: ...

    def unassign(self, partitions: Collection[TopicPartition]) -> None: ...

    def fetch(self, timeout: float) -> RestoreBatch: ...

    def close(self) -> None: ...


class TopicOffsets(OffsetReader, Protocol):
    """The methods of an administrative client that this thread calls."""

    def end_offsets(
        self, partitions: Collection[TopicPartition], *, timeout_s: float | None = None, read_committed: bool = False
    ) -> Mapping[TopicPartition, int]: ...


class _Message(Protocol):
    """The method of a message that this thread calls."""

    def offset(self) -> int | None: ...


@dataclass(slots=True)
class _Restoring:
    """A partition that is read to its end."""

    store: str
    end: int
    total: int = 0


@dataclass(frozen=True, slots=True)
class _Reading:
    """The consumer, at the offsets up to which the stores were read."""

    reader: TopicReader
    offsets: OffsetByPartition

    def position(self, partition: TopicPartition) -> int | None:
        return self.offsets.get(partition)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.reader.unassign([partition])
        self.reader.assign({partition: offset})


class _NoOtherOffsets:
    """A store that cannot be read on is made anew."""

    def __init__(self, offsets: OffsetByPartition) -> None:
        self._offsets = offsets
        self.lost: TopicPartition | None = None

    def start(self, place: TopicPartition, *, because: str, begin: int) -> int:
        raise self._error(place)

    def after_truncation(self, place: TopicPartition, begin: int, end: int) -> int:
        raise self._error(place)

    def _error(self, place: TopicPartition) -> StreamsError:
        self.lost = place
        return StreamsError(
            f"{place} has no record any more at offset {self._offsets.get(place)}, up to which its global store was "
            "read: records were deleted faster than they were read, or the topic was made anew; start the worker "
            "again, and its global stores are read from the beginning"
        )


class GlobalThread:
    """The thread of one worker; its methods are for other threads.

    :param partitions: the number of partitions of each topic.
    :param on_failure: called on this thread when it cannot go on, once, after ``start`` has returned.
    """

    def __init__(
        self,
        name: str,
        *,
        state: GlobalState,
        partitions: Mapping[str, int],
        reader: Callable[[], TopicReader],
        offsets: TopicOffsets,
        listener: StateRestoreListener,
        config: StreamsConfig,
        clock: Clock,
        on_failure: Callable[[StreamsError], None],
    ) -> None:
        self._state = state
        self._partitions = partitions
        self._make_reader = reader
        self._offsets = offsets
        self._listener = listener
        self._clock = clock
        self._on_failure = on_failure
        self._poll_s = config.poll_ms / 1000
        self._commit_s = config.commit_interval_ms / 1000
        self._reads_committed = config.get_global_consumer_configs("")["isolation.level"] == "read_committed"
        self._patience_s = (config.task_timeout_ms + config.request_timeout_ms) / 1000
        self._outage = Outage(f"requests of {name}", clock, config.task_timeout_ms / 1000)
        self._stopping = threading.Event()
        self._ready = threading.Event()
        self._error: StreamsError | None = None
        self._others = _NoOtherOffsets(state.offsets)
        self._lost_positions = LostPositions(offsets, self._others, clock)
        self._commit_at = 0.0
        self._full = RepeatedWarnings(log, clock, _LAST_RETRY_S)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def views(self) -> Mapping[str, object]:
        """The stores by name, as tasks may see them."""
        return self._state.views

    def readable(self, name: str) -> LocalStore | None:
        """A global store, for those who are no task; ``None`` before it was read to the end of its topic."""
        if not self._ready.is_set():
            return None
        state = self._state
        return LocalStore(name, f"global store {name!r}", state, lambda: state.readable(name))

    @property
    def is_current(self) -> bool:
        """Whether it is this thread that asks."""
        return self._thread is threading.current_thread()

    def start(self, given_up: Callable[[], bool] = lambda: False) -> bool:
        """Starts the thread and waits for the stores; false when it was stopped, or ``given_up`` said so, before.

        Raises what keeps the stores from being read.
        """
        self._thread.start()
        while not self._ready.wait(_LOOK_S):
            if given_up():
                return False
        if self._error is not None:
            raise self._error
        return not self._stopping.is_set()

    def stop(self) -> None:
        """Commits and closes the stores, and ends the thread."""
        self._stopping.set()
        if self._thread.is_alive() and not self.is_current:
            self._thread.join()

    def _run(self) -> None:
        reader: TopicReader | None = None
        try:
            reader = self._make_reader()
            self._restore_whole(reader)
            self._ready.set()
            while not self._stopping.is_set():
                self._turn(reader)
        except BaseException as error:  # foreign extensions raise what is no Exception, and so does sys.exit
            self._fail(error)
        finally:
            self._ready.set()
            self._stopping.wait()
            self._close(reader)

    def _fail(self, error: BaseException) -> None:
        failure = self._state.explained(error)
        if failure is not error:
            failure.__cause__ = error
        if self._ready.is_set():
            self._on_failure(failure)
        else:
            self._error = failure

    def _restore_whole(self, reader: TopicReader) -> None:
        """Begins once more, without them, when stores turn out to be damaged while they are read."""
        try:
            self._restore_to_ends(reader)
        except DamagedStoreError as error:
            log.warning("global stores are opened again: %s", error)
            self._state.close()
            self._restore_to_ends(reader)

    def _restore_to_ends(self, reader: TopicReader) -> None:
        """Reads every partition up to the end that it has now."""
        state = self._state
        state.open()
        places = [TopicPartition(topic, number) for topic in state.topics for number in range(self._partitions[topic])]
        if (found := self._ends_of(places)) is None:
            return
        begins, ends = found
        gone = [
            place
            for place, offset in state.offsets.items()
            if place not in begins or not begins[place] <= offset <= ends[place]
        ]
        if gone:
            log.warning("%s no longer has the offset at which its global store stands; all are read anew", gone[0])
            state.start_anew()
        positions = {place: state.offsets.get(place, begins[place]) for place in places}
        state.offsets.update(positions)
        left: dict[TopicPartition, _Restoring] = {}
        for place, position in positions.items():
            restoring = left[place] = _Restoring(state.store_of(place.topic), ends[place])
            self._listener.on_restore_start(place, restoring.store, position, restoring.end)
            if position >= restoring.end:
                self._finish(left, place)
        reader.assign(positions)
        try:
            self._read_to_ends(reader, left)
        except DamagedStoreError:  # the client refuses to take up what it reads already
            reader.unassign(positions)
            raise

    def _read_to_ends(self, reader: TopicReader, left: dict[TopicPartition, _Restoring]) -> None:
        """Reads until nothing is left."""
        state = self._state
        began = self._clock.monotonic()
        while left and not self._stopping.is_set():
            batch = reader.fetch(_FETCH_S)
            if not batch.positions and self._clock.monotonic() - began > self._patience_s:
                raise StreamsError(
                    f"global stores made no progress in {self._patience_s:g} s (task.timeout.ms and "
                    f"request.timeout.ms) while they were read; waiting for {', '.join(map(str, sorted(left)))}: look "
                    "at the brokers that lead these partitions, or raise task.timeout.ms"
                )
            self._restore(batch, left)
            self._settle_refused(reader, batch)
            if state.uncommitted >= COMMIT_EVERY:
                self._with_room(state.commit)
            if batch.positions:
                began = self._clock.monotonic()  # only now: a store may have waited long for room on its disk
        if not left:
            self._with_room(state.end_restore)
            self._with_room(state.commit)
            self._commit_at = self._clock.monotonic() + self._commit_s
            log.info("global stores %s are ready", ", ".join(map(repr, state.stores)))

    def _ends_of(
        self, places: Collection[TopicPartition], *, read_committed: bool = False
    ) -> tuple[OffsetByPartition, OffsetByPartition] | None:
        """The first and the last offsets of partitions, asked for until brokers answer; ``None``: stopped meanwhile.

        :param read_committed: whether the last one lies before the first transaction that is open.
        """
        while not self._stopping.is_set():
            try:
                begins = self._offsets.beginning_offsets(places)
                found = begins, self._offsets.end_offsets(places, read_committed=read_committed)
            except ClusterUnavailableError as error:
                self._outage.failed(error)
                self._stopping.wait(_LOOK_S)
            else:
                self._outage.over()
                return found
        return None

    def _restore(self, batch: RestoreBatch, left: dict[TopicPartition, _Restoring]) -> None:
        for place, messages in batch.runs.items():
            self._with_room(partial(self._restore_rest, place, messages))
            if (restoring := left.get(place)) is not None:
                restoring.total += len(messages)
                last = messages[-1].offset()
                assert last is not None
                self._listener.on_batch_restored(place, restoring.store, last, len(messages))
        self._state.offsets.update(batch.positions)
        for place in list(left):
            if batch.positions.get(place, -1) >= left[place].end:
                self._finish(left, place)
        if early := [place for place in batch.at_end if place in left]:
            self._look_at_ends(left, early)

    def _look_at_ends(self, left: dict[TopicPartition, _Restoring], early: Collection[TopicPartition]) -> None:
        """Asks the leaders of partitions whether they end where a broker says, which is before their ends of the start.

        They do where a transaction is open. But one that was stopped, and leads no more, knows of no later records.
        """
        if (found := self._ends_of(early, read_committed=self._reads_committed)) is None:
            return
        for place in early:
            left[place].end = min(left[place].end, found[1][place])
            if self._state.offsets[place] >= left[place].end:
                self._finish(left, place)

    def _finish(self, left: dict[TopicPartition, _Restoring], place: TopicPartition) -> None:
        restoring = left.pop(place)
        self._listener.on_restore_end(place, restoring.store, restoring.total)

    def _turn(self, reader: TopicReader) -> None:
        batch = reader.fetch(self._poll_s)
        for place, messages in batch.runs.items():
            self._with_room(partial(self._update_rest, place, messages))
        self._state.offsets.update(batch.positions)
        self._settle_refused(reader, batch)
        if self._state.uncommitted >= _WORTH_COMMITTING and self._clock.monotonic() >= self._commit_at:
            self._with_room(self._state.commit)
            self._commit_at = self._clock.monotonic() + self._commit_s

    def _restore_rest(self, place: TopicPartition, messages: Sequence[_Message]) -> None:
        if left := self._not_taken(place, messages):
            self._state.restore(left)

    def _update_rest(self, place: TopicPartition, messages: Sequence[_Message]) -> None:
        if left := self._not_taken(place, messages):
            self._state.update(left)

    def _not_taken(self, place: TopicPartition, messages: Sequence[_Message]) -> list[_Message]:
        position = self._state.offsets.get(place, 0)
        return [message for message in messages if (message.offset() or 0) >= position]

    def _with_room(self, action: Callable[[], None]) -> None:
        """Does something with the stores; while their disk is full it waits and tries again, and they can be read."""
        wait_s = _FIRST_RETRY_S
        while True:
            try:
                return action()
            except DiskFullError as error:
                room = room_of(error.folder)
                self._full.warn(
                    "full",
                    "the disk of global stores in %r is full: %d bytes are free. They are not read on until there is "
                    "room, and can be looked up as they are: %s",
                    error.folder,
                    room.free,
                    error,
                )
                if self._stopping.wait(wait_s):
                    raise
                wait_s = min(2 * wait_s, _LAST_RETRY_S)

    def _settle_refused(self, reader: TopicReader, batch: RestoreBatch) -> None:
        """Reads on what a broker has refused although the leader has it; raises where it has not."""
        self._lost_positions.read(batch.positions)
        for place in batch.out_of_range:
            self._lost_positions.note(place)
        self._lost_positions.settle(_Reading(reader, self._state.offsets))

    def _close(self, reader: TopicReader | None) -> None:
        try:
            if self._others.lost is None and self._state.uncommitted:
                self._state.commit()
        except Exception:
            log.exception("the last commit of global stores did not succeed; some records will be read again")
        wipe = self._others.lost is not None
        closing: dict[str, Callable[[], None]] = {"a store": lambda: self._state.close(wipe=wipe)}
        if reader is not None:
            closing["the consumer"] = reader.close
        for part, close in closing.items():
            try:
                close()
            except Exception:
                log.exception("%s of the global stores could not be closed; the others are", part)
