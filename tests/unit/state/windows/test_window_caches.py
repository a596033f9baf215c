"""Caches of window stores: which entries a read uses and when, so that a full cache drops what Kafka Streams drops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.errors import SerializationError
from pykstreams.core.windows import EmitStrategy
from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.serdes.primitives import StringSerde
from pykstreams.state import BuiltInDslStoreSuppliers, DslStoreFormat, DslWindowParams, Stores
from pykstreams.state.layers import caching
from tests.unit.state.support import NAME, Context

RETENTION = 200_000  # segments of 100 000 ms
SIZE = 10
END = 2**63 - 1

NODE = 24 + 1
CONTEXT = 8 + 8 + 4

ENGINES = ["rocksdb", "memory", "by-time", "by-time-indexed"]
READS_AS_A_WHOLE = ["rocksdb", "memory"]


@pytest.fixture
def context(tmp_path: Path) -> Context:
    made = Context(tmp_path)
    made.record(5)
    return made


def opened(context: Context, engine: str, form: DslStoreFormat = DslStoreFormat.TIMESTAMPED) -> Any:
    """Opens a cached window store of timestamps."""
    if engine == "memory":
        supplier: Any = Stores.in_memory_window_store(NAME, RETENTION, SIZE, False)
    else:
        strategy = EmitStrategy.ON_WINDOW_UPDATE if engine == "rocksdb" else EmitStrategy.ON_WINDOW_CLOSE
        sliding = engine == "by-time-indexed"
        supplier = BuiltInDslStoreSuppliers.ROCKS_DB.window_store(
            DslWindowParams(NAME, RETENTION, SIZE, False, strategy, sliding, form)
        )
    make: Any = Stores.timestamped_window_store_builder
    if form is DslStoreFormat.HEADERS:
        make = Stores.timestamped_window_store_with_headers_builder
    store = make(supplier, StringSerde(), JsonSerde(), caching=True).build()
    store.init(context)
    return store


def put(store: Any, *rows: tuple[str, int]) -> None:
    for key, start in rows:
        store.put_row(key, start, [1], 7)


def logged(context: Context) -> list[tuple[str, int]]:
    """Key and start of what the store has written."""
    return [(key[:-12].decode(), int.from_bytes(key[-12:-4], "big")) for key, *_ in context.logged]


def used_longest_ago(store: Any, context: Context) -> tuple[str, int]:
    """Which row a full cache drops first."""
    context.cache.max_bytes = context.cache.size_bytes
    put(store, ("zz", 99))
    return logged(context)[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_counts_as_used_when_it_is_read_and_not_before(engine: str, context: Context) -> None:
    store = opened(context, engine)
    put(store, ("a", 1), ("a", 2), ("a", 3))
    found = store.rows("a", 0, 9)

    assert next(found)[0] == 1
    assert used_longest_ago(store, context) == ("a", 2)


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_that_leave_a_full_cache_during_a_read_are_found_all_the_same(engine: str, context: Context) -> None:
    """Kafka Streams loses them, and with them updates of sliding windows."""
    store = opened(context, engine)
    put(store, ("a", 1), ("a", 2))
    store.flush_cache()
    store.put_row("a", 2, [2], 7)
    found = store.rows("a", 0, 9)

    assert next(found) == (1, [1], 7)
    context.cache.max_bytes = 0
    put(store, ("zz", 99))
    assert list(found) == [(2, [2], 7)]


@pytest.mark.parametrize("engine", ["rocksdb", "by-time-indexed"])
def test_backwards_a_cache_is_read_from_the_start_of_the_segment(engine: str, context: Context) -> None:
    store = opened(context, engine)
    put(store, ("a", 100_001), ("b", 100_001), ("a", 100_005))

    assert [row[0] for row in store.rows("a", 100_004, 100_009, True)] == [100_005]
    assert used_longest_ago(store, context) == ("b", 100_001)


@pytest.mark.parametrize("engine", ["rocksdb", "by-time-indexed"])
def test_forwards_a_cache_is_read_from_the_time_wanted(engine: str, context: Context) -> None:
    store = opened(context, engine)
    put(store, ("a", 1), ("b", 1), ("a", 5))

    assert [row[0] for row in store.rows("a", 4, 9)] == [5]
    assert used_longest_ago(store, context) == ("a", 1)


def test_sliding_windows_in_memory_use_whatever_the_cache_has_before(context: Context) -> None:
    store = opened(context, "memory")
    put(store, ("b", 1), ("c", 9))

    assert list(store.rows("a", 5, 6)) == []
    assert used_longest_ago(store, context) == ("c", 9)


def test_a_fetch_of_one_key_in_memory_uses_what_the_cache_has_between_the_times(context: Context) -> None:
    store = opened(context, "memory")
    put(store, ("b", 1), ("b", 5), ("c", 9))
    with store.fetch("a", 4, 6) as found:
        assert list(found) == []

    assert used_longest_ago(store, context) == ("b", 1)


@pytest.mark.parametrize("engine", READS_AS_A_WHOLE)
def test_a_read_of_all_keys_uses_the_whole_cache_in_its_order(engine: str, context: Context) -> None:
    store = opened(context, engine)
    put(store, ("b", 1), ("a", 1), ("c", 9))

    assert list(store.rows_between(4, 6)) == []
    assert used_longest_ago(store, context) == ("a", 1)


@pytest.mark.parametrize("engine", ["by-time", "by-time-indexed"])
def test_a_read_of_all_keys_in_order_of_time_ends_with_the_first_row_too_many(engine: str, context: Context) -> None:
    store = opened(context, engine)
    put(store, ("a", 7), ("a", 1), ("a", 6))

    assert [key.window.start for key, *_ in store.rows_between(0, 5)] == [1]
    assert used_longest_ago(store, context) == ("a", 7)


@pytest.mark.parametrize("engine", ["rocksdb", "memory", "by-time"])
def test_forwards_no_row_is_read_before_it_is_wanted(engine: str, context: Context) -> None:
    store = opened(context, engine)
    put(store, ("a", 1), ("b", 1), ("c", 1))

    assert next(iter(store.rows_between(0, 9)))[0].key == "a"
    assert used_longest_ago(store, context) == ("b", 1)


@pytest.mark.parametrize(
    ("engine", "form", "indexed"),
    [
        ("by-time", DslStoreFormat.TIMESTAMPED, False),
        ("by-time-indexed", DslStoreFormat.TIMESTAMPED, True),
        ("by-time", DslStoreFormat.HEADERS, True),  # whatever the windows (determineStoreType, 4.3.1)
    ],
)
def test_a_row_of_an_index_has_an_entry_more(
    engine: str, form: DslStoreFormat, indexed: bool, context: Context
) -> None:
    store = opened(context, engine, form)
    put(store, ("key", 1))

    key = 8 + 1 + 8 + len("key") + 4
    value = 8 + len("[1]") + (1 if form is DslStoreFormat.HEADERS else 0)
    entry_of_the_index = key + NODE + CONTEXT
    row = key + NODE + CONTEXT + len("in") + value
    assert context.cache.size_bytes == row + (entry_of_the_index if indexed else 0)


def test_a_row_that_was_written_for_its_own_entry_is_written_once_more_for_that_of_the_index(context: Context) -> None:
    store = opened(context, "by-time-indexed")
    put(store, ("a", 1))
    context.cache.max_bytes = context.cache.size_bytes
    put(store, ("b", 1))

    assert logged(context) == [
        ("a", 1),
        ("b", 1),
    ]  # both had to be written before the index entry of the second was put
    store.flush_cache()
    assert logged(context) == [("a", 1), ("b", 1), ("b", 1)]


def test_a_row_whose_index_entry_leaves_first_is_written_then_and_stays(context: Context) -> None:
    store = opened(context, "by-time-indexed")
    put(store, ("a", 1), ("b", 1))
    assert store.get_row("a", 1) == ([1], 7)  # which uses the row, and not its index entry

    assert used_longest_ago(store, context) == ("a", 1)
    context.logged.clear()
    store.flush_cache()
    assert ("a", 1) not in logged(context)
    assert [row[0] for row in store.rows("a", 0, 9)] == [1]


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_behind_one_that_could_not_be_forwarded_wait_for_the_next_flush(engine: str, context: Context) -> None:
    store = opened(context, engine)
    forwarded: list[Any] = []

    def refuses_a(windowed: Any, *_: Any) -> None:
        forwarded.append(windowed.key)
        if windowed.key == "a":
            raise OSError("below")

    store.on_flush(refuses_a, False)
    put(store, ("a", 1), ("b", 1), ("c", 1))
    with pytest.raises(OSError, match="below"):
        store.evict_eldest()

    assert [row[0] for key in "abc" for row in store.rows(key, 0, 9)] == [1, 1, 1]
    store.flush_cache()
    assert (logged(context), forwarded) == ([("a", 1), ("b", 1), ("c", 1)], ["a", "b", "c"])


@pytest.mark.parametrize("of_index", [False, True])
def test_an_entry_that_was_to_leave_first_comes_back_where_its_row_cannot_be_written(
    context: Context, monkeypatch: pytest.MonkeyPatch, of_index: bool
) -> None:
    monkeypatch.setattr(caching, "MEASURED_PUTS", 0)
    store = opened(context, "by-time-indexed")
    store.keep_row("measured", 1, 1, 7)
    store.flush_cache()
    while store.evict_eldest():
        continue
    store.keep_row("a", 1, object(), 7)
    if of_index:
        store.take_row("a", 1)  # which uses the row, and not its index entry
    size = store.cache_bytes
    with pytest.raises(SerializationError):
        store.evict_eldest()

    assert store.cache_bytes == size
    store.keep_row("a", 1, [2], 7)
    store.flush_cache()
    assert [row[:2] for row in store.rows("a", 0, 9)] == [(1, [2])]


def test_a_deleted_row_leaves_its_index_entry(context: Context) -> None:
    store = opened(context, "by-time-indexed")
    put(store, ("a", 1))
    store.put_row("a", 1, None, 7)
    store.flush_cache()

    assert list(store.rows("a", 0, 9)) == []
    assert context.cache.size_bytes == (8 + 1 + 8 + len("a") + 4) + NODE + CONTEXT
    store.close()
    assert context.cache.size_bytes == 0
