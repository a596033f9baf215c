"""Reading a table through a view."""

from __future__ import annotations

from typing import Any

from pykstreams.processors import StoredView, TableFilter, TableMapValues
from pykstreams.processors.tables.table_view import ReadRow
from tests.unit.processors.fakes import FakeOperatorContext, FakeStore


def store_with(**rows: tuple[Any, int]) -> FakeStore:
    store = FakeStore()
    store.rows.update(rows)
    return store


def test_stored_table_reads_its_store() -> None:
    view = StoredView("s")
    read: ReadRow[str, str] = view.build(FakeOperatorContext(s=store_with(a=("x", 5))))

    assert view.stores == ("s",)
    assert read("a") == ("x", 5)
    assert read("b") is None


def test_filtered_table_shows_the_parents_rows_that_pass_with_their_timestamps() -> None:
    operator: TableFilter[str, str] = TableFilter(lambda key, value: value == "x")
    view = operator.view(StoredView("s"))
    read = view.build(FakeOperatorContext(s=store_with(a=("x", 5), b=("y", 6))))

    assert view.stores == ("s",)
    assert read("a") == ("x", 5)
    assert read("b") is None
    assert read("c") is None


def test_mapped_table_computes_from_the_parents_rows_and_keeps_their_timestamps() -> None:
    operator: TableMapValues[str, str, str] = TableMapValues(lambda key, value: key + value, with_key=True)
    view = operator.view(StoredView("s"))
    read = view.build(FakeOperatorContext(s=store_with(a=("x", 5))))

    assert read("a") == ("ax", 5)
    assert read("b") is None


def test_mapped_value_of_none_is_no_row() -> None:
    operator: TableMapValues[str, str, str] = TableMapValues(lambda value: None)
    view = operator.view(StoredView("s"))

    assert view.build(FakeOperatorContext(s=store_with(a=("x", 5))))("a") is None


def test_views_of_views_compute_from_the_store_at_the_bottom() -> None:
    doubled: TableMapValues[str, int, int] = TableMapValues(lambda value: value * 2)
    large: TableFilter[str, int] = TableFilter(lambda key, value: value > 2)
    view = large.view(doubled.view(StoredView("s")))
    read = view.build(FakeOperatorContext(s=store_with(a=(1, 5), b=(2, 6))))

    assert view.stores == ("s",)
    assert [read("a"), read("b")] == [None, (4, 6)]
