"""Non-key joins as a user writes them: what is sent where, selected keys that collide, windows, nulls and errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pykstreams import (
    Grouped,
    KStream,
    KTable,
    Materialized,
    Produced,
    Serdes,
    StreamsBuilder,
    StreamsConfig,
    TimeWindows,
    Topology,
    Windowed,
)
from pykstreams.errors import LogAndContinueProcessingExceptionHandler, ProcessingError
from pykstreams.processors.foreign_keys.selected_keys import COLLISIONS
from pykstreams.serdes import TimeWindowedSerde
from pykstreams.testing import TopologyTestDriver

CONFIG: dict[str, Any] = {
    "application.id": "app",
    "default.key.serde": Serdes.string(),
    "default.value.serde": Serdes.string(),
    "statestore.cache.max.bytes": 0,
}
GO_ON = {"processing.exception.handler": LogAndContinueProcessingExceptionHandler}


def mapper(key: str, value: str) -> str | None:
    if value == "bad":
        raise ValueError(f"cannot read {value!r}")
    return value[0] if value[0] != "-" else None


def pair(key: str | None, mapped: str | None) -> str:
    return f"{key}/{mapped}"


def both(value: str | None, other: str | None) -> str | None:
    return None if other == "hide" else f"{value}+{other}"


def build(kind: str = "join", selector: Callable[[Any, Any], Any] = pair, **options: Any) -> Topology:
    builder = StreamsBuilder()
    this: KTable[str, str] = builder.table("this")
    joined: KTable[str, str] = getattr(this, kind)(
        builder.table("other"), both, mapper=mapper, selector=selector, **options
    )
    joined.to_stream().to("out")
    return builder.build()


class NonKeyRun:
    """A join in a driver with four partitions; ``this`` and ``other`` give the changes that a record makes."""

    def __init__(self, driver: TopologyTestDriver) -> None:
        self.driver = driver
        self._this, self._other = driver.create_input_topic("this"), driver.create_input_topic("other")
        self._out = driver.create_output_topic("out")

    def this(self, key: str, value: str | None, time: int = 0, headers: Any = ()) -> list[Any]:
        self._this.pipe_input(key, value, time, headers=headers)
        return self._changes()

    def other(self, key: str, value: str | None, time: int = 0) -> list[Any]:
        self._other.pipe_input(key, value, time)
        return self._changes()

    def metric(self, name: str) -> float:
        return sum(metric.value for found, metric in self.driver.metrics().items() if found.name == name)

    def _changes(self) -> list[Any]:
        return [(record.key, record.value, record.timestamp) for record in self._out.read_records()]


@contextmanager
def running(*args: Any, config: dict[str, Any] | None = None, **options: Any) -> Iterator[NonKeyRun]:
    with TopologyTestDriver(build(*args, **options), StreamsConfig(CONFIG | (config or {})), partitions=4) as driver:
        yield NonKeyRun(driver)


# What is joined


def test_row_is_joined_with_the_row_of_its_mapped_key_under_the_selected_key() -> None:
    with running() as run:
        assert run.this("a", "x1", 5) == []
        assert run.other("x", "X", 3) == [("a/x", "x1+X", 5)]
        assert run.other("x", "Y", 7) == [("a/x", "x1+Y", 7)]
        assert run.this("a", "x2", 6) == [("a/x", "x2+Y", 7)]
        assert run.other("x", None, 8) == [("a/x", None, 8)]


def test_mapped_key_that_changes_takes_back_one_row_and_brings_another() -> None:
    with running() as run:
        run.other("x", "X")
        run.other("y", "Y")
        run.this("a", "x1", 1)

        assert set(run.this("a", "y1", 2)) == {("a/x", None, 2), ("a/y", "y1+Y", 2)}
        assert run.other("x", "Z", 3) == []
        assert run.this("a", None, 4) == [("a/y", None, 4)]


def test_left_join_calls_the_selector_with_none_for_rows_without_partner() -> None:
    with running("left_join") as run:
        assert run.this("a", "x1", 1) == [("a/None", "x1+None", 1)]
        assert set(run.other("x", "X", 2)) == {("a/None", None, 2), ("a/x", "x1+X", 2)}
        assert run.this("b", "-1", 3) == [("b/None", "-1+None", 3)]
        assert run.this("b", None, 4) == [("b/None", None, 4)]


def test_outer_join_calls_the_selector_with_none_for_rows_that_no_row_is_mapped_to() -> None:
    with running("outer_join") as run:
        assert run.other("x", "X", 1) == [("None/x", "None+X", 1)]
        assert set(run.this("a", "x1", 2)) == {("None/x", None, 2), ("a/x", "x1+X", 2)}
        assert set(run.this("a", "-1", 3)) == {("None/x", "None+X", 3), ("a/x", None, 3), ("a/None", "-1+None", 3)}


def test_joiner_that_gives_none_gives_no_row() -> None:
    with running() as run:
        run.other("x", "X")
        run.this("a", "x1", 1)

        assert run.other("x", "hide", 2) == [("a/x", None, 2)]
        assert run.other("x", "Y", 3) == [("a/x", "x1+Y", 3)]


def test_headers_of_records_are_kept_and_the_mapped_key_is_not_among_them() -> None:
    with running() as run:
        run.other("x", "X")
        run.driver.create_input_topic("this").pipe_input("a", "x1", headers=[("trace", b"7"), ("mapped-key", b"mine")])
        (record,) = run.driver.create_output_topic("out").read_records()

    assert [*record.headers] == [("trace", b"7"), ("mapped-key", b"mine")]


# The repartition topics


def test_repartition_topic_has_the_row_as_it_is_in_the_partition_of_the_mapped_key() -> None:
    with running(name="join") as run:
        run.other("x", "X")
        run.this("a", "x1")
        run.this("a", None)
        sent = run.driver.take_produced()
        rows = [record for record in sent if record.topic == "app-join-repartition"]

    assert [(row.key, row.value, row.headers) for row in rows] == [
        (b"a", b"x1", (("mapped-key", b"x"),)),
        (b"a", None, (("mapped-key", b"x"),)),
    ]
    assert {row.partition for row in rows} == {2}


def test_repartition_topics_are_not_compacted_and_the_stores_have_changelogs() -> None:
    plan = build(name="join").plan(StreamsConfig(CONFIG))
    policies = {topic.name: topic.config["cleanup.policy"] for topic in plan.internal_topics}

    assert policies == {
        "app-join-repartition": "delete",
        "app-join-selected-repartition": "delete",
        "app-join-shipped-store-changelog": "compact",
        "app-join-selected-store-changelog": "compact",
        "app-other-STATE-STORE-0000000003-changelog": "compact",
        "app-this-STATE-STORE-0000000000-changelog": "compact",
    }


# Selected keys


def everything(key: str | None, mapped: str | None) -> str:
    return "all"


def test_of_rows_with_one_selected_key_the_last_written_stays_and_the_one_before_comes_back() -> None:
    with running(selector=everything) as run:
        run.other("x", "X", 1)
        run.other("y", "Y", 1)

        assert run.this("a", "x1", 2) == [("all", "x1+X", 2)]
        assert run.this("b", "y1", 3) == [("all", "y1+Y", 3)]
        assert run.metric(COLLISIONS) == 1
        assert run.this("a", "x2", 4) == [("all", "x2+X", 4)]
        assert run.this("b", "y2", 5) == [("all", "y2+Y", 5)]
        assert run.this("c", "x3", 6) == [("all", "x3+X", 6)]
        assert run.metric(COLLISIONS) == 2
        assert run.this("b", None, 7) == []
        assert run.this("c", None, 8) == [("all", "x2+X", 8)]
        assert run.this("a", None, 9) == [("all", None, 9)]
        assert run.metric(COLLISIONS) == 2


def test_row_that_moves_between_mapped_keys_is_no_collision() -> None:
    with running(selector=lambda key, mapped: key) as run:
        run.other("x", "X")
        run.other("y", "Y")
        for value in ("x1", "y1", "x2", "y2"):
            run.this("a", value)

        assert run.metric(COLLISIONS) == 0


def test_result_without_a_store_is_read_as_the_row_that_was_written_last() -> None:
    builder = StreamsBuilder()
    this: KTable[str, str] = builder.table("this")
    joined = this.join(builder.table("other"), both, mapper=mapper, selector=everything)
    reads: KStream[str, str] = builder.stream("reads")
    reads.join(joined, lambda read, row: f"{read}: {row}").to("out")
    with TopologyTestDriver(builder.build(), StreamsConfig(CONFIG), partitions=4) as driver:
        run = NonKeyRun(driver)
        run.other("x", "X")
        run.this("a", "x1")
        run.this("b", "x2")
        driver.create_input_topic("reads").pipe_input("all", "first")
        run.this("b", None)
        driver.create_input_topic("reads").pipe_input("all", "then")
        rows = driver.create_output_topic("out").read_values()

    assert rows == ["then: x1+X"]


def test_named_store_has_the_rows_by_their_selected_keys() -> None:
    with running(materialized="rows") as run:
        run.other("x", "X")
        run.this("a", "x1")
        rows: dict[Any, Any] = {}
        for partition in range(4):
            store = run.driver.get_state_store("rows", partition)
            rows.update((key, row.value) for key, row in store.all())

    assert rows == {"a/x": "x1+X"}


def test_totals_of_a_non_key_join_are_right_under_retraction() -> None:
    builder = StreamsBuilder()
    this: KTable[str, str] = builder.table("this")
    joined = this.outer_join(builder.table("other"), both, mapper=mapper, selector=pair)
    grouped = joined.group_by(
        lambda key, value: ("rows", 1), Grouped(key_serde=Serdes.string(), value_serde=Serdes.integer())
    )
    grouped.reduce(int.__add__, int.__sub__, materialized="total")
    joined.to_stream().to("out")
    totals = []
    with TopologyTestDriver(builder.build(), StreamsConfig(CONFIG)) as driver:
        run = NonKeyRun(driver)
        for table, key, value in [
            (run.other, "x", "X"),
            (run.this, "a", "x1"),
            (run.this, "b", "x1"),
            (run.other, "y", "Y"),
            (run.this, "a", "y1"),
            (run.this, "b", "-1"),
            (run.other, "y", None),
        ]:
            table(key, value)
            store = driver.get_key_value_store("total")
            assert store is not None
            totals.append(store.get("rows"))

    assert totals == [1, 1, 2, 3, 2, 3, 3]


# Windows

SIZE = 10


def windowed(builder: StreamsBuilder) -> KTable[Windowed[str], int]:
    words: KStream[str, str] = builder.stream("words")
    grouped = words.group_by_key(Grouped(key_serde=Serdes.string(), value_serde=Serdes.string()))
    return grouped.windowed_by(TimeWindows(SIZE)).count(materialized=Materialized(retention=1000))


def test_windowed_table_is_joined_with_itself_shifted_in_time() -> None:
    builder = StreamsBuilder()
    counts = windowed(builder)
    keys = TimeWindowedSerde(Serdes.string(), SIZE)
    counts.join(
        counts,
        lambda now, before: now - before,
        mapper=lambda windowed, count: windowed.shift_left(SIZE) if windowed.window.start else None,
        selector=lambda windowed, before: windowed,
        materialized=Materialized(key_serde=keys, value_serde=Serdes.long()),
    ).to_stream().to("out", Produced(key_serde=keys, value_serde=Serdes.long()))
    with TopologyTestDriver(builder.build(), StreamsConfig(CONFIG), partitions=4) as driver:
        words = driver.create_input_topic("words")
        for time in (1, 2, 11, 12, 13, 15, 25):
            words.pipe_input("a", "", time)
        out = driver.create_output_topic("out", keys, Serdes.long())
        rows = [
            (record.key.window.start, record.value, record.timestamp) for record in out.read_records() if record.key
        ]

    assert rows == [(10, -1, 11), (10, 0, 12), (10, 1, 13), (10, 2, 15), (20, -3, 25)]


def test_windowed_keys_lie_in_the_partition_of_the_key_alone() -> None:
    builder = StreamsBuilder()
    counts = windowed(builder)
    keys = TimeWindowedSerde(Serdes.string(), SIZE)
    counts.join(
        counts,
        lambda now, before: now,
        mapper=lambda windowed, count: windowed.shift_left(0),
        selector=lambda windowed, before: windowed,
        materialized=Materialized(key_serde=keys, value_serde=Serdes.long()),
        name="shifted",
    )
    with TopologyTestDriver(builder.build(), StreamsConfig(CONFIG), partitions=4) as driver:
        for time in (5, 15, 25, 35):
            driver.create_input_topic("words").pipe_input("x", "", time)
        partitions = {
            record.topic: record.partition for record in driver.take_produced() if "repartition" in record.topic
        }

    assert partitions == {"app-shifted-repartition": 2, "app-shifted-selected-repartition": 2}


# Nulls and errors


def test_rows_without_mapped_or_selected_key_are_dropped_and_counted() -> None:
    with running(selector=lambda key, mapped: None if key == "n" else key) as run:
        run.other("x", "X")

        assert run.this("a", "-1") == []
        assert run.metric("dropped-records-total") == 1
        assert run.this("n", "x1") == []
        assert run.metric("dropped-records-total") == 2
        assert run.this("n", None) == []


def test_mapper_that_raises_fails_with_the_record_named() -> None:
    with (
        running() as run,
        pytest.raises(ProcessingError, match=r"cannot read 'bad'.*record this-\d offset 0 .*key='a'"),
    ):
        run.this("a", "bad")


def test_row_whose_mapper_raises_is_taken_out_where_the_handler_goes_on() -> None:
    with running(config=GO_ON) as run:
        run.other("x", "X")
        run.this("a", "x1", 1)

        assert run.this("a", "bad", 2) == [("a/x", None, 2)]
        assert run.this("a", "x3", 3) == [("a/x", "x3+X", 3)]


def test_selector_that_raises_fails_with_the_record_named_and_where_the_handler_goes_on_the_row_is_taken_out() -> None:
    message = r"nothing for 'y'.*join-select failed at record app-join-repartition-\d "

    def selector(key: str, mapped: str) -> str:
        if mapped == "y":
            raise ValueError(f"nothing for {mapped!r}")
        return key

    with running(selector=selector, name="join") as run:
        run.other("y", "Y")
        with pytest.raises(ProcessingError, match=message):
            run.this("a", "y1")
    with running(selector=selector, config=GO_ON) as run:
        run.other("x", "X")
        run.other("y", "Y")
        run.this("a", "x1", 1)

        assert run.this("a", "y1", 2) == [("a", None, 2)]
        assert run.this("a", "x3", 3) == [("a", "x3+X", 3)]


def test_mapper_without_selector_is_refused_and_so_are_two_kinds_of_join_at_once() -> None:
    builder = StreamsBuilder()
    this: KTable[str, str] = builder.table("this")
    other: KTable[str, str] = builder.table("other")

    with pytest.raises(TypeError, match="a non-key join needs both: mapper"):
        this.join(other, both, mapper=mapper)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="given beside foreign_key_extractor, of another kind of join"):
        this.left_join(other, both, mapper=mapper, selector=pair, foreign_key_extractor=str)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="expected a KTable"):
        this.outer_join("other", both, mapper=mapper, selector=pair)  # type: ignore[call-overload]


def test_names_of_all_parts_follow_from_the_name_of_the_join() -> None:
    nodes = build(name="join").plan(StreamsConfig(CONFIG)).whole.nodes

    assert [name for name in nodes if name.startswith("join")] == [
        "join-ship",
        "join-sink",
        "join-source",
        "join-keep",
        "join-join-shipped",
        "join-join-referred",
        "join",
        "join-select",
        "join-selected-sink",
        "join-selected-source",
        "join-selected",
        "join-result",
    ]
