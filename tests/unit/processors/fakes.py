"""What an operator meets in a task, small enough to see through: its context, its children, its stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ProcessingError, SerdeError
from pykstreams.core.hashing import partition_for_key
from pykstreams.core.ids import TaskId
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.processor import Cancellable, CurrentRecord, OperatorSupplier, ProcessingContext, PunctuationType
from pykstreams.core.record import RecordMetadata
from pykstreams.core.serialized_sink import SerializedSink
from pykstreams.core.types import Duration, Forward, Headers, Punctuator, Timestamp
from pykstreams.runtime.tasks.offset_metadata import ProcessorMetadata
from pykstreams.state.interfaces.operator_stores import KeyValueRows
from pykstreams.state.interfaces.store import FlushListener


class FakeStore:
    """A key-value store as operators see it; with ``cached`` it keeps changes until ``flush``."""

    def __init__(self, *, cached: bool = False) -> None:
        self.rows: dict[Any, tuple[Any, int]] = {}
        self.newest = True
        self.broken: Exception | None = None
        self.unreadable: set[Any] = set()
        """Keys of rows that a scan cannot read."""
        self.sends_old_values: bool | None = None
        self._cached = cached
        self._dirty: dict[Any, tuple[Any, int]] = {}
        self._listener: FlushListener | None = None

    def get_row(self, key: Any) -> tuple[Any, int] | None:
        if self.broken is not None:
            raise self.broken
        return self.rows.get(key)

    def put_row(self, key: Any, value: Any, timestamp: int) -> bool:
        if self.broken is not None:
            raise self.broken
        if self._cached:
            old = self.rows.get(key)
            self._dirty.setdefault(key, (None if old is None else old[0], timestamp))
        if value is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = (value, timestamp)
        return self.newest

    take_row = get_row
    keep_row = put_row

    def reader_below_cache(self) -> Callable[[Any], tuple[Any, int] | None]:
        def read(key: Any) -> tuple[Any, int] | None:
            if key in self._dirty:
                old, timestamp = self._dirty[key]
                return None if old is None else (old, timestamp)
            return self.get_row(key)

        return read

    def serialized_below_cache(self, key_serializer: Any, value_serializer: Any) -> None:
        """Objects are kept here, and no bytes."""

    def rows_by_prefix(self, prefix_serializer: Any) -> Callable[[Any], Iterator[tuple[Any, Any, int]]]:
        """Rows whose keys are pairs with that first part, in order."""

        def scan(prefix: Any) -> Iterator[tuple[Any, Any, int]]:
            if self.broken is not None:
                raise self.broken
            return map(read, sorted((key, *row) for key, row in self.rows.items() if key[0] == prefix))

        def read(row: tuple[Any, Any, int]) -> tuple[Any, Any, int]:
            if row[0] in self.unreadable:
                raise SerdeError(f"the row of {row[0]} does not fit its type")
            return row

        return scan

    def before_put(self) -> None:
        return None

    def on_flush(self, listener: FlushListener, send_old_values: bool, sink: SerializedSink | None = None) -> bool:
        self.sends_old_values = send_old_values
        self._listener = listener
        return self._cached

    def last_put(self, sink: SerializedSink) -> None:
        """Objects are kept here, and no bytes."""

    def flush(self, headers: Headers = ()) -> None:
        assert self._listener is not None
        dirty, self._dirty = self._dirty, {}
        for key, (old, timestamp) in dirty.items():
            new, time = self.rows.get(key, (None, timestamp))
            self._listener(key, (new, old if self.sends_old_values else None, True), time, headers)


_key_values: KeyValueRows[Any, Any] = FakeStore()


class FakeSchedule:
    """A schedule that nobody follows."""

    def cancel(self) -> None:
        return None


class FakeProcessing(ProcessingContext):
    """The runtime's part of a processor's context: fixed answers, and a list of what was asked."""

    application_id = "shop"
    task_id = TaskId(0, 1)
    record_metadata = RecordMetadata("orders", 1, 7)
    key_serde = "key serde"
    value_serde = "value serde"
    state_dir = Path("state")
    metrics: StreamsMetrics = StreamsMetrics()

    def __init__(self) -> None:
        self.metrics = StreamsMetrics()
        self._configs: dict[str, object] = {"app.color": "red"}
        self.scheduled = FakeSchedule()
        self.now_ms = 11
        self.calls: list[tuple[Any, ...]] = []

    @property
    def app_configs(self) -> dict[str, object]:
        return self._configs

    @app_configs.setter
    def app_configs(self, configs: dict[str, object]) -> None:
        self._configs = configs

    def get_state_store(self, name: str) -> Any:
        return f"store {name}"

    def schedule(
        self,
        interval: Duration,
        punctuation_type: PunctuationType,
        callback: Punctuator,
        *,
        start_time: Timestamp | None = None,
    ) -> Cancellable:
        self.calls.append(("schedule", interval, punctuation_type, callback, {"start_time": start_time}))
        return self.scheduled

    def commit(self) -> None:
        self.calls.append(("commit",))

    def app_configs_with_prefix(self, prefix: str) -> dict[str, object]:
        return {"color": "red", "prefix": prefix}

    def current_system_time_ms(self) -> int:
        return self.now_ms

    def current_stream_time_ms(self) -> int:
        return 12


class FakeOperatorContext:
    """Records what its children get, what fails and what is dropped.

    ``fail`` goes on after an error, unless ``failing``: then it raises ``ProcessingError`` as the runtime
    does. An error of a child passes through it as it is.
    """

    def __init__(self, *, children: Iterable[str] = ("child",), failing: bool = False, **stores: Any) -> None:
        self.node = "NODE"
        self.processing = FakeProcessing()
        self.config = StreamsConfig()
        self.current = CurrentRecord(lambda raw: raw)
        self.received: dict[str, list[tuple[Any, ...]]] = {name: [] for name in children}
        self.children: dict[str, Forward] = {name: self._child(name) for name in children}
        self.failed: list[tuple[Any, ...]] = []
        self.dropped: list[str] = []
        self.one_record_at_a_time = False
        self.silently_dropped = 0
        self.in_common: dict[str, Any] = {}
        self.partitions = 1
        self.flushed = 0
        self.idle_since: int | None = None
        self.metadata = ProcessorMetadata()
        self.later: list[Any] = []
        self.limits: list[Callable[[], int]] = []
        self.child_error: Exception | None = None
        self.serialized_sink: SerializedSink | None = None
        self.failures_are_final = failing
        self.gets_what_was_read = False
        self._failing = failing
        self._stores = stores
        self._init: list[Callable[[], None]] = []
        self._close: list[Callable[[], None]] = []

    def _child(self, name: str) -> Forward:
        def child(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            if self.child_error is not None:
                raise self.child_error
            self.received[name].append((key, value, timestamp, headers))

        return child

    @property
    def forwarded(self) -> list[tuple[Any, ...]]:
        """What the only child got."""
        (records,) = self.received.values()
        return records

    @property
    def forward(self) -> Forward:
        targets = tuple(self.children.values())
        if len(targets) == 1:
            return targets[0]

        def forward(key: Any, value: Any, timestamp: int, headers: Headers) -> None:
            for target in targets:
                target(key, value, timestamp, headers)

        return forward

    def store(self, name: str) -> Any:
        return self._stores[name]

    def fail(self, error: Exception, key: Any, value: Any, timestamp: int, headers: Headers) -> None:
        if isinstance(error, ProcessingError):
            raise error
        self.failed.append((error, key, value, timestamp, headers))
        if self._failing:
            raise ProcessingError(f"{self.node} failed", node=self.node) from error

    def drop(self, reason: str) -> None:
        self.dropped.append(reason)

    def count_dropped(self) -> None:
        self.silently_dropped += 1

    def shared(self, name: str, make: Callable[[], Any]) -> Any:
        return self.in_common.setdefault(name, make())

    def partition_count(self, topic: str) -> int:
        return self.partitions

    def default_partition(self, key: bytes, partitions: int) -> int:
        return partition_for_key(key, partitions)

    def stream_time(self) -> int:
        return -1

    def finishes_later(self, work: Any) -> Callable[[], None]:
        self.later.append(work)
        return lambda: None

    def limit_intake(self, room: Callable[[], int]) -> None:
        self.limits.append(room)

    def watch_input(self) -> Callable[[], int | None]:
        return lambda: self.idle_since

    def flush_caches(self) -> None:
        self.flushed += 1

    def on_init(self, callback: Callable[[], None]) -> None:
        self._init.append(callback)

    def on_close(self, callback: Callable[[], None]) -> None:
        self._close.append(callback)

    def start(self, operator: OperatorSupplier) -> Forward:
        """Builds the operator and runs what it wants to run before the first record."""
        process = operator.build(self)
        for callback in self._init:
            callback()
        return process

    def close(self) -> None:
        for callback in self._close:
            callback()
