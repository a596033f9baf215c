"""Keys that are equal and not the same: their bytes differ, so rows under one are not found under the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from pykstreams.processors import TableRepartitionMap
from pykstreams.processors.foreign_keys.repartitioned_rows import repartition_rows
from pykstreams.processors.same_key import is_same_key
from pykstreams.serdes import CombinedKey
from tests.unit.processors.fakes import FakeOperatorContext


@dataclass(frozen=True)
class Place:
    shop: str
    shelf: Any


EQUAL_BUT_NOT_THE_SAME: list[tuple[Any, Any]] = [
    (1, True),
    (1, 1.0),
    (0.0, -0.0),
    (("a", 1), ("a", 1.0)),
    (["a", [1]], ["a", [True]]),
    ({"a": 1}, {"a": 1.0}),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    (Place("a", 1), Place("a", True)),
    (CombinedKey("a", 1), CombinedKey("a", 1.0)),
]


@pytest.mark.parametrize(("one", "other"), EQUAL_BUT_NOT_THE_SAME)
def test_equal_keys_of_different_bytes_are_two(one: Any, other: Any) -> None:
    assert one == other

    assert not is_same_key(one, other)


@pytest.mark.parametrize("key", [1, 1.5, "a", b"a", None, ("a", 1), [1], {"a": [1.5]}, Place("a", (1, 2))])
def test_a_key_is_the_same_as_itself(key: Any) -> None:
    assert is_same_key(key, key)


@pytest.mark.parametrize(("one", "other"), [(1, 2), ("a", None), ((1, 2), (1,)), (Place("a", 1), Place("b", 1))])
def test_keys_that_are_not_equal_are_two(one: Any, other: Any) -> None:
    assert not is_same_key(one, other)


@pytest.mark.parametrize(("one", "other"), EQUAL_BUT_NOT_THE_SAME)
def test_a_row_leaves_the_group_of_an_equal_key(one: Any, other: Any) -> None:
    context = FakeOperatorContext()
    context.start(TableRepartitionMap(lambda key, value: (value, 1)))("k", (other, one, True), 5, ())

    assert repr([(key, change) for key, change, *_ in context.forwarded]) == repr(
        [(one, (None, 1, True)), (other, (1, None, True))]
    )


@pytest.mark.parametrize(("one", "other"), EQUAL_BUT_NOT_THE_SAME)
def test_a_row_that_refers_to_an_equal_key_is_deleted_under_the_former(one: Any, other: Any) -> None:
    context = FakeOperatorContext()
    ship = repartition_rows(lambda key, value: [value], CombinedKey, context, context.forward, keeps_null=False)
    ship("k", (other, one, True), 5, ())

    assert repr([(key, value) for key, value, *_ in context.forwarded]) == repr(
        [(CombinedKey(one, "k"), None), (CombinedKey(other, "k"), other)]
    )
