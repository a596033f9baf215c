"""A worker waits for its producer so often that no record waits in it for too long, whatever the brokers take."""

from __future__ import annotations

import pytest

from pykstreams.runtime.worker.commits.send_pace import SendPace
from tests.unit.runtime.cluster_fakes import FakeClock

RECORD_S = 4.0
TURN_S = 0.01


class Link:
    """A producer whose brokers take so many records a second; notes when each was sent, and the longest wait."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.queue: list[float] = []
        self.longest_s = 0.0
        self.sent = 0
        self._room = 0.0

    def send(self, now: float, records: int) -> None:
        self.queue += [now] * records
        self.sent += records

    def deliver(self, now: float) -> None:
        self._room = min(self._room + self.rate * TURN_S, self.rate)
        taken = self.queue[: int(self._room)]
        del self.queue[: len(taken)]
        self._room = self._room - len(taken) if self.queue else 0.0
        self.longest_s = max([self.longest_s, *(now - at for at in taken)])


def run(pace: SendPace, clock: FakeClock, link: Link, *, per_turn: int, turns: int) -> int:
    """Turns of a worker; returns in how many of them it has waited."""
    waited = 0
    for _ in range(turns):
        if pace.must_wait(len(link.queue)):
            waited += 1
        else:
            link.send(clock.monotonic(), per_turn)
        clock.advance(TURN_S)
        link.deliver(clock.monotonic())
    return waited


def test_worker_whose_records_are_delivered_at_once_never_waits() -> None:
    clock = FakeClock()

    assert run(SendPace(clock, RECORD_S), clock, Link(1e6), per_turn=100, turns=1000) == 0


@pytest.mark.parametrize("times_too_fast", [1.01, 2, 5, 15])
def test_records_do_not_wait_for_too_long_where_brokers_take_less_than_is_sent(times_too_fast: float) -> None:
    clock = FakeClock()
    link = Link(10_000)
    run(SendPace(clock, RECORD_S), clock, link, per_turn=int(100 * times_too_fast), turns=6000)

    assert link.longest_s < RECORD_S
    assert link.sent > 0.9 * 10_000 * 60, "the brokers are kept busy"


def test_worker_waits_once_a_second_where_the_queue_is_never_empty_by_itself() -> None:
    """A record that lingers is always there, while what is waited for is delivered in one turn."""
    clock = FakeClock()
    pace = SendPace(clock, RECORD_S)
    waited = 0
    for _ in range(2000):
        waits = pace.must_wait(1)
        waited += waits
        if waits:
            clock.advance(0.005)
            pace.must_wait(0)
        clock.advance(TURN_S)

    assert 18 <= waited <= 26


def test_wait_lasts_until_nothing_is_left() -> None:
    clock = FakeClock()
    pace = SendPace(clock, RECORD_S)
    pace.must_wait(5)
    clock.advance(2)

    assert [pace.must_wait(left) for left in (5, 1, 0, 3)] == [True, True, False, False]
