"""Stores of a driver with several partitions: one view of all of them, whichever partition a key lies in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pykstreams import Materialized, SessionWindows, Stores, StreamsBuilder, TimeWindows, Topology, Windowed
from pykstreams.core.windows import Window
from pykstreams.testing import TopologyTestDriver

KEYS = [f"key-{number}" for number in range(20)]
MakeDriver = Callable[..., TopologyTestDriver]


def all_kinds() -> Topology:
    """A store of each kind, with the records of one topic."""
    builder = StreamsBuilder()
    lines = builder.stream("in", str, str)
    grouped = lines.group_by_key()
    grouped.count(materialized="counts")
    grouped.windowed_by(TimeWindows(10)).count(materialized="windows")
    grouped.windowed_by(SessionWindows(10)).count(materialized="sessions")
    history = Stores.persistent_versioned_key_value_store("versions", timedelta(hours=1))
    builder.table("rows", str, str, materialized=Materialized(history))
    return builder.build()


@pytest.fixture(params=[1, 4])
def driver(request: pytest.FixtureRequest, topology_test_driver: MakeDriver) -> TopologyTestDriver:
    driver = topology_test_driver(all_kinds(), partitions=request.param)
    for topic in ("in", "rows"):
        driver.create_input_topic(topic, str, str).pipe_key_values((key, key.upper()) for key in KEYS)
    return driver


@pytest.fixture
def parted(topology_test_driver: MakeDriver) -> TopologyTestDriver:
    driver = topology_test_driver(all_kinds(), partitions=4)
    driver.create_input_topic("in", str, str).pipe_key_values((key, key.upper()) for key in KEYS)
    return driver


def start_of(rows: Any) -> int:
    with rows:
        start: int = next(iter(rows)).key.window.start
    return start


def test_key_value_store_has_the_keys_of_all_partitions(driver: TopologyTestDriver) -> None:
    store: Any = driver.get_key_value_store("counts")

    assert [store.get(key) for key in KEYS] == [1] * len(KEYS)
    assert [store[key] for key in KEYS] == [1] * len(KEYS)
    assert dict(store.all()) == dict.fromkeys(KEYS, 1)
    assert sorted(key for key, _ in store.range("key-1", "key-3")) == sorted(k for k in KEYS if "key-1" <= k <= "key-3")
    assert store.get("none", 7) == 7
    assert "none" not in store
    assert store.name == "counts"


def test_values_with_timestamps_are_those_of_all_partitions(driver: TopologyTestDriver) -> None:
    stamped: Any = driver.get_timestamped_key_value_store("counts")

    assert [stamped[key].value for key in KEYS] == [1] * len(KEYS)


def test_window_store_has_the_windows_of_all_partitions(driver: TopologyTestDriver) -> None:
    store: Any = driver.get_window_store("windows")
    start = start_of(store.all())

    assert [store.fetch_one(key, start) for key in KEYS] == [1] * len(KEYS)
    assert [[row.value for row in store.fetch(key, start, start)] for key in KEYS] == [[1]] * len(KEYS)
    assert sorted(key.key for key, _ in store.fetch_all(start, start)) == sorted(KEYS)
    stamped: Any = driver.get_timestamped_window_store("windows")
    assert [stamped.fetch_one(key, start).value for key in KEYS] == [1] * len(KEYS)


def test_session_store_has_the_sessions_of_all_partitions(driver: TopologyTestDriver) -> None:
    store: Any = driver.get_session_store("sessions")

    assert [[row.value for row in store.fetch(key)] for key in KEYS] == [[1]] * len(KEYS)
    with store.fetch_range(None, None) as rows:
        window = next(iter(rows)).key.window
    assert store[Windowed(KEYS[0], window)] == 1


def test_versioned_store_has_the_rows_of_all_partitions(driver: TopologyTestDriver) -> None:
    store: Any = driver.get_versioned_key_value_store("versions")

    assert [store[key] for key in KEYS] == [key.upper() for key in KEYS]


@pytest.mark.parametrize(
    "write",
    [
        lambda driver: driver.get_key_value_store("counts").put("key-1", 5),
        lambda driver: driver.get_key_value_store("counts").__setitem__("key-1", 5),
        lambda driver: driver.get_key_value_store("counts").__delitem__("key-1"),
        lambda driver: driver.get_window_store("windows").put("key-1", 5, 0),
        lambda driver: driver.get_session_store("sessions").remove(Windowed("key-1", Window(0, 5))),
    ],
)
def test_writes_are_for_the_store_of_one_partition(
    parted: TopologyTestDriver, write: Callable[[TopologyTestDriver], object]
) -> None:
    with pytest.raises(
        AttributeError, match=r"store '\w+' has 4 partitions, .*driver\.get_state_store\('\w+', partition\)"
    ):
        write(parted)


def test_store_of_another_kind_and_one_that_is_not_there_are_as_with_one_partition(parted: TopologyTestDriver) -> None:
    with pytest.raises(ValueError, match=r"store 'windows' is a .*, no KeyValueStore; get_window_store\('windows'\)"):
        parted.get_key_value_store("windows")
    assert parted.get_key_value_store("none") is None
