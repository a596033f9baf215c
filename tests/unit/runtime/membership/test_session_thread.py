from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from pykstreams.core.errors import StreamsError
from pykstreams.runtime.membership.session_thread import SessionThread, backoff_s
from pykstreams.testing.clock import MockClock

FOREVER_S, SOON_S = 3600.0, 30.0


@dataclass(frozen=True)
class Told:
    number: int


@dataclass(frozen=True)
class Asked:
    number: int


class Steps:
    """A session that counts its steps, and does in each what the test says."""

    def __init__(self) -> None:
        self.clock = MockClock()
        self.taken = threading.Semaphore(0)
        self.patience_s = FOREVER_S
        self.mistake: Exception | None = None
        self.refused: list[StreamsError] = []
        self.closed = threading.Event()
        self.thread: SessionThread[Told | Asked] = SessionThread(
            "till-membership",
            self.step,
            refuse=self.refuse,
            close=self.closed.set,
            clock=self.clock,
            max_poll_s=30,
        )

    def step(self) -> float:
        if self.mistake is not None:
            raise self.mistake
        self.during()
        self.taken.release()
        return self.patience_s

    def refuse(self, error: StreamsError) -> None:
        self.refused.append(error)
        self.taken.release()

    def during(self) -> None:
        """What happens while a step is under way."""


@pytest.fixture
def session() -> Iterator[Steps]:
    session = Steps()
    yield session
    session.thread.stop()


def test_events_are_polled_in_their_order(session: Steps) -> None:
    session.thread.report(Told(1))
    session.thread.report(Asked(2))
    assert [session.thread.poll(0) for _ in range(3)] == [Told(1), Asked(2), None]


def test_withdrawn_events_are_not_polled(session: Steps) -> None:
    for event in (Told(1), Asked(2), Told(3)):
        session.thread.report(event)
    assert session.thread.withdraw(Told)
    assert not session.thread.withdraw(Told)
    assert session.thread.poll(0) == Asked(2)
    session.thread.report(Told(4))
    session.thread.withdraw()
    assert session.thread.poll(0) is None


def test_a_worker_that_waits_gets_an_event_at_once(session: Steps) -> None:
    polled: list[Told | Asked | None] = []
    waits = threading.Thread(target=lambda: polled.append(session.thread.poll(FOREVER_S)), daemon=True)
    waits.start()
    session.thread.report(Told(1))
    waits.join(SOON_S)
    assert polled == [Told(1)]


def test_a_thread_that_has_nothing_to_do_takes_a_step_when_it_is_woken(session: Steps) -> None:
    session.thread.start()
    assert session.taken.acquire(timeout=SOON_S)
    session.thread.wake()
    assert session.taken.acquire(timeout=SOON_S)


def test_what_changes_while_a_step_is_under_way_is_seen_by_the_next(
    session: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    wakes = iter([session.thread.wake])
    monkeypatch.setattr(session, "during", lambda: next(wakes, lambda: None)())
    session.thread.start()
    assert session.taken.acquire(timeout=SOON_S)
    assert session.taken.acquire(timeout=SOON_S)


def test_steps_go_on_when_something_is_due(session: Steps) -> None:
    session.patience_s = 0.0
    session.thread.start()
    assert all(session.taken.acquire(timeout=SOON_S) for _ in range(3))


def test_a_session_that_has_nothing_to_do_for_ever_can_still_be_woken(session: Steps) -> None:
    session.patience_s = float("inf")
    session.thread.start()
    assert session.taken.acquire(timeout=SOON_S)
    session.thread.wake()
    assert session.taken.acquire(timeout=SOON_S)


def test_stopping_ends_the_request_that_is_under_way(session: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    under_way = threading.Event()

    def request() -> None:
        under_way.set()
        assert session.closed.wait(SOON_S)

    monkeypatch.setattr(session, "during", request)
    session.thread.start()
    assert under_way.wait(SOON_S)
    session.thread.stop()
    assert session.thread.is_stopping
    assert session.taken.acquire(blocking=False)


def test_a_mistake_in_a_step_ends_the_session_with_an_error(session: Steps, caplog: pytest.LogCaptureFixture) -> None:
    session.mistake = ValueError("a mistake")
    session.thread.start()
    assert session.taken.acquire(timeout=SOON_S)
    assert "a mistake" in str(session.refused[0])
    assert session.refused[0].__cause__ is session.mistake
    assert "the session of till-membership in the group ended by a mistake in it" in caplog.text


def test_a_worker_that_does_not_poll_for_too_long_is_told_how_to_mend_it(
    session: Steps, caplog: pytest.LogCaptureFixture
) -> None:
    session.clock.advance(30_000)
    assert not session.thread.was_left_alone()
    session.clock.advance(1)
    assert session.thread.was_left_alone()
    assert "raise consumer.max.poll.interval.ms" in caplog.text
    session.thread.poll(0)
    assert not session.thread.was_left_alone()


def test_failures_in_a_row_are_waited_for_longer_and_longer_up_to_a_second() -> None:
    assert [backoff_s(failures) for failures in (1, 2, 3, 4, 50)] == [0.1, 0.2, 0.5, 1.0, 1.0]
