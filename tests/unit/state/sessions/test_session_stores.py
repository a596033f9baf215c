"""Session stores: what users read and write, what is forgotten, what is logged, what leaves the cache.

That every kind equals a list of intervals is held by ``tests/property/state/test_session_stores_equal_a_list.py``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.errors import InvalidStateStoreError, WrongTypeError
from pykstreams.core.windows import EmitStrategy, Window, Windowed
from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.serdes.primitives import StringSerde
from pykstreams.state import (
    AggregationWithHeaders,
    BuiltInDslStoreSuppliers,
    DslSessionParams,
    SessionBytesStoreSupplier,
    Stores,
)
from pykstreams.state.layers import caching
from pykstreams.state.layers.caching import MEASURED_PUTS
from pykstreams.state.sessions.order import TimeOrder
from tests.unit.state.support import NAME, ROOMY, Context, Flushed

RETENTION = 200_000  # segments of 100 000 ms
END = 2**63 - 1
SERDES: Any = StringSerde(), JsonSerde()
HEADERS = (("h", b"x"),)


def by_end(name: str, retention: int) -> SessionBytesStoreSupplier:
    wanted = DslSessionParams(name, retention, EmitStrategy.ON_WINDOW_CLOSE)
    return BuiltInDslStoreSuppliers.ROCKS_DB.session_store(wanted)


IN_ROCKSDB = pytest.param(Stores.persistent_session_store, id="rocksdb")
BY_END = pytest.param(by_end, id="rocksdb-by-end")
IN_MEMORY = pytest.param(Stores.in_memory_session_store, id="memory")
SUPPLIERS: Any = [IN_ROCKSDB, BY_END, IN_MEMORY]


@pytest.fixture
def context(tmp_path: Path) -> Context:
    made = Context(tmp_path)
    made.record(5)
    return made


@pytest.fixture
def make_store(context: Context) -> Any:
    """Makes open stores; those of aggregates in memory unless asked otherwise."""

    def make(
        supplier: Callable[..., Any] = Stores.in_memory_session_store,
        builder: Callable[..., Any] = Stores.session_store_builder,
        **options: Any,
    ) -> Any:
        store = builder(supplier(NAME, RETENTION), *SERDES, **options).build()
        store.init(context)
        return store

    return make


def session(key: str, start: int, end: int) -> Windowed[str]:
    return Windowed(key, Window(start, end))


def found(rows: Any) -> list[tuple[str, int, int]]:
    with rows:
        return [(key.key, key.window.start, key.window.end) for key, _ in rows]


def logged_key(key: str, start: int, end: int) -> bytes:
    return key.encode() + end.to_bytes(8, "big") + start.to_bytes(8, "big")


# Reading and writing


@pytest.mark.parametrize("supplier", SUPPLIERS)
def test_a_session_is_found_by_its_key_start_and_end(make_store: Any, supplier: Any) -> None:
    store = make_store(supplier)
    store.put(session("a", 5, 9), [1])

    assert store.fetch_session("a", 5, 9) == [1]
    assert store.fetch_session("a", 5, 8) is None
    assert store.get_row(session("a", 5, 9)) == ([1], 9)
    assert store.get_row(session("b", 5, 9)) is None


@pytest.mark.parametrize("supplier", SUPPLIERS)
def test_sessions_that_touch_a_span_of_time_are_found(make_store: Any, supplier: Any) -> None:
    store = make_store(supplier)
    for start, end in [(0, 4), (6, 9), (12, 150_000), (150_010, 150_020)]:
        store.put(session("a", start, end), 1)
    store.put(session("b", 6, 9), 1)

    assert found(store.find_sessions("a", 9, 12)) == [("a", 6, 9), ("a", 12, 150_000)]
    assert found(store.find_sessions("a", 10, 11)) == []
    assert store.sessions("a", 9, 12) == [(6, 9, 1), (12, 150_000, 1)]
    assert found(store.fetch("a", reverse=True)) == [
        ("a", 150_010, 150_020),
        ("a", 12, 150_000),
        ("a", 6, 9),
        ("a", 0, 4),
    ]


def test_sessions_of_several_keys_come_by_segment_and_key_from_rocksdb_and_by_time_from_memory(make_store: Any) -> None:
    order = {}
    for name, supplier in (("rocksdb", Stores.persistent_session_store), ("memory", Stores.in_memory_session_store)):
        store = make_store(supplier)
        for key, start, end in [("a", 50, 60), ("b", 10, 20), ("c", 5, 20), ("a", 100_000, 100_001)]:
            store.put(session(key, start, end), 1)
        order[name] = found(store.fetch_range(None, None))

        assert found(store.fetch_range(None, None, reverse=True)) == order[name][::-1]
        assert found(store.fetch_range("b", None)) == [row for row in order[name] if row[0] >= "b"]
        assert found(store.find_sessions_range(None, "b", 20, 50)) == [
            row for row in order[name] if row[0] <= "b" and row[1] <= 50
        ]
        store.close()

    assert order["rocksdb"] == [("a", 50, 60), ("b", 10, 20), ("c", 5, 20), ("a", 100_000, 100_001)]
    assert order["memory"] == [("b", 10, 20), ("c", 5, 20), ("a", 50, 60), ("a", 100_000, 100_001)]


def test_sessions_in_memory_with_the_same_key_and_end_come_with_the_latest_start_first(make_store: Any) -> None:
    store = make_store()
    for start in (3, 1, 2):
        store.put(session("a", start, 9), 1)

    assert found(store.fetch("a")) == [("a", 3, 9), ("a", 2, 9), ("a", 1, 9)]
    assert found(store.fetch_range("a", "a", reverse=True)) == [("a", 1, 9), ("a", 2, 9), ("a", 3, 9)]


@pytest.mark.parametrize("supplier", SUPPLIERS)
def test_sessions_are_found_by_their_ends_for_all_keys(make_store: Any, supplier: Any) -> None:
    store = make_store(supplier)
    for key, start, end in [("b", 10, 20), ("a", 100_000, 120_000), ("a", 15, 20), ("c", 0, 21)]:
        store.put(session(key, start, end), start)
    store.remove(session("c", 0, 21))

    assert sorted(found(store.find_sessions_by_end(20, 21))) == [("a", 15, 20), ("b", 10, 20)]
    assert found(store.find_sessions_by_end(21, END)) == [("a", 100_000, 120_000)]
    assert list(store.sessions_ended(120_000, 120_000)) == [(session("a", 100_000, 120_000), 100_000, 120_000)]
    assert list(store.sessions_ended(9, 8)) == []


def test_the_index_by_end_gives_the_earliest_start_first(make_store: Any) -> None:
    store = make_store(by_end)
    for key, start in [("a", 18), ("b", 10)]:
        store.put(session(key, start, 20), 1)

    assert found(store.find_sessions_by_end(0, 20)) == [("b", 10, 20), ("a", 18, 20)]


@pytest.mark.parametrize("supplier", SUPPLIERS)
@pytest.mark.parametrize("caching", [False, True])
def test_a_removed_session_is_gone(make_store: Any, supplier: Any, caching: bool) -> None:
    store = make_store(supplier, caching=caching)
    store.put(session("a", 5, 9), 1)
    store.flush_cache()
    store.put(session("a", 20, 20), 1)
    store.put(session("a", 20, 20), None)
    store.remove(session("a", 5, 9))

    assert found(store.fetch("a")) == []
    assert store.sessions("a", 0, END) == []


def test_subscripts_take_a_windowed_key(make_store: Any) -> None:
    store = make_store()
    store[session("a", 5, 9)] = 1

    assert store[session("a", 5, 9)] == 1
    assert session("a", 5, 9) in store
    assert session("a", 5, 8) not in store

    del store[session("a", 5, 9)]

    assert session("a", 5, 9) not in store
    with pytest.raises(KeyError, match="Windowed"):
        store[session("a", 5, 9)]
    with pytest.raises(KeyError, match="Windowed"):
        del store[session("a", 5, 9)]


def test_times_may_be_aware_datetimes(make_store: Any) -> None:
    store = make_store()
    store.put(session("a", 1_000, 2_000), "x")
    second, minute = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), datetime(1970, 1, 1, 0, 1, tzinfo=UTC)

    assert store.fetch_session("a", second, datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)) == "x"
    assert found(store.find_sessions("a", second, minute)) == [("a", 1_000, 2_000)]
    assert found(store.find_sessions_by_end(second, minute)) == [("a", 1_000, 2_000)]


def test_a_datetime_without_zone_is_refused(make_store: Any) -> None:
    with pytest.raises(
        ValueError, match=r"earliest session end is datetime.datetime\(2000, 1, 1, 0, 0\), which has no"
    ):
        make_store().find_sessions("a", datetime(2000, 1, 1), 0)


def test_null_keys_are_refused(make_store: Any) -> None:
    store = make_store()
    null: Any = None

    calls: tuple[Callable[[], object], ...] = (
        lambda: store.put(session(null, 0, 1), 1),
        lambda: store.remove(session(null, 0, 1)),
        lambda: store.find_sessions(None, 0, 1),
        lambda: store.fetch_session(None, 0, 1),
        lambda: store.sessions(None, 0, 1),
        lambda: store.put_row(None, 0, 1, 1),
    )
    for call in calls:
        with pytest.raises(TypeError, match="the key for store 'orders' is None; a key must not be None"):
            call()


def test_what_is_no_windowed_key_is_refused(make_store: Any) -> None:
    with pytest.raises(TypeError, match="store 'orders' keeps sessions and was given 'a'; expected a Windowed key"):
        make_store().put("a", 1)


def test_a_range_whose_first_key_is_greater_is_empty_and_warns(
    make_store: Any, caplog: pytest.LogCaptureFixture
) -> None:
    store = make_store()
    store.put(session("a", 0, 1), 1)

    with caplog.at_level(logging.WARNING):
        assert found(store.fetch_range("b", "a")) == []
    assert "range of store 'orders' from 'b' to 'a' is empty" in caplog.text


def test_a_closed_store_says_so(make_store: Any) -> None:
    store = make_store()
    store.close()

    for call in (
        lambda: store.put(session("a", 0, 1), 1),
        lambda: store.fetch("a"),
        lambda: store.sessions("a", 0, 1),
        lambda: store.put_row("a", 0, 1, 1),
        lambda: store.find_sessions_by_end(0, 1),
        lambda: list(store.sessions_ended(0, 1)),
        lambda: list(store.raw_rows()),
    ):
        with pytest.raises(InvalidStateStoreError, match="store 'orders' is not open"):
            call()


# Headers


@pytest.mark.parametrize(
    "supplier", [pytest.param(Stores.persistent_session_store_with_headers, id="rocksdb"), IN_MEMORY]
)
def test_a_store_with_headers_gives_them_back(make_store: Any, supplier: Any) -> None:
    store = make_store(supplier, Stores.session_store_with_headers_builder)
    store.put(session("a", 5, 9), AggregationWithHeaders(1, HEADERS))
    store.put_row("b", 5, 9, 2)

    assert store.fetch_session("a", 5, 9) == AggregationWithHeaders(1, HEADERS)
    assert store.fetch_session("b", 5, 9) == AggregationWithHeaders(2)
    assert store.get_row(session("a", 5, 9)) == (1, 9)
    assert [row.value for row in store.raw_rows()] == [b"1", b"2"]


@pytest.mark.parametrize("supplier", [IN_ROCKSDB, BY_END])
def test_headers_are_lost_over_a_persistent_supplier_without_them(make_store: Any, supplier: Any) -> None:
    store = make_store(supplier, Stores.session_store_with_headers_builder)
    store.put(session("a", 5, 9), AggregationWithHeaders(1, HEADERS))

    assert store.fetch_session("a", 5, 9) == AggregationWithHeaders(1)
    assert found(store.find_sessions_by_end(0, 9)) == [("a", 5, 9)]


def test_a_store_with_headers_refuses_a_bare_aggregate(make_store: Any) -> None:
    store = make_store(builder=Stores.session_store_with_headers_builder)

    with pytest.raises(WrongTypeError, match=r"keeps headers and was given 1; put AggregationWithHeaders\(value\)"):
        store.put(session("a", 5, 9), 1)


# Retention


def test_in_memory_a_session_is_forgotten_when_time_has_passed_its_end_by_the_retention(make_store: Any) -> None:
    store = make_store()
    store.put(session("a", 0, 10), 1)
    store.put(session("b", 0, 9 + RETENTION), 1)

    assert store.fetch_session("a", 0, 10) == 1

    store.put(session("b", 0, 10 + RETENTION), 1)

    assert store.fetch_session("a", 0, 10) is None
    assert store.sessions("a", 0, END) == []
    assert list(store.sessions_ended(0, 10)) == []


def test_in_rocksdb_a_session_past_its_retention_is_hidden_but_emitted_until_its_segment_goes(make_store: Any) -> None:
    store = make_store(by_end)
    store.put(session("a", 0, 10), 1)
    store.put(session("b", 0, 10 + RETENTION), 1)

    assert store.fetch_session("a", 0, 10) is None
    assert store.sessions("a", 0, END) == []
    assert found(store.find_sessions_by_end(0, 10)) == [("a", 0, 10)]

    store.put(session("b", 0, 100_000 + RETENTION), 1)

    assert found(store.find_sessions_by_end(0, 10)) == []


def test_dropped_segments_leave_nothing_in_the_database(make_store: Any, context: Context) -> None:
    store = make_store(by_end)
    store.put(session("a", 0, 10), 1)
    store.commit(1)
    store.put(session("b", 0, 10 * RETENTION), 1)
    store.commit(2)
    store.close()
    store = make_store(by_end)

    assert found(store.find_sessions_by_end(0, END)) == [("b", 0, 10 * RETENTION)]
    assert found(store.fetch("a")) == []


def test_a_session_that_is_too_old_is_refused_and_counted(make_store: Any, context: Context) -> None:
    store = make_store()
    store.put(session("a", 0, RETENTION + 50), 1)
    store.put(session("a", 0, 50), 2)

    assert found(store.fetch("a")) == [("a", 0, RETENTION + 50)]
    assert context.metrics.counter("dropped-records-total", "stream-task-metrics", task_id="0_1").total == 1


def test_the_index_of_keys_forgets_what_nobody_can_read(make_store: Any) -> None:
    store = make_store()
    for number in range(5_000):
        store.put_row(f"key {number}", number * 1_000, number * 1_000, 1)
    order: Any = store._order

    assert isinstance(order, TimeOrder)
    assert len(order._by_key) < 2_000
    assert store.sessions("key 4999", 0, END) == [(4_999_000, 4_999_000, 1)]


@pytest.mark.parametrize("caching", [False, True])
@pytest.mark.parametrize("supplier", SUPPLIERS)
def test_a_store_that_is_handed_over_to_another_task_still_finds_its_sessions(
    make_store: Any, context: Context, supplier: Any, caching: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pykstreams.state.sessions.order.MEASURED_PUTS", 0)
    store = make_store(supplier, caching=caching)
    store.put(session("a", 0, 10), 1)
    store.put(session("a", 20, 30), 2)
    store.flush_cache()
    store.commit(2)
    store.release()
    store.init(context.of_another_task())
    store.put(session("b", 0, 10), 3)  # a cache that has many sessions is not read as a whole

    assert found(store.fetch("a")) == [("a", 0, 10), ("a", 20, 30)]
    assert store.sessions("a", 5, 15) == [(0, 10, 1)]


def test_removing_what_a_store_in_memory_does_not_have_is_logged_and_moves_its_time_not_on(
    make_store: Any, context: Context
) -> None:
    store = make_store()
    store.put(session("a", 0, 10), 1)
    store.remove(session("b", 0, 10 * RETENTION))

    assert store.fetch_session("a", 0, 10) == 1
    assert context.logged[-1] == (logged_key("b", 0, 10 * RETENTION), None, 5, ())


# Changelog


@pytest.mark.parametrize("supplier", SUPPLIERS)
def test_the_changelog_has_end_and_start_behind_the_key_and_the_time_of_the_record(
    make_store: Any, context: Context, supplier: Any
) -> None:
    store = make_store(supplier)
    context.record(7, headers=HEADERS)
    store.put(session("a", 5, 9), 1)
    store.remove(session("a", 5, 9))

    assert context.logged == [
        (bytes.fromhex("61 0000000000000009 0000000000000005"), b"1", 7, ()),
        (logged_key("a", 5, 9), None, 7, ()),
    ]


def test_the_changelog_of_a_store_with_headers_has_those_of_the_row_and_for_deletes_those_of_the_record(
    make_store: Any, context: Context
) -> None:
    store = make_store(builder=Stores.session_store_with_headers_builder)
    context.record(7, headers=(("record", b"1"),))
    store.put(session("a", 5, 9), AggregationWithHeaders(1, HEADERS))
    store.put(session("a", 5, 9), None)

    assert context.logged == [
        (logged_key("a", 5, 9), b"1", 7, HEADERS),
        (logged_key("a", 5, 9), None, 7, (("record", b"1"),)),
    ]


@pytest.mark.parametrize("supplier", SUPPLIERS)
def test_a_store_is_restored_from_its_changelog(make_store: Any, context: Context, supplier: Any) -> None:
    store = make_store(supplier, Stores.session_store_with_headers_builder)
    store.restore(
        [
            (logged_key("a", 5, 9), b"1", 7, HEADERS),
            (logged_key("a", 15, 19), b"2", 8, ()),
            (logged_key("a", 5, 9), None, 9, ()),
            (logged_key("b", 5, 150_000), b"3", 9, HEADERS),
        ]
    )
    store.end_restore()

    assert found(store.fetch_range(None, None)) == [("a", 15, 19), ("b", 5, 150_000)]
    assert store.sessions("b", 0, END) == [(5, 150_000, 3)]
    assert found(store.find_sessions_by_end(0, END)) == [("a", 15, 19), ("b", 5, 150_000)]


def test_what_is_too_old_is_not_restored(make_store: Any) -> None:
    store = make_store()
    store.restore([(logged_key("a", 5, 9), b"1", 7, ()), (logged_key("a", 5, RETENTION + 9), b"2", 8, ())])

    assert store.sessions("a", 0, END) == [(5, RETENTION + 9, 2)]


# Cache


@pytest.mark.parametrize("supplier", SUPPLIERS)
def test_the_cache_forwards_the_last_change_of_a_session_with_its_end_and_the_headers_of_its_record(
    make_store: Any, context: Context, supplier: Any
) -> None:
    store = make_store(supplier, caching=True)
    flushed = Flushed(context)
    headers: list[Any] = []

    def listener(*change: Any) -> None:
        flushed(*change)
        headers.append(change[-1])

    assert store.on_flush(listener, True)
    store.put_row("a", 5, 9, 1)
    store.flush_cache()
    context.record(7, offset=3, headers=HEADERS)
    store.put_row("a", 5, 9, None)
    store.put_row("a", 5, 12, 2)
    store.put_row("b", 1, 1, 1)
    store.put_row("b", 1, 1, None)
    store.flush_cache()

    assert flushed.rows == [
        (session("a", 5, 9), 1, None, 9, 0),
        (session("a", 5, 9), None, 1, 9, 3),
        (session("a", 5, 12), 2, None, 12, 3),
    ]
    assert headers == [(), HEADERS, HEADERS]


def test_with_headers_the_cache_forwards_those_of_the_row_and_none_for_a_delete(
    make_store: Any, context: Context
) -> None:
    store = make_store(builder=Stores.session_store_with_headers_builder, caching=True)
    headers: list[Any] = []
    store.on_flush(lambda *change: headers.append(change[-1]), False)
    context.record(7, headers=(("record", b"1"),))
    store.put(session("a", 5, 9), AggregationWithHeaders(1, HEADERS))
    store.put_row("b", 5, 9, 1)
    store.flush_cache()
    store.remove(session("a", 5, 9))
    store.flush_cache()

    assert headers == [HEADERS, (), ()]


def test_without_a_cache_nobody_is_told(make_store: Any, context: Context) -> None:
    assert not make_store().on_flush(Flushed(context), True)


@pytest.mark.parametrize("supplier", SUPPLIERS)
def test_a_full_cache_writes_and_forwards_what_was_used_longest_ago(
    make_store: Any, context: Context, supplier: Any
) -> None:
    context.cache.max_bytes = 150  # two sessions of 73 bytes
    store = make_store(supplier, caching=True)
    flushed = Flushed(context)
    store.on_flush(flushed, False)
    store.put_row("a", 5, 9, 1)
    store.put_row("b", 5, 9, 1)

    assert flushed.rows == []

    store.put_row("c", 5, 9, 1)

    assert [row[0] for row in flushed.rows] == [session("a", 5, 9), session("b", 5, 9), session("c", 5, 9)]
    assert store.sessions("a", 0, END) == [(5, 9, 1)]


@pytest.mark.parametrize("supplier", [IN_ROCKSDB, BY_END])
def test_a_large_cache_that_has_all_sessions_is_asked_for_those_of_the_key_only(
    make_store: Any, context: Context, supplier: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caching, "FEW_ENTRIES", 2)
    store = make_store(supplier, caching=True)
    for start, end in [(5, 9), (20, 30), (40, 250_000)]:
        for key in ("a", "b", "a\0"):
            store.put_row(key, start, end, [start])
    store.put_row("a", 20, 30, None)

    ticks = {key: entry.tick for key, entry in store._cache._entries.items()}

    assert store.sessions("a", 0, END) == [(5, 9, [5]), (40, 250_000, [40])]
    assert found(store.find_sessions("a", 9, 39)) == [("a", 5, 9)]
    assert found(store.find_sessions("a", 10, END, reverse=True)) == [("a", 40, 250_000)]
    used = {key[8:-16] for key, entry in store._cache._entries.items() if entry.tick != ticks[key]}
    assert used == {b"a"}


@pytest.mark.parametrize("supplier", [IN_ROCKSDB, BY_END])
@pytest.mark.parametrize("few_entries", [0, caching.FEW_ENTRIES])
def test_sessions_are_looked_for_below_the_cache_only_where_one_may_end_as_late(
    make_store: Any, context: Context, supplier: Any, few_entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caching, "FEW_ENTRIES", few_entries)
    store = make_store(supplier, caching=True)
    store.restore([(logged_key("a", 900, 1_000), b"1", 1, ())])
    scanned: list[bytes] = []
    scan = store._cache.below.scan

    def scan_below(lower: bytes, upper: bytes, reverse: bool) -> Any:
        scanned.append(lower)
        return scan(lower, upper, reverse)

    monkeypatch.setattr(store._cache.below, "scan", scan_below)

    assert store.sessions("a", 1_000, END) == [(900, 1_000, 1)]
    assert len(scanned) == 1
    assert store.sessions("a", 1_001, END) == []
    store.put_row("a", 1_900, 2_000, 2)
    store.put_row("b", 1_900, 3_000, 3)
    store.flush_cache()
    assert store.sessions("a", 1_001, END) == [(1_900, 2_000, 2)]
    assert len(scanned) == 1

    context.cache.max_bytes = context.cache.size_bytes - 1
    store.put_row("b", 1_900, 3_000, 4)  # evicts that of a
    assert store.sessions("a", 2_000, END) == [(1_900, 2_000, 2)]
    assert len(scanned) == 2
    assert store.sessions("a", 2_001, END) == []
    assert len(scanned) == 2


def test_a_large_cache_over_memory_finds_the_same_sessions_as_a_small_one(make_store: Any, context: Context) -> None:
    context.cache.max_bytes = ROOMY
    store = make_store(caching=True)
    for number in range(MEASURED_PUTS + 10):
        store.put_row(f"key {number}", number, number, number)
        store.put_row("a", number, number + 1, number)
        if number >= 3:
            store.put_row("a", number - 3, number - 2, None)

    assert store.sessions("a", 0, 1_007) == [(1_007, 1_008, 1_007)]
    assert found(store.find_sessions("a", 0, END, reverse=True)) == [
        ("a", 1_009, 1_010),
        ("a", 1_008, 1_009),
        ("a", 1_007, 1_008),
    ]


def test_a_cache_over_rocksdb_shows_a_session_that_the_database_has_forgotten(make_store: Any) -> None:
    store = make_store(Stores.persistent_session_store, caching=True)
    store.put_row("a", 0, 10, 1)
    store.put_row("b", 0, 20 * RETENTION, 1)
    store.flush_cache()

    assert store.sessions("a", 0, END) == [(0, 10, 1)]
    assert next(store.raw_rows()).key == b"b"


# Suppliers


def test_suppliers_tell_their_retention_and_segments() -> None:
    persistent = Stores.persistent_session_store(NAME, RETENTION)
    memory = Stores.in_memory_session_store(NAME, 5)

    assert (persistent.retention_period_ms, persistent.segment_interval_ms) == (RETENTION, 100_000)
    assert Stores.persistent_session_store(NAME, 5).segment_interval_ms == 60_000
    assert (memory.retention_period_ms, memory.segment_interval_ms) == (5, 1)
    assert Stores.persistent_session_store_with_headers(NAME, 5).with_headers
    assert not persistent.with_headers


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Stores.persistent_session_store(NAME, -1), ValueError, "retention period is -1; it must not be"),
        (lambda: Stores.in_memory_session_store(5, 1), TypeError, "name of a store is 5; expected text"),  # type: ignore[arg-type]
        (
            lambda: Stores.session_store_builder(Stores.in_memory_key_value_store(NAME)),  # type: ignore[arg-type]
            TypeError,
            "expected one such as Stores.persistent_session_store",
        ),
    ],
)
def test_stores_that_cannot_be_made_are_refused(
    make: Callable[[], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error) as caught:
        make()

    assert message in str(caught.value)
