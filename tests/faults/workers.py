"""The applications of a run and their workers, each ``python -m pykstreams run`` with a state directory of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path

from tests.brokers.reaper import Process
from tests.faults.languages import Language
from tests.faults.schedule import Action, Fault
from tests.faults.silence import Outages

ROOT = Path(__file__).parents[2]
SESSION_S = 6.0
TRANSACTION_S = 11.0
"""``transaction.timeout.ms`` under exactly-once, and a second until brokers look."""

_STOP_S = 60.0
"""A worker that is asked to stop has so long."""

_YOUNG_S = 5.0
"""A process that has not lived longer may end by the signal itself: it still imports."""

_CLASSIC = {
    "consumer.session.timeout.ms": f"{SESSION_S * 1000:.0f}",
    "consumer.heartbeat.interval.ms": "1500",
}
_STREAMS = {"group.protocol": "streams"}
"""The session time-out is a setting of the brokers, as long as that."""

_SETTINGS = {
    "statestore.cache.max.bytes": "0",
    "repartition.purge.interval.ms": "15000",
    "log.summary.interval.ms": "30000",
}


FLEETS = {
    "lone": (Language.PYTHON,),
    "several": (Language.PYTHON,),
    "streams": (Language.PYTHON,),
    "mixed": (Language.PYTHON, Language.JAVA),
    "mixed-streams": (Language.PYTHON, Language.JAVA),
    "java": (Language.JAVA,),
    "java-streams": (Language.JAVA,),
}
"""Kinds of fleets: one worker, several, several in a streams group; such whose workers change their language with each
start; and Kafka Streams alone, to compare with."""

OURS = ("lone", "several", "streams")
"""The fleets without Java."""


@dataclass(frozen=True, slots=True)
class Application:
    """One of the applications; each reads the same input."""

    name: str
    exactly_once: bool
    workers: tuple[str, ...]
    in_streams_group: bool = False
    """Whether the brokers assign its tasks (``group.protocol``)."""
    languages: tuple[Language, ...] = (Language.PYTHON,)
    """What its workers are written in: the next one, each time that one is started."""

    @property
    def lone(self) -> bool:
        return len(self.workers) == 1

    @property
    def settings(self) -> dict[str, str]:
        common = {**_SETTINGS, **(_STREAMS if self.in_streams_group else _CLASSIC)}
        if self.exactly_once:
            return {**common, "processing.guarantee": "exactly_once_v2", "commit.interval.ms": "300"}
        return {**common, "commit.interval.ms": "1000"}

    @property
    def notice_s(self) -> float:
        """How long it takes until others may take over from a worker that is gone without a word."""
        return TRANSACTION_S if self.exactly_once else SESSION_S


def applications(several: int = 3) -> list[Application]:
    """Both guarantees, each with all kinds of fleets."""
    return [
        Application(
            f"{short}-{fleet}",
            exactly_once,
            tuple(f"{short}-{fleet}-{n}" for n in range(1, (1 if fleet == "lone" else several) + 1)),
            in_streams_group=fleet.endswith("streams"),
            languages=languages,
        )
        for short, exactly_once in (("alos", False), ("eos", True))
        for fleet, languages in FLEETS.items()
    ]


class Worker:
    """One worker process; a lane of faults and the watch over processes use it."""

    def __init__(self, name: str, application: Application, bootstrap_servers: str, folder: Path) -> None:
        self.name, self.application = name, application
        self.log = folder / f"{name}.log"
        self._state = folder / name
        own = {"application.id": application.name, "bootstrap.servers": bootstrap_servers, "client.id": name}
        self._settings = {**application.settings, **own, "state.dir": str(self._state)}
        self._settings_file = folder / f"{name}.properties"
        first = application.workers.index(name)
        self._languages = islice(cycle(application.languages), first, None)
        self.language = Language.PYTHON
        self._process: Process | None = None
        self._lock = threading.Lock()
        self._wanted = False
        self._started_at = 0.0

    def start(self) -> None:
        with self._lock, self.log.open("ab") as log:
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            self.language = next(self._languages)
            command = self.language.command(self._settings, self._settings_file)
            self._process = Process(command, stdout=log, stderr=log, env=environment)
            self._wanted = True
            self._started_at = time.monotonic()

    def kill(self) -> None:
        with self._lock:
            self._wanted = False
            if self._process is not None:
                self._process.kill()
                self._process.wait()

    def wipe(self) -> None:
        """Loses its state."""
        shutil.rmtree(self._state, ignore_errors=True)

    def send(self, number: signal.Signals) -> None:
        with self._lock:
            if self._process is not None:
                self._process.send_signal(number)

    def stop(self, timeout_s: float) -> str | None:
        """Asks it to stop, and kills it when it does not; what was wrong with that."""
        assert self._process is not None
        with self._lock:
            self._wanted = False
            young = time.monotonic() - self._started_at < _YOUNG_S
        self.send(signal.SIGTERM)
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            return f"did not end within {timeout_s:g} s of SIGTERM"
        if code == 0 or (young and code == -signal.SIGTERM):
            return None
        return f"ended with {code} after SIGTERM"

    def ended_by_itself(self) -> int | None:
        """The exit code of a worker that nobody has ended."""
        with self._lock:
            return self._process.poll() if self._wanted and self._process is not None else None

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
    failures: list[tuple[str, str]] = field(default_factory=list)
    """Application and what went wrong, in the order of events."""
    of_java: Counter[str] = field(default_factory=Counter)
    """How often workers of Java ended otherwise than they should, by application: to compare with, and no failure."""

    @classmethod
    def of(
        cls,
        wanted: Sequence[Application],
        bootstrap_servers: str,
        folder: Path,
        outages: Outages,
        pause: Callable[[float], object],
        say: Callable[[str], object],
    ) -> Fleet:
        workers = [Worker(name, one, bootstrap_servers, folder) for one in wanted for name in one.workers]
        return cls({worker.name: worker for worker in workers}, outages, pause, say)

    def start(self) -> None:
        for worker in self.workers.values():
            worker.start()

    def carry_out(self, fault: Fault) -> str:
        """Does what is planned to a worker, and notes the outage of its application."""
        worker = self.workers[fault.target]
        application, began = worker.application, time.time()
        answer, taken_over = "", began + application.notice_s
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
            case Action.RESTART:
                self._stop(worker)
                taken_over = time.time()
                answer = f"it ended after {taken_over - began:.1f} s"
                self.pause(fault.length_s)
                worker.start()
            case _:
                raise ValueError(f"that is no fault of a worker: {fault}")
        back, why = time.time(), f"{fault.target} {fault.action}"
        if application.lone:
            self.outages.note(application.name, began, max(back, taken_over), why)
        else:  # others take over; when it is back, the tasks are shared out once more
            self.outages.note(application.name, began, taken_over, why)
            self.outages.note(application.name, back, back, f"{why} is over")
        return answer

    def stop(self) -> None:
        """Stops all of them in order, at once."""
        threads = [threading.Thread(target=self._stop, args=[worker]) for worker in self.workers.values()]
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
