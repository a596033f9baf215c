"""Stores that users write: what they derive from, what they are opened with, and how a task drives them.

A user's store is any class derived from ``StateStore``; a ``StoreSupplier`` makes it, and ``StoreBuilder(supplier)`` is
what ``add_state_store`` takes. ``UserStore`` stands between it and the task: processors get the user's object,
the task knows only ``TaskStore``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import InvalidStateStoreError, ProcessorStateError
from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.record import RecordMetadata
from pykstreams.core.types import CommitCallback, StateRestoreCallback
from pykstreams.state.encoding.changelog_rows import ChangelogColumns
from pykstreams.state.encoding.layout import NO_TIMESTAMP, PLAIN, TIMESTAMPED, WITH_HEADERS, Layout
from pykstreams.state.interfaces.position import Position, PositionBound
from pykstreams.state.interfaces.query_results import QueryConfig, QueryResult
from pykstreams.state.interfaces.store import ChangelogRow, ChangelogWriter, StoreContext, TaskStore

if TYPE_CHECKING:
    from pykstreams.state.interfaces.query import Query

R = TypeVar("R")


class StateStoreContext(Protocol):
    """The context that a user's store is opened with."""

    @property
    def application_id(self) -> str:
        """The application id."""
        ...

    @property
    def task_id(self) -> TaskId:
        """The task whose store it is."""
        ...

    @property
    def record_metadata(self) -> RecordMetadata | None:
        """Where the current record came from; ``None`` while there is none."""
        ...

    @property
    def key_serde(self) -> object:
        """The default key serde; ``ConfigError`` when none is set."""
        ...

    @property
    def value_serde(self) -> object:
        """The default value serde; ``ConfigError`` when none is set."""
        ...

    @property
    def state_dir(self) -> Path:
        """The folder of the task; a store on disk makes one of its own in it."""
        ...

    @property
    def metrics(self) -> StreamsMetrics:
        """The metrics registry."""
        ...

    @property
    def app_configs(self) -> Mapping[str, object]:
        """The whole configuration."""
        ...

    def app_configs_with_prefix(self, prefix: str) -> dict[str, object]:
        """The settings whose keys start with the prefix, without it."""
        ...

    def register(
        self,
        store: StateStore,
        restore_callback: StateRestoreCallback,
        commit_callback: CommitCallback | None = None,
    ) -> None:
        """Registers how the store is read back from its changelog; every store calls this once, in ``init``.

        :param store: the ``root`` that ``init`` was given.
        :param restore_callback: called with key and value of each record, or a ``BatchingStateRestoreCallback``.
        :param commit_callback: called after each commit.
        """
        ...

    def changelog(self, store_name: str) -> ChangelogWriter | None:
        """How a store writes to its changelog: a callable (key, value, timestamp in ms, headers), all positional.

        ``None`` for a store without changelog. Kafka Streams has this behind ``InternalProcessorContext.logChange``.
        """
        ...


class StateStore(ABC):
    """A store of one task, as users write and see them; all that come with the package are one.

    The order of its life: ``init``, restoring by the callback registered there, use, ``commit`` after each commit of
    the task, ``close``. What a store keeps in memory only is read back from its changelog at each start, and so is what
    a persistent store holds that does not give the offset it was committed with: such a store begins empty in ``init``.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the store, that of its supplier."""

    @property
    @abstractmethod
    def persistent(self) -> bool:
        """Whether its content outlives the process."""

    @property
    @abstractmethod
    def is_open(self) -> bool:
        """Whether it has been opened and not closed."""

    @abstractmethod
    def init(self, context: StateStoreContext, root: StateStore) -> None:
        """Opens it, and calls ``context.register(root, ...)``."""

    def commit(self, changelog_offsets: Mapping[TopicPartition, int]) -> None:  # noqa: B027 - most have nothing to do
        """Makes its content durable, in one step with the offsets it stands for; processors never call this.

        None are given to stores without a changelog, and to those that are not persistent.
        """

    def committed_offset(self, partition: TopicPartition) -> int | None:
        """The offset that ``commit`` was given last, also by a process before; ``None`` reads the changelog anew."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Closes it; closing again does nothing."""

    def query(self, query: Query[R], position_bound: PositionBound, config: QueryConfig) -> QueryResult[R]:
        """Answers an interactive query, between two batches of records; unless overridden, no query is known.

        What it gives is used by another thread, while the store goes on: give a copy, no part of the store.
        """
        return QueryResult.for_unknown_query_type(query, self)

    @property
    def position(self) -> Position:
        """Up to which input records it has come; a store that does not say so returns an empty one."""
        return Position()


# Every store of the package is one.
StateStore.register(TaskStore)  # type: ignore[type-abstract]  # abstract classes may be registered, too


class BatchingStateRestoreCallback(ABC):
    """Reads back many records at once."""

    @abstractmethod
    def restore_all(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Puts keys and values of the changelog, in its order; a value of ``None`` deletes."""

    def restore(self, key: bytes, value: bytes | None) -> None:
        """Puts one."""
        self.restore_all([(key, value)])

    __call__ = restore


class TimestampedBytesStore:
    """Marks a user's store that keeps serialized values behind their timestamps.

    What is read back from the changelog has the timestamp of its record (8 bytes, big-endian) in front.
    """

    @staticmethod
    def convert_to_timestamped_format(plain: bytes | None) -> bytes | None:
        """Puts "no timestamp" in front of a value."""
        return None if plain is None else TIMESTAMPED.pack(plain, NO_TIMESTAMP, ())


class HeadersBytesStore:
    """Marks a user's store that keeps serialized values behind headers and timestamps.

    What is read back from the changelog has size of headers (varint), headers and timestamp (8 bytes) in front.
    """

    @staticmethod
    def convert_to_header_format(value: bytes | None) -> bytes | None:
        """Puts "no headers" in front of a value that begins with its timestamp, or has none."""
        return None if value is None else b"\0" + value

    @staticmethod
    def convert_from_plain_to_header_format(value: bytes | None) -> bytes | None:
        """Puts "no headers" and "no timestamp" in front of a value."""
        return None if value is None else WITH_HEADERS.pack(value, NO_TIMESTAMP, ())


class HeadersBytesStoreSupplier:
    """Marks a user's supplier of stores for tables, windows or sessions: headers are kept in them."""


class UserStore(TaskStore):
    """A user's store as its task drives it."""

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._restore: StateRestoreCallback | None = None
        self._commit_callback: CommitCallback | None = None
        self._place: TopicPartition | None = None
        self._offset: int | None = None
        self._layout: Layout = PLAIN
        if isinstance(store, TimestampedBytesStore):
            self._layout = TIMESTAMPED
        if isinstance(store, HeadersBytesStore):
            self._layout = WITH_HEADERS

    @property
    def name(self) -> str:
        return self._store.name

    @property
    def persistent(self) -> bool:
        return self._store.persistent

    @property
    def is_open(self) -> bool:
        return self._store.is_open

    @property
    def public_view(self) -> StateStore:
        return self._store

    def init(self, context: StoreContext, root: TaskStore | None = None) -> None:
        self._place = TopicPartition(context.changelog_topic(self.name), context.task_id.partition)
        self._store.init(_Context(context, self._register), self._store)
        self._must_be_registered(context)

    def _must_be_registered(self, context: StoreContext) -> None:
        if self._restore is None:
            raise ProcessorStateError(
                f"store {self.name!r} of task {context.task_id} did not register itself; call "
                f"context.register(root, restore_callback) in init of {type(self._store).__name__}"
            )

    def restore(self, rows: Sequence[ChangelogRow]) -> None:
        restore = self._restore
        if restore is None:
            raise InvalidStateStoreError(f"store {self.name!r} cannot be restored before it is opened")
        packed = self._layout.restored(ChangelogColumns.of(rows))
        if isinstance(restore, BatchingStateRestoreCallback):
            restore.restore_all(list(packed))
            return
        for key, value in packed:
            restore(key, value)

    def flush_cache(self) -> None:
        """There is nothing to be flushed: what a user's store holds back it writes in ``commit``."""

    def commit(self, changelog_offset: int | None) -> None:
        if changelog_offset is not None:
            self._offset = changelog_offset
        offsets = {}
        if self._offset is not None and self._place is not None and self._store.persistent:
            offsets[self._place] = self._offset
        self._store.commit(offsets)
        if self._commit_callback is not None:
            self._commit_callback()

    def query(self, query: Query[R], position_bound: PositionBound, config: QueryConfig) -> QueryResult[R]:
        return self._store.query(query, position_bound, config)

    @property
    def position(self) -> Position:
        return self._store.position

    def committed_offset(self) -> int | None:
        if not self._store.persistent or self._place is None:
            return None
        self._offset = self._store.committed_offset(self._place)
        return self._offset

    def close(self) -> None:
        self._store.close()

    def _register(
        self, store: StateStore, restore_callback: StateRestoreCallback, commit_callback: CommitCallback | None
    ) -> None:
        if store is not self._store:
            raise ValueError(f"store {self.name!r} registered {store!r}; register the root that init was given")
        if self._restore is not None:
            raise ValueError(f"store {self.name!r} is registered already; call context.register once")
        if not callable(restore_callback):
            raise TypeError(
                f"restore callback of store {self.name!r} is {restore_callback!r}; expected a function of key and value"
            )
        self._restore, self._commit_callback = restore_callback, commit_callback


def check_name(store: StateStore, name: str) -> None:
    """Refuses a store of another name than its supplier's."""
    if store.name != name:
        raise ValueError(f"supplier of store {name!r} gave a store named {store.name!r}; give both one name")


class _Context:
    """The task as a user's store sees it."""

    __slots__ = ("_context", "_register")

    def __init__(
        self,
        context: StoreContext,
        register: Callable[[StateStore, StateRestoreCallback, CommitCallback | None], None],
    ) -> None:
        self._context = context
        self._register = register

    @property
    def application_id(self) -> str:
        return self._context.application_id

    @property
    def task_id(self) -> TaskId:
        return self._context.task_id

    @property
    def record_metadata(self) -> RecordMetadata | None:
        found = self._context.current.context
        return None if found is None else RecordMetadata(found.topic, found.partition, found.offset)

    @property
    def key_serde(self) -> object:
        return self._context.config.default_key_serde

    @property
    def value_serde(self) -> object:
        return self._context.config.default_value_serde

    @property
    def state_dir(self) -> Path:
        return self._context.state_dir

    @property
    def metrics(self) -> StreamsMetrics:
        return self._context.metrics

    @property
    def app_configs(self) -> StreamsConfig:
        return self._context.config

    def app_configs_with_prefix(self, prefix: str) -> dict[str, object]:
        return self._context.config.with_prefix(prefix)

    def register(
        self,
        store: StateStore,
        restore_callback: StateRestoreCallback,
        commit_callback: CommitCallback | None = None,
    ) -> None:
        self._register(store, restore_callback, commit_callback)

    def changelog(self, store_name: str) -> ChangelogWriter | None:
        return self._context.changelog(store_name)
