"""The contexts by which operators, user code and stores of a task use the runtime.

``TaskState`` is what all of them share; ``NodeContext`` is an ``OperatorContext`` and ``NodeProcessingContext`` a
``ProcessingContext``, one of each per node; ``TaskStoreContext`` is the ``StoreContext`` of the task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pykstreams.core.clock import Clock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ProcessingError, ProcessorStateError, StreamsError
from pykstreams.core.ids import TaskId
from pykstreams.core.in_flight import FinishesLater
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.names import changelog_name
from pykstreams.core.processor import Cancellable, CurrentRecord, ProcessingContext, PunctuationType
from pykstreams.core.record import RecordContext, RecordMetadata
from pykstreams.core.serialized_sink import SerializedSink
from pykstreams.core.types import (
    Duration,
    Forward,
    Headers,
    Punctuator,
    Timestamp,
    duration_ms,
    timestamp_ms,
)
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.dropped import DroppedRecords
from pykstreams.runtime.tasks.failures import Failures
from pykstreams.runtime.tasks.in_flight import InFlight
from pykstreams.runtime.tasks.input_watch import InputWatch
from pykstreams.runtime.tasks.node_callbacks import NodeCallbacks
from pykstreams.runtime.tasks.offset_metadata import UNKNOWN_TIME, ProcessorMetadata
from pykstreams.runtime.tasks.punctuation import PunctuationQueue, Schedule
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.state.interfaces.store import ChangelogWriter

if TYPE_CHECKING:
    from pykstreams.topology.plan import SubtopologyPlan

T = TypeVar("T")


def describe_record(raw: tuple[Any, int, Headers]) -> RecordContext:
    """Makes the readable form of the current record: a message with the time and headers that travel.

    A message of ``None`` stands for a punctuation or ``init``, which have a time and nothing else.
    """
    message, timestamp, headers = raw
    if message is None:
        return RecordContext(None, -1, -1, timestamp, ())
    return RecordContext(
        message.topic(),
        message.partition(),
        message.offset(),
        timestamp,
        headers,
        message.key(),
        message.value(),
    )


@dataclass(slots=True)
class TaskState:
    """The state that the parts of one task share while it runs."""

    task_id: TaskId
    config: StreamsConfig
    clock: Clock
    collector: RecordCollector
    metrics: StreamsMetrics
    directory: Path
    current: CurrentRecord
    dropped: DroppedRecords
    failures: Failures
    stream_schedules: PunctuationQueue
    wall_clock_schedules: PunctuationQueue
    in_flight: InFlight
    input_watch: InputWatch
    global_stores: Mapping[str, object] = field(default_factory=dict)
    """Read-only; every node may read them."""
    stores: dict[str, Any] = field(default_factory=dict)
    shared: dict[str, Any] = field(default_factory=dict)
    """The objects that operators share in memory, by name."""
    metadata: ProcessorMetadata = field(default_factory=ProcessorMetadata)
    stream_time: list[int] = field(default_factory=lambda: [UNKNOWN_TIME])
    """One slot, so that whoever reads it sees the loop over records write it."""
    commit_requested: bool = False
    callbacks: NodeCallbacks = field(default_factory=NodeCallbacks)

    def flush_caches(self) -> None:
        """Flushes every cache, also after an error; raises the first (``ProcessorStateManager.flushCache``, 4.3.1)."""
        first: StreamsError | None = None
        for name, store in self.stores.items():
            try:
                store.flush_cache()
            except Exception as error:
                if isinstance(error, StreamsError) and not isinstance(error, ProcessingError):
                    failed = error
                else:
                    text = f"the cache of store {name!r} was not flushed: {error}"
                    failed = ProcessorStateError(text, task_id=self.task_id)
                    failed.__cause__ = error
                first = first or failed
        if first is not None:
            raise first

    @property
    def application_id(self) -> str:
        return self.config.application_id


class NodeProcessingContext(ProcessingContext):
    """The context of user code at one node."""

    __slots__ = ("_connected", "_node", "_task")

    def __init__(self, task: TaskState, node: str, connected: tuple[str, ...]) -> None:
        self._task = task
        self._node = node
        self._connected = connected

    @property
    def application_id(self) -> str:
        return self._task.application_id

    @property
    def task_id(self) -> TaskId:
        return self._task.task_id

    @property
    def record_metadata(self) -> RecordMetadata | None:
        found = self._task.current.context
        return None if found is None else RecordMetadata(found.topic, found.partition, found.offset)

    @property
    def key_serde(self) -> Any:
        return self._task.config.default_key_serde

    @property
    def value_serde(self) -> Any:
        return self._task.config.default_value_serde

    @property
    def state_dir(self) -> Path:
        return self._task.directory

    @property
    def metrics(self) -> StreamsMetrics:
        return self._task.metrics

    def get_state_store(self, name: str) -> Any:
        task = self._task
        if name in task.global_stores:
            return task.global_stores[name]
        if name not in self._connected:
            known = ", ".join(map(repr, self._connected)) or "none"
            raise StreamsError(
                f"{self._node} has no access to store {name!r}; connected to it: {known}. Name the store where the "
                "processor is added (process, process_values, transform_values, add_state_store or "
                "connect_processor_and_state_stores), or return its builder from stores() of the supplier",
                task_id=task.task_id,
            )
        return task.stores[name].public_view

    def schedule(
        self,
        interval: Duration,
        punctuation_type: PunctuationType,
        callback: Punctuator,
        *,
        start_time: Timestamp | None = None,
    ) -> Cancellable:
        task = self._task
        step = duration_ms(interval, "interval of a punctuation")
        if step < 1:
            raise ValueError(f"interval of a punctuation is {interval!r}; it must be at least 1 ms")
        if punctuation_type is PunctuationType.STREAM_TIME:
            queue, now, first = task.stream_schedules, task.stream_time[0], 0
        else:
            queue = task.wall_clock_schedules
            now = task.clock.now_ms()
            first = now + step
        made = Schedule(self._node, first, step, callback)
        if start_time is not None:
            made.due = timestamp_ms(start_time, "start time of a punctuation")
            if made.due < 0:
                raise ValueError(f"start time of a punctuation is {start_time!r}; it must not be negative")
            if made.due < now:
                made.move_past(now)
        queue.schedule(made)
        return made

    def commit(self) -> None:
        self._task.commit_requested = True

    @property
    def app_configs(self) -> Mapping[str, object]:
        return self._task.config

    def app_configs_with_prefix(self, prefix: str) -> dict[str, object]:
        return self._task.config.with_prefix(prefix)

    def current_system_time_ms(self) -> int:
        return self._task.clock.now_ms()

    def current_stream_time_ms(self) -> int:
        return self._task.stream_time[0]


class NodeContext:
    """The context of an operator while its position in a task is compiled."""

    __slots__ = (
        "_task",
        "children",
        "config",
        "current",
        "failures_are_final",
        "forward",
        "gets_what_was_read",
        "metadata",
        "node",
        "one_record_at_a_time",
        "processing",
        "serialized_sink",
    )

    def __init__(
        self,
        task: TaskState,
        node: str,
        processing: ProcessingContext,
        forward: Forward,
        children: Mapping[str, Forward],
        serialized_sink: SerializedSink | None,
        *,
        gets_what_was_read: bool = False,
    ) -> None:
        self._task = task
        self.node = node
        self.processing = processing
        self.config = task.config
        self.current = task.current
        self.failures_are_final = task.failures.only_fails
        self.one_record_at_a_time = task.collector.one_record_at_a_time
        self.forward = forward
        self.children = children
        self.serialized_sink = serialized_sink
        self.gets_what_was_read = gets_what_was_read
        self.metadata = task.metadata
        """Numbers that are committed beside the offsets and are there again after a restart."""

    def store(self, name: str) -> object:
        """The open store of that name; a global one is read-only."""
        task = self._task
        return task.stores[name] if name in task.stores else task.global_stores[name]

    def fail(self, error: Exception, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        """Hands an exception of this node to the processing exception handler."""
        self._task.failures.processing(self.node, error, key, value, timestamp, headers)

    def drop(self, reason: str) -> None:
        """Counts a dropped record and warns."""
        self._task.dropped.drop(self.node, reason)

    def count_dropped(self) -> None:
        """Counts a dropped record without a warning."""
        self._task.dropped.count(self.node)

    def shared(self, name: str, make: Callable[[], T]) -> T:
        """The object that operators of this task share in memory under a name."""
        shared = self._task.shared
        if name not in shared:
            shared[name] = make()
        found: T = shared[name]
        return found

    def partition_count(self, topic: str) -> int:
        """The number of partitions of a topic."""
        return self._task.collector.partitions_of(topic, self.node)

    def default_partition(self, key: bytes, partitions: int) -> int:
        """The partition that the default partitioner chooses for a key."""
        return self._task.collector.partition_for_key(key, partitions)

    def stream_time(self) -> int:
        """Stream time of the task in ms, -1 before the first record."""
        return self._task.stream_time[0]

    def finishes_later(self, work: FinishesLater) -> Callable[[], None]:
        """Announces an operator that forwards records later; returns what to call when something has finished."""
        self._task.in_flight.add(work)
        return self._task.in_flight.wake

    def limit_intake(self, room: Callable[[], int]) -> None:
        """Has the task take no more records than ``room()`` says."""
        self._task.in_flight.limit(room)

    def watch_input(self) -> Callable[[], int | None]:
        """Has the task note when input comes; returns what tells since when there has been none."""
        return self._task.input_watch.begin()

    def flush_caches(self) -> None:
        """Forwards what the caches of the task hold back."""
        self._task.flush_caches()

    def on_init(self, callback: Callable[[], None]) -> None:
        """Runs the callback when every node is built."""
        self._task.callbacks.on_init(self.node, callback)

    def on_close(self, callback: Callable[[], None]) -> None:
        """Runs the callback when the task closes."""
        self._task.callbacks.on_close(self.node, callback)


class TaskStoreContext:
    """The context with which the stores of a task are opened."""

    __slots__ = ("_plan", "_task", "cache", "config", "current", "metrics", "state_dir", "task_id")

    def __init__(self, task: TaskState, plan: SubtopologyPlan, cache: RecordCache) -> None:
        self._task = task
        self._plan = plan
        self.task_id = task.task_id
        self.state_dir = task.directory
        self.config = task.config
        self.current = task.current
        self.cache = cache
        self.metrics = task.metrics

    @property
    def application_id(self) -> str:
        return self._task.application_id

    def changelog(self, store_name: str) -> ChangelogWriter | None:
        """How to write to a store's changelog; ``None`` without one, and where a source topic serves as one."""
        topic = self._plan.changelogs.get(store_name)
        if topic is None or topic not in self._plan.changelog_topics:
            return None
        task = self._task
        return task.collector.changelog_writer(
            task.task_id, store_name, topic, task.task_id.partition, stays_behind=self._plan.takes_back
        )

    def count_late(self, store_name: str) -> None:
        """Counts a record that a store does not put because it is late; the store warns."""
        self._task.dropped.count(store_name, late=True)

    def changelog_topic(self, store_name: str) -> str:
        """The name of a store's changelog, also where it has none: it is the topic that its serdes get."""
        return self._plan.changelogs.get(store_name, changelog_name(self.application_id, store_name))
