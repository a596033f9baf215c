"""Annotations are read of whatever can be called, and one that cannot be evaluated is no error."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Self

import pytest

from pykstreams.core.user_code.annotations import (
    NOT_ANNOTATED,
    Unresolved,
    parameters_of,
    returned_annotation,
    returned_type,
    written_function,
)


def total(key: str, value: int) -> int:
    return value


@functools.cache
def cached(value: str) -> int:
    return len(value)


class Totals:
    def add(self, value: int) -> Self:
        return self

    def __call__(self, value: int) -> float:
        return float(value)


@pytest.mark.parametrize(
    ("function", "type_"),
    [
        (total, int),
        (functools.partial(total, "key"), int),
        (cached, int),
        (Totals(), float),
        (Totals().add, Totals),
        (Totals, Totals),
        (len, object),
        (lambda value: value, object),
    ],
)
def test_the_type_that_is_returned_is_read_of_whatever_can_be_called(
    function: Callable[..., object], type_: object
) -> None:
    assert returned_type(function) is type_


def test_an_annotation_that_cannot_be_evaluated_stands_for_anything() -> None:
    def made(value: int) -> int:
        return value

    made.__annotations__["return"] = "Missing"

    found = returned_annotation(made)
    assert isinstance(found, Unresolved)
    assert found.annotation == "Missing"
    assert isinstance(found.error, NameError)
    assert returned_type(made) is object


def test_a_function_without_annotation_is_told_from_one_that_returns_anything() -> None:
    assert returned_annotation(lambda value: value) is NOT_ANNOTATED


def test_parameters_are_those_that_are_not_given_yet() -> None:
    assert [one.name for one in parameters_of(functools.partial(total, "key"))] == ["value"]
    assert [one.type_ for one in parameters_of(total)] == [str, int]


def test_the_function_that_is_written_down_is_found_below_what_was_made_of_it() -> None:
    assert written_function(functools.partial(total, "key")) is total
    assert written_function(Totals()) is Totals.__call__
