"""Transforming the values of tables, and reading a transformed table that has no store."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams.core.errors import StreamsError
from pykstreams.core.record import Record
from pykstreams.core.value_transformer import ValueTransformerContext, ValueTransformerWithKey
from pykstreams.processors import StoredView, TableTransformValues
from tests.unit.processors.fakes import FakeOperatorContext, FakeStore

HEADERS = (("trace", b"1"),)


class Numbered(ValueTransformerWithKey[Any, Any, Any]):
    """Appends how many values it has seen; gives nothing for ``drop``."""

    closed = False

    def init(self, context: ValueTransformerContext) -> None:
        super().init(context)
        self.seen = 0

    def transform(self, key: Any, value: Any) -> Any:
        self.seen += 1
        if value == "fail":
            raise ValueError("no")
        return None if value == "drop" else f"{value}{self.seen}"

    def close(self) -> None:
        self.closed = True


class TimeAndHeaders(ValueTransformerWithKey[Any, Any, Any]):
    """Gives time and headers of its context."""

    def transform(self, key: Any, value: Any) -> Any:
        return self.context.timestamp, self.context.headers


def run(operator: Any, *changes: Any, store: FakeStore | None = None) -> FakeOperatorContext:
    context = FakeOperatorContext(s=store or FakeStore())
    process = context.start(operator)
    for change in changes:
        process("a", change, 5, HEADERS)
    return context


def values(context: FakeOperatorContext) -> list[Any]:
    return [change for _, change, *_ in context.forwarded]


def test_each_change_is_transformed_deletions_too() -> None:
    context = run(TableTransformValues(Numbered), ("x", None, True), (None, None, False))

    assert context.forwarded == [
        ("a", ("x1", None, True), 5, HEADERS),
        ("a", ("None2", None, False), 5, HEADERS),
    ]


def test_old_value_is_transformed_after_the_new_one_where_no_store_has_it() -> None:
    context = run(TableTransformValues(Numbered, send_old_values=True), ("x", "w", True))

    assert values(context) == [("x1", "w2", True)]


def test_old_value_comes_from_the_store_where_there_is_one() -> None:
    store = FakeStore()
    operator = TableTransformValues(Numbered, "s", send_old_values=True)
    context = run(operator, ("x", None, True), ("y", "x", True), ("drop", "y", True), store=store)

    assert values(context) == [("x1", None, True), ("y2", "x1", True), (None, "y2", True)]
    assert store.rows == {}


def test_stored_table_leaves_out_old_values_that_nobody_asked_for() -> None:
    context = run(TableTransformValues(Numbered, "s"), ("x", None, True), ("y", "x", True))

    assert values(context) == [("x1", None, True), ("y2", None, True)]


@pytest.mark.parametrize("store", [None, "s"])
def test_error_of_the_transformer_is_handed_over_with_the_change(store: str | None) -> None:
    context = run(TableTransformValues(Numbered, store), ("fail", None, True))

    ((error, *record),) = context.failed
    assert isinstance(error, ValueError)
    assert record == ["a", ("fail", None, True), 5, HEADERS]
    assert context.forwarded == []


def test_transformer_is_closed_with_the_task() -> None:
    made: list[Numbered] = []

    def make() -> Numbered:
        made.append(Numbered())
        return made[-1]

    context = FakeOperatorContext()
    context.start(TableTransformValues(make))
    assert [transformer.closed for transformer in made] == [False]
    context.close()
    assert [transformer.closed for transformer in made] == [True]


def test_context_tells_time_and_headers_of_the_current_record() -> None:
    context = FakeOperatorContext()
    process = context.start(TableTransformValues(TimeAndHeaders))
    context.current.raw = ("message", 7, HEADERS)
    process("a", ("x", None, True), 7, HEADERS)

    assert values(context) == [((7, HEADERS), None, True)]


def test_transformer_cannot_forward() -> None:
    class Forwarding(Numbered):
        def transform(self, key: Any, value: Any) -> Any:
            self.context.forward(Record(key, value, 1))

    context = run(TableTransformValues(Forwarding), ("x", None, True))

    ((error, *_),) = context.failed
    assert isinstance(error, StreamsError)
    assert "NODE forwards Record(key='a', value='x', timestamp=1, headers=()), but a ValueTransformerWithKey" in str(
        error
    )


def view_of(supplier: Any, context: FakeOperatorContext) -> Any:
    """The view's reader after the start of the operator that reads."""

    class Reader:
        def build(self, context: Any) -> Any:
            return TableTransformValues(supplier).view(StoredView("s")).build(context)

    return context.start(Reader())


def test_view_transforms_the_parents_rows_and_keeps_their_timestamps() -> None:
    store = FakeStore()
    store.rows["a"] = ("x", 9)
    read = view_of(Numbered, FakeOperatorContext(s=store))

    assert read("a") == ("x1", 9)
    assert read("a") == ("x2", 9)


def test_view_shows_the_transformer_rows_that_are_not_there() -> None:
    assert view_of(Numbered, FakeOperatorContext(s=FakeStore()))("a") == ("None1", -1)


def test_view_has_no_row_where_the_transformer_gives_none() -> None:
    store = FakeStore()
    store.rows["a"] = ("drop", 9)

    assert view_of(Numbered, FakeOperatorContext(s=store))("a") is None


def test_view_shows_the_transformer_the_time_of_the_row_and_puts_the_record_back() -> None:
    store = FakeStore()
    store.rows["a"] = ("x", 9)
    context = FakeOperatorContext(s=store)
    read = view_of(TimeAndHeaders, context)
    context.current.raw = record = ("message", 7, HEADERS)

    assert read("a") == ((9, ()), 9)
    assert read("b") == ((-1, ()), -1)
    assert context.current.raw is record


def test_view_puts_the_record_back_after_an_error() -> None:
    store = FakeStore()
    store.rows["a"] = ("fail", 9)
    context = FakeOperatorContext(s=store)
    read = view_of(Numbered, context)
    context.current.raw = record = ("message", 7, HEADERS)

    with pytest.raises(ValueError, match="no"):
        read("a")
    assert context.current.raw is record
