"""Reports about tasks: in order, and not about those that were taken back."""

from __future__ import annotations

from pykstreams.core.ids import TaskId
from pykstreams.runtime.worker.task_reports import TaskReports
from tests.unit.runtime.cluster_fakes import FakeTask

TASK = TaskId(0, 0)


def test_reports_are_taken_once_and_in_order() -> None:
    reports: TaskReports[FakeTask, str] = TaskReports()
    reports.put(FakeTask(TASK, (), {}), "restored")
    reports.put(None, "failed")

    assert reports.take() == ["restored", "failed"]
    assert reports.take() == []


def test_reports_about_a_task_that_was_taken_back_are_left_out_and_those_about_its_successor_are_not() -> None:
    reports: TaskReports[FakeTask, str] = TaskReports()
    first, second = FakeTask(TASK, (), {}), FakeTask(TASK, (), {})
    reports.put(first, "before")
    reports.take_back(first)
    reports.put(first, "after")
    reports.put(second, "restored")

    assert not reports.is_empty
    assert reports.take() == ["restored"]
    assert reports.is_empty
