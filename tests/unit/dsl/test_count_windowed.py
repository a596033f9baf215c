"""Windows of so many records of a key: ``windowed_by(CountWindows(n))``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykstreams import (
    BuiltInDslStoreSuppliers,
    CountWindows,
    Grouped,
    KStream,
    Materialized,
    PartialWindow,
    StreamsBuilder,
)
from pykstreams.dsl.count_windowed import CountWindowedKStream
from pykstreams.errors import ProcessingError, SerdeError, TopologyError
from pykstreams.serdes import LongSerde, StringSerde
from pykstreams.serdes.partial_windows import PartialWindowSerde
from pykstreams.testing import TopologyTestDriver

TEXT = StringSerde()
Aggregate = Callable[[CountWindowedKStream[str, str]], "KStream[str, Any]"]


class Driven:
    def __init__(self, driver: TopologyTestDriver) -> None:
        self.driver = driver
        self._in = driver.create_input_topic("in", TEXT, TEXT)
        self._out = driver.create_output_topic("out", TEXT, TEXT)

    def pipe(self, key: str | None, value: str | None, time: int = 0) -> None:
        self._in.pipe_input(key, value, time)

    def read(self) -> list[tuple[Any, Any, int | None]]:
        return [(row.key, row.value, row.timestamp) for row in self._out.read_records()]


@contextmanager
def driven(
    aggregate: Aggregate, size: int = 3, more: Mapping[str, object] | None = None, *, rekeyed: bool = False
) -> Iterator[Driven]:
    builder = StreamsBuilder()
    stream: KStream[str, str] = builder.stream("in")
    grouped = (
        stream.group_by(lambda key, value: key, Grouped(key_serde=TEXT, value_serde=TEXT))
        if rekeyed
        else stream.group_by_key(Grouped(key_serde=TEXT, value_serde=TEXT))
    )
    aggregate(grouped.windowed_by(CountWindows(size))).map_values(str).to("out")
    config = {"application.id": "app", "default.key.serde": TEXT, "default.value.serde": TEXT, **(more or {})}
    with TopologyTestDriver(builder.build(), config) as driver:
        yield Driven(driver)


def counted(windows: CountWindowedKStream[str, str]) -> KStream[str, int]:
    return windows.count(materialized=Materialized("kept"))


def reduced(windows: CountWindowedKStream[str, str]) -> KStream[str, str]:
    return windows.reduce(lambda old, new: old + new, materialized=Materialized("kept"))


def aggregated(windows: CountWindowedKStream[str, str]) -> KStream[str, str]:
    return windows.aggregate(lambda: ">", lambda _, value, rest: rest + value, materialized=Materialized("kept"))


@pytest.mark.parametrize("rekeyed", [False, True])
@pytest.mark.parametrize(("aggregate", "expected"), [(counted, "3"), (reduced, "abc"), (aggregated, ">abc")])
def test_a_window_is_forwarded_once_when_it_is_full_and_the_next_record_begins_another(
    aggregate: Aggregate, expected: str, rekeyed: bool
) -> None:
    with driven(aggregate, rekeyed=rekeyed) as app:
        for value in "abcd":
            app.pipe("k", value)
        app.pipe("other", "x")

        assert app.read() == [("k", expected, 0)]


def test_the_records_of_each_key_count_for_themselves() -> None:
    with driven(reduced, 2) as app:
        for key, value in ("x1", "y1", "y2", "x2"):
            app.pipe(key, value)

        assert app.read() == [("y", "12", 0), ("x", "12", 0)]


def test_a_result_has_the_largest_timestamp_of_its_records() -> None:
    with driven(reduced) as app:
        for value, time in (("a", 5), ("b", 90), ("c", 7), ("d", 1), ("e", 2), ("f", 3)):
            app.pipe("k", value, time)

        assert app.read() == [("k", "abc", 90), ("k", "def", 3)]


def test_records_without_key_or_value_are_dropped_and_do_not_count() -> None:
    with driven(reduced, 2) as app:
        app.pipe("k", "a")
        app.pipe("k", None)
        app.pipe(None, "x")
        app.pipe("k", "b")
        dropped = [one.value for name, one in app.driver.metrics().items() if name.name == "dropped-records-total"]

        assert (app.read(), dropped) == ([("k", "ab", 0)], [2.0])


def test_windows_of_one_record_are_forwarded_at_once_and_need_no_row() -> None:
    with driven(aggregated, 1) as app:
        app.pipe("k", "a")
        changelog = app.driver.create_output_topic("app-kept-changelog", TEXT, TEXT)

        assert (app.read(), changelog.is_empty) == ([("k", ">a", 0)], True)


def test_what_is_not_full_can_be_queried_and_lies_in_the_changelog() -> None:
    with driven(reduced, more={"statestore.cache.max.bytes": 0}) as app:
        for value in "abcde":
            app.pipe("k", value)
        changelog = app.driver.create_output_topic("app-kept-changelog", TEXT, PartialWindowSerde(TEXT))

        kept = app.driver.get_key_value_store("kept")
        assert kept is not None
        assert kept.get("k") == PartialWindow(2, "de")
        assert [row.value for row in changelog.read_records()] == [
            PartialWindow(1, "a"),
            PartialWindow(2, "ab"),
            None,
            PartialWindow(1, "d"),
            PartialWindow(2, "de"),
        ]


def test_an_aggregate_may_be_null_for_a_while() -> None:
    def last_but_x(windows: CountWindowedKStream[str, str]) -> KStream[str, Any]:
        return windows.aggregate(lambda: None, lambda _, value, rest: None if value == "x" else value)

    with driven(last_but_x, more={"statestore.cache.max.bytes": 0}) as app:
        for value in "axb":
            app.pipe("k", value)

        assert app.read() == [("k", "b", 0)]


def test_a_record_of_which_the_aggregator_fails_does_not_count() -> None:
    def refusing(windows: CountWindowedKStream[str, str]) -> KStream[str, str]:
        return windows.aggregate(str, lambda _, value, rest: rest + str(int(value)))

    with driven(refusing, 2) as app:
        app.pipe("k", "1")
        with pytest.raises(ProcessingError):
            app.pipe("k", "x")

        assert app.read() == []


@pytest.mark.parametrize("cache", [0, 1_000_000])
@pytest.mark.parametrize("suppliers", [BuiltInDslStoreSuppliers.IN_MEMORY, BuiltInDslStoreSuppliers.ROCKS_DB])
@settings(max_examples=10, deadline=None)
@given(size=st.integers(1, 4), keys=st.text("abc", max_size=30))
def test_results_are_those_of_lists_that_are_cut_into_pieces(suppliers: Any, cache: int, size: int, keys: str) -> None:
    expected = []
    lists: dict[str, list[str]] = {}
    with driven(reduced, size, {"dsl.store.suppliers.class": suppliers, "statestore.cache.max.bytes": cache}) as app:
        for number, key in enumerate(keys):
            app.pipe(key, f"{number},")
            lists.setdefault(key, []).append(f"{number},")
            if len(lists[key]) == size:
                expected.append((key, "".join(lists.pop(key)), 0))

        assert app.read() == expected


def test_sizes_that_are_no_number_of_records_and_times_to_live_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        CountWindows(0)
    with pytest.raises(TypeError, match="a number of records"):
        CountWindows(2.0)  # type: ignore[arg-type]
    stream: KStream[str, str] = StreamsBuilder().stream("in")
    windows = stream.group_by_key().windowed_by(CountWindows(5))
    with pytest.raises(TopologyError, match="wait until they are full"):
        windows.count(materialized=Materialized(time_to_live=5))


def test_bytes_that_are_no_partial_window_are_refused() -> None:
    serde: PartialWindowSerde[Any] = PartialWindowSerde(LongSerde())

    assert serde.deserialize("topic", serde.serialize("topic", PartialWindow(7, None))) == PartialWindow(7, None)
    with pytest.raises(SerdeError, match="expected a size and a value"):
        serde.deserialize("topic", b"\x00")
