"""Window stores as the test driver shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from pykstreams import Topology
from pykstreams.core.processor import Processor, ProcessorContext
from pykstreams.core.record import Record
from pykstreams.core.windows import Window, Windowed
from pykstreams.serdes.primitives import StringSerde
from pykstreams.state import Stores, ValueAndTimestamp, ValueTimestampHeaders
from pykstreams.testing import TopologyTestDriver

HEADERS = (("h", b"x"),)


class Puts(Processor[str, str, str, str]):
    """Puts each record into the store, in the form that this takes."""

    def __init__(self, form: Callable[[Record[str, str]], Any]) -> None:
        self.form = form

    def init(self, context: ProcessorContext[str, str]) -> None:
        self.store: Any = context.get_state_store("windows")

    def process(self, record: Record[str, str]) -> None:
        self.store.put(record.key, self.form(record), record.timestamp)


@pytest.fixture
def driver_over() -> Iterator[Any]:
    """Makes drivers whose store has the row ``k -> v`` of the window that starts at 7."""
    with ExitStack() as stack:

        def make(kind: str) -> TopologyTestDriver:
            supplier = Stores.in_memory_window_store("windows", 1_000, 10)
            builders: Any = {
                "plain": (Stores.window_store_builder, lambda record: record.value),
                "timestamped": (
                    Stores.timestamped_window_store_builder,
                    lambda record: ValueAndTimestamp(record.value, record.timestamp),
                ),
                "headers": (
                    Stores.timestamped_window_store_with_headers_builder,
                    lambda record: ValueTimestampHeaders(record.value, record.timestamp, HEADERS),
                ),
            }
            build, form = builders[kind]
            topology = Topology().add_source("source", "in").add_processor("p", lambda: Puts(form), "source")
            topology.add_state_store(build(supplier, StringSerde(), StringSerde()), "p")
            settings = {"application.id": "app", "bootstrap.servers": "none:1"}
            serdes = {"default.key.serde": StringSerde(), "default.value.serde": StringSerde()}
            driver = stack.enter_context(TopologyTestDriver(topology, {**settings, **serdes}))
            driver.create_input_topic("in").pipe_input("k", "v", 7)
            return driver

        yield make


@pytest.mark.parametrize("kind", ["plain", "timestamped", "headers"])
def test_get_window_store_shows_values_alone(driver_over: Any, kind: str) -> None:
    store = driver_over(kind).get_window_store("windows")
    key = Windowed("k", Window(7, 17))

    assert store.fetch_one("k", 7) == "v"
    assert store.fetch_one("k", 8) is None
    assert list(store.fetch("k", 0, 100)) == [(7, "v")]
    assert list(store.fetch_range("a", "z", 0, 100)) == [(key, "v")]
    assert list(store.fetch_all(0, 100)) == [(key, "v")]
    assert list(store.all(reverse=True)) == [(key, "v")]


@pytest.mark.parametrize("kind", ["timestamped", "headers"])
def test_what_is_put_through_a_view_of_values_has_no_timestamp(driver_over: Any, kind: str) -> None:
    driver = driver_over(kind)
    driver.get_window_store("windows").put("k", "new", 7)
    driver.get_window_store("windows").put("other", None, 7)

    assert driver.get_timestamped_window_store("windows").fetch_one("k", 7) == ValueAndTimestamp("new", -1)


@pytest.mark.parametrize("kind", ["timestamped", "headers"])
def test_get_timestamped_window_store_shows_values_and_timestamps(driver_over: Any, kind: str) -> None:
    store = driver_over(kind).get_timestamped_window_store("windows")

    assert store["k", 7] == ValueAndTimestamp("v", 7)

    store["k", 8] = ValueAndTimestamp("w", 9)

    assert list(store.fetch("k", 0, 100, reverse=True)) == [(8, ("w", 9)), (7, ("v", 7))]


def test_get_timestamped_window_store_with_headers_shows_everything(driver_over: Any) -> None:
    driver = driver_over("headers")

    assert driver.get_timestamped_window_store_with_headers("windows").fetch_one("k", 7) == ("v", 7, HEADERS)
    assert driver.get_state_store("windows").fetch_one("k", 7) == ("v", 7, HEADERS)


def test_a_store_of_another_kind_is_refused(driver_over: Any) -> None:
    driver = driver_over("plain")

    with pytest.raises(ValueError, match="store 'windows' is a MeteredWindowStore, no TimestampedWindowStore"):
        driver.get_timestamped_window_store("windows")
    with pytest.raises(ValueError, match="no TimestampedWindowStoreWithHeaders"):
        driver.get_timestamped_window_store_with_headers("windows")
    with pytest.raises(ValueError, match="no KeyValueStore"):
        driver.get_key_value_store("windows")
    assert driver.get_window_store("none") is None


def test_raw_rows_have_key_start_value_and_timestamp(driver_over: Any) -> None:
    plain, timestamped, headers = (
        next(iter(driver_over(kind).raw_store("windows"))) for kind in ("plain", "timestamped", "headers")
    )

    assert (plain.key, plain.start, plain.value, plain.timestamp) == (b"k", 7, b"v", None)
    assert (timestamped.key, timestamped.start, timestamped.value, timestamped.timestamp) == (b"k", 7, b"v", 7)
    assert headers.headers == HEADERS
