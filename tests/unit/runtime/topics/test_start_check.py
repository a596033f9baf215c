"""A start asks brokers until they answer, also where they go away after they were reached."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pykstreams.core.config import StreamsConfig
from pykstreams.core.errors import ClusterError, ClusterUnavailableError, MissingSourceTopicError
from pykstreams.runtime.topics.start_check import StoppedWhileStartingError, ask_at_start
from tests.unit.runtime.cluster_fakes import FakeClock

CONFIG = StreamsConfig({"application.id": "shop", "task.timeout.ms": 60_000})
AWAY = ClusterUnavailableError("listing the topics failed: Broker transport failure")


class Brokers:
    """Can be reached at once, and answer as they are told; each question takes ten seconds."""

    def __init__(self, *answers: object) -> None:
        self.clock = FakeClock()
        self.reached = 0
        self.answers = list(answers)
        self.stopped = False

    def wait_until_reachable(self, stopped: Callable[[], bool]) -> None:
        self.reached += 1

    def ask(self) -> object:
        self.clock.advance(10)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def start(self) -> object:
        return ask_at_start(self.ask, self, CONFIG, self.clock, lambda: self.stopped)


def test_brokers_that_go_away_after_they_were_reached_are_asked_again() -> None:
    brokers = Brokers(AWAY, AWAY, "the topics")

    assert brokers.start() == "the topics"
    assert brokers.reached == 3


def test_brokers_that_never_answer_end_the_start_after_the_task_timeout() -> None:
    brokers = Brokers(AWAY)

    with pytest.raises(
        ClusterError, match=r"requests of the start of shop have failed for 70 s, longer than task\.tim"
    ):
        brokers.start()


def test_start_is_given_up_when_somebody_stops_it_while_brokers_are_away() -> None:
    brokers = Brokers(AWAY)
    brokers.answers = [AWAY, AWAY]
    ask = brokers.ask

    def stop_and_ask() -> object:
        brokers.stopped = True
        return ask()

    with pytest.raises(StoppedWhileStartingError):
        ask_at_start(stop_and_ask, brokers, CONFIG, brokers.clock, lambda: brokers.stopped)
    assert brokers.reached == 2


def test_topic_that_is_missing_is_not_asked_for_again() -> None:
    brokers = Brokers(MissingSourceTopicError("topic 'orders' does not exist"), "the topics")

    with pytest.raises(MissingSourceTopicError):
        brokers.start()
    assert brokers.reached == 1
