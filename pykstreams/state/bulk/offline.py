"""A store outside of a worker: what its ``StoreBuilder`` builds, with another database below and no changelog.

Over rows in memory it turns changelog rows into the rows of its engine, so that nobody else needs to know how a store
lays them out; over the folder of a task, a checkpoint or a bootstrap it is read without being changed.

Invariant: what ``drain`` gives, written in any order into an empty database, is what restoring the same changelog rows
into an empty store would leave there, rows that ``advance`` drops apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ProcessorStateError, StreamsError
from pykstreams.core.ids import TaskId
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.names import changelog_name
from pykstreams.core.processor import CurrentRecord
from pykstreams.core.record import RecordContext
from pykstreams.core.types import Headers
from pykstreams.state.bulk.typed_rows import StateRow, typed_rows
from pykstreams.state.engines.ordered import OrderedKeys
from pykstreams.state.engines.rocksdb import RocksDbEngine
from pykstreams.state.engines.transactional import DurableEngine, Range
from pykstreams.state.interfaces.engine import Row, Write
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.state.interfaces.store import ChangelogRow, ChangelogWriter, StoreContext
from pykstreams.state.spec import StoreBuilder

MakeEngine: TypeAlias = Callable[[str, int | None, str | None], DurableEngine]
"""(name of the store, width of its prefixes, form of its rows) -> its database."""


class OfflineStore:
    """A store that no worker has; a context manager.

    :param builder: what the topology makes the store from; its cache and changelog are left out.
    :param engine: makes the database below, ``KeptRows`` for instance.
    :param directory: the folder of the task, for a database on disk.
    :param topic: the changelog of the store, which serdes get as their topic.
    """

    def __init__(
        self,
        builder: StoreBuilder[Any],
        task_id: TaskId,
        config: StreamsConfig,
        engine: MakeEngine,
        *,
        directory: Path = Path(),
        topic: str | None = None,
    ) -> None:
        self.name = builder.name
        self._made: list[DurableEngine] = []
        self._builder = replace(builder, caching=False)
        self.context = _Context(task_id, config, engine, self._made, directory, topic)
        self.store: Any = self._builder.build()
        try:
            self.store.init(self.context)
        except BaseException:
            self.store.close()
            raise

    @classmethod
    def in_memory(
        cls, builder: StoreBuilder[Any], task_id: TaskId, config: StreamsConfig, *, topic: str | None = None
    ) -> OfflineStore:
        """Opens it over rows in memory: for ``restore`` and ``drain``."""
        return cls(builder, task_id, config, lambda name, prefix_bytes, form: KeptRows(), topic=topic)

    @classmethod
    def in_folder(
        cls,
        builder: StoreBuilder[Any],
        task_id: TaskId,
        config: StreamsConfig,
        directory: Path,
        *,
        topic: str | None = None,
    ) -> OfflineStore:
        """Opens what lies in the folder of a task, or in a checkpoint of it, only to read.

        A worker may have it open at the same time: what it has not written to disk yet is not seen.
        """
        if not (builder.build().persistent and (directory / "rocksdb" / builder.name).is_dir()):
            raise ProcessorStateError(
                f"there is no state of store {builder.name!r} in {str(directory)!r}: it is not kept on disk, or task "
                f"{task_id} was never here; name the folder of the task, "
                "<state.dir>/pykstreams/<application.id>/<task>",
                task_id=task_id,
            )
        return cls(builder, task_id, config, _read_only, directory=directory, topic=topic)

    @property
    def in_files(self) -> bool:
        """Whether its rows lie in the database below; if not, it is in memory, or a user's own."""
        return bool(self._made)

    @property
    def observed_time(self) -> int:
        """The highest time that was restored, -1 for stores that keep rows for ever."""
        return int(getattr(self.store, "observed_time", -1))

    def restore(self, rows: Sequence[ChangelogRow]) -> None:
        """Puts all changelog rows that there are of some keys, key after key, those of a key in order of time."""
        getattr(self.store, "restore_keys", self.store.restore)(rows)

    def drain(self) -> list[Row]:
        """Returns the rows of the database that were written since the last call, and forgets them.

        Call it between two keys: of each key only what was written last counts, and a deletion leaves nothing.
        """
        return [row for engine in self._made if isinstance(engine, KeptRows) for row in engine.drain()]

    def engine_rows(self) -> Iterator[Row]:
        """The rows of the database, in the order of their keys: what a bootstrap of the store consists of."""
        for engine in self._made:
            yield from engine.scan(None, None, False)

    def rows(self) -> Iterator[StateRow]:
        """Every row that can be read, with its objects."""
        return typed_rows(self.store, self._builder, self.context)

    def close(self) -> None:
        """Closes it."""
        self.store.close()

    def __enter__(self) -> OfflineStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class KeptRows:
    """A database in memory, which gives away what was written to it."""

    def __init__(self) -> None:
        self._rows: dict[bytes, bytes] = {}
        self._keys = OrderedKeys(self._rows)
        self.get = self._rows.get

    def open(self, context: StoreContext) -> None:
        """There is nothing to open."""

    def scan(self, lower: bytes | None, upper: bytes | None, reverse: bool) -> Iterator[Row]:
        rows = self._rows
        return iter([(key, rows[key]) for key in self._keys.between(lower, upper, reverse)])

    def load(self, rows: Iterable[Write]) -> None:
        kept = self._rows
        self._keys.clear()
        for key, packed in rows:
            if packed is None:
                kept.pop(key, None)
            else:
                kept[key] = packed

    def end_load(self) -> None:
        """Rows can be read at any time."""

    def write_batch(self, rows: Iterable[Write], offset: int | None, dropped: Iterable[Range] = ()) -> None:
        for lower, upper in dropped:
            for key in self._keys.between(lower, upper, False):
                del self._rows[key]
        self.load(rows)

    def committed_offset(self) -> int | None:
        return None

    def flushed_offset(self) -> int | None:
        return None

    def approximate_num_entries(self) -> int:
        return len(self._rows)

    def property_value(self, name: str) -> int | None:
        return None

    def statistics(self) -> str | None:
        return None

    def close(self) -> None:
        self.drain()

    def drain(self) -> list[Row]:
        """Returns the rows, and forgets them."""
        rows = list(self._rows.items())
        self._rows.clear()
        self._keys.clear()
        return rows


class _Context:
    """A ``StoreContext`` without a worker, which chooses the engine."""

    def __init__(
        self,
        task_id: TaskId,
        config: StreamsConfig,
        engine: MakeEngine,
        made: list[DurableEngine],
        directory: Path,
        topic: str | None,
    ) -> None:
        self.task_id = task_id
        self.state_dir = directory
        self.config = config
        self.current = CurrentRecord(_no_record)
        self.cache = RecordCache(0)
        self.metrics = StreamsMetrics()
        self._engine = engine
        self._made = made
        self._topic = topic

    @property
    def application_id(self) -> str:
        return self.config.application_id

    def changelog(self, store_name: str) -> ChangelogWriter | None:
        return None

    def count_late(self, store_name: str) -> None:
        """Nobody needs to be notified."""

    def changelog_topic(self, store_name: str) -> str:
        return self._topic or changelog_name(self.application_id, store_name)

    def durable_engine(self, name: str, prefix_bytes: int | None, form: str | None) -> DurableEngine:
        made = self._engine(name, prefix_bytes, form)
        self._made.append(made)
        return made


def _read_only(name: str, prefix_bytes: int | None, form: str | None) -> DurableEngine:
    return RocksDbEngine(name, prefix_bytes, form, read_only=True)


def _no_record(raw: tuple[Any, int, Headers]) -> RecordContext:
    raise StreamsError("a store that no worker has was asked for its record; there is none")
