"""A record whose time in the producer is over is sent again until ``delivery.timeout.ms`` has passed."""

from __future__ import annotations

from pykstreams.runtime.tasks.delivery_attempts import DeliveryAttempts
from tests.unit.runtime.cluster_fakes import FakeClock


def verdicts(clock: FakeClock, attempts: DeliveryAttempts, waits: list[float]) -> list[bool]:
    found = []
    for wait in waits:
        clock.advance(wait)
        found.append(attempts.are_over("out"))
    return found


def test_attempts_are_over_when_delivery_timeout_ms_has_passed_since_the_first_record_was_sent() -> None:
    clock = FakeClock()

    assert verdicts(clock, DeliveryAttempts(clock, 4, 20), [4, 5, 5, 5, 5]) == [False, False, False, False, True]


def test_first_attempt_is_the_only_one_where_delivery_timeout_ms_is_shorter() -> None:
    clock = FakeClock()

    assert verdicts(clock, DeliveryAttempts(clock, 2, 2), [2]) == [True]


def test_record_that_is_given_up_much_later_begins_anew() -> None:
    clock = FakeClock()

    assert verdicts(clock, DeliveryAttempts(clock, 4, 20), [4, 15, 35, 10]) == [False, False, False, False]


def test_attempts_are_over_also_where_one_of_them_lasts_longer_than_a_pause() -> None:
    """A session of 45 s, as in Java, makes each of them last for 42 s."""
    clock = FakeClock()

    assert verdicts(clock, DeliveryAttempts(clock, 42, 120), [42, 43, 43]) == [False, False, True]


def test_topics_are_counted_each_by_itself() -> None:
    clock = FakeClock()
    attempts = DeliveryAttempts(clock, 4, 20)
    attempts.are_over("out")
    clock.advance(25)

    assert attempts.are_over("out")
    assert not attempts.are_over("other")
