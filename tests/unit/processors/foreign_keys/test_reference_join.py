"""Joins of repartitioned rows with what they refer to: what changes of each side give, and results without a store."""

from __future__ import annotations

from typing import Any

import pytest

from pykstreams.core.errors import SerdeError
from pykstreams.processors import StoredView
from pykstreams.processors.foreign_keys.reference_join import (
    JoinReferred,
    JoinRepartitioned,
    ReferenceJoin,
    ReferenceJoinView,
)
from pykstreams.processors.foreign_keys.repartitioned_rows import RepartitionedKeys
from pykstreams.serdes import CombinedKey
from tests.unit.processors.fakes import FakeOperatorContext, FakeStore

HEADERS = (("trace", b"1"),)
KEYS = RepartitionedKeys(None)


def both(referred: Any, referring: Any) -> str:
    if referring == "bad":
        raise ValueError("bad")
    return f"{referred}+{referring}"


class ReferenceJoinBench:
    """A join over two fake stores; ``repartitioned`` has pairs as keys."""

    def __init__(self, keys: RepartitionedKeys = KEYS, **options: Any) -> None:
        self.repartitioned, self.referred = FakeStore(), FakeStore(cached=options.pop("cached", False))
        self.context = FakeOperatorContext(repartitioned=self.repartitioned, referred=self.referred)
        self.join = ReferenceJoin("repartitioned", StoredView("referred"), both, keys, **options)

    def with_rows(self, repartitioned: dict[Any, Any], referred: dict[Any, Any]) -> ReferenceJoinBench:
        self.repartitioned.rows.update({CombinedKey(*key): row for key, row in repartitioned.items()})
        self.referred.rows.update(referred)
        return self

    def change_repartitioned(self, key: Any, new: Any, old: Any = None, send_old: bool = True) -> list[Any]:
        process = self.context.start(JoinRepartitioned(self.join, send_old))
        process(CombinedKey(*key), (new, old, True), 5, HEADERS)
        return self.context.forwarded

    def change_referred(self, key: Any, new: Any, old: Any = None, send_old: bool = True) -> list[Any]:
        self.context.start(JoinReferred(self.join, send_old))(key, (new, old, True), 5, HEADERS)
        return self.context.forwarded

    def repeating(self) -> ReferenceJoinBench:
        self.context.current.replayed = True
        return self

    def read(self, key: Any) -> Any:
        return ReferenceJoinView(self.join).build(self.context)(key)


def test_repartitioned_row_is_joined_with_the_row_it_refers_to() -> None:
    found = ReferenceJoinBench().with_rows({}, {"a": ("A", 3)}).change_repartitioned(("a", 1), "new", "old")

    assert found == [(("a", 1), ("A+new", "A+old", True), 5, HEADERS)]


def test_repartitioned_row_without_partner_gives_nothing() -> None:
    assert ReferenceJoinBench().change_repartitioned(("a", 1), "new", "old") == []


def test_repartitioned_row_without_partner_is_joined_with_none_where_it_is_kept() -> None:
    found = ReferenceJoinBench(keeps_unmatched=True).change_repartitioned(("a", 1), None, "old")

    assert found == [(("a", 1), (None, "None+old", True), 5, HEADERS)]


def test_result_has_the_larger_timestamp() -> None:
    join = ReferenceJoinBench().with_rows({("a", 1): ("x", 9), ("a", 2): ("y", 2)}, {"a": ("A", 7)})

    assert join.change_repartitioned(("a", 1), "new")[0][2] == 7
    assert [record[2] for record in join.change_referred("a", "A")[1:]] == [9, 5]


def test_changed_row_is_joined_with_all_that_refer_to_it() -> None:
    join = ReferenceJoinBench().with_rows({("a", 1): ("x", 0), ("a", 2): ("y", 0), ("b", 1): ("z", 0)}, {})

    assert join.change_referred("a", "new", "old") == [
        (("a", 1), ("new+x", "old+x", True), 5, HEADERS),
        (("a", 2), ("new+y", "old+y", True), 5, HEADERS),
    ]


def test_row_that_refers_to_nothing_is_joined_with_none_where_it_is_kept() -> None:
    found = ReferenceJoinBench(keeps_unmatched=True).change_repartitioned((None, 1), "new", "old")

    assert found == [((None, 1), ("None+new", "None+old", True), 5, HEADERS)]


def test_old_values_are_left_out_unless_asked_for() -> None:
    join = ReferenceJoinBench().with_rows({("a", 1): ("x", 0)}, {"a": ("A", 0)})

    join.change_referred("a", "new", "old", send_old=False)
    join.change_repartitioned(("a", 1), "y", "x", send_old=False)
    assert [record[1] for record in join.context.forwarded] == [("new+x", None, True), ("A+y", None, True)]


def test_deleted_row_takes_its_results_along() -> None:
    found = ReferenceJoinBench().with_rows({("a", 1): ("x", 0)}, {}).change_referred("a", None, "old")

    assert found == [(("a", 1), (None, "old+x", True), 5, HEADERS)]


def test_deleted_row_leaves_unmatched_ones_where_they_are_kept() -> None:
    join = ReferenceJoinBench(keeps_unmatched=True).with_rows({("a", 1): ("x", 0)}, {})

    assert join.change_referred("a", None, "old") == [(("a", 1), ("None+x", "old+x", True), 5, HEADERS)]


def test_first_row_finds_the_unmatched_result_that_it_replaces() -> None:
    join = ReferenceJoinBench(keeps_unmatched=True).with_rows({("a", 1): ("x", 0)}, {})

    assert join.change_referred("a", "new", None) == [(("a", 1), ("new+x", "None+x", True), 5, HEADERS)]


def test_change_from_nothing_to_nothing_gives_nothing() -> None:
    assert ReferenceJoinBench(keeps_unmatched=True).with_rows({("a", 1): ("x", 0)}, {}).change_referred("a", None) == []


def test_row_that_nobody_refers_to_has_a_result_where_it_is_kept() -> None:
    found = ReferenceJoinBench(keeps_unreferred=True).change_referred("a", "new", "old")

    assert found == [(("a", None), ("new+None", "old+None", True), 5, HEADERS)]


def test_first_row_that_refers_to_it_takes_that_result_back() -> None:
    join = ReferenceJoinBench(keeps_unreferred=True).with_rows({("a", 1): ("x", 5)}, {"a": ("A", 0)})

    assert join.change_repartitioned(("a", 1), "x") == [
        (("a", None), (None, "A+None", True), 5, HEADERS),
        (("a", 1), ("A+x", None, True), 5, HEADERS),
    ]


def test_last_row_that_referred_to_it_brings_it_again() -> None:
    join = ReferenceJoinBench(keeps_unreferred=True).with_rows({}, {"a": ("A", 0)})

    assert join.change_repartitioned(("a", 1), None, "x") == [
        (("a", 1), (None, "A+x", True), 5, HEADERS),
        (("a", None), ("A+None", None, True), 5, HEADERS),
    ]


def test_rows_between_first_and_last_leave_it_alone() -> None:
    join = ReferenceJoinBench(keeps_unreferred=True).with_rows(
        {("a", 1): ("x", 5), ("a", 2): ("y", 5)}, {"a": ("A", 0)}
    )

    join.change_repartitioned(("a", 1), "x")
    join.change_repartitioned(("a", 3), None, "z")
    join.change_repartitioned(("a", 1), "w", "x")
    assert [record[0] for record in join.context.forwarded] == [("a", 1), ("a", 3), ("a", 1)]


def values(found: list[Any]) -> dict[Any, Any]:
    return {tuple(key): change[0] for key, change, _, _ in found}


@pytest.mark.parametrize(
    ("referred", "repartitioned", "new", "results"),
    [
        ({"a": ("A", 0)}, {("a", 1): ("x", 5)}, "x", {("a", 1): "A+x", ("a", None): None}),
        ({"a": ("A", 0)}, {("a", 2): ("y", 5)}, None, {("a", 1): None, ("a", None): None}),
        ({"a": ("A", 0)}, {}, None, {("a", 1): None, ("a", None): "A+None"}),
        ({}, {("a", 1): ("x", 5)}, "x", {("a", 1): None, ("a", None): None}),
    ],
)
def test_replayed_repartitioned_row_is_answered_with_both_results_as_they_are_now(
    referred: dict[Any, Any], repartitioned: dict[Any, Any], new: Any, results: dict[Any, Any]
) -> None:
    """Whatever it found before, and whatever it found it in, some of that may have been sent and forgotten."""
    join = ReferenceJoinBench(keeps_unreferred=True).with_rows(repartitioned, referred).repeating()

    assert values(join.change_repartitioned(("a", 1), new, new)) == results


def test_replayed_repartitioned_row_without_partner_takes_back_a_result_where_there_is_none() -> None:
    assert ReferenceJoinBench().repeating().change_repartitioned(("a", 1), "x", "x") == [
        (("a", 1), (None, None, True), 5, HEADERS)
    ]
    kept = ReferenceJoinBench(keeps_unmatched=True, keeps_unreferred=True).repeating()
    assert values(kept.change_repartitioned((None, 1), "x")) == {(None, 1): "None+x"}


def test_replayed_row_that_cannot_be_joined_is_reported() -> None:
    join = ReferenceJoinBench().with_rows({}, {"a": ("A", 0)}).repeating()

    assert join.change_repartitioned(("a", 1), "bad") == []
    assert [type(error) for error, *_ in join.context.failed] == [ValueError]


def test_replayed_deletion_of_a_referred_row_that_is_gone_takes_its_results_along() -> None:
    join = ReferenceJoinBench(keeps_unreferred=True).with_rows({("a", 1): ("x", 0)}, {}).repeating()

    assert values(join.change_referred("a", None)) == {("a", 1): None, ("a", None): None}


def test_referred_row_is_read_as_it_was_last_forwarded() -> None:
    join = ReferenceJoinBench(cached=True).with_rows({}, {"a": ("before", 0)})
    join.referred.put_row("a", "held back", 1)

    assert join.change_repartitioned(("a", 1), "x")[0][1] == ("before+x", None, True)


def test_keys_of_results_are_mapped() -> None:
    keys = RepartitionedKeys(
        None, result=lambda key: f"{key[0]}/{key[1]}", repartitioned=lambda text: CombinedKey(*text.split("/"))
    )
    join = ReferenceJoinBench(keys).with_rows({("a", "1"): ("x", 0)}, {"a": ("A", 0)})

    assert join.change_repartitioned(("a", "1"), "x")[0][0] == "a/1"
    assert join.change_referred("a", "A")[1][0] == "a/1"
    assert join.read("a/1") == ("A+x", 0)


def test_row_that_cannot_be_joined_is_reported_and_the_others_are_joined() -> None:
    join = ReferenceJoinBench().with_rows(
        {("a", 1): ("x", 0), ("a", 2): ("bad", 0), ("a", 3): ("z", 0)}, {"a": ("A", 0)}
    )
    join.change_referred("a", "new")
    join.change_repartitioned(("a", 2), "bad")

    assert [record[0] for record in join.context.forwarded] == [("a", 1), ("a", 3)]
    assert [failed[1:] for failed in join.context.failed] == [
        ("a", ("new", None, True), 5, HEADERS),
        (("a", 2), ("bad", None, True), 5, HEADERS),
    ]


def test_unreferred_row_that_cannot_be_joined_is_reported() -> None:
    join = ReferenceJoinBench(keeps_unreferred=True)
    object.__setattr__(join.join, "joiner", lambda referred, referring: 1 // 0)

    assert join.change_referred("a", "new") == []
    assert isinstance(join.context.failed[0][0], ZeroDivisionError)


def test_row_that_cannot_be_read_is_reported_and_the_others_are_joined() -> None:
    rows = {("a", 1): ("x", 0), ("a", 2): ("y", 0), ("a", 3): ("z", 0)}
    join = ReferenceJoinBench().with_rows(rows, {})
    join.repartitioned.unreadable.add(("a", 2))

    assert [record[0] for record in join.change_referred("a", "new")] == [("a", 1), ("a", 3)]
    ((error, *record),) = join.context.failed
    assert isinstance(error, SerdeError)
    assert record == ["a", ("new", None, True), 5, HEADERS]


def test_a_row_that_cannot_be_read_refers_to_its_partner_all_the_same() -> None:
    join = ReferenceJoinBench(keeps_unreferred=True).with_rows({("a", 1): ("x", 0)}, {})
    join.repartitioned.unreadable.add(("a", 1))

    assert join.change_referred("a", "new") == []


def test_scan_that_fails_is_the_nodes_failure() -> None:
    join = ReferenceJoinBench()
    join.repartitioned.broken = OSError("disk")
    join.change_referred("a", "new")

    assert isinstance(join.context.failed[0][0], OSError)


def test_row_that_was_found_by_the_prefix_of_another_is_an_error_where_prefixes_are_the_users() -> None:
    keys = RepartitionedKeys(None, foreign_key=lambda key: key[0] + "2", checked=True)
    join = ReferenceJoinBench(keys).with_rows({("a1", 1): ("x", 0)}, {})
    join.change_referred("a1", "new")

    ((error, *_),) = join.context.failed
    assert isinstance(error, SerdeError)
    assert "the bytes of the partial key 'a1' are also what the key CombinedKey(prefix='a1', suffix=1) starts" in str(
        error
    )


def test_change_that_is_older_than_the_newest_is_dropped() -> None:
    join = ReferenceJoinBench().with_rows({("a", 1): ("x", 0)}, {})
    join.context.start(JoinReferred(join.join))("a", ("new", "old", False), 5, HEADERS)

    assert join.context.forwarded == []
    assert join.context.dropped == ["a change to join is older than the newest of its row"]


def test_null_key_is_dropped() -> None:
    join = ReferenceJoinBench()
    join.change_referred(None, "new")

    assert join.context.dropped == ["the key of a row to join is null"]


@pytest.mark.parametrize(
    ("options", "key", "row"),
    [
        ({}, ("a", 1), ("A+x", 7)),
        ({}, ("a", 9), None),
        ({}, ("b", 2), None),
        ({"keeps_unmatched": True}, ("b", 2), ("None+y", 9)),
        ({"keeps_unreferred": True}, ("c", None), ("C+None", 4)),
        ({"keeps_unreferred": True}, ("a", None), None),
        ({"keeps_unreferred": True}, ("d", None), None),
    ],
)
def test_result_without_a_store_is_read_from_both_rows(options: dict[str, Any], key: Any, row: Any) -> None:
    join = ReferenceJoinBench(**options).with_rows(
        {("a", 1): ("x", 3), ("b", 2): ("y", 9)}, {"a": ("A", 7), "c": ("C", 4)}
    )

    assert join.read(CombinedKey(*key)) == row


def test_view_needs_the_stores_of_both_sides() -> None:
    assert ReferenceJoinView(ReferenceJoinBench().join).stores == ("repartitioned", "referred")
