"""Blocks: versions of one key that ended in one segment, in one row."""

from __future__ import annotations

import pytest

from pykstreams.state.versions.blocks import (
    appended,
    bounds,
    deleted_at,
    divided,
    found_at,
    index_at,
    prepended,
    replaced,
    single,
    value_at,
    versions,
)

TWO = appended(single(b"a", 10, 20), b"b", 20, 30)


def test_versions_come_back_in_order_of_time_and_each_ends_where_the_next_begins() -> None:
    assert versions(TWO) == [(b"a", 10, 20), (b"b", 20, 30)]
    assert bounds(TWO) == (30, 10, 2)


def test_a_gap_before_an_appended_version_is_a_deletion() -> None:
    block = appended(single(b"a", 10, 20), b"b", 25, 30)

    assert versions(block) == [(b"a", 10, 20), (None, 20, 25), (b"b", 25, 30)]
    assert found_at(block, 22) is None


def test_an_empty_value_is_none_other_than_a_deletion() -> None:
    block = appended(single(b"", 10, 20), None, 20, 30)

    assert versions(block) == [(b"", 10, 20), (None, 20, 30)]
    assert (found_at(block, 10), found_at(block, 20)) == ((b"", 10), None)
    assert (value_at(block, 0), value_at(block, 1)) == (b"", None)


@pytest.mark.parametrize(
    ("time", "expected"), [(9, None), (10, (b"a", 10)), (19, (b"a", 10)), (20, (b"b", 20)), (29, (b"b", 20))]
)
def test_the_version_is_found_that_was_valid_at_a_time(time: int, expected: tuple[bytes, int] | None) -> None:
    assert found_at(TWO, time) == expected


def test_a_replaced_version_leaves_its_neighbours_alone() -> None:
    three = appended(TWO, b"ccc", 30, 40)
    index, start, end = index_at(three, 25)

    assert (index, start, end) == (1, 20, 30)
    assert versions(replaced(three, index, b"longer", start)) == [(b"a", 10, 20), (b"longer", 20, 30), (b"ccc", 30, 40)]
    assert versions(replaced(three, index, None, start)) == [(b"a", 10, 20), (None, 20, 30), (b"ccc", 30, 40)]


def test_a_divided_version_ends_where_the_other_one_begins() -> None:
    assert versions(divided(TWO, 0, b"x", 13)) == [(b"a", 10, 13), (b"x", 13, 20), (b"b", 20, 30)]
    assert versions(divided(TWO, 1, b"x", 25)) == [(b"a", 10, 20), (b"b", 20, 25), (b"x", 25, 30)]


def test_a_version_before_the_first_one_moves_the_bounds() -> None:
    block = prepended(TWO, b"x", 5)

    assert versions(block) == [(b"x", 5, 10), (b"a", 10, 20), (b"b", 20, 30)]
    assert bounds(block) == (30, 5, 3)


def test_a_mere_deletion_has_no_versions_and_ends_what_is_put_before_it() -> None:
    assert versions(deleted_at(20)) == []
    assert versions(prepended(deleted_at(20), b"a", 10)) == [(b"a", 10, 20)]
    assert versions(appended(deleted_at(20), b"b", 25, 30)) == [(None, 20, 25), (b"b", 25, 30)]
