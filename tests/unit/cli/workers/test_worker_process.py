"""Real processes: that their end is reported, and that a worker stops when its supervisor is gone."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from types import FrameType

import pytest

from pykstreams.cli.workers.supervisor import Exited, StopRequested
from pykstreams.cli.workers.worker_process import WorkerProcesses, stop_with_supervisor

DEADLINE_S = 60.0


@pytest.mark.slow
def test_the_end_of_a_worker_is_reported_with_its_exit_code(tmp_path: Path) -> None:
    processes = WorkerProcesses([str(tmp_path / "missing.py")])
    processes.launch(7)

    assert processes.next_event(DEADLINE_S) == Exited(7, 2)


def test_a_wait_without_event_ends() -> None:
    assert WorkerProcesses([]).next_event(0) is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_a_request_to_stop(number: signal.Signals) -> None:
    before = {caught: signal.getsignal(caught) for caught in (signal.SIGINT, signal.SIGTERM)}
    processes = WorkerProcesses([])
    try:
        processes.catch_signals()
        os.kill(os.getpid(), number)

        assert processes.next_event(DEADLINE_S) == StopRequested()
    finally:
        for caught, handler in before.items():
            signal.signal(caught, handler)


def test_a_worker_stops_when_its_supervisor_is_gone() -> None:
    stopped = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    before = signal.signal(signal.SIGTERM, on_signal)
    read, write = os.pipe()
    try:
        stop_with_supervisor(read)
        os.close(write)

        assert stopped.wait(DEADLINE_S)
    finally:
        signal.signal(signal.SIGTERM, before)
        os.close(read)
