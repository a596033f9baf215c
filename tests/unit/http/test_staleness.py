"""How old copies are: by what the brokers said last, while they do not answer."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from pykstreams.core.errors import ClusterError, StreamsRebalancingError
from pykstreams.http import staleness
from pykstreams.http.staleness import Staleness
from pykstreams.runtime.queries.lags import LagInfo
from pykstreams.testing.clock import MockClock

PATIENCE_S = 60.0
Lags = dict[str, dict[int, LagInfo]]


class Brokers:
    """Answers with lags, or fails, or is silent until it is told to answer."""

    def __init__(self) -> None:
        self.lags: Lags = {"prices": {0: LagInfo(10, 10)}}
        self.error: Exception | None = None
        self.answering = threading.Event()
        self.answering.set()
        self.asked = threading.Semaphore(0)

    def __call__(self) -> Lags:
        self.asked.release()
        assert self.answering.wait(PATIENCE_S)
        if self.error is not None:
            raise self.error
        return self.lags

    def times_asked(self) -> int:
        """How often they were asked since the last call."""
        times = 0
        while self.asked.acquire(blocking=False):
            times += 1
        return times


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


@pytest.fixture
def clock() -> MockClock:
    return MockClock(0)


def test_a_copy_is_as_old_as_the_last_answer_while_the_brokers_are_away(brokers: Brokers, clock: MockClock) -> None:
    copies = Staleness(brokers, clock)
    assert copies.of("prices", 0) == (0, 0)

    brokers.error = ClusterError("the brokers are away")
    clock.advance(1500)
    assert copies.of("prices", 0) == (0, 1500)
    clock.advance(1500)
    assert copies.of("prices", 0) == (0, 3000)

    brokers.error = None
    clock.advance(1500)
    assert copies.of("prices", 0) == (0, 0)


def test_a_copy_ages_while_the_brokers_are_waited_for(brokers: Brokers, clock: MockClock) -> None:
    def slowly() -> Lags:
        clock.advance(800)
        return brokers()

    assert Staleness(slowly, clock).of("prices", 0) == (0, 800)


def test_nothing_is_known_of_a_copy_before_the_brokers_have_answered(brokers: Brokers, clock: MockClock) -> None:
    brokers.error = ClusterError("the brokers are away")

    assert Staleness(brokers, clock).of("prices", 0) == (None, None)


def test_brokers_that_failed_are_asked_once_a_second_too(brokers: Brokers, clock: MockClock) -> None:
    brokers.error = ClusterError("the brokers are away")
    copies = Staleness(brokers, clock)

    for _ in range(5):
        copies.of("prices", 0)
    assert brokers.times_asked() == 1
    clock.advance(1000)
    copies.of("prices", 0)
    assert brokers.times_asked() == 1


def test_silent_brokers_are_not_waited_for_nor_asked_twice(
    brokers: Brokers, clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = Staleness(brokers, clock)
    copies.of("prices", 0)
    brokers.answering.clear()
    brokers.lags = {"prices": {0: LagInfo(10, 12)}}
    clock.advance(1500)
    monkeypatch.setattr(staleness, "_PATIENCE_S", 0.0)

    assert copies.of("prices", 0) == (0, 1500)
    clock.advance(30_000)
    assert copies.of("prices", 0) == (0, 31_500)

    for _ in range(2):
        assert brokers.asked.acquire(timeout=PATIENCE_S)
    assert brokers.times_asked() == 0

    monkeypatch.setattr(staleness, "_PATIENCE_S", PATIENCE_S)
    brokers.answering.set()
    assert copies.of("prices", 0) == (2, 31_500)


@pytest.mark.parametrize("make", [StreamsRebalancingError, ValueError])
def test_other_errors_reach_whoever_asks(brokers: Brokers, clock: MockClock, make: Callable[[str], Exception]) -> None:
    brokers.error = make("not now")

    with pytest.raises(type(brokers.error), match="not now"):
        Staleness(brokers, clock).of("prices", 0)
