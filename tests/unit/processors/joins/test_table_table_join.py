"""Joins of two tables: what each side's changes give, the merger, and reading a join that has no store."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams.processors import JoinedView, StoredView, TableTableJoin, TableTableJoinMerger
from tests.unit.processors.fakes import FakeOperatorContext, FakeStore

HEADERS = (("trace", b"1"),)


def join(this_value: Any, other_value: Any) -> str:
    return f"{this_value}+{other_value}"


def fail(this_value: Any, other_value: Any) -> str:
    raise ValueError("no")


def store_with(**rows: tuple[Any, int]) -> FakeStore:
    store = FakeStore()
    store.rows.update(rows)
    return store


def changed(
    new: Any,
    old: Any = None,
    *,
    other: tuple[Any, int] | None,
    this_is_optional: bool = False,
    other_is_optional: bool = False,
    send_old_values: bool = True,
) -> list[Any]:
    """What one change of key ``a`` at time 5 gives where the other table has, or has not, a row of that key."""
    rows = {} if other is None else {"a": other}
    context = FakeOperatorContext(s=store_with(**rows))
    operator: TableTableJoin[str, str, str, str] = TableTableJoin(
        StoredView("s"), join, this_is_optional, other_is_optional, send_old_values
    )
    context.start(operator)("a", (new, old, True), 5, HEADERS)
    return context.forwarded


def test_inner_join_gives_nothing_without_the_other_row() -> None:
    assert changed("x", "w", other=None) == []


def test_inner_join_joins_new_and_old_value_with_the_other_row() -> None:
    assert changed("x", "w", other=("y", 3)) == [("a", ("x+y", "w+y", True), 5, HEADERS)]


def test_inner_join_gives_a_deletion_where_this_row_is_deleted() -> None:
    assert changed(None, "w", other=("y", 3)) == [("a", (None, "w+y", True), 5, HEADERS)]


def test_result_has_the_larger_timestamp_of_both_rows() -> None:
    assert changed("x", other=("y", 9)) == [("a", ("x+y", None, True), 9, HEADERS)]


def test_old_value_is_left_out_where_it_is_not_asked_for() -> None:
    assert changed("x", "w", other=("y", 3), send_old_values=False) == [("a", ("x+y", None, True), 5, HEADERS)]


def test_left_join_goes_on_without_the_other_row() -> None:
    assert changed("x", "w", other=None, other_is_optional=True) == [("a", ("x+None", "w+None", True), 5, HEADERS)]


def test_left_join_gives_nothing_where_neither_side_has_or_had_a_row() -> None:
    assert changed(None, None, other=None, other_is_optional=True) == []


def test_right_side_of_a_left_join_joins_nothing_with_the_left_row() -> None:
    result = changed(None, "w", other=("y", 3), this_is_optional=True)

    assert result == [("a", ("None+y", "w+y", True), 5, HEADERS)]


def test_right_side_of_a_left_join_gives_nothing_without_the_left_row() -> None:
    assert changed("x", other=None, this_is_optional=True) == []


def test_outer_join_gives_a_deletion_when_the_last_row_of_a_key_goes() -> None:
    result = changed(None, "w", other=None, this_is_optional=True, other_is_optional=True)

    assert result == [("a", (None, "w+None", True), 5, HEADERS)]


def test_outer_join_keeps_the_other_row_when_this_one_goes() -> None:
    result = changed(None, "w", other=("y", 9), this_is_optional=True, other_is_optional=True)

    assert result == [("a", ("None+y", "w+y", True), 9, HEADERS)]


def test_change_without_key_is_dropped() -> None:
    context = FakeOperatorContext(s=FakeStore())
    context.start(TableTableJoin(StoredView("s"), join, True, True))(None, ("x", None, True), 5, ())

    assert context.dropped == ["the key of a row to join is null"]
    assert context.forwarded == []


@pytest.mark.parametrize("other_is_optional", [False, True])
@pytest.mark.parametrize("this_is_optional", [False, True])
def test_change_of_a_versioned_table_that_is_out_of_order_is_dropped(
    this_is_optional: bool, other_is_optional: bool
) -> None:
    context = FakeOperatorContext(s=store_with(a=("y", 3)))
    operator: TableTableJoin[str, str, str, str] = TableTableJoin(
        StoredView("s"), join, this_is_optional, other_is_optional, versioned=True
    )
    context.start(operator)("a", ("x", None, False), 2, ())

    assert context.dropped == ["a change to join is older than the newest of its row"]
    assert context.forwarded == []


def test_error_of_the_joiner_is_handed_over_with_the_change() -> None:
    context = FakeOperatorContext(s=store_with(a=("y", 3)))
    context.start(TableTableJoin(StoredView("s"), fail, False, False))("a", ("x", None, True), 5, HEADERS)

    ((error, *record),) = context.failed
    assert isinstance(error, ValueError)
    assert record == ["a", ("x", None, True), 5, HEADERS]
    assert context.forwarded == []


def test_merger_without_store_hands_changes_on() -> None:
    context = FakeOperatorContext()
    context.start(TableTableJoinMerger())("a", ("x", None, False), 5, HEADERS)

    assert context.forwarded == [("a", ("x", None, False), 5, HEADERS)]


@pytest.mark.parametrize("send_old_values", [False, True])
def test_merger_with_store_keeps_the_row_and_forwards_the_joins_old_value(send_old_values: bool) -> None:
    store = store_with(a=("stored", 1))
    context = FakeOperatorContext(s=store)
    context.start(TableTableJoinMerger("s", send_old_values))("a", ("x", "w", True), 5, HEADERS)

    assert store.rows == {"a": ("x", 5)}
    assert context.forwarded == [("a", ("x", "w" if send_old_values else None, True), 5, HEADERS)]


def test_merger_with_cache_hands_changes_on_when_it_is_flushed() -> None:
    store = FakeStore(cached=True)
    context = FakeOperatorContext(s=store)
    process = context.start(TableTableJoinMerger("s"))
    process("a", ("x", None, True), 5, HEADERS)
    process("a", ("y", None, True), 6, HEADERS)

    assert context.forwarded == []
    store.flush()
    assert context.forwarded == [("a", ("y", None, True), 6, ())]


def test_merger_hands_over_errors_of_its_store() -> None:
    store = FakeStore()
    store.broken = OSError("disk")
    context = FakeOperatorContext(s=store)
    context.start(TableTableJoinMerger("s"))("a", ("x", None, True), 5, HEADERS)

    assert context.failed == [(store.broken, "a", ("x", None, True), 5, HEADERS)]


@pytest.mark.parametrize(
    ("optional", "rows"),
    [
        ((False, False), [("x+y", 9), None, None, None]),
        ((False, True), [("x+y", 9), ("x+None", 5), None, None]),
        ((True, True), [("x+y", 9), ("x+None", 5), ("None+y", 9), None]),
    ],
    ids=["inner", "left", "outer"],
)
def test_view_of_a_join_joins_the_rows_of_both_sides(optional: tuple[bool, bool], rows: list[Any]) -> None:
    left = store_with(both=("x", 5), left=("x", 5))
    right = store_with(both=("y", 9), right=("y", 9))
    view: JoinedView[str, str, str, str] = JoinedView(StoredView("l"), StoredView("r"), join, *optional)
    read = view.build(FakeOperatorContext(l=left, r=right))

    assert view.stores == ("l", "r")
    assert [read(key) for key in ("both", "left", "right", "none")] == rows


def test_view_has_no_row_where_the_joiner_gives_none() -> None:
    view: JoinedView[str, str, str, str] = JoinedView(
        StoredView("s"), StoredView("s"), lambda left, right: None, False, False
    )

    assert view.stores == ("s",)
    assert view.build(FakeOperatorContext(s=store_with(a=("x", 5))))("a") is None
