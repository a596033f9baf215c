"""Lags and previous tasks, from what consumers report."""

from __future__ import annotations

import pytest

from pykstreams.core.ids import TaskId
from pykstreams.runtime.membership.assignment.previous import lags, previous_tasks
from pykstreams.runtime.membership.protocol.subscription_info import RUNNING, UNKNOWN_SUM

ONE, TWO, THREE = (TaskId(0, partition) for partition in range(3))


@pytest.mark.parametrize(
    ("reached", "lag"), [({}, 100), ({ONE: 40}, 60), ({ONE: RUNNING}, RUNNING), ({ONE: UNKNOWN_SUM}, UNKNOWN_SUM)]
)
def test_the_lag_is_what_is_missing_to_the_end(reached: dict[TaskId, int], lag: int) -> None:
    assert lags(reached, {ONE: 100}) == {ONE: lag}


def test_state_beyond_the_end_counts_as_none_and_is_said(caplog: pytest.LogCaptureFixture) -> None:
    assert lags({ONE: 101}, {ONE: 100}) == {ONE: 100}
    assert "task 0_0 has reached offset 101 in all where its changelogs end at 100" in caplog.text


def test_tasks_that_are_not_in_the_topology_have_no_lag() -> None:
    assert lags({TWO: 5}, {}) == {}


def test_owned_and_running_tasks_were_active_and_the_others_standby() -> None:
    active, standby = previous_tasks({ONE: RUNNING, TWO: 7}, [THREE])
    assert active == {ONE, THREE} and standby == {TWO}
