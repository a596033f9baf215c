"""Interactive queries, version 1: what a reader of a running application gets, and what it is told instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pykstreams import (
    Consumed,
    KGroupedStream,
    Materialized,
    QueryableStoreType,
    QueryableStoreTypes,
    Serdes,
    SessionWindows,
    Stores,
    StreamsBuilder,
    TimeWindows,
    ValueAndTimestamp,
    Window,
    Windowed,
)
from pykstreams.core.errors import (
    InvalidStateStoreError,
    InvalidStateStorePartitionError,
    StateStoreMigratedError,
    StreamsRebalancingError,
    UnknownStateStoreError,
)
from pykstreams.runtime.queries import local_store
from pykstreams.state import ResultOrder, StateStore, ValueTimestampHeaders, VersionedRecord
from tests.unit.runtime.queries.queried import TOPIC, Application

TYPES = QueryableStoreTypes
TEXT = Serdes.string()
Make = Callable[..., Application]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Application] = []

    def build(builder: StreamsBuilder, *, start: bool = True, **more: Any) -> Application:
        made.append(Application(builder, tmp_path, **more))
        return made[-1].start() if start else made[-1]

    yield build
    for one in made:
        one.close()


def table(store: Any = "prices", *, caching: bool = True) -> StreamsBuilder:
    builder = StreamsBuilder()
    builder.table(TOPIC, materialized=Materialized(store, caching=caching))
    return builder


def versioned() -> StreamsBuilder:
    return table(Stores.persistent_versioned_key_value_store("prices", 1000), caching=False)


def windowed() -> StreamsBuilder:
    builder = StreamsBuilder()
    stream: KGroupedStream[str, str] = builder.stream(TOPIC).group_by_key()
    stream.windowed_by(TimeWindows(10, grace=1000)).count(materialized=Materialized("counts"))
    return builder


def sessions() -> StreamsBuilder:
    builder = StreamsBuilder()
    stream: KGroupedStream[str, str] = builder.stream(TOPIC).group_by_key()
    stream.windowed_by(SessionWindows(5, grace=1000)).count(materialized=Materialized("counts"))
    return builder


@pytest.mark.parametrize("caching", [True, False], ids=["cached", "uncached"])
def test_value_can_be_read_before_the_commit_that_writes_it(make: Make, caching: bool) -> None:
    app = make(table(caching=caching))
    app.feed(("a", "1", 5), ("b", "2", 6), ("a", "3", 7))
    prices = app.store("prices", TYPES.KEY_VALUE_STORE)

    assert (prices.get("a"), prices["b"], prices.get("c"), prices.get("c", "none")) == ("3", "2", None, "none")
    assert ("a" in prices, "c" in prices) == (True, False)
    with pytest.raises(KeyError):
        prices["c"]


def test_store_with_timestamps_is_read_with_and_without_them(make: Make) -> None:
    app = make(table())
    app.feed(("a", "1", 5))

    assert app.store("prices", TYPES.TIMESTAMPED_KEY_VALUE_STORE).get("a") == ValueAndTimestamp("1", 5)
    with app.store("prices", TYPES.TIMESTAMPED_KEY_VALUE_STORE).all() as rows:
        assert list(rows) == [("a", ValueAndTimestamp("1", 5))]
    with app.store("prices", TYPES.KEY_VALUE_STORE).all() as rows:
        assert list(rows) == [("a", "1")]


def test_store_with_headers_is_read_in_three_ways(make: Make) -> None:
    app = make(table(Stores.persistent_timestamped_key_value_store_with_headers("prices")))
    app.feed(("a", "1", 5))

    assert app.store("prices", TYPES.KEY_VALUE_STORE).get("a") == "1"
    assert app.store("prices", TYPES.TIMESTAMPED_KEY_VALUE_STORE).get("a") == ValueAndTimestamp("1", 5)
    with_headers = app.store("prices", TYPES.TIMESTAMPED_KEY_VALUE_STORE_WITH_HEADERS).get("a")
    assert with_headers == ValueTimestampHeaders("1", 5, ())


def test_rows_of_several_partitions_come_one_partition_after_the_other(make: Make) -> None:
    app = make(table(), partitions=2)
    app.feed(("b", "1", 5), ("d", "1", 5), partition=1)
    app.feed(("c", "1", 5), ("a", "1", 5), ("e", "1", 5), partition=0)
    prices = app.store("prices", TYPES.KEY_VALUE_STORE)

    def keys(rows: Any) -> list[str]:
        with rows:
            return [key for key, _ in rows]

    assert keys(prices.all()) == ["a", "c", "e", "b", "d"]
    assert keys(prices.all(reverse=True)) == ["e", "c", "a", "d", "b"]
    assert keys(prices.range("b", "d")) == ["c", "b", "d"]
    assert keys(prices.range("b", None, reverse=True)) == ["e", "c", "d", "b"]
    assert keys(prices.prefix_scan("b", TEXT.serializer)) == ["b"]
    app.commit()
    assert prices.approximate_num_entries() == 5


def test_partition_narrows_a_store_to_one_task(make: Make) -> None:
    app = make(table(), partitions=2)
    app.feed(("a", "0", 5), partition=0)
    app.feed(("b", "1", 5), partition=1)
    second = app.store("prices", TYPES.KEY_VALUE_STORE, partition=1)

    assert (second.get("a"), second.get("b")) == (None, "1")
    with pytest.raises(
        InvalidStateStorePartitionError,
        match=r"^partition 7 of store 'prices' is not in this process; ask the instance that has it$",
    ):
        app.store("prices", TYPES.KEY_VALUE_STORE, partition=7).get("a")


def test_versioned_store_is_read_as_of_a_time(make: Make) -> None:
    app = make(versioned())
    app.feed(("a", "1", 100), ("a", "2", 200), ("a", None, 300), ("b", "9", 2000), ("a", "3", 1500))
    prices = app.store("prices", TYPES.VERSIONED_KEY_VALUE_STORE)

    assert prices.get("a") == VersionedRecord("3", 1500)
    assert prices["a"] == "3"
    assert ("a" in prices, "z" in prices) == (True, False)
    assert prices.get("a", 1499) is None
    assert prices.get("a", datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC)) == VersionedRecord("3", 1500)
    with prices.get("a", None, None, ResultOrder.ASCENDING) as found:
        assert list(found) == [VersionedRecord("3", 1500)]
    with prices.get("nobody", None, None) as found:
        assert list(found) == []
    with pytest.raises(ValueError, match="has no time zone"):
        prices.get("a", datetime(2026, 1, 1))
    with pytest.raises(KeyError):
        prices["z"]


def test_version_that_was_replaced_is_found_by_its_time(make: Make) -> None:
    app = make(versioned())
    app.feed(("a", "1", 100), ("a", "2", 200), ("a", "3", 300))
    prices = app.store("prices", TYPES.VERSIONED_KEY_VALUE_STORE)

    assert [prices.get("a", time) for time in (99, 100, 199, 250)] == [
        None,
        VersionedRecord("1", 100),
        VersionedRecord("1", 100),
        VersionedRecord("2", 200),
    ]
    with prices.get("a", 150, 250) as found:
        assert list(found) == [VersionedRecord("2", 200, 300), VersionedRecord("1", 100, 200)]


def test_windows_of_keys_are_read_by_their_starts(make: Make) -> None:
    app = make(windowed())
    app.feed(("a", "x", 5), ("a", "x", 7), ("b", "x", 12), ("a", "x", 25))
    counts = app.store("counts", TYPES.WINDOW_STORE)
    first, second, third = (Windowed(key, Window(start, start + 10)) for key, start in (("a", 0), ("b", 10), ("a", 20)))

    assert (counts.fetch_one("a", 0), counts["b", 10], counts.fetch_one("a", 10)) == (2, 1, None)
    assert (("a", 20) in counts, ("a", 30) in counts) == (True, False)
    with counts.fetch("a", 0, 100) as rows:
        assert list(rows) == [(0, 2), (20, 1)]
    with counts.fetch("a", 0, 100, reverse=True) as rows:
        assert list(rows) == [(20, 1), (0, 2)]
    with counts.fetch("nobody", 0, 100) as rows:
        assert list(rows) == []
    with counts.fetch_all(0, 10) as rows:
        assert list(rows) == [(first, 2), (second, 1)]
    with counts.fetch_range("a", "a", 0, 100) as rows:
        assert list(rows) == [(first, 2), (third, 1)]
    with counts.all() as rows:
        assert set(rows) == {(first, 2), (second, 1), (third, 1)}
    with app.store("counts", TYPES.TIMESTAMPED_WINDOW_STORE).fetch("a", 0, 0) as rows:
        assert list(rows) == [(0, ValueAndTimestamp(2, 7))]
    with pytest.raises(KeyError):
        counts["a", 10]


def test_sessions_of_keys_are_read(make: Make) -> None:
    app = make(sessions(), partitions=2)
    app.feed(("a", "x", 5), ("a", "x", 7), ("b", "x", 8), partition=1)
    app.feed(("c", "x", 30), partition=0)
    counts = app.store("counts", TYPES.SESSION_STORE)
    first, other, third = Windowed("a", Window(5, 7)), Windowed("b", Window(8, 8)), Windowed("c", Window(30, 30))

    assert counts.fetch_session("a", 5, 7) == 2
    assert counts[other] == 1
    assert (first in counts, Windowed("a", Window(5, 8)) in counts) == (True, False)
    with counts.fetch("a") as rows:
        assert list(rows) == [(first, 2)]
    with counts.find_sessions("a", 8, 100) as rows:
        assert list(rows) == []
    with counts.find_sessions_range("a", "c", 0, 100) as rows:
        assert set(rows) == {(first, 2), (other, 1), (third, 1)}
    with counts.fetch_range("b", None) as rows:
        assert set(rows) == {(other, 1), (third, 1)}
    with pytest.raises(KeyError):
        counts[Windowed("z", Window(0, 1))]


@pytest.mark.parametrize(
    ("built", "kind", "read", "arguments"),
    [
        (table, TYPES.KEY_VALUE_STORE, "get", (None,)),
        (windowed, TYPES.WINDOW_STORE, "fetch_one", (None, 0)),
        (versioned, TYPES.VERSIONED_KEY_VALUE_STORE, "get", (None,)),
        (versioned, TYPES.VERSIONED_KEY_VALUE_STORE, "get", (None, 1, 2)),
    ],
)
def test_null_key_is_refused(make: Make, built: Any, kind: Any, read: str, arguments: tuple[Any, ...]) -> None:
    app = make(built())
    store = app.store("counts" if built is windowed else "prices", kind)

    with pytest.raises(TypeError, match="is None; a key must not be None"):
        getattr(store, read)(*arguments)


def test_reading_does_not_fill_the_cache(make: Make) -> None:
    """What a read would put into a full cache would evict, and so forward, on the reader's thread."""
    app = make(table(), cache_bytes=300)
    app.feed(*((f"key-{number}", "x" * 50, number) for number in range(20)))
    app.commit()
    cache = app.by_partition[0].stores["prices"]._cache
    before = dict(cache._entries)
    prices = app.store("prices", TYPES.KEY_VALUE_STORE)

    assert [prices.get(f"key-{number}") for number in range(20)] == ["x" * 50] * 20
    assert cache._entries == before


def test_iterator_shows_what_was_there_when_it_was_made(make: Make) -> None:
    """Its rows are read in several turns, between which records are processed and committed."""
    app = make(table())
    count = 3 * local_store.FIRST_ROWS
    app.feed(*((f"{number:05}", "old", number) for number in range(count)))
    app.commit()
    app.feed(("00000", "cached", 9))

    with app.store("prices", TYPES.KEY_VALUE_STORE).all() as rows:
        found = [next(rows)]
        app.feed(*((f"{number:05}", "new", number) for number in range(0, count, 2)), ("99999", "new", 1))
        app.commit()
        found += rows

    assert found == [("00000", "cached"), *((f"{number:05}", "old") for number in range(1, count))]


def test_iterator_fails_when_its_store_is_closed_instead_of_ending(make: Make) -> None:
    app = make(table(), partitions=2)
    app.feed(*((f"{number:05}", "v", number) for number in range(1000)))
    rows = app.store("prices", TYPES.KEY_VALUE_STORE).all()
    next(rows)
    app.close()

    gone = (
        r"^store 'prices' of task 0_0 is not open: its task was closed, is being made ready, or has moved to another "
        r"instance; ask again, or ask the instance that has it now$"
    )
    with pytest.raises(StateStoreMigratedError, match=gone):
        list(rows)
    with pytest.raises(StateStoreMigratedError, match=gone):
        next(rows)
    rows.close()
    with pytest.raises(InvalidStateStoreError, match="this iterator over store 'prices' is closed"):
        next(rows)


@pytest.mark.parametrize("store", ["prices", Stores.in_memory_key_value_store("prices")], ids=["rocksdb", "memory"])
def test_iterator_fails_when_another_task_has_taken_up_its_store(make: Make, store: Any) -> None:
    """A running task becomes a standby task: the store is closed, and open again, before the iterator goes on."""
    app = make(table(store))
    app.feed(*((f"{number:05}", "v", number) for number in range(1000)))
    before = app.by_partition[0].stores["prices"]
    with app.store("prices", TYPES.KEY_VALUE_STORE).all() as rows:
        next(rows)
        taken_up = app.hand_over(0)

        assert taken_up.stores["prices"] is before
        assert before.is_open
        with pytest.raises(StateStoreMigratedError, match=r"^store 'prices' of task 0_0 is not open: its task was"):
            list(rows)


def test_partition_that_is_gone_when_it_is_its_turn_is_an_error(make: Make) -> None:
    app = make(table(), partitions=2)
    app.feed(("a", "1", 5), partition=0)
    app.feed(("b", "1", 5), partition=1)

    with app.store("prices", TYPES.KEY_VALUE_STORE).all() as rows:
        app.by_partition[1].close()
        assert next(rows).key == "a"
        for _ in range(2):
            with pytest.raises(StateStoreMigratedError, match="store 'prices' of task 0_1 is not open"):
                next(rows)


def test_iterator_that_is_left_open_warns_and_lets_go(make: Make) -> None:
    app = make(table())
    app.feed(*((f"{number:05}", "v", number) for number in range(1000)))
    rows = app.store("prices", TYPES.KEY_VALUE_STORE).all()

    with pytest.warns(ResourceWarning, match="an iterator over store 'prices' was left open"):
        del rows


def test_store_of_a_restoring_task_is_read_if_stale_stores_are_wanted(make: Make) -> None:
    app = make(table(), start=False)
    app.all_running = False
    app.restored[0][0].restore([(b"a", b"1", 5, ())])

    assert app.store("prices", TYPES.KEY_VALUE_STORE, stale=True).get("a") == "1"
    with app.store("prices", TYPES.KEY_VALUE_STORE, stale=True).all() as rows:
        assert list(rows) == [("a", "1")]
    with pytest.raises(
        StreamsRebalancingError,
        match=r"^store 'prices' cannot be read now: worker-1 has not got all of its tasks running; ask again, or read "
        r"what is there with enable_stale_stores=True$",
    ):
        app.store("prices", TYPES.KEY_VALUE_STORE).get("a")


def test_store_that_is_being_made_ready_cannot_be_read_yet(make: Make) -> None:
    app = make(table(), start=False)
    restored = app.restored[0][0]
    store = app.store("prices", TYPES.KEY_VALUE_STORE, stale=True)
    seen: list[str] = []

    def end_restore() -> None:
        with pytest.raises(StateStoreMigratedError, match="is being made ready"):
            store.get("a")
        seen.append("ended")

    restored._store.end_restore = end_restore
    restored.end_restore()

    assert seen == ["ended"]
    assert store.get("a") is None


def test_running_partition_is_read_while_others_are_restored_only_if_stale(make: Make) -> None:
    app = make(table(), partitions=2)
    app.feed(("a", "1", 5), partition=0)
    app.all_running = False

    with pytest.raises(StreamsRebalancingError):
        app.store("prices", TYPES.KEY_VALUE_STORE, partition=0).get("a")
    assert app.store("prices", TYPES.KEY_VALUE_STORE, partition=0, stale=True).get("a") == "1"


def test_store_without_tasks_here_has_moved(make: Make) -> None:
    app = make(table())
    app.started.clear()

    with pytest.raises(
        StateStoreMigratedError,
        match=r"^no partition of store 'prices' is in this process: they have moved to other instances, or have not "
        r"come yet; ask again, or ask the instances that have them$",
    ):
        app.store("prices", TYPES.KEY_VALUE_STORE).get("a")


def test_store_that_the_topology_has_not_is_named_with_those_it_has(make: Make) -> None:
    app = make(table())

    with pytest.raises(UnknownStateStoreError, match=r"^the topology has no store 'price'; its stores are: 'prices'$"):
        app.store("price", TYPES.KEY_VALUE_STORE)


def test_store_of_another_kind_is_refused_with_the_types_that_fit(make: Make) -> None:
    app = make(table())

    with pytest.raises(
        InvalidStateStoreError,
        match=r"^store 'prices' is a MeteredTimestampedKeyValueStore, which QueryableStoreTypes.WINDOW_STORE does not "
        r"read; take QueryableStoreTypes.KEY_VALUE_STORE, QueryableStoreTypes.TIMESTAMPED_KEY_VALUE_STORE$",
    ):
        app.store("prices", TYPES.WINDOW_STORE).fetch_one("a", 0)


def test_each_read_asks_whether_the_application_still_runs(make: Make) -> None:
    app = make(table())
    prices = app.store("prices", TYPES.KEY_VALUE_STORE)
    app.checks.append(InvalidStateStoreError("stopped"))

    with pytest.raises(InvalidStateStoreError, match="stopped"):
        prices.get("a")


class Kept(StateStore):
    """A user's store of the last value."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.last: Any = None
        self._open = False

    @property
    def name(self) -> str:
        return self._name

    @property
    def persistent(self) -> bool:
        return False

    @property
    def is_open(self) -> bool:
        return self._open

    def init(self, context: Any, root: Any) -> None:
        self._open = True
        context.register(root, lambda key, value: None)

    def close(self) -> None:
        self._open = False


class LastValue(QueryableStoreType[Callable[[], list[Any]]]):
    """Reads the last values of all partitions."""

    def accepts(self, store: StateStore) -> bool:
        return isinstance(store, Kept)

    def create(self, provider: Any, store_name: str) -> Callable[[], list[Any]]:
        return lambda: [store.read(lambda one: one.last) for store in provider.stores(store_name, self)]


def test_store_of_a_user_is_read_by_a_type_of_theirs(make: Make) -> None:
    from pykstreams import Processor
    from pykstreams.state import StoreBuilder, StoreSupplier

    class Supplier(StoreSupplier[Kept]):
        name = "last"
        metrics_scope = "own"

        def get(self) -> Kept:
            return Kept("last")

    class Keep(Processor[str, str, str, str]):
        def process(self, record: Any) -> None:
            self.context.get_state_store("last").last = record.value

    builder = StreamsBuilder()
    builder.add_state_store(StoreBuilder(Supplier(), logging=False))
    builder.stream(TOPIC, Consumed(key_serde=TEXT, value_serde=TEXT)).process(Keep, "last")
    app = make(builder, partitions=2)
    app.feed(("a", "1", 5), partition=1)

    assert app.store("last", LastValue())() == [None, "1"]
    with pytest.raises(
        InvalidStateStoreError, match=r"'last' is a Kept, which .* does not read; take a QueryableStoreType of your own"
    ):
        app.store("last", TYPES.KEY_VALUE_STORE)


def test_copies_are_read_by_those_who_take_stale_stores(make: Make) -> None:
    app = make(table(), partitions=2)
    app.feed(("a", "1", 1), partition=0)
    app.feed(("b", "2", 1), partition=1)
    app.keep_copy(1)
    prices = app.store("prices", TYPES.KEY_VALUE_STORE)
    stale = app.store("prices", TYPES.KEY_VALUE_STORE, stale=True)

    assert [prices.get(key) for key in "ab"] == ["1", None]
    assert [stale.get(key) for key in "ab"] == ["1", "2"]
    with pytest.raises(InvalidStateStorePartitionError):
        app.store("prices", TYPES.KEY_VALUE_STORE, partition=1).get("b")
    assert app.store("prices", TYPES.KEY_VALUE_STORE, partition=1, stale=True).get("b") == "2"


def test_task_of_a_worker_is_read_in_place_of_its_copy(make: Make) -> None:
    app = make(table())
    app.feed(("a", "1", 1))
    app.standbys.append(app.by_partition[0])

    with app.store("prices", TYPES.KEY_VALUE_STORE, stale=True).all() as rows:
        assert [tuple(row) for row in rows] == [("a", "1")]
