"""A store context in memory, and the stores of the tests: every kind, engine and combination of layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from pykstreams.core.config import StreamsConfig
from pykstreams.core.ids import TaskId
from pykstreams.core.metrics import StreamsMetrics
from pykstreams.core.processor import CurrentRecord
from pykstreams.core.types import Headers
from pykstreams.runtime.tasks.context import describe_record
from pykstreams.runtime.tasks.raw_message import RawMessage
from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.serdes.primitives import StringSerde
from pykstreams.state import Stores, ValueAndTimestamp, ValueTimestampHeaders
from pykstreams.state.interfaces.record_cache import RecordCache
from pykstreams.state.interfaces.store import ChangelogRow
from pykstreams.state.spec import StoreBuilder

NAME = "orders"
ROOMY = 1 << 20


@dataclass
class Context:
    """A ``StoreContext`` that keeps what is logged."""

    state_dir: Path
    settings: dict[str, object] = field(default_factory=dict)
    cache_bytes: int = ROOMY
    task_id: TaskId = field(default_factory=lambda: TaskId(0, 1))
    application_id: str = "shop"
    logged: list[tuple[bytes, bytes | None, int | None, Headers]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.config = StreamsConfig(self.settings)
        self.current = CurrentRecord(describe_record)
        self.cache = RecordCache(self.cache_bytes)
        self.metrics = StreamsMetrics()

    def of_another_task(self) -> Context:
        """The context of the task that stores are handed over to: only the record and the changelog are the same."""
        made = Context(self.state_dir, self.settings, self.cache_bytes, self.task_id, self.application_id, self.logged)
        made.current.raw = self.current.raw
        return made

    def changelog(self, store_name: str) -> Any:
        return lambda *row: self.logged.append(row)

    def changelog_rows(self) -> list[ChangelogRow]:
        """What was logged as it is read again; a broker gives a record without a time one."""
        return [(key, value, 0 if time is None else time, headers) for key, value, time, headers in self.logged]

    def count_late(self, store_name: str) -> None:
        self.metrics.counter("dropped-records-total", "stream-task-metrics", task_id=str(self.task_id)).add()

    def changelog_topic(self, store_name: str) -> str:
        return f"{self.application_id}-{store_name}-changelog"

    def record(self, timestamp: int = 0, *, topic: str = "in", offset: int = 0, headers: Headers = ()) -> None:
        """Makes a record the current one."""
        message = RawMessage(topic, 1, offset, timestamp, None, None, headers)
        self.current.raw = (message, timestamp, headers)


@dataclass(frozen=True)
class Kind:
    """A kind of store over an engine with or without cache and changelog."""

    store: str
    engine: str
    caching: bool
    logging: bool

    def __str__(self) -> str:
        layers = [name for name, on in (("cached", self.caching), ("logged", self.logging)) if on]
        return "-".join([self.store, self.engine, *layers])

    def builder(self, key_serde: Any = None, value_serde: Any = None) -> StoreBuilder[Any]:
        """The builder of such a store; keys are text and values JSON unless given."""
        persistent = {
            "plain": Stores.persistent_key_value_store,
            "timestamped": Stores.persistent_timestamped_key_value_store,
            "headers": Stores.persistent_timestamped_key_value_store_with_headers,
        }
        make: Any = {
            "plain": Stores.key_value_store_builder,
            "timestamped": Stores.timestamped_key_value_store_builder,
            "headers": Stores.timestamped_key_value_store_with_headers_builder,
        }[self.store]
        if self.engine == "rocksdb":
            supplier = persistent[self.store](NAME)
        elif self.engine == "memory":
            supplier = Stores.in_memory_key_value_store(NAME)
        else:
            supplier = Stores.lru_map(NAME, 1000)
        builder: StoreBuilder[Any] = make(
            supplier,
            key_serde or StringSerde(),
            value_serde or JsonSerde(),
            caching=self.caching,
            logging=self.logging,
        )
        return builder


KINDS = [
    Kind(*choice)
    for choice in product(
        ("plain", "timestamped", "headers"), ("rocksdb", "memory", "lru"), (False, True), (False, True)
    )
]


def opened(kind: Kind, context: Context) -> Any:
    """Builds and opens a store."""
    store = kind.builder().build()
    store.init(context)
    return store


def public_value(kind: Kind, value: Any, timestamp: int) -> Any:
    """What a user puts into a store of that kind."""
    if kind.store == "plain":
        return value
    if kind.store == "timestamped":
        return ValueAndTimestamp(value, timestamp)
    return ValueTimestampHeaders(value, timestamp, (("h", b"1"), ("n", None)))


@dataclass
class Flushed:
    """A flush listener that keeps what it is told, with the offset of the record that was current."""

    context: Context
    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def __call__(self, key: Any, change: tuple[Any, Any, bool], timestamp: int, headers: Headers) -> None:
        current = self.context.current.context
        assert current is not None
        assert (current.timestamp, current.headers) == (timestamp, headers)
        new, old, newest = change
        assert newest
        self.rows.append((key, new, old, timestamp, current.offset))


def rows(iterator: Iterator[Any]) -> list[tuple[Any, Any]]:
    """Reads an iterator to its end."""
    return [tuple(row) for row in iterator]
