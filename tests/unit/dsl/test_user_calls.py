"""Functions that could not be called are refused when they are given, with what to write instead."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NewType

import pytest

from pykstreams import (
    BranchedKStream,
    CogroupedKStream,
    Consumed,
    CountWindows,
    Joined,
    JoinWindows,
    KGroupedStream,
    KGroupedTable,
    KStream,
    KTable,
    Produced,
    Repartitioned,
    Retry,
    SessionWindows,
    SqlSink,
    StreamsBuilder,
    TableJoined,
    TimeWindows,
    Windowed,
)

CustomerId = NewType("CustomerId", str)


def written(windowed: Windowed[str], count: int) -> str:
    return f"{windowed.key}: {count}"


def one(value: Any) -> Any:
    return value


def two(first: Any, second: Any) -> Any:
    return first, second


def seven(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any) -> Any:
    return a


async def asked(value: Any) -> Any:
    return value


async def asked_about(first: Any, second: Any, third: Any) -> Any:
    return first


def stream() -> KStream[Any, Any]:
    return StreamsBuilder().stream("in", str, str)


def table() -> KTable[Any, Any]:
    return StreamsBuilder().table("rows", str, str)


def grouped() -> KGroupedStream[Any, Any]:
    return stream().group_by_key()


def grouped_table() -> KGroupedTable[Any, Any]:
    return table().group_by(two)


def split() -> BranchedKStream[Any, Any]:
    return stream().split()


def cogrouped() -> CogroupedKStream[Any, Any]:
    return grouped().cogroup(lambda key, value, all_: all_)


def test_function_of_key_and_value_is_refused_without_with_key_and_told_of_it() -> None:
    counts: Any = grouped().windowed_by(TimeWindows(10)).count()

    with pytest.raises(TypeError) as caught:
        counts.map_values(written)

    line = written.__code__.co_firstlineno
    message = str(caught.value)
    assert message.startswith("KTable.map_values: ")
    assert f"written ({__file__}, line {line}) takes (windowed, count), and is called with (value)" in message
    assert message.endswith("; give with_key=True, and it is called with (key, value)")


def test_function_of_the_value_is_refused_with_with_key_and_told_of_it() -> None:
    mistaken: Any = one

    with pytest.raises(TypeError, match=r"takes \(value\), and .* \(key, value\); without with_key=True it is called"):
        stream().map_values(mistaken, with_key=True)


def test_extractor_of_key_and_value_is_told_of_its_own_switch() -> None:
    mistaken: Any = two

    with pytest.raises(TypeError, match="give extractor_with_key=True, and it is called with"):
        table().join(table(), two, foreign_key_extractor=mistaken)


def test_option_of_another_join_names_the_own_one() -> None:
    of_table: Any = {"foreign_key_extractor": one}
    with pytest.raises(TypeError, match="'foreign_key_extractor'; a table is joined by it; a stream by key_selector="):
        stream().join(table(), two, **of_table)
    of_stream: Any = {"key_selector": two}
    with pytest.raises(TypeError, match="'key_selector'; a stream is joined by it; a table by foreign_key_extractor="):
        table().join(table(), two, **of_stream)


def test_cure_is_left_away_where_it_would_not_help() -> None:
    mistaken: Any = seven

    with pytest.raises(TypeError, match=r"is called with \(value\)$"):
        stream().map_values(mistaken)


def test_text_is_refused_as_a_function() -> None:
    mistaken: Any = "upper"

    with pytest.raises(TypeError, match=r"KStream.map_values: mapper is 'upper'; expected a function that is called"):
        stream().map_values(mistaken)


def test_value_is_refused_as_an_initializer_with_the_function_that_gives_it() -> None:
    mistaken: Any = 0

    with pytest.raises(TypeError, match=r"initializer is 0; .* called without arguments, such as lambda: 0"):
        grouped().aggregate(mistaken, lambda key, value, total: total)


def test_none_is_refused_where_a_function_must_be_given() -> None:
    mistaken: Any = None

    with pytest.raises(TypeError, match="predicate is None"):
        stream().filter(mistaken)


class Asking:
    async def __call__(self, value: Any) -> Any:
        return value


async def numbers(key: Any, value: Any) -> Any:
    yield key, value


ASKED: Any = functools.partial(asked)


IN_PLACE = "use map_values_async of the stream in place of this step"
FIRST = "await it in map_values_async of the stream first, and let this step take the value that comes of it"


@pytest.mark.parametrize(
    ("refused", "cure"),
    [
        (lambda: stream().map_values(asked), IN_PLACE),
        (lambda: stream().map_values(functools.partial(asked)), IN_PLACE),
        (lambda: stream().map_values(Asking()), IN_PLACE),
        (lambda: stream().foreach(ASKED), IN_PLACE),
        (
            lambda: stream().filter(ASKED),
            "await it in map_values_async of the stream first, and decide by the value that comes of it",
        ),
        (lambda: stream().flat_map(numbers), FIRST),
        (lambda: stream().group_by_key().aggregate(str, ASKED), FIRST),
        (lambda: table().map_values(asked), IN_PLACE),
    ],
)
def test_coroutine_function_is_refused_by_a_step_that_does_not_await(refused: Callable[[], object], cure: str) -> None:
    with pytest.raises(TypeError, match=rf"'async def', and this step does not await it; {cure}"):
        refused()


def test_coroutine_function_is_taken_by_steps_that_await() -> None:
    stream().map_values_async(asked)
    stream().lookup(asked, two, key=two)


WRONG: Any = seven
ASKED_WRONGLY: Any = asked_about
REFUSED: dict[str, Callable[[], object]] = {
    "KStream.filter": lambda: stream().filter(WRONG),
    "KStream.filter_not": lambda: stream().filter_not(WRONG),
    "KStream.select_key": lambda: stream().select_key(WRONG),
    "KStream.map": lambda: stream().map(WRONG),
    "KStream.map_values_async": lambda: stream().map_values_async(ASKED_WRONGLY),
    "KStream.lookup": lambda: stream().lookup(asked, two, key=WRONG),
    "KStream.flat_map": lambda: stream().flat_map(WRONG),
    "KStream.flat_map_values": lambda: stream().flat_map_values(WRONG),
    "KStream.peek": lambda: stream().peek(WRONG),
    "KStream.foreach": lambda: stream().foreach(WRONG),
    "KStream.print": lambda: stream().print(formatter=WRONG),
    "KStream.group_by": lambda: stream().group_by(WRONG),
    "KStream.to": lambda: stream().to(WRONG),
    "KStream.join": lambda: stream().join(stream(), WRONG, windows=JoinWindows(10)),
    "KStream.left_join": lambda: stream().left_join(table(), WRONG),
    "KStream.outer_join": lambda: stream().outer_join(stream(), WRONG, windows=JoinWindows(10)),
    "BranchedKStream.branch": lambda: split().branch(WRONG),
    "KTable.filter": lambda: table().filter(WRONG),
    "KTable.filter_not": lambda: table().filter_not(WRONG),
    "KTable.to_stream": lambda: table().to_stream(WRONG),
    "KTable.group_by": lambda: table().group_by(WRONG),
    "KTable.join": lambda: table().join(table(), two, mapper=WRONG, selector=two),
    "KTable.left_join": lambda: table().left_join(table(), two, foreign_keys_extractor=WRONG),
    "KTable.right_join": lambda: table().right_join(table(), WRONG, foreign_key_extractor=one),
    "KTable.outer_join": lambda: table().outer_join(table(), two, mapper=two, selector=WRONG),
    "KTable.one_to_many_join": lambda: table().one_to_many_join(table(), two, key_extractor=WRONG),
    "KGroupedStream.reduce": lambda: grouped().reduce(WRONG),
    "KGroupedStream.aggregate": lambda: grouped().aggregate(list, WRONG),
    "KGroupedStream.cogroup": lambda: grouped().cogroup(WRONG),
    "KGroupedTable.reduce": lambda: grouped_table().reduce(two, WRONG),
    "KGroupedTable.aggregate": lambda: grouped_table().aggregate(list, WRONG, WRONG),
    "TimeWindowedKStream.reduce": lambda: grouped().windowed_by(TimeWindows(10)).reduce(WRONG),
    "SessionWindowedKStream.aggregate": lambda: (
        grouped().windowed_by(SessionWindows(10)).aggregate(list, lambda key, value, all_: all_, WRONG)
    ),
    "CountWindowedKStream.aggregate": lambda: (
        grouped().windowed_by(CountWindows(2)).aggregate(WRONG, lambda key, value, all_: all_)
    ),
    "CogroupedKStream.cogroup": lambda: cogrouped().cogroup(grouped(), WRONG),
    "CogroupedKStream.aggregate": lambda: cogrouped().aggregate(WRONG),
    "TimeWindowedCogroupedKStream.aggregate": lambda: cogrouped().windowed_by(TimeWindows(10)).aggregate(WRONG),
    "SessionWindowedCogroupedKStream.aggregate": lambda: (
        cogrouped().windowed_by(SessionWindows(10)).aggregate(list, WRONG)
    ),
    "Produced": lambda: Produced(partitioner=WRONG),
    "Repartitioned": lambda: Repartitioned(partitioner=WRONG),
    "TableJoined": lambda: TableJoined(other_partitioner=WRONG),
    "Consumed": lambda: Consumed(timestamp_extractor=WRONG),
    "SqlSink": lambda: SqlSink("sqlite://", "insert into rows values (:id)", row=WRONG),
    "Retry": lambda: Retry(retry_on=WRONG),
}


@pytest.mark.parametrize("step", REFUSED)
def test_step_refuses_a_function_that_takes_something_else(step: str) -> None:
    with pytest.raises(TypeError, match=rf"^{step}: .* takes .*, and is called "):
        REFUSED[step]()


class Shop:
    def total(self, value: str) -> int:
        return len(value)

    @staticmethod
    def named(value: str) -> str:
        return value

    @classmethod
    def made(cls, value: str) -> Shop:
        return cls()


class Doubled:
    def __call__(self, value: str) -> str:
        return value * 2


def without_first(function: Callable[[str, Any], Any]) -> Callable[[Any], Any]:
    """A decorator that gives an argument of its own."""

    @functools.wraps(function)
    def with_first(value: Any) -> Any:
        return function("first", value)

    return with_first


@pytest.mark.parametrize(
    "function",
    [
        int,
        str,
        str.upper,
        len,
        print,
        "{}: x".format,
        {"a": 1}.get,
        functools.partial(two, 1),
        functools.partial(max, 1),
        functools.lru_cache(one),
        without_first(two),
        Shop().total,
        Shop.named,
        Shop.made,
        Doubled(),
        CustomerId,
        lambda value, *, strict=False: value,
        lambda *values: values,
    ],
)
def test_whatever_takes_one_argument_is_taken(function: Callable[[Any], object]) -> None:
    assert isinstance(stream().map_values(function), KStream)


@pytest.mark.parametrize("initializer", [int, dict, list, list[int], dict[str, int], Shop, lambda: 0])
def test_whatever_takes_no_argument_begins_an_aggregate(initializer: Callable[[], Any]) -> None:
    assert isinstance(grouped().aggregate(initializer, lambda key, value, all_: all_), KTable)


def test_generator_function_is_taken_where_several_values_come() -> None:
    def words(value: str) -> Iterator[str]:
        yield from value.split()

    assert isinstance(stream().flat_map_values(words), KStream)


def test_wrong_arguments_of_the_step_are_refused_as_python_does() -> None:
    mistaken: Any = stream()

    with pytest.raises(TypeError, match="unexpected keyword argument 'keyed'"):
        mistaken.map_values(one, keyed=True)


@pytest.mark.parametrize(
    ("call", "cure"),
    [
        (lambda: mistaken(stream()).group_by(two, name="words"), "grouped=Grouped(name=...)"),
        (lambda: mistaken(stream()).group_by_key(value_serde=str), "grouped=Grouped(value_serde=...)"),
        (lambda: mistaken(stream()).to("out", key_serde=str), "produced=Produced(key_serde=...)"),
        (lambda: mistaken(stream()).repartition(num_partitions=3), "repartitioned=Repartitioned(num_partitions=...)"),
        (lambda: mistaken(stream()).to_table(key_serde=str), "materialized=Materialized(key_serde=...)"),
        (lambda: mistaken(stream()).join(stream(), two, store_name="s"), "stream_joined=StreamJoined(store_name=...)"),
        (lambda: mistaken(table()).group_by(two, name="words"), "grouped=Grouped(name=...)"),
        (lambda: mistaken(grouped()).count(value_serde=int), "materialized=Materialized(value_serde=...)"),
        (lambda: mistaken(StreamsBuilder()).stream("in", name="words"), "consumed=Consumed(name=...)"),
        (lambda: mistaken(StreamsBuilder()).table("in", caching=False), "materialized=Materialized(caching=...)"),
        (lambda: mistaken(StreamsBuilder()).global_table("in", name="words"), "consumed=Consumed(name=...)"),
    ],
)
def test_option_of_an_option_object_is_told_where_it_belongs(call: Callable[[], object], cure: str) -> None:
    with pytest.raises(TypeError) as raised:
        call()

    assert "unexpected keyword argument" in str(raised.value)
    assert f"; give it as {cure}" in str(raised.value)


def mistaken(step: Any) -> Any:
    """The same without its type."""
    return step


def test_option_that_was_given_by_its_place_is_told_how_to_give_it() -> None:
    table = StreamsBuilder().table("right", str, str)
    join: Callable[..., object] = stream().join

    with pytest.raises(
        TypeError, match=r"KStream.join\(\): too many .*the last one is a Joined: give it by name, as one of .* joined="
    ):
        join(table, two, Joined())


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (
            lambda: mistaken(stream().to)("out", str, int),
            "KStream.to(): too many positional arguments; types go into "
            "produced=Produced(key_serde=..., value_serde=...)",
        ),
        (
            lambda: mistaken(stream().group_by)(two, str, int),
            "KStream.group_by(): too many positional arguments; types go into "
            "grouped=Grouped(key_serde=..., value_serde=...)",
        ),
        (
            lambda: mistaken(stream().group_by_key().cogroup)(two, int),
            "KGroupedStream.cogroup(): too many positional arguments; the last one is a type: give it by name, as "
            "returns=",
        ),
        (
            lambda: mistaken(stream().to)("out", Produced(), "name"),
            "KStream.to(): too many positional arguments; it takes topic, produced",
        ),
    ],
)
def test_types_that_a_step_takes_in_an_option_are_told_where_they_belong(
    write: Callable[[], object], said: str
) -> None:
    with pytest.raises(TypeError) as raised:
        write()

    assert str(raised.value) == said


def test_step_without_its_function_is_told_what_is_missing() -> None:
    filtered: Callable[..., object] = stream().filter

    with pytest.raises(TypeError, match=r"KStream.filter\(\): missing a required argument: 'predicate'$"):
        filtered()
