"""A shell in which the commands of a page are typed: in a folder, with what stands here for the places of the page.

Commands that go on until Ctrl-C, such as ``pykstreams run``, are started, waited for by what they log, and stopped.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.brokers.reaper import Process
from tests.docs.pages import ROOT

PATIENCE_S = 90.0


@dataclass
class Running:
    """A command that goes on, and what it writes."""

    command: str
    process: Process
    log: Path

    @property
    def text(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def wait_until(self, done: Callable[[str], bool]) -> None:
        """Waits until something is done, by what the command logs for instance."""
        deadline = time.monotonic() + PATIENCE_S
        while not done(self.text):
            assert self.process.poll() is None, f"{self.command}: {self.text}"
            assert time.monotonic() < deadline, f"{self.command}: {self.text}"
            time.sleep(0.05)

    def stop(self) -> None:
        """Stops it as Ctrl-C does, and asserts that it ends cleanly."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        assert self.process.wait(PATIENCE_S) == 0, f"{self.command}: {self.text}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@dataclass
class Shell:
    """A shell of a user: a folder, an environment, and places (``localhost:9092``) with what stands for them here.

    :param before: what every command is preceded by, such as ``source .venv/bin/activate``.
    """

    folder: Path
    places: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    before: list[str] = field(default_factory=list)
    _started: int = 0

    def here(self, command: str) -> str:
        """A command with the places of this shell."""
        for there, here in self.places.items():
            command = command.replace(there, here)
        return " && ".join([*self.before, command])

    def run(self, command: str, *, ends_with: int = 0) -> str:
        """Runs a command to its end, and returns what it has printed."""
        done = subprocess.run(
            ["bash", "-c", self.here(command)],
            cwd=self.folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        assert done.returncode == ends_with, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def run_until(self, command: str, printed: Callable[[str], bool]) -> str:
        """Runs a command until it prints what is waited for, such as a row that was sent a moment ago."""
        deadline = time.monotonic() + PATIENCE_S
        while not printed(text := self.run(command)):
            assert time.monotonic() < deadline, f"{command}: {text}"
            time.sleep(0.1)
        return text

    def start(self, command: str) -> Running:
        """Starts a command that goes on."""
        self._started += 1
        log = self.folder / f"started-{self._started}.log"
        # exec: signals are for the program, not for the shell
        line = " && ".join([*self.before, f"exec {self.here(command).split(' && ')[-1]}"])
        with log.open("wb") as out:
            process = Process(["bash", "-c", line], cwd=self.folder, env=self._environment(), stdout=out, stderr=out)
        return Running(command, process, log)

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            **self.environment,
        }


def runs_by_now(log: str, *, workers: int = 1) -> bool:
    """Whether all workers run, by what they have logged."""
    return log.count("-> running") >= workers


def matches(said: str, printed: str) -> bool:
    """Whether a program has printed what a page says, in which ``...`` stands for anything within a line."""
    pattern = r"[^\n]*".join(re.escape(part) for part in said.rstrip("\n").split("..."))
    return re.fullmatch(pattern, printed.rstrip("\n")) is not None
