"""Assertions about records say which record differs, and in which field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
import pydantic
import pytest

from pykstreams import StreamsBuilder
from pykstreams.testing import TestRecord, TopologyTestDriver, assert_records, assert_table
from pykstreams.testing.assertions import differences


@dataclass
class Order:
    customer: str
    cents: list[int] = field(default_factory=list)


@dataclass
class Card:
    owner: str
    pin: str = field(repr=False)


class Point(NamedTuple):
    x: int
    y: int


class Model(pydantic.BaseModel):
    size: int


class Struct(msgspec.Struct):
    size: int


def said(check: Callable[[], None]) -> list[str]:
    with pytest.raises(AssertionError) as found:
        check()
    return str(found.value).splitlines()


def test_equal_records_pass() -> None:
    assert_records([("a", 1), TestRecord("b", 2, timestamp=5)], [("a", 1), ("b", 2)])
    assert_records([TestRecord("b", 2, timestamp=5)], [TestRecord("b", 2)])
    assert_records([], [])


def test_a_record_that_differs_is_shown_with_its_field() -> None:
    lines = said(lambda: assert_records([("1", Order("Ann", [1, 2]))], [("1", Order("Ann", [1, 3]))]))

    assert lines == [
        "1 of 1 record is not as expected",
        "  - 0  '1': Order(customer='Ann', cents=[1, 3])",
        "  + 0  '1': Order(customer='Ann', cents=[1, 2])",
        "       value.cents[1]: expected 3, found 2",
    ]


def test_values_that_are_shown_alike_and_differ_are_not_equal() -> None:
    lines = said(lambda: assert_records([("1", 5), ("2", Card("Ann", "1234"))], [("1", 5), ("2", Card("Ann", "9999"))]))

    assert lines == [
        "1 of 2 records is not as expected",
        "    0  '1': 5",
        "  - 1  '2': Card(owner='Ann')",
        "  + 1  '2': Card(owner='Ann')",
        "       value.pin: expected '9999', found '1234'",
    ]


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (1, 1.0),
        (Decimal("2.5"), Decimal("2.50")),
        (pytest.approx(0.3), 0.1 + 0.2),
    ],
)
def test_values_that_are_shown_otherwise_and_are_equal_pass(expected: Any, found: Any) -> None:
    assert_records([("k", found)], [("k", expected)])
    assert_records([("k", found), ("k", expected)], [("k", expected), ("k", found)])
    lines = said(lambda: assert_records([("k", found), ("m", 8)], [("k", expected), ("m", 9)]))
    assert lines == ["1 of 2 records is not as expected", f"    0  'k': {found!r}", *lines[2:4], lines[-1]]
    assert lines[-1] == "       value: expected 9, found 8"


def test_a_record_that_is_missing_leaves_the_others_in_line() -> None:
    lines = said(lambda: assert_records([("a", 1), ("c", 3)], [("a", 1), ("b", 2), ("c", 3)]))

    assert lines == ["1 of 3 records is not as expected", "    0  'a': 1", "  - 1  'b': 2", "    1  'c': 3"]


def test_timestamps_and_headers_are_compared_where_they_are_expected() -> None:
    found = [TestRecord("a", 1, timestamp=5, headers=[("h", b"1")])]

    assert_records(found, [TestRecord("a", 1, timestamp=5, headers=[("h", b"1")])])
    lines = said(lambda: assert_records(found, [TestRecord("a", 1, timestamp=6)]))
    assert lines[-2:] == [
        "       timestamp: expected 6, found 5",
        "       headers[0]: expected nothing, found ('h', b'1')",
    ]


@pytest.mark.parametrize(
    ("expected", "found", "told"),
    [
        (1, 2, ["it: expected 1, found 2"]),
        (1, "1", ["it: expected 1, found '1'"]),
        (Point(1, 2), Point(1, 3), ["it.y: expected 2, found 3"]),
        (
            {"a": {"b": 1}},
            {"a": {"b": 2}, "c": 3},
            ["it['a']['b']: expected 1, found 2", "it['c']: expected nothing, found 3"],
        ),
        ([1, 2], [1], ["it[1]: expected 2, found nothing"]),
        (Model(size=1), Model(size=2), ["it.size: expected 1, found 2"]),
        (Struct(1), Struct(2), ["it.size: expected 1, found 2"]),
        (Order("a"), Order("a"), []),
    ],
)
def test_values_differ_in_their_smallest_parts(expected: Any, found: Any, told: list[str]) -> None:
    assert list(differences(expected, found, "it")) == told


def test_a_table_is_compared_by_its_last_values() -> None:
    assert_table({"a": 1, "gone": None}, {"a": 1})
    assert_table({"a": 1, "gone": None}, {"a": 1, "gone": None, "never": None})
    lines = said(lambda: assert_table({"a": Order("Ann"), "x": Order("Eve")}, {"a": Order("Bob"), "b": Order("Bob")}))

    assert lines[0] == "3 of 3 rows are not as expected"
    assert "      value.customer: expected 'Bob', found 'Ann'" in lines
    assert "  + 'x': Order(customer='Eve', cents=[])" in lines


def test_an_output_topic_is_read_to_its_end() -> None:
    builder = StreamsBuilder()
    builder.stream("in", str, int).to("out")
    with TopologyTestDriver(builder.build()) as driver:
        numbers, out = driver.create_input_topic("in", str, int), driver.create_output_topic("out", str, int)
        numbers.pipe_key_values([("a", 1), ("b", 2)])
        assert_records(out, [("a", 1), ("b", 2)])
        numbers.pipe_key_values([("a", 1), ("a", 3)])
        assert_table(out, {"a": 3})
        numbers.pipe_input("a", 4)

        lines = said(lambda: assert_records(out, []))

    assert lines == ["1 of 1 record is not as expected of TestOutputTopic('out', 1 records)", "  + 0  'a': 4"]
