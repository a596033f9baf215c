import dataclasses
import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pykstreams.core.types import END_OF_TIME
from pykstreams.core.windows import (
    EmitStrategy,
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
    Window,
    Windowed,
    Windows,
)

ALL = [
    TimeWindows(10),
    TimeWindows(10, advance_by=5, grace=3),
    UnlimitedWindows(7),
    SlidingWindows(10, grace=1),
    SessionWindows(10, grace=1),
    JoinWindows(10, before=0, grace=1),
]


def test_tumbling_windows_hold_their_start_and_not_their_end() -> None:
    windows = TimeWindows(timedelta(milliseconds=10))

    assert {0: Window(0, 10)} == windows.windows_for(9)
    assert {10: Window(10, 20)} == windows.windows_for(10)


def test_hopping_windows_overlap_and_none_starts_before_the_epoch() -> None:
    windows = TimeWindows(10, advance_by=3)

    assert [0] == list(windows.windows_for(2))
    assert [0, 3, 6, 9] == list(windows.windows_for(9))
    assert [3, 6, 9, 12] == list(windows.windows_for(12))
    assert Window(12, 22) == windows.windows_for(12)[12]


def test_an_unlimited_window_takes_all_from_its_start_on() -> None:
    windows = UnlimitedWindows(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))

    assert {} == windows.windows_for(999)
    assert {1000: Window(1000, END_OF_TIME)} == windows.windows_for(1000)
    assert (END_OF_TIME, 0, 1000) == (windows.size_ms, windows.grace_period_ms, windows.start_ms)


def test_a_key_is_shifted_to_an_earlier_or_later_window_of_the_same_size() -> None:
    windowed = Windowed("a", Window(60_000, 120_000))

    assert windowed.shift_left(timedelta(seconds=30)) == Windowed("a", Window(30_000, 90_000))
    assert windowed.shift_right(5) == Windowed("a", Window(60_005, 120_005))
    assert windowed.shift_left(7).shift_right(7) == windowed


def test_a_window_before_the_epoch_is_refused_with_the_window_and_the_shift() -> None:
    with pytest.raises(ValueError, match=r"\[a@5/10\] cannot be shifted by -6 ms: the window would start at -1"):
        Windowed("a", Window(5, 10)).shift_left(6)


def test_durations_and_milliseconds_give_equal_windows() -> None:
    assert TimeWindows(timedelta(minutes=1)) == TimeWindows(60_000, advance_by=60_000, grace=timedelta(0))
    assert hash(SlidingWindows(timedelta(seconds=1))) == hash(SlidingWindows(1000))
    assert SessionWindows(1000) != SessionWindows(1000, grace=1)
    others: list[object] = [SessionWindows(1000)]
    assert SlidingWindows(1000) not in others


def test_a_time_difference_stands_for_both_bounds_that_are_not_given() -> None:
    assert (10, 10) == (JoinWindows(10).before_ms, JoinWindows(10).after_ms)
    assert (5, 10) == (JoinWindows(10, before=5).before_ms, JoinWindows(10, before=5).after_ms)
    assert (0, 7) == (JoinWindows(after=7).before_ms, JoinWindows(after=7).after_ms)
    assert 6 == JoinWindows(before=-4, after=10).size_ms


@pytest.mark.parametrize("windows", ALL, ids=repr)
def test_definitions_are_frozen_and_survive_a_copy(windows: Any) -> None:
    field = dataclasses.fields(windows)[0].name

    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(windows, field, 1)
    assert windows == pickle.loads(pickle.dumps(windows))


def test_users_define_windows_of_their_own() -> None:
    class Halves(Windows[Window]):
        size_ms = 1000
        grace_period_ms = 0

        def windows_for(self, timestamp: int) -> dict[int, Window]:
            return {0: Window(0, 1000)}

    assert {0: Window(0, 1000)} == Halves().windows_for(3)


def test_emit_strategies_are_two() -> None:
    assert {"ON_WINDOW_UPDATE", "ON_WINDOW_CLOSE"} == set(EmitStrategy.__members__)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: TimeWindows(0), ValueError, "window size is 0; it must be at least 1 ms"),
        (lambda: TimeWindows(-1), ValueError, "window size is -1; it must not be negative"),
        (lambda: TimeWindows(timedelta(microseconds=1)), ValueError, "durations count whole milliseconds"),
        (
            lambda: TimeWindows("1m"),  # type: ignore[arg-type]
            TypeError,
            "window size is '1m'; expected a timedelta or an int of milliseconds",
        ),
        (lambda: TimeWindows(5, advance_by=0), ValueError, "advance of windows is 0; it must be at least 1 ms"),
        (lambda: TimeWindows(5, advance_by=-1), ValueError, "advance of windows is -1; it must not be negative"),
        (
            lambda: TimeWindows(5, advance_by=6),
            ValueError,
            "advance of windows is 6, larger than the window size 5: records between two windows would be lost",
        ),
        (lambda: TimeWindows(5, grace=-1), ValueError, "grace is -1; it must not be negative"),
        (lambda: SlidingWindows(-1), ValueError, "time difference is -1; it must not be negative"),
        (lambda: SlidingWindows(1, grace=-1), ValueError, "grace is -1; it must not be negative"),
        (lambda: SessionWindows(-1), ValueError, "inactivity gap is -1; it must not be negative"),
        (lambda: SessionWindows(1, grace=-1), ValueError, "grace is -1; it must not be negative"),
        (
            lambda: UnlimitedWindows(-1),
            ValueError,
            "start of unlimited windows is -1; it must not lie before the epoch",
        ),
        (lambda: UnlimitedWindows(datetime(2020, 1, 1)), ValueError, "which has no time zone"),
        (lambda: JoinWindows(), TypeError, "JoinWindows has no bounds; give time_difference, before or after"),
        (lambda: JoinWindows(-1), ValueError, "time difference is -1; it must not be negative"),
        (
            lambda: JoinWindows(before=-5, after=4),
            ValueError,
            "join window is empty: before is -5 ms and after is 4 ms; their sum must not be negative",
        ),
        (lambda: JoinWindows(1, grace=-1), ValueError, "grace is -1; it must not be negative"),
    ],
)
def test_windows_that_cannot_be_are_refused(make: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        make()

    assert message in str(caught.value)
