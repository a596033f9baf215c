"""Something that fails is logged while it lasts, and given up after ``task.timeout.ms``."""

from __future__ import annotations

import logging

import pytest

from pykstreams.core.errors import ClusterError
from pykstreams.runtime.clients.outage import Outage
from tests.unit.runtime.cluster_fakes import FakeClock


def test_outage_is_logged_at_once_once_per_interval_and_at_its_end(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    outage = Outage("commits of worker-1", clock, 300)
    with caplog.at_level(logging.INFO):
        for _ in range(15):
            outage.failed("no coordinator")
            clock.advance(1)
        outage.over()
        outage.over()

    assert caplog.messages == [
        "commits of worker-1 fail: no coordinator; trying again for another 300 s at most (task.timeout.ms)",
        "commits of worker-1 fail (for 10 s so far): no coordinator; trying again for another 290 s at most "
        "(task.timeout.ms)",
        "commits of worker-1 succeed again, after 15.0 s",
    ]


def test_outage_that_comes_often_for_a_moment_is_no_warning_until_it_lasts(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    outage = Outage("commits of worker-1", clock, 300, patience_s=15)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            for _ in range(15):
                outage.failed("no coordinator")
                clock.advance(1)
            outage.over()
        quiet = list(caplog.messages)
        for _ in range(26):
            outage.failed("no coordinator")
            clock.advance(1)

    assert quiet == []
    assert [message[: message.index(":")] for message in caplog.messages] == [
        "commits of worker-1 fail (for 15 s so far)",
        "commits of worker-1 fail (for 25 s so far)",
    ]


def test_outage_is_an_error_after_the_task_timeout() -> None:
    clock = FakeClock()
    outage = Outage("commits of worker-1", clock, 300)
    for _ in range(7):
        outage.failed("no coordinator")
        clock.advance(43)

    with pytest.raises(ClusterError, match=r"commits of worker-1 have failed for 301 s.*no coordinator; look at the"):
        outage.failed("no coordinator")


def test_failures_that_lie_far_apart_are_no_outage_though_nobody_has_noted_a_success(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FakeClock()
    outage = Outage("commits of worker-1", clock, 300)
    with caplog.at_level(logging.WARNING):
        for _ in range(10):
            outage.failed("no coordinator")
            clock.advance(90)

    assert len(caplog.messages) == 10
    assert all("commits of worker-1 fail: no" in message for message in caplog.messages)


def test_success_starts_the_time_anew() -> None:
    clock = FakeClock()
    outage = Outage("commits of worker-1", clock, 300)
    for _ in range(3):
        outage.failed("no coordinator")
        clock.advance(200)
        outage.over()
