"""The clock of tests."""

from datetime import UTC, datetime, timedelta

import pytest

from pykstreams.testing import MockClock


def test_the_clock_moves_only_when_told() -> None:
    clock = MockClock(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    assert (clock.now_ms(), clock.monotonic()) == (1000, 0.0)

    clock.advance(timedelta(seconds=2))
    clock.advance(500)

    assert (clock.now_ms(), clock.monotonic()) == (3500, 2.5)


def test_the_clock_never_goes_back() -> None:
    with pytest.raises(ValueError, match="advance of the clock is -1"):
        MockClock().advance(-1)


def test_the_clock_says_its_time() -> None:
    assert repr(MockClock(1500)) == "<MockClock at 1500 ms>"
