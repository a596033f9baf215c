"""Troubles of standby tasks: one warning each, and another try later."""

from __future__ import annotations

import pytest

from pykstreams.core.ids import TaskId
from pykstreams.runtime.standby.retries import RETRY_S, Retries
from tests.unit.runtime.cluster_fakes import FakeClock

TASK, OTHER = TaskId(0, 0), TaskId(0, 1)


def test_the_same_trouble_is_warned_of_once_until_it_is_over(caplog: pytest.LogCaptureFixture) -> None:
    retries = Retries(FakeClock())
    for text in ("full", "full", "broken", "full"):
        retries.warn(TASK, text)
    retries.warn(None, "full")
    retries.is_over(TASK)
    retries.warn(TASK, "full")

    assert caplog.messages == ["full", "broken", "full", "full", "full"]


def test_a_task_is_tried_again_after_a_while_and_others_meanwhile() -> None:
    clock = FakeClock()
    retries = Retries(clock)
    retries.later([TASK])
    at_once = retries.is_due(TASK), retries.is_due(OTHER)
    clock.advance(RETRY_S)

    assert (at_once, retries.is_due(TASK)) == ((False, True), True)
