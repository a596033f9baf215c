"""One application that several workers share, of Java and of Python at the same time.

Nothing here sleeps for a result: what is waited for is what workers say, or the state of the broker, with a deadline.
"""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.brokers.reaper import Process
from tests.interop.java_host import PATIENCE_S, JavaHost
from tests.interop.turns import APPLICATIONS, ROOT, Turns

JAVA, PYTHON = "java", "python"


@dataclass
class Fleet:
    """The workers of an application, by name.

    :param turns: the application's topics and settings; it starts no worker itself.
    """

    turns: Turns
    java: JavaHost
    java_workers: set[str] = field(default_factory=set)
    processes: dict[str, Process] = field(default_factory=dict)

    def start(self, language: str, worker: str) -> None:
        """Starts a worker with a state directory of its own, and waits until it is a member of the group."""
        if language == JAVA:
            self._start_java(worker)
        else:
            self._start_python(worker)

    def _start_java(self, worker: str) -> None:
        turns = self.turns
        own = {"application.id": turns.name, "bootstrap.servers": turns.brokers, "client.id": self.name(worker)}
        own["state.dir"] = str(turns.folder / f"state-{worker}")
        self.java_workers.add(worker)
        self.java.start(self.name(worker), turns.program, {**turns.settings, **own})
        self.java.wait_for(self.name(worker), "STATE", "RUNNING")

    def _start_python(self, worker: str) -> None:
        self.processes[worker] = self.launch_python(worker)
        self.turns.wait(f"{worker} is a member", lambda: self.is_member(worker))

    def launch_python(self, worker: str) -> Process:
        """Starts a worker of Python, and does not wait for it."""
        turns = self.turns
        command = [sys.executable, "-m", "pykstreams", "run", f"{APPLICATIONS}:{turns.program}"]
        command += ["--application-id", turns.name, "--bootstrap-servers", turns.brokers]
        command += ["--state-dir", str(turns.folder / f"state-{worker}")]
        for key, value in turns.settings.items():
            command += ["--set", f"{key}={value}"]
        with self._log(worker).open("wb") as log:
            return Process(command, stdout=log, stderr=log, cwd=ROOT)

    def replace(self, old: str, language: str, new: str) -> None:
        """Lets another worker join, and then ends the old one."""
        self.start(language, new)
        self.stop(old)

    def stop(self, worker: str) -> None:
        """Ends a worker in good order; it leaves the group."""
        if worker in self.java_workers:
            self.java_workers.remove(worker)
            self.java.stop(self.name(worker), leave=True)
        else:
            process = self.processes.pop(worker)
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0, self.said(worker)[-6000:]

    def kill(self, worker: str) -> None:
        """Ends a worker of Python with no chance to say anything."""
        process = self.processes.pop(worker)
        process.kill()
        process.wait()

    def is_member(self, worker: str) -> bool:
        """Whether a worker of Python has joined the group; fails when it has ended."""
        assert self.processes[worker].poll() is None, self.said(worker)[-6000:]
        return "active tasks " in self.said(worker)

    def said(self, worker: str) -> str:
        """The log of a worker of Python."""
        return self._log(worker).read_text(errors="replace")

    def check(self) -> None:
        """Fails when a worker has ended."""
        for worker in self.java_workers:
            self.java.check(self.name(worker))
        for worker, process in self.processes.items():
            assert process.poll() is None, self.said(worker)[-6000:]

    def end(self) -> None:
        """Ends what is still there, in whatever state."""
        for process in self.processes.values():
            process.kill()
            process.wait()
        for worker in [*self.java_workers]:
            self.stop(worker)

    def name(self, worker: str) -> str:
        """What the JVM calls a worker."""
        return f"{self.turns.name}-{worker}"

    def _log(self, worker: str) -> Path:
        return self.turns.folder / f"{worker}.log"
