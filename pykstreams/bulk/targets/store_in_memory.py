"""A store in memory that keeps what it would have written to its changelog: so that operators and stores say themselves
how their changelogs look.

The store is the application's own, over an engine in memory and with a retention without end, as nothing may be too old
while keys are worked off one after the other; what is too old is dropped when the rows are restored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from pykstreams.bulk.application import StorePlace
from pykstreams.bulk.targets.target import RowError
from pykstreams.core.clock import SystemClock
from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import StreamsError
from pykstreams.core.ids import TaskId
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.processor import CurrentRecord
from pykstreams.core.record import RecordContext
from pykstreams.core.serialized_sink import SerializedSink
from pykstreams.core.types import Forward, Headers
from pykstreams.runtime.tasks.offset_metadata import ProcessorMetadata
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.state.interfaces.store import ChangelogRow, ChangelogWriter, TaskStore
from pykstreams.state.key_values.suppliers import InMemoryKeyValueSupplier
from pykstreams.state.sessions.suppliers import InMemorySessionSupplier, SessionBytesStoreSupplier
from pykstreams.state.spec import StoreBuilder
from pykstreams.state.windows.suppliers import InMemoryWindowSupplier, WindowBytesStoreSupplier

T = TypeVar("T")

_FOR_EVER: Final = 2**61
_ROWS_AT_MOST: Final = 20_000  # then the store is emptied: it only has to know the key being worked on


class StoreInMemory:
    """The store, and the changelog rows that it has written since somebody took them."""

    def __init__(self, place: StorePlace, task_id: TaskId) -> None:
        self._place = place
        self._logged: dict[bytes, ChangelogRow] = {}
        self._written = 0
        self.context = OfflineStoreContext(place, task_id, self._log)
        self.store: Any = _in_memory(place.builder).build()
        self.store.init(self.context, self.store)

    def at(self, timestamp: int, headers: Headers) -> None:
        """Says which record is being worked on."""
        self.context.current.raw = (None, timestamp, headers)

    def take(self) -> list[ChangelogRow]:
        """The last row of each key of the changelog, in the order of the keys, without those that delete."""
        return [row for row in self.take_all() if row[1] is not None]

    def take_all(self) -> list[ChangelogRow]:
        """The same, with those that delete: what they delete may come from another part of the source."""
        rows = [row for _, row in sorted(self._logged.items())]
        self._written += len(self._logged)
        self._logged.clear()
        if self._written > _ROWS_AT_MOST:
            self._written = 0
            self.store.close()
            self.store.init(self.context, self.store)
        return rows

    def _log(self, key: bytes, value: bytes | None, timestamp: int | None, headers: Headers) -> None:
        self._logged[key] = (key, value, 0 if timestamp is None else timestamp, headers)


class OfflineStoreContext:
    """The ``StoreContext`` of a store that is opened where no task runs."""

    def __init__(self, place: StorePlace, task_id: TaskId, log: ChangelogWriter) -> None:
        self._place, self._log = place, log
        self.config: StreamsConfig = place.application.config
        self.application_id: str = self.config.application_id
        self.task_id = task_id
        self.current = CurrentRecord(_no_record)
        self.current.raw = (None, 0, ())
        self.cache = RecordCache(0)
        self.metrics = StreamsMetrics()

    @property
    def state_dir(self) -> Path:
        raise StreamsError(f"store {self._place.name!r} is in memory, and has no folder")

    def changelog(self, store_name: str) -> ChangelogWriter:
        return self._log

    def count_late(self, store_name: str) -> None:
        """Nobody needs to be notified."""

    def changelog_topic(self, store_name: str) -> str:
        return self._place.serde_topic


class OfflineNode:
    """The ``OperatorContext`` of an operator where no task runs: it forwards to one callable, and a row that it cannot
    take is an error.

    :param drops: whether what a worker would drop is dropped, as a row that refers to nothing, or is an error.
    """

    failures_are_final = True
    gets_what_was_read = False
    one_record_at_a_time = False
    serialized_sink: SerializedSink | None = None

    def __init__(
        self,
        name: str,
        config: StreamsConfig,
        task_id: TaskId,
        stores: dict[str, object],
        forward: Forward | None = None,
        *,
        drops: bool = False,
    ) -> None:
        self.node = name
        self.processing: Any = _Processing(config, task_id)
        self.config = config
        self.current = CurrentRecord(_no_record)
        self.current.raw = (None, 0, ())
        self.forward: Forward = _nowhere if forward is None else forward
        self.children: dict[str, Forward] = {}
        self.metadata = ProcessorMetadata()
        self._stores = stores
        self._drops = drops
        self._shared: dict[str, Any] = {}

    def store(self, name: str) -> object:
        """A store that was handed in."""
        if name not in self._stores:
            raise StreamsError(f"operator {self.node} reads store {name!r}, which is not there while state is built")
        return self._stores[name]

    def fail(self, error: Exception, key: object, value: object, timestamp: int, headers: Headers) -> NoReturn:
        """Raises what went wrong."""
        raise RowError(f"operator {self.node} cannot take the row of key {key!r}: {error}") from error

    def drop(self, reason: str) -> None:
        """Drops the record, as a worker would do, or raises the reason."""
        if self._drops:
            return
        raise RowError(f"operator {self.node} drops a row: {reason}")

    def count_dropped(self) -> None:
        """Nobody needs to be notified."""

    def shared(self, name: str, make: Callable[[], T]) -> T:
        """The object that operators share under a name."""
        found: T = self._shared.setdefault(name, None) or make()
        self._shared[name] = found
        return found

    def partition_count(self, topic: str) -> int:
        """Not known here."""
        raise StreamsError(f"operator {self.node} asks for the partitions of {topic!r} while state is built")

    def default_partition(self, key: bytes, partitions: int) -> int:
        """Not known here."""
        raise StreamsError(f"operator {self.node} asks for a partition while state is built")

    def stream_time(self) -> int:
        """There is no stream time."""
        return -1

    def finishes_later(self, work: object) -> Callable[[], None]:
        """Nothing finishes later."""
        raise StreamsError(f"operator {self.node} forwards records later; it cannot be run while state is built")

    def limit_intake(self, room: Callable[[], int]) -> None:
        """Limits nothing: all that there is is read."""

    def watch_input(self) -> Callable[[], int | None]:
        """Is never idle."""
        return lambda: None

    def flush_caches(self) -> None:
        """Has none."""

    def on_init(self, callback: Callable[[], None]) -> None:
        """Runs it now, as everything is there."""
        callback()

    def on_close(self, callback: Callable[[], None]) -> None:
        """Nothing is closed."""


class _Processing:
    """The part of a processing context that operators of the DSL ask for."""

    def __init__(self, config: StreamsConfig, task_id: TaskId) -> None:
        self._config = config
        self.application_id: str = config.application_id
        self.task_id = task_id
        self.current_system_time_ms = SystemClock().now_ms

    @property
    def key_serde(self) -> object:
        return self._config.default_key_serde

    @property
    def value_serde(self) -> object:
        return self._config.default_value_serde


def _in_memory(builder: StoreBuilder[TaskStore]) -> StoreBuilder[TaskStore]:
    supplier = builder.supplier
    name = supplier.name
    if isinstance(supplier, WindowBytesStoreSupplier):
        size, duplicates = supplier.window_size_ms, supplier.retain_duplicates
        return _over(builder, InMemoryWindowSupplier(name, _FOR_EVER, size, duplicates))
    if isinstance(supplier, SessionBytesStoreSupplier):
        return _over(builder, InMemorySessionSupplier(name, _FOR_EVER))
    return _over(builder, InMemoryKeyValueSupplier(name))


def _over(builder: StoreBuilder[TaskStore], supplier: Any) -> StoreBuilder[TaskStore]:
    return replace(builder, supplier=supplier, caching=False, logging=True)


def _no_record(raw: Any) -> RecordContext:
    _, timestamp, headers = raw
    return RecordContext(None, -1, -1, timestamp, headers)


def _nowhere(key: object, value: object, timestamp: int, headers: Headers) -> None:
    """Results are not forwarded: they were, when the rows were new."""
