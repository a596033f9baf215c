"""A value of another type than its function is annotated to return is an error that names the function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from pykstreams import Grouped, KStream, Materialized, Processor, Produced, Record, Serdes, StreamsBuilder, TimeWindows
from pykstreams.core.errors import ProcessingError
from pykstreams.testing import TopologyTestDriver


def length(value: str) -> int:
    return cast("int", value)


def by_length(key: str, value: str) -> int:
    return cast("int", value)


def pair(key: str, value: str) -> tuple[int, int]:
    return cast("tuple[int, int]", (value, value))


def lengths(value: str) -> list[int]:
    return cast("list[int]", [value])


def add(key: str, value: str, total: int) -> int:
    return cast("int", value)


def sides(value: str, other: str) -> int:
    return cast("int", value)


def is_there(key: str, value: int) -> bool:
    return True


def told(make: Callable[[StreamsBuilder, KStream[str, str]], object]) -> str:
    builder = StreamsBuilder()
    make(builder, builder.stream("in", str, str))
    with TopologyTestDriver(builder.build()) as driver, pytest.raises(ProcessingError) as raised:
        driver.create_input_topic("in", str, str).pipe_input("a", "tea")
    return str(raised.value)


def place(function: Callable[..., object]) -> str:
    return f"{function.__name__} (test_makers.py:{function.__code__.co_firstlineno})"


MADE: list[tuple[Callable[[StreamsBuilder, Any], object], Callable[..., object], str]] = [
    (lambda _, stream: stream.map_values(length).to("out"), length, "int"),
    (lambda _, stream: stream.map_values(length).filter(is_there).peek(print).to("out"), length, "int"),
    (lambda _, stream: stream.select_key(by_length).to("out"), by_length, "int"),
    (lambda _, stream: stream.map(pair).to("out"), pair, "int"),
    (lambda _, stream: stream.flat_map_values(lengths).to("out"), lengths, "int"),
    (lambda _, stream: stream.group_by(by_length).count(), by_length, "int"),
    (lambda _, stream: stream.group_by(by_length, Grouped(name="words")).count(), by_length, "int"),
    (lambda _, stream: stream.group_by_key().aggregate(int, add), add, "int"),
    (lambda _, stream: stream.group_by_key().windowed_by(TimeWindows(5)).aggregate(int, add), add, "int"),
    (lambda _, stream: stream.to_table().map_values(length, materialized="lengths"), length, "int"),
    (lambda _, stream: stream.to_table().map_values(length).to_stream().to("out"), length, "int"),
    (lambda _, stream: stream.left_join(_.table("rows", str, str), sides).to("out"), sides, "int"),
]


@pytest.mark.parametrize(("make", "function", "type_"), MADE)
def test_function_is_named_with_its_annotation_and_both_cures(
    make: Callable[[StreamsBuilder, Any], object], function: Callable[..., object], type_: str
) -> None:
    text = told(make)

    assert "'tea' of type str" in text
    assert f"{place(function)}, which is annotated to return {type_}" in text
    assert "correct what it returns or its annotation, or give the sink" in text or (
        "correct the one or the other, or give the store" in text
    )


def test_no_function_is_named_that_did_not_make_the_value() -> None:
    def mistaken(value: Any) -> Any:
        return value

    texts = (
        told(lambda _, stream: stream.map_values(mistaken).to("out", _long())),
        told(lambda _, stream: stream.to("out", _long())),
        told(lambda _, stream: stream.map_values(length).map_values(mistaken).to(*_out())),
        told(lambda _, stream: stream.map_values(length).process(Passing).to(*_out())),
        told(lambda _, stream: stream.group_by_key().aggregate(int, lambda k, v, a: v, materialized=_kept())),
    )

    assert ["which is annotated to return" in text for text in texts] == [False] * 5


def test_function_is_not_named_where_the_key_is_of_another_type() -> None:
    def count(key: str, value: str, total: int) -> int:
        return total + 1

    kept: Any = Materialized("counts", key_serde=int)

    text = told(lambda _, stream: stream.group_by_key().aggregate(int, count, materialized=kept))
    assert "LongSerde() cannot write 'a' of type str" in text
    assert "which is annotated to return" not in text


class Passing(Processor[Any, Any, Any, Any]):
    def process(self, record: Record[Any, Any]) -> None:
        self.context.forward(record)


def _long() -> Any:
    return Produced(key_serde=str, value_serde=Serdes.long())


def _out() -> Any:
    return "out", _long()


def _kept() -> Any:
    return Materialized(value_serde=Serdes.long())
