"""The index of a table with a time to live: order, changelog, and when entries leave it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykstreams.serdes import Serdes
from pykstreams.state.buffers.expiry_index import ExpiryIndex, expiry_index
from tests.unit.state.support import Context


@pytest.fixture
def context(tmp_path: Path) -> Context:
    made = Context(tmp_path)
    made.record(0)
    return made


def opened(context: Context, now: int = 7) -> ExpiryIndex:
    index = expiry_index("t-time-to-live", Serdes.string(), in_memory=False, logging=True).build()
    index.init(context)
    index.begin(now)
    return index


def committed(index: ExpiryIndex, context: Context) -> list[Any]:
    """Commits; gives what that wrote to the changelog."""
    before = len(context.logged)
    index.flush_cache()
    index.commit(len(context.logged))
    return context.logged[before:]


def entries(index: ExpiryIndex, time: int, most: int = 100) -> list[tuple[int, object, bool]]:
    return [(entry.time, entry.key, entry.before) for entry in index.until(time, most)]


def work_off(index: ExpiryIndex, time: int) -> None:
    for entry in index.until(time, 100):
        index.work_off(entry)


def test_entries_are_found_in_the_order_of_their_times_and_no_more_than_are_wanted(context: Context) -> None:
    index = opened(context)
    for key, time in (("c", 9), ("b", 5), ("a", 5), ("d", 10)):
        index.note(key, time, ())

    assert (index.first(), entries(index, 9)) == (5, [(5, "a", False), (5, "b", False), (9, "c", False)])
    assert entries(index, 9, most=1) == [(5, "a", False)]


def test_an_entry_that_was_worked_off_leaves_the_changelog_with_the_second_commit_after(context: Context) -> None:
    index = opened(context)
    index.note("a", 5, ())
    index.note("b", 6, ())
    place = bytes.fromhex("0000000000000005") + b"a"
    work_off(index, 5)

    assert entries(index, 9) == [(6, "b", False)]
    assert committed(index, context) == []
    assert [row[:2] for row in committed(index, context)] == [(place, None)]
    assert committed(index, context) == []


def test_an_entry_that_is_noted_again_stays(context: Context) -> None:
    index = opened(context)
    index.note("a", 5, ())
    work_off(index, 5)
    committed(index, context)
    index.note("a", 5, ())

    assert (committed(index, context), entries(index, 5)) == ([], [(5, "a", False)])


def test_the_next_task_sees_what_a_commit_has_not_taken_away_and_that_it_was_written_before(context: Context) -> None:
    index = opened(context)
    index.note("a", 5, ())
    committed(index, context)
    work_off(index, 5)
    committed(index, context)
    index.close()
    successor = opened(context, now=8)

    assert entries(successor, 5) == [(5, "a", True)]
    successor.close()
