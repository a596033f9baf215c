"""Every error that pykstreams raises.

The tree is Kafka Streams' with ``Exception`` read as ``Error``; the classes marked with ``*`` are ours::

    StreamsError                             something went wrong in the application
    ├── BootstrapError*                      state that was made in bulk is damaged, or does not fit
    ├── ConfigError*                         a setting is wrong: fix the settings
    ├── ClusterError*                        the cluster cannot be reached or refuses a request
    │   ├── ClusterUnavailableError*         it does not answer at the moment; the same request may succeed later
    │   └── DeliveryError*                   the brokers did not take a record
    ├── ProcessingError*                     user code raised: node, topic, partition and offset are attributes
    ├── ProcessorStateError                  a store could not be read or written
    │   └── StoreEngineError*                the database under a store failed: look at its files, or at the disk
    │       ├── DamagedStoreError*           its files are damaged, or some are missing
    │       └── DiskFullError*               there is no room for more on its disk
    ├── TaskCorruptedError                   local state is unusable; the runtime rebuilds it
    ├── TaskMigratedError                    the task belongs to another worker now
    ├── TaskAssignmentError                  tasks could not be shared out
    ├── TaskIdFormatError                    text that is no task id
    ├── LockError                            a state directory is in use elsewhere
    ├── MissingSourceTopicError              an input topic does not exist
    ├── MissingSinkTopicError*               an output topic does not exist
    ├── MissingInternalTopicsError           an internal topic was deleted under the application
    ├── MisconfiguredInternalTopicError      an internal topic has the wrong settings
    ├── InternalTopicsAlreadySetupError
    ├── UnknownTopologyError
    └── InvalidStateStoreError               a store cannot be queried right now
        ├── InvalidStateStorePartitionError
        ├── StreamsNotStartedError
        ├── StreamsRebalancingError
        ├── StreamsStoppedError
        ├── StateStoreMigratedError
        ├── StateStoreNotAvailableError
        └── UnknownStateStoreError
    SerializationError                       bytes and value do not fit
    └── SerdeError*                          the same, with topic, partition, offset and serde
        └── WrongTypeError*                  a value of another type than the serializer takes; a StreamsError, too
    TopologyError                            the topology script is wrong: fix the script

The facts are attributes; the text is for people and no interface.
"""

from __future__ import annotations

from collections.abc import Iterable

from pykstreams.core.task_id import StreamsError as StreamsError
from pykstreams.core.task_id import TaskId
from pykstreams.core.task_id import TaskIdFormatError as TaskIdFormatError


class TopologyError(StreamsError):
    """The topology script is wrong."""

    def __init__(self, message: str) -> None:
        super().__init__(f"Invalid topology: {message}")


class BootstrapError(StreamsError):
    """A bootstrap is incomplete or damaged, or is none of this application as it is now."""


class ConfigError(StreamsError):
    """A setting is unknown, has a wrong value or is missing."""


class ClusterError(StreamsError):
    """The cluster cannot be reached, or refuses what the application needs."""


class ClusterUnavailableError(ClusterError):
    """The cluster does not answer at the moment; the same request may succeed later."""


class DeliveryError(ClusterError):
    """The brokers did not take a record; ``name`` is what the client calls it, such as ``MSG_SIZE_TOO_LARGE``."""

    def __init__(
        self,
        message: str,
        *,
        name: str,
        retriable: bool = False,
        fatal: bool = False,
        task_id: TaskId | None = None,
    ) -> None:
        super().__init__(message, task_id=task_id)
        self.name = name
        self.retriable = retriable
        self.fatal = fatal


class ProcessingError(StreamsError):
    """User code raised while a record was processed, and the handler decided to fail."""

    def __init__(
        self,
        message: str,
        *,
        node: str | None = None,
        topic: str | None = None,
        partition: int = -1,
        offset: int = -1,
        task_id: TaskId | None = None,
    ) -> None:
        super().__init__(message, task_id=task_id)
        self.node = node
        self.topic = topic
        self.partition = partition
        self.offset = offset


class ProcessorStateError(StreamsError):
    """A state store could not be read, written or restored."""


class StoreEngineError(ProcessorStateError):
    """The database under a store failed: its files are damaged, the disk is full, or a right is missing.

    No exception handler is asked about it, for no record is to blame. A worker closes the task and opens it again
    later; its other tasks go on.
    """


class DamagedStoreError(StoreEngineError):
    """The files of a store are damaged, or some of them are missing.

    A worker sets a store that has a changelog aside, and restores it; one without a changelog is left as it is.
    """

    def __init__(self, message: str, *, store: str, task_id: TaskId | None = None) -> None:
        super().__init__(message, task_id=task_id)
        self.store = store


class DiskFullError(StoreEngineError):
    """There is no room for more on the disk of a store, whose folder is ``folder``; a worker waits for it."""

    def __init__(self, message: str, *, folder: str, task_id: TaskId | None = None) -> None:
        super().__init__(message, task_id=task_id)
        self.folder = folder


class TaskCorruptedError(StreamsError):
    """The local state of tasks cannot be trusted; the runtime rebuilds it from the changelogs."""

    def __init__(self, corrupted_tasks: Iterable[TaskId]) -> None:
        self.corrupted_tasks = frozenset(corrupted_tasks)
        names = ", ".join(sorted(map(str, self.corrupted_tasks)))
        super().__init__(f"the state of tasks {names} holds what was not committed, and is rebuilt from its changelogs")


class TaskMigratedError(StreamsError):
    """The task was given to another worker while this one still worked on it."""


class TaskAssignmentError(StreamsError):
    """Tasks could not be shared out among the workers."""


class LockError(StreamsError):
    """A state directory is locked by another worker."""


class MissingSourceTopicError(StreamsError):
    """An input topic does not exist."""


class MissingSinkTopicError(StreamsError):
    """An output topic does not exist: of a sink, or of dead letters."""


class MissingInternalTopicsError(StreamsError):
    """Internal topics that the application once made are gone."""

    def __init__(self, message: str, topics: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.topics = list(topics)


class MisconfiguredInternalTopicError(StreamsError):
    """An internal topic exists with settings or partitions that do not fit."""


class InternalTopicsAlreadySetupError(StreamsError):
    """Internal topics were to be created, and exist already."""


class UnknownTopologyError(StreamsError):
    """A topology was named that does not exist."""


class InvalidStateStoreError(StreamsError):
    """A store cannot be queried right now."""


class InvalidStateStorePartitionError(InvalidStateStoreError):
    """The partition that was asked for is not on this worker."""


class StateStoreMigratedError(InvalidStateStoreError):
    """The store has moved to another worker; look up where, and ask there."""


class StateStoreNotAvailableError(InvalidStateStoreError):
    """The store exists, but is not open."""


class StreamsNotStartedError(InvalidStateStoreError):
    """The application was asked for something before it was started."""


class StreamsRebalancingError(InvalidStateStoreError):
    """The application was asked for something while tasks move between workers."""


class StreamsStoppedError(InvalidStateStoreError):
    """The application was asked for something after it stopped."""


class UnknownStateStoreError(InvalidStateStoreError):
    """No store has that name."""


class SerializationError(Exception):
    """A value cannot be turned into bytes, or bytes into a value."""


class SerdeError(SerializationError):
    """A record's key or value could not be read or written; says which record, and shows the first bytes.

    ``row_key`` is the key of the row, where it was read from a store by its key.
    """

    def __init__(
        self,
        message: str,
        *,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
        serde: str | None = None,
    ) -> None:
        super().__init__(message)
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.serde = serde
        self.row_key: object = None


class WrongTypeError(SerdeError, StreamsError):
    """A serializer was given a value of another type than it takes: the serde of a step is the wrong one.

    Kafka Streams makes a ``StreamsException`` of the ``ClassCastException``, in stores (``StateSerdes.rawKey``,
    4.3.1) as in sinks (``RecordCollectorImpl.send``); a sink does not ask the production exception handler about it.
    """
