"""The regular check of topics: when it is made, and what a cluster that does not answer leaves."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from pykstreams.core.errors import ClusterError, MissingSourceTopicError
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.runtime.worker.topic_check import TopicCheck
from tests.unit.runtime.cluster_fakes import FakeClock

PATIENCE_S = 60.0
KNOWN = TopicLayout({}, {})
FOUND = TopicLayout({"orders": 4}, {})


class Asking:
    """The thread of a check, which gets its answer when a test says so."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def __call__(self, act: Callable[[], None]) -> None:
        self.waiting.append(act)

    def answer(self) -> None:
        """Answers what was asked first."""
        self.waiting.pop(0)()


def at_once(act: Callable[[], None]) -> None:
    act()


def test_topics_are_checked_once_an_interval() -> None:
    clock = FakeClock()
    check = TopicCheck(lambda: FOUND, clock, 5_000, at_once)
    found = []
    for seconds in (0, 4, 1, 0, 5):
        clock.advance(seconds)
        found.append(check.poll(KNOWN))

    assert found == [None, None, FOUND, None, FOUND]


def test_a_cluster_that_does_not_answer_is_asked_again_after_the_interval(caplog: pytest.LogCaptureFixture) -> None:
    clock, asked = FakeClock(), []

    def fails() -> TopicLayout:
        asked.append(clock.seconds)
        raise ClusterError("no broker answers")

    check = TopicCheck(fails, clock, 5_000, at_once)
    for seconds in (5, 1, 4):
        clock.advance(seconds)
        assert check.poll(KNOWN) is None

    assert len(asked) == 2
    assert caplog.messages == 2 * ["topics were not checked this time: no broker answers"]


def test_a_cluster_that_is_slow_to_answer_is_not_waited_for_nor_asked_twice() -> None:
    clock, asking = FakeClock(), Asking()
    check = TopicCheck(lambda: FOUND, clock, 5_000, asking)
    clock.advance(5)
    assert check.poll(KNOWN) is None
    clock.advance(30)
    assert check.poll(KNOWN) is None
    assert len(asking.waiting) == 1

    asking.answer()
    assert check.poll(KNOWN) is FOUND
    clock.advance(4)
    assert check.poll(KNOWN) is None
    assert not asking.waiting


def test_an_answer_to_an_earlier_question_does_not_replace_what_the_group_has_said_since() -> None:
    clock, asking = FakeClock(), Asking()
    check = TopicCheck(lambda: FOUND, clock, 5_000, asking)
    clock.advance(5)
    check.poll(KNOWN)
    said = TopicLayout({"orders": 8}, {})
    asking.answer()

    assert check.poll(said) is None
    clock.advance(5)
    assert check.poll(said) is None
    asking.answer()
    assert check.poll(said) is FOUND


def test_topics_that_are_missing_are_an_error_of_the_worker() -> None:
    clock = FakeClock()

    def fails() -> TopicLayout:
        raise MissingSourceTopicError("topic 'orders' does not exist")

    check = TopicCheck(fails, clock, 5_000, at_once)
    clock.advance(5)

    with pytest.raises(MissingSourceTopicError, match="orders"):
        check.poll(KNOWN)


def test_the_cluster_is_asked_on_a_thread_of_its_own() -> None:
    clock, asked = FakeClock(), list[str]()

    def prepare() -> TopicLayout:
        asked.append(threading.current_thread().name)
        return FOUND

    check = TopicCheck(prepare, clock, 5_000)
    clock.advance(5)
    found = [check.poll(KNOWN)]
    for thread in threading.enumerate():
        if thread.name == "topic-check":
            thread.join(PATIENCE_S)

    found.append(check.poll(KNOWN))

    assert asked == ["topic-check"]
    assert FOUND in found
