"""The supervisor on a clock and with workers that the test moves."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykstreams.cli.workers.supervisor import Event, Exited, RestartPolicy, StopRequested, Supervisor


class StepClock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now_ms(self) -> int:
        return int(self.seconds * 1000)

    def monotonic(self) -> float:
        return self.seconds


class ScriptedWorkers:
    """Workers that do nothing but what the script of the test says; time passes while the supervisor waits.

    The script is a list of (seconds from now on, event); when it is at its end, workers that were asked to stop do.
    """

    def __init__(self, script: Sequence[tuple[float, Event]], *, obedient: bool = True) -> None:
        self.clock = StepClock()
        self.script = list(script)
        self.obedient = obedient
        self.log: list[str] = []
        self.ending: list[Event] = []

    def launch(self, number: int) -> _Worker:
        self.log.append(f"{self.clock.seconds:g}s start {number}")
        return _Worker(self, number)

    def next_event(self, timeout: float | None) -> Event | None:
        if self.ending:
            return self.ending.pop(0)
        wait = self.script[0][0] if self.script else float("inf")
        if timeout is not None and timeout < wait:
            assert timeout >= 0
            self.clock.seconds += timeout
            if self.script:
                self.script[0] = (wait - timeout, self.script[0][1])
            return None
        assert self.script, "the supervisor waits for ever"
        self.clock.seconds += wait
        return self.script.pop(0)[1]

    def run(self, workers: int, **policy: float) -> int:
        supervisor = Supervisor(
            workers,
            launch=self.launch,
            next_event=self.next_event,
            clock=self.clock,
            policy=RestartPolicy(**policy),  # type: ignore[arg-type]
        )
        return supervisor.run()


class _Worker:
    def __init__(self, scripted: ScriptedWorkers, number: int) -> None:
        self.scripted = scripted
        self.number = number

    def terminate(self) -> None:
        self.scripted.log.append(f"{self.scripted.clock.seconds:g}s stop {self.number}")
        if self.scripted.obedient:
            self.scripted.ending.append(Exited(self.number, 0))

    def kill(self) -> None:
        self.scripted.log.append(f"{self.scripted.clock.seconds:g}s kill {self.number}")
        self.scripted.ending.append(Exited(self.number, -9))


def test_a_request_to_stop_stops_every_worker_and_is_a_success() -> None:
    scripted = ScriptedWorkers([(10, StopRequested())])

    assert scripted.run(2) == 0
    assert scripted.log == ["0s start 1", "0s start 2", "10s stop 1", "10s stop 2"]


@pytest.mark.parametrize("code", [-9, -11, 1, 3, 4, 5])
def test_a_failed_worker_is_started_again_after_a_wait(code: int) -> None:
    scripted = ScriptedWorkers([(10, Exited(1, code)), (5, StopRequested())])

    assert scripted.run(2) == 0
    assert scripted.log[2:] == ["11s start 1", "15s stop 1", "15s stop 2"]


def test_the_wait_doubles_with_each_crash_in_a_row() -> None:
    scripted = ScriptedWorkers([(0, Exited(1, 1)), (1.5, Exited(1, 1)), (2.5, Exited(1, 1)), (10, StopRequested())])

    assert scripted.run(1) == 0
    assert scripted.log[:4] == ["0s start 1", "1s start 1", "3.5s start 1", "8s start 1"]


def test_a_worker_that_ran_long_starts_from_the_first_wait_again() -> None:
    crashes: list[tuple[float, Event]] = [(61, Exited(1, 1))] * 20

    scripted = ScriptedWorkers([*crashes, (61, StopRequested())])

    assert scripted.run(1, limit=2) == 0
    assert len(scripted.log) == 22


def test_too_many_crashes_in_a_row_end_the_application_with_their_code() -> None:
    scripted = ScriptedWorkers([(0, Exited(1, 4))] + [(40, Exited(1, 4))] * 5)

    assert scripted.run(2) == 4
    assert scripted.log.count("0s start 1") == 1
    assert sum("start 1" in line for line in scripted.log) == 6
    assert scripted.log[-1].endswith("stop 2")


def test_too_many_signals_in_a_row_end_the_application_as_unexpected() -> None:
    scripted = ScriptedWorkers([(40, Exited(1, -9))] * 2)

    assert scripted.run(1, limit=1) == 1


def test_an_error_that_every_worker_would_make_ends_the_application() -> None:
    scripted = ScriptedWorkers([(3, Exited(2, 2))])

    assert scripted.run(2) == 2
    assert scripted.log[2:] == ["3s stop 1"]


def test_the_others_go_on_while_a_worker_that_lost_the_brokers_is_given_up_and_started_again() -> None:
    scripted = ScriptedWorkers([(0.5, Exited(2, 3))] + [(40, Exited(2, 3))] * 5)

    assert scripted.run(2) == 3
    assert sum("start 2" in line for line in scripted.log) == 6
    assert [line.partition("s ")[2] for line in scripted.log if line.endswith("1")] == ["start 1", "stop 1"]


@pytest.mark.parametrize(("workers", "said"), [(1, "stopping 1 worker"), (2, "stopping 2 workers")])
def test_how_many_workers_are_stopped_is_said_in_words(
    workers: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        ScriptedWorkers([(1, StopRequested())]).run(workers)

    assert caplog.messages == [said]


@pytest.mark.parametrize(("workers", "said"), [(1, ""), (2, "; stopping 1 worker"), (3, "; stopping 2 workers")])
def test_the_others_are_only_spoken_of_where_there_are_any(
    workers: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    ScriptedWorkers([(1, Exited(1, 2))]).run(workers)

    assert caplog.messages == [f"worker 1 ended with exit code 2{said}"]


def test_a_worker_that_stopped_by_itself_is_not_started_again() -> None:
    scripted = ScriptedWorkers([(3, Exited(1, 0)), (3, Exited(2, 0))])

    assert scripted.run(2) == 0
    assert scripted.log == ["0s start 1", "0s start 2"]


def test_a_request_to_stop_while_a_worker_waits_for_its_start_does_not_start_it() -> None:
    scripted = ScriptedWorkers([(3, Exited(1, 1)), (0.5, StopRequested())])

    assert scripted.run(1) == 0
    assert scripted.log == ["0s start 1"]


def test_workers_that_do_not_stop_in_time_are_ended() -> None:
    scripted = ScriptedWorkers([(3, StopRequested())], obedient=False)

    assert scripted.run(1, stop_s=20) == 1
    assert scripted.log == ["0s start 1", "3s stop 1", "23s kill 1"]


def test_a_second_request_to_stop_ends_the_workers_at_once() -> None:
    scripted = ScriptedWorkers([(3, StopRequested()), (1, StopRequested())], obedient=False)

    assert scripted.run(1) == 1
    assert scripted.log[-1] == "4s kill 1"


@pytest.mark.parametrize("cause", [Exited(1, 2), Exited(1, 1)], ids=["settings", "crashed too often"])
def test_the_first_request_to_stop_ends_no_worker_that_is_stopping_already(cause: Exited) -> None:
    scripted = ScriptedWorkers([(10, cause), (5, StopRequested()), (5, Exited(2, 0))], obedient=False)

    assert scripted.run(2, limit=0) == cause.code
    assert scripted.log[2:] == ["10s stop 2"]


def test_a_second_request_ends_workers_that_were_stopping_before_the_first() -> None:
    scripted = ScriptedWorkers([(10, Exited(1, 2)), (5, StopRequested()), (5, StopRequested())], obedient=False)

    assert scripted.run(2) == 2
    assert scripted.log[2:] == ["10s stop 2", "20s kill 2"]


def test_an_error_while_stopping_is_the_result() -> None:
    scripted = ScriptedWorkers([(3, StopRequested()), (1, Exited(1, 4))], obedient=False)

    assert scripted.run(1) == 4


def test_no_worker_is_left_when_one_cannot_be_started() -> None:
    scripted = ScriptedWorkers([])

    def launch(number: int) -> _Worker:
        if number == 2:
            raise OSError("no more processes")
        return scripted.launch(number)

    supervisor = Supervisor(2, launch=launch, next_event=scripted.next_event, clock=scripted.clock)
    with pytest.raises(OSError, match="no more processes"):
        supervisor.run()

    assert scripted.log == ["0s start 1", "0s kill 1"]


codes = st.sampled_from([0, 1, 2, 3, 4, 5, -9, -15])


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(1, 3), codes), max_size=20), st.booleans())
def test_whatever_workers_do_no_more_run_than_were_asked_for_and_none_is_left(
    crashes: list[tuple[float, int, int]], obedient: bool
) -> None:
    """The model: a set of running workers, that launch and exit events change."""
    running: set[int] = set()
    scripted = ScriptedWorkers([(wait, Exited(number, code)) for wait, number, code in crashes], obedient=obedient)
    scripted.script.append((1, StopRequested()))

    def launch(number: int) -> _Worker:
        assert number not in running
        running.add(number)
        return scripted.launch(number)

    def next_event(timeout: float | None) -> Event | None:
        event = scripted.next_event(timeout)
        if isinstance(event, Exited):
            if event.worker not in running:
                return None
            running.remove(event.worker)
        return event

    Supervisor(3, launch=launch, next_event=next_event, clock=scripted.clock).run()

    assert running == set()
