"""Tables whose rows go by themselves: ``Materialized(time_to_live=)``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from pykstreams import (
    Grouped,
    KGroupedStream,
    KStream,
    KTable,
    Materialized,
    PunctuationType,
    SessionWindows,
    Stores,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
)
from pykstreams.errors import TopologyError
from pykstreams.serdes import LongSerde, StringSerde
from pykstreams.testing import TopologyTestDriver

TEXT, LONG = StringSerde(), LongSerde()
WALL_CLOCK = PunctuationType.WALL_CLOCK_TIME
Rows = list[tuple[Any, Any, int]]
Make = Callable[[StreamsBuilder, "Materialized[str, Any]"], "KTable[str, Any]"]


def config(**settings: object) -> dict[str, object]:
    return {
        "application.id": "app",
        "default.key.serde": TEXT,
        "default.value.serde": TEXT,
        "statestore.cache.max.bytes": 0,
        **settings,
    }


def stream_of(builder: StreamsBuilder, topic: str = "in") -> KStream[str, str]:
    return builder.stream(topic)


def grouped_of(builder: StreamsBuilder, topic: str = "in") -> KGroupedStream[str, str]:
    return stream_of(builder, topic).group_by_key(Grouped(key_serde=TEXT, value_serde=TEXT))


def of_a_topic(builder: StreamsBuilder, kept: Materialized[str, Any]) -> KTable[str, Any]:
    return builder.table("in", materialized=kept)


def of_a_stream(builder: StreamsBuilder, kept: Materialized[str, Any]) -> KTable[str, Any]:
    return stream_of(builder).to_table(materialized=kept)


def of_a_rekeyed_stream(builder: StreamsBuilder, kept: Materialized[str, Any]) -> KTable[str, Any]:
    return stream_of(builder).map(lambda key, value: (key, value)).to_table(materialized=kept)


def joined(builder: StreamsBuilder, kept: Materialized[str, Any]) -> KTable[str, Any]:
    grouped = grouped_of(builder)
    return grouped.reduce(lambda old, new: f"{old} {new}", materialized=kept)


def collected(builder: StreamsBuilder, kept: Materialized[str, Any]) -> KTable[str, Any]:
    grouped = grouped_of(builder)
    return grouped.aggregate(str, lambda _, value, all_of_it: all_of_it + value, materialized=kept)


def cogrouped(builder: StreamsBuilder, kept: Materialized[str, Any]) -> KTable[str, Any]:
    first = grouped_of(builder)
    second = grouped_of(builder, "other")
    both = first.cogroup(lambda _, value, rest: rest + value).cogroup(second, lambda _, value, rest: rest + value)
    return both.aggregate(str, materialized=kept)


def counted(builder: StreamsBuilder, kept: Materialized[str, Any]) -> KTable[str, Any]:
    grouped = grouped_of(builder)
    return grouped.count(materialized=kept.replace(value_serde=LONG)).map_values(str)


TABLES = [of_a_topic, of_a_stream, of_a_rekeyed_stream]
MAKERS = [*TABLES, joined, collected, cogrouped, counted]


class Driven:
    def __init__(self, driver: TopologyTestDriver) -> None:
        self.driver = driver
        self._out = driver.create_output_topic("out", TEXT, TEXT)

    def pipe(self, key: str, value: str | None, time: int, topic: str = "in") -> None:
        self.driver.create_input_topic(topic, TEXT, TEXT).pipe_input(key, value, time)

    def read(self) -> Rows:
        """What has come, with timestamps."""
        return [(row.key, row.value, row.timestamp or 0) for row in self._out.read_records()]

    @property
    def kept(self) -> dict[Any, Any]:
        return self.rows("kept")

    def rows(self, store: str) -> dict[Any, Any]:
        found = self.driver.get_key_value_store(store)
        assert found is not None
        with found.all() as rows:
            return dict(rows)

    @property
    def dropped(self) -> float:
        return self._total("dropped-records-total")

    @property
    def punctuations(self) -> float:
        return self._total("punctuate-total")

    def _total(self, metric: str) -> float:
        return sum(float(one.value) for name, one in self.driver.metrics().items() if name.name == metric)


@contextmanager
def driven(
    make: Make,
    settings: Mapping[str, object] | None = None,
    *,
    by: PunctuationType = PunctuationType.STREAM_TIME,
    ttl: Any = 100,
) -> Iterator[Driven]:
    builder = StreamsBuilder()
    kept: Materialized[str, Any] = Materialized("kept", time_to_live=ttl, time_to_live_by=by)
    make(builder, kept).to_stream().to("out")
    made = config(**(settings or {}))
    with TopologyTestDriver(builder.build(made), made, initial_wall_clock_time=0) as driver:
        yield Driven(driver)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("ttl", [100, timedelta(milliseconds=100)])
def test_a_row_goes_when_stream_time_has_come_to_its_timestamp_and_the_time_to_live(make: Make, ttl: Any) -> None:
    with driven(make, ttl=ttl) as app:
        app.pipe("a", "1", 10)
        app.pipe("b", "1", 109)

        assert (app.read(), set(app.kept)) == ([("a", "1", 10), ("b", "1", 109)], {"a", "b"})

        app.pipe("c", "1", 110)

        assert (sorted(app.read(), reverse=True), set(app.kept)) == ([("c", "1", 110), ("a", None, 110)], {"b", "c"})


@pytest.mark.parametrize("make", MAKERS)
def test_the_tombstone_has_the_time_at_which_the_row_was_due_in_the_changelog_too(make: Make) -> None:
    with driven(make) as app:
        app.pipe("a", "1", 10)
        app.pipe("b", "1", 5000)
        changelog = app.driver.create_output_topic("app-kept-changelog", TEXT, TEXT)
        rows = {(row.key, row.value is None, row.timestamp) for row in changelog.read_records()}

        assert rows == {("a", False, 10), ("b", False, 5000), ("a", True, 110)}


@pytest.mark.parametrize("make", MAKERS)
def test_a_newer_record_of_the_key_lets_the_row_live_on(make: Make) -> None:
    with driven(make) as app:
        app.pipe("a", "1", 10)
        app.pipe("a", "1", 90)
        app.pipe("b", "1", 150)
        app.read()

        assert set(app.kept) == {"a", "b"}

        app.pipe("b", "1", 190)

        assert [row for row in app.read() if row[1] is None] == [("a", None, 190)]


@pytest.mark.parametrize("make", TABLES)
def test_an_older_record_that_would_be_due_is_dropped_and_brings_no_row_back(make: Make) -> None:
    with driven(make) as app:
        app.pipe("a", "1", 10)
        app.pipe("b", "1", 200)
        app.pipe("b", "old", 100)
        app.pipe("a", "old", 90)

        assert (app.kept, app.dropped) == ({"b": "1"}, 2)


@pytest.mark.parametrize("make", TABLES)
def test_an_older_record_that_is_not_due_replaces_the_row_and_its_time_counts(make: Make) -> None:
    with driven(make) as app:
        app.pipe("a", "1", 100)
        app.pipe("a", "older", 50)
        app.pipe("b", "1", 150)

        assert [row for row in app.read() if row[0] == "a"] == [("a", "1", 100), ("a", "older", 50), ("a", None, 150)]


@pytest.mark.parametrize("make", [joined, collected])
def test_an_aggregate_lives_from_the_newest_of_its_records_and_takes_older_ones_as_long(make: Make) -> None:
    with driven(make) as app:
        app.pipe("a", "1", 100)
        app.pipe("a", "2", 20)
        app.pipe("b", "1", 199)
        app.pipe("a", "3", 30)

        assert app.kept["a"].replace(" ", "") == "123"

        app.pipe("b", "1", 200)

        assert set(app.kept) == {"b"}


@pytest.mark.parametrize("make", [joined, collected, cogrouped])
def test_an_aggregate_begins_anew_after_its_row_has_gone(make: Make) -> None:
    with driven(make) as app:
        app.pipe("a", "1", 10)
        app.pipe("a", "2", 110)

        assert app.read() == [("a", "1", 10), ("a", None, 110), ("a", "2", 110)]


@pytest.mark.parametrize("make", TABLES)
def test_a_null_removes_the_row_and_nothing_comes_later(make: Make) -> None:
    with driven(make) as app:
        app.pipe("a", "1", 10)
        app.pipe("a", None, 20)
        app.pipe("b", "1", 200)

        assert app.read() == [("a", "1", 10), ("a", None, 20), ("b", "1", 200)]


@pytest.mark.parametrize("make", MAKERS)
def test_by_the_wall_clock_a_row_goes_without_another_record(make: Make) -> None:
    with driven(make, by=WALL_CLOCK) as app:
        app.pipe("a", "1", 10)
        app.pipe("b", "1", 5000)
        app.read()
        app.driver.advance_wall_clock_time(109)

        assert app.read() == []

        app.driver.advance_wall_clock_time(1)

        assert (app.read(), set(app.kept)) == ([("a", None, 110)], {"b"})


@pytest.mark.parametrize("make", MAKERS)
def test_by_the_wall_clock_a_record_that_is_due_when_it_comes_is_dropped(make: Make) -> None:
    with driven(make, by=WALL_CLOCK) as app:
        app.driver.advance_wall_clock_time(1000)
        app.pipe("a", "1", 900)
        app.pipe("b", "1", 901)

        assert (app.read(), app.dropped) == ([("b", "1", 901)], 1)


def test_tables_below_follow() -> None:
    def below(builder: StreamsBuilder, kept: Materialized[str, Any]) -> KTable[str, Any]:
        table = builder.table("in", materialized=kept)
        upper = table.map_values(str.upper, materialized=Materialized("upper", value_serde=TEXT))
        by_value = table.group_by(lambda key, value: (value, key), Grouped(key_serde=TEXT, value_serde=TEXT))
        by_value.count(materialized=Materialized("counts", key_serde=TEXT, value_serde=LONG)).to_stream().map_values(
            str
        ).to("counts")
        return upper.join(builder.table("in2"), lambda value, other: value + other)

    with driven(below) as app:
        app.pipe("a", "?", 0, "in2")
        app.pipe("a", "x", 10)
        app.pipe("b", "x", 20)
        app.pipe("c", "y", 110)
        upper = app.rows("upper")
        counts = app.driver.create_output_topic("counts", TEXT, TEXT)

        assert upper == {"b": "X", "c": "Y"}
        assert app.read() == [("a", "X?", 10), ("a", None, 110)]
        assert counts.read_key_values() == [("x", "1"), ("x", "2"), ("y", "1"), ("x", "1")]


@pytest.mark.parametrize("make", MAKERS)
def test_a_table_with_a_cache_has_the_same_rows_and_changes_in_the_end(make: Make) -> None:
    piped = [("a", "1", 10), ("b", "1", 20), ("a", "2", 60), ("c", "1", 125), ("a", "3", 130), ("b", "2", 300)]
    found = []
    for cache in (0, 1_000_000):
        with driven(make, {"statestore.cache.max.bytes": cache}) as app:
            last: dict[str, Any] = {}
            for record in piped:
                app.pipe(*record)
                last |= {key: (value, time) for key, value, time in app.read()}
            found.append((app.kept, last))

    assert found[0] == found[1]
    assert found[0][1]["a"] == (None, 230)


def test_a_topic_does_not_serve_as_changelog_where_rows_go_that_it_still_has() -> None:
    with driven(of_a_topic, {"topology.optimization": StreamsConfig.OPTIMIZE}) as app:
        app.pipe("a", "1", 10)
        app.pipe("b", "1", 110)
        changelog = app.driver.create_output_topic("app-kept-changelog", TEXT, TEXT)

        assert [(row.key, row.value) for row in changelog.read_records()] == [("a", "1"), ("b", "1"), ("a", None)]


def test_a_time_to_live_adds_one_store_and_renames_nothing() -> None:
    def described(kept: Materialized[str, str]) -> str:
        builder = StreamsBuilder()
        builder.table("in", materialized=kept).filter(lambda *_: True).to_stream().to("out")
        return str(builder.build().describe())

    with_it, without = described(Materialized("kept", time_to_live=5)), described(Materialized("kept"))

    assert with_it.replace("kept, kept-time-to-live", "kept") == without


REFUSED: list[Callable[[StreamsBuilder, Any], object]] = [
    lambda builder, kept: builder.global_table("in", materialized=kept.replace(store="kept")),
    lambda builder, kept: builder.table("in").filter(lambda *_: True, materialized=kept),
    lambda builder, kept: builder.table("in").filter(lambda *_: True, materialized=kept.replace(store="kept")),
    lambda builder, kept: builder.table("in").map_values(str, materialized=kept),
    lambda builder, kept: builder.table("in").join(builder.table("in2"), min, materialized=kept),
    lambda builder, kept: builder.table("in").group_by(lambda key, value: (value, key)).count(materialized=kept),
    lambda builder, kept: builder.stream("in").group_by_key().windowed_by(TimeWindows(5)).count(materialized=kept),
    lambda builder, kept: builder.stream("in").group_by_key().windowed_by(SessionWindows(5)).count(materialized=kept),
    lambda builder, kept: builder.table(
        "in", materialized=kept.replace(store=Stores.persistent_versioned_key_value_store("kept", 5000))
    ),
    lambda builder, kept: builder.table(
        "in", materialized=kept.replace(store=Stores.persistent_key_value_store("kept"))
    ),
]


@pytest.mark.parametrize("build", REFUSED)
def test_tables_whose_rows_are_not_those_of_records_are_refused(build: Callable[[StreamsBuilder, Any], object]) -> None:
    with pytest.raises(TopologyError, match="asks for a time to live, but"):
        build(StreamsBuilder(), Materialized(time_to_live=timedelta(hours=1)))


def test_options_that_are_no_time_or_no_clock_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 ms"):
        Materialized(time_to_live=0)
    with pytest.raises(TypeError, match="expected a PunctuationType"):
        Materialized(time_to_live=5, time_to_live_by="wall-clock")  # type: ignore[arg-type]


def test_many_rows_that_are_due_at_once_go_some_at_a_time() -> None:
    with driven(of_a_topic, by=WALL_CLOCK) as app:
        for number in range(1200):
            app.pipe(str(number), "1", 0)
        app.read()
        gone = []
        for ms in (100, 1, 1, 1):
            app.driver.advance_wall_clock_time(ms)
            gone.append(len(app.read()))

        assert gone == [500, 500, 200, 0]


@pytest.mark.parametrize("by", PunctuationType)
@pytest.mark.parametrize("make", MAKERS)
def test_for_a_row_that_would_be_due_after_the_end_of_time_nobody_looks(make: Make, by: PunctuationType) -> None:
    with driven(make, {"metrics.recording.level": "DEBUG"}, by=by, ttl=100) as app:
        app.driver.advance_wall_clock_time(2**63 - 51)
        app.pipe("a", "1", 2**63 - 100)
        app.pipe("b", "1", 2**63 - 1)
        for _ in range(50):
            app.driver.advance_wall_clock_time(1)

        assert (app.punctuations, set(app.kept)) == (0, {"a", "b"})


def test_clock_without_a_time_to_live_is_refused() -> None:
    with pytest.raises(ValueError, match=r"time_to_live_by is given without time_to_live, .* time_to_live=timedelta"):
        Materialized("rows", time_to_live_by=PunctuationType.WALL_CLOCK_TIME)
