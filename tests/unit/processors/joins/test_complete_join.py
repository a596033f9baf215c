"""Joins with complete history: what is put into the joined row, and what happens to errors."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams.processors import CompleteJoin, CompleteJoinMerger, StoredView
from pykstreams.processors.joins.complete_join import corrections
from pykstreams.processors.tables.table_view import history_of
from tests.unit.processors.fakes import FakeOperatorContext, FakeStore
from tests.unit.processors.store_fakes import FakeVersionedStore


@pytest.mark.parametrize(
    ("wanted", "end", "found", "put"),
    [
        ([(2, "x")], None, [(0, None)], [(2, "x")]),
        ([(2, "x")], 5, [(0, None)], [(2, "x"), (5, None)]),
        ([(2, "x")], 5, [(0, None), (5, "b")], [(2, "x")]),
        ([(2, "x")], 5, [(0, "a"), (5, None)], [(2, "x")]),
        ([(2, "x")], 5, [(0, "a")], [(2, "x"), (5, "a")]),
        ([(2, "x")], 9, [(0, "a"), (4, "b"), (6, None)], [(2, "x"), (4, "x"), (6, "x"), (9, None)]),
        ([(2, "x"), (4, None), (6, "z")], None, [(0, None)], [(2, "x"), (4, None), (6, "z")]),
        ([(2, "x"), (4, "x")], None, [(2, "x"), (4, "x")], [(2, "x"), (4, "x")]),
        ([(2, None)], 9, [(0, "a"), (4, "b"), (6, None), (7, "c"), (9, "d")], [(2, None), (4, None), (7, None)]),
        ([(2, None)], None, [(0, None), (2, None)], []),
        ([(2, None)], 5, [(0, "a")], [(2, None), (5, "a")]),
    ],
    ids=[
        "first",
        "ends with the change",
        "until the next",
        "until a known deletion",
        "goes on as before",
        "over versions that are not wanted",
        "deletion between results",
        "same again",
        "deletes each result",
        "nothing to delete",
        "deleted for a time",
    ],
)
def test_what_is_put_makes_the_row_as_wanted_and_leaves_it_as_it_was_afterwards(
    wanted: list[tuple[int, Any]], end: int | None, found: list[tuple[int, Any]], put: list[tuple[int, Any]]
) -> None:
    assert list(corrections(wanted, end, found)) == put


class View:
    """A table whose row ``a`` is ``y`` since 3, and which does not know of other keys."""

    stores = ("other",)

    def as_forwarded(self) -> View:
        return self

    def build(self, context: Any) -> Any:
        raise AssertionError("only its history is read")

    build_as_of = build

    def build_history(self, context: Any) -> Any:
        return self

    def between(self, key: Any, time_from: int, time_to: int) -> list[tuple[int, Any]]:
        return [(0, None), (3, "y")] if key == "a" else []

    def end(self, key: Any, time: int) -> int | None:
        return None


def fail(value: Any, other: Any) -> Any:
    raise ValueError("no")


def test_error_of_the_joiner_is_handed_over_with_the_change_and_nothing_is_forwarded() -> None:
    context = FakeOperatorContext(s=FakeVersionedStore())
    operator = CompleteJoin(View(), View(), "s", fail, True, True)
    context.start(operator)("a", ("x", None, True), 2, ())

    ((error, *record),) = context.failed
    assert isinstance(error, ValueError)
    assert record == ["a", ("x", None, True), 2, ()]
    assert context.forwarded == []


def test_results_have_the_headers_of_the_change_and_no_old_values() -> None:
    context = FakeOperatorContext(s=FakeVersionedStore())
    headers = (("trace", b"1"),)
    process = context.start(CompleteJoin(View(), View(), "s", lambda value, other: (value, other), False, True))
    process("a", ("x", "w", True), 2, headers)
    process("unknown", ("x", "w", True), 2, headers)

    assert context.forwarded == [
        ("a", (("x", None), None, True), 2, headers),
        ("a", (("x", "y"), None, True), 3, headers),
    ]
    assert len(context.dropped) == 1


@pytest.mark.parametrize("send_old_values", [False, True])
def test_merger_forwards_the_value_that_it_keeps(send_old_values: bool) -> None:
    store = FakeStore()
    store.rows["a"] = ("kept", 1)
    context = FakeOperatorContext(s=store)
    context.start(CompleteJoinMerger("s", send_old_values))("a", ("x", None, False), 5, ())

    assert store.rows == {"a": ("x", 5)}
    assert context.forwarded == [("a", ("x", "kept" if send_old_values else None, True), 5, ())]


def test_merger_hands_over_errors_of_its_store() -> None:
    store = FakeStore()
    store.broken = OSError("disk")
    context = FakeOperatorContext(s=store)
    context.start(CompleteJoinMerger("s"))("a", ("x", None, True), 5, ())

    assert context.failed == [(store.broken, "a", ("x", None, True), 5, ())]
    assert context.forwarded == []


def test_a_table_that_no_versioned_store_keeps_has_no_history() -> None:
    view = StoredView("s")

    with pytest.raises(TypeError, match=r"NODE reads the history of StoredView\(store='s'.*, which no versioned store"):
        history_of(view, FakeOperatorContext(s=FakeStore()))
