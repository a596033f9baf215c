"""What stores measure, at each level."""

from __future__ import annotations

import pytest

from pykstreams import SessionWindows, StreamsBuilder, TimeWindows
from pykstreams.core.errors import InvalidStateStoreError
from tests.unit.runtime.metrics.measured import READ, START, all_named, counting, driver, named, texts

IN_MEMORY = {"dsl.store.suppliers.class": "pykstreams.state:InMemoryDslStoreSuppliers"}


def test_gets_and_puts_of_operators_are_measured_at_debug() -> None:
    with driver(counting(), "DEBUG") as on:
        for value in "abc":
            texts(on).pipe_input("k", value)

        assert named(on, "get-rate", rocksdb_state_id="counts") == 3 / 30
        assert named(on, "put-rate", rocksdb_state_id="counts") == 3 / 30
        assert named(on, "put-latency-max") >= named(on, "put-latency-avg") > 0
        assert named(on, "commit-rate") > 0


def test_a_compound_operation_counts_once() -> None:
    with driver(counting(), "DEBUG") as on:
        texts(on).pipe_input("z", "v")  # which is the record that the store writes its changelog for
        before = named(on, "put-rate"), named(on, "get-rate")
        store = on.get_state_store("counts")
        store.put_all([("a", (1, 1)), ("b", (2, 2))])
        store.put_if_absent("c", (3, 3))

        assert (named(on, "put-all-rate"), named(on, "put-if-absent-rate")) == (1 / 30, 1 / 30)
        assert (named(on, "put-rate"), named(on, "get-rate")) == before


def test_iterators_are_followed_until_they_are_closed() -> None:
    with driver(counting(), "DEBUG") as on:
        store = on.get_state_store("counts")
        texts(on).pipe_input("a", "v")
        with store.all():
            assert named(on, "num-open-iterators") == 1
            assert named(on, "oldest-iterator-open-since-ms") > 0

        assert named(on, "num-open-iterators") == 0
        assert named(on, "oldest-iterator-open-since-ms") == 0
        assert named(on, "iterator-duration-avg") > 0
        assert named(on, "all-rate") == 1 / 30


def test_trace_tells_how_old_records_were_when_they_were_put() -> None:
    with driver(counting(), "TRACE") as on:
        texts(on).pipe_input("k", "a", timestamp=START - 12)

        assert named(on, "record-e2e-latency-max", rocksdb_state_id="counts") == 12


def test_a_cache_tells_which_reads_it_could_answer() -> None:
    with driver(counting(), "DEBUG") as on:
        texts(on).pipe_input("k", "a")
        assert named(on, "hit-ratio-max", record_cache_id="counts") == 0
        texts(on).pipe_input("k", "b")

        assert named(on, "hit-ratio-max", record_cache_id="counts") == 1
        assert named(on, "cache-size-bytes-total", task_id="0_0") > 0


def test_properties_of_rocksdb_are_read_when_asked_for() -> None:
    with driver(counting()) as on:
        for key in "abc":
            texts(on).pipe_input(key, "v")

        assert named(on, "estimate-num-keys", rocksdb_state_id="counts") == 3
        assert named(on, "background-errors", rocksdb_state_id="counts") == 0
        assert all_named(on, "num-keys") == {}


def test_statistics_of_rocksdb_are_kept_and_read_at_debug() -> None:
    with driver(counting()) as on:
        texts(on).pipe_input("a", "v")
        assert all_named(on, "bytes-written-total") == {}

    with driver(counting(), "DEBUG") as on:
        for key in "abc":
            texts(on).pipe_input(key, "v")

        assert named(on, "bytes-written-total", rocksdb_state_id="counts") > 0
        assert named(on, "number-file-errors-total", rocksdb_state_id="counts") == 0
        assert named(on, "memtable-bytes-flushed-total", rocksdb_state_id="counts") == 0


def test_a_store_in_memory_tells_its_rows() -> None:
    with driver(counting(), settings=IN_MEMORY) as on:
        for key in "ab":
            texts(on).pipe_input(key, "v")

        assert named(on, "num-keys", in_memory_state_id="counts") == 2
        assert all_named(on, "estimate-num-keys") == {}


@pytest.mark.parametrize(
    ("windows", "scope"),
    [(TimeWindows(1000), "rocksdb-window-state-id"), (SessionWindows(1000), "rocksdb-session-state-id")],
)
def test_windows_and_sessions_are_fetched(windows: TimeWindows | SessionWindows, scope: str) -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in", READ).group_by_key()
    if isinstance(windows, TimeWindows):
        grouped.windowed_by(windows).count()
    else:
        grouped.windowed_by(windows).count()
    with driver(builder, "DEBUG") as on:
        texts(on).pipe_input("k", "a")

        for name in ("fetch-rate", "put-rate"):
            assert [value for key, value in all_named(on, name).items() if scope in str(key)] == [1 / 30]


def test_a_measured_store_that_is_closed_refuses_its_users_as_ever() -> None:
    on = driver(counting(), "DEBUG")
    store = on.get_state_store("counts")
    on.close()

    with pytest.raises(InvalidStateStoreError):
        store.get("a")
