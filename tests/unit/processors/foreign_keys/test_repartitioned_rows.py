"""Rows are repartitioned under what they refer to, deletions first, and kept where they arrive."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams.core.errors import ProcessingError
from pykstreams.processors.foreign_keys.repartitioned_rows import KeepRepartitioned, RepartitionRows
from pykstreams.serdes import CombinedKey
from tests.unit.processors.fakes import FakeOperatorContext, FakeStore

HEADERS = (("trace", b"1"),)


def letters(key: Any, value: Any) -> Any:
    if value == "poison":
        raise ValueError("no")
    return [None if letter == "-" else letter for letter in value]


def repartitioned(new: Any, old: Any = None, foreign_keys: Any = letters, **options: Any) -> list[tuple[Any, Any]]:
    context = FakeOperatorContext()
    context.start(RepartitionRows(foreign_keys, **options))("k", (new, old, True), 5, HEADERS)
    assert all(record[2:] == (5, HEADERS) for record in context.forwarded)
    return [record[:2] for record in context.forwarded]


@pytest.mark.parametrize(
    ("new", "old", "sent"),
    [
        ("a", None, [(("a", "k"), "a")]),
        ("ab", None, [(("a", "k"), "ab"), (("b", "k"), "ab")]),
        ("aba", None, [(("a", "k"), "aba"), (("b", "k"), "aba")]),
        ("a", "a", [(("a", "k"), "a")]),
        ("b", "a", [(("a", "k"), None), (("b", "k"), "b")]),
        ("bc", "ab", [(("a", "k"), None), (("b", "k"), "bc"), (("c", "k"), "bc")]),
        (None, "ab", [(("a", "k"), None), (("b", "k"), None)]),
        ("", "a", [(("a", "k"), None)]),
        ("-", "a", [(("a", "k"), None)]),
        ("a", "-", [(("a", "k"), "a")]),
        (None, "-", []),
        (None, None, []),
    ],
)
def test_what_is_gone_is_deleted_and_what_is_there_is_sent(new: Any, old: Any, sent: list[Any]) -> None:
    assert repartitioned(new, old) == sent


def test_keys_are_made_as_wanted() -> None:
    assert repartitioned("a", make=lambda foreign_key, key: f"{foreign_key}/{key}") == [("a/k", "a")]


def test_null_reference_is_dropped_once_and_not_again_when_the_row_goes() -> None:
    context = FakeOperatorContext()
    process = context.start(RepartitionRows(letters))
    process("k", ("-a-", None, True), 5, ())
    process("k", (None, "-a-", True), 6, ())

    assert context.dropped == ["a row refers to null"]


def test_change_that_is_older_than_the_newest_is_dropped() -> None:
    context = FakeOperatorContext()
    context.start(RepartitionRows(letters))("k", ("a", "b", False), 5, HEADERS)

    assert context.forwarded == []
    assert context.dropped == ["a change to join is older than the newest of its row"]


def test_rows_without_reference_are_repartitioned_where_a_join_keeps_them() -> None:
    assert repartitioned("-a", "b", keeps_null=True) == [
        (("b", "k"), None),
        ((None, "k"), "-a"),
        (("a", "k"), "-a"),
    ]
    assert repartitioned(None, "-", keeps_null=True) == [((None, "k"), None)]


def test_references_of_different_types_are_never_equal() -> None:
    found = repartitioned(True, 1, foreign_keys=lambda key, value: [value])

    assert found == [((1, "k"), None), ((True, "k"), True)]


def test_references_need_not_be_hashable() -> None:
    assert repartitioned("x", foreign_keys=lambda key, value: [{"id": 1}, {"id": 1}]) == [(({"id": 1}, "k"), "x")]


def test_row_whose_references_cannot_be_read_is_reported_and_what_it_had_is_deleted() -> None:
    context = FakeOperatorContext()
    context.start(RepartitionRows(letters))("k", ("poison", "a", True), 5, HEADERS)

    ((error, *record),) = context.failed
    assert isinstance(error, ValueError)
    assert record == ["k", ("poison", "a", True), 5, HEADERS]
    assert context.forwarded == [(CombinedKey("a", "k"), None, 5, HEADERS)]


def test_row_that_could_not_be_read_before_is_not_reported_again() -> None:
    context = FakeOperatorContext()
    context.start(RepartitionRows(letters))("k", ("a", "poison", True), 5, HEADERS)

    assert context.failed == []
    assert context.forwarded == [(CombinedKey("a", "k"), "a", 5, HEADERS)]


def test_nothing_is_sent_where_the_handler_says_to_stop() -> None:
    context = FakeOperatorContext(failing=True)
    with pytest.raises(ProcessingError):
        context.start(RepartitionRows(letters))("k", ("poison", "a", True), 5, HEADERS)

    assert context.forwarded == []


def keeping(**rows: tuple[Any, int]) -> tuple[FakeOperatorContext, FakeStore, Any]:
    store = FakeStore()
    store.rows.update(rows)
    context = FakeOperatorContext(s=store)
    return context, store, context.start(KeepRepartitioned("s"))


def test_kept_row_is_forwarded_with_the_one_before() -> None:
    context, store, process = keeping(k=("old", 3))
    process("k", "new", 5, HEADERS)

    assert store.rows == {"k": ("new", 5)}
    assert context.forwarded == [("k", ("new", "old", True), 5, HEADERS)]


def test_deletion_is_forwarded_with_what_was_deleted() -> None:
    context, store, process = keeping(k=("old", 3))
    process("k", None, 5, HEADERS)

    assert store.rows == {}
    assert context.forwarded == [("k", (None, "old", True), 5, HEADERS)]


def test_deletion_of_nothing_is_not_forwarded() -> None:
    context, _, process = keeping()
    process("k", None, 5, HEADERS)

    assert context.forwarded == []


def test_repeated_deletion_of_nothing_is_forwarded() -> None:
    """A worker that died may have deleted the row, and not told anybody."""
    context, _, process = keeping()
    context.current.replayed = True
    process("k", None, 5, HEADERS)

    assert context.forwarded == [("k", (None, None, True), 5, HEADERS)]


def test_store_that_fails_is_the_nodes_failure() -> None:
    context, store, process = keeping()
    store.broken = OSError("disk")
    process("k", "v", 5, HEADERS)

    assert [failed[1:] for failed in context.failed] == [("k", "v", 5, HEADERS)]
    assert context.forwarded == []
