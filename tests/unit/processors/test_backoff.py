"""How long a record waits before it is tried again, and when it is tried no more."""

from __future__ import annotations

from pykstreams.core.types import END_OF_TIME
from pykstreams.processors.backoff import Backoff, RetryPolicy
from pykstreams.state.buffers.retry_buffer import UNTRIED, Trials


def policy(max_attempts: int | None = None, max_time_ms: int | None = None, jitter: float = 0.0) -> RetryPolicy:
    return RetryPolicy(lambda _: True, max_attempts, max_time_ms, Backoff(100, 1000, 2.0, jitter, 7), 10)


def test_jitter_is_the_same_in_each_run_and_stays_within_its_share() -> None:
    def delays(seed: int) -> list[int]:
        backoff = Backoff(1000, 1000, 2.0, 0.25, seed)
        return [backoff.delay_ms(attempts, record) for attempts in (1, 2) for record in range(99)]

    assert delays(7) == delays(7)
    assert delays(7) != delays(8)
    assert 750 <= min(delays(7)) < 800
    assert 1200 < max(delays(7)) <= 1250


def test_a_back_off_that_does_not_grow_stays() -> None:
    assert Backoff(100, 1000, 1.0, 0.0, 0).delay_ms(10**9, 1) == 100


def test_the_first_failure_begins_the_count() -> None:
    assert policy(3).after_failure(UNTRIED, 5000, 1) == (Trials(1, 5000, 5100), False)


def test_the_last_of_so_many_attempts_uses_them_up() -> None:
    assert policy(3).after_failure(Trials(1, 5000, 5100), 5200, 1) == (Trials(2, 5000, 5400), False)
    assert policy(3).after_failure(Trials(2, 5000, 5400), 5400, 1)[1]


def test_the_end_of_the_time_is_the_last_attempt() -> None:
    before, used_up = policy(max_time_ms=1000).after_failure(Trials(3, 5000, 5300), 5700, 1)
    assert (before, used_up) == (Trials(4, 5000, 6000), False)
    assert policy(max_time_ms=1000).after_failure(before, 6000, 1)[1]


def test_no_record_is_due_after_the_end_of_time() -> None:
    longest = RetryPolicy(lambda _: True, None, None, Backoff(END_OF_TIME, END_OF_TIME, 1.0, 0.0, 7), 10)

    assert longest.after_failure(UNTRIED, 5000, 1) == (Trials(1, 5000, END_OF_TIME), False)
