"""A changelog that is too short is believed to be so when brokers have said it for long enough."""

from __future__ import annotations

import pytest

from pykstreams.core.ids import TaskId, TopicPartition
from pykstreams.runtime.clients.positions import CONFIRM_S
from pykstreams.runtime.restore.remade_changelogs import RemadeChangelogs
from pykstreams.runtime.restore.restore import Remade
from tests.unit.runtime.cluster_fakes import FakeClock

LOG = TopicPartition("shop-counts-changelog", 1)
SHORT = Remade(TaskId(0, 1), LOG, "the store stands for offset 4, and the topic ends at 3")


def test_it_is_certain_after_a_while_and_warned_of_once_meanwhile(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    remade = RemadeChangelogs(clock)
    before = []
    for _ in range(2):
        before.append(remade.is_certain(SHORT))
        clock.advance(CONFIRM_S / 2)

    assert (before, remade.is_certain(SHORT)) == ([False, False], True)
    assert len(caplog.records) == 1
    assert "ends at 3; a broker that leads it no longer may say so, too" in caplog.text
    assert "asked for another 15 s" in caplog.text


def test_one_that_was_long_enough_in_between_is_doubted_anew() -> None:
    clock = FakeClock()
    remade = RemadeChangelogs(clock)
    remade.is_certain(SHORT)
    clock.advance(CONFIRM_S)
    remade.forget([LOG])

    assert not remade.is_certain(SHORT)


def test_one_whose_task_has_left_in_between_is_doubted_anew() -> None:
    """One answer of a broker that knows no better is not enough, however long ago the first one was."""
    clock = FakeClock()
    remade = RemadeChangelogs(clock)
    remade.is_certain(SHORT)
    clock.advance(14 * 24 * 3600)
    before = remade.is_certain(SHORT)
    clock.advance(CONFIRM_S)

    assert (before, remade.is_certain(SHORT)) == (False, True)
