"""The applications of a run and their workers, each ``python -m pykstreams run`` with a state directory of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

from tests.brokers.reaper import Process
from tests.faults.applications import Application
from tests.faults.languages import Language
from tests.faults.network import Network
from tests.faults.schedule import Action, Fault
from tests.faults.shifted_clock import SETTING, shift
from tests.faults.silence import Outages
from tests.faults.small_disk import fill, make_room

ROOT = Path(__file__).parents[2]

_STOP_S = 60.0
"""A worker that is asked to stop has so long."""

_JUMP_MS = {Action.AHEAD: 3_600_000, Action.BEHIND: -3_600_000}


class Worker:
    """One worker process; a lane of faults and the watch over processes use it."""

    def __init__(self, name: str, application: Application, bootstrap_servers: str, folder: Path) -> None:
        self.name, self.application = name, application
        self.log = folder / f"{name}.log"
        self.state = folder / name
        self._clock = folder / f"{name}.clock"
        shift(self._clock, 0)
        own = {"application.id": application.name, "bootstrap.servers": bootstrap_servers, "client.id": name}
        self._settings = {**application.settings, **own, "state.dir": str(self.state), SETTING: str(self._clock)}
        self._settings_file = folder / f"{name}.properties"
        first = [*application.workers, application.spare].index(name)
        self._languages = islice(cycle(application.kind.languages), first, None)
        self.language = Language.PYTHON
        self._process: Process | None = None
        self._lock = threading.Lock()
        self.wanted = False
        """Whether it is to run."""
        self._log_bytes = 0
        """How much it had logged when it was started."""

    def start(self) -> None:
        with self._lock, self.log.open("ab") as log:
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            self.language = next(self._languages)
            command = self.language.command(self.application.kind.program, self._settings, self._settings_file)
            self._process = Process(command, stdout=log, stderr=log, env=environment)
            self.wanted = True
            self._log_bytes = log.tell()

    def kill(self) -> None:
        with self._lock:
            self.wanted = False
            if self._process is not None:
                self._process.kill()
                self._process.wait()

    def wipe(self) -> None:
        """Loses its state."""
        shutil.rmtree(self.state, ignore_errors=True)

    def set_clock(self, ahead_ms: int) -> None:
        """Sets its clock forward or back, against that of the machine."""
        shift(self._clock, ahead_ms)

    @property
    def process_id(self) -> int | None:
        """Its process, while there is one."""
        with self._lock:
            running = self._process is not None and self._process.poll() is None
            return self._process.pid if self._process is not None and running else None

    def send(self, number: signal.Signals) -> None:
        with self._lock:
            if self._process is not None:
                self._process.send_signal(number)

    def stop(self, timeout_s: float) -> str | None:
        """Asks it to stop, and kills it when it does not; what was wrong with that.

        One that has logged nothing yet may end by the signal itself: it still imports, for many seconds on a machine
        that has much to do.
        """
        assert self._process is not None
        with self._lock:
            self.wanted = False
            imports = self.log.stat().st_size == self._log_bytes
        self.send(signal.SIGTERM)
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return f"did not end within {timeout_s:g} s of SIGTERM"
        if code == 0 or (imports and code == -signal.SIGTERM):
            return None
        return f"ended with {code} after SIGTERM"

    def ended_by_itself(self) -> int | None:
        """The exit code of a worker that nobody has ended."""
        with self._lock:
            return self._process.poll() if self.wanted and self._process is not None else None

    def tail(self, lines: int = 12) -> str:
        """The last lines of its log, less those of connections."""
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - 200_000))
            kept = [
                line for line in log.read().decode(errors="replace").splitlines() if "Connection refused" not in line
            ]
        return "\n".join(f"    | {line[:300]}" for line in kept[-lines:])


@dataclass
class Fleet:
    """The workers of all applications."""

    workers: dict[str, Worker]
    outages: Outages
    pause: Callable[[float], object]
    say: Callable[[str], object]
    network: Network | None = None
    """What workers can be cut off from."""
    small_disks: Collection[str] = ()
    """The workers whose disk can be filled."""
    failures: list[tuple[str, str]] = field(default_factory=list)
    """Application and what went wrong, in the order of events."""
    of_java: Counter[str] = field(default_factory=Counter)
    """How often workers of Java ended otherwise than they should, by application: to compare with, and no failure."""

    def start(self) -> None:
        for worker in self.workers.values():
            if worker.name != worker.application.spare:
                worker.start()

    def processes(self) -> dict[int, str]:
        """The workers that live, by process id."""
        found = ((worker.process_id, worker.name) for worker in self.workers.values())
        return {process: name for process, name in found if process is not None}

    def carry_out(self, fault: Fault) -> str:
        """Does what is planned to a worker, and notes the outage of its application."""
        worker = self.workers[fault.target]
        application, began = worker.application, time.time()
        taken_over = began + application.notice_s
        answer = ""
        match fault.action:
            case Action.KILL | Action.WIPE:
                worker.kill()
                self.pause(fault.length_s)
                if fault.action is Action.WIPE:
                    worker.wipe()
                worker.start()
            case Action.PAUSE:
                worker.send(signal.SIGSTOP)
                self.pause(fault.length_s)
                worker.send(signal.SIGCONT)
            case Action.CUT:
                if self.network is None:
                    return "left out: there is no network to cut"
                self.network.cut(worker.name)
                self.pause(fault.length_s)
                self.network.mend(worker.name)
            case Action.RESTART | Action.REMOVE:
                self._stop(worker)
                taken_over = time.time()
                answer = f"it ended after {taken_over - began:.1f} s"
                self.pause(fault.length_s)
                worker.start()
            case Action.ADD:
                return self._add_for_a_while(worker, fault.length_s)
            case Action.FILL:
                if worker.name not in self.small_disks:
                    return "left out: only root of Linux can mount a small disk"
                fill(worker.state)
                worker.kill()
                worker.start()
                self.pause(fault.length_s)
                make_room(worker.state)
                taken_over = time.time()  # its tasks wait with it
            case Action.AHEAD | Action.BEHIND:
                worker.set_clock(_JUMP_MS[fault.action])
                self.pause(fault.length_s)
                worker.set_clock(0)
                return ""  # nothing stands still for that
            case _:
                raise ValueError(f"that is no fault of a worker: {fault}")
        back, why = time.time(), f"{fault.target} {fault.action}"
        if application.lone:
            self.outages.note(application.name, began, max(back, taken_over), why)
        else:  # others take over; when it is back, the tasks are shared out once more
            self.outages.note(application.name, began, taken_over, why)
            self.outages.note(application.name, back, back, f"{why} is over")
        return answer

    def _add_for_a_while(self, worker: Worker, length_s: float) -> str:
        name = worker.application.name
        began = time.time()
        worker.start()
        self.outages.note(name, began, began, f"{worker.name} is added")
        self.pause(length_s)
        asked = time.time()
        self._stop(worker)
        self.outages.note(name, asked, time.time(), f"{worker.name} goes")
        return f"it ended after {time.time() - asked:.1f} s"

    def stop(self) -> None:
        """Stops all of them in order, at once."""
        there = [worker for worker in self.workers.values() if worker.wanted]
        threads = [threading.Thread(target=self._stop, args=[worker]) for worker in there]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def end(self) -> None:
        """Kills what is still there."""
        for worker in self.workers.values():
            worker.kill()

    def look_after(self) -> None:
        """Notes workers that ended by themselves, and starts them again."""
        for worker in self.workers.values():
            code = worker.ended_by_itself()
            if code is not None:
                self._fail(worker, f"{worker.name} ended by itself with {code}")
                worker.start()

    def _stop(self, worker: Worker) -> None:
        wrong = worker.stop(_STOP_S)
        if wrong is not None:
            self._fail(worker, f"{worker.name} {wrong}")

    def _fail(self, worker: Worker, what: str) -> None:
        if worker.language is Language.JAVA:
            self.of_java[worker.application.name] += 1
            self.say(f"{what}; it is one of Java, for comparison")
            return
        self.failures.append((worker.application.name, what))
        self.say(f"FAILURE: {what}\n{worker.tail()}")
