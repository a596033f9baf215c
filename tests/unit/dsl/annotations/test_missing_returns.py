"""Functions that are annotated to return something, and return nothing, since a ``return`` was forgotten."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Literal, TypeVar

import pytest

from pykstreams import Grouped, JoinWindows, Materialized, SessionWindows, StreamsBuilder

F = TypeVar("F", bound=Callable[..., object])
NAMES = {"Any": Any, "Annotated": Annotated, "Iterator": Iterator, "Literal": Literal, "Sequence": Sequence}


def written(source: str) -> Any:
    """The function that a text defines; type checkers know of the mistakes that are wanted here."""
    names: dict[str, Any] = {**NAMES}
    exec(source, names)
    return names["f"]


def noted(source: str) -> list[str]:
    builder = StreamsBuilder()
    builder.stream("a", str, str).map_values(written(source))
    return [str(one) for one in builder.build().contradictions]


def test_mapper_without_return_is_noted_with_its_line_and_the_cure() -> None:
    (text,) = noted("def f(value: str) -> str:\n    value.upper()\n")

    assert text == (
        "KStream.map_values: f (<string>:1) is annotated to return str, and returns None whatever comes; return the "
        "result at each end of the function, or annotate it to return str | None"
    )


@pytest.mark.parametrize(
    "source",
    [
        "def f(value: str) -> int: ...",
        "def f(value: str) -> int: return None",
        "def f(value: str) -> int | str:\n  if value: return\n  print()",
        "def f(value: str) -> list[str]: [].append(value)",
        "def f(value: str) -> Annotated[int, 'note']: value",
        "def f(value: str) -> Literal['a']: 'a'",
        "def f(value: str) -> Sequence[str]: [value]",
        "class C:\n  def f(self, value: str) -> str: value\nf = C().f",
        "class C:\n  def __call__(self, value: str) -> str: value\nf = C()",
    ],
)
def test_function_that_returns_nothing_is_noted(source: str) -> None:
    (text,) = noted(source)

    assert "and returns None whatever comes" in text


@pytest.mark.parametrize(
    "source",
    [
        "def f(value: str) -> str: return value",
        "def f(value: str) -> str:\n  if value: return value",
        "def f(value: str) -> str: return value or None",
        "def f(value: str) -> str: return value and None",
        "def f(value: str) -> str: return None if value else value",
        "def f(value: str) -> str: return value if value else None",
        "def f(value: str) -> str:\n  with open(value) as file: return file.read()",
        "def f(value: str) -> str:\n  try: return value\n  finally: print()",
        "def f(value: str) -> str: raise ValueError(value)",
        "def f(value: str) -> None: print(value)",
        "def f(value: str) -> str | None: print(value)",
        "def f(value: str) -> Literal['a', None]: print(value)",
        "def f(value: str) -> Any: print(value)",
        "def f(value: str) -> object: print(value)",
        "def f(value: str): print(value)",
        "def f(value: str) -> Unknown: print(value)",
        "def f(value: str) -> Iterator[str]:\n  yield value",
        "f = lambda value: None",
        "f = str",
        "f = print",
    ],
)
def test_function_that_may_return_something_is_not_noted(source: str) -> None:
    assert noted(source) == []


def test_decorated_function_is_not_noted() -> None:
    def repeated(function: F) -> Callable[[str], str]:
        return functools.wraps(function)(lambda value: value * 2)

    builder = StreamsBuilder()
    builder.stream("a", str, str).map_values(repeated(written("def f(value: str) -> str: value")))

    assert builder.build().contradictions == ()


def test_functions_of_all_steps_are_looked_at() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("a", str, str)
    one, two, none = (written(f"def f({names}) -> str: pass") for names in ("a", "a, b", ""))
    stream.filter(written("def f(key, value) -> bool: key == value"))
    stream.select_key(two)
    stream.join(stream, two, windows=JoinWindows(5))
    stream.join(builder.global_table("g", str, str), lambda a, b: a, key_selector=two)
    stream.map_values_async(written("async def f(a) -> str: pass"))
    stream.group_by_key().aggregate(none, lambda key, value, total: total)
    stream.group_by_key().windowed_by(SessionWindows(5)).aggregate(
        str, lambda key, value, total: total, written("def f(key, one, other) -> str: one + other")
    )
    builder.table("t", str, str).map_values(one)

    assert len(builder.build().contradictions) == 8


@pytest.mark.parametrize("source", ["def f(key, value): key == value", "def f(key, value) -> None: key == value"])
def test_predicate_without_return_is_noted_whatever_it_is_annotated_to_return(source: str) -> None:
    """No record passes, or each of them, and nothing fails."""
    predicate = written(source)
    builder = StreamsBuilder()
    builder.stream("a", str, str).filter(predicate)
    builder.stream("a", str, str).split().branch(predicate)
    builder.table("t", str, str).filter_not(predicate)

    assert [str(one) for one in builder.build().contradictions] == [
        f"{step}: f (<string>:1) returns None whatever comes, which counts as False; return whether the record is meant"
        for step in ("KStream.filter", "BranchedKStream.branch", "KTable.filter_not")
    ]


@pytest.mark.parametrize("source", ["def f(*values): print(values)", "def f(*values) -> None: print(values)"])
def test_aggregator_reducer_and_selector_without_return_are_noted(source: str) -> None:
    """Rows are deleted, or records dropped, and nothing fails."""
    function = written(source)
    builder = StreamsBuilder()
    grouped = builder.stream("a", str, str).group_by_key()
    grouped.aggregate(int, function, materialized=Materialized(value_serde=int))
    grouped.reduce(function)
    builder.stream("b", str, str).group_by(function, Grouped(key_serde=str))

    assert [str(one) for one in builder.build().contradictions] == [
        "KGroupedStream.aggregate: f (<string>:1) returns None whatever comes, which deletes the row of each key; "
        "return the aggregate",
        "KGroupedStream.reduce: f (<string>:1) returns None whatever comes, which deletes the row of each key; "
        "return the aggregate",
        "KStream.group_by: f (<string>:1) returns None whatever comes, so that no record has a key; return the key",
    ]


def test_predicate_that_may_return_something_is_not_noted() -> None:
    builder = StreamsBuilder()
    builder.stream("a", str, str).filter(written("def f(key, value):\n  if key: return value"))

    assert builder.build().contradictions == ()
