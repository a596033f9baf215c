"""The metrics of restoring and of standby tasks, by what the thread that reads changelogs tells."""

from __future__ import annotations

import math

import pytest

from pykstreams.core.ids import TopicPartition
from pykstreams.core.metrics import RecordingLevel, StreamsMetrics
from pykstreams.runtime.metrics.updater_metrics import UpdaterMetrics
from pykstreams.runtime.restore.restore_metrics import RestoreMetrics
from pykstreams.testing import MockClock
from pykstreams.topology.plan import InternalTopic
from tests.unit.runtime.plans import part, plan, source

CHANGELOG = TopicPartition("shop-counts-changelog", 0)
TASK = "0_0"


class Measured:
    """The metrics of one thread that reads changelogs, and of the tasks that it reads them for."""

    def __init__(self, *, standby: bool = False) -> None:
        self.all = StreamsMetrics(level=RecordingLevel.DEBUG, window_ms=1_000, clock=MockClock(0))
        self.of_tasks = self.all.with_tags(thread_id="worker-1")
        self.updater = UpdaterMetrics(self.all.with_tags(thread_id="updater-1"))
        counts = InternalTopic(CHANGELOG.topic, "changelog", None, {})
        shop = plan(part(0, source("A", "orders"), changelogs={"counts": counts}, stores={"counts": object()}))
        self.listener = RestoreMetrics(self.of_tasks, shop, self.updater, standby=standby)

    def restored(self, first: int, end: int, count: int) -> None:
        """Reads some records of a changelog, up to an offset before its end."""
        self.listener.on_restore_start(CHANGELOG, "counts", first, end)
        self.listener.on_batch_restored(CHANGELOG, "counts", first + count - 1, count)

    def value(self, name: str) -> float:
        found = [metric.value for key, metric in self.all.metrics().items() if key.name == name]
        return sum(found) if found else math.nan


def test_records_and_what_remains_are_counted_by_task() -> None:
    measured = Measured()
    measured.restored(10, 100, 30)

    assert measured.value("restore-total") == 30
    assert measured.value("restore-remaining-records-total") == 60
    assert measured.value("restore-records-rate") == 30
    measured.listener.on_restore_end(CHANGELOG, "counts", 30)
    assert measured.value("restore-remaining-records-total") == 0


def test_a_standby_task_counts_as_updated_and_has_nothing_that_remains() -> None:
    measured = Measured(standby=True)
    measured.restored(0, 100, 30)

    assert measured.value("update-total") == 30
    assert math.isnan(measured.value("restore-total"))
    assert math.isnan(measured.value("restore-remaining-records-total"))


@pytest.mark.parametrize(("standby", "name"), [(False, "restore-total"), (True, "update-total")])
def test_a_task_that_was_closed_and_comes_back_is_counted_again(standby: bool, name: str) -> None:
    measured = Measured(standby=standby)
    measured.restored(0, 100, 30)
    measured.listener.on_restore_suspended(CHANGELOG, "counts", 30)
    measured.of_tasks.remove(task_id=TASK)
    assert math.isnan(measured.value(name))

    measured.restored(30, 100, 5)

    assert measured.value(name) == 5


@pytest.mark.parametrize(("standby", "name"), [(False, "restore-total"), (True, "update-total")])
def test_a_changelog_that_is_read_in_rounds_is_counted_on(standby: bool, name: str) -> None:
    measured = Measured(standby=standby)
    for first in (0, 30):
        measured.restored(first, 100, 30)
        if standby:
            measured.listener.on_restore_end(CHANGELOG, "counts", 30)

    assert measured.value(name) == 60


def test_threads_tell_their_tasks_and_the_share_of_their_time() -> None:
    measured = Measured()
    paused = [False]
    measured.updater.describe(restoring=lambda: 2, standby=lambda: 3, paused=lambda: paused[0])
    measured.updater.restored(0.25)
    measured.updater.followed(0.5)
    measured.updater.idled(0.125)

    running = {"active-restoring-tasks": 2, "active-paused-tasks": 0, "standby-updating-tasks": 3}
    assert {name: measured.value(name) for name in running} == running
    shares = {"active-restore-ratio": 0.25, "standby-update-ratio": 0.5, "idle-ratio": 0.125, "restore-call-rate": 1}
    assert {name: measured.value(name) for name in shares} == shares
    paused[0] = True
    halted = {"active-restoring-tasks": 0, "active-paused-tasks": 2, "standby-updating-tasks": 0}
    assert {name: measured.value(name) for name in (*halted, "standby-paused-tasks")} == {
        **halted,
        "standby-paused-tasks": 3,
    }
