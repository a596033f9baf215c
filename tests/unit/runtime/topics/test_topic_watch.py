"""Topics that are deleted under a running application are noticed, and ones that are only late are not."""

from __future__ import annotations

import logging
import threading

import pytest

from pykstreams.core.errors import ClusterError, MissingInternalTopicsError, MissingSourceTopicError
from pykstreams.runtime.topics.topic_watch import CONFIRM_S, LOOK_S, TopicWatch

GONE = MissingSourceTopicError("topic 'orders' does not exist")
PATIENCE_S = 10.0


class Looks:
    """What each look finds, from the front; nothing more is wrong at the end."""

    def __init__(self, *found: Exception | None) -> None:
        self.found = list(found)

    def __call__(self) -> None:
        error = self.found.pop(0) if self.found else None
        if error is not None:
            raise error


def test_topic_that_is_missing_twice_is_told_within_a_minute() -> None:
    watch = TopicWatch("topics", Looks(None, GONE, GONE))

    pauses = [watch.look() for _ in range(3)]

    with pytest.raises(MissingSourceTopicError) as raised:
        watch.check()
    assert raised.value is GONE
    assert pauses == [LOOK_S, CONFIRM_S, CONFIRM_S]
    assert LOOK_S + CONFIRM_S < 60


@pytest.mark.parametrize("between", [None, ClusterError("no broker answers")])
def test_topic_that_a_starting_broker_did_not_know_of_ends_nothing(
    between: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    watch = TopicWatch("topics", Looks(GONE, between, None))

    with caplog.at_level(logging.WARNING):
        pauses = [watch.look() for _ in range(3)]

    watch.check()
    assert pauses == [CONFIRM_S, LOOK_S, LOOK_S]
    assert caplog.messages == ["topic 'orders' does not exist (looking again in 10 s)"]


def test_topic_that_is_missing_again_after_a_time_without_answers_is_looked_for_once_more() -> None:
    """The brokers have come back one after the other, and each may be one that has just started."""
    watch = TopicWatch("topics", Looks(GONE, ClusterError("no broker answers"), GONE, GONE))
    for _ in range(3):
        watch.look()
    watch.check()
    watch.look()

    with pytest.raises(MissingSourceTopicError):
        watch.check()


def test_internal_topics_are_told_of_too() -> None:
    watch = TopicWatch("topics", Looks(MissingInternalTopicsError("x", ["x"]), MissingInternalTopicsError("x", ["x"])))
    watch.look()
    watch.look()

    with pytest.raises(MissingInternalTopicsError):
        watch.check()


def test_thread_looks_by_itself_until_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pykstreams.runtime.topics.topic_watch.LOOK_S", 0.001)
    looked = threading.Event()
    watch = TopicWatch("topics", looked.set)
    watch.start()

    assert looked.wait(PATIENCE_S)

    watch.stop()
    watch._thread.join(PATIENCE_S)
    assert not watch._thread.is_alive()
