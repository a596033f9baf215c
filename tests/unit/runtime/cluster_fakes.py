"""Fakes of the runtime's neighbours that keep their promises: a clock, a task, a group, a producer, a store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pykstreams.core.errors import DamagedStoreError, StoreEngineError, TaskMigratedError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import Counter
from pykstreams.runtime.clients.consumers.messages import Fetched, RecordMessage
from pykstreams.runtime.clients.consumers.restore_consumer import RestoreBatch
from pykstreams.runtime.clients.positions import CommittedOffsets, Offsets
from pykstreams.runtime.membership.membership import Assignment, Lost
from pykstreams.runtime.membership.session_times import SessionTimes
from pykstreams.runtime.restore.restore import RestorableStore
from pykstreams.runtime.tasks.dropped import DroppedRecords
from pykstreams.runtime.tasks.stores.open_stores import OpenStores
from pykstreams.runtime.tasks.stores.state_offsets import StateOffsets
from pykstreams.runtime.tasks.task import Task
from pykstreams.runtime.topics.topic_admin import TopicLayout


class FakeClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def now_ms(self) -> int:
        return int(self.seconds * 1000)

    def monotonic(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds


@dataclass
class Message:
    """A message as the consumer gives it."""

    at: int
    raw_key: bytes | None = b"k"
    raw_value: bytes | None = b"v"
    raw_headers: Any = None

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes | None:
        return self.raw_key

    def value(self) -> bytes | None:
        return self.raw_value

    def timestamp(self) -> tuple[int, int]:
        return 1, 1000 + self.at

    def headers(self) -> Any:
        return self.raw_headers


def fetched(place: TopicPartition, *offsets: int) -> Fetched:
    """A fetch that gives records of a partition."""
    return Fetched(runs={(place.topic, place.partition): as_messages(Message(offset) for offset in offsets)})


def as_messages(messages: Iterable[Message]) -> list[RecordMessage]:
    """Messages as a fetch has them."""
    return [cast("RecordMessage", message) for message in messages]


class FakeTask(Task):
    """A task that counts what it is given; ``fail`` is raised when it processes, ``start_failure`` when it starts, and
    ``open_failure`` when its stores are opened.

    It is a ``Task`` for the types only: nothing of it is made, so that a method that is not replaced here fails.
    """

    commit_requested = False
    replays = False
    unfinished = 0
    busy_s = 0.0

    def flush_metrics(self, now_ms: int, share: float | None = None) -> None:
        """It measures nothing."""

    def __init__(
        self,
        task_id: TaskId,
        inputs: Collection[TopicPartition],
        stores: Mapping[TopicPartition, Any],
        *,
        start_failure: Exception | None = None,
    ) -> None:
        self.id = task_id
        self.inputs = list(inputs)
        self.input_partitions = tuple(inputs)
        self.waiting: dict[TopicPartition, list[Any]] = {place: [] for place in inputs}
        self.done: dict[TopicPartition, int] = {}
        self.by_changelog = dict(stores)
        self.offsets = StateOffsets({store.name: place for place, store in stores.items()})
        self.history: list[Any] = []
        self.fail: Exception | None = None
        self.start_failure = start_failure
        self.open_failure: Exception | None = None
        self.hold = False
        self.can_release = False
        self.when_asked: Callable[[], None] = lambda: None
        self.when_settling: Callable[[], None] = lambda: None
        self.when_processing: Callable[[], None] = lambda: None
        self.evictions: list[Callable[[], bool]] = []
        """What becomes of the cache when an entry is to be evicted, call after call; then there is none."""
        self.punctuated = 0
        self.drops = DroppedRecords(task_id, Counter(), FakeClock(), lambda: None)
        self.unread = 0
        """How many records of its input are on the brokers."""
        self.stands_for: dict[TopicPartition, int] | None = None
        self._dirty = False

    @property
    def state_offsets(self) -> StateOffsets:
        return self.offsets

    @property
    def dropped(self) -> DroppedRecords:
        return self.drops

    def behind(self) -> int:
        return sum(map(len, self.waiting.values())) + self.unread

    def reached(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.stands_for = dict(offsets)

    def changelogs(self) -> dict[str, TopicPartition]:
        return {store.name: place for place, store in self.by_changelog.items()}

    def evict_eldest(self) -> bool:
        return bool(self.evictions) and self.evictions.pop(0)()

    @property
    def commit_needed(self) -> bool:
        return self._dirty

    def restorable(self, error: StoreEngineError) -> DamagedStoreError | None:
        names = [store.name for store in self.by_changelog.values()]
        return error if isinstance(error, DamagedStoreError) and error.store in names else None

    def hand_over(self) -> OpenStores | None:
        if not self.by_changelog or not self.can_release:
            return None
        self.history.append("release")
        return OpenStores({store.name: store for store in self.by_changelog.values()}, self.state_offsets)

    def open_stores(self, kept: OpenStores | None = None) -> dict[TopicPartition, Any]:
        if self.open_failure is not None:
            raise self.open_failure
        if kept is not None:
            self.history.append("take up")
            self.offsets = kept.offsets
            return self.by_changelog
        self.history.append("open")
        self.state_offsets.clear()
        for store in self.by_changelog.values():
            store.noted = self.state_offsets
            self.state_offsets.opened(store, store.committed_offset())
        return self.by_changelog

    def start(self, committed: Offsets) -> None:
        self.history.append(("start", dict(committed)))
        if self.start_failure is not None:
            raise self.start_failure

    def add(self, partition: TopicPartition, messages: Sequence[Any]) -> None:
        self.waiting[partition] += messages

    def reached_end(self, partition: TopicPartition, end: int) -> None:
        self.history.append(("end", partition, end))

    def is_ready(self) -> bool:
        self.when_asked()
        return not self.hold and any(self.waiting.values())

    def buffered_of(self, partition: TopicPartition) -> int:
        return len(self.waiting[partition])

    def process(self, max_records: int) -> int:
        if self.fail is not None:
            failure, self.fail = self.fail, None
            raise failure
        if self.hold:
            return 0
        self.when_processing()
        count = 0
        for place, messages in self.waiting.items():
            for message in messages[:max_records]:
                self.done[place] = message.offset() + 1
                self._dirty = True
                count += 1
            del messages[:max_records]
        return count

    def punctuate(self, now_ms: int) -> bool:
        self.punctuated += 1
        return False

    def settle(self) -> bool:
        self.when_settling()
        return not self.unfinished

    def prepare_commit(self) -> dict[TopicPartition, tuple[int, str]]:
        self.history.append("prepare")
        return {place: (offset, f"m{offset}") for place, offset in self.done.items()}

    def post_commit(self, changelog_offsets: Mapping[TopicPartition, int]) -> None:
        self.history.append(("post", dict(changelog_offsets)))
        self._dirty = False
        self.commit_requested = False

    def abandon(self) -> None:
        self.history.append("abandon")

    def close(self) -> None:
        self.history.append("close")


class FakeMembership:
    """A group whose events a test puts in; it keeps what was committed."""

    def __init__(self) -> None:
        self.changes: list[Assignment | Lost | Collection[TaskId]] = []
        self.offsets: dict[TopicPartition, tuple[int, str]] = {}
        self.busy = 0
        self.unstable = 0
        """How many more times it does not say what was committed."""
        self.unsettled: frozenset[TopicPartition] = frozenset()
        """Partitions whose offset is in a transaction that is open."""
        self.asked: list[frozenset[TopicPartition]] = []
        """The partitions whose committed offsets were asked for, time after time."""
        self.fail: Exception | None = None
        self.acknowledged: list[Any] = []
        self.left: bool | None = None
        self.times = SessionTimes(2, 6)
        self.silent: float | None = 0.0
        self.looks_until_answer = 0
        """How often a worker looks whether the group is silent before that has answered; 0: it does not by itself."""
        self.when_polled: Callable[[], None] = lambda: None
        self.on_revoked: Callable[[frozenset[TaskId]], None] = lambda _: None
        self.commits = 0
        self.layout: TopicLayout | None = None
        self.rebalances = False
        """Whether tasks are being shared out anew, so that nothing may be committed."""
        self._joins = False
        """Whether other topics have made this member join again, of which it hears with its next poll."""

    def start(self, layout: TopicLayout, on_revoked: Callable[[frozenset[TaskId]], None]) -> None:
        self.layout = layout
        self.on_revoked = on_revoked

    def follow(self, layout: TopicLayout) -> None:
        self._joins = self.layout is not None and layout.inputs != self.layout.inputs
        self.layout = layout

    def poll(self, timeout: float = 0) -> Assignment | Lost | None:
        self.when_polled()
        self._joins = False
        while self.changes:
            change = self.changes.pop(0)
            if isinstance(change, Assignment | Lost):
                return change
            self.on_revoked(frozenset(change))
        return None

    def ack(self, change: Any) -> None:
        self.acknowledged.append(change)

    def may_commit(self) -> bool:
        return not self.rebalances and not self._joins

    def silent_s(self) -> float | None:
        if self.looks_until_answer:
            self.looks_until_answer -= 1
            if not self.looks_until_answer:
                self.silent = 0.0
        return self.silent

    def commit(self, offsets: Offsets) -> bool:
        if self.fail is not None:
            failure, self.fail = self.fail, None
            raise failure
        if self._joins:
            return False
        if self.busy:
            self.busy -= 1
            return False
        self.commits += 1
        self.offsets.update(offsets)
        return True

    def committed(self, partitions: Collection[TopicPartition]) -> CommittedOffsets | None:
        self.asked.append(frozenset(partitions))
        if self.unstable:
            self.unstable -= 1
            return None
        settled = {place: found for place, found in self.offsets.items() if place in partitions}
        unsettled = self.unsettled.intersection(partitions)
        return CommittedOffsets({place: settled[place] for place in settled.keys() - unsettled}, unsettled)

    def transaction_metadata(self) -> bytes:
        if not self.may_commit():
            raise TaskMigratedError("this worker is not in the group at the moment")
        return b"metadata"

    def close(self, leave: bool) -> None:
        self.left = leave


class FakeTransactions:
    """A transactional producer that writes down what it is asked."""

    def __init__(self) -> None:
        self.history: list[Any] = []
        self.fail: Exception | None = None
        self.usable = True
        self.broken = False

    def start_transactions(self, timeout_s: float) -> None:
        self._fail_once_broken()
        self.history.append("start")

    def begin(self) -> None:
        self._fail_once_broken()
        self.history.append("begin")

    def _fail_once_broken(self) -> None:
        if self.broken:
            raise TaskMigratedError("this producer cannot go on")

    def commit(self, offsets: Offsets, group_metadata: bytes) -> None:
        if self.fail is not None:
            raise self.fail
        self.history.append(("commit", dict(offsets), group_metadata))

    def abort(self) -> bool:
        self.history.append("abort")
        return self.usable


class FakeDeliveries:
    """A collector of which only the flushing matters."""

    def __init__(self) -> None:
        self.broken = False
        self.flushed = 0
        self.cleared = 0
        self.fail: Exception | None = None
        self.when_flushed: Callable[[], None] = lambda: None

    def flush(self) -> None:
        self.flushed += 1
        self.when_flushed()
        if self.fail is not None:
            raise self.fail

    def clear(self) -> None:
        self.cleared += 1
        self.fail = None


class FakeBounds:
    """The first and the last offsets of partitions; ``failure`` is raised instead."""

    def __init__(self, bounds: Mapping[TopicPartition, tuple[int, int]]) -> None:
        self.bounds = bounds
        self.failure: Exception | None = None
        self.asked = 0

    def beginning_offsets(
        self, partitions: Collection[TopicPartition], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return {place: self.bounds[place][0] for place in partitions}

    def end_offsets(
        self, partitions: Collection[TopicPartition], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        return {place: self.bounds[place][1] for place in partitions}


class FakeReader:
    """A data consumer; ``next`` is what the next fetch gives, and ``when_fetching`` is called before it."""

    def __init__(self) -> None:
        self.assigned: dict[TopicPartition, int] = {}
        self.paused: set[TopicPartition] = set()
        self.next = Fetched()
        self.starts: dict[TopicPartition, int] = {}
        self.ends: dict[TopicPartition, int] = {}
        self.sought: dict[TopicPartition, int] = {}
        self.timeouts: list[float] = []
        self.when_fetching: Callable[[], None] = lambda: None
        self.closed = False

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        assert not set(positions) & set(self.assigned)
        self.assigned.update(positions)

    def unassign(self, partitions: Collection[TopicPartition]) -> None:
        for place in partitions:
            del self.assigned[place]
        self.paused.difference_update(partitions)

    def fetch(self, timeout: float) -> Fetched:
        self.when_fetching()
        self.timeouts.append(timeout)
        fetched, self.next = self.next, Fetched()
        return fetched

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.sought[partition] = offset

    def position(self, partition: TopicPartition) -> int | None:
        position = self.assigned[partition]
        return position if position >= 0 else None

    def end(self, partition: TopicPartition) -> int | None:
        return self.ends.get(partition)

    def start(self, partition: TopicPartition) -> int | None:
        return self.starts.get(partition)

    def pause(self, partitions: Collection[TopicPartition]) -> None:
        self.paused.update(partitions)

    def resume(self, partitions: Collection[TopicPartition]) -> None:
        self.paused.difference_update(partitions)

    def close(self) -> None:
        self.closed = True


@dataclass
class FakeRestoredStore:
    """A store that keeps what it was restored from and committed with.

    :param noted: where a task that has opened it notes the offsets.
    """

    name: str = "counts"
    offset: int | None = None
    rows: list[Any] = field(default_factory=list)
    commits: list[int | None] = field(default_factory=list)
    ready: bool = False
    persistent: bool = True
    flushed: int | None = None
    noted: StateOffsets | None = None

    def flushed_offset(self) -> int | None:
        return self.flushed

    def committed_offset(self) -> int | None:
        return self.offset

    def restore(self, rows: Sequence[Any]) -> None:
        self.rows += rows

    def end_restore(self) -> None:
        self.ready = True

    def commit(self, offset: int | None) -> None:
        self.commits.append(offset)
        self.offset = self.offset if offset is None else offset
        if self.noted is not None:
            self.noted.note(self, offset)


_restorable: RestorableStore = FakeRestoredStore()


class FakeChangelogs:
    """Changelogs: their ends, and the batches that reading them gives; ``fail`` is raised once when they are read."""

    def __init__(self) -> None:
        self.begins: dict[TopicPartition, int] = {}
        self.ends: dict[TopicPartition, int] = {}
        self.assigned: dict[TopicPartition, int] = {}
        self.batches: list[RestoreBatch] = []
        self.fail: Exception | None = None
        self.silent: Exception | None = None
        """What is raised by whoever asks for offsets."""

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        self.assigned.update(positions)

    def unassign(self, partitions: Collection[TopicPartition]) -> None:
        for place in partitions:
            del self.assigned[place]

    def fetch(self, timeout: float) -> RestoreBatch:
        if self.fail is not None:
            failure, self.fail = self.fail, None
            raise failure
        return self.batches.pop(0) if self.batches else RestoreBatch()

    def end_offsets(
        self, partitions: Collection[TopicPartition], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        self._answer()
        return {place: self.ends.get(place, 0) for place in partitions}

    def beginning_offsets(
        self, partitions: Collection[TopicPartition], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        self._answer()
        return {place: self.begins.get(place, 0) for place in partitions}

    def _answer(self) -> None:
        if self.silent is not None:
            raise self.silent

    def put(self, place: TopicPartition, *offsets: int, position: int | None = None) -> None:
        """Lets the next fetch give records of a partition, and where it stands then."""
        batch = RestoreBatch()
        if offsets:
            batch.runs[place] = as_messages(Message(offset) for offset in offsets)
        batch.positions[place] = offsets[-1] + 1 if position is None else position
        self.batches.append(batch)
