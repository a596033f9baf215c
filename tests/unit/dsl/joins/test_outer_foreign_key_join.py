"""Right and full outer foreign-key joins as a user writes them, step by step, with timestamps, nulls and errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pykstreams import Grouped, KTable, Materialized, Produced, Serdes, StreamsBuilder, StreamsConfig
from pykstreams.errors import LogAndContinueProcessingExceptionHandler, ProcessingError
from pykstreams.serdes import CombinedKey, CombinedKeySerde, OptionalSerde
from pykstreams.testing import TestInputTopic, TopologyTestDriver

CONFIG = {
    "application.id": "app",
    "default.key.serde": Serdes.string(),
    "default.value.serde": Serdes.string(),
    "statestore.cache.max.bytes": 0,
}
KEYS = CombinedKeySerde(OptionalSerde(Serdes.string()), OptionalSerde(Serdes.string()))
RIGHT_KEYS = CombinedKeySerde(Serdes.string(), OptionalSerde(Serdes.string()))

Row = tuple[Any, Any, int | None]


def foreign_key(value: str) -> str | None:
    if value == "bad":
        raise ValueError(f"cannot read {value!r}")
    return value[0] if value[0] != "-" else None


def both(left: str | None, right: str | None) -> str:
    return f"{left}+{right}"


def joined(kind: str, **options: Any) -> tuple[StreamsBuilder, KTable[Any, str]]:
    builder = StreamsBuilder()
    left: KTable[str, str] = builder.table("left")
    table: KTable[Any, str] = getattr(left, kind)(
        builder.table("right"), both, foreign_key_extractor=foreign_key, **options
    )
    return builder, table


class OuterForeignKeyRun:
    """A join in a driver with four partitions; ``left`` and ``right`` give the changes that a record makes."""

    def __init__(self, kind: str, config: dict[str, Any] | None = None) -> None:
        self._keys = KEYS if kind == "outer_join" else RIGHT_KEYS
        builder, table = joined(kind)
        table.to_stream().to("out", Produced(key_serde=self._keys, value_serde=Serdes.string()))
        self.driver = TopologyTestDriver(builder.build(), StreamsConfig(CONFIG | (config or {})), partitions=4)
        self._left: TestInputTopic[Any, Any] = self.driver.create_input_topic("left")
        self._right: TestInputTopic[Any, Any] = self.driver.create_input_topic("right")
        self._out = self.driver.create_output_topic("out", self._keys, Serdes.string())

    def left(self, key: str, value: str | None, time: int) -> list[Row]:
        self._left.pipe_input(key, value, time)
        return self._changes()

    def right(self, key: str, value: str | None, time: int) -> list[Row]:
        self._right.pipe_input(key, value, time)
        return self._changes()

    def _changes(self) -> list[Row]:
        return [(record.key, record.value, record.timestamp) for record in self._out.read_records()]


@pytest.fixture(params=["right_join", "outer_join"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def run(kind: str) -> Iterator[OuterForeignKeyRun]:
    found = OuterForeignKeyRun(kind)
    yield found
    found.driver.close()


def test_row_that_nobody_refers_to_goes_before_the_first_match_and_is_back_after_the_last(
    run: OuterForeignKeyRun,
) -> None:
    assert run.right("x", "X", 1) == [(CombinedKey("x", None), "None+X", 1)]
    assert run.left("a", "x1", 5) == [(CombinedKey("x", None), None, 5), (CombinedKey("x", "a"), "x1+X", 5)]
    assert run.left("b", "x2", 2) == [(CombinedKey("x", "b"), "x2+X", 2)]
    assert run.left("a", None, 6) == [(CombinedKey("x", "a"), None, 6)]
    assert run.left("b", None, 7) == [(CombinedKey("x", "b"), None, 7), (CombinedKey("x", None), "None+X", 7)]
    assert run.right("x", None, 8) == [(CombinedKey("x", None), None, 8)]


def test_result_has_the_larger_timestamp_of_both_rows(run: OuterForeignKeyRun) -> None:
    run.right("x", "X", 10)

    assert run.left("a", "x1", 3)[1] == (CombinedKey("x", "a"), "x1+X", 10)
    assert run.right("x", "Y", 2) == [(CombinedKey("x", "a"), "x1+Y", 3)]


def test_foreign_key_that_changes_takes_back_one_row_and_brings_another(run: OuterForeignKeyRun) -> None:
    run.right("x", "X", 1)
    run.right("y", "Y", 1)
    run.left("a", "x1", 2)
    changes = run.left("a", "y1", 3)

    assert set(changes) == {
        (CombinedKey("x", "a"), None, 3),
        (CombinedKey("x", None), "None+X", 3),
        (CombinedKey("y", None), None, 3),
        (CombinedKey("y", "a"), "y1+Y", 3),
    }


def test_right_join_leaves_out_left_rows_without_a_right_one() -> None:
    run = OuterForeignKeyRun("right_join")
    with run.driver:
        assert run.left("a", "x1", 1) == []
        assert run.right("x", "X", 2) == [(CombinedKey("x", "a"), "x1+X", 2)]
        assert run.right("x", None, 3) == [(CombinedKey("x", "a"), None, 3)]


def test_outer_join_joins_left_rows_without_a_right_one_with_none() -> None:
    run = OuterForeignKeyRun("outer_join")
    with run.driver:
        assert run.left("a", "x1", 1) == [(CombinedKey("x", "a"), "x1+None", 1)]
        assert run.right("x", "X", 2) == [(CombinedKey("x", "a"), "x1+X", 2)]
        assert run.right("x", None, 3) == [(CombinedKey("x", "a"), "x1+None", 3)]
        assert run.left("a", None, 4) == [(CombinedKey("x", "a"), None, 4)]


def test_outer_join_keeps_left_rows_without_a_foreign_key() -> None:
    run = OuterForeignKeyRun("outer_join")
    with run.driver:
        assert run.left("a", "-1", 1) == [(CombinedKey(None, "a"), "-1+None", 1)]
        assert run.left("b", "-1", 1) == [(CombinedKey(None, "b"), "-1+None", 1)]
        assert set(run.left("a", "x1", 2)) == {
            (CombinedKey(None, "a"), None, 2),
            (CombinedKey("x", "a"), "x1+None", 2),
        }
        assert run.left("b", None, 3) == [(CombinedKey(None, "b"), None, 3)]


def test_right_join_drops_and_counts_left_rows_without_a_foreign_key() -> None:
    run = OuterForeignKeyRun("right_join")
    with run.driver:
        assert run.left("a", "-1", 1) == []
        dropped = [
            metric.value for name, metric in run.driver.metrics().items() if name.name == "dropped-records-total"
        ]

    assert sum(dropped) == 1


def test_empty_key_differs_from_a_missing_one() -> None:
    run = OuterForeignKeyRun("right_join")
    with run.driver:
        run.right("x", "X", 1)

        assert run.left("", "x1", 2) == [(CombinedKey("x", None), None, 2), (CombinedKey("x", ""), "x1+X", 2)]


def test_materialized_result_is_scanned_by_foreign_key_with_the_row_that_nobody_refers_to() -> None:
    builder, _ = joined("outer_join", materialized=Materialized("rows", value_serde=Serdes.string()))
    with TopologyTestDriver(builder.build(), StreamsConfig(CONFIG)) as driver:
        driver.create_input_topic("right").pipe_input("x", "X")
        driver.create_input_topic("right").pipe_input("xy", "XY")
        driver.create_input_topic("left").pipe_input("a", "x1")
        store = driver.get_key_value_store("rows")
        assert store is not None
        with store.prefix_scan("xy", KEYS.partial_key_serializer()) as alone:
            assert list(alone) == [(CombinedKey("xy", None), "None+XY")]
        with store.prefix_scan("x", KEYS.partial_key_serializer()) as matched:
            assert list(matched) == [(CombinedKey("x", "a"), "x1+X")]


def test_totals_of_an_outer_join_are_right_under_retraction(kind: str) -> None:
    builder, table = joined(kind)
    grouped = table.group_by(
        lambda key, value: ("rows", 1), Grouped(key_serde=Serdes.string(), value_serde=Serdes.integer())
    )
    grouped.reduce(int.__add__, int.__sub__, materialized="total")
    with TopologyTestDriver(builder.build(), StreamsConfig(CONFIG)) as driver:
        left, right = driver.create_input_topic("left"), driver.create_input_topic("right")
        totals = []
        for topic, key, value in [
            (right, "x", "X"),
            (left, "a", "x1"),
            (left, "b", "x1"),
            (right, "y", "Y"),
            (left, "a", "y1"),
            (left, "b", None),
            (right, "y", None),
        ]:
            topic.pipe_input(key, value)
            store = driver.get_key_value_store("total")
            assert store is not None
            totals.append(store.get("rows"))

    assert totals == [1, 1, 2, 3, 2, 2, 2 if kind == "outer_join" else 1]


def test_extractor_with_key_sees_the_key() -> None:
    builder = StreamsBuilder()
    left: KTable[str, str] = builder.table("left")
    left.right_join(
        builder.table("right"),
        both,
        foreign_key_extractor=lambda key, value: key[:1],
        extractor_with_key=True,
        materialized="rows",
    )
    with TopologyTestDriver(builder.build(), StreamsConfig(CONFIG)) as driver:
        driver.create_input_topic("right").pipe_input("x", "X")
        driver.create_input_topic("left").pipe_input("xa", "1")
        store = driver.get_key_value_store("rows")

        assert store is not None
        assert dict(store.all()) == {CombinedKey("x", "xa"): "1+X"}


def test_extractor_that_raises_fails_with_the_record_named(run: OuterForeignKeyRun) -> None:
    with pytest.raises(ProcessingError, match=r"cannot read 'bad'.*failed at record left-\d offset 0 .*key='a'"):
        run.left("a", "bad", 1)


def test_row_whose_extractor_raises_is_taken_out_where_the_handler_goes_on() -> None:
    run = OuterForeignKeyRun("right_join", {"processing.exception.handler": LogAndContinueProcessingExceptionHandler()})
    with run.driver:
        run.right("x", "X", 1)
        run.left("a", "x1", 2)

        assert run.left("a", "bad", 3) == [(CombinedKey("x", "a"), None, 3), (CombinedKey("x", None), "None+X", 3)]
        assert run.left("a", "x2", 4) == [(CombinedKey("x", None), None, 4), (CombinedKey("x", "a"), "x2+X", 4)]


def test_extractor_must_be_callable() -> None:
    builder = StreamsBuilder()
    left: KTable[str, str] = builder.table("left")

    with pytest.raises(TypeError, match="foreign_key_extractor is 5; expected a function"):
        left.right_join(builder.table("right"), both, foreign_key_extractor=5)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="foreign_key_extractor is None; expected a function"):
        left.right_join(builder.table("right"), both, foreign_key_extractor=None)  # type: ignore[call-overload]
