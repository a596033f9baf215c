"""The bounds of what a store with retention shows, takes and drops, as observed stream time advances."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykstreams.state.encoding.composed_keys import LAST_TIME
from pykstreams.state.engines.live_times import NO_TIME, LiveTimes

RETENTION, SEGMENT = 100, 50


@pytest.fixture
def by_segment() -> LiveTimes:
    return LiveTimes(RETENTION, shown_ms=RETENTION - 1, segment_ms=SEGMENT)


@pytest.fixture
def at_once() -> LiveTimes:
    return LiveTimes(RETENTION, shown_ms=RETENTION - 1, segment_ms=None)


def test_before_the_first_row_nothing_is_there(by_segment: LiveTimes) -> None:
    assert (by_segment.observed, by_segment.newest, by_segment.oldest) == (NO_TIME, NO_TIME, LAST_TIME)


def test_rows_are_shown_for_the_retention_and_taken_as_long_as_their_segment_is_there(by_segment: LiveTimes) -> None:
    by_segment.advance(170)

    assert (by_segment.observed, by_segment.shown_from, by_segment.taken_from) == (170, 71, 50)
    assert by_segment.put(50)
    assert not by_segment.put(49)
    assert by_segment.oldest == 50


def test_rows_without_segments_are_refused_as_soon_as_they_are_hidden(at_once: LiveTimes) -> None:
    at_once.advance(170)

    assert at_once.shown_from == at_once.taken_from == 71
    assert at_once.put(71)
    assert not at_once.put(70)


def test_segments_are_dropped_one_after_the_other_as_stream_time_passes_them(by_segment: LiveTimes) -> None:
    by_segment.advance(99)
    by_segment.put(99)
    dropped = [by_segment.advance(time) for time in (149, 150, 199, 260)]

    assert dropped == [None, (0, 50), None, (50, 150)]
    assert by_segment.oldest == 150


def test_rows_without_segments_are_dropped_an_eighth_of_the_retention_at_a_time(at_once: LiveTimes) -> None:
    at_once.advance(99)
    at_once.put(99)
    dropped = [at_once.advance(time) for time in (111, 112, 124, 125)]

    assert dropped == [None, (0, 13), None, (13, 26)]


def test_times_before_the_first_row_are_not_dropped(by_segment: LiveTimes) -> None:
    first = by_segment.advance(1_000)
    by_segment.put(1_000)

    assert (first, by_segment.advance(1_050)) == (None, (900, 950))


def test_rows_that_were_there_before_bound_reads_and_are_no_observed_time(by_segment: LiveTimes) -> None:
    by_segment.kept(50, 199)
    by_segment.advance(120)

    assert (by_segment.oldest, by_segment.newest, by_segment.observed) == (50, 199, 120)
    assert by_segment.advance(210) == (0, 100)
    assert (by_segment.oldest, by_segment.newest) == (100, 210)


def test_reset_forgets_every_time(by_segment: LiveTimes) -> None:
    by_segment.advance(170)
    by_segment.put(60)
    by_segment.reset()

    assert (by_segment.observed, by_segment.oldest, by_segment.taken_from) == (NO_TIME, LAST_TIME, 0)
    assert by_segment.put(0)


@given(st.lists(st.integers(0, 6 * RETENTION), min_size=1))
def test_however_time_goes_on_the_bounds_are_those_of_the_newest_time(times: list[int]) -> None:
    found, dropped = LiveTimes(RETENTION, shown_ms=RETENTION - 1, segment_ms=SEGMENT), []
    for time in times:
        if time > found.observed:
            dropped.append(found.advance(time))
        found.put(time)

    newest, first = max(times), max(0, (times[0] - RETENTION) // SEGMENT * SEGMENT)
    taken_from = max(0, (newest - RETENTION) // SEGMENT * SEGMENT)
    assert (found.observed, found.shown_from) == (newest, newest - RETENTION + 1)
    assert found.taken_from == taken_from
    ranges = [each for each in dropped if each is not None]
    assert [end for _, end in ranges[:-1]] == [start for start, _ in ranges[1:]]
    assert not ranges or (ranges[0][0], ranges[-1][1]) == (first, taken_from)
    assert ranges or taken_from == first
