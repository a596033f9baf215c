"""The Processor API, and the two protocols through which the DSL, the operators and the runtime meet.

``OperatorSupplier`` is what an operator looks like from outside: a frozen value that builds, once per task, a plain
callable with its children already bound. ``OperatorContext`` is what the runtime gives it while it builds. Everything
that can be decided once is decided in ``build``; the callable it returns is all that runs per record.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeAlias, TypeVar

from pykstreams.core.ids import TaskId
from pykstreams.core.in_flight import FinishesLater
from pykstreams.core.record import FixedKeyRecord, Record, RecordContext, RecordMetadata
from pykstreams.core.serialized_sink import SerializedSink
from pykstreams.core.types import Duration, Forward, Headers, Punctuator, Timestamp
from pykstreams.core.user_code.tells_where import TellsWhere

if TYPE_CHECKING:
    from pykstreams.core.config import StreamsConfig
    from pykstreams.core.metrics import StreamsMetrics

T = TypeVar("T")
KIn = TypeVar("KIn")
VIn = TypeVar("VIn")
KOut = TypeVar("KOut")
VOut = TypeVar("VOut")


class PunctuationType(Enum):
    """Which clock a punctuator follows."""

    STREAM_TIME = "stream_time"
    WALL_CLOCK_TIME = "wall_clock_time"


class Cancellable(Protocol):
    """A schedule that can be stopped."""

    def cancel(self) -> None:
        """Stops it; what was cancelled before may be cancelled again."""
        ...


class ProcessingContext(ABC):
    """The part of the runtime that user code may use (Kafka Streams: ``ProcessingContext``)."""

    @property
    @abstractmethod
    def application_id(self) -> str:
        """The application id."""

    @property
    @abstractmethod
    def task_id(self) -> TaskId:
        """The task that this processor is part of."""

    @property
    @abstractmethod
    def record_metadata(self) -> RecordMetadata | None:
        """Where the current record came from; the topic is ``None`` in ``init`` and in punctuators."""

    @property
    @abstractmethod
    def key_serde(self) -> Any:
        """The default key serde; ``ConfigError`` when none is set."""

    @property
    @abstractmethod
    def value_serde(self) -> Any:
        """The default value serde; ``ConfigError`` when none is set."""

    @property
    @abstractmethod
    def state_dir(self) -> Path:
        """The folder of this task's state."""

    @property
    @abstractmethod
    def metrics(self) -> StreamsMetrics:
        """The metrics registry."""

    @abstractmethod
    def get_state_store(self, name: str) -> Any:
        """Returns a connected store; ``StreamsError`` for one that is not connected to this processor."""

    @abstractmethod
    def schedule(
        self,
        interval: Duration,
        punctuation_type: PunctuationType,
        callback: Punctuator,
        *,
        start_time: Timestamp | None = None,
    ) -> Cancellable:
        """Calls ``callback(time in ms)`` every ``interval`` of stream time or wall-clock time (at least 1 ms)."""

    @abstractmethod
    def commit(self) -> None:
        """Asks for a commit soon."""

    @property
    @abstractmethod
    def app_configs(self) -> Mapping[str, object]:
        """The whole configuration."""

    @abstractmethod
    def app_configs_with_prefix(self, prefix: str) -> dict[str, object]:
        """The settings whose keys start with the prefix, without it."""

    @abstractmethod
    def current_system_time_ms(self) -> int:
        """Wall-clock time in ms."""

    @abstractmethod
    def current_stream_time_ms(self) -> int:
        """Stream time of the task in ms, -1 before the first record."""


class ProcessorContext(ProcessingContext, Generic[KOut, VOut]):
    """The context of a ``Processor``."""

    @abstractmethod
    def forward(self, record: Record[KOut, VOut], child_name: str | None = None) -> None:
        """Forwards a record to all children in order, or to the one named."""


class FixedKeyProcessorContext(ProcessingContext, Generic[KOut, VOut]):
    """The context of a ``FixedKeyProcessor``."""

    @abstractmethod
    def forward(self, record: FixedKeyRecord[KOut, VOut], child_name: str | None = None) -> None:
        """Forwards a record to all children in order, or to the one named.

        Only a record that the processor got, now or earlier, or what ``replace`` made of one: others are refused with a
        ``StreamsError``.
        """


KEPT_IN_INIT: Final = {"context": "it is there after init: an init of your own begins with super().init(context)"}
"""The cure in the error of a processor that is asked for its context before it has one."""


class Processor(TellsWhere, ABC, Generic[KIn, VIn, KOut, VOut]):
    """A user's operator: one object per task; ``self.context`` is there after ``init``."""

    _elsewhere = KEPT_IN_INIT

    context: ProcessorContext[KOut, VOut]

    def init(self, context: ProcessorContext[KOut, VOut]) -> None:
        """Called once, before the first record; keeps the context."""
        self.context = context

    @abstractmethod
    def process(self, record: Record[KIn, VIn]) -> None:
        """Called for each record."""

    def close(self) -> None:
        """Called once at the end."""


class FixedKeyProcessor(TellsWhere, ABC, Generic[KIn, VIn, VOut]):
    """A user's operator that cannot change keys, so that no repartitioning is needed behind it."""

    _elsewhere = KEPT_IN_INIT

    context: FixedKeyProcessorContext[KIn, VOut]

    def init(self, context: FixedKeyProcessorContext[KIn, VOut]) -> None:
        """Called once, before the first record; keeps the context."""
        self.context = context

    @abstractmethod
    def process(self, record: FixedKeyRecord[KIn, VIn]) -> None:
        """Called for each record."""

    def close(self) -> None:
        """Called once at the end."""


ContextualProcessor = Processor
ContextualFixedKeyProcessor = FixedKeyProcessor

ProcessorSupplier: TypeAlias = Callable[[], Processor[KIn, VIn, KOut, VOut]]
FixedKeyProcessorSupplier: TypeAlias = Callable[[], FixedKeyProcessor[KIn, VIn, VOut]]


AnyProcessor: TypeAlias = Processor[Any, Any, Any, Any]
"""A processor of which only the user knows the types, as a topology runs many side by side."""

AnyProcessorSupplier: TypeAlias = Callable[[], AnyProcessor]
"""The supplier of such a processor."""

AnyFixedKeyProcessorSupplier: TypeAlias = Callable[[], FixedKeyProcessor[Any, Any, Any]]
"""The supplier of a processor that cannot change keys."""


class CurrentRecord:
    """The input record that a task works on, in one slot that is written once per record.

    ``raw`` is a tuple (message, timestamp in ms, headers), ``None`` while no record is current; ``context`` makes the
    readable form of it when somebody asks. Time and headers are those that travel with what is forwarded, so they can
    differ from the message's. Caches keep what it says beside a dirty entry and put it back while they forward the
    entry; the message itself only with ``keeps_messages``, where an exception handler or an operator may ask for its
    key and value.

    ``replayed`` says that what is read may have been processed before, by a worker that died before it committed:
    state may be ahead of what was sent. A change that seems to change nothing is forwarded then.
    """

    __slots__ = ("_describe", "keeps_messages", "raw", "replayed")

    def __init__(self, describe: Callable[[Any], RecordContext]) -> None:
        self.raw: tuple[Any, int, Headers] | None = None
        self.replayed = False
        self.keeps_messages = False
        self._describe = describe

    @property
    def context(self) -> RecordContext | None:
        return None if self.raw is None else self._describe(self.raw)

    def following(self, forward: Forward) -> Forward:
        """Wraps ``forward`` for an operator that changes times or headers: below it the current record has them, too.

        Stores below take the time of a deletion from there (``ProcessorContextImpl.forward``, 4.3.1).
        """

        def forward_with_context(key: object, value: object, timestamp: int, headers: Headers) -> None:
            raw = self.raw
            if raw is None or (raw[1] == timestamp and raw[2] is headers):
                forward(key, value, timestamp, headers)
                return
            self.raw = (raw[0], timestamp, headers)
            try:
                forward(key, value, timestamp, headers)
            finally:
                self.raw = raw

        return forward_with_context

    def scoped(self, forward: Forward) -> Forward:
        """Wraps ``forward`` with a ``raw`` of its own for all that lies below it, so that ``let_go`` ends there."""

        def forward_in_scope(key: object, value: object, timestamp: int, headers: Headers) -> None:
            raw = self.raw
            self.raw = None if raw is None else (raw[0], timestamp, headers)
            try:
                forward(key, value, timestamp, headers)
            finally:
                self.raw = raw

        return forward_in_scope

    def let_go(self) -> None:
        """Forgets the raw key and value (``RecordCollectorImpl.freeRawInputRecordFromContext``, 4.3.1)."""
        raw = self.raw
        if raw is not None and raw[0] is not None:
            self.raw = (_Sent(raw[0]), raw[1], raw[2])


class _Sent:
    """A message without its key and value."""

    __slots__ = ("offset", "partition", "topic")

    def __init__(self, message: Any) -> None:
        self.topic, self.partition, self.offset = message.topic, message.partition, message.offset

    def key(self) -> None:
        return None

    def value(self) -> None:
        return None


class CommittedNumbers(Protocol):
    """Numbers of a task that are committed beside its offsets and are there again after a restart."""

    def get(self, key: str) -> int | None:
        """Returns a number, ``None`` if nobody has put it; those of the last commit are there from ``on_init`` on."""
        ...

    def put(self, key: str, value: int) -> None:
        """Keeps a number; the next commit includes it."""
        ...


class OperatorContext(Protocol):
    """The context of an operator while its position in a task is compiled. One per node and task."""

    @property
    def node(self) -> str:
        """The name of the node."""
        ...

    @property
    def processing(self) -> ProcessingContext:
        """The context of user code at this node."""
        ...

    @property
    def config(self) -> StreamsConfig:
        """The configuration."""
        ...

    @property
    def current(self) -> CurrentRecord:
        """The slot of the record being processed."""
        ...

    @property
    def forward(self) -> Forward:
        """All children, in order, as one callable (a single child is that child itself)."""
        ...

    @property
    def children(self) -> Mapping[str, Forward]:
        """The children by node name, in order."""
        ...

    @property
    def serialized_sink(self) -> SerializedSink | None:
        """The sink that is all there is below, where nothing on the way there would look at a record; see
        ``forwards_new_values``.
        """
        ...

    @property
    def gets_what_was_read(self) -> bool:
        """Whether the operator gets each record just as a source has read it, with its message as the current one."""
        ...

    @property
    def failures_are_final(self) -> bool:
        """Whether an exception of this node always ends the task, so that nobody sees what it left half done."""
        ...

    @property
    def one_record_at_a_time(self) -> bool:
        """Whether each input record is worked off, through all topics, before the next one comes: in a test driver."""
        ...

    @property
    def metadata(self) -> CommittedNumbers:
        """Numbers that outlive a restart, by names that are unique in the task, such as those of stores."""
        ...

    def store(self, name: str) -> object:
        """The open store of that name; ``pykstreams.processors.stores`` gives it the type of its kind."""
        ...

    def fail(self, error: Exception, key: object, value: object, timestamp: int, headers: Headers) -> None:
        """Hands an exception of this node to the processing exception handler, with the record this node got.

        Returns when the handler says to go on (the record is dropped here); raises ``ProcessingError`` when it says
        to fail. Errors that a node further down has reported already pass through unchanged.
        """
        ...

    def drop(self, reason: str) -> None:
        """Counts a dropped record (``dropped-records``) and warns, rate-limited, with the record's position."""
        ...

    def count_dropped(self) -> None:
        """Counts a dropped record without a warning, since it is part of normal work."""
        ...

    def shared(self, name: str, make: Callable[[], T]) -> T:
        """The object that operators of one task share in memory under a name; the first of them to ask makes it."""
        ...

    def partition_count(self, topic: str) -> int:
        """The number of partitions of a topic, by its full name; ``StreamsError`` when it does not exist."""
        ...

    def default_partition(self, key: bytes, partitions: int) -> int:
        """The partition that the default partitioner chooses for a key, of so many."""
        ...

    def stream_time(self) -> int:
        """Stream time of the task in ms, -1 before the first record."""
        ...

    def finishes_later(self, work: FinishesLater) -> Callable[[], None]:
        """Announces, while it is built, an operator that forwards records later.

        Returns what to call, from any thread, whenever something has finished, so that it is forwarded soon.
        """
        ...

    def limit_intake(self, room: Callable[[], int]) -> None:
        """Has the task take no more records than ``room()`` says, none if that is not positive; while it is built.

        Records that come all the same, from a cache or a ``flat_map`` above, are to be kept.
        """
        ...

    def watch_input(self) -> Callable[[], int | None]:
        """Has the task note when input comes; while it is built.

        Returns what gives the wall-clock time in ms since when nothing has come to any input partition of the task;
        ``None`` while records wait, or may wait on the brokers.
        """
        ...

    def flush_caches(self) -> None:
        """Forwards what the caches of the task hold back; not while a record is processed."""
        ...

    def on_init(self, callback: Callable[[], None]) -> None:
        """Runs the callback when every node is built, in topological order."""
        ...

    def on_close(self, callback: Callable[[], None]) -> None:
        """Runs the callback when the task closes."""
        ...


class OperatorSupplier(Protocol):
    """A frozen description of an operator that can be built once per task; see ``forwards_input``, too."""

    def build(self, context: OperatorContext) -> Forward:
        """Makes the callable for one position in one task: (key, value, timestamp, headers), all positional."""
        ...


def forwards_input(operator: object) -> bool:
    """Returns whether an operator forwards the very record it got, by its ``forwards_input``; most make new ones.

    What a sink below has sent is sent for the whole record, so that its raw key and value are gone (``let_go``) for
    other children above, too (``ProcessorContextImpl.forward``, 4.3.1, which keeps the context of such a record). Those
    that cannot change keys, as filters, make new ones there.
    """
    return bool(getattr(operator, "forwards_input", False))


def forwards_new_values(operator: object) -> bool:
    """Returns whether an operator forwards the new value of each change as it is, by its ``forwards_new_values``."""
    return bool(getattr(operator, "forwards_new_values", False))
