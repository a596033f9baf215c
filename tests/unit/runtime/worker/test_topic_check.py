"""The regular check of topics: when it is made, and what a cluster that does not answer leaves."""

from __future__ import annotations

import pytest

from pykstreams.core.errors import ClusterError
from pykstreams.runtime.topics.topic_admin import TopicLayout
from pykstreams.runtime.worker.topic_check import TopicCheck
from tests.unit.runtime.cluster_fakes import FakeClock


def test_topics_are_checked_once_an_interval() -> None:
    clock, layout = FakeClock(), TopicLayout({}, {})
    check = TopicCheck(lambda: layout, clock, 5_000)
    found = []
    for seconds in (0, 4, 1, 0, 5):
        clock.advance(seconds)
        found.append(check.poll())

    assert found == [None, None, layout, None, layout]


def test_a_cluster_that_does_not_answer_is_asked_again_after_the_interval(caplog: pytest.LogCaptureFixture) -> None:
    clock, asked = FakeClock(), []

    def fails() -> TopicLayout:
        asked.append(clock.seconds)
        raise ClusterError("no broker answers")

    check = TopicCheck(fails, clock, 5_000)
    for seconds in (5, 1, 4):
        clock.advance(seconds)
        assert check.poll() is None

    assert len(asked) == 2
    assert caplog.messages == 2 * ["topics were not checked this time: no broker answers"]
