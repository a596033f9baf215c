"""Versioned stores that users write: tables lie in them, and they are read back by the puts of their changelog."""

from __future__ import annotations

import struct
from bisect import bisect_right
from pathlib import Path
from typing import Any

import pytest

from pykstreams import Consumed, Materialized, Produced, Serdes, StreamsBuilder
from pykstreams.core.errors import InvalidStateStoreError
from pykstreams.core.ids import TopicPartition
from pykstreams.state import (
    PUT_RETURN_CODE_VALID_TO_UNDEFINED,
    HeadersBytesStoreSupplier,
    KeyValueBytesStoreSupplier,
    StateStore,
    StateStoreContext,
    Stores,
    VersionedBytesStore,
    VersionedBytesStoreSupplier,
    VersionedRecord,
)
from pykstreams.testing import TopologyTestDriver
from tests.unit.state.support import NAME, Context

TEXT = Serdes.string()


class Versions(VersionedBytesStore):
    """Keeps every version for ever, in memory."""

    name = NAME
    persistent = False
    is_open = False

    def init(self, context: StateStoreContext, root: StateStore) -> None:
        self.versions: dict[bytes, list[tuple[int, bytes | None]]] = {}
        self.commits: list[Any] = []
        self.is_open = True

    def put(self, key: bytes, value: bytes | None, timestamp: int) -> int:
        rows = [row for row in self.versions.get(key, []) if row[0] != timestamp]
        at = bisect_right(rows, timestamp, key=lambda row: row[0])
        self.versions[key] = [*rows[:at], (timestamp, value), *rows[at:]]
        return rows[at][0] if at < len(rows) else PUT_RETURN_CODE_VALID_TO_UNDEFINED

    def get(self, key: bytes, as_of: int | None = None) -> bytes | None:
        rows = self.versions.get(key, [])
        at = len(rows) if as_of is None else bisect_right(rows, as_of, key=lambda row: row[0])
        if not at:
            return None
        since, value = rows[at - 1]
        return None if value is None else struct.pack(">q", since) + value

    def delete(self, key: bytes, timestamp: int) -> bytes | None:
        valid = self.get(key, timestamp)
        self.put(key, None, timestamp)
        return valid

    def commit(self, changelog_offsets: Any) -> None:
        self.commits.append(changelog_offsets)

    def close(self) -> None:
        self.is_open = False


class Durable(Versions):
    """Says that it outlives the process."""

    persistent = True

    def committed_offset(self, partition: TopicPartition) -> int | None:
        return 7


class VersionsSupplier(VersionedBytesStoreSupplier):
    name = NAME
    metrics_scope = "mine"
    history_retention_ms = 1000

    def __init__(self, kind: Any = Versions) -> None:
        self.kind = kind

    def get(self) -> Any:
        return self.kind()


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(tmp_path)


def opened(context: Context, kind: Any = Versions) -> Any:
    store = Stores.versioned_key_value_store_builder(VersionsSupplier(kind), TEXT, TEXT).build()
    store.init(context)
    return store


def test_it_is_not_given_to_another_task_open(context: Context) -> None:
    store = opened(context)

    assert not store.can_be_released
    store.close()


def test_it_is_put_into_deleted_from_and_read_as_of_a_time(context: Context) -> None:
    store = opened(context)

    assert [store.put("a", value, time) for value, time in (("x", 10), ("z", 30), ("y", 20))] == [-1, -1, 30]
    assert (store.get("a"), store.get("a", 25), store.get("a", 9)) == (
        VersionedRecord("z", 30),
        VersionedRecord("y", 20),
        None,
    )
    assert store.delete("a", 25) == VersionedRecord("y", 20)
    assert (store.get_row("a"), store.get_row_as_of("a", 26)) == (("z", 30), None)
    assert [store.put_row("a", "w", time) for time in (5, 40)] == [False, True]
    assert not store.put_with_result("a", "v", 39).is_latest


def test_what_its_changelog_has_is_put_again(context: Context, tmp_path: Path) -> None:
    store = opened(context)
    store.put("a", "x", 20)
    store.put("a", "w", 10)
    store.delete("a", 30)
    logged = [(b"a", b"x", 20, ()), (b"a", b"w", 10, ()), (b"a", None, 30, ())]
    other = opened(Context(tmp_path / "other"))
    other.restore(context.logged)
    other.end_restore()

    assert context.logged == logged
    assert [other.get("a", time) for time in (15, 25, 35)] == [VersionedRecord("w", 10), VersionedRecord("x", 20), None]


def test_it_is_committed_with_its_offset_and_closed(context: Context) -> None:
    store = opened(context, Durable)
    user = store._history._store
    place = TopicPartition("shop-orders-changelog", 1)

    assert (store.persistent, store.committed_offset()) == (True, 7)
    store.commit(9)
    assert user.commits == [{place: 9}]
    store.close()
    assert (user.is_open, store.is_open) == (False, False)
    with pytest.raises(InvalidStateStoreError, match="store 'orders' is not open"):
        store.get("a")


def test_several_versions_at_once_are_refused(context: Context) -> None:
    store = opened(context)

    reads = [
        lambda: store.get("a", 1, 2),
        lambda: store.get_timeline("a", 1, 2),
        lambda: store.get_end("a", 1),
        lambda: store.restore_keys([]),
        store.oldest_time,
        store.raw_rows,
    ]
    for read in reads:
        with pytest.raises(InvalidStateStoreError, match="store 'orders' is a Versions, a versioned store of your own"):
            read()


def test_how_many_keys_it_has_is_not_known(context: Context) -> None:
    opened(context)

    assert [float(one.value) for name, one in context.metrics.metrics().items() if name.name == "num-keys"] == [-1]


def test_a_stream_finds_the_row_of_its_time_in_it() -> None:
    builder = StreamsBuilder()
    consumed = Consumed(key_serde=TEXT, value_serde=TEXT)
    table = builder.table("T", consumed, materialized=Materialized(VersionsSupplier()))
    joined = builder.stream("S", consumed).join(table, lambda left, right: left + right)
    joined.to("out", Produced(key_serde=TEXT, value_serde=TEXT))
    with TopologyTestDriver(builder.build()) as driver:
        rows = driver.create_input_topic("T", TEXT.serializer, TEXT.serializer)
        for value, time in (("x", 10), ("y", 20)):
            rows.pipe_input("k", value, time)
        driver.create_input_topic("S", TEXT.serializer, TEXT.serializer).pipe_input("k", "s", 15)
        store = driver.get_versioned_key_value_store(NAME)
        results = driver.create_output_topic("out", TEXT.deserializer, TEXT.deserializer).read_values()

        assert store is not None
        assert store.get("k", 15) == VersionedRecord("x", 10)
        assert results == ["sx"]


def test_a_supplier_of_something_else_is_refused(context: Context) -> None:
    class Plain(StateStore):
        name = NAME
        persistent = is_open = False

        def init(self, context: StateStoreContext, root: StateStore) -> None: ...
        def close(self) -> None: ...

    class Renamed(Versions):
        name = "other"

    with pytest.raises(TypeError, match="expected an object of a class derived from VersionedBytesStore"):
        opened(context, Plain)
    with pytest.raises(ValueError, match="supplier of store 'orders' gave a store named 'other'; give both one name"):
        opened(context, Renamed)


def test_a_table_over_a_supplier_marked_so_keeps_headers() -> None:
    class Kept(KeyValueBytesStoreSupplier, HeadersBytesStoreSupplier):
        name = "t"
        metrics_scope = "mine"

        def get(self) -> Any:
            return Stores.in_memory_key_value_store("t").get()

    builder = StreamsBuilder()
    builder.table("T", Consumed(key_serde=TEXT, value_serde=TEXT), materialized=Materialized(Kept()))
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("T", TEXT.serializer, TEXT.serializer).pipe_input("k", "v", 1)
        store = driver.get_timestamped_key_value_store_with_headers("t")

        assert store is not None
        assert store["k"] == ("v", 1, ())
