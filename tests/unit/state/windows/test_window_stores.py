"""Window stores: what users read and write, what is forgotten, what is logged, what leaves the cache.

That every kind equals a dict with a retention is held by ``tests/property/state/test_window_stores_equal_a_dict.py``.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.errors import InvalidStateStoreError, WrongTypeError
from pykstreams.core.windows import Window, Windowed
from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.serdes.primitives import StringSerde
from pykstreams.state import Stores, ValueAndTimestamp, ValueTimestampHeaders
from tests.unit.state.support import NAME, ROOMY, Context, Flushed

RETENTION = 200_000  # segments of 100 000 ms
SIZE = 1_000
END = 2**63 - 1
SERDES: Any = StringSerde(), JsonSerde()

SUPPLIERS: Any = [
    pytest.param(Stores.persistent_timestamped_window_store, id="rocksdb"),
    pytest.param(Stores.in_memory_window_store, id="memory"),
]


@pytest.fixture
def context(tmp_path: Path) -> Context:
    made = Context(tmp_path)
    made.record(5)
    return made


@pytest.fixture
def make_store(context: Context) -> Any:
    """Makes open stores; those of timestamps in memory unless asked otherwise."""

    def make(
        supplier: Callable[..., Any] = Stores.in_memory_window_store,
        builder: Callable[..., Any] = Stores.timestamped_window_store_builder,
        duplicates: bool = False,
        **options: Any,
    ) -> Any:
        store = builder(supplier(NAME, RETENTION, SIZE, duplicates), *SERDES, **options).build()
        store.init(context)
        return store

    return make


def at(key: str, start: int) -> Windowed[str]:
    return Windowed(key, Window(start, start + SIZE))


def logged_key(key: str, start: int, sequence: int = 0) -> bytes:
    return key.encode() + start.to_bytes(8, "big") + sequence.to_bytes(4, "big")


# Reading and writing


@pytest.mark.parametrize("supplier", SUPPLIERS)
def test_a_value_is_found_by_its_key_and_window_start(make_store: Any, supplier: Any) -> None:
    store = make_store(supplier)
    store.put("a", ValueAndTimestamp(1, 7), 3_000)

    assert store.fetch_one("a", 3_000) == ValueAndTimestamp(1, 7)
    assert store.fetch_one("a", 2_000) is None
    assert store.fetch_one("b", 3_000) is None


@pytest.mark.parametrize("caching", [False, True])
@pytest.mark.parametrize("supplier", SUPPLIERS)
def test_a_window_that_starts_at_the_largest_time_is_found(make_store: Any, supplier: Any, caching: bool) -> None:
    store = make_store(supplier, caching=caching)
    store.put("a", ValueAndTimestamp(1, 7), END)

    assert list(store.fetch("a", 0, END)) == [(END, ValueAndTimestamp(1, 7))]
    assert list(store.rows("a", END, END)) == [(END, 1, 7)]


def test_stores_of_values_and_headers_give_what_was_put(make_store: Any) -> None:
    plain = make_store(builder=Stores.window_store_builder)
    plain.put("a", 1, 0)
    headers = make_store(builder=Stores.timestamped_window_store_with_headers_builder)
    headers.put("a", ValueTimestampHeaders(1, 7, (("h", b"x"),)), 0)

    assert plain.fetch_one("a", 0) == 1
    assert headers.fetch_one("a", 0) == ValueTimestampHeaders(1, 7, (("h", b"x"),))


def test_subscripts_take_a_key_and_a_window_start(make_store: Any) -> None:
    store = make_store()
    store["a", 3_000] = ValueAndTimestamp(1, 7)

    assert store["a", 3_000] == ValueAndTimestamp(1, 7)
    assert ("a", 3_000) in store
    assert ("a", 4_000) not in store
    with pytest.raises(KeyError, match=r"\('a', 4000\)"):
        store["a", 4_000]


def test_times_may_be_aware_datetimes(make_store: Any) -> None:
    store = make_store(builder=Stores.window_store_builder)
    second = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    store.put("a", "x", second)

    assert store.fetch_one("a", 1_000) == "x"
    assert list(store.fetch("a", second, second)) == [(1_000, "x")]
    assert list(store.fetch_all(second, datetime(2000, 1, 1, tzinfo=UTC))) == [(at("a", 1_000), "x")]


def test_a_datetime_without_zone_is_refused(make_store: Any) -> None:
    with pytest.raises(ValueError, match=r"time_from is datetime.datetime\(2000, 1, 1, 0, 0\), which has no time zone"):
        make_store().fetch("a", datetime(2000, 1, 1), 0)


def test_windows_that_start_before_time_are_refused(make_store: Any) -> None:
    store = make_store()

    with pytest.raises(ValueError, match="window start for store 'orders' is -1; it must not be negative"):
        store.put("a", ValueAndTimestamp(1, 7), -1)
    with pytest.raises(ValueError, match="window start for store 'orders' is -1; it must not be negative"):
        store.put_row("a", -1, 1, 7)


@pytest.mark.parametrize("caching", [False, True])
def test_none_is_no_key(make_store: Any, caching: bool) -> None:
    store = make_store(caching=caching)
    calls: list[Callable[[], Any]] = [
        lambda: store.put(None, ValueAndTimestamp(1, 1), 0),
        lambda: store.fetch_one(None, 0),
        lambda: store.fetch(None, 0, 1),
        lambda: store.get_row(None, 0),
        lambda: store.put_row(None, 0, 1, 1),
        lambda: store.rows(None, 0, 1),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="the key for store 'orders' is None"):
            call()


def test_a_value_without_timestamp_is_refused_where_timestamps_are_kept(make_store: Any) -> None:
    with pytest.raises(WrongTypeError, match=r"store 'orders' keeps timestamps and was given 1; put ValueAndTimestamp"):
        make_store().put("a", 1, 0)


def test_rows_of_several_keys_come_by_segment_and_key_from_rocksdb(make_store: Any) -> None:
    store = make_store(Stores.persistent_window_store, Stores.window_store_builder)
    for key, start in (("b", 0), ("a", 5), ("a", 100_000), ("b", 3)):
        store.put(key, start, start)

    expected = [("a", 5), ("b", 0), ("b", 3), ("a", 100_000)]
    assert [(key.key, key.window.start) for key, _ in store.all()] == expected
    assert [(key.key, key.window.start) for key, _ in store.all(reverse=True)] == expected[::-1]


def test_rows_of_several_keys_come_by_time_and_key_from_memory(make_store: Any) -> None:
    store = make_store(builder=Stores.window_store_builder)
    for key, start in (("b", 0), ("a", 5), ("a", 0), ("a\0", 0)):
        store.put(key, start, start)

    expected = [("a", 0), ("a\0", 0), ("b", 0), ("a", 5)]
    assert [(key.key, key.window.start) for key, _ in store.all()] == expected
    assert [(key.key, key.window.start) for key, _ in store.all(reverse=True)] == expected[::-1]


def test_a_range_whose_first_key_is_greater_is_empty_and_warns(
    make_store: Any, caplog: pytest.LogCaptureFixture
) -> None:
    store = make_store(builder=Stores.window_store_builder)
    store.put("a", 1, 0)

    assert list(store.fetch_range("b", "a", 0, END)) == []
    assert "range of store 'orders' from 'b' to 'a' is empty" in caplog.text


def test_the_last_window_ends_where_time_ends(make_store: Any) -> None:
    store = make_store(builder=Stores.window_store_builder)
    store.put("a", 1, END - 1)

    assert [key.window for key, _ in store.all()] == [Window(END - 1, END)]


def test_an_iterator_that_is_left_open_warns(make_store: Any) -> None:
    store = make_store(builder=Stores.window_store_builder)
    store.put("a", 1, 0)
    rows = store.fetch("a", 0, END)

    with pytest.warns(ResourceWarning, match="an iterator over store 'orders' was left open"):
        del rows
        gc.collect()


def test_an_iterator_shows_the_next_window_start_before_it_gives_it(make_store: Any) -> None:
    store = make_store(builder=Stores.window_store_builder)
    store.put("a", "x", 30)

    with store.fetch("a", 0, END) as rows:
        assert rows.peek_next_key() == 30
        assert next(rows) == (30, "x")


@pytest.mark.parametrize("caching", [False, True])
@pytest.mark.parametrize("supplier", SUPPLIERS)
def test_a_closed_store_cannot_be_used(make_store: Any, supplier: Any, caching: bool) -> None:
    store = make_store(supplier, caching=caching)
    store.close()
    store.close()
    calls: list[Callable[[], Any]] = [
        lambda: store.put("a", ValueAndTimestamp(1, 1), 0),
        lambda: store.fetch_one("a", 0),
        lambda: store.fetch("a", 0, 1),
        lambda: store.all(),
        lambda: store.fetch_all(0, 1),
        lambda: store.fetch_range(None, None, 0, 1),
        lambda: store.get_row("a", 0),
        lambda: store.put_row("a", 0, 1, 1),
        lambda: store.rows("a", 0, 1),
        lambda: store.rows_between(0, 1),
        lambda: list(store.raw_rows()),
    ]
    for call in calls:
        with pytest.raises(InvalidStateStoreError, match="store 'orders' is not open"):
            call()


# Forgetting


@pytest.mark.parametrize("supplier", SUPPLIERS)
def test_a_window_can_be_read_until_it_is_as_old_as_the_retention(make_store: Any, supplier: Any) -> None:
    store = make_store(supplier)
    store.put_row("a", 50, 1, 50)
    store.put_row("b", RETENTION + 49, 2, 50)

    assert store.get_row("a", 50) == (1, 50)

    store.put_row("b", RETENTION + 50, 2, 50)

    assert store.get_row("a", 50) is None
    assert list(store.rows("a", 0, END)) == []
    assert [row.start for row in store.raw_rows()] == [RETENTION + 49, RETENTION + 50]


def test_memory_refuses_what_could_not_be_read(
    make_store: Any, context: Context, caplog: pytest.LogCaptureFixture
) -> None:
    store = make_store()
    store.put_row("a", RETENTION + 50, 1, 1)
    store.put_row("b", 51, 2, 1)
    store.put_row("b", 50, 3, 1)
    store.put_row("b", 49, 3, 1)

    assert [row[:2] for row in store.rows("b", 0, END)] == [(51, 2)]
    assert dropped(context) == 2
    assert caplog.messages == [
        "store 'orders' of task 0_1 drops rows that are older than its retention of 200000 ms: the first has the time "
        "50, when the newest has 200050. Give the store a longer retention if such rows matter"
    ]


def test_rocksdb_refuses_what_belongs_to_a_segment_that_is_gone(make_store: Any, context: Context) -> None:
    """A row that is too old to be read is still kept while its segment is."""
    store = make_store(Stores.persistent_timestamped_window_store)
    store.put_row("a", 350_000, 1, 1)
    store.put_row("b", 100_000, 2, 1)

    assert dropped(context) == 0
    assert store.get_row("b", 100_000) is None

    store.put_row("b", 99_999, 2, 1)

    assert dropped(context) == 1


def test_a_refused_row_is_logged_all_the_same(make_store: Any, context: Context) -> None:
    store = make_store()
    store.put_row("a", RETENTION + 50, 1, 1)
    store.put_row("b", 50, 2, 9)

    assert context.logged[-1] == (logged_key("b", 50), b"2", 9, ())


def test_segments_that_are_gone_leave_the_disk_with_the_next_commit(make_store: Any, context: Context) -> None:
    store = make_store(Stores.persistent_timestamped_window_store)
    for start in (0, 150_000):
        store.put_row("a", start, 1, 1)
    store.commit(2)
    store.put_row("a", 310_000, 1, 1)  # segment 0 goes, segment 1 stays though its row is hidden in a moment
    store.put_row("a", 360_000, 1, 1)

    assert starts(store) == [310_000, 360_000]

    store.close()
    again = make_store(Stores.persistent_timestamped_window_store)

    assert starts(again) == [0, 150_000]

    again.put_row("a", 310_000, 1, 1)
    again.put_row("a", 360_000, 1, 1)
    again.commit(4)
    again.close()
    last = make_store(Stores.persistent_timestamped_window_store)

    assert starts(last) == [150_000, 310_000, 360_000]
    assert [start for start, *_ in last.rows("a", 0, END)] == [150_000, 310_000, 360_000]


def test_restoring_tells_the_time_and_leaves_out_what_is_too_old(make_store: Any) -> None:
    store = make_store(Stores.persistent_timestamped_window_store)
    store.restore([(logged_key("a", start), b"1", 1, ()) for start in (0, 150_000, 400_000)])
    store.end_restore()

    assert starts(store) == [400_000]

    store.put_row("b", 199_999, 1, 1)

    assert starts(store) == [400_000]


def test_rows_older_than_those_on_disk_are_found_again(make_store: Any) -> None:
    first = make_store(Stores.persistent_timestamped_window_store)
    first.put_row("a", 150_000, 1, 1)
    first.commit(1)
    first.close()
    second = make_store(Stores.persistent_timestamped_window_store)
    second.restore([(logged_key("b", 0), b"2", 1, ())])
    second.end_restore()

    assert starts(second) == [0, 150_000]


def test_a_cache_shows_what_is_too_old_until_it_lets_go_of_it(make_store: Any) -> None:
    """As ``CachingWindowStore`` does: only the layers below it know of a retention."""
    store = make_store(Stores.persistent_timestamped_window_store, caching=True)
    store.put_row("a", 0, 1, 1)
    store.put_row("a", 500_000, 1, 1)

    assert [start for start, *_ in store.rows("a", 0, END)] == [0, 500_000]
    assert [key.window.start for key, *_ in store.rows_between(0, END)] == [0, 500_000]


# The changelog


def test_the_changelog_has_key_start_and_sequence_and_the_time_of_the_row(make_store: Any, context: Context) -> None:
    store = make_store()
    store.put_row("a", 3_000, 1, 3_007)
    store.put_row("a", 3_000, None, 3_008)

    assert context.logged == [(logged_key("a", 3_000), b"1", 3_007, ()), (logged_key("a", 3_000), None, 5, ())]


def test_headers_are_logged_where_they_are_kept(make_store: Any, context: Context) -> None:
    store = make_store(
        Stores.persistent_timestamped_window_store_with_headers, Stores.timestamped_window_store_with_headers_builder
    )
    store.put_row("a", 0, 1, 7, (("h", b"x"),))

    assert context.logged == [(logged_key("a", 0), b"1", 7, (("h", b"x"),))]
    assert store.fetch_one("a", 0).headers == (("h", b"x"),)


def test_headers_are_logged_over_an_engine_that_keeps_values_only(make_store: Any, context: Context) -> None:
    """As the stores of a join of streams are made."""
    store = make_store(Stores.persistent_window_store, Stores.timestamped_window_store_with_headers_builder, True)
    store.put_row("a", 0, 1, 7, (("h", b"x"),))

    assert context.logged == [(logged_key("a", 0, 1), b"1", 7, (("h", b"x"),))]
    assert list(store.rows("a", 0, 1)) == [(0, 1, -1)]


@pytest.mark.parametrize("supplier", [Stores.persistent_window_store, Stores.in_memory_window_store])
def test_duplicates_are_retained_in_the_order_in_which_they_were_put(make_store: Any, supplier: Any) -> None:
    store = make_store(supplier, Stores.window_store_builder, True)
    for value in ("z", "y", "x"):
        store.put("a", value, 10)
    store.put("a", None, 10)

    assert list(store.fetch("a", 0, 20)) == [(10, "z"), (10, "y"), (10, "x")]
    assert [row.value for row in store.raw_rows()] == [b'"z"', b'"y"', b'"x"']


def test_the_changelog_of_duplicates_counts_nulls_too(make_store: Any, context: Context) -> None:
    store = make_store(Stores.persistent_window_store, Stores.window_store_builder, True)
    for value in ("z", None, "x"):
        store.put("a", value, 10)

    assert [key for key, *_ in context.logged] == [logged_key("a", 10, number) for number in (1, 2, 3)]
    assert [value for _, value, *_ in context.logged] == [b'"z"', None, b'"x"']


def test_restored_duplicates_in_memory_are_not_replaced_by_new_ones(make_store: Any, context: Context) -> None:
    first = make_store(builder=Stores.window_store_builder, duplicates=True)
    first.put("a", "z", 10)
    first.close()
    second = make_store(builder=Stores.window_store_builder, duplicates=True)
    second.restore(context.logged)
    second.put("a", "y", 10)

    assert list(second.fetch("a", 0, 20)) == [(10, "z"), (10, "y")]


def test_reopened_duplicates_are_not_replaced_by_new_ones(make_store: Any, context: Context) -> None:
    """Other than in Kafka Streams, which counts anew."""
    for value in ("z", "y"):
        store = make_store(Stores.persistent_window_store, Stores.window_store_builder, True)
        store.put("a", value, 10)
        store.commit(len(context.logged))
        store.close()
    last = make_store(Stores.persistent_window_store, Stores.window_store_builder, True)

    assert list(last.fetch("a", 0, 20)) == [(10, "z"), (10, "y")]
    assert len({key for key, *_ in context.logged}) == 2


def test_reads_backwards_show_no_rows_that_were_deleted_in_the_cache(make_store: Any) -> None:
    """Other than in Kafka Streams, where such rows come as nulls."""
    store = make_store(caching=True)
    store.put_row("a", 10, 1, 1)
    store.flush_cache()
    store.put_row("a", 20, 2, 1)
    store.put_row("a", 20, None, 1)

    assert [start for start, *_ in store.rows("a", 0, END, True)] == [10]


@pytest.mark.parametrize("supplier", [Stores.persistent_window_store, Stores.in_memory_window_store])
def test_a_range_up_to_a_key_with_zero_bytes_has_the_key_before_them(make_store: Any, supplier: Any) -> None:
    """Other than in Kafka Streams, where such a range leaves rows out."""
    store = make_store(supplier, Stores.window_store_builder)
    store.put("a", 1, 36)

    assert list(store.fetch_range("a", "a\0", 0, 100)) == [(at("a", 36), 1)]


# The cache


def test_what_leaves_the_cache_is_forwarded_with_windowed_keys(make_store: Any, context: Context) -> None:
    store = make_store(caching=True)
    flushed = Flushed(context)

    assert store.on_flush(flushed, True)

    context.record(5, offset=3)
    store.put_row("a", 1_000, 1, 1_007)
    store.flush_cache()
    context.record(5, offset=4)
    store.put_row("a", 1_000, 2, 1_009)
    context.record(6, offset=5)
    store.put_row("a", 1_000, None, 0)
    store.put_row("b", 1_000, None, 0)
    store.flush_cache()

    assert flushed.rows == [(at("a", 1_000), 1, None, 1_007, 3), (at("a", 1_000), None, 1, 6, 5)]


def test_a_store_without_cache_has_no_listener(make_store: Any, context: Context) -> None:
    assert not make_store().on_flush(Flushed(context), False)


def test_what_is_read_from_below_is_not_kept_in_the_cache(make_store: Any, context: Context) -> None:
    """Other than with key-value stores: ``CachingWindowStore.fetch``."""
    context.cache.max_bytes = 0
    store = make_store(caching=True)
    store.put_row("a", 0, 1, 1)
    context.cache.max_bytes = ROOMY

    assert store.get_row("a", 0) == (1, 1)
    assert context.cache.size_bytes == 0


@pytest.mark.parametrize("supplier", SUPPLIERS)
@pytest.mark.parametrize("read", ["get_row", "take_row"])
def test_a_row_is_looked_for_below_the_cache_only_where_one_of_its_time_may_be(
    make_store: Any, context: Context, supplier: Any, read: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(supplier, caching=True)
    store.restore([(logged_key("restored", 1_000), b"1", 1, ())])
    looked: list[int] = []
    found = store._cache.below.get

    def get(key: bytes) -> bytes | None:
        looked.append(int.from_bytes(key[-12:-4], "big"))
        value: bytes | None = found(key)
        return value

    monkeypatch.setattr(store._cache.below, "get", get)
    row_of = getattr(store, read)

    assert row_of("restored", 1_000) == (1, 1)
    assert [row_of("absent", start) for start in (1_000, 2_000, 3_000)] == [None, None, None]
    assert looked == [1_000, 1_000]

    store.put_row("evicted", 2_000, 2, 2)
    store.put_row("stays", 3_000, 3, 3)
    store.flush_cache()
    context.cache.max_bytes = context.cache.size_bytes - 1
    store.put_row("stays", 3_000, 4, 4)
    looked.clear()

    assert [row_of("evicted", 2_000), row_of("stays", 3_000), row_of("absent", 3_000)] == [(2, 2), (4, 4), None]
    assert looked == [2_000]


def test_an_entry_has_the_size_that_kafka_streams_counts(make_store: Any, context: Context) -> None:
    context.record(5, topic="in")
    store = make_store(caching=True)
    store.put_row("ab", 0, 7, 1)

    key, value, node, of_record = 8 + 2 + 8 + 4, 8 + 1, 25, 8 + 8 + 4 + len("in")
    assert context.cache.size_bytes == key + value + node + of_record


def test_objects_are_kept_in_the_cache_as_long_as_nobody_may_change_them(make_store: Any) -> None:
    store = make_store(caching=True)
    made: list[int] = []
    for count in range(1100):  # so many that values are not serialized any more when they are put
        store.keep_row("a", count % 7, made := [count], 1)

    assert store.take_row("a", 1099 % 7)[0] is made

    store.get_row("a", 1099 % 7)[0].append("changed by who got it")

    assert store.take_row("a", 1099 % 7)[0] == [1099]


# Suppliers and builders


@pytest.mark.parametrize(
    "make",
    [
        Stores.persistent_window_store,
        Stores.persistent_timestamped_window_store,
        Stores.persistent_timestamped_window_store_with_headers,
        Stores.in_memory_window_store,
    ],
)
def test_lengths_are_checked_when_a_supplier_is_made(make: Any) -> None:
    with pytest.raises(ValueError, match="retention period of store 'w' is 5 ms and its windows are 6 ms long"):
        make("w", 5, 6)
    with pytest.raises(ValueError, match="retention period of store 'w' is -1; it must not be negative"):
        make("w", -1, 0)
    with pytest.raises(ValueError, match="window size of store 'w' is -1; it must not be negative"):
        make("w", 1, -1)
    with pytest.raises(TypeError, match="name of a store is None; expected text"):
        make(None, 1, 1)


def test_a_supplier_tells_how_long_its_segments_are() -> None:
    long = Stores.persistent_window_store("w", 300_000, 1_000)

    assert (long.segment_interval_ms, long.retention_period_ms, long.window_size_ms) == (150_000, 300_000, 1_000)
    assert (long.retain_duplicates, long.with_headers, long.metrics_scope) == (False, False, "rocksdb-window")
    assert Stores.persistent_window_store("w", 5, 5).segment_interval_ms == 60_000
    assert Stores.in_memory_window_store("w", 300_000, 1_000).segment_interval_ms == 1
    assert Stores.persistent_timestamped_window_store_with_headers("w", 5, 5).with_headers


def test_a_supplier_of_another_kind_is_refused() -> None:
    supplier: Any = Stores.in_memory_key_value_store("w")

    with pytest.raises(TypeError, match=r"supplier of a window store is .*; expected one such as Stores.persistent_w"):
        Stores.window_store_builder(supplier)


def test_a_store_that_retains_duplicates_has_no_cache(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        builder = Stores.window_store_builder(Stores.in_memory_window_store("w", 5, 5, True), caching=True)

    assert not builder.caching
    assert caplog.messages == ["store 'w' has no cache, since it retains duplicates; leave out caching=True"]


def test_the_changelog_of_duplicates_is_not_compacted_unless_the_user_says_so() -> None:
    supplier = Stores.in_memory_window_store("w", 5, 5, True)

    assert Stores.window_store_builder(supplier).topic_config == {"cleanup.policy": "delete"}
    asked = Stores.window_store_builder(supplier, topic_config={"cleanup.policy": "compact"})
    assert asked.topic_config == {"cleanup.policy": "compact"}
    assert Stores.window_store_builder(supplier, logging=False).topic_config == {}


def starts(store: Any) -> list[int]:
    return [key.window.start for key, *_ in store.rows_between(0, END)]


def dropped(context: Context) -> int:
    return context.metrics.counter("dropped-records-total", "stream-task-metrics", task_id="0_1").total
