"""``TopologyTestDriver``: runs a topology in this thread, without a broker, on a clock that tests move.

It feeds the same ``Task`` class that workers run. With one partition the whole topology is one task, as in Kafka's
driver, and records are taken in its order (``TopologyTestDriver``, 4.3.1); with several there is one task per
sub-topology and partition, as in a worker.

Invariant: when a call returns, everything that it set off has happened: records that went through internal topics are
processed, coroutines have ended, caches are flushed.
"""

from __future__ import annotations

import tempfile
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeAlias, TypeVar, cast, overload

from pykstreams.core.clock import SystemClock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.configured_metrics import configured_metrics
from pykstreams.core.errors import ConfigError, StreamsError
from pykstreams.core.handlers import LogAndContinueExceptionHandler
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import Metric, MetricName
from pykstreams.core.settings.keys import INTERNAL_KEYS
from pykstreams.core.shown_values import hide_values, show_values, with_noun
from pykstreams.core.types import Decoder, Duration, Encoder, Headers, Timestamp
from pykstreams.runtime.clients.sent_records import sent_data, sent_headers
from pykstreams.runtime.global_stores.global_state import GlobalState
from pykstreams.runtime.tasks.collector import RecordCollector
from pykstreams.runtime.tasks.raw_message import RawMessage
from pykstreams.runtime.tasks.stores.initial_state import InitialState
from pykstreams.runtime.tasks.task import Task, TaskParts
from pykstreams.serdes.base import AnySerde, bind_deserializer, bind_serializer
from pykstreams.serdes.by_type import SerdeOrType, given_serde
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.state.interfaces.session_store import SessionStore, SessionStoreWithHeaders
from pykstreams.state.interfaces.store import (
    KeyValueStore,
    TimestampedKeyValueStore,
    TimestampedKeyValueStoreWithHeaders,
)
from pykstreams.state.interfaces.versioned_store import VersionedKeyValueStore
from pykstreams.state.interfaces.window_store import (
    TimestampedWindowStore,
    TimestampedWindowStoreWithHeaders,
    WindowStore,
)
from pykstreams.state.queries.values import as_it_is
from pykstreams.testing.all_partitions import over_all
from pykstreams.testing.capture import CapturingProducer
from pykstreams.testing.clock import MockClock
from pykstreams.testing.input_topic import TestInputTopic
from pykstreams.testing.output_topic import TestOutputTopic
from pykstreams.testing.plain_sessions import PlainSessions
from pykstreams.testing.plain_values import PlainValues
from pykstreams.testing.plain_windows import PlainWindows, TimestampedWindows
from pykstreams.testing.records import ProducedRecord
from pykstreams.testing.topics import DriverTopics
from pykstreams.topology.checks.missing_serdes import check_serdes
from pykstreams.topology.plan import SubtopologyPlan
from pykstreams.topology.topology import Topology, check_topology

K = TypeVar("K")
V = TypeVar("V")
S = TypeVar("S")

AnyInputTopic: TypeAlias = TestInputTopic[Any, Any]
"""A topic of which only the serdes know the types."""

AnyOutputTopic: TypeAlias = TestOutputTopic[Any, Any]

_DEFAULTS: Mapping[str, object] = {
    "application.id": "topology-test-driver",
    "bootstrap.servers": "topology-test-driver:1",
    **dict.fromkeys(INTERNAL_KEYS, 0),
}

_PATIENCE_S = 60.0


class TopologyTestDriver:
    """Runs a topology record by record; a context manager.

    Caches are flushed after every record, as if each were followed by a commit, so that results are complete
    at once. State is kept in a temporary folder, which ``close`` removes.

    :param config: settings of the application; ``application.id`` and ``bootstrap.servers`` may be missing.
    :param initial_wall_clock_time: where the clock stands at first; the machine's time if not given.
    :param partitions: the number of partitions of every topic; repartition topics may have their own.
    """

    __test__ = False

    def __init__(
        self,
        topology: Topology,
        config: StreamsConfig | Mapping[str, object] | None = None,
        *,
        initial_wall_clock_time: Timestamp | None = None,
        partitions: int = 1,
    ) -> None:
        check_topology(topology)
        if not isinstance(partitions, int):
            raise TypeError(f"partitions is {partitions!r}; expected one number, which counts for every topic")
        if partitions < 1:
            raise ValueError(f"partitions is {partitions}; a topic has at least one")
        given = config if isinstance(config, StreamsConfig) else StreamsConfig(config)
        self._config = StreamsConfig({**_DEFAULTS, **given.originals})
        start = SystemClock().now_ms() if initial_wall_clock_time is None else initial_wall_clock_time
        self._clock = MockClock(start)
        metrics = configured_metrics(self._config, self._clock)
        self._metrics = metrics.with_tags(thread_id=threading.current_thread().name)
        self._producer = CapturingProducer()
        self._plan = topology.plan(self._config)
        self._topics = DriverTopics.of(self._plan, partitions)
        check_serdes(self._plan, self._config)
        self._collector = RecordCollector(
            self._producer,
            config=self._config,
            partition_count=self._topics.partition_count,
            one_record_at_a_time=partitions == 1,
        )
        self._cache = RecordCache(self._config.statestore_cache_max_bytes)
        self._closed = False
        self._output: dict[str, deque[ProducedRecord]] = {}
        self._produced: list[ProducedRecord] = []
        self._sent_to: set[str] = set()
        if not self._config.log_record_values:
            hide_values(self)
        self._folder = self._make_folder()
        self._woken = threading.Event()
        self._global = self._global_state()
        self._tasks: list[Task] = []
        self._readers: dict[TopicPartition, Task] = {}
        try:
            if self._global is not None:
                self._global.open()
            self._start_tasks()
        except BaseException as error:
            try:
                self.close()
            except Exception as closing:
                error.add_note(f"closing the driver failed, too: {type(closing).__name__}: {closing}")
            raise

    def __repr__(self) -> str:
        closed = ", closed" if self._closed else ""
        partitions = with_noun(self._topics.partitions, "partition")
        return f"<TopologyTestDriver {self._config.application_id!r} with {partitions}{closed}>"

    def __enter__(self) -> TopologyTestDriver:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Topics

    @overload
    def create_input_topic(
        self,
        topic: str,
        key_serializer: SerdeOrType[K],
        value_serializer: SerdeOrType[V],
        *,
        start_timestamp: Timestamp | None = None,
        auto_advance: Duration | None = None,
    ) -> TestInputTopic[K, V]: ...
    @overload
    def create_input_topic(
        self,
        topic: str,
        key_serializer: object = None,
        value_serializer: object = None,
        *,
        start_timestamp: Timestamp | None = None,
        auto_advance: Duration | None = None,
    ) -> AnyInputTopic: ...
    def create_input_topic(
        self,
        topic: str,
        key_serializer: object = None,
        value_serializer: object = None,
        *,
        start_timestamp: Timestamp | None = None,
        auto_advance: Duration | None = None,
    ) -> AnyInputTopic:
        """Makes an object that pipes records into a topic, written by serdes, or by those of types.

        Serdes default to those of the configuration.

        :param start_timestamp: time of the first record without one; the driver's clock if not given.
        :param auto_advance: how far apart records without a timestamp are; 0 if not given.
        """
        return TestInputTopic(
            topic,
            self._encoder(topic, key_serializer, "key"),
            self._encoder(topic, value_serializer, "value"),
            self._pipe,
            self._clock.now_ms() if start_timestamp is None else start_timestamp,
            0 if auto_advance is None else auto_advance,
        )

    @overload
    def create_output_topic(
        self, topic: str, key_deserializer: SerdeOrType[K], value_deserializer: SerdeOrType[V]
    ) -> TestOutputTopic[K, V]: ...
    @overload
    def create_output_topic(
        self, topic: str, key_deserializer: object = None, value_deserializer: object = None
    ) -> AnyOutputTopic: ...
    def create_output_topic(
        self, topic: str, key_deserializer: object = None, value_deserializer: object = None
    ) -> AnyOutputTopic:
        """Makes an object that reads what was sent to a topic, by serdes, or by those of types.

        Serdes default to those of the configuration. Reading is a ``ValueError`` where nothing writes the topic.
        """
        return TestOutputTopic(
            topic,
            self._decoder(topic, key_deserializer, "key"),
            self._decoder(topic, value_deserializer, "value"),
            self._sent,
        )

    @property
    def produced_topic_names(self) -> frozenset[str]:
        """The topics that anything was sent to, internal ones included."""
        return frozenset(self._sent_to)

    def take_produced(self) -> list[ProducedRecord]:
        """Everything that was sent since the last call, to any topic, in the order in which it was sent."""
        self._capture()
        taken, self._produced = self._produced, []
        return taken

    # Time

    def advance_wall_clock_time(self, advance: Duration) -> None:
        """Moves the clock, runs the wall-clock punctuators that are due, once, and whatever follows."""
        self._check_open()
        self._clock.advance(advance)
        for task in self._tasks:
            with self._transaction():
                task.punctuate(self._clock.now_ms())
                self._commit(task)
        self._run()

    # Stores

    def get_all_state_stores(self) -> dict[str, Any]:
        """Every store by name; with several partitions those of the first."""
        self._check_open()
        found: dict[str, object] = {}
        for task in self._tasks:
            for name, store in task.stores.items():
                found.setdefault(name, store.public_view)
        return {**found, **self._global_stores}

    def get_state_store(self, name: str, partition: int = 0) -> Any:
        """A store of any kind; ``None`` if there is none of that name."""
        self._check_open()
        stores = [task.stores[name] for task in self._tasks if name in task.stores and self._has(task, partition)]
        return stores[0].public_view if stores else self._global_stores.get(name)

    def get_key_value_store(self, name: str) -> KeyValueStore[Any, Any] | None:
        """A key-value store, without the timestamps it may keep; ``ValueError`` for a store of another kind.

        With several partitions this and the methods below give a view of all of them, as interactive queries do, that
        can be read only; ``get_state_store`` gives the store of one.
        """
        return self._store(name, KeyValueStore, _plain_values)

    def get_timestamped_key_value_store(self, name: str) -> TimestampedKeyValueStore[Any, Any] | None:
        """A key-value store whose values carry timestamps; ``ValueError`` for a store of another kind."""
        return self._store(name, TimestampedKeyValueStore)

    def get_timestamped_key_value_store_with_headers(
        self, name: str
    ) -> TimestampedKeyValueStoreWithHeaders[Any, Any] | None:
        """A key-value store whose values carry timestamps and headers; ``ValueError`` for another kind."""
        return self._store(name, TimestampedKeyValueStoreWithHeaders)

    def get_window_store(self, name: str) -> WindowStore[Any, Any] | None:
        """A window store, without the timestamps it may keep; ``ValueError`` for a store of another kind."""
        return self._store(name, WindowStore, _plain_windows)

    def get_timestamped_window_store(self, name: str) -> WindowStore[Any, Any] | None:
        """A window store whose values carry timestamps; ``ValueError`` for a store of another kind."""
        if any(isinstance(store, TimestampedWindowStoreWithHeaders) for store in self._stores(name)):
            return self._store(name, TimestampedWindowStoreWithHeaders, TimestampedWindows)
        return self._store(name, TimestampedWindowStore)

    def get_timestamped_window_store_with_headers(
        self, name: str
    ) -> TimestampedWindowStoreWithHeaders[Any, Any] | None:
        """A window store whose values carry timestamps and headers; ``ValueError`` for another kind."""
        return self._store(name, TimestampedWindowStoreWithHeaders)

    def get_session_store(self, name: str) -> SessionStore[Any, Any] | None:
        """A session store, without the headers it may keep; ``ValueError`` for a store of another kind."""
        return self._store(name, SessionStore, _plain_sessions)

    def get_session_store_with_headers(self, name: str) -> SessionStoreWithHeaders[Any, Any] | None:
        """A session store whose aggregates carry headers; ``ValueError`` for another kind."""
        return self._store(name, SessionStoreWithHeaders)

    def get_versioned_key_value_store(self, name: str) -> VersionedKeyValueStore[Any, Any] | None:
        """A versioned key-value store; ``ValueError`` for a store of another kind."""
        return self._store(name, VersionedKeyValueStore)

    def raw_store(self, name: str) -> Iterator[Any]:
        """The serialized rows of a store, in its order; with several partitions one after another.

        Those of key-value stores are tuples (key, value, timestamp, headers), those of window and session stores have
        the attributes ``key``, ``start``, ``value``, ``timestamp`` and, sessions, ``end``; those of versioned stores
        ``key``, ``value``, ``timestamp`` and ``valid_to``.

        ``LookupError`` if there is none of that name.
        """
        self._check_open()
        stores = [task.stores[name] for task in self._tasks if name in task.stores]
        stores += [self._global_stores[name]] if name in self._global_stores else []
        if not stores:
            raise LookupError(f"no store is named {name!r}; there are {sorted(self.get_all_state_stores())}")
        return (row for store in stores for row in store.raw_rows())

    # The rest

    def metrics(self) -> dict[MetricName, Metric]:
        """Every metric by name."""
        for task in self._tasks:
            task.flush_metrics(self._clock.now_ms())
        return self._metrics.metrics()

    def close(self) -> None:
        """Closes processors and stores and removes the state; closing again does nothing."""
        closing: list[Task | GlobalState] = [*self._tasks]
        if self._global is not None:
            closing.append(self._global)
        self._closed = True
        self._tasks, self._global, self._readers = [], None, {}
        errors: list[Exception] = []
        try:
            for one in closing:
                try:
                    one.close()
                except Exception as error:
                    errors.append(error)
        finally:
            show_values(self)
            self._folder.cleanup()
            self._metrics.close_reporters()
        if errors:
            raise errors[0]

    def _make_folder(self) -> tempfile.TemporaryDirectory[str]:
        """A folder of its own, below ``state.dir`` where that was set."""
        parent = self._config.state_dir if "state.dir" in self._config.originals else None
        if parent is not None:
            parent.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(prefix="topology-test-driver-", dir=parent, ignore_cleanup_errors=True)

    def _global_state(self) -> GlobalState | None:
        """The global stores, if there are any; what they cannot read they pass over, as in Kafka's driver."""
        if not self._plan.global_stores:
            return None
        handler = {"deserialization.exception.handler": LogAndContinueExceptionHandler()}
        return GlobalState(
            self._plan.global_stores,
            config=StreamsConfig({**self._config.originals, **handler}),
            clock=self._clock,
            metrics=self._metrics,
            directory=Path(self._folder.name) / "global",
            cache=self._cache,
        )

    @property
    def _global_stores(self) -> Mapping[str, object]:
        return {} if self._global is None else {name: store.public_view for name, store in self._global.stores.items()}

    def _start_tasks(self) -> None:
        if self._topics.partitions == 1:
            self._start_task(TaskId(0, 0), self._plan.whole)
            return
        for part in self._plan.subtopologies:
            counts = [self._topics.partition_count(topic) for topic in self._topics.read_by(part)]
            for partition in range(max(counts, default=0)):
                self._start_task(TaskId(part.id, partition), part)

    def _start_task(self, task_id: TaskId, part: SubtopologyPlan) -> None:
        partitions = [
            TopicPartition(topic, task_id.partition)
            for topic in self._topics.read_by(part)
            if task_id.partition < self._topics.partition_count(topic)
        ]
        if not partitions:
            return
        task = Task(
            task_id,
            part,
            partitions,
            TaskParts(
                config=self._config,
                clock=self._clock,
                collector=self._collector,
                cache=self._cache,
                metrics=self._metrics,
                global_stores={} if self._global is None else self._global.views,
                wake=self._woken.set,
            ),
            InitialState(Path(self._folder.name) / str(task_id)),
        )
        self._tasks.append(task)
        self._readers.update(dict.fromkeys(partitions, task))
        task.open_stores()
        task.start({})

    def _check_open(self) -> None:
        if self._closed:
            raise StreamsError(
                "the test driver is closed; pipe in records, move the clock and ask for stores before close(), "
                "inside of its 'with'"
            )

    def _sent(self, topic: str) -> deque[ProducedRecord]:
        """The records that were sent to a topic, and not read yet."""
        found = self._output.get(topic)
        if found is None:
            written = self._topics.written
            if topic not in written and topic != self._config.errors_dead_letter_queue_topic_name:
                raise ValueError(
                    f"topic {topic!r} is unknown; the topology writes {sorted(written)}, and nothing was sent to "
                    "another"
                )
            found = self._output[topic] = deque()
        return found

    def _pipe(self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers) -> None:
        self._check_open()
        record = ProducedRecord(
            topic, None, sent_data(key, "key"), sent_data(value, "value"), timestamp, sent_headers(headers)
        )
        if self._enqueue(record):
            self._run()
        elif topic not in self._topics.feeding_global_stores:
            raise ValueError(f"topic {topic!r} is unknown; the topology reads {self._known_topics()}")
        self._feed_global_store(record)

    def _known_topics(self) -> Collection[str]:
        return sorted((*self._topics.names, *self._topics.patterns, *self._topics.feeding_global_stores))

    def _feed_global_store(self, record: ProducedRecord) -> None:
        """Puts a record into the global store that its topic feeds, if it feeds one."""
        if self._global is None or record.topic not in self._topics.feeding_global_stores:
            return
        number = self._topics.partition_of(record.topic, record.topic, record.key, record.partition)
        self._global.update([self._message(record, TopicPartition(record.topic, number))])
        self._global.flush_caches()

    def _enqueue(self, record: ProducedRecord) -> bool:
        """Puts a record where it is read; returns whether anybody reads it."""
        source = self._topics.source(record.topic)
        if source is None:
            return False
        number = self._topics.partition_of(record.topic, source, record.key, record.partition)
        partition = TopicPartition(source, number)
        self._readers[partition].add(partition, [self._message(record, partition)])
        return True

    def _message(self, record: ProducedRecord, place: TopicPartition) -> RawMessage:
        """The record as a consumer gives it; ``place`` counts its offset, and is that of the pattern for a pattern."""
        time = self._clock.now_ms() if record.timestamp is None else record.timestamp
        offset = self._topics.next_offset(place)
        return RawMessage(record.topic, place.partition, offset, time, record.key, record.value, record.headers)

    def _run(self) -> None:
        """Processes until nothing is left that may be processed now, with a commit after each record."""
        self._capture()
        while ready := [task for task in self._tasks if task.is_ready()]:
            for task in ready:
                with self._transaction():
                    task.process(1)
                    self._commit(task)
                self._capture()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Under exactly-once, nobody ever sees what was sent before an error."""
        try:
            yield
        except BaseException:
            if self._config.exactly_once:
                self._producer.take()
            raise

    def _commit(self, task: Task) -> None:
        while not task.settle():
            self._finish(task)
        task.prepare_commit()
        self._collector.check()
        task.post_commit({})

    def _finish(self, task: Task) -> None:
        """Waits until nothing of a task is worked on elsewhere; all of it, so that the order of results is fixed."""
        while True:
            self._woken.clear()
            running = task.running
            if not running:
                return
            if not self._woken.wait(_PATIENCE_S):
                raise StreamsError(
                    f"{running} records of task {task.id} have been in flight for {_PATIENCE_S:g} s, and none has "
                    "finished; a function that waits for this thread never ends, give map_values_async a timeout",
                    task_id=task.id,
                )

    def _capture(self) -> None:
        """Notes what was sent, and queues what the topology itself reads."""
        for record in self._producer.take():
            self._produced.append(record)
            self._sent_to.add(record.topic)
            self._output.setdefault(record.topic, deque()).append(record)
            self._enqueue(record)
            self._feed_global_store(record)

    def _encoder(self, topic: str, serializer: object, part: str) -> Encoder:
        given = given_serde(cast("SerdeOrType[object] | None", serializer), is_key=part == "key")
        chosen: object = given if given is not None else self._default(topic, part).serializer
        return bind_serializer(getattr(chosen, "serializer", chosen), topic)

    def _decoder(self, topic: str, deserializer: object, part: str) -> Decoder:
        given = given_serde(cast("SerdeOrType[object] | None", deserializer), is_key=part == "key")
        chosen: object = given if given is not None else self._default(topic, part).deserializer
        return bind_deserializer(getattr(chosen, "deserializer", chosen), topic)

    def _default(self, topic: str, part: str) -> AnySerde:
        if self._config[f"default.{part}.serde"] is None:
            raise ConfigError(
                f"topic {topic!r} is given no {part} serde, and 'default.{part}.serde' is not set; give the types or "
                f"serdes of its keys and values, in this order: ({topic!r}, str, Order)"
            )
        serde: AnySerde = self._config.default_key_serde if part == "key" else self._config.default_value_serde
        return serde

    def _has(self, task: Task, partition: int) -> bool:
        return self._topics.partitions == 1 or task.id.partition == partition

    def _stores(self, name: str) -> list[object]:
        """The stores of that name, one a partition, in their order; none if there is none."""
        self._check_open()
        found = [task.stores[name].public_view for task in self._tasks if name in task.stores]
        return found or ([self._global_stores[name]] if name in self._global_stores else [])

    def _store(self, name: str, kind: type[object], shown: Callable[..., object] = as_it_is) -> S | None:
        """The store, of the class that the caller declares: ``type[S]`` would take no abstract class."""
        found = self._stores(name)
        for store in found:
            if not isinstance(store, kind):
                shown_by = next((method for one, method in _SHOWN_BY.items() if isinstance(store, one)), _ANY)
                raise ValueError(
                    f"store {name!r} is a {type(store).__name__}, no {kind.__name__}; {shown_by}({name!r}) shows it"
                )
        return cast("S", over_all([shown(store) for store in found])) if found else None


_ANY: Final = "get_state_store"
_SHOWN_BY: Final[Mapping[type[object], str]] = {
    WindowStore: "get_window_store",
    SessionStore: "get_session_store",
    VersionedKeyValueStore: "get_versioned_key_value_store",
    KeyValueStore: "get_key_value_store",
}
"""The method of the driver that shows stores of a kind."""


def _plain_values(store: KeyValueStore[K, V]) -> KeyValueStore[K, V]:
    if isinstance(store, TimestampedKeyValueStore | TimestampedKeyValueStoreWithHeaders):
        return PlainValues(store)
    return store


def _plain_windows(store: WindowStore[K, V]) -> WindowStore[K, V]:
    return (
        PlainWindows(store) if isinstance(store, TimestampedWindowStore | TimestampedWindowStoreWithHeaders) else store
    )


def _plain_sessions(store: SessionStore[K, V]) -> SessionStore[K, V]:
    return PlainSessions(store) if isinstance(store, SessionStoreWithHeaders) else store
