"""Versioned stores: what users read and write, what is too late or too old, what is logged, what survives.

That every store equals lists of intervals is held by
``tests/property/state/test_versioned_stores_equal_lists_of_intervals.py``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pykstreams.core.errors import InvalidStateStoreError
from pykstreams.serdes.json.json_serde import JsonSerde
from pykstreams.serdes.primitives import StringSerde
from pykstreams.state import (
    PUT_RETURN_CODE_NOT_PUT,
    PUT_RETURN_CODE_VALID_TO_UNDEFINED,
    PutResult,
    ResultOrder,
    Stores,
    VersionedRecord,
)
from tests.unit.state.support import NAME, Context

RETENTION, INTERVAL = 100, 20
SERDES: Any = StringSerde(), JsonSerde()

SUPPLIERS: Any = [
    pytest.param(Stores.persistent_versioned_key_value_store, id="rocksdb"),
    pytest.param(Stores.in_memory_versioned_key_value_store, id="memory"),
]


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(tmp_path)


@pytest.fixture
def make_store(context: Context) -> Any:
    """Makes open stores, in memory unless asked otherwise."""

    def make(
        supplier: Any = Stores.in_memory_versioned_key_value_store,
        retention: Any = RETENTION,
        interval: Any = INTERVAL,
        **options: Any,
    ) -> Any:
        builder = Stores.versioned_key_value_store_builder(supplier(NAME, retention, interval), *SERDES, **options)
        store = builder.build()
        store.init(context)
        return store

    return make


def history(
    store: Any, first: Any = None, last: Any = None, order: Any = ResultOrder.ANY
) -> list[tuple[Any, int, int | None]]:
    with store.get("a", first, last, order) as records:
        return [(record.value, record.timestamp, record.valid_to) for record in records]


# Reading and writing


@pytest.mark.parametrize("supplier", SUPPLIERS)
def test_a_key_has_the_value_that_was_valid_at_a_time(make_store: Any, supplier: Any) -> None:
    store = make_store(supplier)
    store.put("a", 1, 10)
    store.put("a", 2, 20)

    assert [store.get("a", time) for time in (9, 10, 19, 20, 99)] == [
        None,
        VersionedRecord(1, 10),
        VersionedRecord(1, 10),
        VersionedRecord(2, 20),
        VersionedRecord(2, 20),
    ]
    assert store.get("a") == VersionedRecord(2, 20)
    assert (store["a"], "a" in store, "b" in store) == (2, True, False)
    with pytest.raises(KeyError, match="'b'"):
        store["b"]


@pytest.mark.parametrize("supplier", SUPPLIERS)
def test_put_tells_until_when_the_version_is_valid(make_store: Any, supplier: Any) -> None:
    store = make_store(supplier)

    assert store.put("a", 1, 50) == PUT_RETURN_CODE_VALID_TO_UNDEFINED == -1
    assert store.put("a", 0, 30) == 50
    assert store.put("a", None, 40) == 50
    assert store.put("a", 9, 35) == 40
    assert store.put("b", 1, 200) == PUT_RETURN_CODE_VALID_TO_UNDEFINED
    assert store.put("a", 2, 99) == PUT_RETURN_CODE_NOT_PUT == -(2**63)
    assert store.put("a", 2, 100) == PUT_RETURN_CODE_VALID_TO_UNDEFINED


def test_put_with_result_tells_what_became_of_the_version(make_store: Any) -> None:
    store = make_store()

    assert store.put_with_result("a", 1, 150) == PutResult(150)
    assert store.put_with_result("a", 0, 60) == PutResult(60, valid_to=150)
    assert store.put_with_result("a", 0, 49) == PutResult(49, is_put=False)
    assert store.put_with_result("b", 1, datetime.fromtimestamp(0.2, UTC)) == PutResult(200)
    assert [PutResult(1).is_latest, PutResult(1, 2).is_latest, PutResult(1, None, False).is_latest] == [1, 0, 0]


def test_operators_hear_whether_what_they_put_is_the_newest(make_store: Any) -> None:
    store = make_store()

    assert [store.put_row("a", 1, time) for time in (150, 60, 49)] == [True, False, None]
    assert store.get_row("a") == (1, 150)
    assert store.get_row_as_of("a", 70) == (1, 60)
    assert store.get_row_as_of("a", 55) is None


def test_delete_gives_the_version_that_was_valid_then(make_store: Any) -> None:
    store = make_store()
    store.put("a", 1, 10)
    store.put("a", 2, 20)

    assert store.delete("a", 15) == VersionedRecord(1, 10)
    assert store.delete("a", 30) == VersionedRecord(2, 20)
    assert store.delete("a", 31) is None
    assert history(store, order=ResultOrder.ASCENDING) == [(1, 10, 15), (2, 20, 30)]


def test_a_late_deletion_gives_nothing_and_deletes_nothing(make_store: Any) -> None:
    store = make_store()
    store.put("a", 1, 10)
    store.put("b", 1, 111)

    assert store.delete("a", 10) is None
    assert store.get("a") == VersionedRecord(1, 10)


def test_histories_come_newest_first_unless_told_and_within_bounds(make_store: Any) -> None:
    store = make_store()
    for time in (10, 20, 30):
        store.put("a", time, time)

    assert history(store) == [(30, 30, None), (20, 20, 30), (10, 10, 20)]
    assert history(store, 20, 29) == [(20, 20, 30)]
    assert history(store, 19, None, order=ResultOrder.ASCENDING) == [(10, 10, 20), (20, 20, 30), (30, 30, None)]
    assert history(store, None, 9) == []


def test_a_history_has_the_version_whose_end_is_in_a_later_segment(make_store: Any) -> None:
    """Kafka Streams looks into the segments up to the end of the span only, and misses it."""
    store = make_store()
    store.put("a", 1, 5)
    store.put("a", 2, 95)

    assert history(store, 10, 15) == [(1, 5, 95)]


def test_a_history_from_late_to_early_is_refused(make_store: Any) -> None:
    with pytest.raises(ValueError, match="store 'orders' is asked for a key from 9 to 3; swap them"):
        make_store().get("a", 9, 3)


def test_a_span_is_given_by_position_or_by_name_and_needs_both_bounds(make_store: Any) -> None:
    store = make_store()
    store.put("a", 1, 10)
    wanted = [VersionedRecord(1, 10)]

    assert list(store.get("a", 5, 20)) == list(store.get("a", 5, time_to=20)) == wanted
    assert list(store.get("a", time_from=None, time_to=10, order=ResultOrder.ASCENDING)) == wanted
    with pytest.raises(TypeError, match="store 'orders' is asked for a key from 5 on; give time_to, too, None for no"):
        store.get("a", time_from=5)
    with pytest.raises(TypeError, match="store 'orders' is asked for a key as of 7 and from 5 on; give one"):
        store.get("a", as_of=7, time_from=5, time_to=9)


def test_a_closed_iterator_tells_to_ask_anew(make_store: Any) -> None:
    store = make_store()
    store.put("a", 1, 1)
    records = store.get("a", None, None)
    records.close()

    with pytest.raises(InvalidStateStoreError, match="this iterator over store 'orders' is closed; ask for a new one"):
        next(records)


def test_times_may_be_aware_datetimes(make_store: Any) -> None:
    store = make_store(retention=timedelta(days=1), interval=None)
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    store.put("a", 1, noon)

    assert store.get("a", noon + timedelta(hours=1)) == VersionedRecord(1, int(noon.timestamp() * 1000))
    with pytest.raises(ValueError, match=r"as_of is .* no time zone"):
        store.get("a", datetime(2026, 1, 1))


@pytest.mark.parametrize("call", ["put", "delete"])
def test_negative_timestamps_are_refused(make_store: Any, call: str) -> None:
    arguments = ("a", 1, -1) if call == "put" else ("a", -1)

    with pytest.raises(ValueError, match="the timestamp for store 'orders' is -1; it must not be negative"):
        getattr(make_store(), call)(*arguments)


@pytest.mark.parametrize("call", ["put", "delete", "put_row", "get", "get_row", "get_row_as_of"])
def test_null_keys_are_refused(make_store: Any, call: str) -> None:
    arguments = {"put": (None, 1, 1), "put_row": (None, 1, 1), "delete": (None, 1), "get_row_as_of": (None, 1)}

    with pytest.raises(TypeError, match="the key for store 'orders' is None"):
        getattr(make_store(), call)(*arguments.get(call, (None,)))


def test_a_closed_store_tells_to_ask_for_it_again(make_store: Any) -> None:
    store = make_store()
    store.close()

    calls: list[Callable[[], object]] = [
        lambda: store.get("a"),
        lambda: store.get("a", 1),
        lambda: store.get("a", 1, 2),
        lambda: store.put("a", 1, 1),
        lambda: store.delete("a", 1),
        lambda: store.put_row("a", 1, 1),
        lambda: store.get_row_as_of("a", 1),
    ]
    for call in calls:
        with pytest.raises(InvalidStateStoreError, match="store 'orders' is not open"):
            call()


# What is too late or too old


def test_records_that_come_too_late_are_counted_and_warned_of_once(
    make_store: Any, context: Context, caplog: pytest.LogCaptureFixture
) -> None:
    store = make_store()
    store.put("a", 1, 200)
    with caplog.at_level(logging.WARNING):
        store.put("b", 1, 99)
        store.put("b", 1, 98)

    assert context.metrics.counter("dropped-records-total", "stream-task-metrics", task_id="0_1").total == 2
    (warned,) = caplog.messages
    assert warned == (
        "versioned store 'orders' of task 0_1 does not put records that are older than its history retention of 100 "
        "ms: the first has the time 99, when the newest has 200. Give the store a longer retention if such records "
        "matter"
    )


@pytest.mark.parametrize("supplier", SUPPLIERS)
def test_before_the_history_only_what_is_still_valid_is_found(
    make_store: Any, supplier: Any, caplog: pytest.LogCaptureFixture
) -> None:
    store = make_store(supplier)
    store.put("a", 1, 90)
    store.put("a", 2, 101)
    store.put("b", 1, 50)
    store.put("c", 1, 200)
    with caplog.at_level(logging.WARNING):
        found = store.get("a", 99), store.get("a", 100), store.get("b", 60)

    assert found == (None, VersionedRecord(1, 90), VersionedRecord(1, 50))
    (warned,) = caplog.messages
    assert warned.startswith("versioned store 'orders' of task 0_1 was asked for a value as of 99, which is older than")


@pytest.mark.parametrize("supplier", SUPPLIERS)
def test_versions_that_nobody_can_read_are_dropped_by_segment(make_store: Any, supplier: Any) -> None:
    store = make_store(supplier)
    for time in range(0, 200, 10):
        store.put("a", time, time)
    store.commit(1)
    store.put("a", 300, 300)
    store.commit(2)
    kept = list(store._engine.scan(b"\1", b"\2", False))

    assert [row.timestamp for row in store.raw_rows()] == [190, 300]
    assert len(kept) == 1


def test_a_store_without_retention_keeps_the_newest_value_only(make_store: Any) -> None:
    store = make_store(retention=0)
    store.put("a", 1, 10)
    store.put("a", 2, 20)

    assert store.put("a", 3, 19) == PUT_RETURN_CODE_NOT_PUT
    assert (store.get("a", 19), store.get("a", 20)) == (None, VersionedRecord(2, 20))


# Changelogs, commits, restarts


def test_every_put_is_logged_with_its_time_also_one_that_came_too_late(make_store: Any, context: Context) -> None:
    store = make_store()
    store.put("a", 1, 200)
    store.put("a", 0, 10)
    store.delete("a", 201)
    store.put_row("b", [1], 202)

    assert context.logged == [
        (b"a", b"1", 200, ()),
        (b"a", b"0", 10, ()),
        (b"a", None, 201, ()),
        (b"b", b"[1]", 202, ()),
    ]


def test_a_store_without_logging_logs_nothing(make_store: Any, context: Context) -> None:
    make_store(logging=False).put("a", 1, 1)

    assert context.logged == []


def test_stream_time_and_history_survive_a_restart(make_store: Any) -> None:
    """Kafka Streams forgets both: it takes records then that it would not have taken before."""
    store = make_store(SUPPLIERS[0].values[0])
    store.put("a", 1, 100)
    store.put("a", 2, 150)
    store.put("b", 1, 250)
    store.commit(7)
    store.put("a", 3, 260)
    store.close()
    again = make_store(SUPPLIERS[0].values[0])

    assert again.committed_offset() == 7
    assert again.put("a", 9, 149) == PUT_RETURN_CODE_NOT_PUT
    assert history(again) == [(2, 150, None)]
    assert again.put("a", 4, 160) == PUT_RETURN_CODE_VALID_TO_UNDEFINED
    assert history(again, order=ResultOrder.ASCENDING) == [(2, 150, 160), (4, 160, None)]


@pytest.mark.parametrize("supplier", SUPPLIERS)
def test_restoring_neither_counts_nor_logs(make_store: Any, supplier: Any, context: Context) -> None:
    store = make_store(supplier)
    store.restore([(b"a", b"1", 200, ()), (b"b", b"1", 99, ())])
    store.end_restore()

    assert store.get("a") == VersionedRecord(1, 200)
    assert context.logged == []
    assert context.metrics.counter("dropped-records-total", "stream-task-metrics", task_id="0_1").total == 0


# Suppliers and builders


@pytest.mark.parametrize(
    ("retention_ms", "interval_ms"),
    [(0, 2_000), (9_000, 3_000), (60_000, 20_000), (300_000, 60_000), (3_600_000, 300_000), (86_400_000, 3_600_000)],
)
def test_segments_are_as_long_as_in_kafka_streams(retention_ms: int, interval_ms: int) -> None:
    supplier: Any = Stores.persistent_versioned_key_value_store(NAME, retention_ms)

    assert (supplier.history_retention_ms, supplier.segment_interval_ms) == (retention_ms, interval_ms)


def test_a_cache_is_refused() -> None:
    supplier = Stores.persistent_versioned_key_value_store(NAME, 1)

    with pytest.raises(ValueError, match="store 'orders' is versioned and cannot have a cache; leave out caching=True"):
        Stores.versioned_key_value_store_builder(supplier, *SERDES, caching=True)


def test_lengths_that_make_no_sense_are_refused() -> None:
    make = Stores.persistent_versioned_key_value_store
    with pytest.raises(ValueError, match="history retention of store 'orders' is -1; it must not be negative"):
        make(NAME, -1)
    with pytest.raises(ValueError, match="the segment interval of store 'orders' is 0 ms; it must be at least 1 ms"):
        make(NAME, 5, 0)


def test_a_supplier_and_a_builder_of_different_kinds_are_refused() -> None:
    versioned = Stores.persistent_versioned_key_value_store(NAME, 1)
    plain: Any = Stores.persistent_key_value_store(NAME)

    with pytest.raises(TypeError, match="supplier of a key-value store is PersistentVersionedSupplier"):
        Stores.timestamped_key_value_store_builder(versioned)
    with pytest.raises(TypeError, match="supplier of a versioned store is PersistentKeyValueSupplier"):
        Stores.versioned_key_value_store_builder(plain)
