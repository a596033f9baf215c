"""An application that is started anew when files change: with made-up processes, files and time."""

from __future__ import annotations

import pytest

from pykstreams.cli.reloading.reloader import Reloader
from pykstreams.cli.workers.supervisor import Event, Exited, StopRequested
from pykstreams.testing.clock import MockClock

Step = Event | str | None
"""An event, a file that changes, or nothing."""


class Life:
    """What happens, step by step, and what the reloader does about it."""

    def __init__(self, *steps: Step, stops_with: int | None = 0) -> None:
        self._steps = iter(steps)
        self._files: list[str] = []
        self._events: list[Event] = []
        self._stops_with = stops_with
        self._clock = MockClock(0)
        self.done: list[str] = []

    def run(self) -> int:
        return Reloader(
            launch=self._launch, next_event=self._next_event, changed=self._changed, clock=self._clock
        ).run()

    def _launch(self, number: int) -> Life.Process:
        self.done.append(f"start {number}")
        return Life.Process(self, number)

    def _changed(self) -> list[str]:
        files, self._files = self._files, []
        return files

    def _next_event(self, timeout: float | None) -> Event | None:
        if self._events:
            return self._events.pop()
        self._clock.advance(0 if timeout in (None, float("inf")) else int((timeout or 0) * 1000))
        step = next(self._steps)
        if isinstance(step, str):
            self._files.append(step)
            return None
        return step

    class Process:
        def __init__(self, life: Life, number: int) -> None:
            self._life, self._number = life, number

        def terminate(self) -> None:
            self._life.done.append(f"stop {self._number}")
            if self._life._stops_with is not None:
                self._life._events.append(Exited(self._number, self._life._stops_with))

        def kill(self) -> None:
            self._life.done.append(f"kill {self._number}")
            self._life._events.append(Exited(self._number, -9))


def test_a_change_stops_the_process_and_starts_another() -> None:
    life = Life(None, "a.py", None, None, StopRequested())

    assert (life.run(), life.done) == (0, ["start 1", "stop 1", "start 2", "stop 2"])


def test_files_that_are_written_one_after_the_other_are_one_change() -> None:
    life = Life("a.py", "b.py", "c.py", None, StopRequested())
    life.run()

    assert life.done == ["start 1", "stop 1", "start 2", "stop 2"]


def test_a_process_that_ends_by_itself_is_started_with_the_next_change_and_not_before() -> None:
    life = Life(Exited(1, 2), None, None, "a.py", None, None, StopRequested())
    life.run()

    assert life.done == ["start 1", "start 2", "stop 2"]


def test_a_stop_while_the_process_has_ended_starts_nothing() -> None:
    life = Life(Exited(1, 2), StopRequested())

    assert (life.run(), life.done) == (0, ["start 1"])


def test_the_exit_code_is_that_of_the_process_that_was_stopped() -> None:
    assert Life(StopRequested(), stops_with=4).run() == 4


@pytest.mark.parametrize("event", [None, StopRequested()], ids=["too late", "asked twice"])
def test_a_process_that_does_not_stop_is_ended(event: Event | None) -> None:
    life = Life(StopRequested(), event, stops_with=None)
    life.run()

    assert life.done == ["start 1", "stop 1", "kill 1"]


def test_a_process_that_does_not_stop_after_a_change_is_ended_too_and_another_started() -> None:
    life = Life("a.py", None, None, stops_with=None)
    with pytest.raises(StopIteration):
        life.run()

    assert life.done[:4] == ["start 1", "stop 1", "kill 1", "start 2"]


def test_a_stop_that_is_asked_for_while_a_changed_application_stops_ends_it_for_good() -> None:
    life = Life("a.py", None, StopRequested(), Exited(1, 0), stops_with=None)

    assert (life.run(), life.done) == (0, ["start 1", "stop 1"])
